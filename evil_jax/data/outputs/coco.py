"""Results as COCO's caption evaluation reads them, `[{"image_id": ..., "caption": ...}]`: explanations, no answers.

`image_id` is the id of the example; null as a caption says that there is no explanation.
"""

import warnings
from collections.abc import Iterator, Sequence

from evil_jax.data.outputs import _fields
from evil_jax.records import Example, Prediction


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file, and warns where answers seem to stand before the explanations.

    Raises:
      ValueError: names file and record of what is wrong.
    """
    found = list(_fields.captions(path))
    if _fields.all_because([caption for _, caption in found]):
        warnings.warn(
            f'{path}: every caption has a {_fields.BECAUSE!r}: if answers stand before it, the format is nlxgpt_full',
            stacklevel=2,
        )
    for identifier, caption in found:
        yield Prediction(identifier, None, explanation=caption)
