"""Built-in world, open questions: ten simulated annotators a question, in VQA v2's and VQA-X's own formats.

Files in `manual_dir`: `{questions,annotations,explanations}_<split>.json`, scenes.jsonl (the scene of each picture) and
truth.jsonl (the decisive objects and words of each example), as `evil_jax.data.shapes.write_world` makes them.
"""

import pathlib

from evil_jax.data.builders import _base, _world, vqav2


class ShapesVqa(vqav2.Vqav2):
    """VQA v2's form; `extra` has the scene and what decides the answer."""

    description = __doc__
    form = 'shapes_vqa'

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        return _world.files(super().files(folder, options), pathlib.Path(folder))

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        return _world.merge(super().read(files, options), files)


Builder = ShapesVqa
