"""The database of a served study: who works on which page, and what they said. What it says is done is on the disk.

SQLite with a write-ahead log, synchronous=FULL: a method that returns has committed, and what is committed survives a
killed process and a lost power supply. All methods may be called from any thread. A page is given to at most so many
raters as the study wants for it (done and running together): each decision is one transaction.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from evil_jax.human.study import STATUSES, Study

FILE = 'ratings.sqlite'
RUNNING, RELEASED, DONE, SURPLUS = 'running', 'released', 'done', 'surplus'
_BUSY = 30  # seconds that a transaction waits for another program that reads the file
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE raters (
  rater TEXT PRIMARY KEY, began REAL NOT NULL,
  status TEXT NOT NULL DEFAULT 'submitted' CHECK (status IN ('submitted', 'approved', 'rejected'))) STRICT;
-- Ids of a platform, to pay people; they never leave this file with ratings.
CREATE TABLE platform (
  rater TEXT PRIMARY KEY REFERENCES raters, person TEXT NOT NULL, study TEXT NOT NULL, session TEXT NOT NULL) STRICT;
CREATE TABLE sessions (token_hash TEXT PRIMARY KEY, rater TEXT NOT NULL REFERENCES raters, began REAL NOT NULL) STRICT;
CREATE TABLE assignments (
  id INTEGER PRIMARY KEY, page TEXT NOT NULL, rater TEXT NOT NULL REFERENCES raters,
  state TEXT NOT NULL CHECK (state IN ('running', 'released', 'done', 'surplus')),
  given REAL NOT NULL, expires REAL NOT NULL, finished REAL, attempts INTEGER NOT NULL DEFAULT 0,
  UNIQUE (page, rater)) STRICT;
CREATE INDEX by_rater ON assignments (rater);
CREATE TABLE drafts (
  assignment INTEGER PRIMARY KEY REFERENCES assignments, fields TEXT NOT NULL, saved REAL NOT NULL) STRICT;
CREATE TABLE answers (assignment INTEGER PRIMARY KEY REFERENCES assignments, fields TEXT NOT NULL) STRICT;
"""
_TAKEN = """
SELECT page, COUNT(*) FROM assignments JOIN raters USING (rater)
WHERE state IN ('running', 'done') AND raters.status != 'rejected' GROUP BY page
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Given:
    """What a rater is to do.

    Attributes:
      page: id; '' = nothing: `why`.
      draft: fields filled in so far.
      done: pages that the rater has done.
      why: rejected; enough (as many pages as one rater may do); nothing (no page is left for this rater); later (none
        is left, but others have not finished theirs).
      paid: whether the rater came from a platform.
    """

    page: str
    draft: Mapping[str, list[str]]
    done: int
    why: str = ''
    paid: bool = False


class Store:
    """The database `path` of a study, made where there is none.

    Args:
      path: of the file, on a local disk.
      study: its items and pages stay as they were at first; the number of raters and the limits may change.
      clock: seconds since 1970.

    Raises:
      ValueError: the file has ratings of other items or pages, or it is no database.
    """

    def __init__(self, path, study: Study, *, clock: Callable[[], float] = time.time):
        self._path, self.clock, self._lock = pathlib.Path(path), clock, threading.Lock()
        self._raters = study.raters
        # Of each page all examples, and those that count.
        self._examples = {
            page.id: (
                frozenset(item.example for item in study.of(page)),
                frozenset(item.example for item in study.of(page) if not item.trusted),
            )
            for page in study.pages
        }
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # its log gets the same mode
        for ending in ('', '-wal', '-shm'):  # of a copy they may have another
            with contextlib.suppress(FileNotFoundError):
                os.chmod(f'{self._path}{ending}', 0o600)
        self._db = sqlite3.connect(self._path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(_fingerprint(study))
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, fingerprint: str) -> None:
        try:
            mode = self._db.execute('PRAGMA journal_mode=WAL').fetchone()[0]
            self._db.execute('PRAGMA synchronous=FULL')
            self._db.execute('PRAGMA foreign_keys=ON')
            if mode != 'wal':
                raise ValueError(
                    f'{self._path}: no write-ahead log on this file system (it is {mode}): use a local disk'
                )
            with self._writing() as db:
                if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                    for statement in _TABLES.split(';\n'):
                        db.execute(statement)
                    db.execute("INSERT INTO meta VALUES ('study', ?)", (fingerprint,))
                found = db.execute("SELECT value FROM meta WHERE key = 'study'").fetchone()
        except sqlite3.DatabaseError as error:
            raise ValueError(f'{self._path}: not the database of a study: {error}') from error
        if not found or found[0] != fingerprint:
            raise ValueError(
                f'{self._path}: its ratings are of other items or pages ({found and found[0]}) than those of the '
                f'study.json here ({fingerprint}): put the old one back, or begin in a folder of its own'
            )

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction; when the context has ended it is on the disk, or nothing of it."""
        with self._lock:
            self._db.execute('BEGIN IMMEDIATE')
            try:
                yield self._db
                self._db.execute('COMMIT')
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute('ROLLBACK')
                raise

    def rows(self, statement: str, *values) -> list[tuple]:
        """What a query finds (the tables: `_TABLES`)."""
        with self._lock:
            return self._db.execute(statement, values).fetchall()

    # Raters.

    def begin(self, rater: str, token_hash: str, platform: tuple[str, str, str] | None = None) -> None:
        """A session of a rater, who may be new.

        Args:
          rater: hashed id.
          token_hash: of the session's token.
          platform: the rater's, the study's and the session's id where people are paid. The last ones count.
        """
        with self._writing() as db:
            now = self.clock()
            db.execute('INSERT OR IGNORE INTO raters (rater, began) VALUES (?, ?)', (rater, now))
            db.execute('INSERT INTO sessions VALUES (?, ?, ?)', (token_hash, rater, now))
            if platform:
                db.execute('INSERT OR REPLACE INTO platform VALUES (?, ?, ?, ?)', (rater, *platform))

    def rater_of(self, token_hash: str) -> str | None:
        """Whose session this is."""
        found = self.rows('SELECT rater FROM sessions WHERE token_hash = ?', token_hash)
        return found[0][0] if found else None

    def judge(self, rater: str, status: str) -> bool:
        """Sets a rater's status. A rejected rater's places are free again. False: there is no such rater."""
        if status not in STATUSES:
            raise ValueError(f'status {status!r}, wanted one of {", ".join(STATUSES)}')
        with self._writing() as db:
            # Who is taken back has no place that others may have taken meanwhile.
            db.execute(
                "UPDATE assignments SET state = 'released' WHERE state = 'running' AND rater IN "
                "(SELECT rater FROM raters WHERE rater = ? AND status = 'rejected')",
                (rater,),
            )
            return db.execute('UPDATE raters SET status = ? WHERE rater = ?', (status, rater)).rowcount == 1

    # Pages.

    def next(self, rater: str, *, timeout: float, max_pages: int = 0) -> Given:
        """The page that a rater works on: the one begun, else another.

        Of pages that the rater may do (never twice, no example that was on another page of this rater; trusted items
        may repeat) it is the one that the fewest have done or are doing.

        Args:
          rater: who.
          timeout: seconds after which a page that nobody touched is given to others.
          max_pages: of one rater; 0 = as many as there are.
        """
        with self._writing() as db:
            now = self.clock()
            _release(db, now, rater)
            [status] = db.execute('SELECT status FROM raters WHERE rater = ?', (rater,)).fetchone()
            mine = dict(db.execute('SELECT page, state FROM assignments WHERE rater = ?', (rater,)))
            done = sum(state in (DONE, SURPLUS) for state in mine.values())
            paid = db.execute('SELECT 1 FROM platform WHERE rater = ?', (rater,)).fetchone() is not None
            if status == 'rejected':
                return Given('', {}, done, 'rejected', paid)
            if page := next((page for page, state in mine.items() if state == RUNNING), None):
                db.execute(
                    'UPDATE assignments SET expires = ? WHERE page = ? AND rater = ?', (now + timeout, page, rater)
                )
                return Given(page, _draft(db, page, rater), done, paid=paid)
            if max_pages and done >= max_pages:
                return Given('', {}, done, 'enough', paid)
            taken = dict(db.execute(_TAKEN))
            allowed = [page for page in self._examples if self._allowed(page, mine)]
            free = [page for page in allowed if taken.get(page, 0) < self._raters]
            if not free:
                others = db.execute("SELECT page FROM assignments WHERE state = 'running'").fetchall()
                later = {page for (page,) in others} & set(allowed)
                return Given('', {}, done, 'later' if later else 'nothing', paid)
            # One's own page that was given up first; of the others the one that has fewest.
            page = min(free, key=lambda page: (page not in mine, taken.get(page, 0)))
            db.execute(
                'INSERT INTO assignments (page, rater, state, given, expires) VALUES (?, ?, ?, ?, ?) '
                "ON CONFLICT (page, rater) DO UPDATE SET state = 'running', expires = excluded.expires",
                (page, rater, RUNNING, now, now + timeout),
            )
            return Given(page, _draft(db, page, rater), done, paid=paid)

    def _room(self, page: str) -> bool:
        return dict(self._db.execute(_TAKEN)).get(page, 0) < self._raters

    def _allowed(self, page: str, mine: Mapping[str, str]) -> bool:
        """Whether a rater, who was given those of `mine` (page -> state), may do a page."""
        if mine.get(page, RELEASED) != RELEASED:
            return False
        shown, counting = self._examples[page]
        others = [self._examples[other] for other in mine if other != page]
        return not any(counting & seen or shown & counted for seen, counted in others)

    def save(
        self, page: str, rater: str, fields: Mapping[str, Sequence[str]], *, timeout: float, refused=False
    ) -> str | None:
        """Keeps what is filled in so far, and the page for this rater: also one that was released, if it is still free.

        Args:
          page, rater: the assignment.
          fields: of the form.
          timeout: as in `next`.
          refused: the rater tried to hand this in.

        Returns:
          State of the page: running or released; done or surplus: it was handed in, nothing is changed. None: it was
          never given to this rater.
        """
        with self._writing() as db:
            now = self.clock()
            number, state = _assignment(db, now, page, rater)
            if state in (None, DONE, SURPLUS):
                return state
            if state == RELEASED and self._room(page):
                state = RUNNING
            db.execute(
                'UPDATE assignments SET state = ?, expires = ?, attempts = attempts + ? WHERE id = ?',
                (state, now + timeout, int(refused), number),
            )
            text = json.dumps(fields, ensure_ascii=False)
            db.execute('INSERT OR REPLACE INTO drafts VALUES (?, ?, ?)', (number, text, now))
            return state

    def submit(self, page: str, rater: str, fields: Mapping[str, Sequence[str]]) -> str | None:
        """Takes a finished page. Handed in again it stays as it was at first.

        Returns:
          Its state: done, or surplus (handed in after its time, when others had taken all places of the page). None:
          the page was never given to this rater.
        """
        with self._writing() as db:
            now = self.clock()
            number, state = _assignment(db, now, page, rater)
            if state in (None, DONE, SURPLUS):
                return state
            state = DONE if state == RUNNING or self._room(page) else SURPLUS
            db.execute('UPDATE assignments SET state = ?, finished = ? WHERE id = ?', (state, now, number))
            db.execute('INSERT INTO answers VALUES (?, ?)', (number, json.dumps(fields, ensure_ascii=False)))
            db.execute('DELETE FROM drafts WHERE assignment = ?', (number,))
            return state

    def answers(self, page: str, rater: str) -> dict[str, list[str]] | None:
        """Fields of a page as it was handed in."""
        found = self.rows(
            'SELECT fields FROM answers JOIN assignments a ON a.id = assignment WHERE a.page = ? AND a.rater = ?',
            page, rater,
        )  # fmt: skip
        return json.loads(found[0][0]) if found else None


def _release(db, now: float, rater: str) -> None:
    """Ends the time of everybody else's pages that nobody touched for too long."""
    db.execute(
        "UPDATE assignments SET state = 'released' WHERE state = 'running' AND expires < ? AND rater != ?", (now, rater)
    )


def _assignment(db, now: float, page: str, rater: str) -> tuple[int | None, str | None]:
    """(number, state) of a page given to a rater, after others' expired ones are released; (None, None): it was not."""
    _release(db, now, rater)
    found = db.execute('SELECT id, state FROM assignments WHERE page = ? AND rater = ?', (page, rater)).fetchone()
    return found or (None, None)


def _draft(db, page: str, rater: str) -> dict[str, list[str]]:
    found = db.execute(
        'SELECT fields FROM drafts JOIN assignments a ON a.id = assignment WHERE a.page = ? AND a.rater = ?',
        (page, rater),
    ).fetchone()
    return json.loads(found[0]) if found else {}


def _fingerprint(study: Study) -> str:
    """Tells items and pages from others."""
    what = [[dataclasses.asdict(item) for item in study.items.values()], [dataclasses.asdict(p) for p in study.pages]]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
