"""NLX-GPT's `*_exp_*.json` (Sammani et al. 2022): COCO-caption results whose captions are explanations, no answers.

Its authors cut them out of the file beside it, `*_full_*.json`: for VQA-X and VCR what stands after the last 'because',
for e-SNLI-VE after the first; without one, the text from the third word on.
"""

from collections.abc import Iterator, Sequence

from evil_jax.data.outputs import _fields
from evil_jax.records import Example, Prediction


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file.

    Raises:
      ValueError: a malformed record; answers are still in there, since every one of many captions has a 'because'.
    """
    found = list(_fields.captions(path))
    if _fields.all_because([caption for _, caption in found]):
        raise ValueError(f'{path}: each of {len(found)} captions has a {_fields.BECAUSE!r}: answers stand before it')
    for identifier, caption in found:
        yield Prediction(identifier, None, explanation=caption)
