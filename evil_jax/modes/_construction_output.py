"""What --mode=construct leaves of its pairs: the data set, what was removed, the numbers, the report, the datasheet."""

import collections
import contextlib
import pathlib
import shlex
import sys
from importlib import metadata

import evil_jax
from evil_jax import records
from evil_jax.construction import cleaning, curves, output, summary
from evil_jax.modes import _nli_scores, _terminal
from evil_jax.pages import construction as page

DATA, STATISTICS, CURVES, REPORT, SHEET = 'esnlive', 'statistics.json', 'curves.csv', 'report.html', 'DATASHEET.md'
_PACKAGES = ('numpy', 'jax', 'tokenizers')


def write(config, folder: pathlib.Path, sources, model, asked) -> dict[str, float]:
    """Judges all pairs and writes everything that the head of modes/construct.py tells.

    Args:
      sources: opened `_construction_sources.Sources`.
      model: of `_nli_scores.open_model`, or None.
      asked: of `_nli_scores.fill`, or None.
    """
    section = config.construct
    found = summary.Summary(
        sources.filters, sources.captions, explanation=section.explanation, examples=section.report_examples,
        seed=config.seed, verdicts=sources.checked,
    )  # fmt: skip
    data, by_name = folder / DATA, {each.name: each for each in sources.filters}
    with contextlib.ExitStack() as stack:
        scored = None
        if model:
            cache = stack.enter_context(_nli_scores.open_cache(sources.cache_path(model), model))
            scored = lambda texts: cache.scored(texts, model)
        out = stack.enter_context(output.writer(data, sources.splits, section.explanation))
        for judged in cleaning.clean(sources.pairs(out.drop), sources.filters, sources.captions, scored):
            found.add(judged)
            if judged.removed_by:
                by = by_name[judged.removed_by]
                out.remove(judged, by.detail(judged.pair, judged.values[by.name]))
            else:
                out.keep(judged.pair)
    counted = found.report()
    for each in counted['filters']:
        each['settings'] = section[each['name']].to_dict()
    report = {
        'title': 'e-SNLI-VE from its sources' if sources.merged['published'] else 'Pairs cleaned as e-SNLI-VE was',
        'command': shlex.join(['python', '-m', 'evil_jax.main', *sys.argv[1:]]),
        'versions': {'evil_jax': evil_jax.__version__} | {name: metadata.version(name) for name in _PACKAGES},
        'files': sources.files(),
        'merged': sources.merged,
        'relabelled': sources.relabelled(),
        'relevance': sources.relevance(),
        'nli': {**model.signature, **asked} if model else None,
        **counted,
    }  # fmt: skip
    report = {name: value for name, value in report.items() if value is not None}
    records.write_json(folder / STATISTICS, {'schema': 1, **_without_samples(report)})
    drawn = {each['name']: each for each in report['filters'] if 'curve' in each}
    records.atomic_write(folder / CURVES, curves.csv(drawn))
    records.atomic_write(folder / SHEET, page.datasheet(report))
    if section.report:
        records.atomic_write(folder / REPORT, page.render(report))
    _tell(report, folder, section)
    return _numbers(report)


def _without_samples(report) -> dict:
    return report | {'filters': [{k: v for k, v in each.items() if k != 'samples'} for each in report['filters']]}


def _tell(report, folder, section) -> None:
    counts = report['filters']
    # Pairs on whose label people do not agree are left out before the filters.
    first = 'merged' if report['before'] == report['merged']['counts'] else 'labelled anew'
    _terminal.show(
        'pairs that each filter removes (those that no earlier one does), by class',
        ('split', 'class', first, *(each['name'] for each in counts), 'kept'),
        [
            (split, label, f'{n:,}', *(_part(each, split, label) for each in counts),
             f'{report["kept"].get(split, {}).get(label, 0):,}')
            for split, classes in report['before'].items()
            for label, n in classes.items()
        ],
    )  # fmt: skip
    if labelled := report.get('relabelled'):
        print(
            f'labels of people: {labelled["pairs"]:,} pairs, of which {labelled["changed"]:,} get another label and '
            f'{labelled["no_majority"]:,} none (no majority); {len(labelled["not_met"]):,} more are not in the data'
        )
    print(f'data set: {folder / DATA} (--config=eug:esnlive --config.data.manual_dir={folder / DATA})')
    print(f'removed:  {output.removed_path(folder / DATA)}')
    if section.report:
        print(f'report:   {folder / REPORT}')


def _part(each, split, label) -> str:
    of = lambda kind: each[kind].get(split, {}).get(label, 0)
    return f'{of("removed"):,} ({of("first"):,})' if of('seen') else ''


def _numbers(report) -> dict[str, float]:
    total = lambda counts: collections.Counter({split: sum(classes.values()) for split, classes in counts.items()})
    numbers = {}
    for split, n in total(report['before']).items():
        numbers |= {f'{split} merged': n, f'{split} kept': total(report['kept'])[split]}
        numbers |= {f'{split} {each["name"]}': total(each['removed'])[split] for each in report['filters']}
    return {name: float(value) for name, value in numbers.items()}
