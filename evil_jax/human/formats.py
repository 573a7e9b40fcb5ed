"""Files of ratings, whoever made them: which form a file has, and its rows of the tidy table.

* `tidy`: the tidy table, ratings.csv or ratings.jsonl, or a table of your own (`responses.read`);
* `mturk`: results of MTurk, of our layout, e-ViL's or OFA-X's (`mturk.read`);
* `label_studio`: exported as JSON or JSON-MIN (`label_studio.read`);
* `potato`: annotation_output/ or the user_state.json of one rater (`potato.read`);
* `ofax`: the derived tables of OFA-X, one row for an assignment and a task.
"""

import os
import pathlib
from collections.abc import Callable, Iterable

from evil_jax.data.sources import _files
from evil_jax.human import _platform, _table, label_studio, labels, mturk, potato, responses
from evil_jax.human.study import Study

AUTO = 'auto'
FORMATS = ('tidy', 'mturk', 'label_studio', 'potato', 'ofax')
PLATFORMS = ('mturk', 'label_studio', 'potato')
_OF_STUDY = {'label_studio': label_studio.read, 'potato': potato.read}


def export(study: Study, to: str, folder, image_url: str = '', pictures=None) -> list[pathlib.Path]:
    """Writes what a platform needs to run a study.

    Args:
      study: what is asked.
      to: one of `PLATFORMS`.
      folder: gets the files.
      image_url: address of the folder with the pictures. Potato can do without.
      pictures: the study's images/, for platforms that cannot draw boxes of objects: they get copies with these.

    Returns:
      The files, without pictures.

    Raises:
      ValueError: another platform, or what its `export` says.
    """
    match to:
        case 'mturk':
            return mturk.export(study, folder, image_url)
        case 'label_studio' | 'potato' if study.asks == 'labels':
            raise ValueError(f'human.to is {to!r}: people label on mturk, or in the pages of human.step=serve')
        case 'label_studio':
            return label_studio.export(study, folder, image_url, pictures)
        case 'potato':
            return potato.export(study, folder, image_url, pictures)
    raise ValueError(f'human.to is {to!r}, wanted one of {", ".join(PLATFORMS)}')


def detect(path) -> str:
    """The form of a file, or of the folder of Potato, by its beginning.

    Raises:
      ValueError: none of `FORMATS`: what was found is named.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        if next(path.glob(f'**/{potato.STATE}'), None) is None:
            raise ValueError(f'{path}: no ratings in this folder, wanted {potato.STATE} of Potato below it')
        return 'potato'
    match _files.first_character(path):
        case '[':
            return 'label_studio'
        case '{':
            row = _files.first_record(path)
            # One line is a row; an object of many lines is a document.
            row = (
                row if isinstance(row, dict) else _files.checked(_files.read_json(path), dict, f'{path}: the document')
            )
            if potato.LABELS in row:
                return 'potato'
        case _:
            _, header = next(_files.csv_rows(path, _files.iter_lines(path)), ('', []))
            row = dict.fromkeys(name.strip() for name in header)
            if len(row) == 1:  # ; or tab between the columns: only tables of one's own have these
                row = _own_table(path)
            if 'AssignmentId' in row:
                return 'mturk'
            if 'rating_generated' in row:
                return 'ofax'
    try:
        _table.columns(row)
    except ValueError as error:
        raise ValueError(f'{path}: ratings of no known form ({", ".join(FORMATS)}): {error}') from error
    return 'tidy'


def _own_table(path) -> dict:
    return next(_table.rows(path))[1]


def read(
    paths: str | os.PathLike | Iterable[str | os.PathLike],
    format: str = AUTO,
    study: Study | None = None,
    *,
    rater: Callable[[str], str] = _platform.hashed,
    system: str | None = None,
    dataset: str | None = None,
) -> list[responses.Response]:
    """The rows of one or several files, in their order; whether they count is for `responses.mark` to say.

    Args:
      paths: files, or folders of Potato; of any mixture of forms.
      format: of all of them, or `auto`.
      study: what was rated; Label Studio, Potato and our layouts for MTurk need it.
      rater: of platforms: name of a person -> id of the rater. The secrets of a study make better ones.
      system, dataset: of rows that name none.

    Raises:
      ValueError: an unknown form, a file that does not have it, a study that is needed, or the same work of a rater in
        two files: file and place are named.
    """
    if format not in (AUTO, *FORMATS):
        raise ValueError(f'format of ratings is {format!r}, wanted {AUTO} or one of {", ".join(FORMATS)}')
    paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[responses.Response] = []
    owners: dict[tuple, str] = {}
    for path in paths:
        form = detect(path) if format == AUTO else format
        if form == 'mturk':
            rows = mturk.read(path, study, rater=rater, system=system, dataset=dataset)
        elif form in _OF_STUDY:
            if study is None:
                raise ValueError(f'{path}: a file of {form} says only how items of a study were rated: which study?')
            rows = _OF_STUDY[form](path, study, rater=rater)
        else:
            rows = responses.read(path, form, dataset=dataset, system=system)
        if form not in ('tidy', 'ofax'):
            _once(rows, path, owners)
        found += rows
    return found


def read_labels(
    paths: Iterable[str | os.PathLike], study: Study, *, rater: Callable[[str], str] = _platform.hashed
) -> list[labels.Label]:
    """The rows of files of a labelling study: results of MTurk, or labels.csv and labels.jsonl.

    Raises:
      ValueError: another file, or the same work of a rater in two files: file and place are named.
    """
    found: list[labels.Label] = []
    owners: dict[tuple, str] = {}
    for path in paths:
        lines = _files.first_character(path) == '{'
        _, header = ('', []) if lines else next(_files.csv_rows(path, _files.iter_lines(path)), ('', []))
        own = mturk.read(path, study, rater=rater) if 'AssignmentId' in header else labels.read(path)
        _once(own, path, owners)
        found += own
    return found


def _once(rows, path, owners) -> None:
    """Raises ValueError for what is in two files: results are downloaded again and again while people work."""
    for row in rows:
        other = owners.setdefault((row.dataset, row.assignment, row.unit), str(path))
        if other != str(path):
            raise ValueError(f'{row.source}: assignment {row.assignment!r} is in {other} too')
