"""Perturbation: is what a heat map calls relevant what the model needs? All shares, both directions, one compiled call.

    predict = removal.predictor(model, batch, how)
    clean_BA, logits_2FBA = curves(predict, values_BN, PRESETS['chefer2020'], removal.removable(batch, how))
    measured = measure(clean_BA, logits_2FBA, gold)  # a few numbers a point, of which curves.py makes results

Positive perturbation takes the most relevant items first (a faithful map: answers change soon), negative the least
relevant ones (they change late). Each step starts from the whole input.

Everything is pure, per sample, and meant to be called under `jax.jit`; `lax.map` runs one forward at a time, so that
the memory is that of one. `predict` may be any function of a mask: words instead of tokens, say, are
`lambda keep_BW: predict(jnp.take_along_axis(keep_BW, word_BQ, 1))`.

Legend: B batch, N items, F shares, T = F + 1 points (the first is the untouched input), M single items, A answers.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

_COUNTS = {
    'removed': lambda n, p: np.floor(n * p),
    'kept': lambda n, p: n - np.floor((1 - p) * n),
    'rounded': lambda n, p: np.rint(n * p),
    'some': lambda n, p: np.minimum(np.maximum(np.floor(n * p), 1), n),
}
SECOND = ('negative', 'kept')
PROBABILITIES = {'softmax': lambda x: jax.nn.softmax(x, axis=-1), 'sigmoid': jax.nn.sigmoid}


@dataclasses.dataclass(frozen=True)
class Steps:
    """Shares of items that are removed, and how many items a share is.

    Attributes:
      fractions: increasing, in (0, 1]; the untouched input, 0, always is the first point and is not named.
      count: of n items, in float64 as Python computes it: 'removed' int(n p); 'kept' n - int((1 - p) n), which is
        another number where rounding errors matter; 'rounded' round(n p), halves to even; 'some' max(1, int(n p)).
      second: what stands beside the positive direction. 'negative': the least relevant items are removed; 'kept': the
        most relevant ones, as many as `count` says, are all that stays (sufficiency).

    Raises:
      ValueError: fractions that do not increase or lie outside (0, 1], or a name that is not there.
    """

    fractions: tuple[float, ...]
    count: str = 'removed'
    second: str = 'negative'

    def __post_init__(self):
        object.__setattr__(self, 'fractions', tuple(map(float, self.fractions)))
        if not self.fractions or not all(0 < p <= 1 for p in self.fractions):
            raise ValueError(f'fractions {self.fractions}: wanted shares above 0 (which is there anyway) up to 1')
        if any(a >= b for a, b in zip(self.fractions, self.fractions[1:])):
            raise ValueError(f'fractions {self.fractions} do not increase')
        if self.count not in _COUNTS:
            raise ValueError(f'count {self.count!r}: wanted one of {", ".join(_COUNTS)}')
        if self.second not in SECOND:
            raise ValueError(f'second {self.second!r}: wanted one of {", ".join(SECOND)}')

    def removed(self, n) -> np.ndarray:
        """Numbers of items that are removed of n, a number or an array of them: int32 [F, ...]."""
        n = np.asarray(n, np.float64)
        return np.stack([_COUNTS[self.count](n, p) for p in self.fractions]).astype(np.int32)


PRESETS = {
    # Chefer et al. 2020 (arXiv 2012.09838), pixels.
    'chefer2020': Steps((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)),
    # Chefer et al. 2021 (arXiv 2103.15679): texts, and LXMERT's 36 boxes; then VisualBERT's 100 boxes.
    'chefer2021': Steps((0.25, 0.5, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0), 'kept'),
    'chefer2021_boxes': Steps((0.5, 0.75, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0), 'kept'),
    # Liu et al. (ICML 2022, "Rethinking attention-model explainability"), AUCTP.
    'auctp': Steps((0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 'rounded'),
    # DeYoung et al. 2020 (ERASER): comprehensiveness, sufficiency and their AOPC. A rationale of nothing is none.
    'eraser': Steps((0.01, 0.05, 0.1, 0.2, 0.5), 'some', second='kept'),
}


def rank(values_BN, valid_BN=None):
    """Rank of each item of its example, int32 BN: 0 is the largest value; items that are not valid come last.

    Of equal values the one of lower index comes first (a stable sort; torch.topk leaves it open), and NaN comes behind
    all numbers.
    """
    values_BN = values_BN.astype(jnp.promote_types(values_BN.dtype, jnp.float32))
    late_BN = jnp.zeros(values_BN.shape, jnp.int32) if valid_BN is None else jnp.where(valid_BN, 0, 1)
    index_BN = jnp.broadcast_to(jnp.arange(values_BN.shape[1], dtype=jnp.int32), values_BN.shape)
    order_BN = jax.lax.sort((late_BN, -values_BN, index_BN), dimension=1, num_keys=2, is_stable=True)[2]
    return jnp.argsort(order_BN, axis=1).astype(jnp.int32)


def curves(predict: Callable, values_BN, steps: Steps, valid_BN=None):
    """(clean_BA, logits_2FBA): answers to the untouched input, and with shares of items removed.

    The first axis is the direction: positive, then what `steps.second` says.

    Args:
      predict: `(keep_BN) -> logits_BA`, for example of `removal.predictor`. It is traced once.
      values_BN: relevance of each item.
      valid_BN: which items may be removed; shares are of their number. None: all.

    Raises:
      ValueError: valid_BN of another shape than values_BN.
    """
    batch, items = values_BN.shape
    if valid_BN is None:  # of pixels a table of all numbers would be large
        count_B = jnp.full(batch, items)
        k_FB = jnp.repeat(jnp.asarray(steps.removed(items))[:, None], batch, axis=1)
    else:
        count_B = _valid(values_BN, valid_BN).sum(1)
        k_FB = jnp.asarray(steps.removed(np.arange(items + 1)))[:, count_B]
    valid_BN = _valid(values_BN, valid_BN)
    rank_BN = rank(values_BN, valid_BN)
    if steps.second == 'negative':
        second_BN, second_FB = rank(-values_BN, valid_BN), k_FB
    else:  # from the last one up, so that exactly those stay that the first half removes
        second_BN, second_FB = count_B[:, None] - 1 - rank_BN, count_B - k_FB
    ranks_2BN = jnp.stack([rank_BN, second_BN])
    k_MB = jnp.concatenate([jnp.zeros((1, batch), k_FB.dtype), k_FB, second_FB])
    number = len(steps.fractions)
    direction_M = np.repeat([0, 1], [1 + number, number])

    def answer(step):
        direction, k_B = step
        gone_BN = (ranks_2BN[direction] < k_B[:, None]) & valid_BN
        return predict(~gone_BN)

    logits_MBA = jax.lax.map(answer, (direction_M, k_MB))
    return logits_MBA[0], logits_MBA[1:].reshape(2, number, *logits_MBA.shape[1:])


def measure(clean_BA, logits_2FBA, gold, probability: str = 'softmax') -> dict[str, jax.Array]:
    """What the curves need of each example, float [B, 2, T] each.

    score: of the likeliest answer: 1 or 0, or its soft score. Of equal logits the one of lower index counts. NaN where
      there is no right answer (-1).
    log_odds: log p(target) - log p(second largest), by softmax. The target is the right answer; with soft scores, or
      without one, the answer that was likeliest at first.
    max_logit, max_probability: the largest ones.
    probability: of the answer that was likeliest at first.

    Args:
      clean_BA, logits_2FBA: of `curves`.
      gold: the right answer of each example, int B; or soft scores of all answers, float BA.
      probability: 'softmax', or 'sigmoid' where each answer is judged on its own.

    Raises:
      ValueError: shapes that do not fit, a single answer, an unknown probability.
    """
    clean_BA, logits_2FBA, gold = map(jnp.asarray, (clean_BA, logits_2FBA, gold))
    answers = clean_BA.shape[1]
    if gold.shape not in (clean_BA.shape, clean_BA.shape[:1]):
        wanted = f'{clean_BA.shape[:1]}, or {clean_BA.shape} of soft scores'
        raise ValueError(f'right answers have shape {gold.shape}, wanted {wanted}')
    if answers < 2:
        raise ValueError('there is one answer only: it is given whatever is removed')
    clean_2TBA = jnp.broadcast_to(clean_BA, (2, 1, *clean_BA.shape))
    logits_2TBA = jnp.concatenate([clean_2TBA, logits_2FBA], axis=1)
    logits_B2TA = jnp.moveaxis(logits_2TBA, 2, 0).astype(jnp.promote_types(clean_BA.dtype, jnp.float32))
    probabilities_B2TA = _probability(logits_B2TA, probability)
    answer_B2T, first_B = logits_B2TA.argmax(-1), clean_BA.argmax(-1)
    if gold.ndim == 2:
        score_B2T, target_B = _pick(gold[:, None, None], answer_B2T), first_B
    else:
        score_B2T = jnp.where(gold[:, None, None] < 0, jnp.nan, answer_B2T == gold[:, None, None])
        target_B = jnp.where(gold < 0, first_B, gold)
    return {
        'score': score_B2T.astype(logits_B2TA.dtype),
        # Differences of logits are those of log probabilities.
        'log_odds': _pick(logits_B2TA, target_B[:, None, None]) - jax.lax.top_k(logits_B2TA, 2)[0][..., 1],
        'max_logit': logits_B2TA.max(-1),
        'max_probability': probabilities_B2TA.max(-1),
        'probability': _pick(probabilities_B2TA, first_B[:, None, None]),
    }


def singles(
    predict: Callable, values_BN, valid_BN=None, *, most: int = 20, chunk: int = 1, probability: str = 'softmax'
) -> dict[str, jax.Array]:
    """What each item does alone: the `most` ones of largest absolute relevance are removed, one at a time (Liu et al.).

    Args:
      predict, values_BN, valid_BN: see `curves`.
      most: items of an example, one forward each; 0 = all.
      chunk: forwards at a time; memory grows with it.
      probability: see `measure`.

    Returns:
      Each of shape BM, the largest absolute value first: 'values', relevance; 'valid', False beyond the items that an
      example has; 'drop', p(x) - p(x without the item), of the answer that was likeliest at first; 'change', its
      absolute value, as a mean over all answers.

    Raises:
      ValueError: valid_BN of another shape than values_BN, numbers below 0 or 1, an unknown probability.
    """
    if most < 0 or chunk < 1:
        raise ValueError(f'most {most}, chunk {chunk}: wanted at least 0 items and 1 forward at a time')
    valid_BN, items = _valid(values_BN, valid_BN), values_BN.shape[1]
    number = min(most, items) if most else items
    ranks_BN = rank(jnp.abs(values_BN), valid_BN)
    order_BM = jnp.argsort(ranks_BN, axis=1)[:, :number]
    # Nothing has rank -1: the first forward is that of the untouched input.
    single = lambda m: predict((ranks_BN != m) | ~valid_BN)
    logits = jax.lax.map(single, jnp.arange(-1, number), batch_size=chunk if chunk > 1 else None)
    probabilities = _probability(
        jnp.moveaxis(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)), 1, 0), probability
    )
    drop_BMA = probabilities[:, :1] - probabilities[:, 1:]
    take = lambda x_BN: jnp.take_along_axis(x_BN, order_BM, axis=1)
    return {
        'values': take(values_BN),
        'valid': take(valid_BN),
        'drop': _pick(drop_BMA, logits[0].argmax(-1)[:, None]),
        'change': jnp.abs(drop_BMA).mean(-1),
    }


def _probability(logits, kind):
    if kind not in PROBABILITIES:
        raise ValueError(f'probability {kind!r}: wanted one of {", ".join(PROBABILITIES)}')
    return PROBABILITIES[kind](logits)


def _pick(x, index):
    """x [..., A] at index [...], where axes of length 1 fit all."""
    shape = jnp.broadcast_shapes(x.shape[:-1], index.shape)
    index = jnp.broadcast_to(index, shape)[..., None]
    return jnp.take_along_axis(jnp.broadcast_to(x, (*shape, x.shape[-1])), index, axis=-1)[..., 0]


def _valid(values_BN, valid_BN):
    if valid_BN is None:
        return jnp.ones(values_BN.shape, bool)
    if valid_BN.shape != values_BN.shape:
        raise ValueError(f'relevance has shape {values_BN.shape}, but removable items {valid_BN.shape}')
    return valid_BN
