"""Which words a heat map picks, against the words that people gave as evidence (ERASER: DeYoung et al. 2020).

    word_Q, cut = words.pieces(text, tokenizer, Q)                            # data/words.py
    score_W = picks.word_scores(relevance_Q, word_Q, len(text.split()))       # picks.py
    instances = [picks.Instance(id, docid, gold, score_W, words.shown(word_Q)), ...]
    result = evaluate(instances)                                              # JSON

Everything is about positions of words in a document, never about how words are spelled. A position is picked or not:
spans that lie over each other count once. Scores are those of ERASER's metrics.py but that nothing divides by zero and
that predictions may be missing, which counts as 0:

    instance_macro  mean over instances of F1, precision, recall; the number of the published figure
    instance_micro  of the positions of all instances together
    iou_f1          a run of picked words is right if its intersection over union with a gold span is at least .5
    auprc, average_precision, roc_auc   of the words' scores, means over instances

Words behind the part of a text that a model reads can never be picked, and stay in the truth. 'ceiling' is what the
best choice among the words that were read would score: its recall is the most that any method's can be.

Legend: Q positions of an encoded row, N instances, B resamples.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from evil_jax.attribution import curves, ranking
from evil_jax.attribution.estimates import estimates, mean, ratio
from evil_jax.attribution.picks import GOLD, Instance, Spans, check, count, oracle, pick, positions, runs

TOP = tuple(range(5, 81, 5))  # words picked: the published runs have them all, the figure from 10 on
_MATCH = 0.5

Key = tuple[str, str]  # annotation id, document id


def token_f1(gold: Mapping[Key, Collection[int]], picked: Mapping[Key, Collection[int]], **bootstrap) -> dict:
    """ERASER's scores of hard rationales on words.

    Args:
      gold: positions that people gave, by annotation and document.
      picked: positions that a method picked; instances that are only here have no gold words. An instance without
        either is none, as in ERASER.
      **bootstrap: resamples, seed, level of `estimates.estimates`; documents are drawn, with all that was asked about
        them.

    Returns:
      JSON: 'instance_macro' and 'instance_micro', each with 'f1', 'p' and 'r': {'value', 'ci95', 'n'}.

    Raises:
      ValueError: no instance.
    """
    pairs = _pairs(gold, picked, int)
    sizes_N3 = np.array([(len(g & p), len(p), len(g)) for g, p in pairs.values()], np.float64).reshape(-1, 3)
    both_N, picked_N, gold_N = sizes_N3.T
    p_N, r_N = _share(both_N, picked_N), _share(both_N, gold_N)
    f1_N = f1(p_N, r_N)

    def statistic(counts_BN):
        both, picked, gold = (counts_BN @ sizes_N3).T
        p, r = _share(both, picked), _share(both, gold)
        return {
            'instance_macro f1': mean(counts_BN, f1_N),
            'instance_macro p': mean(counts_BN, p_N),
            'instance_macro r': mean(counts_BN, r_N),
            'instance_micro f1': f1(p, r),
            'instance_micro p': p,
            'instance_micro r': r,
        }

    return _nested(statistic, pairs, bootstrap)


def iou_f1(gold: Mapping[Key, Spans], picked: Mapping[Key, Spans], threshold: float = _MATCH, **bootstrap) -> dict:
    """ERASER's partial match of spans: a picked span is right if its best IoU with a gold one reaches the threshold.

    Args:
      gold, picked: spans [start, end) by annotation and document; see `picks.runs`.
      **bootstrap: see `token_f1`.

    Returns:
      JSON: 'macro' (F1 of the mean precision of instances with a pick and the mean recall of those with gold spans) and
      'micro', each with 'f1', 'p' and 'r'. Several picks may match one gold span, so that recall may exceed 1.

    Raises:
      ValueError: no instance.
    """
    pairs = _pairs(gold, picked, tuple)
    rows = []
    for theirs, mine in pairs.values():
        right = (_best_iou(mine, theirs) >= threshold).sum() if mine and theirs else 0
        rows.append((right, len(mine), len(theirs)))
    sizes_N3 = np.array(rows, np.float64).reshape(-1, 3)
    right_N, picked_N, gold_N = sizes_N3.T
    p_N, r_N = ratio(right_N, picked_N), ratio(right_N, gold_N)

    def statistic(counts_BN):
        right, picked, gold = (counts_BN @ sizes_N3).T
        micro = _share(right, picked), _share(right, gold)
        macro = (np.nan_to_num(mean(counts_BN, values_N)) for values_N in (p_N, r_N))
        found = {}
        for name, (p, r) in (('macro', macro), ('micro', micro)):
            found |= {f'{name} f1': f1(p, r), f'{name} p': p, f'{name} r': r}
        return found

    return _nested(statistic, pairs, bootstrap)


def soft_scores(instances: Sequence[Instance], **bootstrap) -> dict:
    """ERASER's scores of soft rationales: how the words' scores rank the gold words of a document, mean over instances.

    Instances of gold words only, or of none, do not count for 'average_precision' and 'roc_auc', as in ERASER; those
    without gold words not for 'auprc' either.

    Returns:
      JSON: 'auprc', 'average_precision', 'roc_auc': {'value', 'ci95', 'n'}.
    """
    rows = []
    for instance in instances:
        truth = np.zeros(len(instance.score_W), bool)
        truth[sorted(positions(instance.gold))] = True
        mixed = bool(truth.any() and not truth.all())
        rows.append(
            [
                ranking.auprc(truth, instance.score_W) if truth.any() else np.nan,
                ranking.average_precision(truth, instance.score_W) if mixed else np.nan,
                ranking.roc_auc(truth, instance.score_W) if mixed else np.nan,
            ]
        )
    values = curves.estimate(rows, images=[instance.docid for instance in instances], **bootstrap)
    return dict(zip(('auprc', 'average_precision', 'roc_auc'), values))


def evaluate(instances: Sequence[Instance], tops: Sequence[int | float | str] = (*TOP, GOLD), **bootstrap) -> dict:
    """All scores that need no further run of the model.

    Args:
      tops: how many words are picked; see `picks.count`.

    Returns:
      JSON: 'top', a list of {'top', 'words' (mean number picked), 'token_f1', 'iou_f1' (of runs of picked words),
      'oracle' (token_f1 of the best choice of as many words)}; 'soft'; 'ceiling', token_f1 of `picks.oracle`;
      'instances' and 'cut', the share of gold words that the model did not read.

    Raises:
      ValueError: no instances, two of one annotation and document, a gold or shown word outside the document.
    """
    if not instances:
        raise ValueError('no instances of rationales')
    for instance in instances:
        check(instance)
    if len({instance.key for instance in instances}) < len(instances):
        raise ValueError('two instances are of one annotation and document')
    spans = {instance.key: instance.gold for instance in instances}
    gold = {key: positions(value) for key, value in spans.items()}
    rows = []
    for top in tops:
        numbers = {instance.key: count(top, instance) for instance in instances}
        picked = {i.key: pick(i, numbers[i.key]) for i in instances}
        best = {i.key: oracle(i, numbers[i.key]) for i in instances}
        rows.append(
            {
                'top': top,
                'words': sum(map(len, picked.values())) / len(picked),
                'token_f1': token_f1(gold, picked, **bootstrap),
                'iou_f1': iou_f1(spans, {key: runs(words) for key, words in picked.items()}, **bootstrap),
                'oracle': token_f1(gold, best, **bootstrap),
            }
        )
    readable = {instance.key: oracle(instance) for instance in instances}
    read, all_ = (sum(map(len, sets.values())) for sets in (readable, gold))
    return {
        'instances': len(instances),
        'cut': 1 - read / all_ if all_ else 0.0,
        'top': rows,
        'soft': soft_scores(instances, **bootstrap),
        'ceiling': token_f1(gold, readable, **bootstrap),
    }


def f1(p, r):
    """Harmonic mean of precision and recall, 0 where both are."""
    return _share(2 * p * r, p + r)


def _pairs(gold, picked, kind) -> dict[Key, tuple[set, set]]:
    """What is gold and what was picked in each instance that has either."""
    both = {key: tuple(set(map(kind, of.get(key, ()))) for of in (gold, picked)) for key in [*gold, *picked]}
    return {key: pair for key, pair in both.items() if pair[0] or pair[1]}


def _share(above, below):
    return np.nan_to_num(ratio(above, below))


def _best_iou(spans, others) -> np.ndarray:
    """The largest intersection over union of each span with one of the others."""
    one, other = np.array(list(spans))[:, None], np.array(list(others))[None]
    length = lambda start, end: np.maximum(end - start, 0)
    both = length(np.maximum(one[..., 0], other[..., 0]), np.minimum(one[..., 1], other[..., 1]))
    either = length(one[..., 0], one[..., 1]) + length(other[..., 0], other[..., 1]) - both
    return _share(both, either).max(1)


def _nested(statistic, pairs, bootstrap) -> dict:
    found = estimates(statistic, len(pairs), images=[docid for _, docid in pairs], **bootstrap)
    result: dict[str, dict] = {}
    for path, estimate in found.items():
        average, _, part = path.partition(' ')
        result.setdefault(average, {})[part] = estimate
    return result
