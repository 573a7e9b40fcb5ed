"""Records of edited questions for the browser of counterfactual.html: short rows, and pictures within a budget."""

from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import pictures

_MOST = 1000  # records
_PICTURE = 12_000  # bytes of one
_PICTURES = 3_000_000  # bytes of all: with base64 and texts the page stays below five megabytes
_TOP = 3  # probabilities that are shown
# Facts of an edit for auditing, in this order.
_AUDIT = (
    'family', 'source', 'target', 'source_synset', 'target_synset', 'sense', 'sense_rank', 'sense_count', 'how',
    'path_similarity', 'distance', 'metric', 'frequency', 'lemma_rule', 'tagger', 'twin', 'role', 'asks', 'negated',
    'quality', 'adjusted', 'repair', 'preset', 'seed',
)  # fmt: skip


def browser(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the script shows.

    Args:
      records: fields of an `edits.Edit` ('id', 'example_id', 'family', 'original', 'text', 'span', 'target_span',
        'source', ...) and as far as known 'answer', 'answer_star' (texts), 'compared' (both as they were compared, the
        names in the matrix of answers), 'scores', 'scores_star' ({answer: probability}), 'gold' (a list of answers),
        'right', 'right_star' (0 to 1), 'kept', 'transition', 'met', 'explanation', 'explanation_star', 'picture' (path)
        and 'problem' (why there is none). The first ones are kept where there are too many, and the first pictures.

    Returns:
      `{'records': [...], 'pictures': {number: URI}}`; pictures of this machine are numbered, not named.

    Raises:
      ValueError: a span that is not in its text.
    """
    album = pictures.Album(_PICTURES, _PICTURE)
    rows = [_row(record, album) for record in records[:_MOST]]
    return {'records': rows, 'pictures': album.uris}


def cut(text: str, span: Sequence[int], what: str) -> list[str]:
    """The text before a span, in it and behind it."""
    start, end = span
    if not 0 <= start <= end <= len(text):
        raise ValueError(f'{what}: span {list(span)} is not in a text of {len(text)} characters')
    return [text[:start], text[start:end], text[end:]]


def _row(record, album):
    said = lambda which: {
        'answer': None if record.get(f'answer{which}') is None else str(record[f'answer{which}']),
        'scores': sorted(
            ([str(a), round(float(p), 4)] for a, p in (record.get(f'scores{which}') or {}).items()),
            key=lambda pair: -pair[1],
        )[:_TOP],
        'right': _number(record.get(f'right{which}')),
        'explanation': str(record.get(f'explanation{which}') or ''),
    }
    name = record['id']
    picture, problem = album.add(record.get('picture'), 'question')
    audit = {key: record[key] for key in _AUDIT if record.get(key) not in (None, '', False, [], ())}
    return {
        'id': str(name),
        'family': str(record['family']),
        'source': str(record.get('source_lemma') or record['source']).lower(),
        'target': str(record.get('target_lemma') or record['target']).lower(),
        'before': cut(str(record['original']), record['span'], f'{name}, original'),
        'after': cut(str(record['text']), record['target_span'], f'{name}, text'),
        'said': [said(''), said('_star')],
        'compared': [str(answer) for answer in record.get('compared') or ()],
        'gold': [str(answer) for answer in record.get('gold') or ()],
        'kept': None if record.get('kept') is None else bool(record['kept']),
        'transition': str(record.get('transition') or ''),
        'expectation': str(record.get('expectation') or ''),
        'expected': [str(answer) for answer in record.get('expected') or ()],
        'met': None if record.get('met') is None else bool(record['met']),
        'why': str(record.get('why') or ''),
        'audit': [[key.replace('_', ' '), _told(value)] for key, value in audit.items()],
        'picture': picture,
        'problem': str(record.get('problem') or problem or ''),
    }


def _number(value):
    return None if value is None or value != value else float(value)


def _told(value):
    if isinstance(value, list | tuple):
        return ', '.join(map(str, value))
    return f'{value:.4g}' if isinstance(value, float) else str(value)
