"""A file that is one JSON list, element by element: what is too large to be in memory as a whole."""

import codecs
import json
from collections.abc import Iterator
from typing import Any

from evil_jax.data.sources import _files

_BLANK = ' \t\n\r'
_IN_NUMBERS = ('', '.', 'e', 'E')


def read(path, max_bytes: int = _files.MAX_BYTES, max_element: int = _files.MAX_LINE) -> Iterator[tuple[str, Any]]:
    """Yields (place, element) of a JSON list, plain or gzip; place is `file: record N`, from 1.

    Raises:
      ValueError: not a JSON list, an element of more than about max_element characters, an object with the same key
        twice, or what `_files.read_json` refuses as well; the file and as a rule the record is named.
    """
    text = _Text(path, max_bytes, max_element)
    if text.next() != '[':
        raise ValueError(f'{path}: wanted a JSON list, found {_files.shown(text.rest())}')
    number, mark = 0, text.skip()
    while mark != ']' or number:
        number += 1
        where = f'{path}: record {number}'
        yield where, text.value(where)
        mark = text.next()
        if mark == ']':
            break
        if mark != ',':
            raise ValueError(f'{where}: not JSON: wanted a comma or ] behind it, found {_files.shown(text.rest())}')
        text.skip()
    if text.skip():
        raise ValueError(f'{path}: not JSON: behind the list there is {_files.shown(text.rest())}')


def first(path) -> Any:
    """The first element; None where there is none, or it can't be read."""
    try:
        return next(read(path), (path, None))[1]
    except ValueError:
        return None


class _Text:
    """The text of a file from a place on; as much of it is read as is asked for."""

    def __init__(self, path, max_bytes, max_element):
        self._path, self._max = path, max_element
        self._blocks = _files.blocks(path, max_bytes)
        self._decode = codecs.getincrementaldecoder('utf-8-sig')().decode
        self._json = json.JSONDecoder(object_pairs_hook=_files.whole_object)
        self._text, self._at, self._ended = '', 0, False

    def next(self) -> str:
        """The next character that is no blank, '' at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _BLANK:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ''

    def skip(self) -> str:
        """Passes over one character and gives the next."""
        self._at += 1
        return self.next()

    def rest(self) -> str:
        return self._text[self._at : self._at + 100]

    def value(self, where) -> Any:
        """The JSON value that begins here; passes over it."""
        self.next()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                end, problem = None, f'{where}: not JSON: {error.msg}'
            except RecursionError as error:
                raise ValueError(f'{where}: JSON nested too deeply') from error
            except ValueError as error:  # a repeated key, or an integer of thousands of digits
                raise ValueError(f'{where}: {error}') from error
            # Where the text breaks off a number may, too: '12' or '12.' of 12.5.
            if end is not None and (self._ended or self._text[end : end + 1] not in _IN_NUMBERS):
                self._at = end
                return value
            if len(self._text) - self._at > self._max:
                raise ValueError(f'{where}: is longer than {self._max:,} characters, or not JSON')
            if not self._more() and end is None:
                raise ValueError(problem)

    def _more(self) -> bool:
        """Reads a block, or as much as is there already: an element of any length is begun few times."""
        if self._ended:
            return False
        parts = [self._text[self._at :]]
        wanted, size = 2 * len(parts[0]) + 1, len(parts[0])
        try:
            while size < wanted and not self._ended:
                block = next(self._blocks, b'')
                self._ended = not block
                parts.append(self._decode(block, final=self._ended))
                size += len(parts[-1])
        except UnicodeDecodeError as error:
            raise ValueError(f'{self._path}: not UTF-8 text') from error
        self._text, self._at = ''.join(parts), 0
        return True
