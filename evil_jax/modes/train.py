"""--mode=train: from a built data set to checkpoints; continues a run that was interrupted."""

import contextlib
import copy
import filecmp
import functools
import pathlib
import shutil
from collections.abc import Sequence

import jax
import numpy as np
from absl import logging
from jax.experimental import multihost_utils

from evil_jax.data import load, pipeline, tokenizers
from evil_jax.models import settings, vlnle
from evil_jax.modes import _scoring, decode
from evil_jax.records import Example, Prediction
from evil_jax.tasks import base
from evil_jax.tasks._fields import gold_answer
from evil_jax.training import checkpoint, initial, log, processes, regime, sharding, signals
from evil_jax.training import state as state_lib
from evil_jax.training import step as step_lib

TOGETHER = True  # every process of several runs this mode
_WRITING = ('train', 'sweep', 'export')  # modes that leave what a run can begin with
_AHEAD = 2  # steps that may be queued on the device: enough to hide the host, few enough to stop soon


class Diverged(ValueError):
    """A loss or gradient is not finite. Of several processes all raise it, after the same step."""


def check_files(config, workdir, earlier: Sequence[str]) -> None:
    """Refuses, before a data set is built, what `run` would refuse whatever is in it.

    Args:
      config: of the run.
      workdir: of the run.
      earlier: modes of this command before this one; what they write may be missing.

    Raises:
      ValueError: a regime in which something is not trained, settings that the models do not read, initial parameters
        that are not there or that a frozen M_T cannot have.
    """
    regime.check(config)
    settings.check(regime.built(config))
    initial.check(config, workdir, coming=any(mode in _WRITING for mode in earlier))


def run(config, workdir) -> dict[str, float]:
    """Trains up to `train.steps`.

    Writes below `workdir`: config.json, assets/, checkpoints/, best/, metrics.jsonl, tb/. A folder that already holds a
    run of this config is continued from its last checkpoint, bit for bit on the same mesh.

    Returns:
      step, the last training metrics, best_step and best_score.

    Raises:
      ValueError: a workdir of another config, data set or vocabulary, or in which another process trains.
      Diverged: a loss that is not finite (step and example ids named).
      SystemExit: after SIGTERM (code 0) or SIGINT (code 130), once the state is saved.
    """
    workdir = pathlib.Path(workdir)
    regime.check(config)
    regime.tell(config)
    mesh = sharding.make_mesh(config)
    sharding.check_batch(config.train.batch, config.optim.accum, mesh)
    assets = tokenizers.load_assets(pathlib.Path(config.data.dir) / 'assets')
    examples = load.load_examples(config, config.data.train)
    task = base.make_task(config, assets)
    reader = load.open_inputs(config)
    processes.same('data set', checkpoint.data_hash(config))
    with checkpoint.exclusive(workdir, 'train'):
        checkpoint.check_config(config, workdir)
        checkpoint.check_data(config, workdir)
        config = checkpoint.remembered(config, workdir)
        return _train(config, workdir, mesh, assets, examples, task, reader)


def _train(config, workdir, mesh, assets, examples, task, reader):
    build = functools.partial(vlnle.build, regime.built(config), assets)
    net, optimiser, state, shardings = state_lib.create(build, config, mesh)
    if not processes.first(lambda: checkpoint.steps(workdir / 'checkpoints')):
        state = _begin(config, state, net, assets)  # before anything is written: they may not fit
    dev = _Dev(config, net, task, reader, mesh) if config.train.eval_every else None

    def prepare():
        _copy_assets(pathlib.Path(config.data.dir) / 'assets', workdir)
        checkpoint.write_config(config, workdir)

    processes.alone(prepare)
    print(state_lib.overview(net, config), flush=True)
    with contextlib.ExitStack() as stack:
        origin = checkpoint.origin(config, assets)
        saved = stack.enter_context(contextlib.closing(checkpoint.Checkpoints(workdir, config.train.keep, origin)))
        state, meta = _resume(saved, state)
        start = int(state.step)
        journal = stack.enter_context(
            contextlib.closing(
                log.Log(
                    workdir,
                    steps=config.train.steps,
                    start=start,
                    batch=config.train.batch,
                    active=processes.index() == 0,
                )
            )
        )
        loop = _Loop(config, task, examples, reader, dev, mesh, saved, journal, meta)
        step = step_lib.make_step(net, task, optimiser, config, mesh, shardings)
        return loop.run(state, step, stack.enter_context(signals.Stop()))


