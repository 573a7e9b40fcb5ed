"""report.html: what a model scored, beside what, and a browser of its answers and explanations."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax import pages, records
from evil_jax.pages import chart, leaderboard, metric_names, pictures

# How an S_E was measured, best evidence first: the first one that has a value makes the headline.
_MEASURED = {
    'human': 'mean rating of the explanation by people',
    'true': 'share of explanations that are true of the scene and justify the answer, checked by the built-in world',
    'auto': 'likeness to the reference explanations, a rough guide: METEOR, ROUGE-L, CIDEr, SPICE and BERTScore joined '
    'as in the paper; it may exceed 1',
    'fast': 'likeness to the reference explanations, a rough guide: harmonic mean of ROUGE-L and CIDEr, comparable '
    'with nothing but itself; it may exceed 1',
}
_PARTLY = (
    "likeness to the reference explanations, a rough guide: those parts of the paper's score that could be computed; "
    'comparable with the same score only; it may exceed 1'
)
_SCORE = re.compile(r's_t|s_[eo](_\w+)?')


def write_report(
    path: str | os.PathLike,
    *,
    title: str,
    scores: Mapping[str, Mapping[str, Mapping[str, Any]]],
    baselines: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]],
    curves: Sequence[Mapping[str, Any]],
    examples: Sequence[Mapping[str, Any]],
    provenance: Mapping[str, Any],
    protocol: str = '',
    protocols: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]] | None = None,
    groups: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    sweeps: Sequence[Any] = (),
    total: int | None = None,
    comparison: Mapping[str, Any] | None = None,
) -> None:
    """Writes one self-contained page, atomically.

    Args:
      path: of the page.
      title: name of the model or run.
      scores: `{subset: {metric: {'value', 'n', 'signature', 'ci95'?, 'reason'?}}}`, one protocol of scores.json.
      baselines: the same of other systems, by label.
      curves: rows of metrics.jsonl, each with a 'step'; see `charts`.
      examples: rows with 'id', 'text', 'answer', and as far as known 'picture' (path), 'size' (width, height) that
        'boxes' [x1, y1, x2, y2] count in, 'classes', 'gold' ({answer: score} or a list), 'answer_scores', 'correct'
        (0 to 1), 'problem' (why there is no picture), 'explanation', 'references', 'true' (of the explanation),
        'condition', 'choices' (rows with 'text', 'gold', 'predicted'); of several systems also 'system' (whose answer
        that is) and 'others' (rows with 'system', 'answer', 'explanation' and, as far as known, 'correct', 'true').
        All text is untrusted.
      provenance: what the page was made from, by name.
      protocol: name of the protocol of `scores`.
      protocols: the same scores under other protocols, by name.
      groups: accuracy by group, for each kind of group: rows of `metrics.evil.accuracy_table`.
      sweeps: tables of `pages.sweep.summary`.
      total: number of examples scored, where `examples` is a selection.
      comparison: several systems beside each other, as `pages.leaderboard` wants it.
    """
    browser = _browser(examples)
    compared = None
    if comparison is not None:
        browser['scatter'] = leaderboard.data(comparison)
        compared = leaderboard.section(comparison) | {'note': browser['scatter']['note']}
    html = pages.render(
        'report',
        parts=('_sort', '_comparison') if comparison is not None else (),
        title=title,
        headline=_headline(scores),
        protocol=protocol,
        systems=_systems(title, scores, baselines),
        beside=_beside(title, scores, baselines),
        sweeps=sweeps,
        table=_table(scores, protocol, protocols or {}),
        groups=_groups(scores, groups or {}),
        details=[row for name, rows in {protocol: scores, **(protocols or {})}.items() for row in _details(rows, name)],
        charts=charts(curves),
        data=pages.script_json(browser),
        comparison=compared,
        systems_shown=any(example.get('others') for example in examples),
        shown=len(examples),
        total=len(examples) if total is None else total,
        provenance={name: value for name, value in provenance.items() if value not in (None, '')},
    )
    records.atomic_write(path, html)


def best(scores: Mapping[str, Mapping[str, Mapping[str, Any]]], metric: str) -> Mapping[str, Any] | None:
    """A metric of all examples; explanation metrics, which may exist for right answers only, of those."""
    for subset in ('all', 'correct'):
        row = scores.get(subset, {}).get(metric)
        if row is not None and row['value'] is not None:
            return row
    return scores.get('all', {}).get(metric) or scores.get('correct', {}).get(metric)


def charts(curves: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Line charts of a training: losses, and the scores on the development split.

    A row is `{'step', 'split', name: value, ...}`. A name with 'loss' in it is a loss; s_t, s_e*, s_o* are scores.
    Everything else (rates, norms), and what is not a number, stays in metrics.jsonl.
    """
    losses, scores = {}, {}
    for row in curves:
        step, split = row.get('step'), row.get('split', '')
        if not isinstance(step, int | float):
            continue
        for name, value in row.items():
            if name == 'step' or not isinstance(value, int | float):
                continue
            if 'loss' in name:
                losses.setdefault(f'{split} {name.replace("_", " ")}'.strip(), []).append((step, value))
            elif _SCORE.fullmatch(name):
                scores.setdefault(metric_names.name(name), []).append((step, value))
    drawn = (
        chart.line_chart('Loss', losses),
        chart.line_chart(
            'Scores on the development split',
            scores,
            unit_range=all(0 <= value <= 1 for points in scores.values() for _, value in points),
        ),
    )
    return [c for c in drawn if c]


