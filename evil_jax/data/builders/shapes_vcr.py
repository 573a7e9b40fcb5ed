"""Built-in world, four choices: questions about tagged objects of rendered scenes, in VCR's own format.

Files in `manual_dir`: train.jsonl and val.jsonl with metadata below vcr1images/, dev_ids.txt (the pictures of the dev
split; `data.dev_ids` may name others), scenes.jsonl (the scene of each picture) and truth.jsonl (the decisive objects
and words of each example), as `evil_jax.data.shapes.write_world` makes them.
"""

import dataclasses
import pathlib

from evil_jax.data.builders import _base, _world, vcr


class ShapesVcr(vcr.Vcr):
    """VCR's form; `extra` has the scene and what decides the answer."""

    description = __doc__
    form = 'shapes_vcr'

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        return _world.files(super().files(folder, _with_dev_ids(folder, options)), folder)

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        return _world.merge(super().read(files, options), files)


def _with_dev_ids(folder, options):
    """The world says itself which pictures are its dev split; a world without one keeps all for training."""
    if options.dev_ids:
        return options
    own = folder / 'dev_ids.txt'
    return dataclasses.replace(options, **({'dev_ids': str(own)} if own.is_file() else {'dev_share': 0.0}))


Builder = ShapesVcr
