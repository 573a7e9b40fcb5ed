"""Ends a run in order: SIGTERM or SIGINT lets the step finish, then the loop saves and leaves."""

import os
import signal

import jax
from absl import logging
from jax.experimental import multihost_utils


class Stop:
    """Context manager that notes a request to stop. `signum` is the signal, or None.

    A second signal acts as it did before, so that Ctrl-C twice ends a run that hangs.
    """

    def __init__(self, signums=(signal.SIGTERM, signal.SIGINT)):
        self.signum = None
        self._signums, self._before = signums, {}

    def __enter__(self):
        if jax.process_count() == 1:  # otherwise JAX's own service watches for SIGTERM, see `agreed`
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

    def agreed(self, step: int) -> bool:
        """Whether to stop before this step; the same answer in every process. Call it once a step.

        With several processes the answer comes from JAX's preemption service: a SIGTERM to any of them stops all at one
        common step.
        """
        if jax.process_count() == 1:
            return self.signum is not None
        return multihost_utils.reached_preemption_sync_point(step)
