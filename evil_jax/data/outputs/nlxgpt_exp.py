"""NLX-GPT's `*_exp_*.json` (Sammani et al. 2022): COCO-caption results whose captions are explanations, no answers.

Its authors cut them out of the file beside it, `*_full_*.json`: for VQA-X and VCR what stands after the last 'because',
for e-SNLI-VE after the first; without one, the text from the third word on.
"""

from collections.abc import Iterator, Sequence

from evil_jax.data.outputs import _fields, coco
from evil_jax.data.sources import _references
from evil_jax.records import Example, Prediction


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file.

    Raises:
      ValueError: a malformed record; answers are still in there, since every one of many captions has a 'because'.
    """
    predictions = list(coco.read(path))
    texts = [p.explanation for p in predictions if p.explanation]
    if len(texts) >= _references.ENOUGH and all(_fields.BECAUSE in text for text in texts):
        raise ValueError(f'{path}: each of {len(texts)} captions has a {_fields.BECAUSE!r}: answers stand before it')
    yield from predictions
