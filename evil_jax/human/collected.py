"""What the server of a study has collected: rows of the tidy table, progress, and who is to be paid."""

import collections
import dataclasses
import json
import pathlib
import statistics
from collections.abc import Callable, Mapping, Sequence

from evil_jax.human import _secrets, _store, forms
from evil_jax.human.study import Study

_HOUR = 3600
_PAGES = (
    'SELECT a.rater, a.page, a.state, answers.fields, MAX(0.0, a.finished - a.given), a.attempts, raters.status '
    'FROM assignments a JOIN answers ON answers.assignment = a.id JOIN raters USING (rater) ORDER BY a.finished, a.id'
)
_STATES = (
    "SELECT page, CASE WHEN state = 'running' AND expires < ? THEN 'released' ELSE state END AS now, COUNT(*) "
    "FROM assignments JOIN raters USING (rater) WHERE raters.status != 'rejected' GROUP BY page, now"
)
_PAYMENTS = (
    'SELECT person, platform.study, session, rater, raters.status, '
    "(SELECT COUNT(*) FROM assignments a WHERE a.rater = raters.rater AND a.state IN ('done', 'surplus')) "
    'FROM platform JOIN raters USING (rater) ORDER BY raters.began, person'
)
PAYMENT_COLUMNS = ('person', 'study', 'session', 'rater', 'status', 'pages')


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """A finished page.

    Attributes:
      rater, page: whose, which.
      state: done; surplus (handed in after its time, when others had taken all places of the page).
      fields: of the form.
      seconds: from the first sight of the page until it was accepted.
      attempts: how often it was refused before.
      status: of the rater: submitted, approved, rejected.
    """

    rater: str
    page: str
    state: str
    fields: Mapping[str, Sequence[str]]
    seconds: float
    attempts: int
    status: str


def pages(store: _store.Store) -> list[Done]:
    """All finished pages, in the order in which they were handed in."""
    return [Done(*row[:3], json.loads(row[3]), *row[4:]) for row in store.rows(_PAGES)]


def read(folder) -> list:
    """What a server collected in the folder of a study; it may be at work.

    Raises:
      ValueError: no study, no ratings, or those of another study.
    """
    study, path = Study.open(folder), pathlib.Path(folder) / _store.FILE
    if not path.is_file():
        raise ValueError(f'{path}: no server has collected ratings here (--config.human.step=serve starts one)')
    store = _store.Store(path, study)
    try:
        return rows(study, store)
    finally:
        store.close()


def rows(study: Study, store: _store.Store) -> list:
    """The rows of finished pages (`forms.Form.rows`): of a study of ratings one for each explanation.

    Of surplus pages `source` says so.
    """
    form, by_id = forms.of(study), {page.id: page for page in study.pages}
    found = []
    for done in pages(store):
        page = by_id[done.page]
        found += form.rows(
            study,
            page,
            form.parse(done.fields, study, page),
            rater=done.rater,
            assignment=f'{done.page}-{done.rater}',
            seconds=round(done.seconds, 1),
            status=done.status,
            source=f'page {done.page}' + (', surplus' if done.state == _store.SURPLUS else ''),
        )
    return found


def payments(store: _store.Store) -> list[tuple]:
    """`PAYMENT_COLUMNS` of each rater from a platform: the only place where a platform's ids leave the database."""
    return store.rows(_PAYMENTS)


@dataclasses.dataclass(frozen=True, slots=True)
class Rater:
    """A rater on the progress page.

    Attributes:
      rater, status: hashed id; submitted, approved or rejected.
      pages: finished.
      running: the page in work, or ''.
      answers, wrong: to task questions of items that count.
      checks, failed: ratings or labels whose right values are known.
      minutes: of a page, median; None = none is finished.
      attempts: refused submissions.
      comments: from the form.
    """

    rater: str
    status: str
    pages: int
    running: str
    answers: int
    wrong: int
    checks: int
    failed: int
    minutes: float | None
    attempts: int
    comments: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """Where a study stands. A place is one page for one rater; those of rejected raters are free again.

    Attributes:
      places, done, running, surplus: numbers of places; `done` counts no more of a page than are wanted.
      finished_pages, pages: how many pages have all their raters.
      minutes: of a page, median over all that were handed in.
      last_hour: pages handed in.
      hours_left: at the pace of the last hour; None = nothing was handed in.
      raters: in the order in which they came.
    """

    places: int
    done: int
    running: int
    surplus: int
    finished_pages: int
    pages: int
    minutes: float | None
    last_hour: int
    hours_left: float | None
    raters: tuple[Rater, ...]


def progress(study: Study, store: _store.Store) -> Progress:
    """Counts it all; milliseconds for hundreds of pages."""
    states: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for page, state, number in store.rows(_STATES, store.clock()):
        states[page][state] = number
    of = lambda page, state: states[page.id].get(state, 0)
    done = [min(of(page, _store.DONE), study.raters) for page in study.pages]
    finished = pages(store)
    [[last_hour]] = store.rows('SELECT COUNT(*) FROM assignments WHERE finished > ?', store.clock() - _HOUR)
    places = len(study.pages) * study.raters
    left = places - sum(done)
    return Progress(
        places=places,
        done=sum(done),
        running=sum(of(page, _store.RUNNING) for page in study.pages),
        surplus=sum(of(page, _store.SURPLUS) for page in study.pages),
        finished_pages=sum(number == study.raters for number in done),
        pages=len(study.pages),
        minutes=_minutes(finished),
        last_hour=last_hour,
        hours_left=left / last_hour if last_hour else None,
        raters=tuple(_raters(study, store, finished)),
    )


def _raters(study: Study, store: _store.Store, finished: list[Done]):
    theirs = collections.defaultdict(list)
    for done in finished:
        theirs[done.rater].append(done)
    running = dict(
        store.rows("SELECT rater, page FROM assignments WHERE state = 'running' AND expires >= ?", store.clock())
    )
    attempts = dict(store.rows('SELECT rater, SUM(attempts) FROM assignments GROUP BY rater'))
    form, by_id = forms.of(study), {page.id: page for page in study.pages}
    for rater, status in store.rows('SELECT rater, status FROM raters ORDER BY began, rater'):
        comments, tallies = [], []
        for done in theirs[rater]:
            page = by_id[done.page]
            said = form.parse(done.fields, study, page)
            comments += [said.comment] if said.comment else []
            tallies.append(form.tally(study, page, said))
        yield Rater(
            rater=rater,
            status=status,
            pages=len(theirs[rater]),
            running=running.get(rater, ''),
            **{name: sum(getattr(tally, name) for tally in tallies) for name in forms.Tally.__slots__},
            minutes=_minutes(theirs[rater]),
            attempts=attempts.get(rater, 0),
            comments=tuple(comments),
        )


def _minutes(finished: Sequence[Done]) -> float | None:
    return statistics.median(done.seconds for done in finished) / 60 if finished else None


def there(folder) -> bool:
    """Whether a server has collected ratings in this folder."""
    return (pathlib.Path(folder) / _store.FILE).is_file()


def rater_ids(folder) -> Callable[[str], str]:
    """Name of a person on a platform -> id of the rater, by the secret of the study in this folder."""
    return _secrets.open_or_make(folder).rater
