import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from evil_jax.training import sharding
from evil_jax.training import step as step_lib


def _arrays(tree):
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def _log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def test_losses_are_means_over_rows_and_over_tokens(fake, trainer):
    _, _, net, state, step = trainer(train__task_weight=2.0, train__expl_weight=0.5)
    batch = fake.batch(0)
    model = net.merge(jax.tree.map(np.asarray, state.params))
    logits_BA, context = model.task(batch)
    words_BTV = model.expl(batch, context, fake.Task().condition(batch, batch['gold']), batch['explanation'])
    task = [-_log_softmax(np.asarray(logits_BA))[b, batch['gold'][b]] for b in range(7)]  # row 7 is padding
    words = _log_softmax(np.asarray(words_BTV, np.float64))
    tokens = [
        -words[b, t - 1, batch['explanation'][b, t]] for b in range(7) for t in range(1, batch['explanation_length'][b])
    ]
    _, metrics = step(state, batch)
    assert metrics['rows'] == 7 and metrics['tokens'] == len(tokens)
    np.testing.assert_allclose(metrics['task_loss'], np.mean(task), rtol=1e-5)
    np.testing.assert_allclose(metrics['expl_loss'], np.mean(tokens), rtol=1e-5)
    np.testing.assert_allclose(metrics['loss'], 2 * np.mean(task) + 0.5 * np.mean(tokens), rtol=1e-5)
    right = np.argmax(np.asarray(logits_BA), -1) == batch['gold']
    np.testing.assert_allclose(metrics['accuracy'], right[:7].mean(), rtol=1e-6)
    assert metrics['finite'] == 1


@pytest.mark.parametrize('accum', [2, 4])
def test_micro_batches_equal_the_big_batch(fake, trainer, accum):
    """Token counts differ between the micro-batches: a mean of their means would be another loss."""
    _, _, _, big, big_step = trainer()
    _, _, _, small, small_step = trainer(optim__accum=accum)
    for number in range(5):
        big, expected = big_step(big, fake.batch(number))
        small, metrics = small_step(small, fake.batch(number))
        for name, value in expected.items():
            np.testing.assert_allclose(metrics[name], value, rtol=2e-5, err_msg=name)
    for a, b in zip(_arrays(big.params), _arrays(small.params)):
        np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.parametrize('quirks, accum', [('7', 2), ('original', 4), ('fixed', 2)])
def test_quirk_7_only_the_last_micro_batch_trains(fake, trainer, accum, quirks):
    """Plain gradient descent, by the definition: the gradient of the last micro-batch's own means, divided by accum.
    Token counts differ between the micro-batches, and one row of the last is padding."""
    config, mesh, net, state, _ = trainer(compat=quirks, optim__accum=accum, train__expl_weight=0.5)
    descent = optax.sgd(1.0)
    shardings = jax.tree.map(lambda x: x.sharding, state)
    state = state._replace(opt=descent.init(state.params))
    shardings = shardings._replace(opt=state.opt)
    run = step_lib.make_step(net, fake.Task(), descent, config, mesh, shardings)
    batch = fake.batch(3)
    before = {path: np.array(value) for path, value in state.params.items()}

    def means(params, rows):
        model, part = net.merge(params), {name: value[rows] for name, value in batch.items()}
        logits_BA, context = model.task(part)
        words_BTV = model.expl(part, context, fake.Task().condition(part, part['gold']), part['explanation'])
        task = fake.Task().loss(logits_BA, part) * part['mask']
        chosen = jax.nn.log_softmax(words_BTV)[:, :-1]
        chosen = jnp.take_along_axis(chosen, part['explanation'][:, 1:, None], -1)[..., 0]
        length = np.where(part['mask'], part['explanation_length'], 0)
        counts = np.arange(1, fake.LENGTH) < length[:, None]
        return task.sum() / part['mask'].sum() - 0.5 * (chosen * counts).sum() / counts.sum()

    every = np.arange(8)
    counted, scale = (every[accum - 1 :: accum], accum) if quirks in ('7', 'original') else (every, 1)
    wanted = jax.grad(means)(before, counted)
    state, metrics = run(state, sharding.place(batch, mesh))
    for path, value in state.params.items():
        np.testing.assert_allclose(before[path] - value, wanted[path] / scale, atol=1e-6, err_msg=path)
    np.testing.assert_allclose(metrics['loss'], means(before, every), rtol=1e-5)  # of the whole batch, both ways
    norm = np.sqrt(sum(float((g**2).sum()) for g in wanted.values())) / scale
    np.testing.assert_allclose(metrics['grad_norm'], norm, rtol=1e-5)
    assert metrics['rows'] == 7


def test_quirk_7_needs_micro_batches(fake, trainer):
    """With one micro-batch a step there is nothing to lose."""
    (_, _, _, a, step_a), (_, _, _, b, step_b) = trainer(compat='7'), trainer()
    a, b = step_a(a, fake.batch(0))[0], step_b(b, fake.batch(0))[0]
    for x, y in zip(_arrays(a.params), _arrays(b.params)):
        np.testing.assert_array_equal(x, y)


def test_frozen_parameters_stay_and_have_no_moments(fake, trainer):
    _, _, _, state, step = trainer(optim__lr_mult=((r'task/hidden/.*', 0.0), (r'.*', 1.0)), optim__weight_decay=0.5)
    before = {path: np.array(value) for path, value in state.params.items()}
    assert not any('task/hidden' in path for path in sharding.paths(state.opt))
    for number in range(3):
        state, _ = step(state, fake.batch(number))
    for path, value in state.params.items():
        assert np.array_equal(before[path], value) == path.startswith('task/hidden'), path


def test_the_loss_falls(fake, trainer):
    _, _, _, state, step = trainer(train__steps=60)
    losses = []
    for _ in range(60):
        state, metrics = step(state, fake.batch(0))
        losses.append(float(metrics['loss']))
    assert losses[-1] < 0.3 * losses[0]


def test_a_loss_that_is_not_finite_changes_nothing(fake, trainer):
    _, _, _, state, step = trainer()
    state, _ = step(state, fake.batch(0))
    before = [a.copy() for a in _arrays((state.params, state.opt))]
    bad = fake.batch(1)
    bad['features'][0, 0] = np.nan
    state, metrics = step(state, bad)
    assert metrics['finite'] == 0
    for a, b in zip(before, _arrays((state.params, state.opt))):
        np.testing.assert_array_equal(a, b)


def test_dropout_follows_the_step_number(fake, trainer):
    """Same step, same noise, which a bit-exact resume needs; another step, another noise."""
    loss = []
    for number in (0, 0, 1):
        _, _, _, state, step = trainer(dropout=0.5)
        state = state._replace(step=jax.device_put(np.int32(number), state.step.sharding))
        loss.append(float(step(state, fake.batch(0))[1]['loss']))
    assert loss[0] == loss[1] != loss[2]


def test_the_state_is_donated(fake, trainer):
    _, _, _, state, step = trainer()
    step(state, fake.batch(0))
    assert all(x.is_deleted() for x in jax.tree.leaves((state.params, state.opt)))
