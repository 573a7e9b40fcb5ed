"""Our model's answers to edited questions, chunk by chunk, into counterfactual/predictions.jsonl.

Of a chunk every pair of picture and question is answered once, however many rows ask it. The questions are sorted by
picture and put into buckets by length: a row is not longer than its bucket, and there is one compiled program a bucket.
After an interruption the same command goes on at the chunk that was not finished.
"""

import dataclasses
import itertools
import sys
import time
from collections.abc import Iterator, Sequence

import tqdm

from evil_jax import compat
from evil_jax.counterfactual import exchange
from evil_jax.data import text_lengths
from evil_jax.modes import _pairing, _predictions, decode
from evil_jax.records import Example, Prediction
from evil_jax.tasks import base
from evil_jax.training import processes

CHUNK = 8_192  # rows that are looked through for equal ones
_SHARES = (0.5, 0.75, 1.0)  # of data.max_text: lengths of the buckets
_LEAST = 4  # batches that are worth a program of their own


def answer(config, workdir, folder, asked: exchange.Asked, reader, examples: Sequence[Example], split: str):
    """Answers what is not answered yet.

    Args:
      config: `counterfactual.checkpoint`, `decode` and the model.
      workdir: of the run; has the checkpoint.
      folder: of the predictions.
      asked: the questions.
      reader: of `load.open_inputs`.
      examples: of the split, and its name, for the sidecar.

    Returns:
      {'path': of the predictions, 'asked': rows, 'answered': different questions of this call, 'cut': those of them
      that are longer than data.max_text, 'seconds'}.

    Raises:
      ValueError: no checkpoint, or predictions of other settings or other questions there.
    """
    config = config.copy_and_resolve_references()
    config.decode.update(checkpoint=config.counterfactual.checkpoint, condition='predicted')
    trained = decode.find_checkpoint(workdir, config.decode.checkpoint)
    model = _Model(config, workdir, trained, reader)
    made_from = processes.first(
        lambda: _predictions.sidecar(
            config, trained, _pairing.find_task(config), reader, split, examples, model.decoder.batch
        )
    )
    count = asked.counts['asked']
    made_from |= {'examples': count, 'asked': asked.hashes['asked']}
    made_from['decode']['batch'] = CHUNK  # of which an interruption leaves whole ones
    writer, answered, start = _predictions.Writer(folder, made_from), 0, time.perf_counter()
    hidden = not sys.stderr.isatty() or processes.index() > 0
    with tqdm.tqdm(total=count, initial=writer.done, unit='q', desc='answer', disable=hidden) as bar:
        left = itertools.islice(asked.rows(), writer.done, None)
        while rows := list(itertools.islice(left, CHUNK)):
            predictions, different = model.answer(rows)
            writer.append(predictions)
            answered += different
            bar.update(len(rows))
    writer.close()
    return {
        'path': writer.path,
        'asked': count,
        'answered': answered,
        'cut': model.cut,
        'seconds': time.perf_counter() - start,
    }


class _Model:
    """A trained model behind its programs: one a length, and one of each for pictures without content."""

    def __init__(self, config, workdir, trained, reader):
        self.config, self.reader = config, reader
        self.decoder, self.params = decode.load_trained(config, workdir, trained)
        self.longest, self.programs, self.cut = config.data.max_text, {}, 0
        # Where padding is attended to, as the published code does, the length of a row decides its answer.
        fixed = config.data.choices or compat.has(config, 3) or compat.has(config, 4)
        self.lengths = [self.longest] if fixed else sorted({int(self.longest * share) for share in _SHARES})

    def answer(self, rows: Sequence[dict]) -> tuple[list[Prediction], int]:
        """(predictions in the order of the rows, how many different questions they were)."""
        keys = [self._key(row) for row in rows]
        different = {}
        for key, row in zip(keys, rows):
            different.setdefault(key, row)
        found = {}
        for (length, blank, repeat), group in self._buckets(different):
            examples = [self._example(number, different[key]) for number, key in enumerate(group)]
            decoder = self._program(length, blank, repeat)
            predictions = itertools.chain.from_iterable(decoder.predictions(self.params, examples, self.reader))
            found.update(zip(group, predictions))
        named = [dataclasses.replace(found[key], id=row['id']) for key, row in zip(keys, rows)]
        return named, len(different)

    def _key(self, row) -> tuple:
        # The likeliest answer is the same every time it is asked for.
        repeat = row.get('repeat', 0) if self.config.decode.method == 'sample' else 0
        lists = (tuple(row.get(name) or ()) for name in ('choices', 'objects'))
        return row['image_id'], row['text'], row.get('image') == 'blank', repeat, *lists

    def _buckets(self, different) -> Iterator[tuple[tuple, list]]:
        waiting = {}
        for key in different:
            pieces = 0 if self.config.data.choices else text_lengths.length('text', key[1], self.decoder.task.assets)
            self.cut += pieces > self.longest
            length = min((n for n in self.lengths if n >= pieces), default=self.longest)
            waiting.setdefault((key[2], key[3]), {}).setdefault(length, []).append(key)
        for (blank, repeat), by_length in waiting.items():
            carried = []
            for length in self.lengths:
                carried += by_length.get(length, [])
                if carried and (length == self.longest or len(carried) >= _LEAST * self.decoder.batch):
                    yield (length, blank, repeat), sorted(carried)
                    carried = []

    def _program(self, length, blank, repeat) -> decode.Decoder:
        if (length, blank, repeat) not in self.programs:
            config = self.decoder.config.copy_and_resolve_references()
            config.data.max_text = length
            config.data.regions = 'zero' if blank else config.data.regions
            config.seed += repeat
            task = base.make_task(config, self.decoder.task.assets)
            self.programs[length, blank, repeat] = decode.Decoder(self.decoder.net, task, config, self.decoder.mesh)
        return self.programs[length, blank, repeat]

    def _example(self, number, row) -> Example:
        return Example(
            id=str(number), image_id=row['image_id'], text=row['text'], choices=row.get('choices'),
            objects=row.get('objects'),
        )  # fmt: skip
