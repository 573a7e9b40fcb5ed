"""ERASER's movie reviews (DeYoung et al. 2020; Zaidan et al. 2007): is a review positive, and which words show it.

Files in `manual_dir`, as published: `train.jsonl`, `val.jsonl` (the dev split) and `test.jsonl`, with the reviews in
`docs/` or in `docs.jsonl`. The words of an example's text are the document's tokens; `extra['evidence']` lists the
spans of the evidence, [start, end) in words, as they stand in the file.
"""

import pathlib

from evil_jax.data.builders import _base
from evil_jax.data.sources import eraser
from evil_jax.records import Example

PATTERNS = ('train.jsonl', 'val.jsonl', 'dev.jsonl', 'test.jsonl')


class Eraser(_base.ExampleBuilder):
    """Movie reviews: text, one of two classes, spans of evidence."""

    description = __doc__
    classes = ('NEG', 'POS')
    inputs = 'text'

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        folder = pathlib.Path(folder)
        found = _base.find(folder, PATTERNS)
        _base.require(found, folder, PATTERNS)
        docs = eraser.place(folder)
        return {split: {'rows': found[split], 'documents': docs} for split in _base.SPLITS if split in found}

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        docs = eraser.documents(files['documents'])
        for annotation in eraser.read(files['rows'], docs, cls.classes):
            if len(annotation.docids) > 1:
                raise ValueError(
                    f'{files["rows"]}: annotation {annotation.id!r} is about {len(annotation.docids)} documents '
                    f'({", ".join(annotation.docids[:5])}), wanted one review'
                )
            (docid,) = annotation.docids
            spans = [[span.start, span.end] for group in annotation.groups for span in group]
            yield Example(
                id=annotation.id,
                image_id=docid,
                text=' '.join(docs[docid]),
                label=annotation.label,
                extra={'docid': docid, 'evidence': spans},
            )


Builder = Eraser
