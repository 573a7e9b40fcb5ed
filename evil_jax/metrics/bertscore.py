"""BERTScore (Zhang et al., ICLR 2020, arXiv 1904.09675): greedy matching of token vectors by cosine. Scale 0..1.

Precision is the mean over the candidate's tokens of the largest cosine with any token of the reference, recall the
same the other way round, `bertscore` their harmonic mean F1. As in the package bert-score, [CLS] and [SEP] have weight
0 but stay targets to be matched; a token whose cosines are all negative counts 0 (there padding has cosine 0, and all
but the longest text of a batch have some); of several references the largest value counts, for P, R and F1 apart; a
pair with an empty text (blanks only) has the raw score 0. Rescaled by a baseline, scores may be negative.

With idf a token weighs log((n + 1) / (df + 1)), where n references of the scored set have it df times: a subset has its
own. What was matched is kept, so that a subset costs no encoder; where all weights are 0 so is the score.

The encoder is passed in (`interop.encoder.open_encoder`), texts are embedded in portions and their vectors forgotten.
"""

import dataclasses
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from evil_jax.metrics import base
from evil_jax.records import Score

NAMES = ('bertscore', 'bertscore_p', 'bertscore_r')
_PORTION = 400_000  # characters that are embedded at once: about 100,000 tokens, 0.3 GB of 768 numbers
_HELD = 512 << 20  # bytes of vectors that may wait for a later portion with the same text
_ALONE = 1 << 18  # multiplications of a matrix product that OpenBLAS does not share between threads


class Embed(Protocol):
    """What turns texts into vectors: `embed(texts) -> [(vectors [T, D] float32, ids [T]), ...]`, special tokens too.

    Attributes:
      special: ids of [CLS] and [SEP].
      layer: whose output the vectors are.
      signature: what the vectors depend on, for the metric's signature: model, weights, layer, tokeniser, versions.
    """

    special: Sequence[int]
    layer: int
    signature: Mapping[str, str]

    def __call__(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]: ...


@dataclasses.dataclass(frozen=True)
class Baseline:
    """P, R and F1 of unrelated sentences at one layer: scores become (x - b) / (1 - b)."""

    values: tuple[float, float, float]
    name: str


def read_baseline(path, layer: int) -> Baseline:
    """The line of a layer in a baseline file of the bert-score package (`rescale_baseline/en/MODEL.tsv`).

    Its form, whatever the name says, is LAYER,P,R,F and numbers between commas.

    Raises:
      ValueError: no such file or line, another form, or a baseline that is not below 1; names the file.
    """
    path = pathlib.Path(path)
    try:
        lines = path.read_text(encoding='utf-8').split('\n')
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f'{path}: the baseline cannot be read: {error}') from error
    header, *rows = (line.strip() for line in lines)
    if [cell.strip() for cell in header.split(',')] != ['LAYER', 'P', 'R', 'F']:
        raise ValueError(f'{path}:1: found {header[:80]!r}, wanted LAYER,P,R,F')
    found = {}
    for number, row in enumerate(rows, 2):
        if not row:
            continue
        cells = row.split(',')
        try:
            [key, *values] = int(cells[0]), *map(float, cells[1:])
        except ValueError as error:
            raise ValueError(f'{path}:{number}: found {row[:80]!r}, wanted a layer and three numbers') from error
        if len(values) != 3 or not all(math.isfinite(value) and value < 1 for value in values):
            raise ValueError(f'{path}:{number}: found {row[:80]!r}, wanted a layer and three numbers below 1')
        if key in found:
            raise ValueError(f'{path}:{number}: layer {key} occurs twice')
        found[key] = tuple(values)
    if layer not in found:
        there = f'layers {min(found)} ... {max(found)}' if found else 'no layer'
        raise ValueError(f'{path} has {there}, wanted the line of layer {layer}')
    return Baseline(found[layer], path.name)


