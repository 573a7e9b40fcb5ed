"""Explanations of e-SNLI and pairs that were seen, by pairID, in a temporary file: 570,000 rows need no memory."""

import contextlib
import errno
import json
import os
import pathlib
import sqlite3
import tempfile
from collections.abc import Iterator

from evil_jax.data.sources import esnli

_TABLES = """
create table explained (id text, label text, premise text, hypothesis text, explanations text, marked text, place text);
create unique index explained_id on explained (id);
create table seen (id text primary key, place text) without rowid;
"""
_CACHE_KIB = 64 << 10


class Index:
    """Made by `opened`."""

    def __init__(self, database: sqlite3.Connection):
        self._database = database

    def add(self, row: esnli.Row) -> str:
        """Keeps a row of e-SNLI; returns '', or the place of the row that has its pairID already."""
        values = (
            row.id, row.label, row.premise, row.hypothesis, json.dumps(row.explanations), json.dumps(row.marked),
            row.where,
        )  # fmt: skip
        if self._database.execute('insert or ignore into explained values (?,?,?,?,?,?,?)', values).rowcount:
            return ''
        return self._one('select place from explained where id = ?', row.id)[0]

    def see(self, pair_id: str, where: str) -> str:
        """Remembers a pair; returns '', or the place where it was seen before."""
        if self._database.execute('insert or ignore into seen values (?,?)', (pair_id, where)).rowcount:
            return ''
        return self._one('select place from seen where id = ?', pair_id)[0]

    def find(self, pair_id: str) -> esnli.Row | None:
        """The row of e-SNLI, if there is one."""
        row = self._one('select * from explained where id = ?', pair_id)
        if row is None:
            return None
        *texts, explanations, marked, where = row
        return esnli.Row(*texts, json.loads(explanations), tuple(json.loads(marked)), where)

    def unused(self, first: int = 10) -> tuple[int, list[str]]:
        """Number of rows of e-SNLI that no pair was seen for, and the first pairIDs."""
        rest = 'from explained where id not in (select id from seen)'
        number = self._database.execute(f'select count(*) {rest}').fetchone()[0]
        return number, [row[0] for row in self._database.execute(f'select id {rest} order by rowid limit ?', (first,))]

    def _one(self, query, pair_id):
        return self._database.execute(query, (pair_id,)).fetchone()


@contextlib.contextmanager
def opened(folder: pathlib.Path) -> Iterator[Index]:
    """An empty index, whose file is in `folder` and goes with the process, however that ends.

    Raises:
      OSError: the file cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=folder, prefix='.merge.')
    os.close(handle)
    try:
        database = sqlite3.connect(name, isolation_level=None)
        # No journal: nobody reads the file of a process that was killed. So it may lose its name as soon as it is open.
        for setting in ('journal_mode=off', 'synchronous=off', 'locking_mode=exclusive', f'cache_size=-{_CACHE_KIB}'):
            database.execute(f'pragma {setting}').fetchall()
        database.executescript(_TABLES)
        database.execute('begin')
    finally:
        os.unlink(name)
    try:
        yield Index(database)
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, f'the temporary file of the pairs cannot be written: {error}', str(folder)) from error
    finally:
        database.close()
