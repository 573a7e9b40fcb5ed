"""--mode=decode: answers for every example of a split, then explanations of these answers, into predictions.jsonl.

Rows are appended batch by batch, and `predictions.meta.json` says what they come from: after an interruption the same
command goes on where the file ends; a file made with anything else is refused. One jitted function a batch computes
answers and explanations, sharded over all devices. No result depends on the batch size or the devices, except with
quirk 3 of compat.py: the sidecar then names the batch size, and whole batches are done again.
"""

import pathlib
import sys
import time
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import tqdm
from absl import logging
from jax.sharding import NamedSharding, PartitionSpec

from evil_jax.data import load, pipeline, tokenizers
from evil_jax.decoding import generate
from evil_jax.interop import eug
from evil_jax.models import vlnle
from evil_jax.modes import _pairing, _predictions
from evil_jax.records import Example, Prediction
from evil_jax.tasks import base
from evil_jax.training import checkpoint, initial, processes, sharding
from evil_jax.training import state as state_lib

TOGETHER = True  # every process of several runs this mode
TOP = 5  # answers whose probability a prediction carries


class Decoder:
    """Predicts batch after batch. Make it once and use it often: it keeps the compiled function.

    Args:
      net: static half of the model.
      task: encodes examples and names answers; `task.assets.expl` spells explanations.
      config: read are `seed`, `data.max_explanation`, `data.workers` and from `decode` what is not about files.
      mesh: a batch is split over its (data, fsdp) axes; `decode.batch` is rounded up to a multiple of them.

    Attributes:
      batch: rows of a global batch.
    """

    def __init__(self, net: state_lib.Net, task: base.Task, config, mesh):
        decode = config.decode
        self.net, self.task, self.mesh, self.config, self.workers = net, task, mesh, config, config.data.workers
        self.gold = decode.condition == 'gold'
        self.batch = global_batch(config, mesh)
        self._end = task.assets.expl.id('<|e_rtnl|>')
        seed, settings = config.seed, dict(
            method=decode.method,
            max_tokens=decode.max_tokens or config.data.max_explanation,
            end_id=self._end,
            pad_id=task.assets.expl.end_of_text,
            vocabulary=task.assets.expl.size,
            temperature=decode.temperature,
            top_k=decode.top_k,
            top_p=decode.top_p,
            beams=decode.beams,
            length_penalty=decode.length_penalty,
        )  # fmt: skip

        def predict(params, batch):
            model = net.merge(params)
            logits_BA, context = model.task(batch)
            index_B, probability_BA = task.predict(logits_BA)
            probability, top = jax.lax.top_k(probability_BA, min(TOP, probability_BA.shape[-1]))
            has_gold_B = (batch['gold'] >= 0) & self.gold
            found = {'index': index_B, 'top': top, 'probability': probability, 'gold': has_gold_B}
            if model.expl is None:
                return found
            explained_B = jnp.where(has_gold_B, batch['gold'], index_B)
            condition, key = task.condition(batch, explained_B), jax.random.key(seed)
            tokens, length, score = generate.generate(model.expl, batch, context, condition, key=key, **settings)
            return found | {'tokens': tokens, 'length': length, 'score': score}

        # The results are replicated: every process can read all rows.
        self._predict = jax.jit(predict, out_shardings=NamedSharding(mesh, PartitionSpec()))

    def predict(self, params, batch: dict[str, np.ndarray]) -> dict[str, jax.Array]:
        """Starts computing one batch, without waiting for it.

        Args:
          params: {path: array}.
          batch: the rows of this process.

        Returns:
          For all rows of the global batch: index B of the answer; top and probability [B, 5] of the likeliest ones;
          gold B: whether the explanation is for the gold answer;
          with an M_E tokens [B, T], length B and score B of `generate`.
        """
        with jax.set_mesh(self.mesh):
            return self._predict(params, sharding.place(batch, self.mesh))

    def predictions(self, params, examples: Sequence[Example], reader, start: int = 0) -> Iterator[list[Prediction]]:
        """Predictions in the order of the examples, one list a batch; the same in every process.

        Args:
          params: {path: array}.
          examples: random access, picklable.
          reader: of `load.open_inputs`, or None.
          start: first row.
        """
        batches = pipeline.eval_batches(
            examples, pipeline.Encode(self.task, reader), batch=self.batch, start=start, workers=self.workers,
            rows=sharding.local_rows(self.batch, self.mesh),
        )  # fmt: skip
        running = None  # one batch computes while the one before it is spelled and written
        for number, batch in enumerate(batches):
            started = start + number * self.batch, self.predict(params, batch)
            if running:
                yield self._spell(examples, *running)
            running = started
        if running:
            yield self._spell(examples, *running)

    def _spell(self, examples, first, found):
        found = jax.device_get(found)
        return [
            self.prediction(examples[first + i], {name: value[i] for name, value in found.items()})
            for i in range(min(self.batch, len(examples) - first))
        ]

    def prediction(self, example: Example, found: dict[str, np.ndarray]) -> Prediction:
        """One row of `predict` in words."""
        index, tokens = int(found['index']), None
        if 'tokens' in found:
            tokens = found['tokens'][: found['length']].tolist()
        scores: dict[str, float] = {}
        for other, probability in zip(found['top'].tolist(), found['probability'].tolist()):
            scores.setdefault(self.task.answer_text(other, example), probability)  # of equal choices the likelier
        return Prediction(
            id=example.id,
            answer=self.task.answer_text(index, example),
            answer_index=index if example.choices else None,
            answer_scores=scores,
            condition='gold' if found['gold'] else 'predicted',
            # With its end token: blanks before it are cleaned up as inside a text.
            explanation='' if tokens is None else self.task.assets.expl.decode(tokens),
            explanation_ids=tokens and [token for token in tokens if token != self._end],
        )


