"""The e-ViL scores (Kayser et al., 2021, section 4.3): task score s_t, explanation score s_e, overall s_o = s_t * s_e.

s_e is always over correctly answered examples (a wrong answer makes its explanation worth 0). There are several:

* `s_e_auto` = harmonic mean of `ngram` and BERTScore F1, `ngram` (the paper's NGRAMScore) = harmonic mean of METEOR,
  ROUGE-L, CIDEr and SPICE on their native scales. Absent, with a reason, unless every part was computed. What can be
  made of the parts that are there has another name, which says what is missing: `s_e_auto_without_spice`.
* `s_e_fast` = harmonic mean of ROUGE-L and CIDEr, the two parts of NGRAMScore that need no external resources. It is
  *ours*, not the paper's, and comparable with nothing but itself: it selects checkpoints where nothing better exists.
* `s_e_true` = share of explanations that are true of the scene and justify the answer, where that can be decided.

s_o is s_t times s_e, as in the paper; the published code multiplies by the share of correct answers instead, which is
another number where answers are half right (VQA).

Which answers count as correct, and what the metrics see of the texts, is a matter of the protocol (protocol.py).

Object tags in texts (VCR's `<|detN|>`) are scored as the number N, which is what decoders write.

Subsets: `all` and each group (`class=neutral`, `answer_type=yes/no`, `question_type=...`) have s_t, metrics over all
their explanations and s_e/s_o over their correctly answered ones; `correct` has the metrics over all correctly answered
examples, which are the numbers of the paper's tables. CIDEr's document frequency is that of the whole (`all`, or
`correct`) also in groups.

Intervals are 95 % percentile bootstraps over pictures (all examples of a drawn picture come along, since they are not
independent), with the same draws for every score, so correctness and explanations are resampled together. BLEU and
chrF are recomputed from resampled counts; CIDEr's document frequency stays fixed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from evil_jax import stats
from evil_jax.metrics import _explanations, _sheet, _signing, base, judging, vqa
from evil_jax.metrics import protocol as protocols
from evil_jax.records import Example, Prediction, Score

Sheet = _sheet.Sheet
Metric = str | Callable[[base.Predictions, base.References], base.Table]
Tokenise = Callable[[list[str]], tuple[list[str], str]]
DEFAULT_METRICS = ('bleu', 'rouge', 'cider', 'chrf')


def evaluate(
    predictions: Sequence[Prediction],
    examples: Sequence[Example],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    **options,
) -> dict[str, dict[str, Score]]:
    """Scores predictions against examples.

    Args:
      predictions, examples, **options: as for `sheet`.
      bootstrap: number of resamples; 0 = no intervals.
      seed: of the bootstrap.

    Returns:
      {subset: {score name: Score}}; subsets 'all', 'correct', then groups by name.

    Raises:
      ValueError: as `sheet` does.
    """
    return scores(sheet(predictions, examples, **options), bootstrap, seed)


def sheet(
    predictions: Sequence[Prediction],
    examples: Sequence[Example],
    *,
    judge: judging.Judge,
    truth: Mapping[str, bool | None] | None = None,
    metrics: Sequence[Metric] | Mapping[str, Metric] = DEFAULT_METRICS,
    protocol: str = 'evil',
    tokenise: Tokenise | None = None,
    total: int = 0,
    rule: str = 'auto',
    tags: str = 'all',
    groups: Callable[[Example], Iterable[str]] | None = None,
    open_answers: bool = True,
) -> Sheet:
    """The statistics that scores, intervals and tests are computed from.

    Args:
      predictions: one per example, in any order. Answers may be unknown, of all of them (None): there is no s_t then,
        and nothing over the correct ones. So may explanations, of some (None): those are not scored.
      examples: any order. Those without gold explanations count for s_t only.
      judge: (answer, example) -> score in [0, 1]; not asked where a prediction has an `answer_index` and the example
        has choices: their texts may repeat, so the index decides.
      truth: {id: whether the explanation is true and justifies the answer}; None as a value where undecidable.
      metrics: names of files here, or name -> function (predictions, references) -> Table for scorers that need more
        than texts; both mappings may be empty. One that raises `resources.Unavailable` is absent with that reason.
      protocol: a key of `protocol.PROTOCOLS`.
      tokenise: texts -> (their words joined by blanks, name of the tokeniser); None = ptb.py's own.
      total: number of examples of the references, where `examples` are those that every system has; 0 = all are here.
      rule: when an answer is correct: a key of `protocol.RULES`, or 'auto' = the protocol's.
      tags: which tags of references become numbers: 'all', or '0-9' as in the published code. Signatures say it where
        there are tags.
      groups: example -> names of the groups it belongs to; default `groups_of`.
      open_answers: whether the data set has open answers (VQA), not classes or choices, for examples that do not tell.

    Raises:
      ValueError: ids that only one side has, repeated ids, no examples, an unknown name, a judgement outside [0, 1], an
        index that contradicts the answer.
    """
    preset = protocols.named(protocol)
    if tags not in protocols.TAGS:
        raise ValueError(f'unknown value of tags {tags!r}. Known: {", ".join(protocols.TAGS)}')
    rows = judging.join(predictions, examples)
    rule = protocols.rule_for(rule, preset, [e for _, e in rows])
    reasons = dict.fromkeys(_sheet.PARTS, '')
    reasons['task'] = judging.why_not(rows)
    if reasons['task']:
        judged, correct = np.zeros(len(rows)), np.zeros(len(rows), bool)
    else:
        judged = judging.judge_all(rows, judge)
        correct = np.array([protocols.RULES[rule](p.answer, v, e) for v, (p, e) in zip(judged, rows)], bool)
    sign = _signing.Signer(rows, total or len(rows), preset, 'unknown' if reasons['task'] else rule, tags, judge)
    columns = []
    if not reasons['task']:
        ids = [e.id for _, e in rows]
        columns += [
            _sheet.Column.of(base.mean_table(ids, name, values, sign.own(name)), rows, 'task')
            for name, values in (('s_t', judged), ('accuracy', correct))
        ] + _vqa_columns(rows)
    tables, absent = _explanations.tables(rows, correct, metrics, preset, tags, tokenise, reasons, open_answers)
    columns += [_sheet.Column.of(table, rows, part) for table, part in tables]
    columns += _truth_column(rows, correct, truth, reasons)
    return Sheet(
        rows=rows,
        protocol=preset,
        rule=rule,
        correct=correct,
        columns=tuple(columns),
        subsets=_subsets(rows, correct, groups or groups_of),
        absent=absent,
        reasons=reasons,
        sign=sign,
    )


def scores(sheet: Sheet, bootstrap: int = 1000, seed: int = 0) -> dict[str, dict[str, Score]]:
    """`evaluate` of what `sheet` made."""
    pictures = len(sheet.pictures)
    everyone = np.ones((1, pictures))
    points = {s: _sheet.by_part([(sheet, everyone)], s) for s in sheet.subsets}
    samples = {s: [] for s in sheet.subsets}
    if bootstrap and pictures > 1:
        for counts_BP in stats.resample(pictures, bootstrap, seed):
            for s in sheet.subsets:
                samples[s].append(_sheet.by_part([(sheet, counts_BP)], s))
    ci = _interval_options(sheet, bootstrap, seed)
    return {s: _scores(sheet, s, points[s], samples[s], ci) for s in sheet.subsets}


def signatures(sheet: Sheet, subset: str, bootstrap: int = 1000, seed: int = 0) -> dict[str, str]:
    """{score name: signature} of a subset as `scores` gives them; 'main': s_* of 'all', other metrics of 'correct'."""
    everyone, ci = np.ones((1, len(sheet.pictures))), _interval_options(sheet, bootstrap, seed)
    found = {}
    for part in ('all', 'correct') if subset == _sheet.MAIN else (subset,):
        rows = _scores(sheet, part, _sheet.by_part([(sheet, everyone)], part), [], ci)
        found |= {name: row.signature for name, row in rows.items() if name not in found or not name.startswith('s_')}
    return found


def _interval_options(sheet, bootstrap, seed):
    """What signatures say of intervals."""
    # A file may not tell the pictures: each example then has its own id for one.
    unit = 'image' if any(e.image_id != e.id for _, e in sheet.rows) else 'example'
    return {'bs': bootstrap, 'seed': seed, 'cluster': unit} if bootstrap else {}


def groups_of(example: Example) -> list[str]:
    """'class=...' for a gold class that is not an index into choices, 'answer_type=...' and 'question_type=...'."""
    names = []
    if example.label is not None and example.choices is None:
        names.append(f'class={example.label}')
    if example.answer_type is not None:
        names.append(f'answer_type={example.answer_type}')
    if example.question_type is not None:
        names.append(f'question_type={example.question_type}')
    return names


def accuracy_table(sheet: Sheet, kind: str = '') -> list[dict]:
    """Accuracy by group, rows {'group', 'n', 'correct', 'accuracy', 'mean'}: `mean` is the mean (soft) task score.

    The groups come first, then 'all', then 'macro': the plain average of the groups' accuracies and means (only where
    each example is in exactly one group; otherwise it is left out). Without answers there are no rows.

    Args:
      sheet: of the predictions.
      kind: 'class', 'answer_type', ...: groups of that kind only.
    """
    if sheet.reasons['task']:
        return []
    judged = next(c for c in sheet.columns if c.key == ('task', 's_t')).table.statistics[:, 0]
    groups = {s: m for s, m in sheet.subsets.items() if '=' in s and s.startswith(f'{kind}=' if kind else '')}

    def row(name, inside):
        n, right = int(inside.sum()), int((inside & sheet.correct).sum())
        return dict(group=name, n=n, correct=right, accuracy=right / n, mean=float(judged[inside].mean()))

    table = [row(name, inside) for name, inside in groups.items()]
    macro = []
    whole = sheet.subsets['all']
    if table and (np.sum(list(groups.values()), axis=0) == 1).all():
        macro = [row('macro', whole) | {k: sum(r[k] for r in table) / len(table) for k in ('accuracy', 'mean')}]
    return table + [row('all', whole)] + macro


def _subsets(rows, correct, groups):
    """Masks over the rows: 'all', 'correct', then groups in alphabetical order."""
    found: dict[str, np.ndarray] = {}
    for i, (_, example) in enumerate(rows):
        for name in groups(example):
            found.setdefault(name, np.zeros(len(rows), bool))[i] = True
    return {'all': np.ones(len(rows), bool), 'correct': correct} | {name: found[name] for name in sorted(found)}


def _vqa_columns(rows):
    """Official VQA accuracy and soft score, where every example has what they need."""
    columns = []
    answers = {p.id: p.answer for p, _ in rows}
    if all(e.annotations for _, e in rows):
        columns.append(vqa.accuracy_table(answers, {e.id: e.annotations for _, e in rows}))
    if all(e.answers is not None for _, e in rows):
        columns.append(vqa.soft_table(answers, {e.id: e.answers for _, e in rows}))
    return [_sheet.Column.of(table, rows, 'task') for table in columns]


def _truth_column(rows, correct, truth, reasons):
    """The column of s_e_true over correctly answered examples; `reasons` gets why there is none."""
    ids = [e.id for i, (_, e) in enumerate(rows) if correct[i]]
    unknown = [i for i in ids if truth is not None and truth.get(i) is None]
    if truth is None:
        reasons['true'] = 'no truth values were given (they exist for the built-in world only)'
    elif not any((p.explanation or '').strip() for p, _ in rows):
        reasons['true'] = 'no prediction has an explanation'
    elif not ids:
        reasons['true'] = reasons['task'] or 'no example was answered correctly'
    elif unknown:
        reasons['true'] = f'not known whether the explanation is true for {base.some(unknown, 3)}'
    if reasons['true']:
        return []
    table = base.mean_table(ids, 's_e_true', np.array([bool(truth[i]) for i in ids], np.float64), '')
    return [_sheet.Column.of(table, rows, 'true')]


def _scores(sheet, subset, point, samples, ci):
    """The Scores of one subset, in the order of the report."""
    part = 'correct' if subset == 'correct' else 'all'
    owner = {(c.part, name): c for c in sheet.columns for name in c.table.signatures}
    # What is made of the parts that are there is offered only where there are explanations to score.
    offered = lambda where, of, start: [n for n in point[where] if n.startswith(start) and not sheet.reasons[of]]
    derived = dict.fromkeys(['s_e_auto', *offered('true', 'correct', 's_e_'), 's_e_fast', 's_e_true'])
    shown: list[tuple[str, str]] = []  # (part, name)
    if subset != 'correct':
        shown += [('task', name) for where, name in owner if where == 'task'] or [('task', 's_t')]
    shown += [(part, name) for where, name in owner if where == part]
    shown += [(part, name) for name in sheet.absent]
    shown += [(part, name) for name in dict.fromkeys(['ngram', *offered(part, part, 'ngram')])]
    for name in derived:
        shown.append(('true', name))
        if subset != 'correct':
            shown.append(('true', name.replace('s_e_', 's_o_')))
    result = {}
    for where, name in shown:
        column = owner.get((where, name))
        present = _scored_rows(sheet, where, name, column, subset)
        of = 'correct' if where == 'true' else part
        options = sheet.sign.task if where == 'task' else sheet.sign.explained | {'set': of}
        options = options | ({'subset': subset} if '=' in subset else {})
        parts = {n: c.table.signatures[n] for (p, n), c in owner.items() if p == of}
        found = point[where].get(name)
        defined = found is not None and not np.isnan(found[0])
        result[name] = Score(
            value=float(found[0]) if defined else None,
            per_example=_per_example(column, name, present) if defined and column is not None else None,
            n=int(present.sum()),
            signature=sheet.sign.full(name, column.table.signatures[name] if column else '', options | ci, parts),
            reason=None if defined else _reason(sheet, name, where, of, point, present),
            ci95=stats.interval(np.concatenate([s[where][name] for s in samples])) if defined and samples else None,
        )
    return result


def _scored_rows(sheet, where, name, column, subset):
    """Mask of the rows that a score of a subset is over; for a combination, those of its explanation metrics."""
    if column is None:
        part = where if where != 'true' else 'true' if name.endswith('_true') else 'correct'
        column = next((c for c in sheet.columns if c.part == part), None)
    mask = sheet.subsets[subset]
    mask = mask & sheet.correct if where in ('correct', 'true') else mask
    return mask if column is None else mask & column.present


def _per_example(column, name, present):
    rows = np.cumsum(column.present) - 1  # row of the spread-out column -> row of the table (both in order of ids)
    at = rows[np.flatnonzero(present)]
    return {column.table.ids[i]: float(column.table.sentence[name][i]) for i in at}


def _reason(sheet, name, where, of, point, present):
    """Why a score has no value."""
    reasons = sheet.reasons
    if where == 'task':
        return reasons['task'] or 'no example of this subset can be scored'
    if name in sheet.absent:
        return sheet.absent[name]
    if name.endswith('_true'):
        return reasons['true'] or 'no correctly answered example in this subset'
    if reasons[of]:
        return reasons[of]
    missing = []
    if name in ('s_e_fast', 's_o_fast'):
        missing = [n for n in _sheet.FAST if n not in point[of]]
    elif name in ('ngram', 's_e_auto', 's_o_auto'):
        missing = _sheet.lacking(point[of], with_bertscore=name != 'ngram')
    if missing:
        return f'needs {", ".join(missing)}, not computed'
    if not present.any():
        return 'no example of this subset can be scored'
    return 'undefined: a part is negative or not a number'
