"""ImageNet (Russakovsky et al. 2015), or any pictures of one class each.

In `manual_dir` (the dev split: a validation set), or in its folders `train` and `val` (train and dev), lie

- a folder a class, `n01440764/ILSVRC2012_val_00000293.JPEG`; or
- the pictures themselves, in `manual_dir` also below `images`, and beside `train` or `val` a list: `val.txt` (train:
  `train.txt`) with `name class` a line, or the development kit's `ILSVRC2012_validation_ground_truth.txt`.

A label is a synset, or a number where nothing says which synset it is; `synsets.txt` (also `synset_words.txt`,
`LOC_synset_mapping.txt`) lists all classes in a classifier's order, where the folder shows some of them only, and
`meta.mat` those of the development kit's numbers.
"""

import pathlib

from evil_jax.data.builders import _base
from evil_jax.data.sources import imagenet
from evil_jax.records import Example

_SPLITS = {'train': 'train', 'val': 'dev'}


class Imagenet(_base.ExampleBuilder):
    """Pictures with their class."""

    description = __doc__
    inputs = 'pictures'

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        if not folder.is_dir():
            raise ValueError(f'no raw files: {folder} is no folder. Set data.manual_dir')
        parts = {split: folder / name for name, split in _SPLITS.items() if (folder / name).is_dir()}
        if not parts:
            parts = {'dev': folder / 'images' if (folder / 'images').is_dir() else folder}
        return {split: _split(folder, split, path) for split, path in parts.items()}

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        for name, label in _labelled(files).rows:
            yield Example(id=name, image_id=name, text='', label=label)

    @classmethod
    def labels(cls, files, options=_base.DEFAULT):
        found = list(dict.fromkeys(_labelled(of).classes for of in files.values()))
        # Without a list of classes each split knows its own.
        return found[0] if len(found) == 1 else tuple(sorted(set().union(*found), key=_order))

    @classmethod
    def pictures(cls, folder):
        return pathlib.Path(folder)

    @classmethod
    def remarks(cls, files, options=_base.DEFAULT):
        lines = super().remarks(files, options)
        if any(label.isdecimal() for label in cls.labels(files, options)):
            lines.append(
                'classes are numbers of a list, as nothing says which synsets they are: see that a classifier counts '
                f'as it does ({" or ".join((*imagenet.CLASSES, imagenet.META))} beside it would say)'
            )
        return lines


def _order(label: str):
    return (int(label) if label.isdecimal() else 0, label)


def _split(folder, split, path) -> _base.Files:
    there = lambda *names: next((folder / name for name in names if (folder / name).is_file()), None)
    files = {'pictures': path, 'classes': there(*imagenet.CLASSES), 'meta': there(imagenet.META)}
    if imagenet.has_class_folders(path):
        return files | {'truth': None}
    names = ('train.txt',) if split == 'train' else ('val.txt', imagenet.GROUND_TRUTH)
    found = [folder / name for name in names if (folder / name).is_file()]
    if len(found) != 1:
        raise ValueError(
            f'{path}: wanted folders of pictures, one a class, or pictures and {" or ".join(names)} in {folder}; '
            f'there {"are both lists" if found else "are neither"}'
        )
    return files | {'truth': found[0]}


def _labelled(files) -> imagenet.Labelled:
    return imagenet.read(**files)


Builder = Imagenet
