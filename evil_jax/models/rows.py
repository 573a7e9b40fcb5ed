"""Rows of an encoder where each example has choices of its own (VCR): its C pairs of question and choice, then the
question alone. Without choices (C = 0) a row is an example, and these functions change nothing.

Legend: B batch, C choices, K rows of the encoder: B, or B (C + 1). B stays the major axis, so that no row changes its
device.
"""

import jax.numpy as jnp


def join(batch, name: str, choices: int):
    """An array of the text ('' the ids, 'type', 'length', 'tags') for all rows: K, ..."""
    name = f'_{name}' if name else ''
    text_B = batch[f'text{name}']
    if not choices:
        return text_B
    both_BC = jnp.concatenate([batch[f'choices{name}'], text_B[:, None]], axis=1)
    return both_BC.reshape(-1, *text_B.shape[1:])


def repeat(x_B, choices: int):
    """Something of the picture, for all rows: B, ... -> K, ..."""
    if not choices:
        return x_B
    repeated_BC = jnp.broadcast_to(x_B[:, None], (len(x_B), choices + 1, *x_B.shape[1:]))
    return repeated_BC.reshape(-1, *x_B.shape[1:])


def split(x_K, choices: int):
    """Rows as B, C + 1, ...; unchanged without choices."""
    return x_K.reshape(-1, choices + 1, *x_K.shape[1:]) if choices else x_K


def alone(x_K, choices: int):
    """Of each example the row without a choice: B, ..."""
    return split(x_K, choices)[:, -1] if choices else x_K
