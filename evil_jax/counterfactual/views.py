"""What the report draws, from the table of judged edits: colours, distances, kinds of things, answers, and a sample.

Everything is plain JSON, and small however many edits there are. A change is an answer that was not kept.
"""

import collections
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from evil_jax.counterfactual import colours, rates
from evil_jax.counterfactual.edits import FAMILIES
from evil_jax.counterfactual.judged import Judged
from evil_jax.counterfactual.lexicon import Lexicon

_COLOURS = tuple(family for family in FAMILIES if family.startswith('colour_'))
_OF_NOUNS = ('hypernym', 'hyponym', 'sibling', 'delete')
_BINS = 8  # of distances
_CELLS = 1000  # pairs of colours


def colour_map(judged: Judged, support: int = 5) -> dict[str, Any] | None:
    """How often answers change when one colour is replaced by another, over all families of colours.

    Args:
      judged: the table.
      support: number of edits from which a pair is worth a colour on the map.

    Returns:
      `{'colours': {name: '#rrggbb'}, 'cells', 'rows', 'support'}`: the names in order of hue; a cell has 'source',
      'target', 'distance' and the fields of `rates.by_group`, a row the same of one source and any target. None without
      edits of colours.
    """
    table = judged.take(_of_families(judged, _COLOURS))
    if not len(table):
        return None
    change = ~table.kept
    pairs, pair_N = np.unique(np.stack([table.source, table.target]), axis=1, return_inverse=True)
    pair_N = pair_N.ravel()
    far = np.bincount(pair_N, np.nan_to_num(table.distance)) / np.bincount(pair_N)
    names = [(table.names['source'][a], table.names['target'][b]) for a, b in pairs.T]
    found = rates.by_group(change, pair_N, table.image, len(names))
    cells = [{'source': a, 'target': b, 'distance': float(d)} | row for (a, b), d, row in zip(names, far, found)]
    cells = [cell for cell in cells if {_css(cell['source']), _css(cell['target'])} <= colours.NAMES.keys()]
    sources, source_N = np.unique(table.source, return_inverse=True)
    rows = rates.by_group(change, source_N, table.image, len(sources))
    css = {_css(name): name for cell in cells for name in (cell['source'], cell['target'])}
    return {
        'colours': {css[name]: '#' + bytes(colours.NAMES[name]).hex() for name in colours.hue_order(css)},
        'cells': sorted(cells, key=lambda c: -c['n'])[:_CELLS],
        'rows': [{'source': table.names['source'][code]} | row for code, row in zip(sources, rows)],
        'support': support,
    }


def by_distance(judged: Judged, *, seed: int = 0, resamples: int = 1000) -> dict[str, Any] | None:
    """Changed answers against the distance of the colours: do they become more frequent the further the colour?

    Returns:
      `{'bins': [{'x': mean distance, 'low', 'high'} with the fields of `rates.by_group`], 'far_minus_near':
      {'value', 'ci95'}, 'falls': 'never', 'within' or 'clearly'}`: bins of about as many edits each; the difference
      between the last and the first with its bootstrap interval over images; and whether the rate falls on the way,
      within the intervals or from one interval to another that lies below it. None with less than two distances.
    """
    table = judged.take(_of_families(judged, _COLOURS) & ~np.isnan(judged.distance))
    edges = np.unique(np.quantile(table.distance, np.linspace(0, 1, _BINS + 1))) if len(table) else []
    if len(edges) < 2:
        return None
    bin_N = np.clip(np.searchsorted(edges, table.distance, side='right') - 1, 0, len(edges) - 2)
    _, bin_N = np.unique(bin_N, return_inverse=True)  # bins without any edit are none
    counts = np.bincount(bin_N)
    found = rates.by_group(~table.kept, bin_N, table.image, len(counts))
    sums = lambda values: np.bincount(bin_N, values)
    low = [float(table.distance[bin_N == i].min()) for i in range(len(counts))]
    high = [float(table.distance[bin_N == i].max()) for i in range(len(counts))]
    bins = [
        {'x': float(x), 'low': a, 'high': b} | row
        for x, a, b, row in zip(sums(table.distance) / counts, low, high, found)
    ]
    return {
        'bins': bins,
        'far_minus_near': _difference(table, bin_N, seed, resamples),
        'falls': _falls(found),
    }


def tree(judged: Judged, lexicon: Lexicon, family: str, least: int = 20) -> list[dict[str, Any]]:
    """Changed answers by what the exchanged noun is a kind of.

    Every noun counts for its sense and for all senses above it on the path of first hypernyms; a sense with one child
    only, of as many edits, is left out.

    Args:
      judged: the table.
      lexicon: whose hypernyms are climbed.
      family: of the edits.
      least: edits from which a sense is listed.

    Returns:
      Rows with 'synset', 'parent' ('' of a root), 'name' and the fields of `rates.by_group`.
    """
    table = judged.take(judged.where(family=family))
    known = [code for code in np.unique(table.source_synset) if table.names['source_synset'][code]]
    paths = {code: _path(lexicon, table.names['source_synset'][code]) for code in known}
    rows = collections.defaultdict(list)
    for code, path in paths.items():
        of_sense = np.flatnonzero(table.source_synset == code)
        for synset in path:
            rows[synset].append(of_sense)
    parents = {
        synset: path[i + 1] if i + 1 < len(path) else '' for path in paths.values() for i, synset in enumerate(path)
    }
    members = {synset: np.concatenate(parts) for synset, parts in rows.items()}
    members = {synset: own for synset, own in members.items() if len(own) >= least}
    sizes = collections.defaultdict(set)
    for synset in members:
        sizes[parents[synset]].add(len(members[synset]))
    # Where a child has all of its parent's edits, the parent says nothing more.
    kept = {synset for synset in members if len(members[synset]) not in sizes[synset]}
    found = []
    for synset in sorted(kept, key=lambda synset: (-len(members[synset]), synset)):
        above = parents[synset]
        while above and above not in kept:
            above = parents[above]
        own = members[synset]
        row = rates.of(~table.kept[own], table.image[own])
        found.append({'synset': synset, 'parent': above, 'name': lexicon.lemmas(synset)[0]} | row)
    return found


