"""VQA v2 (Goyal et al. 2017) from its official JSON files, with VQA-X style explanations where there are any.

Files in `manual_dir`, plain or gzip, one a split: `*questions*` (must), `*annotat*` (a split without has no answers),
`*explanations*` or `*exp_anno*` (may).
"""

import pathlib

from evil_jax.data.builders import _base
from evil_jax.data.sources import vqav2

QUESTIONS, ANNOTATIONS, EXPLANATIONS = ('*questions*',), ('*annotat*',), ('*explanations*', '*exp_anno*')


class Vqav2(_base.ExampleBuilder):
    """VQA v2: an open question about a picture, ten human answers."""

    description = __doc__

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        questions = _base.find(folder, QUESTIONS)
        _base.require(questions, folder, QUESTIONS)
        annotations, explanations = _base.find(folder, ANNOTATIONS), _base.find(folder, EXPLANATIONS)
        return {
            split: {
                'questions': questions[split],
                'annotations': annotations.get(split),
                'explanations': explanations.get(split),
            }
            for split in _base.SPLITS
            if split in questions
        }

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        return vqav2.read(files['questions'], files['annotations'], files['explanations'])


Builder = Vqav2
