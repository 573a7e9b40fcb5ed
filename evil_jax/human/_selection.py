"""Which examples people are asked about, for each system."""

import collections
import pathlib
from collections.abc import Callable, Mapping, Sequence

from evil_jax.human import _choices
from evil_jax.records import Example, Prediction


def why_not(example: Example, has_picture: Callable[[str], object] | None) -> str:
    """Why nobody can be asked about an example, or ''."""
    if not example.text.strip():
        return 'no_text'
    if not references(example):
        return 'no_gold_explanation'
    if _choices.gold(example) is None:
        return 'no_gold_answer'
    if has_picture is not None and not has_picture(example.image_id):
        return 'no_picture'
    return ''


def references(example: Example) -> list[str]:
    """Gold explanations with something in them, each once, in an order of their own."""
    return sorted({reference.strip() for reference in example.explanations} - {''})


def select(
    ordered: Sequence[Example],
    predictions: Mapping[str, Prediction],
    right: Mapping[str, float],
    limit: int,
    has_picture: Callable[[str], object] | None,
) -> tuple[list[Example], dict[str, int], list[str]]:
    """The first examples that a system answers rightly, each with a picture of its own.

    Where movies are known (VCR) each of them is there, as far as the system has a right answer in it: the first one of
    each movie goes before the others.

    Args:
      ordered: the examples, shuffled; the same for all systems.
      predictions, right: of the system, by id.
      limit: how many; 0 = all.
      has_picture: of an image id; None = all have.

    Returns:
      Examples in their order; what became of the right answers, in numbers; what falls short of what was wanted.
    """
    counts = collections.Counter(predictions=len(predictions), right=0)
    pictures, first_of_movie = {}, {}
    for example in ordered:
        if example.id not in predictions or not right[example.id] > 0:
            continue
        counts['right'] += 1
        # None = no explanation was made; an empty one is one, and people are shown that it is empty.
        reason = 'not_explained' if predictions[example.id].explanation is None else why_not(example, has_picture)
        if not reason and example.image_id in pictures:
            reason = 'same_picture'
        if reason:
            counts[reason] += 1
            continue
        pictures[example.image_id] = example
        if name := movie(example):
            first_of_movie.setdefault(name, example.id)
    candidates = list(pictures.values())
    wanted = min(limit or len(candidates), len(candidates))
    taken = set(list(first_of_movie.values())[:wanted])
    for example in candidates:
        if len(taken) == wanted:
            break
        taken.add(example.id)
    short = []
    if wanted < limit:
        short.append(f'{wanted} of {limit} examples: there are no more right answers with a picture of their own')
    if first_of_movie:
        counts['movies'] = min(len(first_of_movie), wanted)
        if wanted < len(first_of_movie):
            short.append(f'{wanted} of {len(first_of_movie)} movies')
    counts['taken'] = wanted
    return [example for example in candidates if example.id in taken], dict(counts), short


def movie(example: Example) -> str:
    """The movie of an example with choices (VCR): as told, else the folder of its picture; '' = not known."""
    if example.choices is None:
        return ''
    if isinstance(told := example.extra.get('movie'), str) and told:
        return told
    path = example.extra.get('img_fn')
    folder = pathlib.PurePosixPath(path if isinstance(path, str) else example.image_id).parent
    return '' if folder == pathlib.PurePosixPath('.') else folder.as_posix()
