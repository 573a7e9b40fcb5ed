"""Dropout of attention probabilities: against numpy, on average, and what it must leave alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from evil_jax.nn import attention, ops, transformer

RATE = 0.3


def _qkv(seed=0, rows=2, positions=5, heads=3, size=4):
    r = np.random.default_rng(seed)
    return tuple(jnp.asarray(r.normal(size=(rows, positions, heads, size)), jnp.float32) for _ in range(3))


def _block(kind, attention_dropout, dropout=0.0):
    shared = dict(eps=1e-5, std=0.3, dropout=dropout, dtype=jnp.float32, rngs=nnx.Rngs(params=0))
    rate = {} if attention_dropout is None else {'attention_dropout': attention_dropout}
    if kind == 'post':
        return transformer.PostNormBlock(8, 2, 16, **shared, **rate)
    return transformer.PreNormBlock(8, 2, 16, out_std=0.3, **shared, **rate)


def _x(seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(2, 5, 8)), jnp.float32)


def _args(kind):
    return (jnp.array([5, 3]),) if kind == 'post' else ()


@pytest.mark.parametrize('causal', [False, True])
def test_dropped_attention_by_hand(causal):
    q, k, v = _qkv()
    length, key = np.array([5, 2]), jax.random.key(7)
    found, maps = attention.attend(
        ops.FORWARD, q, k, v, length_B=jnp.asarray(length), causal=causal, dropout=RATE, key=key
    )
    assert maps is None
    keep = np.asarray(jax.random.bernoulli(key, 1 - RATE, (2, 3, 5, 5)))
    wanted = np.zeros((2, 5, 3, 4))
    for b in range(2):
        for n in range(3):
            for i in range(5):
                seen = [j for j in range(length[b]) if j <= i or not causal]
                score = np.array([np.dot(q[b, i, n], k[b, j, n]) / 2 for j in seen], np.float64)
                share = np.exp(score - score.max())
                share /= share.sum()
                for a, j in zip(share, seen):
                    wanted[b, i, n] += keep[b, n, i, j] * a / (1 - RATE) * np.asarray(v[b, j, n])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_mean_over_many_keys_is_no_dropout():
    q, k, v = _qkv(1)
    length = jnp.array([5, 3])
    call = lambda key: attention.attend(ops.FORWARD, q, k, v, length_B=length, dropout=RATE, key=key)[0]
    many = jax.jit(jax.vmap(call))(jax.random.split(jax.random.key(0), 4000))
    plain, _ = attention.attend(ops.FORWARD, q, k, v, length_B=length)
    error = np.abs(np.asarray(many).mean(0) - plain)
    spread = np.asarray(many).std(0) / np.sqrt(len(many))
    assert (error < 5 * spread + 1e-6).all() and np.asarray(many).std(0).min() > 0.01


def test_without_key_or_rate_nothing_changes():
    q, k, v = _qkv(2)
    plain = jax.jit(lambda: attention.attend(ops.FORWARD, q, k, v, causal=True)[0])()
    for rate, key in ((RATE, None), (0.0, jax.random.key(0)), (0.0, None)):
        call = lambda rate=rate, key=key: attention.attend(ops.FORWARD, q, k, v, causal=True, dropout=rate, key=key)[0]
        np.testing.assert_array_equal(jax.jit(call)(), plain)


@pytest.mark.parametrize('kind', ['post', 'pre'])
def test_blocks(kind):
    x, args, key = _x(), _args(kind), jax.random.key(3)
    never, off, on = (_block(kind, rate, dropout=0.1) for rate in (None, 0.0, RATE))
    program = lambda block, key: str(jax.make_jaxpr(lambda x: block(x, *args, key=key)[0])(x))
    assert program(off, None) == program(on, None) == program(never, None)
    assert program(off, key) == program(never, key) != program(on, key)
    call = jax.jit(lambda x, key: on(x, *args, key=key)[0])
    dropped, same, other = (np.asarray(call(x, jax.random.key(seed))) for seed in (3, 3, 4))
    np.testing.assert_array_equal(same, dropped)
    assert np.abs(dropped - other).max() > 0.01


def test_a_length_is_the_row_without_its_end():
    """Of both kinds of blocks, with and without causal attention."""
    x, length = _x(), jnp.array([5, 3])
    free = transformer.PreNormBlock(
        8, 2, 16, causal=False, eps=1e-5, std=0.3, out_std=0.3, dropout=0.0, dtype=jnp.float32, rngs=nnx.Rngs(params=0)
    )
    for block in (free, _block('pre', None), _block('post', None)):
        whole, cut = jax.jit(lambda x, n, b=block: (b(x, n)[0], b(x[:, :3], n - n + 3)[0]))(x, length)
        np.testing.assert_allclose(whole[1, :3], cut[1], atol=1e-6)


def test_layers_have_keys_of_their_own_and_remat_keeps_them():
    x, args, key = _x(1), _args('post'), jax.random.key(5)
    blocks = [_block('post', RATE) for _ in range(2)]
    run = lambda x, remat: transformer.run(blocks, x, *args, remat=remat, key=key)[0]
    total = lambda x, remat: (jnp.sin(out := run(x, remat)).sum(), out)
    graded = jax.jit(jax.value_and_grad(total, has_aux=True), static_argnums=1)
    kept, again = graded(x, False), graded(x, True)
    for a, b in zip(jax.tree.leaves(kept), jax.tree.leaves(again)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)

    def by_hand(x):
        for number, block in enumerate(blocks):
            x = block(x, *args, key=jax.random.fold_in(key, number))[0]
        return x

    np.testing.assert_allclose(kept[0][1], jax.jit(by_hand)(x), atol=1e-6)


def test_prefill_and_extend_drop_nothing():
    x = _x(2)
    programs = set()
    for rate in (RATE, None):
        block = _block('pre', rate)
        first, (_, keys, values) = jax.make_jaxpr(lambda x, block=block: block.prefill(x, 7), return_shape=True)(x)
        empty = [jnp.zeros(shape.shape) for shape in (keys, values)]
        then = jax.make_jaxpr(lambda x, *cache, block=block: block.extend(x, *cache, jnp.array([5, 5])))(
            x[:, 0], *empty
        )
        programs.add((str(first), str(then)))
    assert len(programs) == 1
