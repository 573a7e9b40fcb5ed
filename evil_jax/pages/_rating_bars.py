"""How often raters said what, as rows of a stacked bar and its numbers; published shares stand below ours."""

import math
from collections.abc import Mapping
from typing import Any

from evil_jax.pages import _rates

WORDS = {'no': 'no', 'weak_no': 'weak no', 'weak_yes': 'weak yes', 'yes': 'yes'}
SHORTCOMINGS = {
    'incorrect_description': 'describes the picture wrongly',
    'insufficient_justification': 'justifies too little',
    'confusing_sentence': 'confusing sentence',
}


def row(name: str, shares: Mapping[str, float], number: int | None = None, published: bool = False) -> dict[str, Any]:
    """A row of the table of ratings.

    Args:
      name: whose explanations.
      shares: of `WORDS`, together 1.
      number: of ratings, None where it is not told.
      published: the shares were computed by others.

    Returns:
      'name', 'n', 'published', 'parts' ({'rating', 'x', 'width', 'word', 'text'}; x and width of 100) and 'told', all
      in a sentence.
    """
    parts, x = [], 0.0
    for rating, word in WORDS.items():
        share = shares.get(rating) or 0.0
        if not math.isfinite(share) or not 0 <= share <= 1:
            raise ValueError(f'{name}: share of the rating {word!r} is {share}, wanted 0 to 1')
        width = round(min(100 * share, 100 - x), 2)
        text = _rates.percent(share)
        parts.append({'rating': rating, 'word': word, 'x': round(x, 2), 'width': width, 'text': text})
        x += width
    told = ', '.join(f'{part["word"]} {part["text"]}' for part in parts)
    return {'name': name, 'n': number, 'published': published, 'parts': parts, 'told': told}


def shortcomings(name: str, shares: Mapping[str, float], published: bool = False) -> dict[str, Any]:
    """A row of the table of shortcomings: 'name', 'published' and 'cells' in the order of `SHORTCOMINGS`."""
    return {
        'name': name,
        'published': published,
        'cells': [_rates.cell({'value': shares.get(key)}) for key in SHORTCOMINGS],
    }
