"""The one binary: `python -m evil_jax.main --config=eug:shapes_ve --mode=build,train,decode,evaluate`.

Each mode is a file in `evil_jax/modes`; its numbers go to `<workdir>/<mode>.json`. Nothing heavy is imported here:
grain's worker processes import this module again, and `--help` answers at once.

On several machines or processes: the same command in each, with `--distributed=auto` (TPU pod, SLURM, ...) or with
`--coordinator=HOST:PORT --num_processes=N --process_id=I`. Modes with `TOGETHER = True` run in all of them, the others
in the first, while the rest wait. `launch/processes.sh N` starts N on one machine.
"""

import functools
import pathlib
import sys
import time

from absl import app, flags, logging
from ml_collections import config_flags

from evil_jax import config as config_lib
from evil_jax import lookup, records

_CONFIG = config_flags.DEFINE_config_file('config', None, 'NAME:ARG or FILE.py:ARG, see configs/.', lock_config=True)
_MODE = flags.DEFINE_list('mode', ['build', 'train', 'decode', 'evaluate'], 'What to do, in this order.')
_WORKDIR = flags.DEFINE_string('workdir', None, 'Results go here; by default runs/<config>-<arg>.')
_DISTRIBUTED = flags.DEFINE_enum(
    'distributed', None, ['off', 'auto', 'manual'],
    'Several processes: auto = as the TPU pod, SLURM, Open MPI or Kubernetes job says; manual = as the next three say '
    '(also when they are given without this); otherwise off.',
)  # fmt: skip
_COORDINATOR = flags.DEFINE_string('coordinator', None, 'HOST:PORT, a free port of the machine of process 0.')
_NUM_PROCESSES = flags.DEFINE_integer('num_processes', None, 'How many processes there are.')
_PROCESS_ID = flags.DEFINE_integer('process_id', None, 'Number of this process, from 0.')
_CONNECT_TIMEOUT = flags.DEFINE_integer('connect_timeout', 300, 'Seconds to wait for the other processes at the start.')
_TRACE = flags.DEFINE_bool('trace', False, 'Show the Python traceback of an error in the input.')


def config_folder() -> pathlib.Path:
    """Where the shipped configs are: beside the package in a checkout, inside it when installed."""
    package = pathlib.Path(__file__).resolve().parent
    inside = package / 'configs'
    return inside if inside.is_dir() else package.parent / 'configs'


def resolve_config(argument: str) -> str:
    """`eug:vqax` and `configs/eug.py:vqax` -> `<folder of the shipped configs>/eug.py:vqax`; a path to a file stays.

    Raises ValueError for a name that is neither.
    """
    name, colon, arg = argument.partition(':')
    path = pathlib.Path(name)
    if not path.is_file():
        if str(path.parent) not in ('.', 'configs') or path.suffix not in ('', '.py'):
            raise ValueError(f'--config={argument}: {name}: no such file')
        folder = config_folder()
        shipped = sorted(p.stem for p in folder.glob('*.py') if p.stem != '__init__')
        if path.stem not in shipped:
            raise ValueError(f'no config {name!r}.{lookup.nearest(path.stem, shipped)} There are: {", ".join(shipped)}')
        path = folder / f'{path.stem}.py'
    return f'{path}{colon}{arg}'


def default_workdir(argument: str) -> str:
    """`configs/eug.py:shapes_ve,text_only` -> `runs/eug-shapes_ve-text_only`."""
    name, _, arg = argument.partition(':')
    parts = [pathlib.Path(name).stem, *arg.replace('=', '-').split(',')]
    return 'runs/' + '-'.join(p for p in parts if p)


def parse_flags(argv: list[str]) -> list[str]:
    """Parses the command line; names of configs are resolved before absl sees them, since config_flags wants a path.

    Raises ValueError for anything that is not understood; unknown config keys name the nearest one.
    """
    resolved, value_follows = [], False
    for item in argv:
        key, equals, value = item.partition('=')
        if value_follows:
            item = resolve_config(item)
        elif key.lstrip('-') == 'config' and equals:
            item = f'--config={resolve_config(value)}'
        value_follows = item in ('--config', '-config')
        resolved.append(item)
    try:
        rest = flags.FLAGS(resolved)
    except (AttributeError, KeyError) as error:
        raise ValueError(f'unknown config key: {_plain(error)}') from error
    except (flags.Error, TypeError) as error:
        raise ValueError(_plain(error)) from error
    if len(rest) > 1:
        raise ValueError(f'unknown argument {rest[1]!r}; overrides are written --config.key=value')
    if _CONFIG.value is None:
        raise ValueError('which experiment? For example --config=eug:shapes_ve')
    return rest


def _plain(error: Exception) -> str:
    # config_flags wraps what a config file raises in the text of a traceback: its last line is the message.
    # An unknown key's message arrives quoted once more.
    text = str(error.args[0] if error.args else error).replace('\\n', '\n').replace("\\'", "'").strip('"')
    lines = text.strip().splitlines()
    if any(line.startswith('Traceback') for line in lines):
        return lines[-1].partition(': ')[2]
    return ' '.join(line.strip() for line in lines)


