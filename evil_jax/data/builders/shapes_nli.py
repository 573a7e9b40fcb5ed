"""Built-in world, texts: captions of scenes and hypotheses about them, in SNLI's own format.

Files in `manual_dir`: `snli_1.0_<split>.jsonl` and the other sources of e-SNLI-VE (evil_jax/data/shapes/sources.py).
A model that is trained on them reads the captions of `--mode=construct` on another such folder.
"""

from evil_jax.data.builders import snli


class ShapesNli(snli.Snli):
    """SNLI's form; premises are captions of the world."""

    description = __doc__
    form = 'shapes_nli'


Builder = ShapesNli
