"""From one Example and its Regions to the fixed-shape arrays of one row of a batch. Plain functions on numpy.

Legend: Q question tokens, R regions, F region width, T decoder tokens, A answers.
"""

import dataclasses

import numpy as np

from evil_jax import compat
from evil_jax.data import tokenizers
from evil_jax.data.features.locations import locations
from evil_jax.data.features.regions import WIDTH
from evil_jax.records import Example

TARGETS = 10  # soft targets kept of an example: ten annotators give at most ten answers


@dataclasses.dataclass(frozen=True)
class Encoding:
    """The part of `config.data` that decides how an example is encoded; see config.py for the meanings.

    A plain value, so that it travels to worker processes.
    """

    locations: str = 'uniter'
    regions: str = 'detected'
    explanation: str = 'random'
    max_text: int = 20
    max_regions: int = 36
    max_question: int = 19
    max_answer: int = 23
    max_explanation: int = 51

    @classmethod
    def of(cls, config) -> 'Encoding':
        values = {field.name: config.data[field.name] for field in dataclasses.fields(cls)}
        return cls(**values | {'locations': compat.locations(config)})


def text(words: str, word: tokenizers.WordTokenizer, max_text: int) -> dict[str, np.ndarray]:
    """`[CLS] words [SEP]`, cut to `max_text` and padded: text and text_type int32 [Q], text_length (facts 1.1)."""
    ids = [word.cls, *word.encode(words)[: max_text - 2], word.sep]
    return {
        'text': padded(ids, max_text, word.pad),
        'text_type': np.zeros(max_text, np.int32),
        'text_length': np.int32(len(ids)),
    }


def regions(found, encoding: Encoding, image_id: str = '') -> dict[str, np.ndarray]:
    """A picture's first `max_regions` regions, in their order.

    Args:
      found: Regions, or None for an example without a picture (no regions at all).
      encoding: `regions='zero'` hides what is in the picture, but not how many regions it has.
      image_id: named in errors.

    Returns:
      features float16 [R, F], locations float32 [R, 7], region_length int32.
    """
    features = np.zeros((encoding.max_regions, WIDTH), np.float16)
    places = np.zeros((encoding.max_regions, 7), np.float32)
    length = 0
    if found is not None:
        if found.features.ndim != 2 or found.features.shape[1] != WIDTH:
            raise ValueError(f'image {image_id!r} has features of shape {found.features.shape}, wanted [n, {WIDTH}]')
        length = min(len(found.features), encoding.max_regions)
        if encoding.regions == 'detected':
            features[:length] = found.features[:length]
            places[:length] = locations(found, encoding.locations, image_id)[:length]
    return {'features': features, 'locations': places, 'region_length': np.int32(length)}


def piece(name: str, span: str, words: str, expl: tokenizers.ExplTokenizer, maximum: int) -> dict[str, np.ndarray]:
    """A decoder piece `<|b_span|> words <|e_span|>`: `name` int32 [maximum] and `name`_length."""
    ids, _ = expl.piece(span, words, maximum)
    return {name: padded(ids, maximum, expl.end_of_text), f'{name}_length': np.int32(len(ids))}


def explanation(
    example: Example, expl: tokenizers.ExplTokenizer, encoding: Encoding, rng: np.random.Generator | None
) -> dict[str, np.ndarray]:
    """The reference that trains: explanation int32 [T] and explanation_length, which is 0 where there is none.

    With `explanation='random'` and a generator, each reference is equally likely; else it is the first.
    """
    references = [reference for reference in example.explanations if reference.strip()]
    if not references:
        empty = np.full(encoding.max_explanation, expl.end_of_text, np.int32)
        return {'explanation': empty, 'explanation_length': np.int32(0)}
    chosen = 0
    if rng is not None and encoding.explanation == 'random' and len(references) > 1:
        chosen = int(rng.integers(len(references)))
    return piece('explanation', 'rtnl', references[chosen], expl, encoding.max_explanation)


def targets(scores: dict[int, float]) -> dict[str, np.ndarray]:
    """Sparse soft targets: answer_ids int32 [10], answer_scores float32 [10], and gold, the best answer's index.

    The best ten are kept, ties by the lower index; unused slots hold id 0 with score 0. `gold` is -1 where no answer
    has a positive score.
    """
    best = sorted(((i, s) for i, s in scores.items() if s > 0), key=lambda item: (-item[1], item[0]))[:TARGETS]
    ids, values = np.zeros(TARGETS, np.int32), np.zeros(TARGETS, np.float32)
    for slot, (i, score) in enumerate(best):
        ids[slot], values[slot] = i, score
    return {'answer_ids': ids, 'answer_scores': values, 'gold': np.int32(best[0][0] if best else -1)}


def padded(ids, maximum: int, pad: int) -> np.ndarray:
    """int32 [maximum]: ids, then `pad`."""
    row = np.full(maximum, pad, np.int32)
    row[: len(ids)] = ids
    return row


def length(kind: str, words: str, assets: tokenizers.Assets) -> int:
    """Tokens of an uncut text with its two markers: what is held against `data.max_<kind>`.

    Args:
      kind: text ([CLS] and [SEP]), or question, answer, explanation (a piece of the decoder's row).
      words: the text.
      assets: the vocabularies.
    """
    tokenizer = assets.word if kind == 'text' else assets.expl
    return len(tokenizer.encode(words)) + 2
