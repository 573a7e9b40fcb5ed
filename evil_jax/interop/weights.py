"""Files of other people's weights as arrays by name: Hugging Face folders, .safetensors files, PyTorch files.

    --config.model.task.init=hf:FOLDER        model.safetensors, its shards with an index, or pytorch_model.bin
    --config.model.task.init=torch:FILE.pt    a state dict of PyTorch

Nothing in a file is ever executed: a pickle that holds code is refused. Nothing is downloaded.
"""

import json
import pathlib
import pickle
import re
from typing import NamedTuple

import numpy as np

from evil_jax import records

KINDS = {'hf': 'the folder of a Hugging Face model', 'torch': 'a file of PyTorch'}
_SAFE, _TORCH = 'model.safetensors', 'pytorch_model.bin'
_WRAPPERS = ('state_dict', 'model_state_dict', 'model')  # keys that training scripts keep a state dict under


class Spec(NamedTuple):
    """A setting 'hf:PATH' or 'torch:PATH': `kind` is the part before the colon."""

    kind: str
    path: pathlib.Path

    def __str__(self) -> str:
        return f'{self.kind}:{self.path}'


def spec(value: str) -> Spec | None:
    """Parses a setting; None for one of another kind, such as a work folder.

    Raises:
      ValueError: nothing is named or there, or a folder is a file.
    """
    kind, colon, name = str(value).partition(':')
    if not colon or kind not in KINDS:
        return None
    if not name:
        raise ValueError(f'{value}: nothing is named behind the colon; wanted {KINDS[kind]} on this machine')
    path = pathlib.Path(name).expanduser().absolute()
    safe = kind == 'hf' and path.suffix == '.safetensors' and path.is_file()
    if not (safe or (path.is_dir() if kind == 'hf' else path.is_file())):
        there = 'is a file' if path.is_file() else 'is a folder' if path.is_dir() else 'does not exist'
        raise ValueError(f'{value}: {path} {there}; wanted {KINDS[kind]} on this machine (nothing is downloaded)')
    return Spec(kind, path)


def read(path, wrapped: bool = True) -> dict[str, np.ndarray]:
    """The arrays of a file or folder by name; floating-point ones are float32, others stay what they are.

    `module.`, which DataParallel puts before every name, is taken off.

    Args:
      path: a folder of Hugging Face's, a .safetensors file, or a file of PyTorch under any other name.
      wrapped: take the state dict that a checkpoint keeps under 'state_dict' or 'model', beside other things.

    Raises:
      ValueError: nothing to read, not such a file, or one that holds code; names the file.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        found = _read_folder(path, wrapped)
    elif not path.is_file():
        raise ValueError(f'{path} does not exist; wanted a folder of Hugging Face, .safetensors or a file of PyTorch')
    else:
        found = _read_file(path, wrapped)
    return _bare(found)


def _bare(found):
    prefix = 'module.' if all(name.startswith('module.') for name in found) else ''
    return {name.removeprefix(prefix): array for name, array in found.items()}


def read_torch(path, wrapped: bool = True) -> dict[str, np.ndarray]:
    """`read` for a file of PyTorch, whatever its name."""
    return _bare(_read_torch(path, wrapped))


def write(path, arrays: dict[str, np.ndarray]) -> None:
    """Writes a .safetensors file that PyTorch and transformers read; the old file or the new one, never half of it."""
    from safetensors import numpy as safetensors

    arrays = {name: np.asarray(array, order='C') for name, array in arrays.items()}
    records.atomic_write(path, safetensors.save(arrays, metadata={'format': 'pt'}))


def folder_of(path) -> pathlib.Path | None:
    """The Hugging Face folder that a path means: itself, or where a .safetensors file lies.

    None for files of another kind: nobody knows what a file of PyTorch lies beside.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        return path
    return path.parent if path.suffix == '.safetensors' else None


def find_config(path) -> dict | None:
    """config.json of the folder that a path means (see `folder_of`); None where there is none.

    Raises:
      ValueError: it is no JSON object.
    """
    folder = folder_of(path)
    return read_config(folder) if folder and (folder / 'config.json').is_file() else None


def read_config(folder) -> dict:
    """config.json of a Hugging Face folder.

    Raises:
      ValueError: there is none, or it is no JSON object.
    """
    return read_json(pathlib.Path(folder) / 'config.json')


def read_json(path) -> dict:
    """A JSON object. Raises ValueError naming the file."""
    if not path.is_file():
        raise ValueError(f'{path} does not exist')
    try:
        found = json.loads(path.read_text(encoding='utf-8'))
    except (ValueError, RecursionError) as error:
        raise ValueError(f'{path}: not JSON: {error}') from error
    if not isinstance(found, dict):
        raise ValueError(f'{path}: found a JSON {type(found).__name__}, wanted an object')
    return found


def _read_folder(folder, wrapped):
    for name in (_SAFE, _TORCH):
        if (folder / name).is_file():
            return _read_file(folder / name, wrapped)
        if (folder / f'{name}.index.json').is_file():
            return _read_shards(folder / f'{name}.index.json', wrapped)
    there = ', '.join(sorted(p.name for p in folder.iterdir())[:10]) or 'nothing'
    raise ValueError(f'{folder} has no weights: found {there}; wanted {_SAFE}, {_SAFE}.index.json or {_TORCH}')


