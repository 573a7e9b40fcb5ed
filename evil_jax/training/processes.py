"""Several processes that work as one: how they meet, what only the first does, and how all end when one fails.

Every process runs the same command with a number of its own. Work folder and data folder are on a file system that all
of them see. Which calls of this module a process makes, and in which order, must be the same in all of them.

Whoever fails tells the others through JAX's key-value store and they end with that message, wherever they are. Who
dies without a word is missed as soon as its connection from the start is cut: nobody waits for a process that is gone,
as Gloo may where it was about to connect to it. Nothing here has a short time-out, since a build or an evaluation that
the others wait for may take hours.
"""

import contextlib
import json
import multiprocessing
import os
import pathlib
import re
import secrets
import selectors
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from absl import logging

# The client of the coordination service has no public name.
from jax._src import distributed

from evil_jax.training import rendezvous

LOST = 75  # exit code (EX_TEMPFAIL): another process is gone; started again, all of them can go on
_FOREVER_MS = 30 * 24 * 3600 * 1000
_SLICE_MS = 1000  # how long a wait may keep Python from noticing Ctrl-C, or the end
_TELLING = 3  # seconds in which a message of who failed arrives
_GRACE = 10  # seconds that the first process, which holds the key-value store, gives the others to read why it ends
_SEEN = 30  # seconds after which a network file system shows a new file
_FAILED, _HEARD = 'evil_jax/failed', 'evil_jax/heard'
# What JAX raises in the processes that are left, of no type of its own; a wrong shape raises ValueError as well. Such a
# message begins with a status, as 'UNKNOWN: Gloo ...'; in ours the words may come from the input.
_STATUS = re.compile(r'[A-Z_]{5,}: ')
_SIGNS_OF_LOSS = ('Gloo', 'UNAVAILABLE', 'Connection closed', 'Connection reset', 'coordination service', 'ABORTED')


class Options(NamedTuple):
    """How this process finds the others.

    Attributes:
      auto: JAX finds out (TPU pod, SLURM, Open MPI, Kubernetes); the next three are then None.
      coordinator: 'host:port' at which the first process listens.
      number: of processes.
      this: number of this one, from 0.
      timeout: seconds to wait for the others at the start.
    """

    auto: bool
    coordinator: str | None
    number: int | None
    this: int | None
    timeout: int


def count() -> int:
    """How many processes there are. No device is touched."""
    return distributed.global_state.num_processes


def index() -> int:
    """Number of this process; 0 where there is only one."""
    return distributed.global_state.process_id


def run(options: Options, command: dict[str, Any], work: Callable[[], None], trace: bool = False) -> None:
    """Calls `work` as one of several processes; returns when all of them are done.

    Only the first process keeps its stdout. An error ends the whole process, as no `finally` may wait for others: with
    code 1 and one message, also in all other processes; with `LOST` if another process died without a word.

    Args:
      command: JSON that has to be the same everywhere, {what: value}.
      work: may raise SystemExit, in all processes alike.
      trace: show tracebacks of errors in the input too.
    """
    watch, code, command = None, None, json.loads(json.dumps(command))
    try:
        lines = _connect(options, command)
        if index():
            _silence()
        watch = _Watch(lines)
        if options.auto:  # otherwise they were compared when they met
            theirs = first(lambda: command)
            for what, value in command.items():
                _compare(what, theirs.get(what), value)
        try:
            work()
        except SystemExit as stopped:
            if stopped.code not in (None, 0, 130):
                raise
            code = stopped.code
        meet()
        watch.stop()
        jax.distributed.shutdown()
    except BaseException as error:
        _fail(error, watch, trace)
    if code is not None:
        raise SystemExit(code)


