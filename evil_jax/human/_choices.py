"""The answers that a rater chooses from, before any explanation is shown: the right one and wrong ones.

e-SNLI-VE: the three relations, in the order of the original form. VCR: the right choice and some of the wrong ones.
Open questions: the right answer and answers of other questions that nobody gave to this one. Source: the original
questionnaires and e-ViL's issues 3 and 7.
"""

import collections
import re
from collections.abc import Iterable, Sequence

from evil_jax import text
from evil_jax.data import answers
from evil_jax.data.sources.esnlive import CLASSES
from evil_jax.human import _chance
from evil_jax.human.study import RELATIONS
from evil_jax.records import Example

# Where a data set is too small to have wrong answers: frequent ones of VQA v2, of several kinds.
_COMMON = ('no', 'yes', 'white', '3', 'man', 'outside', 'pizza', 'tennis', 'winter', 'wood')
_WORD = re.compile(r'[^\W\d_]{3,}')
_EVERYWHERE = frozenset((
    'and', 'are', 'because', 'can', 'for', 'from', 'has', 'have', 'her', 'his', 'its', 'not', 'than', 'that', 'the',
    'them', 'then', 'there', 'they', 'this', 'was', 'were', 'with',
))  # fmt: skip


def is_relation(example: Example) -> bool:
    """Whether its text is a statement that a picture entails, leaves open or contradicts."""
    return example.choices is None and (example.label in CLASSES or isinstance(example.label, int))


def gold(example: Example) -> str | None:
    """The right answer as it is shown; None where there is none.

    Of an open question it is the one with the highest soft score. Several may have that (four of ten annotators are
    enough for 1): the published answer goes first, then the one that most of them gave.

    Raises:
      ValueError: a label that is none of the choices.
    """
    label = example.label
    if example.choices is not None:
        if label is None:
            return None
        if type(label) is not int or not 0 <= label < len(example.choices):
            raise ValueError(f'example {example.id!r} has label {label!r}, wanted 0 ... {len(example.choices) - 1}')
        return text.tags_to_names(example.choices[label], example.objects)
    if isinstance(label, int):
        if not 0 <= label < len(CLASSES):
            raise ValueError(f'example {example.id!r} has label {label!r} and no choices, wanted 0 ... 2')
        label = CLASSES[label]
    if label is not None:
        return label.capitalize() if label in CLASSES else label
    best = max(example.answers.values(), default=0) if example.answers else 0
    if best <= 0:
        return None
    heading, counts = answers.heading(example), collections.Counter(example.annotations)
    tied = [answer for answer, score in example.answers.items() if score == best]
    return min(tied, key=lambda answer: (answer != heading, -counts[answer], answer))


def stems(words: str) -> set[str]:
    """The beginnings of its words that mean something: 'stands' and 'standing' have the same."""
    return {word[:4] for word in _WORD.findall(words.casefold()) if word not in _EVERYWHERE}


class Chooser:
    """Finds wrong answers.

    Args:
      examples: whose right answers are wrong ones of the others.
      number: of answers to choose from, the right one among them.
      seed: of the study.
    """

    def __init__(self, examples: Iterable[Example], number: int, seed: int):
        self._number, self._seed = number, seed
        open_ones = (e for e in examples if e.choices is None and not is_relation(e))
        found = {answer for e in open_ones if (answer := gold(e)) is not None}
        self._pool = {}  # by its normal form one spelling, which is the same in whatever order the examples come
        for answer in sorted(found):
            self._pool.setdefault(text.vqa_normalise(answer), answer)
        self._stems = {form: stems(answer) for form, answer in self._pool.items()}

    def of(self, example: Example, given: Sequence[str] = ()) -> tuple[tuple[str, ...], int]:
        """(answers in the order shown, number of the right one); fewer than wanted where there are no more.

        Args:
          example: it has a right answer.
          given: what else is not wrong: right answers of systems.
        """
        right = gold(example)
        if is_relation(example):
            return RELATIONS, RELATIONS.index(right)
        rng = _chance.rng(self._seed, 'choices', example.id)
        wrong = self._others(example, right) if example.choices is not None else self._open(example, right, given)
        chosen = [right, *rng.sample(wrong, min(len(wrong), self._number - 1))]
        rng.shuffle(chosen)
        return tuple(chosen), chosen.index(right)

    def _others(self, example, right) -> list[str]:
        named = (text.tags_to_names(choice, example.objects) for choice in example.choices)
        return [choice for choice in dict.fromkeys(named) if choice != right and choice.strip()]

    def _open(self, example, right, given) -> list[str]:
        said = {right, *given, *(example.answers or ()), *(example.annotations or ())}
        forms, words = {text.vqa_normalise(answer) for answer in said}, set().union(*map(stems, said))
        wrong = [
            answer
            for form, answer in self._pool.items()
            if form and form not in forms and not self._stems[form] & words
        ]
        if example.label is None and len(wrong) < self._number - 1:
            wrong += [answer for answer in _COMMON if answer not in forms | set(wrong)]
        return wrong
