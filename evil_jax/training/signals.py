"""Ends a run in order: SIGTERM or SIGINT lets the step finish, then the loop saves and leaves."""

import collections
import os
import signal

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jax.sharding import NamedSharding, PartitionSpec

from evil_jax.training import processes

_LATER = 2  # calls until a vote is counted: it is on the device by then, and counting does not wait for the step


class Stop:
    """Context manager that notes a request to stop. `signum` is the signal, or None.

    A second signal acts as it did before, so that Ctrl-C twice ends a run that hangs.
    """

    def __init__(self, signums=(signal.SIGTERM, signal.SIGINT)):
        self.signum = None
        self._signums, self._before = signums, {}
        self._votes = collections.deque()
        if processes.count() > 1:
            devices = np.array(jax.devices())
            self._own = NamedSharding(jax.sharding.Mesh(devices, ('all',)), PartitionSpec('all'))
            self._largest = jax.jit(jnp.max, out_shardings=NamedSharding(self._own.mesh, PartitionSpec()))

    def __enter__(self):
        self._before = {signum: signal.signal(signum, self._note) for signum in self._signums}
        return self

    def __exit__(self, *_):
        self._restore()

    def _restore(self):
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        self._before = {}

    def _note(self, signum, _):
        self.signum = signum
        logging.warning('%s: finishing the step, then saving (pid %d)', signal.Signals(signum).name, os.getpid())
        self._restore()

    @property
    def exit_code(self) -> int:
        """0 after SIGTERM: the run is well and can be continued; 130 after Ctrl-C, as shells have it."""
        return 130 if self.signum == signal.SIGINT else 0

    def agreed(self, now: bool = False) -> bool:
        """Whether to stop before this step; the same answer in every process. Call it once a step, in all of them.

        Several processes vote: the largest signal number over all of them is computed on the devices, in line with the
        steps, and counted two calls later. So a signal to any process stops all before the same step.

        Args:
          now: count at once, which waits for the steps before; for what takes long, and at the end.
        """
        if processes.count() == 1:
            return self.signum is not None
        self._vote(self.signum or 0)
        while self._votes and (now or len(self._votes) > _LATER):
            if signum := int(self._votes.popleft()):
                self.signum = signum
                return True
        return False

    def _vote(self, number: int) -> None:
        """Starts computing the largest of the numbers that the processes give."""
        numbers = np.full(self._own.mesh.size, number, np.int32)
        numbers = jax.make_array_from_callback(numbers.shape, self._own, lambda where: numbers[where])
        self._votes.append(self._largest(numbers))
