"""Built-in world, entailment: hypotheses about rendered scenes, in e-SNLI-VE's own format.

Files in `manual_dir`: `esnlive_<split>.csv`, scenes.jsonl (the scene of each picture) and truth.jsonl (the decisive
objects and words of each example), as `evil_jax.data.shapes.write_world` makes them.
"""

import pathlib

from evil_jax.data.builders import _base, _world, esnlive


class ShapesVe(esnlive.Esnlive):
    """e-SNLI-VE's form; `extra` has the scene and what decides the label."""

    description = __doc__
    form = 'shapes_ve'

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        return _world.files(super().files(folder, options), pathlib.Path(folder))

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        return _world.merge(super().read(files, options), files)


Builder = ShapesVe
