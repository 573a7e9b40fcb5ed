"""Opening raw annotation files: plain or gzip, whole or line by line, JSON; and checks of what is in a record.

Whatever is wrong with a file is a ValueError that names the file and, as far as it was read, the line or the record.
Memory is bounded: files, lines and texts have a largest size, and nothing is unpacked beyond it.
"""

import codecs
import csv
import gzip
import io
import itertools
import json
import os
import pathlib
import re
import reprlib
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evil_jax.data.features.regions import without_ending

_GZIP = b'\x1f\x8b'
_BLOCK = 1 << 20
# Far above what is published (VQA v2's training annotations: 0.4 GB unpacked, 17 times their archive).
MAX_BYTES = 4 << 30  # of a file, unpacked
MAX_RATIO = 200  # of unpacked to packed bytes, counted above 64 MiB: an archive of zeros packs 1,000 to 1
MAX_LINE = 16 << 20  # bytes of a line of JSON lines
MAX_TEXT = 1 << 17  # characters of one text
_SURROGATE = re.compile('[\ud800-\udfff]')

_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxlong, _short.maxother = 2, 77, 77, 77
shown = _short.repr  # a value for a message: short, and never deeper than two lists


def blocks(path, max_bytes: int) -> Iterator[bytes]:
    """The content in blocks of at most 1 MiB, unpacked when it begins like gzip (whatever its name ends in)."""
    size = 0
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError('it is not a file')
        with open(path, 'rb') as file:
            packed = file.peek(len(_GZIP)).startswith(_GZIP)
            if packed:
                max_bytes = min(max_bytes, max(64 << 20, MAX_RATIO * os.fstat(file.fileno()).st_size))
            stream = gzip.GzipFile(fileobj=file) if packed else file
            while block := stream.read(_BLOCK):
                size += len(block)
                if size > max_bytes:
                    unpacked = ' when unpacked' if packed else ''
                    raise ValueError(f'{path}: is larger than {max_bytes:,} bytes{unpacked}')
                yield block
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f'{path}: cannot be read: {error}') from error


def _decode(data: bytes, where: str, first: bool = True) -> str:
    try:
        return data.decode('utf-8-sig' if first else 'utf-8')
    except UnicodeDecodeError as error:
        raise ValueError(f'{where}: not UTF-8 text at byte {error.start}') from error


def read_text(path, max_bytes: int = MAX_BYTES) -> str:
    """The UTF-8 text of a file, plain or gzip.

    Raises:
      ValueError: not a file, a broken archive, more than max_bytes, or not UTF-8; the file is named.
    """
    return _decode(b''.join(blocks(path, max_bytes)), str(path))


def first_character(path) -> str:
    """The first character of a file that is no blank, or ''; only the beginning of the file is read."""
    start = next(blocks(path, MAX_BYTES), b'')
    return start.removeprefix(codecs.BOM_UTF8).lstrip()[:1].decode('ascii', 'replace')


def first_record(path) -> Any:
    """The JSON value in the first line that is not blank; None where that line is no JSON by itself.

    Raises:
      ValueError: the file cannot be read.
    """
    start, size = [], 0
    for block in blocks(path, MAX_BYTES):
        block = block if start else block.removeprefix(codecs.BOM_UTF8).lstrip()
        line, end, _ = block.partition(b'\n')
        start += [line] if line else []
        size += len(line)
        if size > MAX_LINE or (end and start):
            break
    try:
        return None if size > MAX_LINE else parse_json(b''.join(start).decode(), path)
    except ValueError:
        return None


def read_json(path, max_bytes: int = MAX_BYTES) -> Any:
    """The JSON document in a file, plain or gzip.

    Raises:
      ValueError: not JSON (file, line and column are named), an object with the same key twice, or nested too deeply.
    """
    return parse_json(read_text(path, max_bytes), path)


def iter_json(path, max_bytes: int = MAX_BYTES, max_line: int = MAX_LINE) -> Iterator[tuple[str, Any]]:
    """Yields (place, value) of each line of a file of JSON lines, plain or gzip; place is `file:line`.

    One line is in memory at a time. Empty lines are passed over.
    """
    for number, line in enumerate(_lines(path, max_bytes, max_line), 1):
        where = f'{path}:{number}'
        if text := _decode(line, where, number == 1).strip():
            yield where, parse_json(text, where, lines=False)


def _lines(path, max_bytes, max_line) -> Iterator[bytes]:
    rest, number = b'', 1
    for block in blocks(path, max_bytes):
        *whole, rest = (rest + block).split(b'\n')
        for line in (*whole, rest):
            if len(line) > max_line:
                raise ValueError(f'{path}:{number}: the line is longer than {max_line:,} bytes')
            number += 1
        number -= 1
        yield from whole
    if rest:
        yield rest


def iter_lines(path, max_bytes: int = MAX_BYTES, max_line: int = MAX_LINE) -> Iterator[str]:
    """Yields the lines of a UTF-8 text, plain or gzip, with their ends as they are: \\n, \\r\\n or \\r.

    A block of the file is in memory at a time.

    Raises:
      ValueError: as `read_text`, or a line of more than max_line characters.
    """
    decoder, rest, start, number = codecs.getincrementaldecoder('utf-8-sig')(), '', 0, 0
    for block in itertools.chain(blocks(path, max_bytes), [b'']):
        try:
            text = rest + decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            start += error.start + len(block) - len(error.object)
            raise ValueError(f'{path}: not UTF-8 text at byte {start}') from error
        start += len(block)
        lines = list(io.StringIO(text, newline=''))
        rest = lines.pop() if lines and block else ''  # it may go on, also behind a \r
        number += len(lines)
        if len(rest) > max_line:
            raise ValueError(f'{path}:{number + 1}: the line is longer than {max_line:,} characters')
        yield from lines