def distribution(kind, coordinator, number, this, timeout) -> dict | None:
    """What the flags say of several processes, as arguments of `training.processes.Options`; None for a single one.

    Args:
      kind, coordinator, number, this, timeout: --distributed, --coordinator, --num_processes, --process_id and
        --connect_timeout.

    Raises:
      ValueError: flags that contradict each other or are incomplete.
    """
    given = {'--coordinator': coordinator, '--num_processes': number, '--process_id': this}
    absent = [name for name, value in given.items() if value is None]
    kind = kind or ('off' if len(absent) == 3 else 'manual')
    if timeout < 1:
        raise ValueError(f'--connect_timeout is {timeout}, wanted at least 1 (second)')
    if kind != 'manual':
        if len(absent) < 3:
            more = ', '.join(f'{name}={value}' for name, value in given.items() if value is not None)
            raise ValueError(f'--distributed={kind} contradicts {more}: leave out one or the other')
        return dict(auto=True, coordinator=None, number=None, this=None, timeout=timeout) if kind == 'auto' else None
    if absent:
        raise ValueError(f'several processes need {", ".join(given)}; {" and ".join(absent)} not given')
    host, _, port = coordinator.rpartition(':')
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f'--coordinator is {coordinator!r}, wanted HOST:PORT, for example 10.0.0.1:9876')
    if number < 1:
        raise ValueError(f'--num_processes is {number}, wanted at least 1')
    if not 0 <= this < number:
        raise ValueError(f'--process_id is {this}, wanted 0 ... {number - 1} (--num_processes={number})')
    return dict(auto=False, coordinator=coordinator, number=number, this=this, timeout=timeout)


def main(argv):
    del argv
    flag_values = (_DISTRIBUTED, _COORDINATOR, _NUM_PROCESSES, _PROCESS_ID, _CONNECT_TIMEOUT)
    distributed = distribution(*(flag.value for flag in flag_values))
    config = _CONFIG.value
    config_lib.validate(config)
    workdir = pathlib.Path(_WORKDIR.value or default_workdir(config_flags.get_config_filename(flags.FLAGS['config'])))
    modes = [(name, lookup.module('modes', name)) for name in _MODE.value]  # a typo is told before any work is done
    if distributed is None:
        _run(config, workdir, modes, alone=lambda function: function())
        return
    # Imported here: it imports JAX, which evaluating predictions in a single process does without.
    from evil_jax.training import processes

    def work():
        processes.check_shared(workdir)
        if 'build' in _MODE.value and not (pathlib.Path(config.data.dir) / 'build.json').is_file():
            processes.check_shared(config.data.dir)
        _run(config, workdir, modes, processes.alone)

    command = {'--mode': _MODE.value, '--workdir': str(workdir), **_leaves('--config', config.to_dict())}
    processes.run(processes.Options(**distributed), command, work, trace=_TRACE.value)


def _run(config, workdir, modes, alone) -> None:
    """Runs modes. `alone` calls a function, of several processes in the first only."""

    def check():
        for number, (_, mode) in enumerate(modes):
            if hasattr(mode, 'check_files'):
                mode.check_files(config, workdir, [name for name, _ in modes[:number]])

    alone(check)
    for name, mode in modes:
        start = time.monotonic()
        print(f'== {name}: {workdir}', flush=True)
        path = workdir / f'{name}.json'
        if getattr(mode, 'TOGETHER', False):
            alone(functools.partial(_keep, path, mode.run(config, workdir)))
        else:
            alone(functools.partial(_run_alone, mode, config, workdir, path))
        print(f'== {name} took {time.monotonic() - start:.0f} s', flush=True)


def _run_alone(mode, config, workdir, path) -> None:
    _keep(path, mode.run(config, workdir))


def _keep(path, numbers) -> None:
    if numbers is not None:  # a mode that only tells something leaves the numbers of before
        records.write_json(path, numbers)


def _leaves(name, tree) -> dict:
    """{'--config': {'seed': 0}} -> {'--config.seed': 0}."""
    if not isinstance(tree, dict):
        return {name: tree}
    return {key: value for k, node in tree.items() for key, value in _leaves(f'{name}.{k}', node).items()}


def run() -> None:
    """Entry point. Bad input ends in one message on stderr and exit code 1, Ctrl-C in one and 130; `--trace` shows
    where it was noticed.
    """
    logging.set_verbosity(logging.WARNING)
    try:
        app.run(main, flags_parser=parse_flags)
    except (ValueError, OSError) as error:
        if _traced(sys.argv):
            raise
        sys.exit(f'error: {error} (--trace shows where)')
    except KeyboardInterrupt:
        if _traced(sys.argv):
            raise
        print('interrupted (--trace shows where)', file=sys.stderr)
        sys.exit(130)


def _traced(argv: list[str]) -> bool:
    """Value of --trace in a command line that may be wrong elsewhere."""
    alone = flags.FlagValues()
    flags.DEFINE_bool('trace', False, '', flag_values=alone)
    try:
        alone(argv, known_only=True)
    except flags.Error:  # it has no value that makes sense, which is what the message is about
        return False
    return alone.trace


if __name__ == '__main__':
    run()
