"""VQA-X (Park et al. 2018) in the three forms that circulate; which one a file is shows in its content.

- original: `{question id: [explanation]}`; questions and answers come from the VQA v2 files;
- NLX-GPT: `{question id: {question, answers: [ten], image_id, image_name, explanation: [...]}}`;
- LXMERT (e-UG): `[{question_id, img_id, sent, label: {answer: soft score}, explanation: [...]}]`.

The last two may lack `explanation`: questions can be answered and explained without references.
"""

from collections.abc import Iterator, Sequence

from evil_jax.data.sources import _files, vqav2
from evil_jax.records import Example


def read(path, questions: Sequence = (), annotations: Sequence = ()) -> Iterator[Example]:
    """Yields the examples of one VQA-X split.

    Args:
      path: the VQA-X file (JSON, plain or gzip).
      questions, annotations: VQA v2 files to look the questions up in; only the original form needs them, and all of
        them are searched, since VQA-X's dev and test splits both come from VQA v2's validation split.

    Raises:
      ValueError: a malformed record, or a question id without a question; file and question id are named.
    """
    document = _files.checked(_files.read_json(path), (dict, list), f'{path}: the document')
    if isinstance(document, list):
        return _lxmert(path, document)
    if all(isinstance(value, dict) for value in document.values()):
        return _nlx(path, document)
    return _original(path, questions, annotations)


def _original(path, questions, annotations) -> Iterator[Example]:
    explained = vqav2.read_explanations(path)
    if not questions:
        raise ValueError(f'{path}: holds explanations only, so the VQA v2 questions file with their ids must be there')
    asked = {}
    for file in questions:
        for example in vqav2.read_questions(file):
            if example.id in explained and asked.setdefault(example.id, example) != example:
                raise ValueError(f'{file}: question {example.id} is another one in a file before it')
    missing = [qid for qid in explained if qid not in asked]
    if missing:
        raise ValueError(
            f'{path}: {len(missing)} of {len(explained)} question ids have no question in '
            f'{", ".join(str(file) for file in questions)}; the first: {", ".join(missing[:20])}'
        )
    for file in annotations:
        for qid, annotation in vqav2.read_annotations(file).items():
            if qid in asked:
                vqav2.annotate(asked[qid], annotation, file)
    for qid, texts in explained.items():
        asked[qid].explanations = texts
        yield asked[qid]


def _nlx(path, document) -> Iterator[Example]:
    for qid, row in document.items():
        where = vqav2.key(path, qid)
        name = _files.field(row, 'image_name', str, where)
        annotations = vqav2.raw_answers(_files.field(row, 'answers', list, where), where)
        yield Example(
            id=qid,
            image_id=_files.picture_name(name, f'{where}: image_name'),
            text=_files.filled(row, 'question', where),
            answers=vqav2.soft_scores(annotations),
            annotations=annotations,
            answer_type=_files.optional_text(row, 'answer_type', where),
            question_type=_files.optional_text(row, 'question_type', where),
            explanations=_files.explanation_list(row.get('explanation', []), f'{where}: explanation'),
        )


def _lxmert(path, document) -> Iterator[Example]:
    seen = set()
    for number, row in enumerate(document, 1):
        row = _files.checked(row, dict, f'{path}: record {number}')
        qid = vqav2.question_id(row, f'{path}: record {number}')
        where = f'{path}: question {qid[:80]}'
        if qid in seen:
            raise ValueError(f'{where}: the question id appears twice')
        seen.add(qid)
        answers = {}
        for answer, score in _files.field(row, 'label', dict, where).items():
            what = f'{where}: score of {_files.text(answer, f"{where}: an answer")!r}'
            if not 0 <= _files.checked(score, (int, float), what) <= 1:
                raise ValueError(f'{what} is {_files.shown(score)}, wanted a number in [0, 1]')
            answers[answer] = float(score)
        yield Example(
            id=qid,
            image_id=_files.filled(row, 'img_id', where),
            text=_files.filled(row, 'sent', where),
            answers=answers,
            answer_type=_files.optional_text(row, 'answer_type', where),
            question_type=_files.optional_text(row, 'question_type', where),
            explanations=_files.explanation_list(row.get('explanation', []), f'{where}: explanation'),
        )
