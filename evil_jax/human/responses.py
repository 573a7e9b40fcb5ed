"""The tidy table: one row for each rating of an explanation, whoever collected it, and why some do not count.

`read` -> `mark` -> `write`. A rating counts (Kayser et al., 2021, appendix D) if the work was not rejected and the
rater gave the right answer to the task question: who does not see what it is about cannot judge its explanation.
Trusted items check the rater and never count; a page on which one was failed can be left out as a whole.

ratings.csv is for programs that make tables, and `--mode=evaluate` reads it (`ratings.read`); ratings.jsonl has the
same rows as JSON. In the CSV a text that could be a formula has a ' in front, which reading takes away.
"""

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence

from evil_jax import lookup, records
from evil_jax.human import _files, _tidy
from evil_jax.human.ratings import Rating
from evil_jax.human.study import GOLD, RATINGS, TRUSTED

REJECTED, WRONG, NOTHING, KNOWN = _files.REJECTED, _files.OTHERWISE, _files.NOTHING, _files.KNOWN
CHECK, AGAIN = 'failed check', 'rated before'  # by the same rater
FAILURES = ('exclude', 'keep')


@dataclasses.dataclass(frozen=True, slots=True)
class Response:
    """What one rater said of one explanation.

    Attributes:
      dataset, system, item: what was rated; `item` is the example's id, `system` is 'gt' of gold explanations.
      beside: the system whose explanation was shown with it: a gold explanation is rated again beside each system. It
        is `system` itself where there was no other, or of a generated explanation; 'trusted' of all in a trusted item.
      rater: who; hashed where we collected it. '' = not known.
      rating: one of `study.RATINGS`, or '' (none was given).
      shortcomings: those of `study.SHORTCOMINGS` that were ticked.
      task_answer, gold_answer: the rater's answer to the task question and the right one, in words; '' = not asked.
      correct: whether they are the same; None = not asked.
      seconds: that the rater took for the whole page, or None.
      assignment: the page as done by this rater; rows of one page share it.
      status: submitted, approved or rejected, by whoever ran the study.
      reason: why it does not count, one of the constants above; '' = it counts.
      explanation: the rated text, '' where it is not known.
      references: gold explanations of a generated one.
      image_id: of the picture, '' where it is not known.
      preference: of studies that ask which of the two is better: this, other, none; '' = not asked.
      source: file and line, or page.
    """

    dataset: str
    system: str
    item: str
    beside: str
    rater: str
    rating: str
    shortcomings: tuple[str, ...] = ()
    task_answer: str = ''
    gold_answer: str = ''
    correct: bool | None = None
    seconds: float | None = None
    assignment: str = ''
    status: str = 'submitted'
    reason: str = ''
    explanation: str = ''
    references: tuple[str, ...] = ()
    image_id: str = ''
    preference: str = ''
    source: str = ''

    @property
    def trusted(self) -> bool:
        """Whether it is of an item whose ratings are known."""
        return self.reason == KNOWN or TRUSTED in (self.system, self.beside)

    @property
    def counts(self) -> bool:
        return not self.reason

    @property
    def score(self) -> int:
        """The rating in thirds: 0 (no) to 3 (yes)."""
        return RATINGS.index(self.rating)

    @property
    def unit(self) -> tuple[str, str, str, str]:
        """The explanation in its place: all that was rated is told apart by it."""
        return self.dataset, self.system, self.item, self.beside if self.system == GOLD else self.system

    @property
    def page(self) -> tuple[str, str, str]:
        """What was done by one rater at a time. Numbers of assignments may return in other tables."""
        return self.dataset, self.rater, self.assignment

    @property
    def pair(self) -> tuple:
        """The two explanations of an item, as one rater saw them, share it."""
        return self.page, self.item, self.unit[-1]


