"""Generic attention relevance (Chefer, Gur, Wolf, ICCV 2021, arXiv 2103.15679): attention weighted by its gradient.

A layer's map is A' = mean over heads of max(gradient * attention, 0) (eq. 5). One stream of words, regions or patches,
and a decoder that reads an encoder through a prefix: the read-out's row of (I + A'_L) ... (I + A'_1) (eq. 6), carried
as one vector (attention.carry). With the relevance of attentions (LRP) in place of attentions, this is the
transformer attribution of Chefer et al. 2021 (CVPR).

The rules for two streams that attend to each other, and for an encoder and a decoder with cross-attention, work on
arrays: none of our models has such layers. `transpose`, `norm` and more of the paper's ablations are arguments.

Legend: K targets, B rows, N heads, Q queries, S positions; T, I positions of language and image; R_ti: what the image
gives to language.
"""

import dataclasses

import jax
import jax.numpy as jnp

from evil_jax.attribution import attention
from evil_jax.nn import ops


def relevance(subject, targets_BK, settings):
    """The method on our models: `Settings.rules` '' takes attentions, a rule set the relevances of attentions."""
    maps, gradients = attention.cotangents(subject, targets_BK, 'shared' if settings.rules else 'gradient')
    if settings.rules:
        _, weights = attention.cotangents(subject, targets_BK, settings.rules)
    else:
        weights = maps
    matrices = [heads(g, w) for g, w in zip(gradients, weights)]
    return attention.carry(subject, targets_BK, matrices, settings.start_layer or 0, bool(settings.row_norm))


def heads(gradient_NQS, weight_NQS):
    """A' [..., Q, S] of gradients and attentions (or relevances) [..., N, Q, S] (eq. 5): clamped, then averaged."""
    return jax.nn.relu(ops.wide(gradient_NQS) * ops.wide(weight_NQS)).mean(-3)


@dataclasses.dataclass(frozen=True)
class Cross:
    """Matrices A' of a block of co-attention: language reads the image, the image reads language; then each itself."""

    language_image: jax.Array
    image_language: jax.Array
    language: jax.Array
    image: jax.Array


def normalise(r):
    """Row sums of 1 beside the identity (eq. 8, 9): (R - I) / its row sums + I. A row that has nothing beside the
    identity stays so; the paper's code divides 0 by 0 there."""
    identity = jnp.eye(r.shape[-1], dtype=r.dtype)
    beside = r - identity
    total = beside.sum(-1, keepdims=True)
    return jnp.where(total == 0, 0, beside / jnp.where(total == 0, 1, total)) + identity


def coattention(language, image, crosses, *, norm=True, self_in_cross=True, aggregate=True):
    """Two streams with co-attention (LXMERT; Tan and Bansal 2019).

    Args:
      language, image: matrices A' of the self-attentions of each stream, before the first cross block.
      crosses: list of `Cross`. In the last one only language is updated: only it reaches the read-out, position 0.
      norm: eq. 8 and 9.
      self_in_cross: eq. 10 has the relevances within both streams beside the attention between them.
      aggregate: relevances are added to those before (eq. 6 to 11). Without, they take their place, as in the paper's
        ablation.

    Returns:
      (R_tt, R_ti, R_ii, R_it). The entry of the read-out itself, R_tt[0, 0], is 0.
    """
    eye = lambda a: jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    zeros = jnp.zeros_like
    last = crosses[-1]
    tt, ii, ti, it = eye(last.language), eye(last.image), zeros(last.language_image), zeros(last.image_language)
    add = (lambda r, more: r + more) if aggregate else (lambda r, more: more)
    own = lambda a, ss, sq: (add(ss, a @ ss), add(sq, a @ sq))  # eq. 6, 7
    for a in language:
        tt, ti = own(a, tt, ti)
    for a in image:
        ii, it = own(a, ii, it)
    for cross in crosses:
        # Both directions are computed from the state before the block.
        more_ti, more_tt = _cross(cross.language_image, tt, ii, it, norm, self_in_cross)
        more_it, more_ii = _cross(cross.image_language, ii, tt, ti, norm, self_in_cross)
        ti, tt = add(ti, more_ti), add(tt, more_tt)
        tt, ti = own(cross.language, tt, ti)
        if cross is not last:
            it, ii = add(it, more_it), add(ii, more_ii)
            ii, it = own(cross.image, ii, it)
    return tt.at[..., 0, 0].set(0), ti, ii, it


def encoder_decoder(encoder, decoder):
    """A decoder with cross-attention (DETR; Carion et al. 2020): R_qi, what each position of the encoder gives to each
    query of the decoder.

    Args:
      encoder: matrices A' of its self-attentions.
      decoder: pairs (self-attention, cross-attention) of A', one a layer.
    """
    (first, cross), *_ = decoder
    ii, qq = jnp.eye(cross.shape[-1], dtype=cross.dtype), jnp.eye(first.shape[-1], dtype=first.dtype)
    qi = jnp.zeros_like(cross)
    for a in encoder:
        ii = ii + a @ ii
    for a, cross in decoder:
        qq, qi = qq + a @ qq, qi + a @ qi
        qi = qi + _between(cross, qq, ii, norm=True)  # no eq. 11: the encoder does not read the decoder
    return qi


def _cross(a_sq, ss, qq, qs, norm, self_in_cross):
    """What stream s gets from stream q, and from itself through q (eq. 10, 11)."""
    return _between(a_sq, ss, qq, norm) if self_in_cross else a_sq, a_sq @ qs


def _between(a_sq, ss, qq, norm):
    if norm:
        ss, qq = normalise(ss), normalise(qq)
    return ss.mT @ a_sq @ qq  # transposed as in eq. 10
