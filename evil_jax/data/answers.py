"""Answer vocabularies of open questions: reading, building, changing the order.

An answer vocabulary is a tuple of distinct texts; the index is the label. The 3,129 answers of VQA v2 circulate in two
orders (LXMERT's and UNITER's), so a head trained with one must be remapped before it is used with the other.
"""

import collections
import json
import pathlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from evil_jax.records import Example


def read(path) -> tuple[str, ...]:
    """Reads a JSON list (`label2ans`: index = label) or object (`ans2label`: answer -> label).

    Raises:
      ValueError: not such a file, a repeated answer, labels that are not 0 ... n-1; the file is named.
    """
    path = pathlib.Path(path)
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f'{path}: no answer vocabulary: {error}') from error
    if isinstance(document, dict):
        by_label = {label: answer for answer, label in document.items() if type(label) is int}
        if sorted(by_label) != list(range(len(document))):
            raise ValueError(f'{path}: the labels of its {len(document)} answers are not 0 ... {len(document) - 1}')
        document = [by_label[label] for label in range(len(by_label))]
    if not isinstance(document, list) or not document:
        raise ValueError(f'{path}: wanted a non-empty JSON list of answers or object answer -> label')
    seen = {}
    for label, answer in enumerate(document):
        if not isinstance(answer, str):
            raise ValueError(f'{path}: label {label} is {answer!r}, wanted text')
        if answer in seen:
            raise ValueError(f'{path}: answer {answer!r} has the labels {seen[answer]} and {label}')
        seen[answer] = label
    return tuple(document)


def build(examples: Iterable[Example], minimum: int, normalise: Callable[[str], str]) -> tuple[str, ...]:
    """The normalised answers that head at least `minimum` questions, the most frequent first (ties: alphabetical).

    An example's heading answer is the published `multiple_choice_answer`, else the most frequent of its ten
    annotations, else the one with the highest soft score. Source of the rule: Teney et al. 2018 and Hu's
    compute_softscore, with minimum 9 on training plus validation questions.

    Raises:
      ValueError: no answer is frequent enough.
    """
    counts = collections.Counter(normalise(answer) for answer in map(heading, examples) if answer is not None)
    kept = sorted((a for a, n in counts.items() if n >= minimum), key=lambda a: (-counts[a], a))
    if not kept:
        most = max(counts.values(), default=0)
        raise ValueError(
            f'no answer heads {minimum} questions of the training split (the most frequent heads {most}): '
            'lower data.answers_min_count, or name a vocabulary in data.answers'
        )
    return tuple(kept)


def heading(example: Example) -> str | None:
    """The answer that counts as the answer of an example, as written; None where it has none."""
    if 'multiple_choice_answer' in example.extra:
        return example.extra['multiple_choice_answer']
    if example.annotations:
        return collections.Counter(example.annotations).most_common(1)[0][0]
    if example.answers:
        return max(example.answers, key=example.answers.get)
    return None


def index(answers: Sequence[str]) -> dict[str, int]:
    """Label of each answer."""
    return {answer: label for label, answer in enumerate(answers)}


def remap(old: Sequence[str], new: Sequence[str]) -> np.ndarray:
    """For each label of `old` the label of the same answer in `new`, or -1: int32 [len(old)].

    Rows of a classifier that was trained with the order `new` are put into the order `old` by `rows[remap(old, new)]`.
    """
    labels = index(new)
    return np.asarray([labels.get(answer, -1) for answer in old], np.int32)