def _read_shards(index, wrapped):
    """The files that an index names, which together hold exactly the arrays that it names."""
    where = read_json(index).get('weight_map')
    if not isinstance(where, dict) or not where or not all(isinstance(file, str) for file in where.values()):
        raise ValueError(f'{index}: weight_map is {str(where)[:80]}, wanted {{name: file}}')
    faults, found = [], {}
    for file in sorted(set(where.values())):
        if pathlib.PurePath(file).name != file or '\0' in file or not (index.parent / file).is_file():
            faults.append(f'{file!r} is no file of the folder')
            continue
        shard, wanted = _read_file(index.parent / file, wrapped), {n for n, f in where.items() if f == file}
        faults += [f'{file} has no {name}' for name in sorted(wanted - shard.keys())]
        faults += [f'{file} has {name}, which the index has not' for name in sorted(shard.keys() - wanted)]
        found |= shard
    if faults:
        more = f'; and {len(faults) - 10} more' if len(faults) > 10 else ''
        raise ValueError(f'{index}: {"; ".join(faults[:10])}{more}')
    return found


def _read_file(path, wrapped):
    return _read_safe(path) if path.suffix == '.safetensors' else _read_torch(path, wrapped)


def _read_safe(path):
    import safetensors

    try:
        with safetensors.safe_open(path, 'np') as file:  # it checks lengths and offsets
            names = file.keys()
            kinds = {name: file.get_slice(name).get_dtype() for name in names}
            found = {name: _float(file.get_tensor(name)) for name, kind in kinds.items() if kind in _NUMPY}
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f'{path}: not a .safetensors file: {error}') from error
    for name, kind in kinds.items():
        if kind not in (*_NUMPY, 'BF16'):
            raise ValueError(f'{path}: {name} is {kind}, wanted float32, float16 or bfloat16')
    found |= _read_bfloat(path, [name for name, kind in kinds.items() if kind == 'BF16'])
    if not found:
        raise ValueError(f'{path}: holds no arrays')
    return found


_NUMPY = {'F64', 'F32', 'F16', 'I64', 'I32', 'I16', 'I8', 'U64', 'U32', 'U16', 'U8', 'BOOL'}


def _read_bfloat(path, names) -> dict[str, np.ndarray]:
    """bfloat16, which numpy has not: the upper half of a float32. The file's header has been checked."""
    found = {}
    if names:
        with open(path, 'rb') as file:
            length = int.from_bytes(file.read(8), 'little')
            header = json.loads(file.read(length))
        for name in names:
            start, end = header[name]['data_offsets']
            bits = np.fromfile(path, '<u2', (end - start) // 2, offset=8 + length + start)
            found[name] = (bits.astype(np.uint32) << 16).view(np.float32).reshape(header[name]['shape'])
    return found


def _float(array):
    return array.astype(np.float32, copy=False) if np.issubdtype(array.dtype, np.floating) else array


def _read_torch(path, wrapped):
    try:
        import torch
    except ImportError as error:
        raise ValueError(f'{path}: reading it needs PyTorch: pip install "evil_jax[torch]"') from error
    try:
        with open(path, 'rb') as file:
            start = file.read(2)
    except OSError as error:
        raise ValueError(f'{path}: cannot be read: {error.strerror}') from error
    if not start.startswith((b'PK', b'\x80')):  # a zip file, or a pickle of older versions
        raise ValueError(f'{path}: not a state dict of PyTorch: it is no file that torch.save writes')
    try:
        # weights_only: nothing in the file is executed.
        found = torch.load(path, map_location='cpu', weights_only=True)
    except (OSError, EOFError, LookupError, TypeError, ValueError, AttributeError, RuntimeError, pickle.UnpicklingError,
            OverflowError, MemoryError, AssertionError) as error:  # fmt: skip
        raise ValueError(f'{path}: not a state dict of PyTorch: {_reason(error)}') from error
    if wrapped and isinstance(found, dict):
        found = next((found[key] for key in _WRAPPERS if isinstance(found.get(key), dict)), found)
    if not isinstance(found, dict) or not found:
        size = f'{len(found)} entries' if hasattr(found, '__len__') else 'no length'
        raise ValueError(f'{path}: holds {type(found).__name__} of {size}, wanted a state dict: name -> tensor')
    wrong = next((n for n, x in found.items() if not isinstance(n, str) or not isinstance(x, torch.Tensor)), None)
    if wrong is not None:
        raise ValueError(
            f'{path}: entry {wrong!r} is a {type(found[wrong]).__name__}, wanted a state dict: name -> tensor'
        )
    try:
        return {
            name: (x.detach().float() if x.is_floating_point() else x.detach()).numpy() for name, x in found.items()
        }
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise ValueError(f'{path}: holds tensors of another kind: {_reason(error)}') from error


def _reason(error) -> str:
    text = str(error).strip()
    if code := re.search(r'GLOBAL ([\w.]+)', text):
        return (
            f'its pickle wants to call {code[1]}, and code in a file is never executed. Where you trust it, write its '
            'tensors alone with the program that made it: torch.save(model.state_dict(), path)'
        )
    return f'{type(error).__name__}: {(text.splitlines() or [""])[0]}'
