"""What people changed who labelled pairs anew: `construction/relabel.py`'s summary in words."""

from collections.abc import Mapping
from typing import Any

from evil_jax.pages import _rates

_MOST_RATERS = 50
_PEOPLE = ('raters', 'not_met')  # a row for each of them is no word for a sheet


def told(summary: Mapping[str, Any] | None) -> dict[str, str]:
    """{name: text}, no annotator's name among them; a part that is not known is left out."""
    summary = summary or {}
    found = {
        str(name).replace('_', ' '): text(value)
        for name, value in summary.items()
        if value not in (None, '', [], (), {}) and name not in (*_PEOPLE, 'share')
    }
    for name in _PEOPLE:
        value = summary.get(name)
        if value:
            found[name.replace('_', ' ')] = f'{len(value):,}' if isinstance(value, list | tuple) else text(value)
    if isinstance(summary.get('changed'), int) and summary.get('share'):
        found['changed'] += f', {text(summary["share"])} of the pairs with a majority'
    return found


def raters(summary: Mapping[str, Any] | None) -> dict[str, Any]:
    """{'rows': [(name, labels, changed, with the majority)], 'more': number of those that are not shown}."""
    people = (summary or {}).get('raters')
    people = people if isinstance(people, list | tuple) else []
    rows = [
        (each['rater'], text(each['labels']), _rates.percent(each['changed']), _rates.percent(each['with_majority']))
        for each in people[:_MOST_RATERS]
    ]
    return {'rows': rows, 'more': len(people) - len(rows)}


def text(value: Any) -> str:
    """A value in words. Three numbers of which the first is between the others are a share with its interval."""
    if isinstance(value, Mapping):
        return ', '.join(f'{str(name).replace("_", " ")} {_inner(part)}' for name, part in value.items())
    if isinstance(value, list | tuple):
        if len(value) == 3 and value[0] is not None and value[1:] in ([None, None], (None, None)):
            return text(value[0])  # too few for an interval
        if _is_share(value):
            return f'{_rates.percent(value[0])} {_rates.interval(value[1:])}'
        return '; '.join(map(text, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return f'{value:,}'
    if isinstance(value, float):
        return f'{value:.3g}'
    return 'none' if value is None else str(value)


def _inner(value):
    return f'({text(value)})' if isinstance(value, Mapping) else text(value)


def _is_share(value):
    return (
        len(value) == 3
        and all(isinstance(each, int | float) for each in value)
        and 0 <= value[1] <= value[0] <= value[2] <= 1
    )