def _begin(config, state, net, assets):
    """A fresh state with the parameters that the config takes from elsewhere."""
    params, told = initial.begin(config, state.params, net.shapes, assets)
    for line in told:
        print(line, flush=True)
    return state._replace(params=params)


def _resume(saved, state):
    """The state to go on from, and what was saved with it: the last checkpoint, else the given state."""
    processes.same('last checkpoint', saved.latest_step())
    if saved.latest_step() is None:
        return state, {}
    return saved.restore(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), state))


class _Loop:
    """One run: steps, and what is due between them."""

    def __init__(self, config, task, examples, reader, dev, mesh, saved, journal, meta):
        self.config, self.examples, self.dev = config, examples, dev
        self.encode = pipeline.Encode(task, reader)
        self.mesh, self.saved, self.journal = mesh, saved, journal
        self.evaluated = meta.get('evaluated', 0)  # last step that was evaluated
        self.done = meta.get('pending', [])  # metrics of steps since the last line of the log
        self.running = []  # (step, rows, metrics still on the device)
        self.last = {}

    def run(self, state, step_fn, stop) -> dict[str, float]:
        train, number = self.config.train, int(state.step)
        start = number
        rows = self._batches(number)
        with contextlib.closing(rows):
            ahead = next(rows) if number < train.steps else None
            while True:
                ending = number == train.steps
                stopping = stop.agreed(now=ending or self._evaluation_due(number))
                if number and not stopping and self._evaluation_due(number):
                    self._evaluate(state, number)
                if number != start and (stopping or ending or number % train.save_every == 0):
                    self._save(state)
                if stopping:
                    self._leave(stop, number)
                if ending:
                    return self._finish(state, number)
                host, batch = ahead
                state, metrics = step_fn(state, batch)
                number += 1
                self.running.append((number, host, metrics))
                # The next batch is read and sent while the device works on this one.
                ahead = next(rows) if number < train.steps else None
                if len(self.running) > _AHEAD:
                    jax.block_until_ready(self.running[-1 - _AHEAD][2])
                if number == start + 1:
                    jax.block_until_ready(metrics)
                    self.journal.restart_clock(number)  # compilation is over
                if number % train.log_every == 0 or number == train.steps:
                    self._log(number)
                self.journal.advance(number)

    def _batches(self, start):
        """Pairs (row numbers, batch on the device)."""
        batches = pipeline.train_batches(
            self.examples,
            self.encode,
            batch=self.config.train.batch,
            seed=self.config.seed,
            start_step=start,
            rows=sharding.local_rows(self.config.train.batch, self.mesh),
            workers=self.config.data.workers,
        )
        with contextlib.closing(batches):
            for batch in batches:
                yield batch['row'], sharding.place(batch, self.mesh)

    def _collect(self) -> None:
        """Waits for the queued steps and reads their metrics. Raises Diverged at the first that is not finite."""
        values = jax.device_get([metrics for _, _, metrics in self.running])
        for (number, rows, _), metrics in zip(self.running, values):
            if not metrics['finite']:
                if processes.count() > 1:
                    rows = np.unique(multihost_utils.process_allgather(rows, tiled=True))
                ids = ', '.join(self.examples[int(row)].id for row in rows if row >= 0)
                raise Diverged(
                    f'step {number}: loss is {metrics["loss"]}, gradient norm {metrics["grad_norm"]}. '
                    f'Nothing was saved since step {self.saved.latest_step() or 0}. Examples of the batch: {ids}'
                )
            self.done.append({name: float(value) for name, value in metrics.items() if name != 'finite'})
        self.running = []

    def _log(self, number) -> None:
        """Means over the steps since the last line; of lr the last value, of tokens and rows the sum."""
        self._collect()
        means = {name: sum(m[name] for m in self.done) / len(self.done) for name in self.done[0]}
        for name in ('tokens', 'rows'):
            means[name] = sum(m[name] for m in self.done)
        means['lr'] = self.done[-1]['lr']
        self.last = means
        self.journal.write(number, 'train', means | {'examples_per_second': self.journal.rate(number)})
        self.journal.show(number, loss=means['loss'], accuracy=means['accuracy'])
        self.done = []

    def _save(self, state) -> None:
        self._collect()
        self.saved.save(state, {'evaluated': self.evaluated, 'pending': self.done})

    def _evaluate(self, state, number) -> None:
        """Decodes and scores the development examples; keeps the parameters if they are the best so far."""
        self._collect()
        scores = self.dev.scores(state.params)
        chosen = self.dev.select
        score = scores.get(chosen, 0.0)  # while no answer is right, explanations have no score
        self.journal.write(number, 'dev', scores)
        best = processes.first(lambda: self.saved.best(chosen))  # one that was chosen by another score is no rival
        if better := best is None or score >= best[1]:  # of equals the one that was trained longer
            self.saved.save_best(state, score, {'select': chosen, 'scores': scores})
        shown = ', '.join(f'{k} {v:.3f}' for k, v in scores.items() if k.startswith('s_'))
        self.journal.say(f'step {number}: {shown}{" (best " + chosen + ")" if better else ""}')
        self.evaluated = number
        self.journal.restart_clock(number)

    def _evaluation_due(self, number) -> bool:
        every = self.config.train.eval_every
        due = every and (number % every == 0 or number == self.config.train.steps)
        return bool(due) and self.evaluated != number

    def _leave(self, stop, number) -> None:
        self.saved.wait()
        self.journal.say(f'stopped and saved at step {number}; the same command continues')
        raise SystemExit(stop.exit_code)

    def _finish(self, state, number) -> dict[str, float]:
        if not self.config.train.eval_every and not processes.first(self.saved.best):
            self.saved.save_best(state, 0.0, {'select': 'last'})
        self.saved.wait()
        best_step, best_score = processes.first(self.saved.best)
        return {'step': number, 'best_step': best_step, 'best_score': best_score, **self.last}


