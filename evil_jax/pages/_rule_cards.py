"""Rules in words, with what they rest on, for counterfactual.html."""

from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import _edit_summary, _rates

_SHORT = 10  # rules that stand open
_MOST = 60  # rules at all
_KINDS = {'STABLE': 'answer kept', 'SENSITIVE': 'answer changes', '': 'neither'}


def cards(document: Mapping[str, Any] | None, records: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the template shows.

    Args:
      document: rules.json: 'rules', 'unconfirmed' and 'families' with the fields of `rules.Rule`, 'tested' and
        'settings'. Or None.
      records: the rows of the browser, among which the examples of rules are looked for.

    Returns:
      'short' and 'more' (cards with 'examples'), 'left_out', 'unconfirmed', 'families', 'tested' (a number) and
      'settings'; None without a document.
    """
    if document is None:
        return None
    by_id = {record['id']: record for record in records}
    rules = [_card(rule, by_id) for rule in document['rules'][:_MOST]]
    return {
        'short': rules[:_SHORT],
        'more': rules[_SHORT:],
        'left_out': max(0, len(document['rules']) - _MOST),
        'unconfirmed': [_card(rule, {}) for rule in document.get('unconfirmed', ())[:_MOST]],
        'families': [_card(rule, {}) for rule in document.get('families', ())],
        'tested': sum(document.get('tested', {}).values()),
        'settings': document.get('settings', {}),
    }


def _card(rule, by_id):
    share = _rates.cell({'value': rule['rate'], 'ci95': (rule['low'], rule['high']), 'k': rule['k'], 'n': rule['n']})
    return {
        'sentence': rule['sentence'],
        'said': rule['sentence'].partition(f': {rule["k"]} of {rule["n"]}')[0].rstrip('.') + '.',  # numbers stand below
        'kind': rule['kind'],
        'told': _KINDS.get(rule['kind'], rule['kind']),
        'unwarranted': rule['outcome'] == 'unwarranted',
        'family': _edit_summary.name(rule['family']),
        'cell': share,
        'facts': list(_facts(rule)),
        'members': list(rule.get('members', ())),
        'examples': [by_id[name] for name in rule.get('examples', ()) if name in by_id],
    }


def _facts(rule):
    yield (
        f'{rule["questions"]:,} question{_s(rule["questions"])}, {rule["images"]:,} picture{_s(rule["images"])}; worth '
        f'{rule["n_effective"]:,.0f} independent edits'
    )
    yield f'q {_rates.p_value(rule["q"])}'
    if rule.get('rate_other') is not None:
        yield f'the others of the family {_rates.percent(rule["rate_other"])} (p {_rates.p_value(rule["p_other"])})'
    if rule.get('confirmation'):
        halves = (f'{k:,} of {n:,}' for k, n in (rule['discovery'], rule['confirmation']))
        yield 'half that discovers {}, half that confirms {}'.format(*halves)
    if rule.get('targets', 0) > 1:
        kind = 'for each that occurs often' if rule['any_target'] else 'on average'
        yield f'{rule["targets"]:,} new words, {kind} (that they are alike: p {_rates.p_value(rule["heterogeneity"])})'


def _s(number):
    return '' if number == 1 else 's'
