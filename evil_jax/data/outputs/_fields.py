"""What the formats share: ids, lists of captions."""

import re
from collections.abc import Iterator, Sequence

from evil_jax.data.sources import _files, _references

BECAUSE = 'because'


def identifier(row: dict, name: str, where: str) -> str:
    """`row[name]`, a text or an integer (262284001 and "262284001" are one id), as a text with something in it."""
    value = str(_files.field(row, name, (str, int), where))
    if not value.strip():
        raise ValueError(f'{where}: {name} is empty')
    return value


def text_or_null(row: dict, name: str, where: str) -> str | None:
    """`row[name]`, which must be there: a text, or null."""
    if name in row and row[name] is None:
        return None
    return _files.field(row, name, str, where)


def captions(path) -> Iterator[tuple[str, str | None]]:
    """(id, text or None) of each record of COCO-caption results, `[{"image_id": ..., "caption": ...}]`.

    Captioning has one text for a picture, so the id stands in `image_id`; where questions are explained it is the
    question's. Further fields are passed over.
    """
    document = _files.checked(_files.read_json(path), list, f'{path}: the document')
    for number, row in enumerate(document, 1):
        where = f'{path}: record {number}'
        row = _files.checked(row, dict, where)
        yield identifier(row, 'image_id', where), text_or_null(row, 'caption', where)


def because(caption: str) -> tuple[str, str]:
    """(what stands before the first 'because', what stands after it), without blanks at their ends."""
    answer, _, explanation = caption.partition(BECAUSE)
    return answer.strip(), explanation.strip()


def plain_name(column: str) -> str:
    """A column's name without case, blanks and underscores: 'Question ID' is 'questionid'."""
    return re.sub(r'[\W_]+', '', column.casefold())


def all_because(captions: Sequence[str | None]) -> bool:
    """Whether every one of many captions has a 'because': answers then stand before it."""
    texts = [caption for caption in captions if caption]
    return len(texts) >= _references.ENOUGH and all(BECAUSE in text for text in texts)
