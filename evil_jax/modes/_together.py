"""Work of several processes in modes that run without JAX as well: a single process has not even imported that."""

import contextlib
import pathlib
import sys

from evil_jax import records


def alone_in(folder: pathlib.Path):
    """Keeps other runs out of a folder. Of the processes of one run the first does that for all."""
    processes = _processes()
    if processes and processes.index():
        return contextlib.nullcontext()
    return records.locked(folder / '.lock', 'another run works here')


def first(function):
    """Of several processes only the first calls it; all get the result, which must be JSON."""
    processes = _processes()
    return processes.first(function) if processes else function()


def place() -> tuple[int, int]:
    """(number of this process, how many there are)."""
    processes = _processes()
    return (processes.index(), processes.count()) if processes else (0, 1)


def meet() -> None:
    """Returns when every process has come here."""
    if processes := _processes():
        processes.meet()


def _processes():
    return sys.modules.get('evil_jax.training.processes')
