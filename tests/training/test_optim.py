import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

from evil_jax import compat
from evil_jax.training import optim

PATHS = ('task/a/kernel', 'task/a/bias', 'expl/b/kernel')


def _problem(seed=0, steps=12):
    rng = np.random.default_rng(seed)
    params = {p: rng.normal(size=(3, 4) if p.endswith('kernel') else (4,)).astype(np.float32) for p in PATHS}
    grads = [{p: rng.normal(size=v.shape).astype(np.float32) for p, v in params.items()} for _ in range(steps)]
    return params, grads


def _ours(config, params, grads):
    tx = optim.make(config, list(params))
    params = jax.tree.map(jnp.asarray, params)
    state, history = tx.init(params), []
    for g in grads:
        updates, state = tx.update(g, state, params)
        params = optax.apply_updates(params, updates)
        history.append(jax.tree.map(np.asarray, params))
    return history


def test_schedule_is_linear_up_and_down():
    value = optim.schedule(2.0, 0.25, 8)
    np.testing.assert_allclose([value(k) for k in range(10)], np.array([2, 4, 6, 5, 4, 3, 2, 1, 0, 0]) / 6 * 2)
    value = optim.schedule(2.0, 0.25, 8, first_is_zero=True)
    np.testing.assert_allclose([value(k) for k in range(10)], np.array([0, 3, 6, 5, 4, 3, 2, 1, 0, 0]) / 6 * 2)
    for zero in (True, False):
        np.testing.assert_allclose([optim.schedule(1.0, 0.0, 4, zero)(k) for k in range(5)], [1, 0.75, 0.5, 0.25, 0])
    assert float(optim.schedule(1.0, 1.0, 4, first_is_zero=True)(3)) == 0.75
    assert float(optim.schedule(1.0, 1.0, 4)(3)) == pytest.approx(0.8)


@pytest.mark.parametrize('steps', [1, 2, 7, 100])
@pytest.mark.parametrize('warmup', [0.0, 0.1, 0.33, 0.5, 1.0])
def test_no_update_is_wasted(steps, warmup):
    """Also where the warm-up is no whole number of updates: rates rise, then fall, between 0 and lr, neither end 0."""
    rates = np.asarray(optim.schedule(3.0, warmup, steps)(np.arange(steps)))
    assert (rates > 0).all() and (rates <= 3.0).all()
    top = int(rates.argmax())
    assert (np.diff(rates[: top + 1]) > 0).all() and (np.diff(rates[top:]) < 0).all()


def test_adamw_equals_torch(fake):
    params, grads = _problem()
    config = fake.config(optim__lr=0.03, optim__weight_decay=0.1, optim__warmup=0.25, optim__clip=0.0, train__steps=12)
    ours = _ours(config, params, grads)
    tensors = {p: torch.nn.Parameter(torch.tensor(v)) for p, v in params.items()}
    groups = [
        {'params': [tensors[p] for p in PATHS if p.endswith('kernel')], 'weight_decay': 0.1},
        {'params': [tensors['task/a/bias']], 'weight_decay': 0.0},
    ]
    tx = torch.optim.AdamW(groups, lr=0.03, betas=(0.9, 0.999), eps=1e-6)
    linear = torch.optim.lr_scheduler.LambdaLR(tx, lambda k: (k + 1) / 4 if k < 3 else max(0, (12 - k) / 9))
    for g, mine in zip(grads, ours):
        for p, tensor in tensors.items():
            tensor.grad = torch.tensor(g[p])
        tx.step()
        linear.step()
        for p in PATHS:
            np.testing.assert_allclose(mine[p], tensors[p].detach().numpy(), atol=2e-6)


