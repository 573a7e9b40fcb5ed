"""build.html: what is in a data set, how long its texts are, what its vocabularies cover, and some of its examples."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax import pages, records
from evil_jax.pages import histogram, pictures

_KINDS = {
    'text': ('Text for the encoder', 'Question or hypothesis, with the choice where there are some, and markers'),
    'text_objects': ('Text for the encoder, with names of objects', 'The same, and what is in the picture'),
    'objects': ('Names of objects for the decoder', 'What is in the picture, with markers'),
    'question': ('Question for the decoder', 'Question or hypothesis, with markers'),
    'answer': ('Answers', 'Of the vocabulary, or the choices of each example; with markers'),
    'explanation': ('Explanations', 'All references, with markers'),
}
_WORDS = {'text': 'Questions or hypotheses', 'answer': 'Answers', 'explanation': 'Explanations'}
_MODULES = {'word': 'encoder (word pieces)', 'expl': 'decoder (byte pairs)'}
_COUNTS = {
    'examples': 'examples',
    'images': 'pictures',
    'references': 'explanations',
    'explained': 'explained examples',
    'unanswered': 'without an answer',
    'outside': 'no answer in the vocabulary',
    'missing': 'without features',
}
_MOST_ROWS = 30  # of a table of answer types
_NAMED = 12  # boxes; more would hide the picture behind their names


def write_page(
    path: str | os.PathLike,
    *,
    title: str,
    counts: Mapping[str, Any],
    limits: Mapping[str, int],
    examples: Sequence[Mapping[str, Any]],
    provenance: Mapping[str, Any],
    inputs: str = 'regions',
) -> bool:
    """Writes one self-contained page, atomically; where it is the same already, nothing.

    Args:
      path: of the page.
      title: name of the data set.
      counts: the fields of `data.counts.Counts`.
      limits: kind of text, or 'regions' -> value of the setting that cuts it, `data.max_<kind>` (up to its first '_').
        Kinds of text that have none are not shown.
      examples: rows with 'split', 'id', 'text' and, as far as known, 'picture' (path), 'size' (width, height) that
        'boxes' [x1, y1, x2, y2] count in, 'classes', 'problem' (why there is no picture), 'gold' ({answer: score} or a
        list), 'choices' (rows with 'text', 'gold'), 'references'. All text is untrusted.
      provenance: what was built from what, by name.
      inputs: what a model reads of the pictures: their 'regions', the 'pictures' themselves, or nothing ('text').

    Returns:
      Whether anything was written.
    """
    lengths = {kind: _sizes(table) for kind, table in counts['lengths'].items()}
    html = pages.render(
        'build',
        title=title,
        inputs=inputs,
        explained=inputs == 'regions' or any(counts['references'].values()),
        cards=[
            {'name': split}
            | {name: counts[name].get(split, 0) for name in ('examples', 'images', 'references', 'explained')}
            for split in counts['examples']
        ],
        splits=list(counts['examples']),
        split_rows=_split_rows(counts, inputs),
        shares=[
            s
            for s in (
                _shares(counts, 'labels', 'class' if counts['answers'] else 'position of the right choice'),
                _shares(counts, 'answer_types', 'answer type'),
            )
            if s
        ],
        lengths=[
            {
                'kind': kind,
                'name': name,
                'line': line,
                'key': f'data.max_{kind.partition("_")[0]}',
                'chart': chart,
                'longest': [row for row in counts['longest'].get(kind, []) if row['tokens'] > limits[kind]],
            }
            for kind, (name, line) in _KINDS.items()
            if kind in limits and (chart := histogram.histogram(lengths.get(kind, {}), limits[kind]))
        ],
        words=[
            (name, chart)
            for kind, name in _WORDS.items()
            if (chart := histogram.histogram(_sizes(counts['words'].get(kind, {}))))
        ],
        bare=lengths.get('regions', {}).get(0, 0),
        regions=histogram.histogram(lengths.get('regions', {}), limits.get('regions')),
        store=counts['store'],
        coverage=[_coverage(_MODULES[key], table) for key, table in counts['coverage'].items() if table['occurrences']],
        answers=_answers(counts),
        missing={
            'total': sum(counts['missing'].values()),
            'splits': {split: number for split, number in counts['missing'].items() if number},
            'rows': counts['missing_shown'],
        },
        examples=_cards(examples, pictured=inputs != 'text'),
        total=sum(counts['examples'].values()),
        provenance={k: v if isinstance(v, str) else json.dumps(v, sort_keys=True) for k, v in provenance.items()},
    )
    if os.path.isfile(path):
        with open(path, encoding='utf-8', newline='') as file:
            if file.read() == html:
                return False
    records.atomic_write(path, html)
    return True


def _sizes(table):
    return {int(n): int(k) for n, k in table.items()}


def _percent(part, whole):
    return 100 * part / whole if whole else 0.0


def _split_rows(counts, inputs):
    """(what, a number or (number, percent) for each split); the last ones only where there is something to count."""
    row = lambda field: [counts[field].get(split, 0) for split in counts['examples']]
    names = _COUNTS | ({'missing': 'without a picture'} if inputs == 'pictures' else {})
    if inputs != 'regions':
        left_out = {'images', 'missing'} if inputs == 'text' else set()
        left_out |= {'references', 'explained'} if not any(row('references')) else set()
        names = {field: name for field, name in names.items() if field not in left_out}
    rows = [(name, row(field)) for field, name in names.items()]
    if any(row('shared')):
        rows.append((f'{"texts" if inputs == "text" else "pictures"} that train has, too', row('shared')))
    if any(row('tags')):
        rows.append(('object tags for the encoder', row('tags')))
        rows.append(('of these, with a region', [(n, _percent(n, of)) for n, of in zip(row('linked'), row('tags'))]))
    return rows


def _shares(counts, field, name):
    """A table of shares: a row for each class, with a number and a percentage for each split; None if there is none."""
    table = {split: row for split, row in counts[field].items() if row}
    if not table:
        return None
    total = {}
    for row in table.values():
        for key, number in row.items():
            total[key] = total.get(key, 0) + number
    keys = sorted(total, key=lambda key: (-total[key], key))
    if field == 'labels':
        keys = sorted(keys)
    rows = [
        (key, [(row.get(key, 0), _percent(row.get(key, 0), sum(row.values()))) for row in table.values()])
        for key in keys[:_MOST_ROWS]
    ]
    return {'name': name, 'splits': list(table), 'rows': rows, 'more': max(0, len(keys) - _MOST_ROWS)}


def _coverage(name, table):
    cells = {
        kind: [
            (table[f'{kind}_{of}'], _percent(table[f'{kind}_{of}'], table[of])) for of in ('occurrences', 'distinct')
        ]
        for kind in ('split', 'unknown')
    }
    return {
        'name': name,
        **cells,
        **{key: table[key] for key in ('occurrences', 'distinct', 'most_split', 'most_unknown')},
    }


def _answers(counts):
    """What the answer vocabulary covers; None where there is no vocabulary."""
    if not counts['answers']:
        return None
    gold = counts['gold']
    inside, outside = gold.get('inside', 0), gold.get('outside', 0)
    return {
        'size': counts['answers'],
        'inside': inside,
        'percent': _percent(inside, inside + outside),
        'outside': outside,
        'lost': sum(counts['outside'].values()),
        'most': counts['outside_answers'],
    }


def _cards(examples, pictured=True):
    cards = []
    for example in examples:
        uri = size = None
        problem = example.get('problem')
        if example.get('picture'):
            try:
                uri, size = pictures.picture_uri(example['picture'])
            except ValueError:
                # One bad file must not cost the page: its card says so, without this machine's folders.
                problem = f'{os.path.basename(example["picture"])} is not a readable picture'
        elif pictured and not problem:
            problem = 'no picture file for this example'
        boxes, (width, height) = pictures.placed(example.get('boxes'), example.get('size'), size)
        classes = [str(c) for c in example.get('classes') or []] + [''] * len(boxes)
        gold = example.get('gold') or []
        gold = sorted(gold.items(), key=lambda p: -p[1]) if isinstance(gold, Mapping) else [(g, 1.0) for g in gold]
        font = max(width, height) / 26
        cards.append(
            {
                'split': example['split'],
                'id': example['id'],
                'text': example['text'],
                'uri': uri,
                'problem': problem,
                'pictured': pictured,
                'width': max(1, math.ceil(width)),
                'height': max(1, math.ceil(height)),
                'font': round(font, 2),
                'boxes': [_box(box, name, font, width) for box, name in zip(boxes, classes)],
                'named': len(boxes) <= _NAMED,
                'choices': example.get('choices') or [],
                'gold': ', '.join(str(a) if s == 1 else f'{a} ({s:.2g})' for a, s in gold),
                'references': [str(r) for r in example.get('references') or []],
            }
        )
    return cards


def _box(box, name, font, picture_width):
    x1, y1, x2, y2 = box
    at_end = x1 > 0.7 * picture_width  # a name at the right edge grows to the left
    return {
        'x': x1,
        'y': y1,
        'width': round(max(0.0, x2 - x1), 1),
        'height': round(max(0.0, y2 - y1), 1),
        'name': name,
        'name_x': x2 if at_end else x1,
        'name_y': round(y1 - font / 4 if y1 > font else y1 + font, 1),
        'anchor': 'end' if at_end else 'start',
    }
