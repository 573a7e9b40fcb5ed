"""VCR (Zellers et al. 2019) in the two forms that e-ViL's users have; which one a file is shows in its content.

- official (train.jsonl, val.jsonl): one JSON object a line. `question`, `answer_choices` and `rationale_choices` are
  lists of tokens, in which a list of numbers stands for objects, counted from 0. They are what is read; the strings
  `question_orig` and so on, whose plain digits count objects from 1, are not: a digit there may be just a number.
- e-UG (vcr_train_split.json, vcr_dev_split.json, vcr_valtest.json): one JSON list
  `[{question_id, img_id: "vcr_val_<name>@0.npz", raw_img_id: "<folder>/<name>@0.jpg", movie, objects, sent,
  answer_choices, label, explanation}]`, in whose texts `<|det1|>` is the first object.

Both give the same Example. Object i of `objects` (from 0) is `<|det{i+1}|>` in its texts, several of them
`<|det1|>, <|det2|> and <|det3|>`. `explanations` has the rationale of the right answer. `extra` has `movie`, `img_fn`
and, where the picture's metadata file is there, `boxes` ([x1, y1, x2, y2] pixels of each object) and `size` ([w, h]).
"""

import functools
import os
import pathlib
import re
from collections.abc import Callable, Iterator

from evil_jax.data.sources import _files, detokenise
from evil_jax.records import Example
from evil_jax.text import TAG

CHOICES = 4
_MAX_METADATA = 16 << 20  # bytes; published files have some 100 KB
_PICTURES = 256  # whose metadata is remembered: a picture's questions stand near each other
_FEATURES = re.compile(r'^vcr_(train|val|test)_(?=.*\.npz$)')


def read(
    path, *, metadata=None, tag_base: int = 1, wanted: Callable[[str, str], bool] | None = None
) -> Iterator[Example]:
    """Yields the examples of one file (plain or gzip), in file order.

    Args:
      path: either form. A record without a label (official test.jsonl) gives an example without label and explanation.
      metadata: the folder that the paths of metadata files start from (the official vcr1images), or None: no boxes.
      tag_base: the number of the first object in e-UG's texts, 0 or 1; official files do not depend on it.
      wanted: called with id and image_id; examples for which it is false are left out.

    Raises:
      ValueError: a malformed record, a tag without object, a missing metadata file or one that does not fit the
        record, a repeated id; the file and the line (JSON: the record) are named, and annot_id.
    """
    pictures = _Metadata(metadata)
    for where, row, example in _records(path):
        if wanted is None or wanted(example.id, example.image_id):
            if 'annot_id' in row:
                _official(row, example, where)
            else:
                _eug(row, example, tag_base, where)
            example.extra |= pictures.extra(row, example, where)
            yield example


def ids(path) -> Iterator[tuple[str, str]]:
    """Yields (id, image_id) of each record, in file order; the rest of a record is not looked at."""
    for _, _, example in _records(path):
        yield example.id, example.image_id


def _records(path) -> Iterator[tuple[str, dict, Example]]:
    """(place, record, example with ids and img_fn only) of each record."""
    seen = {}
    for place, row in _rows(path):
        row = _files.checked(row, dict, place)
        annot_id = _files.filled(row, 'annot_id' if 'annot_id' in row else 'question_id', place)
        where = f'{place}: {annot_id[:80]}'
        if annot_id in seen:
            raise ValueError(f'{where}: this id was already at {seen[annot_id]}')
        seen[annot_id] = place
        image_id, file = _picture(row, where)
        yield where, row, Example(annot_id, image_id, '', extra={} if file is None else {'img_fn': file})


def is_eug(path) -> bool:
    """Whether a file has e-UG's form, one JSON list."""
    return _files.first_character(path) == '['


def _rows(path) -> Iterator[tuple[str, object]]:
    """(place, record): lines of JSON lines, or entries of a JSON list."""
    if not is_eug(path):
        yield from _files.iter_json(path)
        return
    for number, row in enumerate(_files.checked(_files.read_json(path), list, f'{path}: the document'), 1):
        yield f'{path}: record {number}', row


def _picture(row, where) -> tuple[str, str | None]:
    """(image_id, path of the picture below vcr1images or None)."""
    name = 'img_fn' if 'annot_id' in row else 'raw_img_id'
    file, features = _files.optional_text(row, name, where), None
    if name == 'raw_img_id':
        features = _files.optional_text(row, 'img_id', where)
    found = [] if file is None else [_files.picture_name(file, f'{where}: {name}')]
    if features is not None:
        found.append(_files.picture_name(_FEATURES.sub('', features), f'{where}: img_id'))
    if not found:
        raise ValueError(f'{where}: names no picture: it has no {name}')
    if found[0] != found[-1]:
        raise ValueError(f'{where}: raw_img_id is of picture {found[0]!r}, img_id of {found[-1]!r}')
    return found[0], file


# --- the two forms ---


def _official(row, example, where) -> None:
    objects = _objects(row, where)
    texts = lambda name: [_tokens(entry, objects, f'{where}: {name}') for entry in _four(row, name, where)]
    rationale = _label(row, 'rationale_label', where)
    example.text = _tokens(_files.field(row, 'question', list, where), objects, f'{where}: question')
    example.choices = texts('answer_choices')
    example.label = _label(row, 'answer_label', where)
    example.objects = objects
    example.explanations = [] if rationale is None else [texts('rationale_choices')[rationale]]