@pytest.mark.parametrize('quirks', ['8', 'original', 'fixed'])
def test_quirk_8_bert_adam_equals_its_definition(fake, quirks):
    """Quirk 8: on every parameter and from a learning rate of 0, whatever name and decay are. Without it bert_adam
    differs in the missing bias correction only."""
    params, grads = _problem(1)
    settings = dict(compat=quirks, optim__lr=0.03, optim__weight_decay=0.01, optim__warmup=0.25, optim__clip=0.0)
    fixed = quirks == 'fixed'
    ours = _ours(
        fake.config(train__steps=12, **settings, **({'optim__name': 'bert_adam'} if fixed else {})), params, grads
    )
    p = {k: v.astype(np.float64) for k, v in params.items()}
    m, v = ({k: np.zeros_like(x) for k, x in p.items()} for _ in range(2))
    for number, g in enumerate(grads):
        progress = number / 12
        up = (number + 1) / 4 if fixed else progress / 0.25
        lr = 0.03 * (up if progress < 0.25 else (progress - 1) / (0.25 - 1))
        for k in p:
            decay = 0.0 if fixed and k.endswith('bias') else 0.01
            m[k] = 0.9 * m[k] + 0.1 * g[k]
            v[k] = 0.999 * v[k] + 0.001 * g[k].astype(np.float64) ** 2
            p[k] = p[k] - lr * (m[k] / (np.sqrt(v[k]) + 1e-6) + decay * p[k])
            np.testing.assert_allclose(ours[number][k], p[k], atol=2e-6)
    for k in p:
        assert np.array_equal(ours[0][k], params[k]) is not fixed  # the first learning rate is 0


def test_quirk_8_leaves_frozen_parameters_and_other_quirks_alone(fake):
    params, grads = _problem(4, steps=3)
    frozen = dict(optim__lr_mult=((r'expl/.*', 0.5), (r'.*', 1.0)), optim__warmup=0.5)
    whole, half = (_ours(fake.config(compat='8', **s), params, grads)[2] for s in ({'optim__warmup': 0.5}, frozen))
    assert (
        np.abs(half['expl/b/kernel'] - params['expl/b/kernel']).max()
        < 0.51 * np.abs(whole['expl/b/kernel'] - params['expl/b/kernel']).max()
    )
    others = ','.join(str(n) for n in compat.QUIRKS if n != 8)
    for a, b in zip(_ours(fake.config(compat=others), params, grads), _ours(fake.config(), params, grads)):
        for p in PATHS:
            np.testing.assert_array_equal(a[p], b[p])


def test_clipping_is_by_the_norm_of_all_gradients(fake):
    params, grads = _problem(2, steps=3)
    norm = lambda g: np.sqrt(sum(np.sum(x**2) for x in g.values()))
    clipped = [{p: x / max(1.0, norm(g) / 0.5) for p, x in g.items()} for g in grads]
    with_clip = _ours(fake.config(optim__clip=0.5), params, grads)
    without = _ours(fake.config(optim__clip=0.0), params, clipped)
    for a, b in zip(with_clip, without):
        for p in PATHS:
            np.testing.assert_allclose(a[p], b[p], atol=1e-6)


def test_factors_by_path(fake):
    params, grads = _problem(3, steps=1)
    settings = dict(optim__weight_decay=0.0, optim__clip=0.0)
    whole = _ours(fake.config(**settings), params, grads)[0]
    half = _ours(fake.config(**settings, optim__lr_mult=((r'expl/.*', 0.5), (r'.*', 1.0))), params, grads)[0]
    for p in PATHS:
        share = 0.5 if p.startswith('expl/') else 1.0
        np.testing.assert_allclose(half[p] - params[p], share * (whole[p] - params[p]), rtol=1e-4, atol=1e-7)


def test_frozen_paths_are_not_trained():
    params = {path: jax.ShapeDtypeStruct((2,), jnp.float32) for path in PATHS}
    assert optim.trainable(params, ((r'task/.*', 0.0), (r'.*', 1.0))) == ['expl/b/kernel']


def test_errors_name_the_parameter_and_the_value(fake):
    with pytest.raises(ValueError, match='task/a/kernel'):
        optim.make(fake.config(optim__decay=((r'expl/.*', 1.0),)), PATHS)
    with pytest.raises(ValueError, match=r'optim\.warmup is 1\.5'):
        optim.make(fake.config(optim__warmup=1.5), PATHS)
