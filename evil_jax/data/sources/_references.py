"""Forms of references that no data set was published in, and which form a file has."""

import re
from collections.abc import Iterator

from evil_jax.data.sources import _elements, _files, visual_genome, vqav2
from evil_jax.records import Example

# Ids that tell the picture: a question of VQA v2 by its number and three digits, a pair of SNLI by its file.
_PICTURE = {
    'vqax': re.compile(r'0*([1-9][0-9]*)[0-9]{3}'),
    'vqav2': re.compile(r'0*([1-9][0-9]*)[0-9]{3}'),
    'esnlive': re.compile(r'(.+)\.jpg#.+'),
}
_FULL = re.compile(r'\s*\S.*\bbecause\b', re.DOTALL)
ENOUGH = 20  # texts from which on it is no accident that all, or none, are alike


def form(path) -> str:
    """What is in a file: a name of `data/references.py`.

    Raises:
      ValueError: it cannot be read, is empty, or is nothing that is known.
    """
    first = _files.first_character(path)
    if not first:
        raise ValueError(f'{path}: is empty')
    if first not in '[{':
        return _table(path)
    record = _files.first_record(path)
    if isinstance(record, dict) and (found := _line(record)):
        return found
    if first == '[' and visual_genome.is_questions(_elements.first(path)):  # too large to be read as a whole
        return 'visual_genome'
    try:
        document = _files.read_json(path)
    except ValueError as error:
        if isinstance(record, dict):
            raise ValueError(
                f'{path}:1: a line of JSON lines needs an id, found only {", ".join(_files.keys(record))}; wanted '
                '{"id": ..., "image_id": ..., "text": ...}'
            ) from error
        raise
    if found := _list(document) if isinstance(document, list) else _object(document):
        return found
    row = document[0] if isinstance(document, list) and document else None
    what = 'these are captions, which are predictions' if isinstance(row, dict) and 'caption' in row else 'it is'
    raise ValueError(f'{path}: this is no form of references that is known; {what}: {_files.shown(document)}')


def _table(path) -> str:
    if 'pairID' in _files.read_text(path).partition('\n')[0]:
        return 'esnlive'
    raise ValueError(
        f'{path}: is neither JSON nor the CSV of e-SNLI-VE (pairID, Flickr30kID, hypothesis, gold_label, explanation); '
        'references may be JSON lines: {"id": ..., "explanations": [...], "answers": {...}}'
    )


def _line(record: dict) -> str | None:
    """Of JSON lines, by the first of them. A whole document may be one line."""
    if isinstance(record.get('annot_id'), str):
        return 'vcr'
    if isinstance(record.get('question_id'), (int, str)) and 'correct_explanations' in record:
        return 'gen_test'
    return 'jsonl' if isinstance(record.get('id'), (int, str)) else None


def _list(document: list) -> str | None:
    row = document[0] if document and isinstance(document[0], dict) else {}
    if 'answer_choices' in row:
        return 'vcr'
    if 'sent' in row:
        return 'vqax' if isinstance(row.get('label'), dict) else 'esnlive'
    return None


def _object(document) -> str | None:
    if isinstance(document.get('questions'), list):
        return 'questions'
    if isinstance(document.get('annotations'), list):
        return 'coco' if 'images' in document else 'annotations'
    row = next(iter(document.values()), [])
    if not isinstance(row, dict):
        return 'explanations' if isinstance(row, (str, list)) else None
    for name, found in (('hypothesis', 'nlxgpt_esnlive'), ('annot_id', 'nlxgpt_vcr'), ('question', 'vqax')):
        if name in row:
            return found
    return None


def read_jsonl(path) -> Iterator[Example]:
    """JSON lines of records.Example, of which `id` alone must be there (a text or a number).

    `text` is '' by default, `image_id` the id, and `answers` (soft scores) are counted from ten `annotations`.
    """
    for where, row in _files.iter_json(path):
        row = _files.plain(_files.checked(row, dict, where), where)
        if 'id' in row:
            row['id'] = str(_files.field(row, 'id', (str, int), where))
            row.setdefault('image_id', row['id'])
        if isinstance(row.get('image_id'), int):
            row['image_id'] = str(row['image_id'])
        row.setdefault('text', '')
        try:
            example = Example.from_json(row)
        except ValueError as error:
            raise ValueError(f'{where}: {error}') from error
        yield _sound(example, where)


