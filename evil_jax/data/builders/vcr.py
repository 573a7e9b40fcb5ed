"""VCR (Zellers et al. 2019): a question about a film still, four answers, the rationale of the right one.

Files in `manual_dir`, plain or gzip: the official `train.jsonl` and `val.jsonl`, or e-UG's `vcr_train_split.json`,
`vcr_dev_split.json` and `vcr_valtest.json`. The official validation file is the test split, as in e-ViL. The dev split
is a file with `dev` in its name, or else carved out of the training file: a share of its pictures (`data.dev_share`,
chosen by `data.dev_seed`; 0: no dev split), or those that `data.dev_ids` lists. The official test.jsonl, which has no
labels, is left alone.

Boxes of the objects come from the official metadata, `vcr1images/<film>/<picture>.json`, and pictures stand beside it.
`vcr1images` may have another name in `manual_dir` or in a folder there, or its own name beside `manual_dir` (also below
a folder vcr1). Without any there are no boxes; where there are some, none may be missing.
"""

import hashlib
import os
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
_NO_METADATA = 'no metadata: object tags stand for no region (vcr1images/<film>/<picture>.json gives the boxes)'


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
        _base.require(found, folder, PATTERNS, _SPLITS)
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
        examples = vcr.read(path, **settings, wanted=wanted)
        return examples if files['dev_ids'] else _some(examples, path, 'dev' if 'dev_of' in files else 'train', options)

    @classmethod
    def sources(cls, folder, options=_base.DEFAULT):
        """Without the list of `data.dev_ids`: the settings of a build have its content (`data.load.settings`)."""
        return [path for path in super().sources(folder, options) if path != pathlib.Path(options.dev_ids)]

    @classmethod
    def pictures(cls, folder):
        return super().pictures(folder) or _picture_folder(pathlib.Path(folder))

    @classmethod
    def remarks(cls, files, options=_base.DEFAULT):
        has_boxes = any(value['metadata'] for value in files.values())
        return super().remarks(files, options) + ([] if has_boxes else [_NO_METADATA])

    @classmethod
    def unheeded(cls, files, options):
        found = super().unheeded(files, options)
        carved = files.get('dev', {})
        if 'dev_of' not in carved or carved['dev_ids']:
            found += ['dev_share', 'dev_seed'] if carved or 'train' not in files else ['dev_seed']
        rows = {path for value in files.values() for path in [value.get('rows') or value.get('train_of')] if path}
        if not any(vcr.is_eug(path) for path in rows):
            found.append('tag_base')
        return found


def _split_of(name: str) -> str | None:
    words = re.split('[^a-z]+', name.lower())
    split = next((_SPLITS[word] for word in words if word in _SPLITS), None)
    return None if 'test' in words and 'jsonl' in words else split


def _metadata_folder(folder: pathlib.Path) -> pathlib.Path | None:
    """The folder of film folders with metadata."""
    return next((path for path in _candidates(folder) if _has(path, '*@*.json')), None)


def _picture_folder(folder: pathlib.Path) -> pathlib.Path | None:
    """The folder of film folders with pictures."""
    return next((path for path in _candidates(folder) if _has(path, '*@*.jpg')), None)


def _candidates(folder: pathlib.Path) -> list[pathlib.Path]:
    """Folders that may be the official vcr1images: those of this name first."""
    inside = _folders(folder)
    deeper = [path for parent in inside for path in _folders(parent)]
    beside = [folder.absolute().parent / name for name in ('vcr1images', 'vcr1/vcr1images')]
    found = [folder, *inside, *deeper]
    named = [path for path in (*found, *beside) if path.name == 'vcr1images' and path.is_dir()]
    return list(dict.fromkeys((*named, *found)))


def _folders(folder: pathlib.Path) -> list[pathlib.Path]:
    """Folders in a folder, which may be absent; of a folder of 100,000 files nothing more is asked."""
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / entry.name for entry in entries if entry.is_dir())
    except OSError:
        return []


def _has(folder: pathlib.Path, pattern: str) -> bool:
    return any(next(film.glob(pattern), None) for film in _folders(folder))


def _some(examples, path, split, options):
    """`examples`, of which there must be one, unless the training file has none at all."""
    empty = True
    for example in examples:
        empty = False
        yield example
    if empty and next(vcr.ids(path), None):
        raise ValueError(
            f'data.dev_share is {options.dev_share}: that leaves the {split} split without a picture of {path}; '
            'take another share or data.dev_seed, or name pictures in data.dev_ids'
        )


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
    if not path.is_file():
        raise ValueError(f"data.dev_ids is '{path}', which is not a file")
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
