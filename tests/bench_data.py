"""Prints how fast the data goes, as rates: `python tests/bench_data.py`.

The files are written just before, so this is the page cache's rate, on one core.
"""

import contextlib
import itertools
import json
import pathlib
import tempfile
import time

import numpy as np

from evil_jax import config as config_lib
from evil_jax.data import load, pipeline, tokenizers
from evil_jax.data.features import RegionReader, Regions, open_features
from evil_jax.data.features.convert import convert
from evil_jax.data.features.regions import WIDTH
from evil_jax.modes import build
from evil_jax.tasks import base

IMAGES, REGIONS = 2_000, 36
QUESTIONS, BATCH = 2, 64  # questions a picture; rows a batch


class Generated(RegionReader):
    """Random regions of pictures, 36 each."""

    path = 'generated'

    def __init__(self, images: int):
        self._index = {f'{i:012d}': i for i in range(images)}
        rng = np.random.default_rng(0)
        self._pool = rng.exponential(1.0, (4 * REGIONS, WIDTH)).astype(np.float16)
        self._boxes = rng.uniform(0, 300, (REGIONS, 4)).astype(np.float32)

    def provenance(self):
        return {'format': 'generated', 'images': len(self)}

    def _read(self, image_id, position):
        start = position % (3 * REGIONS)
        ones = np.ones(REGIONS, np.float32)
        return Regions(self._pool[start : start + REGIONS], self._boxes, (640, 480), ones, ones.astype(np.int32))


def rate(function, items, seconds: float = 3.0) -> float:
    """Calls a second of `function` on the items, repeated for so many seconds after one unmeasured round."""
    items = list(items)
    for item in items:
        function(item)
    begin = time.perf_counter()
    for calls, item in enumerate(itertools.cycle(items), 1):
        function(item)
        if calls % 100 == 0 and time.perf_counter() - begin > seconds:
            return calls / (time.perf_counter() - begin)


def store_reads(folder: pathlib.Path) -> float:
    """Random reads of a store, in images a second."""
    begin = time.perf_counter()
    convert([Generated(IMAGES)], folder, progress=False)
    print(f'store: writing {IMAGES / (time.perf_counter() - begin):,.0f} images/s')
    reader = open_features(folder)
    return rate(reader.__getitem__, np.random.default_rng(1).permutation(reader.ids()).tolist())


def worker_examples(folder: pathlib.Path, store: pathlib.Path, workers: int, seconds: float = 8.0) -> float:
    """Training examples a second: read, tokenised, padded and batched; `workers` grain processes (0: threads)."""
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS['vqav2'])
    config.data.update(
        dir=str(folder / 'data'), manual_dir=str(folder / 'raw'), features=(str(store),), answers_min_count=1
    )
    if not (folder / 'data').exists():
        write_questions(folder / 'raw')
        build.run(config, folder)
    task = base.make_task(config, tokenizers.load_assets(folder / 'data/assets'))
    examples, encode = load.load_examples(config, 'train'), pipeline.Encode(task, load.open_store(config))
    with contextlib.closing(pipeline.train_batches(examples, encode, batch=BATCH, seed=0, workers=workers)) as batches:
        for _ in range(10):  # start of the worker, first reads
            next(batches)
        begin = time.perf_counter()
        for count in itertools.count(1):
            next(batches)
            if time.perf_counter() - begin > seconds:
                return count * BATCH / (time.perf_counter() - begin)


def write_questions(folder: pathlib.Path) -> None:
    """VQA v2 files with a few questions about each generated picture."""
    folder.mkdir()
    questions, annotations = [], []
    for number in range(IMAGES * QUESTIONS):
        about = {'image_id': number // QUESTIONS, 'question_id': number}
        answers = [
            {'answer': ('yes', 'no')[number % 2], 'answer_confidence': 'yes', 'answer_id': i + 1} for i in range(10)
        ]
        questions.append({**about, 'question': f'Is there a person beside the red car in picture {number}?'})
        annotations.append({**about, 'answers': answers, 'multiple_choice_answer': answers[0]['answer']})
    (folder / 'questions_train.json').write_text(json.dumps({'questions': questions}))
    (folder / 'annotations_train.json').write_text(json.dumps({'annotations': annotations}))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix='evil_jax_bench_') as folder:
        folder = pathlib.Path(folder)
        reads = store_reads(folder / 'store')
        print(f'store: random reads {reads:,.0f} images/s ({REGIONS} regions x {WIDTH} float16, aim 4,000)')
        made = worker_examples(folder, folder / 'store', workers=1)
        print(f'pipeline: one grain worker {made:,.0f} examples/s ({REGIONS} regions, batch {BATCH}, aim 1,500)')


if __name__ == '__main__':
    main()
