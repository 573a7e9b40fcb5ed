"""The table of a labelling study: one row for what one rater said of one item, and why some rows do not count.

`read` -> `mark` -> `write`. labels.csv is for programs that make tables and for `--mode=construct`; labels.jsonl has
the same rows as JSON. In the CSV highlighted words have blanks between them, and a text that could be a formula has a '
in front, which reading takes away.
"""

import csv
import dataclasses
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence

from evil_jax import records, stats
from evil_jax.data.sources import _files
from evil_jax.human import _table, agreement, responses
from evil_jax.human.study import RELATIONS, STATUSES

KNOWN, CHECK, REJECTED, AGAIN = responses.KNOWN, responses.CHECK, responses.REJECTED, 'labelled before'
NOTHING = 'no label'
CLASSES = tuple(name.lower() for name in RELATIONS)


@dataclasses.dataclass(frozen=True, slots=True)
class Label:
    """What one rater said of one item.

    Attributes:
      item: id of the example: a pairID.
      rater: who; hashed.
      label: one of `CLASSES`; '' = none was chosen.
      words: of the hypothesis, those highlighted, in its order.
      explanation: as written.
      given: the label that the data give so far; of a trusted item the right one.
      hypothesis, image_id, dataset: of the item.
      seconds: that the rater took for the whole page, or None.
      assignment: the page as done by this rater; rows of one page share it.
      status: submitted, approved or rejected, by whoever ran the study.
      reason: why it does not count, one of the constants above; '' = it counts.
      trusted: whether the item's label was known, so that it checks the rater.
      source: file and line, or page.
    """

    item: str
    rater: str
    label: str
    words: tuple[str, ...] = ()
    explanation: str = ''
    given: str = ''
    hypothesis: str = ''
    image_id: str = ''
    dataset: str = ''
    seconds: float | None = None
    assignment: str = ''
    status: str = STATUSES[0]
    reason: str = ''
    trusted: bool = False
    source: str = ''

    @property
    def unit(self) -> tuple[str, str]:
        return self.dataset, self.item

    @property
    def counts(self) -> bool:
        return not self.reason


COLUMNS = tuple(field.name for field in dataclasses.fields(Label))
_TEXTS = tuple(field.name for field in dataclasses.fields(Label) if field.type is str)


def mark(rows: Iterable[Label], *, trusted_failures: str = 'exclude') -> list[Label]:
    """The rows with the `reason` why each does not count, the first of these that holds:

    it is of a trusted item (or failed it); its work was rejected; a trusted item of the page was failed; there is no
    label; the same rater labelled the item before (in a row that counts).

    Args:
      rows: of one study.
      trusted_failures: of the page's other labels: 'exclude', or 'keep' (they count).

    Raises:
      ValueError: another way to treat failures.
    """
    if trusted_failures not in responses.FAILURES:
        raise ValueError(f'trusted_failures is {trusted_failures!r}, wanted one of {", ".join(responses.FAILURES)}')
    rows = list(rows)
    excluding = trusted_failures == 'exclude'
    failed = {row.assignment for row in rows if excluding and row.trusted and row.reason == CHECK}
    marked, seen = [], set()
    for row in rows:
        reason = _why_not(row, failed)
        if not reason:
            reason = AGAIN if (row.item, row.rater) in seen else ''
            seen.add((row.item, row.rater))
        marked.append(dataclasses.replace(row, reason=reason))
    return marked


def _why_not(row: Label, failed) -> str:
    if row.trusted:
        return CHECK if row.label != row.given else KNOWN
    if row.status == 'rejected':
        return REJECTED
    if row.assignment in failed:
        return CHECK
    return '' if row.label else NOTHING


def write(path_csv, path_jsonl, rows: Sequence[Label]) -> None:
    """Writes both forms of the table, together or not at all."""
    table = io.StringIO(newline='')
    writer = csv.writer(table, lineterminator='\n')
    writer.writerow(COLUMNS)
    lines = []
    for row in rows:
        values = {name: getattr(row, name) for name in COLUMNS}  # dataclasses.asdict copies: that takes longer than all
        lines.append(json.dumps(values, ensure_ascii=False) + '\n')
        cells = values | {'words': ' '.join(row.words), 'trusted': 'yes' if row.trusted else 'no'}
        writer.writerow([_table.cell(value) for value in cells.values()])
    with records.atomic_files(path_csv, path_jsonl) as (first, second):
        first.write(table.getvalue().encode())
        second.write(''.join(lines).encode())


