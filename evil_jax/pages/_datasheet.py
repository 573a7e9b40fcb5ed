"""DATASHEET.md of a constructed data set, after Gebru et al., "Datasheets for Datasets" (CACM 64(12), 2021).

A run knows counts, files, filters and versions, and whether pairs are SNLI's. Why somebody made the data and what they
will do with them, and where pairs of their own come from, only people know: there stands a blank.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from evil_jax.pages import _new_labels, _pair_counts, _pair_filters, _rates
from evil_jax.pages.escaping import markdown

BLANK = '**[TO BE FILLED IN:'
_PAPER = (
    'Kayser et al., "e-ViL: A Dataset and Benchmark for Natural Language Explanations in Vision-Language Tasks", 2021'
)

_PEOPLE = (
    'Hypotheses and explanations are about people in photographs, written freely by crowd workers; stereotypes in '
    'SNLI’s hypotheses are known (Rudinger et al., 2017). No names of workers are in the files.',
    '',
)


def text(report: Mapping[str, Any]) -> str:
    """The sheet; `report` as in pages/construction.py, all text in it untrusted."""
    title = markdown(report.get('title') or 'e-SNLI-VE from its sources')
    parts = (_motivation, _composition, _collection, _preprocessing, _uses, _distribution, _maintenance)
    body = [line for part in parts for line in (*part(report), '')]
    blanks = sum(BLANK in line for line in body)
    head = [
        f'# Datasheet: {title}',
        '',
        'Sections and questions follow Gebru et al., "Datasheets for Datasets" (2021). Numbers are those of the run '
        f'that wrote this file. {blanks} answers are for people to give: look for "TO BE FILLED IN".',
        '',
    ]
    return '\n'.join([*head, *body]).rstrip() + '\n'


def _blank(what: str) -> str:
    return f'{BLANK} {what}]**'


def _asked(question: str, *answer: str) -> Iterator[str]:
    yield from ('', f'**{question}**', '', *answer)


def _of_snli(report) -> bool:
    """Whether there are pairs of SNLI or SNLI-VE among the sources, whose published numbers stand beside ours."""
    return bool((report.get('merged') or {}).get('published'))


def _motivation(report) -> Iterator[str]:
    yield '## Motivation'
    yield from _asked(
        'For what purpose was the data set created?',
        'Pairs of a picture and a sentence, labelled contradiction, neutral or entailment, with explanations in words: '
        f'for models that explain their answers. The design is that of e-SNLI-VE ({_PAPER}).',
        '',
        _blank('why this version was made'),
    )
    yield from _asked('Who created it, and who paid for it?', _blank('people, institution, funding'))


def _composition(report) -> Iterator[str]:
    kept, merged, snli = report.get('kept'), report.get('merged') or {}, _of_snli(report)
    picture = 'Flickr30k picture (by its number' if snli else 'picture (by its name'
    yield '## Composition'
    yield from _asked(
        'What is an instance?',
        f'A {picture}; no pixels are in the files), a hypothesis, a label and at most three explanations.',
    )
    yield from _asked('How many are there?', *_counts(kept or merged.get('counts')))
    if rows := _pair_counts.table1(report.get('table1'), report.get('table1_paper')):
        columns = ['split', 'pairs', 'pictures', *[f'{c} %' for c in _pair_counts.CLASSES], 'hypothesis', 'explanation']
        yield from _asked(
            'How do they compare with the published data set?',
            'Lengths are words between blanks, mean (median).',
            '',
            *_table(columns, map(_table1, rows)),
        )
    yield from _asked(
        'Is it a sample of something larger?',
        'Of SNLI’s pairs about Flickr30k captions: those that have an explanation, and that no filter removed.'
        if snli
        else 'Of the pairs in the files that were read: those that no filter removed.',
        *_dropped(merged),
    )
    yield from _asked(
        'Are there errors or noise?',
        *_errors(report),
        *['A label was given for a caption, not for the picture: what a caption leaves open, the picture may decide.']
        * snli,
    )
    yield from _asked(
        'Are there splits?',
        'train, dev and test, by picture: no picture is in two of them as far as the split lists keep them apart.',
    )
    yield from _asked(
        'Does it hold anything confidential or offensive, or about people?',
        *_PEOPLE * snli,
        _blank('what was looked for, and what was found'),
    )


def _collection(report) -> Iterator[str]:
    yield '## Collection process'
    yield from _asked(
        'Where do the data come from?',
        'Hypotheses and labels: SNLI (Bowman et al., 2015). Explanations: e-SNLI (Camburu et al., 2018). The way from '
        'sentences to pictures: SNLI-VE (Xie et al., 2019). Captions: Flickr30k (Young et al., 2014).'
        if _of_snli(report)
        else _blank('where pictures, hypotheses, labels and explanations come from'),
    )
    if files := report.get('files'):
        rows = [
            [
                _code(f.get('role')),
                _code(os.path.basename(str(f.get('path') or ''))),
                _number(f.get('rows')),
                _code(f.get('hash')),
            ]
            for f in files
        ]
        yield from _asked('Which files were read?', *_table(['what', 'file', 'rows', 'hash'], rows))
    people = _new_labels.told(report.get('relabelled'))
    told = [f'* {markdown(name)}: {markdown(value)}' for name, value in people.items()]
    yield from _asked(
        'Who took part?',
        *(
            ['People labelled neutral pairs of dev and test anew and explained their choice:', '', *told, '']
            if told
            else []
        ),
        _blank('how workers were recruited, paid and told of the purpose; review by an ethics board')
        if told
        else 'Nobody labelled anything anew in this run: labels are those of the sources.',
    )


def _preprocessing(report) -> Iterator[str]:
    filters = report.get('filters') or ()
    yield '## Preprocessing, cleaning, labelling'
    yield from _asked(
        'What was done?',
        'Pairs and explanations were joined by pairID'
        + (f'; then {len(filters)} filters removed pairs, each counted by itself:' if filters else '; no filter ran.'),
        *(['', *_filters(filters)] if filters else []),
    )
    if filters:
        yield ''
        yield 'A source that is called "ours" is not in the paper, or not in full: formula and threshold are a choice.'
    model = ', '.join(
        f'{markdown(name)} {_code(_pair_filters.words(v))}' for name, v in (report.get('nli') or {}).items()
    )
    if model:
        yield from _asked('Which model judged captions and hypotheses?', model)
    yield from _asked(
        'Is the raw data kept?',
        'The sources are read and not changed. Rows that were left out are in `dropped.jsonl` (while merging) and '
        '`removed.jsonl` (by filters), each with its reason.',
    )
    versions = [f'* {markdown(name)}: {markdown(value)}' for name, value in (report.get('versions') or {}).items()]
    command = [f'Command: {_code(report["command"])}'] if report.get('command') else []
    yield from _asked(
        'Which software did it?', 'evil\\_jax, `--mode=construct`.', *['', *command] * bool(command), '', *versions
    )


def _uses(report) -> Iterator[str]:
    yield '## Uses'
    yield from _asked('What has it been used for?', _blank('models, papers'))
    yield from _asked(
        'What should it not be used for?',
        'Claims about people in the pictures: explanations say what workers imagine. Scores on it are not comparable '
        'with published ones of e-SNLI-VE unless its own files are used.',
        '',
        _blank('further uses to avoid'),
    )


def _distribution(report) -> Iterator[str]:
    yield '## Distribution'
    yield from _asked(
        'Under which terms may it be passed on?',
        'Those of all sources hold: SNLI and SNLI-VE, e-SNLI, and Flickr30k, whose pictures belong to who took them.'
        if _of_snli(report)
        else 'Those of all sources hold, and of the pictures.',
        '',
        _blank('licence, place and date of the release, after reading the terms of the sources'),
    )


def _maintenance(report) -> Iterator[str]:
    yield '## Maintenance'
    yield from _asked('Who maintains it, and how are they reached?', _blank('name and address'))
    yield from _asked('Will it be corrected, and are older versions kept?', _blank('plan for errors, versions'))
    yield from _asked(
        'Can others extend it?',
        'The same sources and settings give the same bytes: change a filter or a source and run the command again.',
    )


def _counts(counts) -> list[str]:
    if not counts:
        return ['Nothing has been counted yet.']
    rows = []
    for split, classes in counts.items():
        row = _pair_counts.row(split, classes, 0)
        cells = [f'{cell["n"]:,} ({cell["text"]})' if cell['text'] else '0' for cell in row['cells']]
        rows.append([markdown(split), f'{row["n"]:,}', *cells])
    return _table(['split', 'pairs', *_pair_counts.CLASSES], rows)


def _table1(row):
    name = markdown(row['split']) + (' (published)' if row['published'] else '')
    return [name, _number(row['instances']), _number(row['images']), *row['shares'], *row['lengths']]


def _dropped(merged) -> list[str]:
    found = _pair_counts.dropped(merged.get('dropped'))
    if not found:
        return []
    rows = [[markdown(reason.replace('_', ' ')), f'{n:,}'] for reason, _, n in found['rows']]
    return ['', 'Dropped while merging:', '', *_table(['reason', 'rows'], rows)]


def _errors(report) -> list[str]:
    lines = []
    for key, name in (('errors', 'wrong labels'), ('bad_explanations', 'bad explanations')):
        rates = report.get(key) or {}
        if rates.get('before'):
            told = [_share(rates.get(when)) for when in ('before', 'after')]
            lines.append(f'* {name}: {told[0]} before the filters, {told[1]} after them')
    if lines:
        return ['By pairs checked by hand, with Wilson’s 95 % intervals:', '', *lines, '']
    return ['No pairs of this run were checked by hand, so its error rates are not known.', '']


def _filters(filters) -> list[str]:
    rows = []
    for each in filters:
        removed, seen = (_pair_counts.total(each.get(name)) for name in ('removed', 'seen'))
        share = f' ({_rates.percent(removed / seen)} of {seen:,})' if seen else ''
        settings = '; '.join(f'{name}: {value}' for name, value in _pair_filters.settings(each).items())
        rows.append(
            [markdown(each['name']), markdown(each.get('source') or ''), markdown(settings), f'{removed:,}{share}']
        )
    return _table(['filter', 'source', 'settings', 'removes'], rows)


def _share(share):
    cell = _pair_filters.interval(share)
    return f'{cell["text"]} {cell["ci"] or ""}'.strip() if cell['text'] else 'not known'


def _number(value):
    return f'{value:,}' if isinstance(value, int) else ''


def _code(value) -> str:
    """Text as code, unless a mark in it would end that."""
    line = ' '.join(str('' if value is None else value).split())
    if not line or '`' in line or '|' in line:
        return markdown(line)
    return f'`{line}`'


def _table(columns, rows) -> list[str]:
    line = lambda cells: f'| {" | ".join(cells)} |'
    return [line(map(markdown, columns)), line(['---'] * len(columns)), *[line(row) for row in rows]]
