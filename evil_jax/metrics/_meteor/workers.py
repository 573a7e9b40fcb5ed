"""Statistics of many pairs of texts, in several processes where that pays.

The helpers are plain child processes (`python -m evil_jax.metrics._meteor.workers`: JSON in, int32 out): they neither
fork a process that may hold JAX's threads, nor run the caller's main module again, nor use pickle. A pair's statistics
depend on the pair alone, so the number of processes changes nothing.
"""

import contextlib
import functools
import gc
import itertools
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from evil_jax.metrics._meteor import align, normalise, paraphrases
from evil_jax.metrics._meteor.block import Block
from evil_jax.metrics._meteor.lexicon import Lexicon
from evil_jax.metrics.resources import Unavailable

ALONE = 3000  # pairs that one process does in the time that a second one needs to start
_MOST = 8  # processes
_BLOCK = 4096  # pairs made ready at once: bounds the memory

Pair = Sequence[str]  # candidate, reference; each from `normalise.line`


def statistics(pairs: Sequence[Pair], jar: str, table: str, processes: int = 0) -> np.ndarray:
    """Statistics [pairs, 23], int32, as `align.statistics` orders them.

    Args:
      pairs: candidate and reference.
      jar: meteor-1.5.jar.
      table: paraphrase-en.gz.
      processes: how many work; 0 = one more for each `ALONE` pairs, at most one a core and 8.

    Raises:
      Unavailable: a file is missing or broken, the index cannot be written, or a helper died.
    """
    index = _index(table)  # made before the helpers want it
    processes = processes or min(1 + len(pairs) // ALONE, _cores(), _MOST)
    bounds = [len(pairs) * k // processes for k in range(processes + 1)]
    shares = [pairs[a:b] for a, b in itertools.pairwise(bounds)]
    with contextlib.ExitStack() as stack:
        helpers = [stack.enter_context(_helper()) for _ in shares[1:]]
        for helper, share in zip(helpers, shares[1:]):
            _send(helper, share, jar, table)
        first = _statistics(shares[0], _lexicon(jar), index)
        return np.concatenate([first, *(_receive(helper, len(share)) for helper, share in zip(helpers, shares[1:]))])


def _statistics(pairs: Sequence[Pair], lexicon: Lexicon, index: paraphrases.Index) -> np.ndarray:
    rows = np.zeros((len(pairs), align.STATISTICS), np.int32)
    words = functools.cache(functools.partial(normalise.words, prefixes=lexicon.prefixes))
    with _no_garbage():
        for first in range(0, len(pairs), _BLOCK):
            texts: dict[tuple[str, ...], int] = {}
            part = [
                [texts.setdefault(words(text), len(texts)) for text in pair] for pair in pairs[first : first + _BLOCK]
            ]
            block = Block(list(texts), lexicon, index)
            for row, (candidate, reference) in enumerate(part, first):
                rows[row] = align.statistics(block.texts[candidate], block.texts[reference], block)
    return rows


@contextlib.contextmanager
def _no_garbage():
    """Without the collector of cycles: there are none, and it costs a third of the time."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


@functools.lru_cache(1)
def _lexicon(jar: str) -> Lexicon:
    return Lexicon(jar)


@functools.lru_cache(1)
def _index(table: str) -> paraphrases.Index:
    return paraphrases.opened(table)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


@contextlib.contextmanager
def _helper():
    """A child process, ended with the context, whatever happens."""
    root = str(pathlib.Path(__file__).resolve().parents[3])
    paths = os.pathsep.join(filter(None, (root, os.environ.get('PYTHONPATH'))))
    child = subprocess.Popen(
        [sys.executable, '-m', 'evil_jax.metrics._meteor.workers'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {'PYTHONPATH': paths},
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            with contextlib.suppress(OSError):
                stream.close()


def _send(child, pairs, jar, table) -> None:
    with contextlib.suppress(BrokenPipeError):  # a child that died says why in the end
        child.stdin.write(json.dumps({'jar': jar, 'table': table, 'pairs': pairs}).encode() + b'\n')
        child.stdin.flush()  # it starts at the end of the line


def _receive(child, rows: int) -> np.ndarray:
    out, said = child.communicate()
    if child.returncode or len(out) != 4 * rows * align.STATISTICS:
        said = said.decode(errors='replace')[-2000:]
        raise Unavailable(f'a process for METEOR ended with code {child.returncode}: {said}')
    return np.frombuffer(out, '<i4').reshape(rows, align.STATISTICS)


def main() -> None:
    """A helper process: reads its pairs (one line) from standard input, writes their statistics to standard output."""
    job = json.loads(sys.stdin.buffer.readline())
    rows = _statistics(job['pairs'], _lexicon(job['jar']), _index(job['table']))
    sys.stdout.buffer.write(rows.astype('<i4').tobytes())


if __name__ == '__main__':
    main()
