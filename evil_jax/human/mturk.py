"""Amazon Mechanical Turk runs a study: layouts and batches of inputs out, CSV files of results in.

A HIT is a page. Its layout goes into the requester's site as it is (Create > Project > Design layout > Source); each
row of the batch is one page, done by as many workers as the project says. Results of the questionnaires of e-ViL and
of OFA-X are read too, without a study.
"""

import csv
import dataclasses
import io
import pathlib
from collections.abc import Callable, Iterator, Mapping

from evil_jax import records
from evil_jax.data.sources import _files
from evil_jax.human import _mturk_answers, _mturk_inputs, _platform, form, forms, labels, responses
from evil_jax.human.study import STATUSES, Page, Study

_NEEDED = ('AssignmentId', 'WorkerId', 'AssignmentStatus')


def export(study: Study, folder, image_url: str = '') -> list[pathlib.Path]:
    """Writes layout-NNN.html and batch-NNN.csv, which go together; NNN is the number of items on a page.

    Pages with other numbers of choices or explanations, which need a layout of their own, have -2, -3, ... behind it.

    Args:
      study: what is asked.
      folder: gets the files.
      image_url: address of the folder with the study's pictures.

    Returns:
      The files.

    Raises:
      ValueError: no address for the pictures.
    """
    urls, sheet = _platform.pictures(study, image_url), forms.of(study)
    groups: dict[tuple, list[Page]] = {}
    for page in study.pages:
        groups.setdefault(sheet.shape(study, page), []).append(page)
    content, seen = {}, {}
    for shape, some in sorted(groups.items(), key=lambda group: (-len(group[1]), len(group[0]))):
        number = seen[len(shape)] = seen.get(len(shape), 0) + 1
        name = f'{len(shape):03}' + (f'-{number}' if number > 1 else '')
        content[f'layout-{name}.html'] = sheet.layout(study, some[0])
        content[f'batch-{name}.csv'] = _batch(study, some, urls)
    paths = [pathlib.Path(folder) / name for name in content]
    with records.atomic_files(*paths) as files:
        for file, text in zip(files, content.values(), strict=True):
            file.write(text.encode())
    return paths


def _batch(study: Study, some: list[Page], urls: Mapping[str, str]) -> str:
    rows = []
    for page in some:
        inputs = {_mturk_inputs.PAGE: page.id} | forms.of(study).inputs(study, page, urls)
        rows.append({name: _cell(value) for name, value in inputs.items()})
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _cell(value: str) -> str:
    """A value that is HTML already, in a file that MTurk takes and a spreadsheet may open.

    MTurk refuses characters of four bytes and replaces ${...}; a cell that begins with = + - @ could be a formula.
    """
    escaped = ''.join(f'&#{ord(c)};' if ord(c) > 0xFFFF or c == '$' else c for c in value)
    return f'&#{ord(escaped[0])};{escaped[1:]}' if escaped.startswith(('=', '+', '-', '@')) else escaped


def read(
    path,
    study: Study | None = None,
    *,
    rater: Callable[[str], str] = _platform.hashed,
    system: str | None = None,
    dataset: str | None = None,
) -> list[responses.Response] | list[labels.Label]:
    """The ratings, or of a labelling study the labels, in a file of results (Manage > Results > Download CSV).

    Args:
      path: the file.
      study: whose pages these were. None: the inputs in the file say what was rated.
      rater: WorkerId -> id in the tidy table.
      system: who wrote the explanations that are not gold, where the study does not say. None: 'model'; of OFA-X's
        layout 'ofax'.
      dataset: where the study does not say. None: as the inputs look.

    Raises:
      ValueError: not such a file, or another study's; file and line are named.
    """
    rows, seen = [], {}
    for where, cells in _rows(path):
        try:
            found = _page(cells, study, rater, system, dataset, where)
        except ValueError as error:
            raise ValueError(f'{where}: {error}') from error
        first = seen.setdefault(cells['AssignmentId'], where)
        if first is not where:
            raise ValueError(f'{where}: assignment {cells["AssignmentId"]!r} again (first at {first})')
        rows += found
    if not rows:
        raise ValueError(f'{path}: no results in it')
    return rows


def _page(cells, study, rater, system, dataset, where) -> list:
    inputs, answers = _part(cells, 'Input.'), _part(cells, 'Answer.')
    study, page = _mturk_inputs.page(inputs, study, system, dataset)
    items = list(study.of(page))
    done = {
        'rater': rater(_filled(cells, 'WorkerId')),
        'assignment': _filled(cells, 'AssignmentId'),
        'seconds': _seconds(cells.get('WorkTimeInSeconds', '')),
        'status': _status(cells),
        'source': where,
    }
    if study.asks == 'labels':
        sheet, fields = forms.of(study), _mturk_answers.labelled(answers, len(items))
        return sheet.rows(study, page, sheet.parse(fields, study, page), **done)
    fields, preferences = _mturk_answers.fields(answers, items)
    found = form.rows(study, page, form.parse(fields, **form.shape(study, page)), **done)
    places = [(k, e) for k, item in enumerate(items, 1) for e in range(1, len(item.explanations) + 1)]
    return [
        dataclasses.replace(row, preference=preferences.get(place, ''))
        for row, place in zip(found, places, strict=True)
    ]  # fmt: skip


def _part(cells: dict[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in cells.items() if name.startswith(prefix)}


def _filled(cells, name: str) -> str:
    if not cells[name].strip():
        raise ValueError(f'{name} is empty')
    return cells[name].strip()


def _status(cells) -> str:
    """Of the assignment; a reason in the column Reject, which is still to be sent to MTurk, rejects it too."""
    status = cells['AssignmentStatus'].strip().casefold()
    if status not in STATUSES:
        raise ValueError(f'AssignmentStatus is {cells["AssignmentStatus"]!r}, wanted one of {", ".join(STATUSES)}')
    return 'rejected' if cells.get('Reject', '').strip() else status


def _seconds(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float('inf'):
        raise ValueError(f'WorkTimeInSeconds is {text!r}, wanted seconds')
    return seconds


def _rows(path) -> Iterator[tuple[str, dict[str, str]]]:
    names = None
    for where, cells in _files.csv_rows(path, _files.iter_lines(path)):
        if names is None:
            names = [name.strip() for name in cells]
            if len(set(names)) < len(names):
                raise ValueError(f'{where}: a column name twice')
            if missing := [name for name in _NEEDED if name not in names]:
                raise ValueError(f'{where}: no column {missing[0]!r}: wanted a file of results from MTurk')
            continue
        yield where, dict(zip(names, cells, strict=True))
