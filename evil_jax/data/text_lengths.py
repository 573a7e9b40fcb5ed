"""Tokens of the texts of an example before they are cut: what settings such as `data.max_text` are chosen by."""

from collections.abc import Callable, Iterator, Sequence

from evil_jax.data import tags, tokenizers, transforms
from evil_jax.data.words import BORDER
from evil_jax.records import Example


def length(kind: str, words: str, assets: tokenizers.Assets) -> int:
    """Tokens of an uncut text with its two markers: what is held against `data.max_<kind>`.

    Args:
      kind: text ([CLS] and [SEP]), or question, answer, explanation, objects (a piece of the decoder's row).
      words: the text; a [SEP] between two of them counts as one.
      assets: the vocabularies.
    """
    tokenizer = assets.word if kind == 'text' else assets.expl
    borders = words.count(BORDER) if kind == 'text' else 0
    return len(tokenizer.encode(words.replace(BORDER, ' ') if borders else words)) + 2 + borders


def lengths(
    example: Example, encoding: transforms.Encoding, length: Callable[[str, str], int], names: Sequence[str] = ()
) -> Iterator[tuple[str, int]]:
    """(kind, tokens) of every text of an example, as it is encoded, to be held against `data.<limit(kind)>`.

    Kinds are those of `length`. With choices there is one 'text' for each pair of question and choice, and one 'answer'
    for each choice; the answers of a common vocabulary are no part of an example. Where names of objects are read each
    'text' is also told with them, as 'text_objects', and the decoder's piece of them as 'objects'.

    Args:
      length: `(kind, words) -> tokens`: the function `length` with the assets filled in, cached as the caller likes.
      names: of objects.
    """
    for kind, tokens in _lengths(example, encoding, length):
        yield kind, tokens
        if kind == 'text' and encoding.objects:
            yield 'text_objects', tokens + (length('text', ' '.join(names)) - 1 if names else 0)
    if encoding.objects:
        yield 'objects', length('objects', ' '.join(names))


def limit(kind: str) -> str:
    """The setting of `config.data` that cuts texts of a kind of `lengths`."""
    return f'max_{kind.partition("_")[0]}'


def _lengths(example, encoding, length):
    spoken = lambda words: tags.spoken(words, example.objects, encoding.tags)
    written = lambda words: tags.written(words, example.objects)
    question = length('text', spoken(example.text))
    if not encoding.choices:
        yield 'text', question
    for choice in (example.choices or ()) if encoding.choices else ():
        yield 'text', question + length('text', spoken(choice)) - 1  # one [CLS], two [SEP]
        yield 'answer', length('answer', written(choice))
    yield 'question', length('question', written(example.text))
    for explanation in example.explanations:
        yield 'explanation', length('explanation', written(explanation))