def table(
    predictions: base.Predictions, references: base.References, *, embed: Embed, idf: bool = False, baseline=None
) -> base.Table:
    """Statistics per example: F1, P, R, whose means are the corpus scores.

    Args:
      embed: see `Embed`.
      idf: rare tokens weigh more.
      baseline: path of a file as `read_baseline` wants it, or its result; None leaves the scores as they are.

    Raises:
      ValueError: as `base.join` and `read_baseline` do.
    """
    if baseline is not None and not isinstance(baseline, Baseline):
        baseline = read_baseline(baseline, embed.layer)
    ids, candidates, reference_lists = base.join(predictions, references)
    matches = _Matches(candidates, reference_lists, embed)
    return _table(ids, matches, np.arange(len(ids)), embed, idf, baseline)


def score(
    predictions: base.Predictions, references: base.References, *, embed: Embed, idf: bool = False, baseline=None
) -> dict[str, Score]:
    """The scores of `table`, which see for the arguments."""
    return table(predictions, references, embed=embed, idf=idf, baseline=baseline).scores()


def _table(ids, matches: '_Matches', rows: np.ndarray, embed, idf: bool, baseline) -> base.Table:
    values_N3 = matches.score(rows, idf)
    rescale = 'no'
    if baseline is not None:
        b = np.array(baseline.values)
        values_N3 = (values_N3 - b) / (1 - b)
        rescale = f'{baseline.name}({",".join(f"{value:.6g}" for value in b)})'
    values_N3 = values_N3[:, [2, 0, 1]]  # in the order of NAMES
    counts = np.diff(matches.starts)[rows]
    options = {
        **embed.signature,
        'idf': f'references({counts.sum()})' if idf else 'no',
        'rescale': rescale,
        'case': 'mixed',
        'nrefs': base.nrefs([range(n) for n in counts]),
        'multi': 'max',
        'scale': '0..1' if baseline is None else 'rescaled',
    }
    # Without idf a row does not depend on the others.
    select = (lambda picked: _table(ids, matches, rows[picked], embed, idf, baseline)) if idf else None
    return base.Table(
        ids=tuple(ids[i] for i in rows),
        statistics=values_N3,
        sentence=dict(zip(NAMES, values_N3.T)),
        corpus=lambda sums, counts: {name: base.ratio(sums[..., k], counts) for k, name in enumerate(NAMES)},
        signatures={name: base.signature(name, **options) for name in NAMES},
        select=select,
    )


