"""Copies remote features to a local folder, once, because memory maps and random reads need a local file."""

import contextlib
import hashlib
import os
import pathlib
import shutil
import tempfile

import fsspec

from evil_jax.data.features import store


def cache_folder() -> pathlib.Path:
    """$EVIL_JAX_CACHE, or ~/.cache/evil_jax."""
    return pathlib.Path(os.environ.get('EVIL_JAX_CACHE') or '~/.cache/evil_jax').expanduser()


def stage(url: str) -> pathlib.Path:
    """Local copy of a remote file or store.

    The copy is made under a temporary name, checked (every byte of a store) and then renamed; it is used again as long
    as the remote file (of a store: store.json) is the same.

    Raises:
      ValueError: no driver for this protocol, nothing there, or a damaged copy.
    """
    url = url.rstrip('/')
    try:
        remote, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ValueError(f'{url}: cannot be opened: {error}') from error
    path = path.rstrip('/')
    if not remote.exists(path):
        raise ValueError(f'{url}: no region features, the path does not exist')
    folder = remote.isdir(path)
    if folder:
        if not remote.exists(f'{path}/store.json'):
            raise ValueError(f'{url}: a remote folder must be a feature store, but it has no store.json')
        version = remote.cat_file(f'{path}/store.json')
        files = {file: file[len(path) :].lstrip('/') for file in remote.find(path)}
    else:
        version = str(remote.ukey(path)).encode()
        name = path.rsplit('/', 1)[-1]
        files = {path: name}
        index = f'{pathlib.PurePosixPath(path).stem}_offset.txt'  # of a TSV, if there is one
        if remote.exists(beside := path[: len(path) - len(name)] + index):
            files[beside] = index
    for name in files.values():
        if '..' in pathlib.PurePosixPath(name).parts:
            raise ValueError(f'{url}: refuses the remote file name {name!r}')

    key = hashlib.sha256(url.encode() + b'\0' + version).hexdigest()[:16]
    target = cache_folder() / 'features' / key
    local = target if folder else target / path.rsplit('/', 1)[-1]
    if target.is_dir():
        return local
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(tempfile.mkdtemp(dir=target.parent, prefix=f'.{key}.'))
    try:
        for file, name in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            remote.get_file(file, str(temporary / name))
        if folder:
            try:
                store.Reader(temporary).verify()
            except ValueError as error:
                raise ValueError(f'{url}: the copy is damaged: {error}') from error
        # If another process was faster, its copy is as good as this one, and a full folder is not replaced.
        with contextlib.suppress(OSError):
            os.rename(temporary, target)
        if not target.is_dir():
            raise ValueError(f'{url}: {temporary} could not be renamed to {target}')
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return local