def read(path) -> list[Label]:
    """Reads what `write` wrote, either form.

    Raises:
      ValueError: a column is missing, or a value is none; file and line are named.
    """
    return [_label(where, row) for where, row in _table.rows(path)]


def _label(where, row) -> Label:
    if missing := [name for name in COLUMNS if name not in row]:
        raise ValueError(f'{where}: no column {missing[0]!r}: wanted labels.csv or labels.jsonl of a labelling study')
    values = {name: _files.checked(row[name], str, f'{where}: {name}') for name in _TEXTS}
    if values['label'] not in ('', *CLASSES):
        raise ValueError(f'{where}: label is {values["label"]!r}, wanted one of {", ".join(CLASSES)}')
    if values['status'] not in STATUSES:
        raise ValueError(f'{where}: status is {values["status"]!r}, wanted one of {", ".join(STATUSES)}')
    try:
        seconds = float(row['seconds']) if row['seconds'] not in ('', None) else None
    except (TypeError, ValueError) as error:
        raise ValueError(f'{where}: seconds is {row["seconds"]!r}, wanted a number') from error
    words = _files.checked(row['words'], (str, list), f'{where}: words')
    words = words.split() if isinstance(words, str) else [_files.checked(w, str, f'{where}: words') for w in words]
    return Label(**values, words=tuple(words), seconds=seconds, trusted=row['trusted'] in (True, 'yes'))


def summary(rows: Sequence[Label], *, resamples: int = 0, seed: int = 0) -> dict:
    """What a labelling study found, of marked rows.

    Args:
      rows: of `mark`.
      resamples, seed: of the bootstrap over items of agreement; 0 = no interval.

    Returns:
      For JSON: `labels` {'rows', 'counted', 'left_out': {reason: n}}; `items` asked about; `changed`, those of which a
      majority says another label than the data, `no_majority`, and `table` {given: {majority or '': n}}; `agreement`
      (`agreement.Agreement` of Fleiss' kappa and Krippendorff's nominal alpha); `raters`.
    """
    reasons = Counter(row.reason for row in rows)
    items: dict[str, list[Label]] = {}
    for row in rows:
        if not row.trusted:
            items.setdefault(row.item, []).append(row)
    majorities = {item: stats.majority(row.label for row in some if row.counts) or '' for item, some in items.items()}
    table: dict[str, Counter] = {}
    for item, label in majorities.items():
        table.setdefault(items[item][0].given, Counter())[label] += 1
    units = [[CLASSES.index(row.label) for row in some if row.counts] for some in items.values()]
    measures = agreement.table(
        units, range(len(CLASSES)), names=('fleiss', 'krippendorff_nominal'), resamples=resamples, seed=seed
    )
    return {
        'labels': {'rows': len(rows), 'counted': reasons.pop('', 0), 'left_out': dict(reasons.most_common())},
        'items': len(items),
        'changed': sum(label not in ('', items[item][0].given) for item, label in majorities.items()),
        'no_majority': sum(not label for label in majorities.values()),
        'table': {given: dict(counts) for given, counts in sorted(table.items())},
        'agreement': [dataclasses.asdict(measure) for measure in measures],
        'raters': _raters(rows, majorities),
    }


def _raters(rows, majorities) -> list[dict]:
    found: dict[str, list[Label]] = {}
    for row in rows:
        found.setdefault(row.rater, []).append(row)
    table = []
    for rater, own in found.items():
        counted = [row for row in own if row.counts]
        decided = [row for row in counted if majorities[row.item]]
        checks = [row for row in own if row.trusted]
        table.append(
            {
                'rater': rater,
                'labels': len(counted),
                'left_out': sum(not row.trusted for row in own) - len(counted),
                'with_majority': _share(row.label == majorities[row.item] for row in decided),
                'changed': _share(row.label != row.given for row in counted),
                'checks': len(checks),
                'checks_failed': sum(row.reason == CHECK for row in checks),
            }
        )
    return sorted(table, key=lambda row: (-row['labels'], row['rater']))


def _share(hits) -> float | None:
    hits = list(hits)
    return sum(hits) / len(hits) if hits else None
