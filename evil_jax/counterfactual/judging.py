"""Judges the answers to edited questions against the right answers to the questions as they were.

An answer is compared after the official VQA normaliser (text.vqa_normalise); a flip is a* != a. As an edited question
has no right answer of its own unless its meaning stayed, acc*_Q is the accuracy of a* for the ORIGINAL question, as in
Stoikou et al. (2023): it says how much the exchanged word counts, not how good the model is.
"""

import math
from collections.abc import Mapping

from evil_jax.counterfactual import _gold
from evil_jax.counterfactual._answers import Answers, Reply
from evil_jax.counterfactual.edits import Edit
from evil_jax.counterfactual.exchange import Asked
from evil_jax.counterfactual.judged import Builder, Judged
from evil_jax.data.sources import esnlive
from evil_jax.records import Example

_RIGHT = 0.5  # of the official accuracy: 2 of 10 annotators score 0.6
_LEAST = 1e-6  # probability, for log-odds


def judge(
    asked: Asked, answers: Answers, examples: Mapping[str, Example], *, mode: str = 'official', right_from=_RIGHT
) -> Judged:
    """Puts edits, answers and right answers into one table, reading the edits as a stream.

    Args:
      asked: what was asked.
      answers: to it; edits without an answer (which was allowed) are left out and counted.
      examples: by id. What is right about them: see _gold.Gold.
      mode: 'official' VQA accuracy with its quirks, 'strict' without them (metrics/vqa.py), or 'exact' equality.
      right_from: an answer counts as right from this accuracy on.

    Returns:
      A table of the edits, which holds that of the baselines.

    Raises:
      ValueError: an unknown mode, an edit of an example that is not there, no edit with both answers, or where answers
        are chosen from lists, none that is in its list.
    """
    if mode not in _gold.MODES:
        raise ValueError(f'accuracy {mode!r}, wanted one of {", ".join(_gold.MODES)}')
    _check_lists(answers, examples)
    judge = _Judge(answers, examples, mode, right_from)
    edits, left_out = judge.table(asked.edits())
    beside, _ = judge.table(asked.edits('baselines'), edits.vocabularies)
    if not len(edits):
        raise ValueError(f'{asked.folder}: no edit has an answer and an answer to its original question')
    told = dict(labels=judge.labels(), signature=judge.signature)
    baselines = beside.build(**told) if len(beside) else None
    return edits.build(**told, left_out=left_out, baselines=baselines)


def _check_lists(answers, examples):
    """Single answers off the list are wrong ones; if all are, they are called by other names there."""
    off = ''
    for example in examples.values():
        listed = example.choices or (esnlive.CLASSES if example.label in esnlive.CLASSES else ())
        reply = answers.get(example.id) if listed else None
        if reply is None:
            continue
        said, number = _gold.normalise(reply.answer, False), _gold.number(reply.answer, reply.index, listed)
        if number is not None or said in listed:
            return
        off = off or f'that of {example.id!r} is {reply.answer[:80]!r}, wanted one of {", ".join(map(repr, listed))}'
    if off:
        raise ValueError(f'no answer is one of those to choose from: {off}')


