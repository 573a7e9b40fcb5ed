"""NLX-GPT's `*_full_*.json` (Sammani et al. 2022): COCO-caption results that read "answer because explanation".

The answer is what stands before the first 'because', as in all of NLX-GPT's code; so answers, and which of them are
correct, are theirs. The explanation is what stands after it, as in their code for e-SNLI-VE. Their code for VQA-X and
VCR takes what follows the *last* 'because'; in their published VQA-X file there is one in each caption. A caption
without 'because' (generation stops after 20 tokens) is all answer: its explanation is empty, where their code takes the
text from the third word on. `nlxgpt_exp` reads what they made of it.
"""

from collections.abc import Iterator, Sequence

from evil_jax.data.outputs import _fields
from evil_jax.data.sources import _references
from evil_jax.records import Example, Prediction


def read(path, examples: Sequence[Example] = ()) -> Iterator[Prediction]:
    """Yields the predictions of a file.

    Raises:
      ValueError: a malformed record; no answers, since not one of many captions has a 'because'.
    """
    found = list(_fields.captions(path))
    texts = [caption for _, caption in found if caption]
    if len(texts) >= _references.ENOUGH and not any(_fields.BECAUSE in text for text in texts):
        raise ValueError(f'{path}: none of {len(texts)} captions has a {_fields.BECAUSE!r} after an answer')
    for identifier, caption in found:
        answer, explanation = (None, None) if caption is None else _fields.because(caption)
        yield Prediction(identifier, answer, explanation=explanation)