class _Dev:
    """The first `train.eval_examples` of the development split, decoded greedily and scored.

    Attributes:
      select: name of the score that chooses the best checkpoint.
    """

    def __init__(self, config, net, task, reader, mesh):
        examples = load.load_examples(config, config.data.dev)
        self.examples = [examples[i] for i in range(min(config.train.eval_examples, len(examples)))]
        self.config = copy.deepcopy(regime.built(config))
        # Fixed, so that the choice of the best does not depend on how somebody decodes afterwards.
        self.config.decode.update(method='greedy', condition='predicted', max_tokens=0)
        self.task, self.reader = task, reader
        self.decoder = decode.Decoder(net, task, self.config, mesh)
        self.select = processes.first(lambda: which_score(self.examples, task, self.config))

    def scores(self, params) -> dict[str, float]:
        batches = self.decoder.predictions(params, self.examples, self.reader)
        predictions = [prediction for rows in batches for prediction in rows]

        def score():
            scores = _scoring.score_predictions(predictions, self.examples, self.task, self.config)
            return _scoring.main_scores(scores)

        return processes.first(score)


def which_score(examples: Sequence[Example], task, config) -> str:
    """Name of the score that chooses the best checkpoint, the same throughout a run.

    Explanations count by the best evidence there is: true of the scene (built-in world), else likeness by metrics that
    need nothing but texts (`s_e_fast`): METEOR, SPICE and BERTScore cost minutes each time.
    What there is shows when the gold answers and explanations are scored as if a model had predicted them. Where these
    cannot be scored, no model's can: s_t decides.

    Args:
      examples: of the development split.
      task, config: as for `_scoring.score_predictions`; `train.select` is 's_t', 's_e' or 's_o'.
    """
    wanted = config.train.select
    if wanted == 's_t':
        return 's_t'
    gold = [
        Prediction(e.id, gold_answer(e) or '', explanation=e.explanations[0] if e.explanations else '')
        for e in examples
    ]
    scores = _scoring.main_scores(_scoring.score_predictions(gold, examples, task, config))
    for kind in ('true', 'fast'):
        if f'{wanted}_{kind}' in scores:
            return f'{wanted}_{kind}'
    logging.warning(
        'train.select is %r, but explanations of the %s split have no score (gold explanations: %d of %d examples; '
        'evaluate.metrics: %s): s_t chooses the best checkpoint',
        wanted, config.data.dev, sum(bool(e.explanations) for e in examples), len(examples),
        ', '.join(config.evaluate.metrics),
    )  # fmt: skip
    return 's_t'


def _copy_assets(source, workdir) -> None:
    """Copies vocabularies and answers, so that later modes need no data folder."""
    target = pathlib.Path(workdir) / 'assets'
    names = [str(p.relative_to(source)) for p in sorted(source.rglob('*')) if p.is_file()]
    if target.exists():
        _, differing, missing = filecmp.cmpfiles(source, target, names, shallow=False)
        if not differing and not missing:
            return
        if checkpoint.steps(pathlib.Path(workdir) / 'checkpoints'):
            changed = ', '.join(differing + missing)
            raise ValueError(f'{workdir} was trained with other vocabularies than {source} holds now: {changed} differ')
        shutil.rmtree(target)
    partial = target.with_name('.assets.partial')
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial)
    partial.rename(target)