def trees(judged: Judged, lexicon: Lexicon, least: int = 20) -> dict[str, list[dict[str, Any]]]:
    """`tree` of every family of nouns that has one."""
    found = {family: tree(judged, lexicon, family, least) for family in _OF_NOUNS}
    return {family: rows for family, rows in found.items() if rows}


def transitions(judged: Judged, most: int = 10) -> dict[str, Any] | None:
    """Which answer becomes which.

    Args:
      judged: the table.
      most: answers with a row and a column of their own, the most frequent ones.

    Returns:
      `{'answers', 'counts', 'changed'}`: [answers + 1][answers + 1] numbers of edits, before by after, all other
      answers last; and the rate of changes of each row. None without edits.
    """
    if not len(judged):
        return None
    names = judged.names['answer']
    seen = np.bincount(judged.answer, minlength=len(names)) + np.bincount(judged.answer_star, minlength=len(names))
    top = [int(code) for code in np.argsort(-seen, kind='stable')[:most] if seen[code]]
    place = np.full(len(names), len(top))
    place[top] = np.arange(len(top))
    before, after = place[judged.answer], place[judged.answer_star]
    side = len(top) + 1
    counts = np.bincount(before * side + after, minlength=side * side).reshape(side, side)
    return {
        'answers': [names[code] for code in top],
        'counts': counts.tolist(),
        'changed': rates.by_group(~judged.kept, before, judged.image, side),
    }


def sample(judged: Judged, limit: int, seed: int = 0, first: Iterable[str] = ()) -> list[int]:
    """Rows for the browser of the report: the named edits, then equally many of every family and transition.

    Args:
      judged: the table.
      limit: of rows.
      seed: of the draw.
      first: ids of edits that must be among them, the examples of rules; those that are not in the table are passed
        over.

    Returns:
      Row numbers, each once, the named ones first, the others in random order.
    """
    first = list(dict.fromkeys(first))
    heads = {name.rpartition('#')[0] for name in first}
    mine = [code for code, name in enumerate(judged.names['example']) if name in heads]
    by_id = {judged.id(row): row for row in np.flatnonzero(np.isin(judged.example, mine)).tolist()}
    named = [by_id[name] for name in first if name in by_id]
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(judged))
    stratum = judged.family.astype(np.int64)[order] * 256 + judged.transition[order]
    # The n-th row of every stratum before the n+1-th of any.
    by_stratum = np.argsort(stratum, kind='stable')
    _, start, size = np.unique(stratum[by_stratum], return_index=True, return_counts=True)
    turn = np.empty(len(judged), np.int64)
    turn[by_stratum] = np.arange(len(judged)) - np.repeat(start, size)
    drawn = order[np.argsort(turn, kind='stable')].tolist()
    known = set(named)
    rest = [row for row in drawn[: limit + len(named)] if row not in known][: max(0, limit - len(named))]
    return named + [rest[i] for i in generator.permutation(len(rest))]


def _of_families(judged, families: Sequence[str]):
    codes = [code for code, name in enumerate(judged.names['family']) if name in families]
    return np.isin(judged.family, codes)


def _css(name):
    return name.replace(' ', '')


def _falls(rows):
    values, ends = [row['value'] for row in rows], [row['ci95'] for row in rows]
    if all(a <= b for a, b in itertools.pairwise(values)):
        return 'never'
    clear = any(later[1] < earlier[0] for earlier, later in itertools.combinations(ends, 2))
    return 'clearly' if clear else 'within'


def _difference(table, bin_N, seed, resamples):
    """Rate of changes of the last bin minus that of the first, with a bootstrap interval over images."""
    last = bin_N.max()
    near, far = bin_N == 0, bin_N == last
    change = ~table.kept
    _, image = np.unique(table.image, return_inverse=True)
    sums = np.stack([np.bincount(image, v) for v in (change & near, near, change & far, far)], axis=1)

    def differences(drawn):
        near_k, near_n, far_k, far_n = (drawn @ sums).T
        with np.errstate(invalid='ignore'):
            return far_k / far_n - near_k / near_n

    ci95 = rates.bootstrap(differences, len(sums), seed, resamples)
    return {'value': float(change[far].mean() - change[near].mean()), 'ci95': ci95}


def _path(lexicon, synset):
    """The sense and what is above it, by first hypernyms, up to the root."""
    path = [synset]
    while above := lexicon.hypernyms(path[-1]):
        path.append(above[0])
    return path
