"""Prints how fast the data goes, as rates: `python tests/bench_data.py`.

The files are written just before, so this is the page cache's rate, on one core.
"""

import itertools
import pathlib
import tempfile
import time

import numpy as np

from evil_jax.data.features import RegionReader, Regions, open_features
from evil_jax.data.features.convert import convert
from evil_jax.data.features.regions import WIDTH

IMAGES, REGIONS = 2_000, 36


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


def main() -> None:
    with tempfile.TemporaryDirectory(prefix='evil_jax_bench_') as folder:
        folder = pathlib.Path(folder)
        reads = store_reads(folder / 'store')
        print(f'store: random reads {reads:,.0f} images/s ({REGIONS} regions x {WIDTH} float16, aim 4,000)')


if __name__ == '__main__':
    main()
