"""e-SNLI-VE (Kayser et al. 2021): does a picture entail, contradict or leave open a hypothesis, and why.

Files in `manual_dir`, plain or gzip, one a split: `esnlive_<split>.csv` as published, or `esnlive_<split>.json` as
e-UG's authors read it. `data.labels='original'` takes the labels before re-annotation.
"""

import pathlib

from evil_jax.data.builders import _base
from evil_jax.data.sources import esnlive

PATTERNS = ('*esnlive*.csv*', '*esnlive*.json*')


class Esnlive(_base.ExampleBuilder):
    """e-SNLI-VE: picture, hypothesis, one of three classes, explanations."""

    description = __doc__
    classes = esnlive.CLASSES
    heeds = ('labels',)

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        found = _base.find(folder, PATTERNS)
        _base.require(found, folder, PATTERNS)
        return {split: {'rows': found[split]} for split in _base.SPLITS if split in found}

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        return esnlive.read(files['rows'], options.labels)

    @classmethod
    def marks(cls, files, options=_base.DEFAULT):
        return {'labels': esnlive.label_source(files['rows'], options.labels)}


Builder = Esnlive
