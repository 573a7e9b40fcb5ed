"""Handwritten digits: the 1,797 pictures of 8 x 8 pixels that scikit-learn carries (Alpaydin and Kaynak 1998).

They are written as files when they are first needed: images/digit0000.png, gray, and train.csv, dev.csv and test.csv
with the columns `picture` and `label`: 1,200, 197 and 400 pictures with the same shares of each digit. Nobody knows who
wrote which, so the same hands may be in several splits.
"""

import csv
import hashlib
import io
import pathlib
import shutil

import numpy as np
import PIL.Image

from evil_jax import records
from evil_jax.data.builders import _base
from evil_jax.records import Example

COUNTS = {'train': 1_200, 'dev': 197, 'test': 400}
_WHITE = 16  # the largest value of a pixel
_COLUMNS = ('picture', 'label')


class Digits(_base.ExampleBuilder):
    """Pictures of one digit each."""

    description = __doc__
    classes = tuple('0123456789')
    inputs = 'pictures'

    @classmethod
    def write_raw(cls, folder) -> None:
        """Writes the files into `folder`, which appears with everything in it; nothing where it is there.

        Raises:
          ValueError: scikit-learn is not installed.
        """
        folder = pathlib.Path(folder)
        if folder.is_dir() and any(folder.iterdir()):
            return
        try:
            from sklearn import datasets  # not everyone has it
        except ImportError as error:
            raise ValueError(
                "the digits come with scikit-learn, which is not installed: pip install 'evil_jax[attribution]'"
            ) from error
        found = datasets.load_digits()
        partial = folder.with_name(f'.{folder.name}.partial')
        shutil.rmtree(partial, ignore_errors=True)  # of a run that was interrupted
        _write(partial, np.round(found.images * (255 / _WHITE)).astype(np.uint8), found.target.tolist())
        partial.replace(folder)

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        found = {split: {'rows': path} for split in _base.SPLITS if (path := folder / f'{split}.csv').is_file()}
        _base.require(found, folder, ('*.csv',), _base.SPLITS)
        return found

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        path = files['rows']
        rows = csv.DictReader(io.StringIO(path.read_text(encoding='utf-8')))
        if tuple(rows.fieldnames or ()) != _COLUMNS:
            raise ValueError(f'{path}: its columns are {rows.fieldnames}, wanted {list(_COLUMNS)}')
        for number, row in enumerate(rows, 2):
            if row['label'] not in cls.classes or not row['picture']:
                raise ValueError(f'{path}:{number}: found {list(row.values())}, wanted a picture and a digit')
            yield Example(id=row['picture'], image_id=row['picture'], text='', label=row['label'])


def splits(labels) -> dict[str, list[int]]:
    """Indices of the pictures of each split, rising: shares of classes as even as whole numbers allow.

    Args:
      labels: class of each picture.
    """
    # By a hash, because generators of random numbers may change with versions.
    order = sorted(range(len(labels)), key=lambda n: hashlib.sha256(f'digit {n}'.encode()).digest())
    by_class = sorted(order, key=lambda n: labels[n])  # stable
    # Every picture has its place in [0, 1) within the list of classes, one class after the other: taken at even steps,
    # each split has its share of each class.
    taken, split_of = dict.fromkeys(COUNTS, 0), {}
    for place, n in enumerate(by_class, 1):
        due = {split: count * place / len(labels) - taken[split] for split, count in COUNTS.items()}
        split_of[n] = max(due, key=due.get)
        taken[split_of[n]] += 1
    return {split: sorted(n for n, of in split_of.items() if of == split) for split in COUNTS}


def _write(folder, images, labels) -> None:
    (folder / 'images').mkdir(parents=True)
    for number, image in enumerate(images):
        PIL.Image.fromarray(image).save(folder / 'images' / f'{_name(number)}.png')
    for split, numbers in splits(labels).items():
        rows = ''.join(f'{_name(number)},{labels[number]}\n' for number in numbers)
        records.atomic_write(folder / f'{split}.csv', ','.join(_COLUMNS) + '\n' + rows)


def _name(number: int) -> str:
    return f'digit{number:04}'


Builder = Digits