def kind_of_explanation_score(scores) -> str | None:
    """'human', 'true', 'auto', 'auto_without_...' or 'fast': the best evidence these scores have about explanations."""
    partly = [m.removeprefix('s_e_') for s in scores.values() for m in s if m.startswith('s_e_auto_without_')]
    for kind in ('human', 'true', 'auto', *dict.fromkeys(partly), 'fast'):
        row = best(scores, f's_e_{kind}')
        if row is not None and row['value'] is not None:
            return kind
    return None


def group_metrics(scores) -> list[str]:
    """What stands beside the accuracy of a group: S_T, which differs from it for soft answers, and the best S_E."""
    kind = kind_of_explanation_score(scores)
    return ['s_t'] + ([f's_e_{kind}'] if kind else [])


def group_scores(scores, row) -> Mapping[str, Any]:
    """The scores of a row's group; of an average over groups only the task score is known."""
    return {'s_t': {'value': row['mean']}} if row['group'] == 'macro' else scores.get(row['group'], {})


def _headline(scores):
    """The three cards on top: value, interval, n and one line each."""
    kind = kind_of_explanation_score(scores)
    cards = [('S_T', 'answers right', best(scores, 's_t'), 'share of the examples that are answered right')]
    if kind:
        cards += [
            (
                'S_E',
                'explanations good',
                best(scores, f's_e_{kind}'),
                f'of right answers: {_MEASURED.get(kind, _PARTLY)}',
            ),
            ('S_O', 'both', best(scores, f's_o_{kind}'), 'S_T times S_E'),
        ]
    return [
        {'symbol': symbol, 'name': name, 'line': line, **_cell(row)}
        for symbol, name, row, line in cards
        if row is not None
    ]


def _cell(row):
    """Display form of one score. `low`, `high`, `mark` place it on a bar from 0 to 100, for scores in [0, 1]."""
    if row is None:
        return {'text': '', 'n': None, 'ci': None, 'reason': None, 'signature': '', 'mark': None}
    value, ci = row['value'], row.get('ci95')
    cell = {
        'text': 'none' if value is None else f'{value:.3f}',
        'n': row.get('n'),
        'ci': f'{ci[0]:.3f} to {ci[1]:.3f}' if ci else None,
        'reason': row.get('reason'),
        'signature': row.get('signature', ''),
        'mark': None,
    }
    if value is not None and 0 <= value <= 1:
        low, high = ci or (value, value)
        cell.update(mark=_percent(value), low=_percent(low), span=max(0.5, round(_percent(high) - _percent(low), 2)))
    return cell


def _percent(value):
    return round(100 * min(1.0, max(0.0, value)), 2)


def _systems(title, scores, baselines):
    """The model beside other systems, one row each."""
    rows = {f'{title} (this run)': scores, **baselines}
    # Likeness to references only misleads beside better evidence; it is among all scores.
    kind = kind_of_explanation_score(scores)
    kinds = (
        ['human', 'true']
        if kind in ('human', 'true')
        else list(dict.fromkeys([*list(_MEASURED)[:3], kind or 'auto', 'fast']))
    )
    wanted = ['s_t'] + [f's_{letter}_{kind}' for kind in kinds for letter in 'eo']
    metrics = [m for m in wanted if any((best(s, m) or {}).get('value') is not None for s in rows.values())]
    return {
        'metrics': [metric_names.name(m) for m in metrics],
        'rows': [(label, [_cell(best(s, m)) for m in metrics]) for label, s in rows.items()],
        'others': len(baselines),
    }


def _beside(title, scores, baselines):
    """Every metric of every system: a column for each."""
    systems = {title: scores, **baselines}
    metrics = dict.fromkeys(m for s in systems.values() for m in _order({k: v for k, v in s.items() if '=' not in k}))
    rows = [(metric_names.name(m), [_cell(best(s, m)) for s in systems.values()]) for m in metrics]
    return {'systems': list(systems), 'rows': _empty_last(rows)}


def _order(scores):
    """Metrics in reading order: the e-ViL scores, then the others as they come."""
    first = [m for m in metric_names.NAMES if any(m in subset for subset in scores.values())]
    rest = {m: None for subset in scores.values() for m in subset if m not in metric_names.NAMES}
    return first + list(rest)