def _eug(row, example, tag_base, where) -> None:
    objects = _objects(row, where)
    tagged = lambda text, name: _tagged(text, objects, tag_base, f'{where}: {name}')
    example.text = tagged(_files.filled(row, 'sent', where), 'sent')
    example.choices = [
        tagged(_files.filled({'an answer': choice}, 'an answer', f'{where}: answer_choices'), 'answer_choices')
        for choice in _four(row, 'answer_choices', where)
    ]
    example.label = _label(row, 'label', where)
    example.objects = objects
    explanations = _files.explanation_list(row.get('explanation', []), f'{where}: explanation')
    example.explanations = [tagged(text, 'explanation') for text in explanations]


def _objects(row, where) -> list[str]:
    found = _files.field(row, 'objects', list, where)
    return [_files.checked(name, str, f'{where}: objects: an entry') for name in found]


def _four(row, name, where) -> list:
    found = _files.field(row, name, list, where)
    if len(found) != CHOICES:
        raise ValueError(f'{where}: {name} has {len(found)} entries, wanted {CHOICES}')
    return found


def _label(row, name, where) -> int | None:
    value = row.get(name)
    if value is not None and not 0 <= _files.checked(value, int, f'{where}: {name}') < CHOICES:
        raise ValueError(f'{where}: {name} is {_files.shown(value)}, wanted 0 to {CHOICES - 1}')
    return value


def _tokens(tokens, objects, where) -> str:
    words, a_token = [], f'{where}: a token'
    for token in _files.checked(tokens, list, where):
        if isinstance(token, list):
            words.append(_tags(token, objects, where))
            continue
        words.append(_files.checked(token, (str, list), a_token))
        if '<|' in token and TAG.search(token):
            raise ValueError(f'{a_token} is {_files.shown(token)}; objects are lists of numbers there')
    text = detokenise.join(words)
    if not text:
        raise ValueError(f'{where} is empty')
    return text


def _tags(numbers, objects, where) -> str:
    for number in numbers:
        if type(number) is not int or not 0 <= number < len(objects):
            number = _files.checked(number, int, f'{where}: an object')
            raise ValueError(
                f'{where}: object {_files.shown(number)} of {len(objects)}, counted from 0, does not exist'
            )
    if not numbers:
        raise ValueError(f'{where}: a token is an empty list, wanted numbers of objects')
    *head, last = [f'<|det{number + 1}|>' for number in dict.fromkeys(numbers)]
    return f'{", ".join(head)} and {last}' if head else last


def _tagged(text, objects, tag_base, where) -> str:
    def renumber(tag):
        number = int(tag.group(1)[:9]) + 1 - tag_base
        if len(tag.group(1)) > 9 or not 1 <= number <= len(objects):
            raise ValueError(
                f'{where}: tag {tag.group()[:80]} does not exist: there are {len(objects)} objects, counted from '
                f'data.tag_base={tag_base}'
            )
        return f'<|det{number}|>'

    return TAG.sub(renumber, text)


# --- metadata ---


class _Metadata:
    """What is known of a picture."""

    def __init__(self, folder):
        self._folder = folder
        self._read = functools.lru_cache(_PICTURES)(
            lambda path: _boxes(_files.read_json(path, _MAX_METADATA), str(path))
        )

    def extra(self, row, example, where) -> dict[str, object]:
        """movie, boxes and size of a record, where known."""
        movie = _files.optional_text(row, 'movie', where)
        known = {} if movie is None else {'movie': movie}
        name = _files.optional_text(row, 'metadata_fn', where)
        if name is None and 'img_fn' in example.extra:
            name = str(pathlib.PurePath(example.extra['img_fn']).with_suffix('.json'))
        if self._folder is None or name is None:
            return known
        relative = pathlib.PurePath(name)
        if relative.is_absolute() or '..' in relative.parts or '\0' in name:
            raise ValueError(f'{where}: metadata file {name!r} is not below a folder of pictures')
        path = pathlib.Path(self._folder, relative)
        if not os.path.exists(path):
            raise ValueError(f'{where}: metadata file {path} does not exist, although {self._folder} has others')
        found, names = self._read(path)
        if len(found['boxes']) != len(example.objects):
            raise ValueError(f'{where}: has {len(example.objects)} objects, but {path} has {len(found["boxes"])} boxes')
        if names not in (None, example.objects):
            raise ValueError(
                f'{where}: objects are {_files.shown(example.objects)}, but the names in {path} are '
                f'{_files.shown(names)}'
            )
        return known | found


def _boxes(document, where) -> tuple[dict[str, list], list[str] | None]:
    """({boxes, size}, class names or None) of a metadata file."""
    document = _files.checked(document, dict, where)
    size = [_files.field(document, name, int, where) for name in ('width', 'height')]
    if min(size) < 1:
        raise ValueError(f'{where}: width and height are {_files.shown(size)}, wanted at least 1')
    boxes = []
    for box in _files.field(document, 'boxes', list, where):
        box = _files.checked(box, list, f'{where}: a box')
        numbers = [_files.checked(number, (int, float), f'{where}: a number of a box') for number in box]
        # Four corners in pixels, and the detector's score.
        if len(box) not in (4, 5) or not all(abs(number) < 1e9 for number in numbers):
            raise ValueError(f'{where}: a box is {_files.shown(box)}, wanted x1, y1, x2, y2 and perhaps a score')
        boxes.append([float(number) for number in numbers[:4]])
    names = document.get('names')
    return {'boxes': boxes, 'size': size}, None if names is None else _files.checked(names, list, f'{where}: names')