def read(
    paths: str | os.PathLike | Iterable[str | os.PathLike],
    format: str = 'tidy',
    *,
    scale: tuple[int, int] | str | None = None,
    dataset: str | None = None,
    system: str | None = None,
) -> list[Response]:
    """The rows of one or several files, in their order; whether they count is for `mark` to say.

    Args:
      paths: the files.
      format: `tidy` (CSV or JSON lines; also the form `long` of `ratings.read`, where ratings are of four steps), or
        `ofax` (the survey of OFA-X: two rows of each of its rows).
      scale: (worst, best) of integer ratings, as 'worst-best' in a column `scale`.
      dataset: of rows that name none. None: esnlive, vqax or vcr if the file's name says so, else that name.
      system: of rows that name none. None: '', and 'ofax' for OFA-X.

    Raises:
      ValueError: an unknown format; or, naming file and line, a missing column or id, or a value that is none.
    """
    reader = lookup.entry(_tidy.READERS, format, 'format of ratings')
    files = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [Response(**row) for path in files for row in reader(path, scale, dataset, system)]


def write(path_csv, path_jsonl, rows: Sequence[Response]) -> None:
    """Writes both forms of the table, each atomically."""
    # Not dataclasses.asdict, which copies each value and takes longer than all the rest.
    lines = [json.dumps({name: getattr(row, name) for name in Response.__slots__}, ensure_ascii=False) for row in rows]
    records.atomic_write(path_jsonl, ''.join(f'{line}\n' for line in lines))
    records.atomic_write(path_csv, _tidy.to_csv(rows))


def mark(rows: Iterable[Response], *, trusted_failures: str = 'exclude') -> list[Response]:
    """The rows with the `reason` why each does not count, the first of these that holds:

    it is of a trusted item (or failed it); a reason that is there already; its work was rejected; a trusted item of the
    page was failed; the task was answered otherwise; there is no rating of it or, on the same page, of the explanation
    beside it; the same rater rated it before (in a row that counts).

    Args:
      rows: of any number of studies; those of trusted items have reason `KNOWN`, or `CHECK` where one was failed.
      trusted_failures: of the page's other ratings: 'exclude', or 'keep' (they count).

    Raises:
      ValueError: another way to treat failures.
    """
    if trusted_failures not in FAILURES:
        raise ValueError(f'trusted_failures is {trusted_failures!r}, wanted one of {", ".join(FAILURES)}')
    rows = list(rows)
    excluding = trusted_failures == 'exclude'
    failed = {row.page for row in rows if excluding and row.trusted and row.reason == CHECK and row.assignment}
    half = {row.pair for row in rows if row.assignment and not row.rating}
    marked, seen = [], set()
    for row in rows:
        reason = _why_not(row, failed, half, excluding)
        if not reason and row.rater:
            reason = AGAIN if (row.unit, row.rater) in seen else ''
            seen.add((row.unit, row.rater))
        marked.append(row if reason == row.reason else dataclasses.replace(row, reason=reason))
    return marked


def _why_not(row, failed, half, excluding):
    if row.trusted:
        return CHECK if row.reason == CHECK else KNOWN
    if row.reason and (excluding or row.reason != CHECK):
        return row.reason
    if row.status == 'rejected':
        return REJECTED
    if row.page in failed:
        return CHECK
    if row.correct is False:
        return WRONG
    return NOTHING if not row.rating or row.pair in half else ''


def counts(rows: Iterable[Response]) -> dict:
    """{'ratings': all, 'counted': those that count, 'left_out': {reason: number}}, of marked rows."""
    reasons = Counter(row.reason for row in rows)
    counted = reasons.pop('', 0)
    return {'ratings': counted + reasons.total(), 'counted': counted, 'left_out': dict(reasons.most_common())}


def to_ratings(rows: Iterable[Response]) -> list[Rating]:
    """Those that count, as ratings that metrics are compared with and agreement is computed of."""
    return [
        Rating(
            row.dataset,
            row.system,
            row.item,
            row.score,
            annotator=row.rater or None,
            image=row.image_id or None,
            explanation=row.explanation or None,
            references=row.references,
            flags=row.shortcomings,
            source=row.source,
            beside=_files.beside(row.system, row.beside),
        )
        for row in rows
        if row.counts
    ]