def first(function: Callable[[], Any]) -> Any:
    """Calls a function in the first process only, while the others wait; all get its result, which must be JSON."""
    if count() == 1:
        return function()
    key = _next('first')
    if index() == 0:
        value = json.dumps(function())
        _client().key_value_set(key, value)
    else:
        value = _patiently(lambda: _client().blocking_key_value_get(key, _FOREVER_MS))
    return json.loads(value)


def alone(function: Callable[[], Any]) -> None:
    """Like `first`, for what has no result that the others need."""

    def call():
        function()

    first(call)


def meet() -> None:
    """Returns when every process has come here."""
    if count() > 1:
        key = _next('meet')
        _patiently(lambda: _client().wait_at_barrier(key, _FOREVER_MS))


def same(what: str, value: Any) -> None:
    """Raises ValueError where a value (JSON) is not that of the first process. `what` names it."""
    if count() == 1:
        return
    _compare(what, first(lambda: value), json.loads(json.dumps(value)))


def _compare(what, wanted, found):
    if wanted != found:
        raise ValueError(
            f'process {index()} ({socket.gethostname()}) has another {what} than process 0: {found!r} and {wanted!r}. '
            'All processes need the same command and see the same files'
        )


def check_shared(folder) -> None:
    """Makes a folder and raises ValueError unless all processes see in it what the first one writes."""
    if count() == 1:
        return
    path = pathlib.Path(folder).absolute() / '.shared'

    def write():
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = secrets.token_hex(8)
        path.write_text(mark)
        return str(path), mark

    there, mark = first(write)
    end = time.monotonic() + _SEEN
    while not _holds(path, mark):
        if time.monotonic() > end:
            raise ValueError(
                f'process {index()} ({socket.gethostname()}) does not see in {path.parent} what process 0 wrote to '
                f'{pathlib.Path(there).parent}: all processes need one file system for --workdir and data.dir'
            )
        time.sleep(0.1)
    meet()
    alone(lambda: path.unlink(missing_ok=True))


def _holds(path, mark):
    with contextlib.suppress(OSError):
        os.listdir(path.parent)  # makes NFS look again
        return path.read_text() == mark
    return False


# --- the start ---


def _connect(options: Options, command) -> dict[int, socket.socket]:
    """Returns the connections of `rendezvous.meet`, none where JAX finds the others."""
    lines = {}
    # Before JAX comes in: it aborts the process, with a C++ stack, when the others do not come.
    if not options.auto:
        lines = rendezvous.meet(options.coordinator, options.number, options.this, command, options.timeout)
    jax.config.update('jax_cpu_collectives_implementation', 'gloo')
    # It would keep SIGTERM from ending the modes that need not save; training has signals.py.
    jax.config.update('jax_enable_preemption_service', False)
    where = {} if options.auto else dict(
        coordinator_address=options.coordinator, num_processes=options.number, process_id=options.this,
        cluster_detection_method='deactivate',
    )  # fmt: skip
    try:
        jax.distributed.initialize(**where, initialization_timeout=options.timeout)
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        if options.auto and isinstance(error, ValueError) and 'should be defined' in str(error):
            raise ValueError(
                '--distributed=auto found no TPU pod, SLURM, Open MPI or Kubernetes job here: give --coordinator, '
                '--num_processes and --process_id'
            ) from error
        raise ValueError(f'the processes could not be connected: {error}') from error
    return lines


def _silence() -> None:
    """What is printed here is printed by the first process as well; Gloo writes to the file descriptor."""
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    logging.set_verbosity(logging.ERROR)


# --- waiting ---

_numbers: dict[str, int] = {}


def _next(kind: str) -> str:
    """A key that is new and the same in all processes, as they make the same calls."""
    _numbers[kind] = _numbers.get(kind, 0) + 1
    return f'evil_jax/{kind}/{_numbers[kind]}'


def _client():
    return distributed.global_state.client


def _patiently(call):
    """Calls in another thread, so that Ctrl-C is noticed here."""
    done: list = []

    def work():
        try:
            done.append((call(), None))
        except Exception as error:
            done.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_SLICE_MS / 1000)
    value, error = done[0]
    if error is not None:
        raise error
    return value


