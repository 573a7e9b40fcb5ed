"""Runs a Java program on lines of text, so that the number it gives does not depend on the user's machine.

Language and country are fixed: a comma as decimal mark stops METEOR, and Turkish makes another letter of every 'I'.
Standard error is kept and its end is part of the message when a program fails. Lines go in and come out through
`subprocess`, which writes, reads and waits at once, so a full pipe never stops both sides.
"""

import functools
import os
import pathlib
import re
import subprocess
from collections.abc import Sequence

from evil_jax.metrics.resources import Unavailable

OPTIONS = ('-Duser.language=en', '-Duser.country=US', '-Duser.variant=', '-Dfile.encoding=UTF-8')
_SHOWN = 2000  # characters of standard error in a message
_VERSION = re.compile(r'version "([^"]+)"')
_NOISE = re.compile(r'^Picked up \w+: .*\n?', re.MULTILINE)
_FRAMES = re.compile(r'^\s+(?:at \S+\(.*\)|\.\.\. \d+ more)\n?', re.MULTILINE)


class Failed(Unavailable):
    """A Java program was there and ran, but did not do its work. The message has the end of what it wrote."""


@functools.cache
def version(java: str) -> str:
    """'17.0.15' of the Java program `java` (a path, as `resources.java` gives it).

    Raises:
      Unavailable: it does not run, or says no version (a Mac without Java has such a placeholder).
    """
    try:
        done = subprocess.run(
            [java, '-version'], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f'needs Java, and {java} does not run: {error}') from error
    said = (done.stderr + done.stdout).decode(errors='replace')
    found = _VERSION.search(_NOISE.sub('', said))
    if done.returncode or not found:
        raise Unavailable(f'needs Java, and {java} -version gives none: {_end(said)}')
    return found[1]


def major(java: str) -> int:
    """8 for '1.8.0_392', 17 for '17.0.15'."""
    numbers = [int(n) for n in re.findall(r'\d+', version(java))]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def run(
    java: str,
    program: Sequence[str | os.PathLike],
    lines: Sequence[str] = (),
    *,
    classpath: Sequence[str | os.PathLike] = (),
    options: Sequence[str] = (),
    timeout: float | None = None,
    cwd: str | os.PathLike | None = None,
) -> list[str]:
    """The lines that a Java program writes to standard output when it reads `lines`.

    Args:
      java: path of Java.
      program: main class and its arguments; or '-jar', its path and its arguments.
      lines: without newlines inside; sent as UTF-8, each ended by '\\n'. A lone surrogate goes as U+FFFD.
      classpath: jars and folders; blanks and letters of any language in them are fine.
      options: for Java itself, after `OPTIONS`.
      timeout: seconds; None waits for ever.
      cwd: working folder of the program.

    Raises:
      Failed: it ended with an error or ran out of time.
      Unavailable: a folder on the class path has the character that separates folders there.
      ValueError: a line has a newline inside.
    """
    for line in lines:
        if '\n' in line or '\r' in line:
            raise ValueError(f'a line for a Java program has a line break inside: {line!r}')
    command = [java, *OPTIONS, *options]
    if classpath:
        command += ['-cp', os.pathsep.join(map(_on_class_path, classpath))]
    command += [os.fspath(part) for part in program]
    try:
        done = subprocess.run(
            command,
            input=encode('\n'.join([*lines, ''])),
            capture_output=True,
            timeout=timeout,
            cwd=cwd,
            # Paths in another alphabet: Java takes their encoding from the environment alone.
            env=os.environ | {'LC_ALL': 'C.UTF-8'},
            check=False,
        )
    except OSError as error:
        raise Unavailable(f'needs Java, and {java} does not run: {error}') from error
    except subprocess.TimeoutExpired as error:
        said = _end((error.stderr or b'').decode(errors='replace'))
        raise Failed(f'{_name(program)} did not end within {timeout:g} seconds; it said: {said}') from error
    if done.returncode:
        said = _end(done.stderr.decode(errors='replace'))
        raise Failed(f'{_name(program)} ended with code {done.returncode} (Java {version(java)}): {said}')
    said = done.stdout.decode(errors='replace').replace('\r\n', '\n')
    return said.removesuffix('\n').split('\n') if said else []


def encode(text: str) -> bytes:
    """UTF-8. Half a surrogate pair, which JSON files may have and UTF-8 cannot, becomes U+FFFD."""
    return _SURROGATE.sub('\ufffd', text).encode()


_SURROGATE = re.compile('[\ud800-\udfff]')


def _on_class_path(path) -> str:
    path = os.path.abspath(path)
    if os.pathsep in path:
        raise Unavailable(f"{path}: Java cannot read from a folder with '{os.pathsep}' in its name: move or link it")
    return path


def _name(program) -> str:
    return pathlib.PurePath(program[1]).name if program[0] == '-jar' else str(program[0])


def _end(said: str) -> str:
    """The end of what a program wrote, from the start of a line on; without the places in its code where it failed."""
    said = _FRAMES.sub('', _NOISE.sub('', said)).strip()
    if len(said) > _SHOWN:
        said = '... ' + said[-_SHOWN:].partition('\n')[2]
    return said or '(nothing)'