class _Matches:
    """Of every pair of a candidate and a reference that occurs: tokens of both, and the best cosine of each token.

    N rows have M references in all, `starts` [N + 1] says whose; K pairs are distinct; `pair_M` tells which one it is.
    """

    def __init__(self, candidates: Sequence[str], reference_lists: Sequence[Sequence[str]], embed: Embed):
        index: dict[str, int] = {}
        number = lambda text: index.setdefault(text, len(index))
        candidate_N = np.array([number(text) for text in candidates], np.int64)
        self.text_M = np.array([number(text) for texts in reference_lists for text in texts], np.int64)
        counts = [len(texts) for texts in reference_lists]
        self.starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        keys_M = np.repeat(candidate_N, counts) * len(index) + self.text_M
        keys_K, self.pair_M = np.unique(keys_M, return_inverse=True)
        self.pairs_K2 = np.stack([keys_K // max(len(index), 1), keys_K % max(len(index), 1)], 1)
        self.special = np.array(sorted(set(embed.special)), np.int64)
        self.tokens: list[np.ndarray] = [np.zeros(0, np.int64)] * len(index)
        best = self._match(list(index), embed)
        self.sides = [_Side([self.tokens[t] for t in texts], cosines) for texts, cosines in zip(self.pairs_K2.T, best)]
        self.empty_K = np.logical_or(*(side.empty(self.special) for side in self.sides))
        self.words = 1 + max((int(tokens.max()) for tokens in self.tokens if len(tokens)), default=0)

    def _match(self, texts: list[str], embed: Embed):
        """(best cosines of the candidate's tokens, of the reference's), a list of K arrays each."""
        length = np.array([len(text) for text in texts], np.int64)
        portion_K = np.cumsum(length[self.pairs_K2].sum(1)) // _PORTION
        last = dict(zip(self.pairs_K2.T.ravel().tolist(), np.tile(portion_K, 2).tolist()))
        for text, portion in zip(self.pairs_K2[:, 0].tolist(), portion_K.tolist()):
            last[text] = max(last[text], portion)
        held: dict[int, np.ndarray] = {}
        best = ([], [])
        for portion in np.unique(portion_K):
            pairs = self.pairs_K2[portion_K == portion]
            wanted = [t for t in np.unique(pairs).tolist() if t not in held]
            for text, (vectors, tokens) in zip(wanted, embed([texts[t] for t in wanted])):
                held[text], self.tokens[text] = _unit(vectors), np.asarray(tokens, np.int64)
            for c, r in pairs.tolist():
                cosine = _product(held[c], held[r])
                best[0].append(np.maximum(0, cosine.max(1)))
                best[1].append(np.maximum(0, cosine.max(0)))
            held = {t: vectors for t, vectors in held.items() if last[t] > portion}
            if sum(vectors.nbytes for vectors in held.values()) > _HELD:
                held = {}
        return best

    def score(self, rows: np.ndarray, idf: bool) -> np.ndarray:
        """P, R and F1 [rows, 3]; with idf of these rows' references."""
        if not len(rows):
            return np.zeros((0, 3))
        inside = np.concatenate([np.arange(self.starts[i], self.starts[i + 1]) for i in rows])
        weight_V = self._idf(self.text_M[inside]) if idf else np.ones(self.words)
        if not idf:
            weight_V[self.special[self.special < self.words]] = 0
        p_K, r_K = (np.where(self.empty_K, 0, side.mean(weight_V)) for side in self.sides)
        both_K = p_K + r_K
        f_K = np.divide(2 * p_K * r_K, both_K, out=np.zeros_like(both_K), where=both_K != 0)
        owner = np.repeat(np.arange(len(rows)), np.diff(self.starts)[rows])
        best = np.full((len(rows), 3), -np.inf)
        np.maximum.at(best, owner, np.stack([p_K, r_K, f_K], 1)[self.pair_M[inside]])
        return best

    def _idf(self, texts: np.ndarray) -> np.ndarray:
        """Weight of every token, from references given by the numbers of their texts."""
        df_V = np.zeros(self.words)
        for text, count in zip(*np.unique(texts, return_counts=True)):
            df_V[np.unique(self.tokens[text])] += count
        return np.log((len(texts) + 1) / (df_V + 1))


class _Side:
    """Tokens and best cosines of one text of each of K pairs, one after the other."""

    def __init__(self, tokens: list[np.ndarray], cosines: list[np.ndarray]):
        self.size = len(tokens)
        self.tokens = np.concatenate([np.zeros(0, np.int64), *tokens])
        self.cosines = np.concatenate([np.zeros(0, np.float32), *cosines])
        self.pair = np.repeat(np.arange(self.size), [len(t) for t in tokens])

    def empty(self, special: np.ndarray) -> np.ndarray:
        """Whether a text has no token beside the special ones [K]."""
        return np.bincount(self.pair, ~np.isin(self.tokens, special), self.size) == 0

    def mean(self, weight_V: np.ndarray) -> np.ndarray:
        """Weighted mean of each pair's cosines [K]; 0 where nothing weighs anything."""
        weights = weight_V[self.tokens]
        total_K = np.bincount(self.pair, weights, self.size)
        sums_K = np.bincount(self.pair, weights * self.cosines, self.size)
        return np.divide(sums_K, total_K, out=np.zeros(self.size), where=total_K > 0)


def _unit(vectors: np.ndarray) -> np.ndarray:
    vectors = np.asarray(vectors, np.float32)
    norms = np.sqrt(np.einsum('td,td->t', vectors, vectors))
    return vectors / np.maximum(norms, np.finfo(np.float32).tiny)[:, None]


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left @ right.T, in blocks small enough for one thread: to wait for a second one takes longer than such a product,
    on a busy machine 30 times as long (measured)."""
    step = _ALONE // max(right.size, 1)
    if not 4 <= step < len(left):
        return left @ right.T
    return np.concatenate([left[i : i + step] @ right.T for i in range(0, len(left), step)])
