"""From one Example and its Regions to the fixed-shape arrays of one row of a batch. Plain functions on numpy.

Legend: Q question tokens, R regions, F region width, T decoder tokens, A answers, C choices.

Names of objects (data/objects.py) follow a text as its last segment, of type 1: `[CLS] text [SEP] names [SEP]`. Where
there is not room for everything they are cut first, name by name.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from evil_jax import compat
from evil_jax.data import objects as objects_lib
from evil_jax.data import pictures, tags, tokenizers
from evil_jax.data import words as words_lib
from evil_jax.data.features.locations import locations
from evil_jax.data.features.regions import WIDTH, Regions
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
    choices: int = 0
    tags: str = 'names'
    tag_regions: bool = True
    cut_pairs: bool = False  # compat.cut_pairs
    objects: str = ''
    max_objects: int = 30
    max_text: int = 20
    max_regions: int = 36
    pixels: int = 224
    resize: str = 'squash'
    shift: int = 0
    max_question: int = 19
    max_answer: int = 23
    max_explanation: int = 51

    @classmethod
    def of(cls, config) -> 'Encoding':
        names = {field.name for field in dataclasses.fields(cls)} - {'locations', 'cut_pairs'}
        decided = dict(locations=compat.locations(config), cut_pairs=compat.cut_pairs(config))
        return cls(**{name: config.data[name] for name in names}, **decided)


def text(words: str, word: tokenizers.WordTokenizer, max_text: int, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """`[CLS] words [SEP]`, cut to `max_text` and padded: text and text_type int32 [Q], text_length (facts 1.1).

    Args:
      names: of objects, which follow.
    """
    ids = [word.cls, *word.encode(words)[: max_text - 2], word.sep]
    more = _segment(names, word, max_text - len(ids))
    return {
        'text': padded([*ids, *more], max_text, word.pad),
        'text_type': padded([0] * len(ids) + [1] * len(more), max_text, 0),
        'text_length': np.int32(len(ids) + len(more)),
    }


def pair(words: str, word: tokenizers.WordTokenizer, max_text: int) -> dict[str, np.ndarray]:
    """`[CLS] first [SEP] second [SEP]`, of type 0 up to the inner [SEP] and 1 behind it; else as `text`.

    Args:
      words: as `words.joined` gives it; where it is too long both texts lose their ends (`words.shares`).

    Raises:
      ValueError: no border in it, or no room for the markers.
    """
    first, second = (word.encode(half) for half in words_lib.halves(words))
    kept = words_lib.shares(len(first), len(second), max_text)
    ids = [word.cls, *first[: kept[0]], word.sep]
    more = [*second[: kept[1]], word.sep]
    return {
        'text': padded([*ids, *more], max_text, word.pad),
        'text_type': padded([0] * len(ids) + [1] * len(more), max_text, 0),
        'text_length': np.int32(len(ids) + len(more)),
    }


def _segment(names, word, room) -> list[int]:
    """`names [SEP]`, as many as there is room for; nothing where no name fits."""
    ids = objects_lib.fitting(names, word.encode, room - 1)
    return [*ids, word.sep] if ids else []


def tagged(
    example: Example, found, word: tokenizers.WordTokenizer, encoding: Encoding, names: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """What the encoder reads of a question with choices: the question alone, and each pair of question and choice.

    A pair is `[CLS] question [SEP] choice [SEP]`, of type 0 up to the inner [SEP] and 2 behind it (facts 1.1). Where it
    is too long the choice loses its end, so that the inner [SEP] stays; it keeps at least one word piece. With
    `cut_pairs` the pair loses its end, whatever that is; without an inner [SEP] all of it is of type 0.

    Args:
      example: its tags are read as `encoding.tags` says.
      found: the picture's Regions, or None. Tags count among those that are `fitting`.
      names: of objects, which follow each text and each pair.

    Returns:
      text, text_type, text_tags int32 [Q], text_length; choices, choices_type, choices_tags int32 [C, Q],
      choices_length int32 [C]. Tags: index of the region that a word piece stands for, else -1.
    """
    maximum, linked = encoding.max_text, np.zeros(0, np.int32)
    if encoding.tag_regions and encoding.regions == 'detected':
        linked = tags.regions_of(example, fitting(found, encoding, example.image_id))
    read = lambda words: tags.encode(words, example.objects, encoding.tags, word)
    region = lambda numbers: [linked[n - 1] if 1 <= n <= len(linked) else -1 for n in numbers]

    def row(name, ids, numbers, second):
        kinds = [0] * second + [2] * (len(ids) - second)
        more = _segment(names, word, maximum - len(ids))
        ids, kinds, numbers = [*ids, *more], [*kinds, *[1] * len(more)], [*numbers, *[0] * len(more)]
        return {
            name: padded(ids, maximum, word.pad),
            f'{name}_type': padded(kinds, maximum, 0),
            f'{name}_length': np.int32(len(ids)),
            f'{name}_tags': padded(region(numbers), maximum, -1),
        }

    ids, numbers = read(example.text)
    alone, alone_numbers = ids[: maximum - 2], numbers[: maximum - 2]
    text = [word.cls, *alone, word.sep]
    kept = maximum - (2 if encoding.cut_pairs else 4)
    first, first_numbers = ids[:kept], numbers[:kept]
    room, rows = max(maximum - 3 - len(first), 0), []
    for choice in example.choices:
        ids, numbers = (part[:room] for part in read(choice))
        pair = [word.cls, *first, word.sep, *ids, word.sep]
        pair_numbers = [0, *first_numbers, 0, *numbers, 0]
        if len(pair) > maximum:  # the question alone fills the row
            rows.append(row('choices', pair[:maximum], pair_numbers[:maximum], maximum))
        else:
            rows.append(row('choices', pair, pair_numbers, len(first) + 2))
    stacked = {name: np.stack([r[name] for r in rows]) for name in rows[0]}
    return row('text', text, [0, *alone_numbers, 0], len(text)) | stacked


def fitting(found: Regions | None, encoding: Encoding, image_id: str) -> Regions | None:
    """The regions that a row has room for: the `max_regions` most confident ones, in their order; None for None.

    Raises:
      ValueError: the regions are a grid that is too large; names the picture.
    """
    return None if found is None else found.best(encoding.max_regions, f'image {image_id!r}')


def regions(found, encoding: Encoding, image_id: str = '') -> dict[str, np.ndarray]:
    """A picture's regions, those that are `fitting`.

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
        found = fitting(found, encoding, image_id)
        length = len(found)
        if encoding.regions == 'detected':
            features[:length] = found.features
            places[:length] = locations(found, encoding.locations, image_id)
    return {'features': features, 'locations': places, 'region_length': np.int32(length)}


