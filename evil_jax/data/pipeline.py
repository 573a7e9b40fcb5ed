"""Batches: dicts of fixed-shape numpy arrays, in an order that depends on the seed and the step, and on nothing else.

Global training batch k is rows [k B, (k + 1) B) of the endless sequence made of one reshuffled epoch after the other.
Of several processes each computes its own rows of each batch. So the number of processes, worker processes and restarts
changes nothing, and a pipeline resumes from a step number alone.

Keys of a batch (B rows; the other shapes are in transforms.py):
  mask bool B: False for a padding row, which repeats a real one;  row int32 B: index in the split, -1 for padding
  text, text_type BQ, text_length B;  features float16 BRF, locations BR7, region_length B
  question, question_length;  explanation, explanation_length (0: none);  gold B;  answer_ids, answer_scores B,10
Of a plain classifier (tasks/classify.py): images BHW3, or text, text_type, text_length; mask, row and the answers.
With names of objects in the texts (config.data.objects), also
  objects B,max_objects, objects_length B
With choices of their own in each example (config.data.choices = C), also
  text_tags BQ;  choices, choices_type, choices_tags BCQ, choices_length BC;  answers B,C,max_answer, answers_length BC
"""

import sys
from collections.abc import Callable, Iterator, Sequence

import grain
import numpy as np
from absl import flags

_THREADS = 2  # of each process, reading ahead; the work is mostly Python, more threads would only wait for each other
_AHEAD = 2  # batches kept ready


class Encode:
    """`(example, rng) -> arrays`: looks up what belongs to the picture and applies the task's transform.

    Args:
      task: gives `transform(example, found, rng)`.
      features: reader of regions or of pictures (`load.open_inputs`), or None: every example is then without one.
    """

    def __init__(self, task, features=None):
        self.task, self.features = task, features

    def __call__(self, example, rng: np.random.Generator | None) -> dict[str, np.ndarray]:
        found = None if self.features is None else self.features[example.image_id]
        return self.task.transform(example, found, rng)


class _TrainRows:
    """Random-access source of one process's rows: local position -> arrays."""

    def __init__(self, examples, transform, batch, seed, start_step, rows):
        self.examples, self.transform, self.seed = examples, transform, seed
        self.batch, self.start_step, self.rows = batch, start_step, rows
        self.order = grain.MapDataset.range(len(examples)).seed(seed).shuffle().repeat(None)

    def __len__(self):
        return sys.maxsize // 2 // self.batch * len(self.rows)

    def __getitem__(self, position):
        step, offset = divmod(position, len(self.rows))
        place = (self.start_step + step) * self.batch + int(self.rows[offset])
        row = int(self.order[place])
        rng = np.random.default_rng((self.seed, place))
        return self.transform(self.examples[row], rng) | {'mask': np.bool_(True), 'row': np.int32(row)}


class _EvalRows:
    """Random-access source of one process's rows of a split, in order, with the tail filled up."""

    def __init__(self, examples, transform, batch, start, rows):
        self.examples, self.transform = examples, transform
        self.batch, self.start, self.rows = batch, start, rows

    def __len__(self):
        return -(-(len(self.examples) - self.start) // self.batch) * len(self.rows)

    def __getitem__(self, position):
        step, offset = divmod(position, len(self.rows))
        row = self.start + step * self.batch + int(self.rows[offset])
        real = row < len(self.examples)
        arrays = self.transform(self.examples[row if real else len(self.examples) - 1], None)
        return arrays | {'mask': np.bool_(real), 'row': np.int32(row if real else -1)}


def train_batches(
    examples: Sequence,
    transform: Callable,
    *,
    batch: int,
    seed: int,
    start_step: int = 0,
    rows: Sequence[int] | None = None,
    workers: int = 0,
) -> Iterator[dict[str, np.ndarray]]:
    """Endless batches for training; close() the iterator (or `contextlib.closing`) to stop its workers.

    Args:
      examples: random access, picklable.
      transform: `(example, rng) -> dict of arrays`, picklable; `rng` depends on the seed and the row's place in the
        endless sequence only. See `Encode`.
      batch: rows of the global batch.
      seed: of the order and of `rng`; not negative.
      start_step: first global batch.
      rows: which rows of every global batch this process computes, ascending; all of them by default.
      workers: processes that prepare batches; 0 uses threads of this one.

    Raises:
      ValueError: no examples, an empty batch, rows outside the batch, a negative seed or step.
    """
    rows = _checked(examples, batch, rows)
    if seed < 0 or start_step < 0:
        raise ValueError(f'seed is {seed} and start_step is {start_step}, wanted both at least 0')
    return _run(_TrainRows(examples, transform, batch, seed, start_step, rows), len(rows), workers)


def eval_batches(
    examples: Sequence,
    transform: Callable,
    *,
    batch: int,
    rows: Sequence[int] | None = None,
    start: int = 0,
    workers: int = 0,
) -> Iterator[dict[str, np.ndarray]]:
    """Batches of a split in its order, once. The last global batch is filled up with masked copies of the last row.

    Args:
      start: first row (of the global order), to resume; the number of examples means that nothing is left.

    The other arguments and errors are those of `train_batches`; `rng` is None.
    """
    rows = _checked(examples, batch, rows)
    if not 0 <= start <= len(examples):
        raise ValueError(f'start is {start}, wanted a row of the split or its size: 0 ... {len(examples)}')
    return _run(_EvalRows(examples, transform, batch, start, rows), len(rows), workers)


def _checked(examples, batch, rows):
    if not len(examples):
        raise ValueError('the split has no examples')
    rows = range(batch) if rows is None else rows
    if not len(rows) or rows[0] < 0 or rows[-1] >= batch:
        raise ValueError(f'rows {list(rows)} of a batch of {batch}, wanted some of 0 ... {batch - 1}')
    return rows


def _run(source, local, workers):
    if not len(source):
        return
    dataset = grain.MapDataset.source(source).batch(local, drop_remainder=True)
    dataset = dataset.to_iter_dataset(grain.ReadOptions(num_threads=_THREADS, prefetch_buffer_size=_AHEAD))
    if workers:
        # Grain's workers read absl flags, which nobody has parsed outside absl's app.run.
        if not flags.FLAGS.is_parsed():
            flags.FLAGS.mark_as_parsed()
        dataset = dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers, per_worker_buffer_size=_AHEAD))
    batches = iter(dataset)
    try:
        yield from batches
    finally:
        batches.close()
