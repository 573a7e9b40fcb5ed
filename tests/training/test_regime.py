"""What each regime trains, on the fake model; on real ones and on disk: tests/modes/test_regimes.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evil_jax.training import regime, sharding
from evil_jax.training import state as state_lib


def run(fake, trained, steps=3):
    """(state before, after, metrics of each step, net, config); `trained`: of the fixture `trainer`."""
    config, _, net, state, step = trained
    before, state, found = jax.device_get(state), jax.tree.map(jnp.copy, state), []
    for number in range(steps):
        state, metrics = step(state, fake.batch(number))
        found.append({name: float(value) for name, value in metrics.items()})
    return before, jax.device_get(state), found, net, config


@pytest.fixture(scope='module')
def frozen(trainer):
    """The regime 'expl', with all that could move M_T: its own loss, the explanation's, decay."""
    settings = dict(optim__weight_decay=0.5, optim__accum=2, train__task_weight=3.0)
    return trainer(dropout=0.5, train__regime='expl', **settings)


def changed(before, after):
    return {path.partition('/')[0] for path, x in after.params.items() if x.tobytes() != before.params[path].tobytes()}


def test_a_frozen_task_module_stays_bit_for_bit(fake, frozen):
    """It has no moments either, and no dropout."""
    before, after, metrics, net, config = run(fake, frozen)
    assert changed(before, after) == {'expl'}
    assert not any('task/' in path for path in sharding.paths(after.opt))
    assert all(m['loss'] == m['expl_loss'] > 0 for m in metrics), 'the other loss is told, not trained'
    batch = fake.batch(0)
    logits_BA = jax.jit(lambda params: net.merge(params).task(batch)[0])(before.params)  # without dropout
    wanted = (fake.Task().loss(logits_BA, batch) * batch['mask']).sum() / batch['mask'].sum()
    assert metrics[0]['task_loss'] == pytest.approx(float(wanted), rel=1e-5)
    rows = {line.split()[0]: line.split()[1:3] for line in state_lib.overview(net, config).splitlines()[1:]}
    assert rows['task'] == ['211', '0'] and rows['expl'] == ['272', '272'] and rows['total'] == ['483', '272']


def test_it_explains_the_gold_answer(fake, frozen):
    """With other gold answers M_E sees another condition, whatever M_T would answer."""
    *_, state, step = frozen
    batch, losses = fake.batch(0), []
    for gold in (batch['gold'], (batch['gold'] + 1) % fake.ANSWERS):
        _, metrics = step(jax.tree.map(jnp.copy, state), batch | {'gold': gold})
        losses.append(float(metrics['expl_loss']))
    assert abs(losses[0] - losses[1]) > 1e-3


def test_without_an_explanation_module_the_task_module_learns(fake, trainer):
    before, after, metrics, net, config = run(fake, trainer(dropout=0.5, train__regime='task'))
    assert changed(before, after) == {'task'} == {path.partition('/')[0] for path in net.shapes}
    assert all(m['expl_loss'] == m['tokens'] == 0 and m['loss'] == m['task_loss'] > 0 for m in metrics)
    assert 'expl' not in state_lib.overview(net, config)


def test_frozen_parameters_and_regimes_together(fake, frozen):
    config = fake.config(train__regime='expl', optim__lr_mult=((r'expl/wte/.*', 0.0), (r'.*', 1.0)))
    assert regime.trained(config, frozen[2].shapes) == ['expl/out/bias', 'expl/out/kernel']


@pytest.mark.parametrize(
    'changes, message',
    [
        (dict(train__regime='expl', model__expl__name=''), "is 'expl', but model.expl.name is ''"),
        (dict(train__regime='expl', train__expl_weight=0.0), 'expl_weight 0: nothing would be trained'),
        (dict(train__regime='task', train__task_weight=0.0), 'task_weight 0: nothing would be trained'),
        (dict(train__regime='task', train__dwa=5), 'train.dwa is 5: it balances two losses, .* only one'),
        (dict(train__dwa=5, train__expl_weight=0.0), 'train.dwa is 5'),
        (dict(train__task_weight=0.0, train__expl_weight=0.0), 'and train.expl_weight 0.0: nothing would be trained$'),
        (dict(train__task_weight=0.0, model__expl__name=''), "and model.expl.name '': nothing would be trained"),
        (dict(train__expl_weight=0.0), "nothing would train M_E. To train M_T alone: train.regime='task'"),
        (
            dict(train__task_weight=0.0, model__expl__image='none'),
            "model.expl.image 'none': nothing would train M_T, .*: train.regime='expl'",
        ),
        (dict(model__expl__name=''), "train.select is 's_o', but a model without explanations has only s_t"),
    ],
)
def test_what_makes_no_sense_is_refused(fake, changes, message):
    with pytest.raises(ValueError, match=message):
        regime.check(fake.config(**changes))


def test_explanations_alone_train_what_they_read(fake, trainer):
    """The answers have no weight: all of M_T learns but its answer head."""
    changes = dict(train__task_weight=0.0)
    regime.check(fake.config(**changes))
    before, after, *_ = run(fake, trainer(**changes))
    still = {path for path, x in after.params.items() if np.array_equal(x, before.params[path])}
    assert {path.rpartition('/')[0] for path in still} == {'task/head'}


def test_what_is_not_read_is_said(fake, capsys, caplog):
    config = fake.config(train__regime='task', model__expl__init='hf:gpt2')
    regime.check(config)
    assert not capsys.readouterr().out and not caplog.text
    regime.tell(config)
    assert 's_t chooses the best checkpoint (train.select is s_o)' in capsys.readouterr().out
    assert "model.expl.init 'hf:gpt2' is not read" in caplog.text
    regime.check(fake.config(train__dwa=5))
    regime.tell(fake.config(train__dwa=5))
    assert not capsys.readouterr().out


def test_the_model_of_a_regime(fake):
    config = fake.config(train__regime='task')
    assert regime.built(config).model.expl.name == '' and config.model.expl.name == 'gpt2'
    assert regime.built(config, 'joint') is config and regime.built(fake.config(), 'task').model.expl.name == ''
