"""One training step: a pure function of (state, batch), compiled once, its input state donated."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding, PartitionSpec

from evil_jax import compat
from evil_jax.nn import losses
from evil_jax.training import balance, optim, regime, sharding
from evil_jax.training import state as state_lib


def make_step(net: state_lib.Net, task, optimiser, config, mesh, shardings) -> Callable:
    """Compiles the step of an experiment.

    The loss is task_weight * (mean of `task.loss` over the rows that are no padding)
    + expl_weight * (mean over the explanation tokens of the whole batch), the second by teacher forcing with the gold
    answer as the condition; rows without an explanation count only in the first. With `train.dwa` both weights have a
    factor that changes (balance.py). In the regime 'expl' the first part is told but not trained, and M_T has no
    dropout.
    Micro-batches (`optim.accum`) sum into the same means, so they equal the big batch. Dropout depends on
    (seed, step, micro-batch) only. When loss or gradient is not finite the state keeps its parameters and moments.

    Quirk 7 of compat.py: e-UG's code zeroes the gradient at every micro-batch, so only the last one of a step trains,
    with 1/accum of the gradient of its own means. The losses and the accuracy that are told stay those of the whole
    batch, as they say how good the model is; grad_norm is that of the gradient which the optimiser gets.

    Args:
      net: static half of the model; an explanation module is used if it has parameters below 'expl/'.
      task: `loss`, `predict`, `condition` of tasks/base.py.
      optimiser: of `optim.make`.
      config: the whole config.
      mesh, shardings: of `state.create`.

    Returns:
      function (state, batch) -> (state, metrics); batch is a dict of global arrays, metrics a dict of float32 scalars:
      loss, task_loss, expl_loss, accuracy (soft score of the likeliest answer), grad_norm (before clipping), lr, rows,
      tokens, finite (1 or 0); with `train.dwa` task_weight and expl_weight, its factors.
    """
    trained_paths = regime.trained(config, net.shapes)
    frozen_task = config.train.regime == regime.EXPL
    explains = any(path.startswith('expl/') for path in net.shapes) and config.train.expl_weight != 0
    rate = optim.rate(config)
    last_only = compat.has(config, 7) and config.optim.accum > 1
    dropout_key = state_lib.keys(config)[1]
    accum, averaged = config.optim.accum, bool(config.train.dwa)
    sharding.check_batch(config.train.batch, accum, mesh)

    given = jnp.array([0.0 if frozen_task else config.train.task_weight, config.train.expl_weight], jnp.float32)

    def part(trained, frozen, batch, key, rows, tokens, weights):
        """Loss of some rows, as their share of the whole batch."""
        model = net.merge({**frozen, **trained})
        task_key, expl_key = jax.random.split(key)
        # A frozen M_T depends on nothing that is differentiated: there is no backward pass through it.
        logits_BA, context = model.task(batch, key=None if frozen_task else task_key)
        mask_B = batch['mask'].astype(jnp.float32)
        index_B, _ = task.predict(logits_BA)
        sums = {
            'task_loss': jnp.sum(task.loss(logits_BA, batch) * mask_B) / rows,
            'accuracy': jnp.sum(_soft_score(index_B, batch) * mask_B) / rows,
            'expl_loss': jnp.zeros(()),
        }
        if explains:
            condition = task.condition(batch, batch['gold'])
            logits_BTV = model.expl(batch, context, condition, batch['explanation'], key=expl_key)
            total, _ = losses.token_cross_entropy(logits_BTV, batch['explanation'], _lengths(batch))
            sums['expl_loss'] = total / tokens
        loss = weights[0] * sums['task_loss'] + weights[1] * sums['expl_loss']
        return loss, {'loss': loss, **sums}

    def own(trained, frozen, batch, key, rows, tokens, weights):
        """The loss of some rows by their own means, 1/accum of it, instead of their share (quirk 7)."""
        _, metrics = part(trained, frozen, batch, key, rows, tokens, weights)
        own_rows, own_tokens = (jnp.maximum(n, 1) for n in count(batch))
        task_loss, expl_loss = metrics['task_loss'] * rows / own_rows, metrics['expl_loss'] * tokens / own_tokens
        return (weights[0] * task_loss + weights[1] * expl_loss) / accum, metrics

    def count(batch):
        """How many rows and explanation tokens the means are over."""
        rows = jnp.sum(batch['mask'], dtype=jnp.float32)
        return rows, jnp.sum(jnp.maximum(_lengths(batch) - 1, 0), dtype=jnp.float32) if explains else jnp.zeros(())

    def step(state: state_lib.TrainState, batch):
        trained = {path: state.params[path] for path in trained_paths}
        frozen = {path: value for path, value in state.params.items() if path not in trained}
        rows, tokens = count(batch)
        counted = jnp.stack([rows, tokens]) > 0
        rows = jnp.maximum(rows, 1)
        key = jax.random.fold_in(dropout_key, state.step)
        factors = balance.weights(state.balance) if averaged else jnp.ones_like(given)
        loss = functools.partial(
            own if last_only else part, rows=rows, tokens=jnp.maximum(tokens, 1), weights=given * factors
        )
        grad = jax.value_and_grad(loss, has_aux=True)
        if accum == 1:
            (_, metrics), grads = grad(trained, frozen, batch, jax.random.fold_in(key, 0))
        else:

            def add(sums, item):
                micro, number = item
                (_, metrics), grads = grad(trained, frozen, micro, jax.random.fold_in(key, number))
                if not last_only:
                    grads = jax.tree.map(jnp.add, sums[1], grads)
                return (jax.tree.map(jnp.add, sums[0], metrics), grads), None

            names = ('loss', 'task_loss', 'accuracy', 'expl_loss')
            zero = ({name: jnp.zeros(()) for name in names}, jax.tree.map(jnp.zeros_like, trained))
            (metrics, grads), _ = jax.lax.scan(add, zero, (_micro_batches(batch, accum, mesh), jnp.arange(accum)))
        norm = optax.tree.norm(grads)
        finite = jnp.isfinite(metrics['loss']) & jnp.isfinite(norm)
        updates, opt = optimiser.update(grads, state.opt, trained)
        changed = optax.apply_updates(trained, updates)
        keep = lambda new, old: jnp.where(finite, new, old)
        params = {**state.params, **jax.tree.map(keep, changed, trained)}
        metrics |= {'grad_norm': norm, 'lr': rate(state.step), 'rows': rows, 'tokens': tokens, 'finite': finite}
        memory = state.balance
        if averaged:
            both = jnp.stack([metrics[f'{name}_loss'] for name in balance.LOSSES])
            memory = balance.update(memory, both, counted, state.step, config.train.dwa)
            memory = jax.tree.map(keep, memory, state.balance)
            metrics |= {f'{name}_weight': factors[n] for n, name in enumerate(balance.LOSSES)}
        metrics = {name: value.astype(jnp.float32) for name, value in metrics.items()}
        return state_lib.TrainState(state.step + 1, params, jax.tree.map(keep, opt, state.opt), memory), metrics

    compiled = jax.jit(
        step,
        donate_argnums=0,
        in_shardings=(shardings, NamedSharding(mesh, sharding.BATCH)),
        out_shardings=(shardings, NamedSharding(mesh, PartitionSpec())),
    )

    def run(state, batch):
        with jax.set_mesh(mesh):
            return compiled(state, batch)

    return run


def _lengths(batch):
    """Length of each row's explanation; 0 for padding and where there is none."""
    return jnp.where(batch['mask'], batch['explanation_length'], 0)


def _soft_score(index_B, batch):
    """Soft score of an answer index, from the sparse targets; unused slots have score 0."""
    return jnp.sum(jnp.where(batch['answer_ids'] == index_B[:, None], batch['answer_scores'], 0), axis=-1)


def _micro_batches(batch, accum: int, mesh):
    """[B, ...] -> [accum, B / accum, ...]. Every device cuts its own rows, so nothing moves between devices."""

    def cut(x):
        x = x.reshape(x.shape[0] // accum, accum, *x.shape[1:]).swapaxes(0, 1)
        spec = PartitionSpec(None, *sharding.BATCH)
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))

    return jax.tree.map(cut, batch)