def global_batch(config, mesh) -> int:
    """`decode.batch`, rounded up to a multiple of the devices that share a batch."""
    ways = mesh.shape['data'] * mesh.shape['fsdp']
    return -(-config.decode.batch // ways) * ways


def find_checkpoint(workdir, which: str) -> pathlib.Path:
    """Folder of a checkpoint: 'best', 'latest' or a path. 'eug:PATH' is a file of the published e-UG code.

    Raises:
      ValueError: there is none; says to train.
    """
    if file := eug.named(which):
        return file
    try:
        return checkpoint.find(workdir, which)
    except ValueError as error:
        if which.startswith('hf:'):
            raise
        raise ValueError(f'{error}. Train first: --mode=train --workdir={workdir}') from error


def load_trained(config, workdir, found: pathlib.Path):
    """A trained model, ready to decode; no data folder is needed, but for one of the published e-UG code.

    Args:
      config: with `decode.task_checkpoint` M_T comes from there. What was trained without M_E has none, whatever
        `model.expl` says.
      workdir: its vocabularies serve a checkpoint that was moved away from its own, if they are the same.
      found: of `find_checkpoint`. A file has no vocabularies: those of the data folder are taken.

    Returns:
      (decoder, params).

    Raises:
      ValueError: a checkpoint of another model or encoding (every differing key is named), the vocabularies that it
        was trained with cannot be found, or M_T and M_E make no pair.
    """
    _check_config(config, found)
    original, other = found.is_file(), _pairing.find_task(config)
    if original:
        assets = tokenizers.load_assets(pathlib.Path(config.data.dir) / 'assets')
    else:
        config = config if other else _pairing.built(config, found)
        assets = checkpoint.find_assets(found, pathlib.Path(workdir) / 'assets', *([_beside(other)] if other else []))
    task, mesh = base.make_task(config, assets), sharding.make_mesh(config)
    net = state_lib.abstract(lambda key: vlnle.build(config, assets, key), config, mesh)
    if original:
        params = initial.original(found, net.shapes, assets)
    elif other:
        params = _pairing.restore(config, found, other, net.shapes)
    else:
        params = checkpoint.restore_params(found, 'latest', net.shapes)
    return Decoder(net, task, config, mesh), params


def _beside(folder):
    """Where the vocabularies of a checkpoint's work folder are."""
    return folder.parent.parent / 'assets'


def _check_config(config, folder) -> None:
    other = _pairing.find_task(config)
    if not folder.is_file():
        _pairing.check(config, folder, other)
        return
    eug.check(config)
    if other:
        raise ValueError(
            f'decode.task_checkpoint is {other}, but decode.checkpoint is {folder}, of the published e-UG code, which '
            'has an M_T of its own: leave one of them out'
        )


def run(config, workdir) -> dict[str, float]:
    """Decodes `decode.split` with a checkpoint of `workdir`.

    Returns:
      examples: predictions in the file; decoded: those of this call, and their examples_per_second.

    Raises:
      ValueError: no checkpoint, no data, predictions.jsonl was made with other settings, or another process decodes
        into `workdir`.
    """
    folder = find_checkpoint(workdir, config.decode.checkpoint)
    processes.same('checkpoint', ['/'.join(path.parts[-2:]) for path in (folder, _pairing.find_task(config)) if path])
    _check_config(config, folder)  # before the data: its build may differ for the same reason, but is not to blame
    with checkpoint.exclusive(workdir, 'decode'):
        return _run(config, workdir, folder)


def _run(config, workdir, folder):
    split, limit = config.decode.split or config.data.test, config.decode.limit
    examples, reader = load.load_examples(config, split), load.open_inputs(config)
    if 0 < limit < len(examples):
        examples = First(examples, limit)
    processes.same('split', [len(examples), examples[0].id, examples[len(examples) - 1].id])
    batch = global_batch(config, sharding.make_mesh(config))
    other = _pairing.find_task(config)
    made_from = processes.first(lambda: _predictions.sidecar(config, folder, other, reader, split, examples, batch))
    writer = _predictions.Writer(workdir, made_from)
    before, count = writer.done, len(examples)
    if before > count:
        raise ValueError(f'{writer.path} has {before} lines for {count} examples')
    if before == count:
        print(f'{writer.path} is complete: {count} predictions')
        return {'examples': float(count), 'decoded': 0.0}
    if before:
        print(f'{writer.path} has {before} of {count} predictions; going on', flush=True)
    decoder, params = load_trained(config, workdir, folder)
    rate = _fill(writer, decoder, params, examples, reader)
    writer.close()
    print(f'decoded {count - before} examples, {rate:.1f} examples/s: {writer.path}')
    return {'examples': float(count), 'decoded': float(count - before), 'examples_per_second': rate}


def _fill(writer, decoder, params, examples, reader) -> float:
    """Decodes what is missing in the file. Returns examples/s."""
    before, count, start, gold = writer.done, len(examples), time.perf_counter(), 0
    hidden = not sys.stderr.isatty() or processes.index() > 0
    with tqdm.tqdm(total=count, initial=before, unit='ex', desc='decode', disable=hidden, dynamic_ncols=True) as bar:
        for predictions in decoder.predictions(params, examples, reader, before):
            writer.append(predictions)
            gold += sum(p.condition == 'gold' for p in predictions)
            bar.update(len(predictions))
    if decoder.gold and gold < count - before:
        logging.warning(
            '%d examples have no gold answer in the vocabulary: predicted ones explained', count - before - gold
        )
    return (count - before) / max(time.perf_counter() - start, 1e-9)


class First(Sequence):
    """The first examples of a split."""

    def __init__(self, examples: Sequence[Example], count: int):
        self._examples, self._count = examples, count

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        if not 0 <= index < self._count:
            raise IndexError(f'example {index} of {self._count}')
        return self._examples[index]
