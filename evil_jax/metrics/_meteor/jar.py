"""METEOR 1.5 itself, the Java program, on many rows at once."""

from collections.abc import Sequence

import numpy as np

from evil_jax.metrics import _java
from evil_jax.metrics._meteor import align

_START, _ROW = 300.0, 0.05  # seconds after which it is stopped: to start, and for each row


def statistics(rows: Sequence[tuple[str, Sequence[str]]], jar: str, table: str, java: str) -> np.ndarray:
    """Statistics [rows, 23] of candidates against their best references, int32, in the program's own order.

    Args:
      rows: candidate and references, each from `normalise.line`.
      jar: meteor-1.5.jar.
      table: paraphrase-en.gz. Named, since the program does not find its own where a path has a blank.
      java: path of Java.

    Raises:
      Unavailable: Java does not run, or the program failed; with what it said.
    """
    lines = ['SCORE ||| ' + ' ||| '.join([*references, candidate]) for candidate, references in rows]
    program = ['-jar', jar, '-', '-', '-stdio', '-l', 'en', '-norm', '-a', table]
    said = _java.run(java, program, lines, options=['-Xmx2G'], timeout=_START + _ROW * len(rows))
    if len(said) != len(rows):
        raise _java.Failed(f'{jar} answered {len(said)} lines to {len(rows)}; the last: {(said or [""])[-1]!r}')
    found = np.zeros((len(rows), align.STATISTICS), np.int32)
    for row, line in enumerate(said):
        try:
            found[row] = [float(number) for number in line.split()]
        except ValueError as error:
            raise _java.Failed(f'{jar} answered {line!r} to {lines[row]!r}, wanted 23 numbers') from error
    return found
