"""Opening raw annotation files: plain or gzip text, JSON, with errors that name the file."""

import gzip
import json
import pathlib
import zlib
from typing import Any

_GZIP = b'\x1f\x8b'


def read_text(path) -> str:
    """The UTF-8 text of a file, unpacked when it begins like gzip (whatever its name ends in).

    Raises:
      ValueError: not a file, a broken archive or not UTF-8; the file is named.
    """
    path = pathlib.Path(path)
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        return data.decode('utf-8-sig')
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f'{path}: cannot be read: {error}') from error
    except UnicodeDecodeError as error:
        raise ValueError(f'{path}: not UTF-8 text at byte {error.start}') from error


def read_json(path) -> Any:
    """The JSON document in a file, plain or gzip.

    Raises:
      ValueError: not JSON (file, line and column are named).
    """
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f'{path}:{error.lineno}: not JSON: {error.msg} at column {error.colno}') from error


def field(row: dict, name: str, wanted: type | tuple[type, ...], where: str) -> Any:
    """`row[name]`, which must exist and have the wanted type; `where` begins the error message."""
    if name not in row:
        raise ValueError(f'{where}: has no {name!r}, only {", ".join(map(str, row)) or "nothing"}')
    return checked(row[name], wanted, f'{where}: {name}')


def checked(value: Any, wanted: type | tuple[type, ...], where: str) -> Any:
    """`value`, if it has the wanted type (a boolean is no number)."""
    kinds = wanted if isinstance(wanted, tuple) else (wanted,)
    if not isinstance(value, kinds) or isinstance(value, bool):
        names = ' or '.join({dict: 'object', list: 'list', str: 'text'}.get(k, k.__name__) for k in kinds)
        shown = repr(value)
        raise ValueError(f'{where} is {shown if len(shown) < 80 else shown[:77] + "..."}, wanted {names}')
    return value


def explanation_list(value: Any, where: str) -> list[str]:
    """One explanation or a list of them, as a list of non-empty texts."""
    values = [value] if isinstance(value, str) else checked(value, list, where)
    for text in values:
        if not checked(text, str, f'{where}: an entry').strip():
            raise ValueError(f'{where}: an entry is empty, wanted text')
    return [text.strip() for text in values]
