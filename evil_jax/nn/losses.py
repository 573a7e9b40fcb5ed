"""Losses, in float32 whatever the logits' type: answers per example, explanations per token."""

import jax
import jax.numpy as jnp


def soft_target_bce(logits_BA: jax.Array, targets_BA: jax.Array) -> jax.Array:
    """Binary cross-entropy on soft targets, averaged over the answers and multiplied by their number.

    That is the sum over the answers: -sum_a t_a log s(z_a) + (1 - t_a) log s(-z_a), s the logistic function
    (bottom-up top-down VQA, Teney et al. 2018, eq. 4 without its mean; e-UG on VQA-X multiplies the mean by A: facts
    1.4).

    Args:
      logits_BA: z.
      targets_BA: t in [0, 1]. All zero is a valid target: no answer of the vocabulary is right.

    Returns:
      loss_B, float32.
    """
    logits_BA = logits_BA.astype(jnp.float32)
    # max(z, 0) - z t + log(1 + exp(-|z|)), the form that neither overflows nor cancels; softplus(z) - z t is the same.
    return jnp.sum(jax.nn.softplus(logits_BA) - logits_BA * targets_BA, axis=-1)


def softmax_cross_entropy(logits_BA: jax.Array, label_B: jax.Array) -> jax.Array:
    """-log softmax(z)[label] of each example (e-UG on e-SNLI-VE: facts 1.4).

    Args:
      logits_BA: z.
      label_B: class index; a negative one means unlabelled and costs nothing.

    Returns:
      loss_B, float32.
    """
    logits_BA = logits_BA.astype(jnp.float32)
    picked_B = jnp.take_along_axis(logits_BA, jnp.maximum(label_B, 0)[:, None], axis=-1)[:, 0]
    loss_B = jax.nn.logsumexp(logits_BA, axis=-1) - picked_B
    return jnp.where(label_B >= 0, loss_B, 0.0)


def token_cross_entropy(logits_BTV: jax.Array, tokens_BT: jax.Array, length_B: jax.Array):
    """Next-token cross-entropy of a batch of pieces, summed over the tokens that are learnt.

    Learnt are all tokens of a piece but its first (the begin marker), that is tokens[1:length]; the mean is taken over
    the tokens of the whole (global) batch, so sum and count are returned (GPT-2's language-model loss; facts 1.5).

    Args:
      logits_BTV: logits[:, t] predicts tokens[:, t + 1]; those at the last position are not used.
      tokens_BT: pieces, right padded.
      length_B: valid tokens of each row; 0 leaves the row out.

    Returns:
      (sum of losses, number of tokens): float32 scalars.
    """
    logits_BSV = logits_BTV[:, :-1].astype(jnp.float32)
    next_BS = tokens_BT[:, 1:]
    picked_BS = jnp.take_along_axis(logits_BSV, next_BS[..., None], axis=-1)[..., 0]
    loss_BS = jax.nn.logsumexp(logits_BSV, axis=-1) - picked_BS
    learnt_BS = jnp.arange(1, tokens_BT.shape[1])[None] < length_B[:, None]
    return jnp.sum(jnp.where(learnt_BS, loss_BS, 0.0)), jnp.sum(learnt_BS, dtype=jnp.float32)
