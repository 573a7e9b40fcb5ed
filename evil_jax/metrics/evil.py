"""The e-ViL scores (Kayser et al., 2021, section 4.3): task score s_t, explanation score s_e, overall s_o = s_t * s_e.

s_e is always over correctly answered examples (a wrong answer makes its explanation worth 0). There are several:

* `s_e_auto` = harmonic mean of `ngram` and BERTScore F1, `ngram` (the paper's NGRAMScore) = harmonic mean of METEOR,
  ROUGE-L, CIDEr and SPICE on their native scales. Absent, with a reason, unless every part was computed.
* `s_e_fast` = harmonic mean of ROUGE-L and CIDEr, the two parts of NGRAMScore that need no external resources. It is
  *ours*, not the paper's, and comparable with nothing but itself: it selects checkpoints where nothing better exists.
* `s_e_true` = share of explanations that are true of the scene and justify the answer, where that can be decided.

Which answers count as correct is a named rule: `top` (no acceptable answer has a higher soft score), `nonzero` (any
soft score above 0: the published code's rule for VQA-X) or `equality` (full score: classes and choices).

Two protocols: `evil`, raw texts split at blanks, as the published code scores them; `coco`, words without punctuation
in lower case (ptb.py), as captions are scored and as most systems after e-UG report.

Object tags in texts (VCR's `<|detN|>`) are scored as the number N, which is what decoders write.

Subsets: `all` and each group (`class=neutral`, `answer_type=yes/no`) have s_t, metrics over all their explanations and
s_e/s_o over their correctly answered ones; `correct` has the metrics over all correctly answered examples, which are
the numbers of the paper's tables. CIDEr's document frequency is that of the whole (`all`, or `correct`) also in groups.

Intervals are 95 % percentile bootstraps over pictures (all examples of a drawn picture come along, since they are not
independent), with the same draws for every score, so correctness and explanations are resampled together. BLEU and
chrF are recomputed from resampled counts; CIDEr's document frequency stays fixed.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from evil_jax import lookup, stats, text
from evil_jax.metrics import base, ptb, vqa
from evil_jax.records import Example, Prediction, Score

PROTOCOLS = ('evil', 'coco')
# (judged [N], best soft score of each example [N]) -> correct [N].
RULES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    'top': lambda judged, best: (judged > 0) & (judged >= best),
    'nonzero': lambda judged, best: judged > 0,
    'equality': lambda judged, best: judged >= 1,
}
TAGS = ('all', '0-9')
SPLIT_AT_BLANKS = ('bleu', 'rouge', 'cider')  # metrics for which the protocols differ; chrF knows no words
NGRAM = ('meteor', 'rouge_l', 'cider', 'spice')
FAST = ('rouge_l', 'cider')
BERTSCORE = 'bertscore'  # the F1 of metrics/bertscore

Judge = Callable[[str, Example], float]
Metric = str | Callable[[base.Predictions, base.References], base.Table]


def evaluate(
    predictions: Sequence[Prediction],
    examples: Sequence[Example],
    *,
    judge: Judge,
    truth: Mapping[str, bool | None] | None = None,
    metrics: Sequence[Metric] = ('bleu', 'rouge', 'cider', 'chrf'),
    bootstrap: int = 1000,
    seed: int = 0,
    protocol: str = 'evil',
    partial: bool = False,
    rule: str = 'auto',
    tags: str = 'all',
    groups: Callable[[Example], Iterable[str]] | None = None,
) -> dict[str, dict[str, Score]]:
    """Scores predictions against examples.

    Args:
      predictions: one per example, in any order.
      examples: any order. Those without gold explanations count for s_t only.
      judge: (answer, example) -> score in [0, 1]; not asked where a prediction has an `answer_index` and the example
        has choices: their texts may repeat, so the index decides.
      truth: {id: whether the explanation is true and justifies the answer}; None as a value where undecidable.
      metrics: names of files here, or functions (predictions, references) -> Table for scorers that need a model;
        both mappings may be empty.
      bootstrap: number of resamples; 0 = no intervals.
      seed: of the bootstrap.
      protocol: 'evil': raw texts, split at blanks; 'coco': texts are tokenised first, whatever the metric.
      partial: score the ids that both sides have, instead of refusing.
      rule: when an answer is correct: 'top', 'nonzero', 'equality', or 'auto' = top if examples have soft `answers`,
        else equality.
      tags: which tags of references become numbers: 'all', or '0-9' as in the published code. Signatures say it where
        there are tags.
      groups: example -> names of the groups it belongs to; default `groups_of`.

    Returns:
      {subset: {score name: Score}}; subsets 'all', 'correct', then groups by name.

    Raises:
      ValueError: ids that only one side has, repeated ids, no examples, an unknown name, a judgement outside [0, 1], an
        index that contradicts the answer.
    """
    for what, name, known in (('protocol', protocol, PROTOCOLS), ('value of tags', tags, TAGS)):
        if name not in known:
            raise ValueError(f'unknown {what} {name!r}.{lookup.nearest(name, known)} Known: {", ".join(known)}')
    rows = _join(predictions, examples, partial)
    judged = _judge(rows, judge)
    rule = _rule(rule, rows)
    correct = _correct(rule, judged, rows)
    conditions = sorted({p.condition for p, _ in rows})
    common = {'protocol': protocol, 'correct': rule} | ({'partial': f'{len(rows)}/{len(examples)}'} if partial else {})
    if by := chosen_by(rows):
        common['choice'] = by
    explained = common | {'cond': '+'.join(conditions)}
    if any('<|det' in line for p, e in rows for line in (p.explanation, *e.explanations)):
        explained['det'] = tags

    scored, reasons = _tables(rows, correct, metrics, protocol, tags)
    columns = [
        _Column.of(base.mean_table([e.id for _, e in rows], 's_t', judged, _sign('s_t', common, judge)), rows, 'task'),
        _Column.of(
            base.mean_table([e.id for _, e in rows], 'accuracy', correct, _sign('accuracy', common, judge)),
            rows,
            'task',
        ),
        *_vqa_columns(rows),
        *[_Column.of(table, rows, part) for table, part in scored],
    ]
    true_column, reasons['s_e_true'] = _truth_column(rows, correct, truth)
    columns += true_column
    subsets = _subsets(rows, correct, groups or groups_of)

    everyone = np.ones((1, len(rows)))
    points = {s: _values(everyone, columns, inside, correct) for s, inside in subsets.items()}
    samples = {s: [] for s in subsets}
    pictures = [e.image_id for _, e in rows]
    if bootstrap and len(set(pictures)) > 1:
        for counts in stats.resample(len(rows), bootstrap, seed, pictures):
            for s, inside in subsets.items():
                samples[s].append(_values(counts, columns, inside, correct))
    ci = {'bs': bootstrap, 'seed': seed, 'cluster': 'image'} if bootstrap else {}
    return {
        s: _scores(s, points[s], samples[s], columns, subsets[s], correct, reasons, common | ci, explained | ci, judge)
        for s in subsets
    }


def groups_of(example: Example) -> list[str]:
    """'class=...' for a gold class that is not an index into choices, 'answer_type=...' for VQA."""
    names = []
    if example.label is not None and example.choices is None:
        names.append(f'class={example.label}')
    if example.answer_type is not None:
        names.append(f'answer_type={example.answer_type}')
    return names


def accuracy_table(
    predictions: Sequence[Prediction],
    examples: Sequence[Example],
    *,
    judge: Judge,
    rule: str = 'auto',
    groups: Callable[[Example], Iterable[str]] | None = None,
    partial: bool = False,
) -> list[dict]:
    """Accuracy by group, rows {'group', 'n', 'correct', 'accuracy', 'mean'}: `mean` is the mean (soft) task score.

    The groups come first, then 'all', then 'macro': the plain average of the groups' accuracies and means (only where
    each example is in exactly one group; otherwise it is left out).
    """
    rows = _join(predictions, examples, partial)
    judged = _judge(rows, judge)
    correct = _correct(_rule(rule, rows), judged, rows)
    subsets = _subsets(rows, correct, groups or groups_of)
    whole = subsets.pop('all')
    del subsets['correct']

    def row(name, inside):
        n, right = int(inside.sum()), int((inside & correct).sum())
        return dict(group=name, n=n, correct=right, accuracy=right / n, mean=float(judged[inside].mean()))

    table = [row(name, inside) for name, inside in subsets.items()]
    macro = []
    if table and (np.sum(list(subsets.values()), axis=0) == 1).all():
        macro = [row('macro', whole) | {k: sum(r[k] for r in table) / len(table) for k in ('accuracy', 'mean')}]
    return table + [row('all', whole)] + macro


@dataclasses.dataclass(frozen=True)
class _Column:
    """A table spread over all N rows: rows that it lacks are masked out.

    part: 'task' (s_t and the like), 'all' or 'correct' (explanation scores of that set), 'true'.
    """

    table: base.Table
    statistics: np.ndarray
    present: np.ndarray
    part: str

    @classmethod
    def of(cls, table, rows, part):
        where = {example.id: i for i, (_, example) in enumerate(rows)}
        at = [where[i] for i in table.ids]
        statistics = np.zeros((len(rows), table.statistics.shape[1]))
        statistics[at] = table.statistics
        present = np.zeros(len(rows), bool)
        present[at] = True
        return cls(table, statistics, present, part)

    def corpus(self, counts_BN, inside):
        """Corpus scores [B] of the rows inside a subset, for each row of counts."""
        chosen = np.flatnonzero(self.present & inside)
        weights = counts_BN[:, chosen]
        return self.table.corpus(weights @ self.statistics[chosen], weights.sum(1))


def _join(predictions, examples, partial):
    """(prediction, example) pairs in the order of their ids."""
    by_id = {}
    for records, what in ((predictions, 'predictions'), (examples, 'examples')):
        by_id[what] = {r.id: r for r in records}
        if len(by_id[what]) != len(records):
            seen, twice = set(), set()
            for r in records:
                (twice if r.id in seen else seen).add(r.id)
            raise ValueError(f'repeated in the {what}: {base.some(twice)}')
    left, right = by_id['predictions'], by_id['examples']
    if not partial:
        base.same_ids(left, right, 'prediction', 'example')
    ids = sorted(left.keys() & right.keys())
    if not ids:
        raise ValueError(f'nothing to score: {len(left)} predictions and {len(right)} examples share no id')
    return [(left[i], right[i]) for i in ids]


def judge_one(prediction: Prediction, example: Example, judge: Judge) -> float:
    """How right a prediction is; its index decides where the example has choices, else the words of the answer.

    Raises:
      ValueError: as `check_index` and `judge` do.
    """
    check_index(prediction, example)
    if prediction.answer_index is not None and example.choices is not None and isinstance(example.label, int):
        return float(prediction.answer_index == example.label)
    return judge(prediction.answer, example)


def chosen_by(rows: Sequence[tuple[Prediction, Example]]) -> str:
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


def _judge(rows, judge):
    judged = np.array([judge_one(p, e, judge) for p, e in rows], np.float64)
    bad = np.flatnonzero(~((judged >= 0) & (judged <= 1)))
    if bad.size:
        prediction = rows[bad[0]][0]
        raise ValueError(f'{prediction.id!r}: answer {prediction.answer!r} was judged {judged[bad[0]]}, wanted 0..1')
    return judged


def _rule(rule, rows):
    if rule == 'auto':
        return 'top' if any(e.answers is not None for _, e in rows) else 'equality'
    if rule not in RULES:
        raise ValueError(f'unknown rule {rule!r}.{lookup.nearest(rule, RULES)} Known: auto, {", ".join(RULES)}')
    return rule


def _correct(rule, judged, rows):
    best = np.array([max(e.answers.values(), default=1.0) if e.answers is not None else 1.0 for _, e in rows])
    return RULES[rule](judged, best)


def _sign(name, options, judge):
    return base.signature(name, judge=getattr(judge, '__qualname__', type(judge).__name__), **options)


def _subsets(rows, correct, groups):
    """Masks over the rows: 'all', 'correct', then groups in alphabetical order."""
    found: dict[str, np.ndarray] = {}
    for i, (_, example) in enumerate(rows):
        for name in groups(example):
            found.setdefault(name, np.zeros(len(rows), bool))[i] = True
    return {'all': np.ones(len(rows), bool), 'correct': correct} | {name: found[name] for name in sorted(found)}


def _tables(rows, correct, metrics, protocol, tags):
    """Tables over all explained examples and over the correct ones among them; why scores may be missing."""
    reasons = {'all': None, 'correct': None}
    chosen = [i for i, (_, e) in enumerate(rows) if e.explanations]
    if not chosen:
        reasons['all'] = reasons['correct'] = 'no example has a gold explanation'
    elif not any(p.explanation.strip() for p, _ in rows):
        reasons['all'] = reasons['correct'] = 'no prediction has an explanation'
    elif not correct[chosen].any():
        reasons['correct'] = 'no example with a gold explanation was answered correctly'
    if reasons['all']:
        chosen = []
    words = (lambda line: ' '.join(ptb.words(line))) if protocol == 'coco' else (lambda line: line)
    ids = [rows[i][1].id for i in chosen]
    predictions = {i: words(text.tags_to_numbers(rows[n][0].explanation)) for i, n in zip(ids, chosen)}
    references = {
        i: [words(text.tags_to_numbers(line, one_digit=tags == '0-9')) for line in rows[n][1].explanations]
        for i, n in zip(ids, chosen)
    }
    right = {rows[i][1].id for i in chosen if correct[i]}
    result = []
    for metric in metrics:
        table = _metric(metric)(predictions, references)
        picked = table.take(np.flatnonzero([i in right for i in table.ids]))
        result += [(_tokenised(table, protocol), 'all'), (_tokenised(picked, protocol), 'correct')]
    return result, reasons


def _tokenised(table, protocol):
    """A metric that got words joined by blanks knows of blanks only: its signature has to tell of the words."""
    if protocol == 'evil':
        return table
    told = lambda signature: re.sub(r'\|tok:[^|]*', f'|tok:{ptb.NAME}', signature.replace('|case:mixed', '|case:lower'))
    return dataclasses.replace(table, signatures={name: told(line) for name, line in table.signatures.items()})


def _metric(metric):
    if not isinstance(metric, str):
        return metric
    module = lookup.module('metrics', metric)
    if not hasattr(module, 'table'):
        raise ValueError(f'{metric!r} is not a metric of explanations')
    return module.table


def _vqa_columns(rows):
    """Official VQA accuracy and soft score, where every example has what they need."""
    columns = []
    answers = {p.id: p.answer for p, _ in rows}
    if all(e.annotations for _, e in rows):
        columns.append(_Column.of(vqa.accuracy_table(answers, {e.id: e.annotations for _, e in rows}), rows, 'task'))
    if all(e.answers is not None for _, e in rows):
        columns.append(_Column.of(vqa.soft_table(answers, {e.id: e.answers for _, e in rows}), rows, 'task'))
    return columns


def _truth_column(rows, correct, truth):
    """The column of s_e_true over correctly answered examples, or why there is none."""
    if truth is None:
        return [], 'no truth values were given (they exist for the built-in world only)'
    if not any(p.explanation.strip() for p, _ in rows):
        return [], 'no prediction has an explanation'
    ids = [e.id for i, (_, e) in enumerate(rows) if correct[i]]
    if not ids:
        return [], 'no example was answered correctly'
    unknown = [i for i in ids if truth.get(i) is None]
    if unknown:
        return [], f'not known whether the explanation is true for {base.some(unknown, 3)}'
    table = base.mean_table(ids, 's_e_true', np.array([bool(truth[i]) for i in ids], np.float64), '')
    return [_Column.of(table, rows, 'true')], None


def _harmonic(values, names):
    """Harmonic mean over the named parts; NaN where one is missing, undefined or negative."""
    if any(name not in values for name in names):
        return None
    parts = [np.asarray(values[name], np.float64) for name in names]
    negative = np.any([p < 0 for p in parts], axis=0)
    return np.where(negative, np.nan, stats.harmonic_mean(*[np.maximum(p, 0) for p in parts]))


def _values(counts_BN, columns, inside, correct):
    """{part: {name: [B]}} of one subset. 'all' = over all its explanations, 'correct' = over its correct ones."""
    values = {'task': {}, 'all': {}, 'correct': {}, 'true': {}}
    for column in columns:
        chosen = inside & correct if column.part in ('correct', 'true') else inside
        values[column.part] |= column.corpus(counts_BN, chosen)
    for part in ('all', 'correct'):
        _add(values[part], 'ngram', _harmonic(values[part], NGRAM))
    right = values['correct']
    derived = values['true']
    _add(derived, 's_e_auto', _harmonic(right, ('ngram', BERTSCORE)))
    _add(derived, 's_e_fast', _harmonic(right, FAST))
    for kind in ('auto', 'fast', 'true'):
        if f's_e_{kind}' in derived:
            derived[f's_o_{kind}'] = values['task']['s_t'] * derived[f's_e_{kind}']
    return values


def _add(values, name, value):
    if value is not None:
        values[name] = value


def _scores(subset, point, samples, columns, inside, correct, reasons, common, explained, judge):
    """The Scores of one subset, in the order of the report."""
    part = 'correct' if subset == 'correct' else 'all'
    shown: list[tuple[str, str]] = []  # (part, name)
    if subset != 'correct':
        shown += [('task', name) for name in point['task']]
    shown += [(part, name) for c in columns if c.part == part for name in c.table.signatures]
    shown.append((part, 'ngram'))
    for kind in ('auto', 'fast', 'true'):
        shown.append(('true', f's_e_{kind}'))
        if subset != 'correct':
            shown.append(('true', f's_o_{kind}'))
    owner = {(c.part, name): c for c in columns for name in c.table.signatures}
    result = {}
    for where, name in shown:
        column = owner.get((where, name))
        present = _scored_rows(where, name, column, columns, inside, correct)
        options = common if where == 'task' else explained | {'set': 'correct' if where == 'true' else part}
        found = point[where].get(name)
        defined = found is not None and not np.isnan(found[0])
        result[name] = Score(
            value=float(found[0]) if defined else None,
            per_example=_per_example(column, name, present) if defined and column is not None else None,
            n=int(present.sum()),
            signature=_signature(name, column, options, judge),
            reason=None if defined else _reason(name, where, part, point, reasons, present),
            ci95=stats.interval(np.concatenate([s[where][name] for s in samples])) if defined and samples else None,
        )
    return result


def _scored_rows(where, name, column, columns, inside, correct):
    """Mask of the rows that a score of a subset is over; for a combination, those of its explanation metrics."""
    if column is None:
        part = where if where != 'true' else 'true' if name.endswith('_true') else 'correct'
        column = next((c for c in columns if c.part == part), None)
    chosen = inside & correct if where in ('correct', 'true') else inside
    return chosen if column is None else chosen & column.present


def _per_example(column, name, present):
    rows = np.cumsum(column.present) - 1  # row of the spread-out column -> row of the table (both in order of ids)
    at = rows[np.flatnonzero(present)]
    return {column.table.ids[i]: float(column.table.sentence[name][i]) for i in at}


_PARTS = {
    'ngram': '+'.join(NGRAM),
    's_e_auto': f'ngram+{BERTSCORE}',
    's_e_fast': '+'.join(FAST),
    's_o_auto': 's_t*s_e_auto',
    's_o_fast': 's_t*s_e_fast',
    's_o_true': 's_t*s_e_true',
    's_e_true': 'share of true explanations',
}


def _signature(name, column, options, judge):
    if column is not None and column.table.signatures[name]:
        own, _, version = column.table.signatures[name].partition('|version:')
        parts = [own] + [f'{k}:{v}' for k, v in options.items() if f'|{k}:' not in own]
        return '|'.join(parts) + f'|version:{version}'
    return _sign(name, {'is': _PARTS[name]} | options, judge)


def _reason(name, where, part, point, reasons, present):
    """Why a score has no value."""
    if name.endswith('_true'):
        return reasons['s_e_true'] or 'no correctly answered example in this subset'
    of = 'correct' if where == 'true' else part
    if reasons[of]:
        return reasons[of]
    wanted = {'ngram': NGRAM, 's_e_fast': FAST, 's_o_fast': FAST}.get(name)
    if name in ('s_e_auto', 's_o_auto'):
        wanted = (*NGRAM, BERTSCORE)
    missing = [w for w in wanted or () if w not in point[of]]
    if missing:
        return f'needs {", ".join(missing)}, not computed'
    if not present.any():
        return 'no example of this subset can be scored'
    return 'undefined: a part is negative or not a number'
