"""SNLI (Bowman et al. 2015, arXiv 1508.05326): does one text follow from another. NLI models learn it.

Files in `manual_dir`, as published: `snli_1.0_{train,dev,test}.jsonl`, plain or gzip. The text of an example is
'premise [SEP] hypothesis'. Pairs whose annotators did not agree (label '-') are left out.
"""

import pathlib

from evil_jax.data import words
from evil_jax.data.builders import _base
from evil_jax.data.sources import snli
from evil_jax.records import Example

PATTERNS = ('snli_1.0_*.jsonl', 'snli_1.0_*.jsonl.gz')


class Snli(_base.ExampleBuilder):
    """Pairs of texts with one of three classes."""

    description = __doc__
    classes = snli.CLASSES
    inputs = 'text'
    pairs = True

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        found = _base.find(folder, PATTERNS)
        _base.require(found, folder, PATTERNS)
        return {split: {'rows': found[split]} for split in _base.SPLITS if split in found}

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        for row in snli.read(files['rows']):
            if row.label != snli.UNLABELLED:
                text = words.joined(row.premise, row.hypothesis)
                yield Example(id=row.id, image_id=row.image_id or row.caption_id, text=text, label=row.label)


Builder = Snli