# --- the end ---


class _Watch:
    """Threads that end this process when another one has failed, or is gone.

    lines: of `rendezvous.meet`.
    """

    def __init__(self, lines: dict[int, socket.socket]):
        self._over = threading.Event()
        self._lines = lines
        self.own = False  # this process has an error of its own to tell
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._hear, self._listen)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """To be called before any process leaves. The connections stay open until this one does."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _listen(self):
        with selectors.DefaultSelector() as selector:
            for number, line in self._lines.items():
                selector.register(line, selectors.EVENT_READ, number)
            while self._lines and not self._over.is_set():
                if gone := selector.select(_SLICE_MS / 1000):
                    self._miss(gone[0][0].data)
                    return

    def _miss(self, number):
        """The connection to a process is cut. If it said why, the other thread ends us meanwhile.

        Nothing more can be heard when the first is gone.
        """
        if not self._over.wait(_TELLING if number else 0):
            _end(LOST, _lost(f'process {number}'))

    def _hear(self):
        while not self._over.is_set():
            try:
                told = _client().blocking_key_value_get(_FAILED, _SLICE_MS)
            except jax.errors.JaxRuntimeError as error:
                if 'DEADLINE_EXCEEDED' in str(error):
                    continue
                _end(LOST, _lost(error))
            if self.own:
                return
            number, _, message = told.partition(' ')
            _end(1, f'error: process {number} failed: {message}', heard=True)


def _fail(error: BaseException, watch: _Watch | None, trace: bool) -> None:
    """Tells the others, then ends this process."""
    told = isinstance(error, ValueError | OSError)  # an error in the input; others are bugs and show where
    if watch is not None and _is_loss(error):
        time.sleep(_TELLING)  # if the other one said why, the watch ends us meanwhile
        _end(LOST, _lost(error))
    if isinstance(error, KeyboardInterrupt):
        code, message = 130, 'interrupted'
    else:
        code, message = 1, str(error) if told else f'{type(error).__name__}: {error}'
    shown = f'error: {message}' + (' (--trace shows where)' if told and not trace else '')
    if trace or not (told or code == 130):
        shown = ''.join(traceback.format_exception(error)).rstrip()
    if watch is not None:
        watch.own = True
        # The key may exist: another process was quicker to fail. The service may be gone.
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            _client().key_value_set(_FAILED, f'{index()} {message}')
    _end(code, shown, heard=watch is not None)


def _is_loss(error) -> bool:
    # Gloo's errors come as ValueError, others as JaxRuntimeError.
    of_jax = isinstance(error, jax.errors.JaxRuntimeError) or (
        isinstance(error, ValueError) and _STATUS.match(str(error)) is not None
    )
    return of_jax and any(sign in str(error) for sign in _SIGNS_OF_LOSS)


def _lost(error) -> str:
    why = str(error).strip().splitlines()[0]
    return f'error: another process is gone ({why}). Start all again: what was saved is kept'


_ending = threading.Lock()


def _end(code: int, message: str, heard: bool = False) -> None:
    """One message, then the end, without the interpreter's clean-up: JAX's would wait for the others there.

    `heard`: all know or will know of the failure. The first process, which they learn it from, stays until they do: JAX
    aborts whoever loses contact to it.
    """
    _ending.acquire()  # for good: two threads must not both tell
    print(message, file=sys.stderr, flush=True)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    for child in multiprocessing.active_children():
        child.kill()
    if heard:
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            _client().key_value_set(f'{_HEARD}/{index()}', '')
            end = time.monotonic() + _GRACE
            while index() == 0 and time.monotonic() < end:
                if len(_client().key_value_dir_get(_HEARD)) == count():
                    time.sleep(1)  # what is left for them to do is to exit
                    break
                time.sleep(0.05)
    os._exit(code)
