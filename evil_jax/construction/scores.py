"""What an NLI model said of pairs of texts, kept in a file: a changed threshold, or an interrupted run, asks nothing
twice.

The file is SQLite's. After each batch it is on the disk, so a killed process loses the batch that it was at. Several
processes may use it at once; SQLite locks it, which needs a local disk or a network file system with locks.
"""

import contextlib
import hashlib
import json
import pathlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

BATCH = 2_048  # text pairs that the model gets at once, and that are lost at most
_WAIT_S = 60  # for another process that writes
_TABLES = (
    'CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID',
    'CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID',
)
TextPairs = Sequence[tuple[str, str]]  # (premise, hypothesis)


class Cache:
    """A context manager: `with Cache(path, signature) as cache:`.

    Args:
      path: of the file; it is made where there is none.
      signature: what tells one model from another (weights, settings); JSON.

    Raises:
      ValueError: the file is none of these, or another model wrote it.
    """

    def __init__(self, path, signature: Mapping[str, Any]):
        self._path, self._signature, self._db = pathlib.Path(path), dict(signature), None

    def __enter__(self) -> 'Cache':
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._plain_errors():
            # No write-ahead log: that needs memory shared between processes, which network file systems lack.
            self._db = sqlite3.connect(self._path, timeout=_WAIT_S, isolation_level=None)
        try:
            with self._plain_errors():
                self._db.execute('PRAGMA cache_size = -200000')  # kB: keys are hashes, so writes go everywhere
                with self._transaction():
                    self._open()
        except ValueError:
            self._db.close()
            raise
        return self

    def __exit__(self, *error) -> None:
        self._db.close()

    def __len__(self) -> int:
        """Number of text pairs that it knows."""
        with self._plain_errors():
            return self._db.execute('SELECT COUNT(*) FROM scores').fetchone()[0]

    def missing(self, text_pairs: TextPairs) -> int:
        """How many different text pairs it does not know: what `scored` would ask the model."""
        with self._plain_errors():
            return len({key for key in map(_key, text_pairs) if self._get(key) is None})

    def scored(
        self,
        text_pairs: TextPairs,
        score: Callable[[TextPairs], np.ndarray],
        progress: Callable[[int, int], None] | None = None,
    ) -> np.ndarray:
        """What the model says, from the file where that is known.

        Args:
          text_pairs: n of them, (premise, hypothesis); the same may stand there several times.
          score: the model: m text pairs -> [m, 3] probabilities in the order of `pairs.CLASSES`. It gets each different
            one that is missing once, long ones first, BATCH at a time.
          progress: called after each of these batches with (text pairs done, to be done) of this call.

        Returns:
          float32 [n, 3].

        Raises:
          ValueError: scores of another shape or that are no probabilities; the file cannot be written.
        """
        keys = [_key(pair) for pair in text_pairs]
        with self._plain_errors():
            known = {key: self._get(key) for key in set(keys)}
        missing = {key: pair for key, pair in zip(keys, text_pairs) if known[key] is None}
        # By length, so that a batch needs little padding; the key makes the order one and the same.
        order = sorted(missing, key=lambda key: (-sum(map(len, missing[key])), key))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            said = _checked(score([missing[key] for key in batch]), len(batch))
            rows = [(key, row.tobytes()) for key, row in zip(batch, said)]
            with self._plain_errors(), self._transaction():
                self._db.executemany('INSERT OR IGNORE INTO scores VALUES (?, ?)', rows)
            known.update(rows)
            if progress:
                progress(start + len(batch), len(order))
        return np.frombuffer(b''.join(known[key] for key in keys), '<f4').reshape(-1, 3)

    def _get(self, key):
        row = self._db.execute('SELECT value FROM scores WHERE key = ?', (key,)).fetchone()
        return row[0] if row else None

    def _open(self):
        for table in _TABLES:
            self._db.execute(table)
        wanted = json.dumps(self._signature, sort_keys=True)
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('signature', ?)", (wanted,))
        (found,) = self._db.execute("SELECT value FROM meta WHERE key = 'signature'").fetchone()
        if found != wanted:
            had, has = json.loads(found), json.loads(wanted)
            differing = [name for name in sorted(had.keys() | has.keys()) if had.get(name) != has.get(name)]
            told = '; '.join(f'{name} {had.get(name)!r}, now {has.get(name)!r}' for name in differing)
            raise ValueError(f'{self._path}: has scores of another model ({told}): name another construct.nli.cache')

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute('BEGIN IMMEDIATE')
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # SQLite has rolled it back already, as on a full disk
                self._db.execute('ROLLBACK')
            raise
        self._db.execute('COMMIT')

    @contextlib.contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise ValueError(f'{self._path}: cannot be used to keep scores of the NLI model: {error}') from error


def _key(pair):
    premise, hypothesis = pair
    premise = premise.encode()
    return hashlib.blake2b(b'%d:%b%b' % (len(premise), premise, hypothesis.encode()), digest_size=16).digest()


def _checked(said, n):
    said = np.ascontiguousarray(said, '<f4')
    if said.shape != (n, 3):
        raise ValueError(f'the NLI model gave scores of shape {said.shape} for {n:,} pairs of texts, wanted {(n, 3)}')
    if not ((said >= 0) & (said <= 1)).all() or (abs(said.sum(1) - 1) > 0.02).any():
        raise ValueError('the NLI model gave scores that are no probabilities of three classes')
    return said