class _Judge:
    def __init__(self, answers, examples, mode, right_from):
        self._answers, self._examples, self._right_from = answers, examples, right_from
        self._mode, self._strict = mode, mode == 'strict'
        self.signature = f'accuracy:{mode}|right:>={right_from:g}|same:vqa_normalise{"_strict" * self._strict}'
        self._classes, self._unclassed = set(), False
        self._example_id = self._gold = self._reply = None

    def labels(self) -> tuple[str, ...]:
        """Classes that all right answers are, () where they are not."""
        if self._unclassed or not self._classes:
            return ()
        return esnlive.CLASSES if self._classes <= set(esnlive.CLASSES) else tuple(sorted(self._classes))

    def table(self, edits, vocabularies=None):
        """(rows of the edits that have both answers, reason -> number of the others)."""
        builder, missing = Builder(vocabularies), 0
        for offset, edit in edits:
            example, star = self._original(edit), self._answers.get(edit.id)
            if self._reply is None or star is None:
                missing += 1
                continue
            builder.add(offset=offset, **self._edit_columns(edit, example), **self._answer_columns(edit, example, star))
        return builder, {'no answer': missing} if missing else {}

    def _original(self, edit: Edit) -> Example:
        """The edit's example. Its edits follow each other, so that what is known about it is kept."""
        example = self._examples.get(edit.example_id)
        if example is None:
            raise ValueError(f'edit {edit.id!r}: there is no example {edit.example_id!r}')
        if edit.example_id != self._example_id:
            self._example_id, self._reply = edit.example_id, self._answers.get(edit.example_id)
            self._gold = _gold.Gold(example, self._mode)
            if self._gold.label is None:
                self._unclassed = True
            else:
                self._classes.add(self._gold.label)
        return example

    def _edit_columns(self, edit, example):
        serial = edit.id.removeprefix(f'{edit.example_id}#{edit.family}').removeprefix('.') or '0'
        if not serial.isdecimal():
            raise ValueError(f'edit {edit.id!r}: wanted the id {edit.example_id}#{edit.family} or one with .1, .2, ...')
        return dict(
            family=edit.family, example=edit.example_id, image=edit.image_id, serial=int(serial),
            source=edit.source_lemma or edit.source.lower(), target=edit.target_lemma or edit.target.lower(),
            source_synset=edit.source_synset, target_synset=edit.target_synset, asks=edit.asks, role=edit.role,
            question_type=example.question_type or '', answer_type=example.answer_type or '', senses=edit.sense_count,
            twin=edit.twin, negated=edit.negated, quality=edit.quality, distance=_number(edit.distance),
            similarity=_number(edit.path_similarity), expectation=edit.expectation,
        )  # fmt: skip

    def _answer_columns(self, edit, example, star):
        before, after = example.choices, edit.choices or example.choices
        said, _ = self._said(self._reply, before)
        said_star, text = self._said(star, after)
        right = self._gold.accuracy(self._reply.answer, said)
        right_star = self._gold.accuracy(star.answer, said_star)
        kept = said == said_star
        expected_right = -1
        if edit.expected is not None:
            wanted = (_gold.normalise(answer, self._strict) for answer in edit.expected)
            expected_right = int(_gold.normalise(text, self._strict) in wanted)
        met = {'INV': int(kept), 'CHANGE': int(not kept)}.get(edit.expectation, -1)
        if met == 0 and expected_right == 1:
            met = 1  # it said so before, too, wrongly; now it is right
        if met == 0 and kept and edit.asks == 'yes/no' and said in ('yes', 'no') and right < self._right_from:
            met = 1  # as it is here: of two answers the other one was right
        columns = dict(
            answer=said, answer_star=said_star, gold=self._gold.answer, right=right, right_star=right_star, kept=kept,
            transition=self._transition(kept, right, right_star), met=met, expected_right=expected_right,
            was_uncertain=_gold.uncertain(self._reply.answer, edit.asks),
            uncertain=_gold.uncertain(star.answer, edit.asks),
        )  # fmt: skip
        if self._reply.scores and star.scores:
            columns |= _moved(self._probabilities(self._reply, before), self._probabilities(star, after), said)
        return columns

    def _said(self, reply: Reply, choices) -> tuple[str, str]:
        """(an answer as it is compared: the number of a choice, or a normalised text; its text)."""
        number = None if choices is None else _gold.number(reply.answer, reply.index, choices)
        if number is not None:
            return str(number), choices[number]
        return _gold.normalise(reply.answer, self._strict), reply.answer

    def _transition(self, kept, right, right_star):
        if math.isnan(right):
            return 'kept' if kept else 'changed'
        right, right_star = right >= self._right_from, right_star >= self._right_from
        if kept:
            return 'kept right' if right else 'kept wrong'
        if right:
            return 'right->right' if right_star else 'right->wrong'
        return 'wrong->right' if right_star else 'wrong->other'

    def _probabilities(self, reply, choices):
        found = {}
        for text, probability in reply.scores.items():
            said, _ = self._said(Reply(text, None, {}, None), choices)
            found[said] = found.get(said, 0.0) + probability
        return found


def _moved(before: dict[str, float], after: dict[str, float], said: str) -> dict[str, float]:
    """How far the probabilities moved. Answers that are not listed count together as one further answer.

    Models of VQA give each answer a probability of its own; what adds up to more than 1 is scaled to 1 for the shift.
    """
    shares = lambda scores: {answer: p / max(1.0, sum(scores.values())) for answer, p in scores.items()}
    old, new = shares(before), shares(after)
    listed = sum(abs(old.get(answer, 0.0) - new.get(answer, 0.0)) for answer in old.keys() | new.keys())
    moved = {
        'shift': min(1.0, (listed + abs(sum(old.values()) - sum(new.values()))) / 2),
        'rank': min(255, 1 + sum(p > after[said] for p in after.values()) if said in after else 1 + len(after)),
    }
    if said in before and said in after:
        moved['log_odds'] = _logit(before[said]) - _logit(after[said])
    return moved


def _logit(probability: float) -> float:
    probability = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(probability / (1 - probability))


def _number(value: float | None) -> float:
    return math.nan if value is None else value
