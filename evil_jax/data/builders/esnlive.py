"""e-SNLI-VE (Kayser et al. 2021): does a picture entail, contradict or leave open a hypothesis, and why.

Files in `manual_dir`: `esnlive_<split>.csv`, plain or gzip.
"""

import pathlib

from evil_jax.data.builders import _base
from evil_jax.data.sources import esnlive

PATTERNS = ('*esnlive*.csv*',)


class Esnlive(_base.ExampleBuilder):
    """e-SNLI-VE: picture, hypothesis, one of three classes, explanations."""

    description = __doc__
    classes = esnlive.CLASSES

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        found = _base.find(folder, PATTERNS)
        _base.require(found, folder, PATTERNS)
        return {split: {'csv': found[split]} for split in _base.SPLITS if split in found}

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        return esnlive.read(files['csv'])


Builder = Esnlive
