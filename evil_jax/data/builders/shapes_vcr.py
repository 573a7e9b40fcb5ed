"""Built-in world, four choices: questions about tagged objects of rendered scenes, in VCR's own format.

Files in `manual_dir`: train.jsonl and val.jsonl with metadata below images/, dev_ids.txt (the pictures of the dev
split), scenes.jsonl (the scene of each picture) and truth.jsonl (the decisive objects and words of each example), as
`evil_jax.data.shapes.write_world` makes them.
"""

from evil_jax.data.builders import _base


class ShapesVcr(_base.ExampleBuilder):
    """VCR's form; `extra` has the scene and what decides the answer."""

    description = __doc__
    form = 'shapes_vcr'


Builder = ShapesVcr
