"""Results as COCO's caption evaluation reads them, `[{"image_id": ..., "caption": ...}]`: explanations, no answers.

`image_id` is the id of the example; null as a caption says that there is no explanation.
"""

from collections.abc import Iterator, Sequence

from evil_jax.data.outputs import _fields
from evil_jax.records import Example, Prediction


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file. ValueError names file and record of what is wrong."""
    for identifier, caption in _fields.captions(path):
        yield Prediction(identifier, None, explanation=caption)
