"""Rated explanations to look at, for the browser of human.html: short rows, and pictures within a budget."""

from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import _rated_systems, _rating_bars, pictures

_MOST = 400  # explanations
_PICTURE = 12_000  # bytes of one
_PICTURES = 3_000_000  # bytes of all


def browser(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the script shows.

    Args:
      rows: of `scores.disagreements`, and as far as known 'question', 'answer' (texts), 'picture' (path) and 'boxes'
        ((name, x1, y1, x2, y2) each, shares of width and height). The first ones are kept where there are too many, and
        the first pictures.

    Returns:
      `{'records': [...], 'pictures': {number: URI}}`; pictures of this machine are numbered, not named.
    """
    album = pictures.Album(_PICTURES, _PICTURE)
    return {'records': [_row(row, album) for row in rows[:_MOST]], 'pictures': album.uris}


def _row(row, album):
    picture, problem = album.add(row.get('picture'), 'explanation')
    return {
        'id': str(row['item']),
        'why': str(row['why']),
        'dataset': _rated_systems.data_set(str(row['dataset'])),
        'system': str(row['system']),
        'question': str(row.get('question') or ''),
        'answer': str(row.get('answer') or ''),
        'texts': [str(row.get('explanation') or ''), str(row.get('gold_explanation') or '')],
        'means': [_rounded(row.get('mean')), _rounded(row.get('gold_mean'))],
        'ratings': [
            {
                'rater': str(said.get('rater') or ''),
                'said': [_rating_bars.WORDS.get(said.get(key) or '', '') for key in ('rating', 'gold_rating')],
                'wanting': [
                    [_rating_bars.SHORTCOMINGS.get(name, str(name)) for name in said.get(key) or ()]
                    for key in ('shortcomings', 'gold_shortcomings')
                ],
            }
            for said in row['ratings']
        ],
        'boxes': [[str(name), *map(_share, ends)] for name, *ends in row.get('boxes') or ()],
        'picture': picture,
        'problem': str(problem or ''),
    }


def _share(value):
    """A place in the picture, as far as it is one."""
    return round(min(1.0, max(0.0, float(value))), 4)


def _rounded(value):
    """JSON has no NaN."""
    return None if value is None or value != value else round(float(value), 3)
