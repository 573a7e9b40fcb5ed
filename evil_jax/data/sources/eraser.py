"""ERASER (DeYoung et al. 2020): texts with a class, and the spans of words that people gave as evidence for it.

A folder holds train.jsonl, val.jsonl and test.jsonl, and the documents: a folder docs/ with a file a document id, or
docs.jsonl with `{"docid", "document"}` a line, never both. A document is a sentence a line; its tokens stand between
single blanks, and blank lines count for nothing. A record is

    {"annotation_id", "query", "query_type", "classification", "docids", "evidences": [group, ...]}

where a group is a list of `{"docid", "text", "start_token", "end_token", "start_sentence", "end_sentence"}`. Only
docid, start_token and end_token (exclusive) are canonical: they count tokens of the whole document.
"""

import pathlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from evil_jax.data.sources import _files

# Stands for white space inside a token, which would make two words of it. BERT drops it, as it drops most of these.
_INSIDE = '\N{REPLACEMENT CHARACTER}'


class Span(NamedTuple):
    """Tokens `start` to `end` (exclusive) of a document."""

    docid: str
    start: int
    end: int


class Annotation(NamedTuple):
    """One record; `groups` are its evidences, `docids` its documents, in the order in which they are named."""

    id: str
    docids: tuple[str, ...]
    query: str
    label: str
    groups: tuple[tuple[Span, ...], ...]


def place(folder) -> pathlib.Path:
    """Where a data set's documents are: its docs/ or docs.jsonl. Raises ValueError where it has neither or both."""
    folder = pathlib.Path(folder)
    many, one = folder / 'docs', folder / 'docs.jsonl'
    if many.is_dir() == one.is_file():
        found = 'both docs/ and docs.jsonl' if one.is_file() else 'neither docs/ nor docs.jsonl'
        raise ValueError(f'{folder}: has {found}, wanted one of them')
    return many if many.is_dir() else one


def documents(path) -> Mapping[str, list[str]]:
    """The documents of a data set as lists of tokens, by document id.

    White space inside a token (a no-break space) is written as U+FFFD, so that `' '.join(tokens).split()` is `tokens`.

    Args:
      path: as `place` gives it. Files of a folder are read when they are asked for.

    Raises:
      ValueError: a document that cannot be read, or is there twice.
    """
    path = pathlib.Path(path)
    return _Folder(path) if path.is_dir() else _read_lines(path)


def read(path, docs: Mapping[str, list[str]], labels: tuple[str, ...] = ()) -> Iterator[Annotation]:
    """Yields the records of one split, in file order.

    Args:
      path: a file of JSON lines.
      docs: as `documents` gives them; the spans are checked against them.
      labels: the classes that there are; () = any.

    Raises:
      ValueError: a bad record, a repeated annotation id, an unknown class, a document that is not there, a span beyond
        its document or of no token, a span whose text is not what its tokens are. File and line are named, and the
        annotation as far as it is known.
    """
    seen = {}
    for where, row in _files.iter_json(path):
        row = _files.checked(row, dict, where)
        name = _files.filled(row, 'annotation_id', where)
        if name in seen:
            raise ValueError(f'{where}: annotation {name[:80]!r} is at {seen[name]} already')
        seen[name] = where
        yield _annotation(name, row, docs, labels, f'{where}: annotation {name[:80]!r}')


def _annotation(name, row, docs, labels, where) -> Annotation:
    label = _files.filled(row, 'classification', where)
    if labels and label not in labels:
        raise ValueError(f'{where}: classification is {label[:80]!r}, wanted one of {", ".join(labels)}')
    groups = []
    for i, group in enumerate(_files.field(row, 'evidences', list, where), 1):
        here = f'{where}: evidence {i}'
        groups.append(tuple(_span(span, docs, here) for span in _files.checked(group, list, here)))
    listed = row.get('docids')
    listed = [] if listed is None else _files.checked(listed, list, f'{where}: docids')
    docids = dict.fromkeys(
        [_files.checked(docid, str, f'{where}: docids: an entry') for docid in listed]
        + [span.docid for group in groups for span in group]
    )
    docids = tuple(docids) or (name,)  # without evidence: the movie reviews' ids are those of their documents
    for docid in docids:
        _document(docs, docid, where)
    return Annotation(name, docids, _files.optional_text(row, 'query', where) or '', label, tuple(groups))


def _span(row, docs, where) -> Span:
    row = _files.checked(row, dict, where)
    docid = _files.filled(row, 'docid', where)
    start, end = (_files.field(row, name, int, where) for name in ('start_token', 'end_token'))
    tokens = _document(docs, docid, where)
    if not 0 <= start < end <= len(tokens):
        raise ValueError(
            f'{where}: start_token {start} and end_token {end} are no span of {docid[:80]!r}, which has '
            f'{len(tokens):,} tokens'
        )
    text = _files.optional_text(row, 'text', where)
    found = ' '.join(tokens[start:end])
    if text is not None and ' '.join(map(_whole, _tokens(text))) != found:
        raise ValueError(
            f'{where}: text is {_files.shown(text)}, but tokens {start} to {end} of {docid[:80]!r} are '
            f'{_files.shown(found)}'
        )
    return Span(docid, start, end)


def _document(docs, docid, where) -> list[str]:
    try:
        return docs[docid]
    except KeyError:
        raise ValueError(f'{where}: document {docid[:80]!r} is not there') from None


class _Folder(Mapping):
    """The files of a folder, each read when it is asked for; the last one is remembered."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._last: tuple[str, list[str]] | None = None

    def __getitem__(self, docid: str) -> list[str]:
        if self._last is None or self._last[0] != docid:
            # A name with a folder in it would lead out of this one.
            path = self._folder / docid
            if '\0' in docid or pathlib.PurePath(docid).name != docid or not path.is_file():
                raise KeyError(docid)
            self._last = docid, _split(_files.read_text(path), str(path))
        return self._last[1]

    def __iter__(self):
        return iter(sorted(path.name for path in self._folder.iterdir()))

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.iterdir())


def _read_lines(path) -> dict[str, list[str]]:
    found = {}
    for where, row in _files.iter_json(path):
        row = _files.checked(row, dict, where)
        docid = _files.filled(row, 'docid', where)
        if docid in found:
            raise ValueError(f'{where}: document {docid[:80]!r} is there already')
        found[docid] = _split(_files.field(row, 'document', str, where), where)
    return found


def _split(text: str, where: str) -> list[str]:
    """The tokens of a document. Not splitlines(), which takes more characters for the end of a line than files do."""
    text = _files.text(text, where).replace('\r\n', '\n').replace('\r', '\n')
    return [_whole(token) for line in text.split('\n') for token in _tokens(line.strip())]


def _tokens(line: str) -> list[str]:
    return [token for token in line.split(' ') if token]


def _whole(token: str) -> str:
    return token if token.split() == [token] else ''.join(_INSIDE if c.isspace() else c for c in token)
