"""Which answers are right: by the index among choices, by the words of the answer, by soft scores."""

from collections.abc import Callable, Sequence

import numpy as np

from evil_jax.metrics import base
from evil_jax.records import Example, Prediction

Judge = Callable[[str, Example], float]
Rows = Sequence[tuple[Prediction, Example]]


def join(predictions: Sequence[Prediction], examples: Sequence[Example]) -> Rows:
    """(prediction, example) pairs in the order of their ids.

    Raises:
      ValueError: ids that only one side has, repeated ids, or nothing at all.
    """
    by_id = {}
    for records, what in ((predictions, 'predictions'), (examples, 'examples')):
        by_id[what] = {r.id: r for r in records}
        if len(by_id[what]) != len(records):
            seen, twice = set(), set()
            for r in records:
                (twice if r.id in seen else seen).add(r.id)
            raise ValueError(f'repeated in the {what}: {base.some(twice)}')
    left, right = by_id['predictions'], by_id['examples']
    base.same_ids(left, right, 'prediction', 'example')
    if not left:
        raise ValueError('nothing to score: no predictions and no examples')
    return [(left[i], right[i]) for i in sorted(left)]


def judge_one(prediction: Prediction, example: Example, judge: Judge) -> float:
    """How right a prediction is; its index decides where the example has choices, else the words of the answer.

    Raises:
      ValueError: as `check_index` and `judge` do.
    """
    check_index(prediction, example)
    if prediction.answer_index is not None and example.choices is not None and isinstance(example.label, int):
        return float(prediction.answer_index == example.label)
    return judge(prediction.answer, example)


def judge_all(rows: Rows, judge: Judge) -> np.ndarray:
    """How right each prediction is, [N] in [0, 1]. Raises ValueError naming an id whose judgement is none."""
    judged = np.array([judge_one(p, e, judge) for p, e in rows], np.float64)
    bad = np.flatnonzero(~((judged >= 0) & (judged <= 1)))
    if bad.size:
        prediction = rows[bad[0]][0]
        raise ValueError(f'{prediction.id!r}: answer {prediction.answer!r} was judged {judged[bad[0]]}, wanted 0..1')
    return judged


def why_not(rows: Rows) -> str:
    """Why answers cannot be judged, or ''.

    Raises:
      ValueError: some predictions have an answer and some have none, or some examples a gold answer and some none.
    """
    for what, known in (
        ('predictions have no answer', [p.answer is not None for p, _ in rows]),
        ('examples have no gold answer', [e.label is not None or e.answers is not None for _, e in rows]),
    ):
        if not any(known):
            return what
        if not all(known):
            without = [rows[i][1].id for i in np.flatnonzero(~np.array(known))]
            raise ValueError(f'{len(without)} of {len(rows)} {what}: {base.some(without)}')
    return ''


def chosen_by(rows: Rows) -> str:
    """What tells which choice was meant: 'index', 'words' or 'mixed'; '' where no example has choices.

    By words, a wrong choice that reads like the right one counts as right: such scores are not comparable with others.
    """
    found = {'words' if p.answer_index is None else 'index' for p, e in rows if e.choices is not None}
    return 'mixed' if len(found) > 1 else ''.join(found)


def check_index(prediction: Prediction, example: Example) -> None:
    """Raises ValueError if a prediction's index is none of the example's choices, or one that reads otherwise."""
    index, choices = prediction.answer_index, example.choices
    if index is None or choices is None:
        return
    if not 0 <= index < len(choices):
        raise ValueError(f'{prediction.id!r}: answer_index is {index}, but there are {len(choices)} choices, from 0')
    if prediction.answer != choices[index]:
        raise ValueError(
            f'{prediction.id!r}: the answer is {prediction.answer!r}, but choice {index}, its answer_index, is '
            f'{choices[index]!r}'
        )