def csv_rows(path, content: str | Iterable[str], delimiter: str = ',') -> Iterator[tuple[str, list[str]]]:
    """Yields ('file:line', cells) of each line that is not blank, the header first; all have as many cells as that.

    Args:
      path: for messages.
      content: the text, or its lines with their ends (`iter_lines`).
      delimiter: between cells.

    Raises:
      ValueError: not CSV, or another number of cells; file and line are named.
    """
    lines = io.StringIO(content, newline='') if isinstance(content, str) else content
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    width, line = 0, 1
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise ValueError(f'{path}:{rows.line_num}: not CSV: {error}') from error
        where, line = f'{path}:{line}', rows.line_num + 1  # a quoted cell may span lines: name the first
        if row is None:
            return
        if not row:
            continue
        width = width or len(row)
        if len(row) != width:
            raise ValueError(f'{where}: has {len(row)} cells, wanted {width} as in the first line')
        yield where, row


def parse_json(text: str, where, lines: bool = True) -> Any:
    """The JSON document in a text. `where` begins the error message; `lines` adds `:line` to it."""
    try:
        return json.loads(text, object_pairs_hook=whole_object)
    except json.JSONDecodeError as error:
        where = f'{where}:{error.lineno}' if lines else where
        raise ValueError(f'{where}: not JSON: {error.msg} at column {error.colno}') from error
    except RecursionError as error:
        raise ValueError(f'{where}: JSON nested too deeply') from error
    except ValueError as error:  # a repeated key, or an integer of thousands of digits
        raise ValueError(f'{where}: {error}') from error


def whole_object(pairs) -> dict:
    """For the object_pairs_hook of json: an object in which no key stands twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f'the key {shown(key)} appears twice in one JSON object')
            seen.add(key)
    return found


def field(row: dict, name: str, wanted: type | tuple[type, ...], where: str) -> Any:
    """`row[name]`, which must exist and have the wanted type; `where` begins the error message."""
    if name not in row:
        raise ValueError(f'{where}: has no {name!r}, only {", ".join(keys(row)) or "nothing"}')
    return checked(row[name], wanted, f'{where}: {name}')


def keys(row: dict) -> list[str]:
    """The first keys of a record, short enough for a message."""
    return [key if len(key) <= 40 else key[:37] + '...' for key in list(row)[:20]]


def some_ids(ids: Sequence[str], most: int = 10) -> str:
    """'1,459 ids: 'a', 'b', ...', cut after `most`, in their order."""
    listed = ', '.join(repr(i[:80]) for i in ids[:most])
    return f'{len(ids):,} id{"s" if len(ids) != 1 else ""}: {listed}{", ..." if len(ids) > most else ""}'


def checked(value: Any, wanted: type | tuple[type, ...], where: str) -> Any:
    """`value`, if it has the wanted type (a boolean is no number) and, as a text, can be written again."""
    if not isinstance(value, wanted) or isinstance(value, bool):
        kinds = wanted if isinstance(wanted, tuple) else (wanted,)
        names = ' or '.join({dict: 'object', list: 'list', str: 'text'}.get(k, k.__name__) for k in kinds)
        raise ValueError(f'{where} is {shown(value)}, wanted {names}')
    return text(value, where) if isinstance(value, str) else value


def text(value: str, where: str) -> str:
    """`value`, if it is no longer than MAX_TEXT and can be written as UTF-8 (JSON can spell half a character)."""
    if len(value) > MAX_TEXT:
        raise ValueError(f'{where} has {len(value):,} characters, wanted at most {MAX_TEXT:,}')
    if not value.isascii() and (half := _SURROGATE.search(value)):
        raise ValueError(f'{where} has half a surrogate pair, {half.group()!a}, which is no character')
    return value


def filled(row: dict, name: str, where: str) -> str:
    """`row[name]`, a text with more in it than blanks, without those at its ends."""
    value = field(row, name, str, where).strip()
    if not value:
        raise ValueError(f'{where}: {name} is empty')
    return value


def optional_text(row: dict, name: str, where: str) -> str | None:
    """`row[name]` as text, or None where it is absent or null."""
    value = row.get(name)
    return None if value is None else checked(value, str, f'{where}: {name}')


def explanation_list(value: Any, where: str) -> list[str]:
    """One explanation or a list of them, as a list of non-empty texts."""
    values = [value] if isinstance(value, str) else checked(value, list, where)
    for entry in values:
        if not checked(entry, str, f'{where}: an entry').strip():
            raise ValueError(f'{where}: an entry is empty, wanted text')
    return [entry.strip() for entry in values]


def picture_name(value: str, where: str) -> str:
    """The name of a picture or its feature file: no folder, no ending (.jpg, .jpeg, .png, .npz)."""
    name = without_ending(pathlib.PurePath(value.strip()).name)
    if not name:
        raise ValueError(f'{where} is {value!r}, which names no picture')
    return name


def plain(value: Any, where: str, max_depth: int = 30) -> Any:
    """`value`, if all of it can be written as JSON again: whole characters, finite numbers, not nested too deeply."""
    level = [value]
    for _ in range(max_depth):
        inner = []
        for item in level:
            if isinstance(item, dict):
                inner += [*item, *item.values()]
            elif isinstance(item, list):
                inner += item
            elif isinstance(item, str):
                text(item, where)
            elif isinstance(item, float) and not abs(item) < float('inf'):
                raise ValueError(f'{where}: {item} is no JSON number')
        if not inner:
            return value
        level = inner
    raise ValueError(f'{where}: nested more than {max_depth} deep')
