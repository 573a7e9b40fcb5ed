"""Items whose right ratings are known: who rates them otherwise does not read. They are part of no score.

A file of your own has JSON lines: an example each (records.Example: id, image_id, text, the right answer as `label` or
as `answers`) and `known`, one or two explanations of its right answer with the ratings that a careful rater may give:

    {"id": "k1", "image_id": "262284", "text": "Is it raining?", "answers": {"no": 1.0}, "explanations": [],
     "known": [{"text": "the sky is blue", "ratings": ["yes", "weak_yes"]}, {"text": "cats", "ratings": ["no"]}]}

Beside a single one stands a gold explanation of the example, which may be rated in any way.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from evil_jax import text
from evil_jax.data.sources import _files
from evil_jax.human import _chance, _choices, _selection
from evil_jax.human.study import GOLD, RATINGS, TRUSTED, Shown
from evil_jax.records import Example

BAD = ('no', 'weak_no')
_LOOKED_AT = 25  # foreign explanations, of which the least fitting one is taken


@dataclasses.dataclass(frozen=True)
class Known:
    """One such item, before its answers and its place are chosen.

    Attributes:
      example: what is asked.
      explanations: two; at least one says which ratings are expected.
    """

    example: Example
    explanations: tuple[Shown, Shown]


def read(path) -> list[Known]:
    """Reads a file of known items (the form is in the module's docstring).

    Raises:
      ValueError: a malformed line, no item at all, a repeated id; file and line are named.
    """
    found = {}
    for where, row in _files.iter_json(path):
        row = dict(_files.plain(_files.checked(row, dict, where), where))
        known = _files.field(row, 'known', list, where)
        del row['known']
        try:
            example = Example.from_json(row)
            if example.id in found:
                raise ValueError(f'the id {example.id!r} was there before')
            found[example.id] = Known(example, _explanations(example, known))
        except ValueError as error:
            raise ValueError(f'{where}: {error}') from error
    if not found:
        raise ValueError(f'{path}: holds no known items')
    return list(found.values())


def _explanations(example, known) -> tuple[Shown, Shown]:
    if why := _selection.why_not(dataclasses.replace(example, explanations=['any']), None):
        raise ValueError(f'the example has {why.replace("_", " ")}')
    shown = [_shown(row, example, f'known {number}') for number, row in enumerate(known, 1)]
    if len(shown) == 1 and (own := _selection.references(example)):
        shown.append(Shown(GOLD, text.tags_to_names(own[0], example.objects)))
    if len(shown) != 2:
        raise ValueError(f'there are {len(known)} known explanations, wanted two, or one and a gold explanation')
    return tuple(shown)


def _shown(row, example, where) -> Shown:
    ratings = _files.field(_files.checked(row, dict, where), 'ratings', list, where)
    if not ratings or not all(rating in RATINGS for rating in ratings):
        raise ValueError(f'{where}: ratings are {_files.shown(ratings)}, wanted some of {", ".join(RATINGS)}')
    words = text.tags_to_names(_files.filled(row, 'text', where), example.objects)
    return Shown(TRUSTED, words, tuple(rating for rating in RATINGS if rating in ratings))


def automatic(
    candidates: Sequence[Example], foreign: Sequence[Example], seed: int, unlike: Callable[[Example, Example], bool]
) -> Iterator[Known]:
    """Makes known items: a gold explanation beside one of another picture and another answer, which explains nothing.

    Args:
      candidates: what may be asked, in the order wanted.
      foreign: whose gold explanations may stand there.
      seed: of the study.
      unlike: whether two examples have different answers.

    Yields:
      One for each candidate for which there is a foreign explanation.
    """
    for example in candidates:
        rng = _chance.rng(seed, 'trusted', example.id)
        own = text.tags_to_names(rng.choice(_selection.references(example)), example.objects)
        about = _choices.stems(' '.join((example.text, _choices.gold(example), *example.explanations)))
        best = None
        for other in rng.sample(foreign, min(len(foreign), _LOOKED_AT)):
            if other.image_id == example.image_id or not unlike(example, other):
                continue
            words = _elsewhere(rng.choice(_selection.references(other)), other, example)
            common = len(about & _choices.stems(words))
            if words != own and (best is None or common < best[0]):
                best = common, words
        if best is not None:
            yield Known(example, (Shown(GOLD, own), Shown(TRUSTED, best[1], BAD)))


def _elsewhere(words, other, example) -> str:
    """An explanation of another picture: objects that are not here, too, lose their number, which would tell it."""
    here, there = example.objects or (), other.objects or ()

    def name(match):
        number = int(match[1])
        kind = there[number - 1] if 1 <= number <= len(there) else 'object'
        return match[0] if number <= len(here) and here[number - 1] == kind else kind

    return text.tags_to_names(text.TAG.sub(name, words), here)
