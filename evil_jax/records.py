"""What travels through files: Example, Prediction, Score (design: JSON lines, UTF-8, stable field names)."""

import contextlib
import dataclasses
import errno
import fcntl
import functools
import glob
import hashlib
import json
import os
import pathlib
import tempfile
import typing
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO


@dataclasses.dataclass(slots=True)
class Example:
    """One question about one picture.

    Attributes:
      id: unique within a split.
      image_id: key of the picture in the feature store and in the picture folder.
      text: question or hypothesis.
      choices: candidate answers (VCR).
      label: gold class: an index into `choices`, or a class name.
      answers: soft score in [0, 1] of each acceptable answer (VQA).
      annotations: the ten raw annotator answers (VQA).
      answer_type, question_type: the VQA groups.
      objects: object names by tag (VCR).
      explanations: gold explanations; may be empty.
      extra: anything a data set adds; JSON only.
    """

    id: str
    image_id: str
    text: str
    choices: list[str] | None = None
    label: int | str | None = None
    answers: dict[str, float] | None = None
    annotations: list[str] | None = None
    answer_type: str | None = None
    question_type: str | None = None
    objects: list[str] | None = None
    explanations: list[str] = dataclasses.field(default_factory=list)
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Optional fields that are unset are left out."""
        row = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: v for k, v in row.items() if v is not None}

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> 'Example':
        return _from_json(cls, row)


@dataclasses.dataclass(slots=True)
class Prediction:
    """What a model said about one example.

    Attributes:
      id: the example's.
      answer: answer text; None where a file of explanations does not say.
      answer_index: index into the choices, where answers are chosen from a list (texts may repeat there).
      answer_scores: probability of the most likely answers (top 5).
      condition: whether the explanation was generated for the 'predicted' or the 'gold' answer.
      explanation: generated text, which may be empty; None where none was generated for this example (e-ViL's published
        code explains right answers only).
      explanation_ids: decoder tokens of the explanation.
    """

    id: str
    answer: str | None
    answer_index: int | None = None
    answer_scores: dict[str, float] = dataclasses.field(default_factory=dict)
    condition: str = 'predicted'
    explanation: str | None = ''
    explanation_ids: list[int] | None = None

    def __post_init__(self):
        if self.condition not in ('predicted', 'gold'):
            raise ValueError(f"condition of {self.id!r} is {self.condition!r}, wanted 'predicted' or 'gold'")

    def to_json(self) -> dict[str, Any]:
        """Optional fields that are unset are left out."""
        row = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: v for k, v in row.items() if v is not None or k in ('answer', 'explanation')}

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> 'Prediction':
        return _from_json(cls, row)


@dataclasses.dataclass(slots=True)
class Score:
    """A number that carries its settings.

    Attributes:
      value: the score, or None when it could not be computed; `reason` then says why.
      per_example: contribution of each example id, where the score has one.
      n: number of examples scored.
      signature: metric, tokeniser, versions and options, as `key:value` joined by '|'.
      reason: why `value` is None.
      ci95: 95 % interval (low, high), where one was computed.
    """

    value: float | None
    per_example: dict[str, float] | None = None
    n: int = 0
    signature: str = ''
    reason: str | None = None
    ci95: tuple[float, float] | None = None

    def __post_init__(self):
        if self.value is None and not self.reason:
            raise ValueError(f'a score without a value needs a reason (signature {self.signature!r})')

    def to_json(self) -> dict[str, Any]:
        """The form of scores.json: per-example values stay out."""
        row = {'value': self.value, 'n': self.n, 'signature': self.signature}
        if self.reason is not None:
            row['reason'] = self.reason
        if self.ci95 is not None:
            row['ci95'] = list(self.ci95)
        return row


_JSON_TYPES = {
    'id': str, 'image_id': str, 'text': str, 'choices': list, 'label': (int, str), 'answers': dict,
    'annotations': list, 'answer_type': str, 'question_type': str, 'objects': list, 'explanations': list,
    'extra': dict, 'answer': str, 'answer_index': int, 'answer_scores': dict, 'condition': str,
    'explanation': str, 'explanation_ids': list,
}  # fmt: skip


@functools.cache
def _fields(cls) -> dict[str, tuple[bool, bool]]:
    """(must be there, may be null) of each field."""
    must = lambda f: f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    return {f.name: (must(f), type(None) in typing.get_args(f.type)) for f in dataclasses.fields(cls)}


def _from_json(cls, row):
    if not isinstance(row, dict):
        raise ValueError(f'wanted a JSON object, found {type(row).__name__}')
    fields = _fields(cls)
    unknown = sorted(set(row) - set(fields))
    if unknown:
        raise ValueError(f'unknown field {unknown[0]!r}; {cls.__name__} has {", ".join(fields)}')
    for name, (must, nullable) in fields.items():
        if name not in row:
            if must:
                raise ValueError(f'missing field {name!r}')
            continue
        value, wanted = row[name], _JSON_TYPES[name]
        if not (value is None and nullable) and (not isinstance(value, wanted) or isinstance(value, bool)):
            names = ' or '.join(kind.__name__ for kind in (wanted if isinstance(wanted, tuple) else (wanted,)))
            raise ValueError(f'field {name!r} is {value!r}, wanted {names}')
    return cls(**row)


def iter_jsonl(path, cls) -> Iterator[Any]:
    """Yields the records of a JSON-lines file. A bad line raises ValueError naming the file and the line."""
    with open(path, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = cls.from_json(json.loads(line))
            except (ValueError, TypeError) as error:
                raise ValueError(f'{path}:{number}: {error}') from error
            yield record


def read_jsonl(path, cls) -> list[Any]:
    """All records of a JSON-lines file; ids must be unique."""
    rows, seen = [], {}
    for number, record in enumerate(iter_jsonl(path, cls), 1):
        if record.id in seen:
            raise ValueError(f'{path}: record {number} repeats id {record.id!r} of record {seen[record.id]}')
        seen[record.id] = number
        rows.append(record)
    return rows


def write_jsonl(path, rows: Iterable[Any]) -> None:
    """Writes records as JSON lines, atomically."""
    atomic_write(path, ''.join(json.dumps(r.to_json(), ensure_ascii=False) + '\n' for r in rows))


def write_json(path, value) -> None:
    """Writes one indented JSON document, atomically. NaN is refused: it is not JSON."""
    atomic_write(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + '\n')


def atomic_write(path, content: str | bytes) -> None:
    """Writes to a temporary name in the same folder, then renames: readers see the old file or the new one."""
    with atomic_files(path) as (file,):
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def atomic_files(*paths) -> Iterator[list[BinaryIO]]:
    """Binary files to write and to read again, under temporary names in the folders of `paths`.

    All are renamed when the context ends and all of them are on the disk. If it ends with an error none is, and nothing
    is left.
    """
    paths, temporary, files = [pathlib.Path(path) for path in paths], [], []
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
            temporary.append(name)
            files.append(os.fdopen(handle, 'w+b'))
        yield files
        for file in files:
            file.flush()
            os.fsync(file.fileno())
        for path, name in zip(paths, temporary):
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
    except BaseException as error:
        for name in temporary:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
        if isinstance(error, OSError) and error.filename is None:  # a full disk does not say whose
            raise OSError(error.errno, error.strerror, ', '.join(map(str, paths))) from error
        raise
    finally:
        for file in files:
            with contextlib.suppress(OSError):  # all of it is on the disk, or it is not wanted
                file.close()


def remove_leftovers(*paths) -> None:
    """Removes what `atomic_files` of killed processes left beside these paths, whose folders the caller has locked."""
    for path in map(pathlib.Path, paths):
        for left in path.parent.glob(f'.{glob.escape(path.name)}.????????'):
            left.unlink(missing_ok=True)


_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)  # flock on some network file systems


@contextlib.contextmanager
def locked(path, message: str) -> Iterator[None]:
    """Keeps other processes out for as long as the context lasts.

    The kernel lets go of the lock when its process dies, however it dies, so a left-over file is never in the way. A
    file system without locks is warned of, and work goes on.

    Args:
      path: the lock's file, removed in the end; its folder is made. It holds the process number, for the message.
      message: what another process is doing.

    Raises:
      ValueError: another process has the lock: `message`, its number and the path.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(file, 20).decode() or 'unknown'
            os.close(file)
            raise ValueError(f'{message} (process {owner} holds {path})') from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(file)
                raise
            warnings.warn(f'{path}: this file system has no locks: see to it that one process works here', stacklevel=3)
        # The owner before us may have removed the file between our open and our lock.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), path.stat()):
                break
        os.close(file)
    try:
        os.truncate(file, 0)
        os.write(file, str(os.getpid()).encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def file_hash(path) -> str:
    """sha256 of a file, first 16 hex digits."""
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()[:16]
