"""What some metrics need and evil_jax cannot ship: pycocoevalcap's files, Java, and a folder for what is made of them.

Licences forbid shipping (METEOR is LGPL, SPICE AGPL, CoreNLP GPL), and nothing is ever downloaded: the user's installed
files are read. A metric that lacks something raises `Unavailable`, which says what, and how to get it.
"""

import importlib.util
import os
import pathlib
import shutil


class Unavailable(ValueError):
    """A metric cannot be computed here. The message is the reason that stands in scores.json in place of the number."""


def pycocoevalcap(folder: str | os.PathLike = '') -> pathlib.Path:
    """The folder of the package pycocoevalcap (it has meteor/, spice/ and tokenizer/), which is not imported.

    Args:
      folder: where it is; '' = the installed package.

    Raises:
      Unavailable: there is none.
    """
    if folder:
        path = pathlib.Path(folder)
        if not (path / 'meteor').is_dir():
            raise Unavailable(f'{path} is not the folder of pycocoevalcap: it has no meteor/ inside')
        return path
    spec = importlib.util.find_spec('pycocoevalcap')
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable(
            "needs the files of pycocoevalcap: pip install 'evil_jax[scores]' (or pip install pycocoevalcap)"
        )
    return pathlib.Path(spec.submodule_search_locations[0])


def java(command: str = '') -> str:
    """Path of the Java program.

    Args:
      command: a path or a name on the PATH; '' = that of $JAVA_HOME, else `java` on the PATH.

    Raises:
      Unavailable: there is none.
    """
    home = os.environ.get('JAVA_HOME', '')
    for candidate in [command] if command else [os.path.join(home, 'bin', 'java')] * bool(home) + ['java']:
        if found := shutil.which(candidate):
            return found
    raise Unavailable(f'needs Java, 8 or later ({command or "java"} was not found): install it, or set evaluate.java')


def cache() -> pathlib.Path:
    """Folder for indexes that are made once: $EVIL_JAX_CACHE, else evil_jax in $XDG_CACHE_HOME or ~/.cache. Made."""
    own = os.environ.get('EVIL_JAX_CACHE')
    root = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
    path = pathlib.Path(own) if own else pathlib.Path(root) / 'evil_jax'
    path.mkdir(parents=True, exist_ok=True)
    return path
