"""VQA v2 as published: a questions file and an annotations file (JSON, plain or gzip), joined by question id."""

import collections
import re
from collections.abc import Iterator, Sequence

from evil_jax.data.sources import _files
from evil_jax.records import Example

ANNOTATORS = 10
# Credit for an answer that 0, 1, 2, 3 or more of the ten annotators gave (Hu's compute_softscore, used by LXMERT and
# UNITER).
SOFT_SCORES = (0.0, 0.3, 0.6, 0.9, 1.0)


def soft_scores(annotations: Sequence[str]) -> dict[str, float]:
    """Soft score of each answer among ten annotator answers, counted as they are written, in order of first mention."""
    counts = collections.Counter(annotations)
    return {answer: SOFT_SCORES[min(n, len(SOFT_SCORES) - 1)] for answer, n in counts.items()}


def read(questions, annotations=None, explanations=None) -> Iterator[Example]:
    """Yields the examples of one split, in the order of the questions file.

    Args:
      questions: official questions JSON, `{"data_subtype"?, "questions": [{"image_id", "question", "question_id"}]}`.
      annotations: official annotations JSON, `{"annotations": [{"question_id", "multiple_choice_answer"?, "answers":
        [ten {"answer"}], "question_type"?, "answer_type"?}]}`. None, or a question that it does not mention: the
        example has no answers (a test split).
      explanations: VQA-X style JSON `{question id: [explanation]}`; ids that are not among the questions are left out.

    `image_id` is `COCO_<data_subtype>_<12 digits>` where the questions file names its subtype, else the bare number.
    The ten raw answers stay in `annotations`, their soft scores in `answers`, the published answer in
    `extra['multiple_choice_answer']`.

    Raises:
      ValueError: a malformed record; file and question id (or record number) are named.
    """
    answered = read_annotations(annotations) if annotations else {}
    explained = read_explanations(explanations) if explanations else {}
    for example in read_questions(questions):
        annotate(example, answered.get(example.id), annotations)
        example.explanations = explained.get(example.id, [])
        yield example


def read_questions(path) -> Iterator[Example]:
    """Yields examples without answers from a questions file."""
    document = _files.checked(_files.read_json(path), dict, f'{path}: the document')
    subtype = _files.optional_text(document, 'data_subtype', str(path))
    seen = set()
    for number, row in enumerate(_files.field(document, 'questions', list, str(path)), 1):
        where = _where(path, row, number)
        qid = question_id(row, where)
        if qid in seen:
            raise ValueError(f'{where}: the question id appears twice')
        seen.add(qid)
        text = _files.filled(row, 'question', where)
        image = _image(row, where)
        if isinstance(row['image_id'], int) and subtype:
            image = f'COCO_{subtype}_{row["image_id"]:012d}'
        yield Example(id=qid, image_id=image, text=text)


def read_annotations(path) -> dict[str, Example]:
    """Annotations by question id, as examples without a text."""
    document = _files.checked(_files.read_json(path), dict, f'{path}: the document')
    found = {}
    for number, row in enumerate(_files.field(document, 'annotations', list, str(path)), 1):
        where = _where(path, row, number)
        qid = question_id(row, where)
        if qid in found:
            raise ValueError(f'{where}: the question id appears twice')
        found[qid] = Example(
            id=qid,
            image_id=_image(row, where) if 'image_id' in row else '',
            text='',
            annotations=raw_answers(_files.field(row, 'answers', list, where), where),
            answer_type=_files.optional_text(row, 'answer_type', where),
            question_type=_files.optional_text(row, 'question_type', where),
        )
        published = _files.optional_text(row, 'multiple_choice_answer', where)
        if published is not None:
            found[qid].extra['multiple_choice_answer'] = published
    return found


def annotate(example: Example, annotation: Example | None, path) -> None:
    """Puts what `read_annotations(path)` found about a question (None: nothing) into its example."""
    if annotation is None:
        return
    if annotation.image_id and _number(annotation.image_id) != _number(example.image_id):
        raise ValueError(
            f'{path}: question {example.id} is about picture {example.image_id}, its annotation about '
            f'{annotation.image_id}'
        )
    example.annotations = annotation.annotations
    example.answers = soft_scores(annotation.annotations)
    example.answer_type = annotation.answer_type
    example.question_type = annotation.question_type
    example.extra |= annotation.extra


def read_explanations(path) -> dict[str, list[str]]:
    """VQA-X's original file `{question id: [explanation, ...]}`."""
    document = _files.checked(_files.read_json(path), dict, f'{path}: the document')
    return {qid: _files.explanation_list(texts, key(path, qid)) for qid, texts in document.items()}


def key(path, qid: str) -> str:
    """`file: question id` of a document whose keys are question ids; the id is checked."""
    if not _files.text(qid, f'{path}: a question id').strip():
        raise ValueError(f'{path}: a question id is empty')
    return f'{path}: question {qid[:80]}'


def question_id(row: dict, where: str) -> str:
    """The id of a record: a number or a text."""
    qid = str(_files.field(row, 'question_id', (int, str), where))
    if not qid.strip():
        raise ValueError(f'{where}: question_id is empty')
    return qid


def raw_answers(rows: list, where: str) -> list[str]:
    """The ten annotator answers of `[{"answer": text}, ...]`, untouched."""
    answers = []
    for row in rows:
        row = _files.checked(row, dict, f'{where}: an answer')
        answers.append(_files.field(row, 'answer', str, f'{where}: an answer'))
    if len(answers) != ANNOTATORS:
        raise ValueError(f'{where}: has {len(answers)} annotator answers, wanted {ANNOTATORS}')
    return answers


def _where(path, row, number) -> str:
    row = _files.checked(row, dict, f'{path}: record {number}')
    qid = row.get('question_id')
    return f'{path}: question {str(qid)[:80]}' if isinstance(qid, (int, str)) else f'{path}: record {number}'


def _image(row, where) -> str:
    image = str(_files.field(row, 'image_id', (int, str), where))
    if not image.strip():
        raise ValueError(f'{where}: image_id is empty')
    return image


def _number(image_id: str) -> str:
    """The trailing number of an image id without leading zeros (`COCO_train2014_000000000009` -> `9`)."""
    digits = re.search(r'[0-9]+$', image_id)
    return digits.group().lstrip('0') if digits else image_id
