"""e-SNLI-VE and VCR as NLX-GPT (Sammani et al. 2022) prepared them: one JSON object, the keys numbers.

- e-SNLI-VE: `{row: {hypothesis, answers: "neutral", image_name: "4465359505.jpg", explanation}}`; row counts those
  of the published CSV from 0.
- VCR: `{number: {question, answers, explanation, annot_id: "val-7", img_name, objects, ...}}`; number is the end of
  annot_id. `answers` is the right answer in words: the others are not in there, so an answer is right if it reads the
  same. Objects are "person0": name and number, from 0.

Texts are in lower case and without full stops (VCR: without their last token). VQA-X in this form: `sources/vqax.py`.
"""

from collections.abc import Iterator

from evil_jax.data.sources import _files, esnlive
from evil_jax.records import Example


def read_esnlive(path) -> Iterator[Example]:
    """Yields the examples of an e-SNLI-VE file. ValueError names file and key of a malformed record."""
    for key, row, where in _rows(path):
        label = _files.filled(row, 'answers', where)
        if label not in esnlive.CLASSES:
            raise ValueError(f'{where}: answers is {label[:80]!r}, wanted one of {", ".join(esnlive.CLASSES)}')
        yield Example(
            id=key,
            image_id=_files.picture_name(_files.filled(row, 'image_name', where), f'{where}: image_name'),
            text=_files.filled(row, 'hypothesis', where),
            label=label,
            explanations=_explanations(row, where),
        )


def read_vcr(path) -> Iterator[Example]:
    """Yields the examples of a VCR file. ValueError names file and key of a malformed record."""
    for key, row, where in _rows(path):
        yield Example(
            id=key,
            image_id=_files.picture_name(_files.filled(row, 'img_name', where), f'{where}: img_name'),
            text=_files.filled(row, 'question', where),
            answers={_files.filled(row, 'answers', where): 1.0},
            explanations=_explanations(row, where),
            extra={'annot_id': _files.filled(row, 'annot_id', where)},
        )


def _rows(path) -> Iterator[tuple[str, dict, str]]:
    """(key, record, place) of each entry."""
    document = _files.checked(_files.read_json(path), dict, f'{path}: the document')
    for key, row in document.items():
        where = f'{path}: entry {_files.shown(key)}'
        if not _files.text(key, where).strip():
            raise ValueError(f'{path}: a key is empty')
        yield key, _files.checked(row, dict, where), where


def _explanations(row, where) -> list[str]:
    """Without the empty ones: an explanation may have been nothing but full stops."""
    texts = row.get('explanation', [])
    texts = [texts] if isinstance(texts, str) else _files.checked(texts, list, f'{where}: explanation')
    texts = [_files.checked(text, str, f'{where}: an explanation').strip() for text in texts]
    return [text for text in texts if text]
