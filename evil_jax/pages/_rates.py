"""Shares with their intervals, as texts and as bars (templates/_parts.html.j2)."""

import math
from collections.abc import Mapping
from typing import Any

NOTHING = {'value': None, 'text': '', 'ci': None, 'counts': '', 'reason': None, 'mark': None}


def percent(value: float | None, signed: bool = False) -> str:
    """One digit: '61.2 %'; '' for None."""
    if value is None or not math.isfinite(value):
        return ''
    return f'{100 * value:{"+" if signed else ""}.1f} %'.replace('-', '−')


def interval(ci, signed: bool = False) -> str | None:
    """'[58.0, 64.1]', in percent; None without one."""
    if not ci or any(end is None or not math.isfinite(end) for end in ci):
        return None
    return '[' + ', '.join(percent(end, signed).removesuffix(' %') for end in ci) + ']'


def cell(row: Mapping[str, Any] | None, signed: bool = False) -> dict[str, Any]:
    """A share as the templates show it.

    Args:
      row: 'value', and as far as known 'ci95', 'k' and 'n', 'reason' (why there is no value); or None.
      signed: a difference of shares; it has no bar.
    """
    if not row:
        return dict(NOTHING)
    value, ci = row.get('value'), row.get('ci95')
    shown = NOTHING | {'value': value, 'text': percent(value, signed), 'reason': row.get('reason')}
    if value is None:
        return shown
    k, n = row.get('k'), row.get('n')
    shown['ci'] = interval(ci, signed)
    shown['counts'] = f'{k:,.10g} of {n:,}' if k is not None and n is not None else ''
    if not signed and 0 <= value <= 1:
        low, high = (min(1.0, max(0.0, end)) for end in (ci if shown['ci'] else (value, value)))
        shown |= {
            'mark': round(100 * value, 2),
            'low': round(100 * low, 2),
            'span': max(0.5, round(100 * (high - low), 2)),
        }
    return shown


def p_value(p: float | None) -> str:
    """'0.03', '<0.001'; '' for None."""
    if p is None or not math.isfinite(p):
        return ''
    return '<0.001' if p < 0.001 else f'{p:.2g}'