def _table(scores, protocol, protocols):
    """Every metric: a column for each subset under each protocol."""
    subsets = [s for s in scores if '=' not in s]
    names = {'all': 'all examples', 'correct': 'right answers only'}
    everything = {protocol: scores, **protocols}
    columns = [
        (f'{names.get(s, s)}, {name}' if protocols else names.get(s, s), found[s])
        for name, found in everything.items()
        for s in subsets
        if s in found
    ]
    metrics = dict.fromkeys(
        m for found in everything.values() for m in _order({s: found[s] for s in subsets if s in found})
    )
    return {
        'subsets': [name for name, _ in columns],
        'protocols': list(everything) if protocols else [],
        'rows': _empty_last((metric_names.name(m), [_cell(row.get(m)) for _, row in columns]) for m in metrics),
    }


def _empty_last(rows):
    """Rows (name, cells); those without any value stand last."""
    return sorted(rows, key=lambda row: all(cell['text'] in ('', 'none') for cell in row[1]))


def _groups(scores, groups):
    """One table for each kind of group ('class', 'answer_type', ...): counts and accuracy, and scores with intervals.

    The last rows are all examples and, where it means something, the plain average of the groups.
    """
    metrics = group_metrics(scores)
    names = {'all': 'all examples', 'macro': 'average of the groups'}
    return [
        {
            'name': kind.replace('_', ' '),
            'metrics': [metric_names.name(m) for m in metrics],
            'rows': [
                {
                    'name': names.get(row['group'], row['group'].partition('=')[2]),
                    'counted': row['group'] != 'macro',
                    'n': row['n'],
                    'correct': row['correct'],
                    'accuracy': f'{row["accuracy"]:.3f}',
                    'cells': [_cell(group_scores(scores, row).get(m)) for m in metrics],
                }
                for row in rows
            ],
        }
        for kind, rows in groups.items()
    ]


def _details(scores, protocol):
    """(subset, metric, cell) of all but the many types of questions, whose table is enough."""
    metrics = _order(scores)
    return [
        (f'{s}, {protocol}' if protocol else s, m, _cell(row[m]))
        for s, row in scores.items()
        if not s.startswith('question_type=')
        for m in metrics
        if m in row
    ]


def _browser(examples):
    """What the script shows: a picture that several examples share is embedded once."""
    embedded, sizes, problems, rows = {}, {}, {}, []
    for example in examples:
        path = str(example.get('picture') or '')
        if path and path not in embedded and path not in problems:
            try:
                embedded[path], sizes[path] = pictures.picture_uri(path)
            except ValueError:
                # One bad file must not cost the page: its card says so, without this machine's folders.
                problems[path] = f'{os.path.basename(path)} is not a readable picture'
        boxes, size = pictures.placed(example.get('boxes'), example.get('size'), sizes.get(path))
        gold = _or_empty(example.get('gold'))
        gold = gold.items() if isinstance(gold, Mapping) else [(g, 1.0) for g in gold]
        truth, correct = example.get('true'), example.get('correct')
        rows.append(
            {
                'id': str(example['id']),
                'picture': path if path in embedded else None,
                'problem': example.get('problem')
                or problems.get(path)
                or (None if path else 'no picture file for this example'),
                'size': [max(1, math.ceil(float(v))) for v in size],
                'boxes': boxes,
                'classes': [str(c) for c in _or_empty(example.get('classes'))],
                'text': example['text'],
                'gold': sorted(([str(g), float(s)] for g, s in gold), key=lambda p: -p[1]),
                'answer': str(example['answer']),
                'scores': sorted(
                    ([str(a), float(p)] for a, p in (example.get('answer_scores') or {}).items()), key=lambda p: -p[1]
                )[:5],
                'correct': None if correct is None else float(correct),
                'explanation': example.get('explanation') or '',
                'choices': [
                    {'text': str(c['text']), 'gold': bool(c['gold']), 'predicted': bool(c['predicted'])}
                    for c in _or_empty(example.get('choices'))
                ],
                'references': [str(r) for r in _or_empty(example.get('references'))],
                'true': None if truth is None else bool(truth),
                'condition': example.get('condition') or 'predicted',
                'system': str(example.get('system') or 'the first system'),
                'others': [_said(other) for other in _or_empty(example.get('others'))],
            }
        )
    # Paths of this machine are nobody's business: pictures are numbered.
    numbers = {path: str(i) for i, path in enumerate(embedded)}
    for row in rows:
        row['picture'] = numbers.get(row['picture'])
    return {'pictures': {numbers[path]: uri for path, uri in embedded.items()}, 'examples': rows}


def _said(row):
    """What another system said about an example."""
    correct, truth = row.get('correct'), row.get('true')
    return {
        'system': str(row['system']),
        'answer': str(row.get('answer') or ''),
        'explanation': str(row.get('explanation') or ''),
        'correct': None if correct is None else float(correct),
        'true': None if truth is None else bool(truth),
    }


def _or_empty(value):
    """A list that may be an array or None."""
    return [] if value is None else value
