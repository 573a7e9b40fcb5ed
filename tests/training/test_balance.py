"""Dynamic weight averaging, against the paper's equation; with micro-batches; after a restart."""

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from evil_jax.training import balance, checkpoint
from evil_jax.training import state as state_lib

WEIGHTS = ('task_weight', 'expl_weight')


def by_the_paper(losses, window):
    """Equation 7 of Liu et al. 2019 for losses [steps, K]: the weights of each step."""
    epochs = [np.mean(losses[i : i + window], axis=0) for i in range(0, len(losses), window)]
    found = []
    for t in range(len(epochs)):
        if t < 2:
            found.append(np.ones(2))
            continue
        w = epochs[t - 1] / epochs[t - 2]
        found.append(2 * np.exp(w / 2) / np.exp(w / 2).sum())
    return np.repeat(found, window, axis=0)[: len(losses)]


class Runner:
    """A compiled step, and fresh states for it."""

    def __init__(self, trainer, **changes):
        settings = {'train__dwa': 2, 'train__expl_weight': 0.5} | changes
        self.config, self.mesh, _, self._state, self.step = trainer(**settings)

    def fresh(self):
        return jax.tree.map(jnp.copy, self._state)

    def run(self, fake, state, first=0, last=8):
        """(metrics of each step, last state)"""
        found = []
        for number in range(first, last):
            state, metrics = self.step(state, fake.batch(number))
            found.append({name: float(value) for name, value in metrics.items()})
        return found, state


@pytest.fixture(scope='module')
def runner(trainer):
    return Runner(trainer)


@pytest.fixture(scope='module')
def once(fake, runner):
    return runner.run(fake, runner.fresh())


def test_weights_are_the_papers(once):
    metrics, _ = once
    losses = np.array([[m['task_loss'], m['expl_loss']] for m in metrics])
    weights = np.array([[m[name] for name in WEIGHTS] for m in metrics])
    np.testing.assert_allclose(weights, by_the_paper(losses, 2), rtol=1e-5)
    assert (weights[:4] == 1).all() and (np.abs(weights[4:] - 1) > 1e-3).all()
    np.testing.assert_allclose([m['loss'] for m in metrics], (weights * losses * [1, 0.5]).sum(1), rtol=1e-5)


def test_the_gradient_has_the_weights(fake, runner):
    """A loss that hardly weighs hardly moves its module."""
    state = runner.fresh()
    memory = {'last': jnp.float32([100, 1]), 'before': jnp.float32([1, 1])}
    state = state._replace(balance=jax.device_put(state.balance | memory, state.balance['last'].sharding))
    before = jax.device_get(state.params)
    metrics, state = runner.run(fake, state, last=1)
    assert metrics[0]['task_weight'] == pytest.approx(2) and metrics[0]['expl_weight'] == pytest.approx(0, abs=1e-9)
    moved = {path: np.abs(np.asarray(x) - before[path]).max() for path, x in state.params.items()}
    assert moved['expl/out/bias'] < 1e-6 and moved['task/head/bias'] > 1e-2


def test_micro_batches_see_the_same_weights(once, fake, trainer):
    other = Runner(trainer, optim__accum=4)
    for one, two in zip(once[0], other.run(fake, other.fresh())[0], strict=True):
        for name in ('loss', *WEIGHTS):
            np.testing.assert_allclose(two[name], one[name], rtol=2e-5, err_msg=name)


def test_a_loss_that_is_not_finite_is_not_remembered(fake, runner):
    state, _ = runner.step(runner.fresh(), fake.batch(0))
    before = jax.device_get(state.balance)
    bad = fake.batch(1)
    bad['features'][0, 0] = np.nan
    after = jax.device_get(runner.step(state, bad)[0].balance)
    assert all(np.array_equal(before[name], after[name]) for name in before) and before['count'].tolist() == [1, 1]


def test_steps_without_explanations_say_nothing_about_their_loss():
    memory = balance.start()
    for step, counted in enumerate(([True, True], [True, False], [True, False], [True, False])):
        losses = np.float32([2 + step, 5 if counted[1] else 0])
        memory = balance.update(memory, losses, np.array(counted), np.int32(step), 2)
    assert memory['before'].tolist() == [2.5, 5] and memory['last'].tolist() == [4.5, 5]
    first, second = balance.weights(memory).tolist()
    assert first > 1 > second and first + second == pytest.approx(2)


def test_a_restart_goes_on_with_the_weights(once, fake, runner, tmp_path):
    """Interrupted inside a window, and compared bit for bit."""
    _, state = runner.run(fake, runner.fresh(), last=5)
    saved = checkpoint.Checkpoints(tmp_path, keep=1)
    saved.save(state, {})
    saved.wait()
    again, _ = saved.restore(state_lib.abstract_state(fake.Pair, runner.config, runner.mesh)[-1])
    saved.close()
    _, again = runner.run(fake, again, first=5)
    pairs = zip(jax.tree.leaves(again), jax.tree.leaves(once[1]), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


def test_without_it_checkpoints_are_what_they_were(trainer, tmp_path):
    """So that older ones restore."""
    *_, state, _ = trainer()
    assert state.balance is None
    saved = checkpoint.Checkpoints(tmp_path, keep=1)
    saved.save(state, {})
    saved.close()
    tree = ocp.StandardCheckpointHandler().metadata(tmp_path / 'checkpoints' / '0' / 'train').tree
    assert tree.keys() == {'step', 'opt'}
