"""What paper 2 compares its rules for two streams with: they read the last block (Chefer et al., ICCV 2021, section 4).

Of co-attention (LXMERT) they are pairs (R_tt, R_ti), language within itself and image for language; R_tt[0, 0], the
read-out's own entry, is 0. Of an encoder and a decoder (DETR) the last cross-attention alone is read: the function of
one array.

Legend: N heads, Q queries, S positions; T, I positions of language and image.
"""

import jax.numpy as jnp

from evil_jax.attribution import generic, gradcam
from evil_jax.attribution.attention import rollout_matrix


def raw_attention(language_NTT, cross_NTI):
    """Mean over heads."""
    return _own(language_NTT.mean(-3)), cross_NTI.mean(-3)


def cam(language, cross):
    """GradCAM; each argument is a pair (gradient, attention) [N, Q, S]."""
    return _own(gradcam.heads(*language)), gradcam.heads(*cross)


def partial_lrp(language_NTT, cross_NTI):
    """Relevances of the attentions: mean over heads, from 0 to 1."""
    return _own(unit_range(language_NTT.mean(-3))), unit_range(cross_NTI.mean(-3))


def transformer_attribution(languages, cross):
    """Language: products over all its layers, not normalised; image: the last cross-attention.

    Args:
      languages: pairs (gradient, relevance) of all self-attentions of language, in their order.
      cross: the pair of the last cross-attention.
    """
    return _own(rollout_matrix([generic.heads(*pair) for pair in languages], row_norm=False)), generic.heads(*cross)


def rollout(languages, images, cross_NTI):
    """Rollouts of the attentions of each stream; between them the last cross-attention.

    Args:
      languages, images: attentions [N, Q, S] of all self-attention layers, in their order; the last of each stands
        behind the last cross-attention.
    """
    means = [[a.mean(-3) for a in stream] for stream in (languages, images)]
    before = [rollout_matrix(stream[:-1], row_norm=True) for stream in means]
    return _own(rollout_matrix(means[0], row_norm=True)), before[0].mT @ cross_NTI.mean(-3) @ before[1]


def unit_range(x):
    """x from 0 to 1 over its last two axes; 0 where all are equal."""
    low = x.min((-2, -1), keepdims=True)
    span = x.max((-2, -1), keepdims=True) - low
    return jnp.where(span == 0, 0, (x - low) / jnp.where(span == 0, 1, span))


def _own(r_TT):
    return r_TT.at[..., 0, 0].set(0)
