"""A model and a task of a few hundred parameters, with the interfaces of models/vlnle.py and tasks/base.py."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from evil_jax import config as config_lib
from evil_jax.models.context import Condition, Context
from evil_jax.nn import losses, ops

ANSWERS, WORDS, WIDTH, LENGTH = 3, 16, 8, 6


class Answerer(nnx.Module):
    def __init__(self, rngs, dropout):
        self.hidden = ops.Linear(4, WIDTH, std=0.5, dtype=jnp.float32, rngs=rngs)
        self.layers = nnx.List([ops.Linear(WIDTH, WIDTH, std=0.5, dtype=jnp.float32, rngs=rngs) for _ in range(2)])
        self.head = ops.Linear(WIDTH, ANSWERS, std=0.5, dtype=jnp.float32, rngs=rngs)
        self.dropout = dropout

    def __call__(self, batch, key=None):
        x = ops.dropout(jnp.tanh(self.hidden(batch['features'])), self.dropout, key)
        for layer in self.layers:
            x = jnp.tanh(layer(x))
        return self.head(x), Context(x[:, None], jnp.ones(len(x), jnp.int32), x, {})


class Explainer(nnx.Module):
    def __init__(self, rngs, dropout):
        self.wte = ops.Embedding(WORDS, WIDTH, std=0.5, dtype=jnp.float32, rngs=rngs)
        self.out = ops.Linear(WIDTH, WORDS, std=0.5, dtype=jnp.float32, rngs=rngs)
        self.dropout = dropout

    def __call__(self, batch, context, condition, tokens_BT, key=None):
        x = self.wte(tokens_BT) + context.pooled_BD[:, None] + self.wte(condition.tokens_BT)
        return self.out(ops.dropout(x, self.dropout, key))


class Pair(nnx.Module):
    def __init__(self, key, dropout=0.0, explains=True):
        rngs = nnx.Rngs(params=key)
        self.task = Answerer(rngs, dropout)
        self.expl = Explainer(rngs, dropout) if explains else None


class Task:
    def loss(self, logits_BA, batch):
        return losses.softmax_cross_entropy(logits_BA, batch['gold'])

    def predict(self, logits_BA):
        return jnp.argmax(logits_BA, -1), jax.nn.softmax(logits_BA)

    def condition(self, batch, index_B):
        return Condition(index_B, index_B[:, None], jnp.ones_like(index_B))


def batch(number: int, rows: int = 8) -> dict[str, np.ndarray]:
    """Row 0 has no explanation, the last row is padding; explanation lengths differ."""
    rng = np.random.default_rng(number)
    gold = rng.integers(0, ANSWERS, rows).astype(np.int32)
    length = rng.integers(2, LENGTH + 1, rows).astype(np.int32)
    length[0] = 0
    ids, scores = np.zeros((rows, 10), np.int32), np.zeros((rows, 10), np.float32)
    ids[:, 0], scores[:, 0] = gold, 1
    mask = np.ones(rows, bool)
    mask[-1] = False
    return {
        'mask': mask, 'row': np.arange(rows, dtype=np.int32) + number * rows,
        'features': rng.normal(size=(rows, 4)).astype(np.float32), 'gold': gold,
        'explanation': rng.integers(0, WORDS, (rows, LENGTH)).astype(np.int32), 'explanation_length': length,
        'answer_ids': ids, 'answer_scores': scores,
    }  # fmt: skip


def config(**changes):
    """A config for the fake; keys such as `optim__lr=0.1`, or `compat='7'`, set values."""
    c = config_lib.base()
    c.train.update(steps=20, batch=8)
    c.optim.update(lr=0.05, warmup=0.0)
    c.model.dtype = 'float32'
    for key, value in changes.items():
        *sections, name = key.split('__')
        functools.reduce(lambda part, section: part[section], sections, c)[name] = value
    return c