def picture(found: np.ndarray, encoding: Encoding, rng: np.random.Generator | None = None) -> dict[str, np.ndarray]:
    """A picture as a Vision Transformer reads it: images float32 [pixels, pixels, 3] (`pictures.prepare`).

    Args:
      found: uint8 [H, W, 3].
      rng: moves the picture by up to `encoding.shift` pixels; None leaves it in its place.
    """
    image_HW3 = pictures.prepare(found, encoding.pixels, encoding.resize)
    if rng is not None and encoding.shift:
        image_HW3 = pictures.shifted(image_HW3, *rng.integers(-encoding.shift, encoding.shift + 1, 2))
    return {'images': image_HW3}


def piece(name: str, span: str, words: str, expl: tokenizers.ExplTokenizer, maximum: int) -> dict[str, np.ndarray]:
    """A decoder piece `<|b_span|> words <|e_span|>`: `name` int32 [maximum] and `name`_length."""
    ids, _ = expl.piece(span, words, maximum)
    return {name: padded(ids, maximum, expl.end_of_text), f'{name}_length': np.int32(len(ids))}


def objects(names: Sequence[str], expl: tokenizers.ExplTokenizer, maximum: int) -> dict[str, np.ndarray]:
    """The decoder's piece `<|b_img|> names <|e_img|>`, cut name by name: objects int32 [maximum], objects_length."""
    ids = [expl.id('<|b_img|>'), *objects_lib.fitting(names, expl.encode, maximum - 2), expl.id('<|e_img|>')]
    return {'objects': padded(ids, maximum, expl.end_of_text), 'objects_length': np.int32(len(ids))}


def explanation(
    example: Example, expl: tokenizers.ExplTokenizer, encoding: Encoding, rng: np.random.Generator | None
) -> dict[str, np.ndarray]:
    """The reference that trains: explanation int32 [T] and explanation_length, which is 0 where there is none.
    Its tags are those of the example's objects.

    With `explanation='random'` and a generator, each reference is equally likely; else it is the first.
    """
    references = [reference for reference in example.explanations if reference.strip()]
    if not references:
        empty = np.full(encoding.max_explanation, expl.end_of_text, np.int32)
        return {'explanation': empty, 'explanation_length': np.int32(0)}
    chosen = 0
    if rng is not None and encoding.explanation == 'random' and len(references) > 1:
        chosen = int(rng.integers(len(references)))
    words = tags.written(references[chosen], example.objects)
    return piece('explanation', 'rtnl', words, expl, encoding.max_explanation)


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


def read_texts(example: Example) -> Iterator[str]:
    """What an encoder may be given of an example, whatever `data.tags` says: for making a word vocabulary."""
    for style in tags.STYLES if example.choices else tags.STYLES[:1]:
        for words in (example.text, *(example.choices or ())):
            yield tags.spoken(words, example.objects, style)
