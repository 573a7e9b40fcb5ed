"""The part of WordNet that was asked about, as a tree whose nodes carry rates."""

from collections.abc import Mapping, Sequence
from typing import Any

from evil_jax.pages import _rates

_MOST = 150  # nodes of a tree


def forest(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Nodes nested under their parents, those of many edits first.

    Args:
      nodes: 'synset', 'parent' (a synset, '' of a root), 'name', 'n', 'value', 'ci95', 'k' and 'images'; n of a parent
        counts what is below it.

    Returns:
      'roots' ({'synset', 'name', 'cell', 'heat' from 0 to 10, 'images', 'children', 'differs': its interval leaves out
      the rate of the root, 'open': a node below it differs}) and 'left_out', the number of nodes of few edits without
      room. None without nodes.
    """
    kept = sorted(nodes, key=lambda node: (-node['n'], node['synset']))[:_MOST]
    names = {node['synset'] for node in kept}
    shown = {
        node['synset']: {
            'synset': node['synset'],
            'name': node['name'],
            'cell': _rates.cell(node),
            'heat': round(10 * node['value']) if node['value'] is not None else 0,
            'images': node.get('images'),
            'ci95': node['ci95'],
            'children': [],
        }
        for node in kept
    }
    roots = []
    for node in kept:
        # A parent has at least the edits of its children, so where it was left out the child becomes a root.
        (shown[node['parent']]['children'] if node['parent'] in names else roots).append(shown[node['synset']])
    for root in roots:
        _open(root, root['cell']['value'])
    return {'roots': roots, 'left_out': len(nodes) - len(kept)} if roots else None


def _open(node, usual) -> bool:
    """Marks what differs from the rate of the root, and the way to it; whether there is any."""
    low, high = node['ci95']
    node['differs'] = not low <= usual <= high
    below = [_open(child, usual) for child in node['children']]  # a list: every one of them is marked
    node['open'] = any(below)
    return node['differs'] or node['open']
