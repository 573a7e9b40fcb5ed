"""VQA-X (Park et al. 2018): questions of VQA v2 with explanations.

Files in `manual_dir`, plain or gzip, one a split: the original `*exp_anno*` or `*explanations*` together with the
VQA v2 files `*questions*` and `*annotat*` (all are searched: dev and test both come from VQA v2's validation split),
or NLX-GPT's `vqaX_*`, or LXMERT-style `*_x.json`.
"""

import pathlib

from evil_jax.data.builders import _base, vqav2
from evil_jax.data.sources import vqax

PATTERNS = ('*exp_anno*', '*explanations*', 'vqaX_*', '*_x.json*')


class Vqax(_base.ExampleBuilder):
    """VQA-X: an open question about a picture, ten human answers, one to three explanations."""

    description = __doc__

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        found = _base.find(folder, PATTERNS)
        _base.require(found, folder, PATTERNS)
        joined = {
            'questions': tuple(_base.split_files(folder, vqav2.QUESTIONS)),
            'annotations': tuple(_base.split_files(folder, vqav2.ANNOTATIONS)),
        }
        return {split: {'explained': found[split], **joined} for split in _base.SPLITS if split in found}

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        return vqax.read(files['explained'], files['questions'], files['annotations'])


Builder = Vqax
