"""VCR (Zellers et al. 2019): a question about a film still, four answers, the rationale of the right one.

Files in `manual_dir`, plain or gzip: `train*.jsonl` and `val*.jsonl`.
"""

import pathlib

from evil_jax.data.builders import _base

PATTERNS = ('*.jsonl*',)


class Vcr(_base.ExampleBuilder):
    """VCR: picture with tagged objects, question, four answers, explanations."""

    description = __doc__
    heeds = ('dev_share', 'dev_seed', 'dev_ids', 'tag_base')

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        found = _base.find(folder, PATTERNS)
        _base.require(found, folder, PATTERNS)
        return {split: {'jsonl': path} for split, path in found.items()}


Builder = Vcr
