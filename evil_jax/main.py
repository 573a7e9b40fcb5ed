"""The one binary: `python -m evil_jax.main --config=eug:shapes_ve --mode=build,train,decode,evaluate`.

Each mode is a file in `evil_jax/modes`; its numbers go to `<workdir>/<mode>.json`. Nothing heavy is imported here:
grain's worker processes import this module again, and `--help` answers at once.
"""

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


def main(argv):
    del argv
    config = _CONFIG.value
    config_lib.validate(config)
    workdir = pathlib.Path(_WORKDIR.value or default_workdir(config_flags.get_config_filename(flags.FLAGS['config'])))
    modes = [(name, lookup.module('modes', name)) for name in _MODE.value]  # a typo is told before any work is done
    for number, (_, mode) in enumerate(modes):
        if hasattr(mode, 'check_files'):
            mode.check_files(config, workdir, _MODE.value[:number])
    for name, mode in modes:
        start = time.monotonic()
        print(f'== {name}: {workdir}', flush=True)
        numbers = mode.run(config, workdir)
        records.write_json(workdir / f'{name}.json', numbers)
        print(f'== {name} took {time.monotonic() - start:.0f} s', flush=True)


def run() -> None:
    """Entry point. Bad input ends in one message on stderr and exit code 1; `--trace` shows where it was noticed."""
    logging.set_verbosity(logging.WARNING)
    try:
        app.run(main, flags_parser=parse_flags)
    except (ValueError, OSError) as error:
        if _traced(sys.argv):
            raise
        sys.exit(f'error: {error} (--trace shows where)')


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
