"""VCR (Zellers et al. 2019): a question about a film still, four answers, the rationale of the right one.

Files in `manual_dir`, plain or gzip: the official `train.jsonl` and `val.jsonl`, or e-UG's `vcr_train_split.json`,
`vcr_dev_split.json` and `vcr_valtest.json`. The official validation file is the test split, as in e-ViL. The dev split
is a file with `dev` in its name, or else carved out of the training file: a share of its pictures (`data.dev_share`,
chosen by `data.dev_seed`; 0: no dev split), or those that `data.dev_ids` lists. The official test.jsonl, which has no
labels, is left alone.

Boxes of the objects come from the official metadata, `vcr1images/<film>/<picture>.json` in `manual_dir` (a link will
do). Without any there are no boxes; where there are some, none may be missing.
"""

import hashlib
import pathlib
import re
from collections.abc import Callable

from evil_jax.data.builders import _base
from evil_jax.data.sources import _files, vcr

PATTERNS = ('*.jsonl*', '*vcr*.json*')
# e-UG's name of the official validation file is 'valtest'.
_SPLITS = {
    'train': 'train',
    'dev': 'dev',
    'val': 'test',
    'valid': 'test',
    'validation': 'test',
    'valtest': 'test',
    'test': 'test',
}
_SHOWN = 5


class Vcr(_base.ExampleBuilder):
    """VCR: picture with tagged objects, question, four answers, rationale."""

    description = __doc__
    heeds = ('dev_share', 'dev_seed', 'dev_ids', 'tag_base')

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        """Each split's `rows`, `metadata` folder and, where train and dev share a file, which part of it: `dev_of` or
        `train_of` instead of `rows`.
        """
        folder = pathlib.Path(folder)
        found = _base.find(folder, PATTERNS, _split_of)
        _base.require(found, folder, PATTERNS)
        listed = pathlib.Path(options.dev_ids) if options.dev_ids else None
        if listed and ('dev' in found or 'train' not in found):
            has = f'a dev split of its own, {found["dev"].name}' if 'dev' in found else 'no training file'
            raise ValueError(f'data.dev_ids is {options.dev_ids!r}, but {folder} has {has}')
        rows = {split: {'rows': path} for split, path in found.items()}
        if 'train' in found and 'dev' not in found and (listed or options.dev_share > 0):
            rows['train'] = {'train_of': found['train'], 'dev_ids': listed}
            rows['dev'] = {'dev_of': found['train'], 'dev_ids': listed}
        metadata = {'metadata': _metadata_folder(folder)}
        return {split: rows[split] | metadata for split in _base.SPLITS if split in rows}

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        settings = {'metadata': files['metadata'], 'tag_base': options.tag_base}
        if 'rows' in files:
            return vcr.read(files['rows'], **settings)
        path = files.get('dev_of') or files['train_of']
        is_dev = _listed(path, files['dev_ids']) if files['dev_ids'] else _share(options)
        wanted = is_dev if 'dev_of' in files else lambda *ids: not is_dev(*ids)
        return vcr.read(path, **settings, wanted=wanted)


def _split_of(name: str) -> str | None:
    words = re.split('[^a-z]+', name.lower())
    split = next((_SPLITS[word] for word in words if word in _SPLITS), None)
    return None if 'test' in words and 'jsonl' in words else split


def _metadata_folder(folder: pathlib.Path) -> pathlib.Path | None:
    """The folder of film folders with metadata: `folder` or one in it."""
    candidates = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    for candidate in sorted(candidates, key=lambda path: path.name != 'vcr1images'):
        films = (path for path in candidate.iterdir() if path.is_dir())
        if any(next(film.glob('*@*.json'), None) for film in films):
            return candidate
    return None


def _share(options) -> Callable[[str, str], bool]:
    """A random share of the pictures, with all their questions; each picture falls by itself, in whatever file."""

    def is_dev(_, image_id):
        digest = hashlib.sha256(f'{options.dev_seed}:{image_id}'.encode()).digest()
        return int.from_bytes(digest[:8], 'big') < options.dev_share * 2**64

    return is_dev


def _listed(rows: pathlib.Path, path: pathlib.Path) -> Callable[[str, str], bool]:
    """The examples whose id or picture stands in a file, one a line.

    Raises:
      ValueError: nothing stands there; ids that the training file does not have; a picture that would be in both.
    """
    ids = set(filter(None, map(str.strip, _files.read_text(path).splitlines())))
    if not ids:
        raise ValueError(f'{path}: lists no ids of dev examples or pictures')
    known, dev, train = set(), set(), set()
    for pair in vcr.ids(rows):
        known.update(pair)
        (train if ids.isdisjoint(pair) else dev).add(pair[1])
    if unknown := sorted(ids - known):
        raise ValueError(
            f'{path}: {len(unknown)} of {len(ids)} ids are neither examples nor pictures of {rows}: '
            f'{", ".join(unknown[:_SHOWN])}{", ..." if len(unknown) > _SHOWN else ""}'
        )
    if shared := sorted(dev & train):
        raise ValueError(
            f'{path}: {len(shared)} pictures would be in train and in dev, since it lists some of their questions '
            f'only: {", ".join(shared[:_SHOWN])}{", ..." if len(shared) > _SHOWN else ""}; list the pictures instead'
        )
    return lambda *pair: not ids.isdisjoint(pair)


Builder = Vcr