def _sound(example: Example, where) -> Example:
    """`example`, if what is in its lists and objects is of the right type."""
    if not example.id.strip():
        raise ValueError(f'{where}: id is empty')
    for name in ('explanations', 'choices', 'annotations', 'objects'):
        for text in getattr(example, name) or ():
            _files.checked(text, str, f'{where}: an entry of {name}')
    for answer, score in (example.answers or {}).items():
        if not 0 <= _files.checked(score, (int, float), f'{where}: score of {answer!r}') <= 1:
            raise ValueError(f'{where}: score of {answer!r} is {score}, wanted a number in [0, 1]')
    if example.annotations and example.answers is None and len(example.annotations) == vqav2.ANNOTATORS:
        example.answers = vqav2.soft_scores(example.annotations)
    return example


def read_gen_test(path) -> Iterator[Example]:
    """What e-ViL's gen_test.json says of the examples: question, gold label, explanations.

    `gt` is an object of soft scores (VQA-X), a class (e-SNLI-VE) or the number of a choice (VCR). In VCR's texts there,
    objects are bare numbers. `img_id` is that of VCR only: elsewhere it is the id without its last five characters.
    """
    for where, row in _files.iter_json(path):
        row = _files.checked(row, dict, where)
        identifier = str(_files.field(row, 'question_id', (str, int), where))
        if not identifier.strip():
            raise ValueError(f'{where}: question_id is empty')
        gold = _files.field(row, 'gt', (dict, str, int), where)
        example = Example(
            id=identifier,
            image_id=identifier,
            text=_files.filled(row, 'question', where),
            explanations=_files.explanation_list(row['correct_explanations'], f'{where}: correct_explanations')
            if 'correct_explanations' in row
            else [],
        )
        if isinstance(gold, dict):
            example.answers = gold
        else:
            example.label = gold
        if 'answer_choices' in row:
            example.choices = _files.field(row, 'answer_choices', list, where)
            if isinstance(gold, int) and not 0 <= gold < len(example.choices):
                raise ValueError(f'{where}: gt is {gold}, wanted 0 to {len(example.choices) - 1}')
            name = _files.filled(row, 'img_id', where)
            example.image_id = _files.picture_name(name, f'{where}: img_id')
        yield _sound(example, where)


def read_explanations(path) -> Iterator[Example]:
    """`{id: [explanation, ...]}`, VQA-X's original form."""
    for identifier, texts in vqav2.read_explanations(path).items():
        yield Example(identifier, identifier, '', explanations=texts)


def read_coco(path) -> Iterator[Example]:
    """COCO's caption annotations, whose picture is the example. One without captions has no explanation.

    Raises:
      ValueError: a malformed record, a caption without picture; the captions are not explanations but answers with
        explanations (NLX-GPT's `*_annot_full.json`), since all of many have a 'because'.
    """
    document = _files.checked(_files.read_json(path), dict, f'{path}: the document')
    found = {}
    for number, row in enumerate(_files.field(document, 'images', list, str(path)), 1):
        where = f'{path}: image {number}'
        identifier = str(_files.field(_files.checked(row, dict, where), 'id', (int, str), where))
        if not identifier.strip() or identifier in found:
            raise ValueError(f'{where}: the id {identifier!r} {"appears twice" if identifier in found else "is empty"}')
        found[identifier] = Example(identifier, identifier, '')
    captions = []
    for number, row in enumerate(_files.field(document, 'annotations', list, str(path)), 1):
        where = f'{path}: annotation {number}'
        identifier = str(_files.field(_files.checked(row, dict, where), 'image_id', (int, str), where))
        if identifier not in found:
            raise ValueError(f'{where}: image_id {identifier!r} is none of the images')
        captions.append(_files.filled(row, 'caption', where))
        found[identifier].explanations.append(captions[-1])
    if len(captions) >= ENOUGH and all(map(_FULL.match, captions)):
        raise ValueError(
            f"{path}: each of {len(captions)} captions reads 'answer because explanation'; wanted explanations alone "
            "(NLX-GPT's *_annot_exp.json)"
        )
    yield from found.values()


def name_pictures(examples: list[Example], builder: str) -> None:
    """Puts `image_id` where it is the id, if the data set is one whose ids tell the picture, and all of them do.

    (Ids that count rows do not: short ones are among them.)
    """
    pattern = _PICTURE.get(builder)
    if pattern is None:
        return
    found = [pattern.fullmatch(e.id) for e in examples]
    if all(found):
        for example, match in zip(examples, found):
            if example.image_id == example.id:
                example.image_id = match[1]
