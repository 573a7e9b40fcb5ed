"""Visual Genome (Krishna et al. 2017): question_answers.json and scene_graphs.json, read picture by picture.

Questions have one free answer ('Green.', 'On the desk.'). It counts as right when it is the same after the official VQA
normaliser, in which form it stands in `answers` ('green', 'on desk'); as it was written it stays in `extra['answer']`.
"""

import dataclasses
from collections.abc import Collection, Iterator

from evil_jax import text
from evil_jax.data.sources import _elements, _files
from evil_jax.records import Example


@dataclasses.dataclass(frozen=True, slots=True)
class Thing:
    """One object of a picture.

    Attributes:
      id: unique in the data set.
      names: what annotators called it; as a rule one.
      synsets: WordNet 3.0 senses ('van.n.05'), as a rule one, some by machine; may be empty.
      attributes: colours, materials, states, in lower case; may be empty.
      box: x, y, width, height in pixels.
    """

    id: int
    names: tuple[str, ...]
    synsets: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    box: tuple[float, float, float, float] = (0, 0, 0, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Relationship:
    """`subject` and `object` are ids of things of the picture: (man) wears (shirt)."""

    subject: int
    predicate: str
    object: int
    synsets: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class SceneGraph:
    """What annotators wrote down of a picture. It is not all there is: what is absent may yet be in the picture."""

    image_id: str
    things: tuple[Thing, ...]
    relationships: tuple[Relationship, ...] = ()


def is_questions(element) -> bool:
    """Whether the first element of a JSON list is one of question_answers.json."""
    return isinstance(element, dict) and isinstance(element.get('qas'), list)


def read(path) -> Iterator[Example]:
    """Yields the questions of question_answers.json, in its order; one picture's are in memory at a time.

    `id` is the qa_id, `image_id` the picture's bare number.

    Raises:
      ValueError: a malformed record, an id that appears twice; file and question id (or record number) are named.
    """
    seen = set()
    for where, row in _elements.read(path):
        row = _files.checked(row, dict, where)
        image = _image(row, 'id', where)
        for number, asked in enumerate(_files.field(row, 'qas', list, where), 1):
            asked = _files.checked(asked, dict, f'{where}: question {number} of its list')
            qa_id = _files.field(asked, 'qa_id', int, f'{where}: question {number} of its list')
            place = f'{path}: question {str(qa_id)[:80]}'
            if qa_id in seen:
                raise ValueError(f'{place}: the question id appears twice')
            seen.add(qa_id)
            if 'image_id' in asked and (other := _image(asked, 'image_id', place)) != image:
                raise ValueError(f'{place}: is about picture {other}, in the list of picture {image}')
            answer = _files.filled(asked, 'answer', place)
            yield Example(
                id=str(qa_id),
                image_id=image,
                text=_files.filled(asked, 'question', place),
                answers={text.vqa_normalise(answer) or answer: 1.0},  # 'A.' is an article and nothing else
                extra={'answer': answer},
            )


def read_scene_graphs(path, images: Collection[str] | None = None) -> Iterator[SceneGraph]:
    """Yields the scene graphs of scene_graphs.json; one is in memory at a time.

    objects.json and attributes.json, which lack relationships, are read as well.

    Args:
      path: the file (JSON, plain or gzip).
      images: image ids to yield, None for all. Other pictures' records are passed over unchecked.

    Raises:
      ValueError: a malformed record, a picture that appears twice; file and picture (or record number) are named.
    """
    seen = set()
    for where, row in _elements.read(path):
        row = _files.checked(row, dict, where)
        image = _image(row, 'image_id', where)
        if image in seen:
            raise ValueError(f'{where}: picture {image} appears twice')
        seen.add(image)
        if images is None or image in images:
            yield _scene_graph(row, image, f'{where}, picture {image}')


def scene_graphs(path, images: Collection[str] | None = None) -> dict[str, SceneGraph]:
    """`read_scene_graphs` by image id."""
    return {graph.image_id: graph for graph in read_scene_graphs(path, images)}


def _scene_graph(row, image, where) -> SceneGraph:
    rows = _files.field(row, 'attributes' if 'objects' not in row and 'attributes' in row else 'objects', list, where)
    things = tuple(_thing(thing, f'{where}: object {n}') for n, thing in enumerate(rows, 1))
    ids = {thing.id for thing in things}
    if len(ids) < len(things):
        raise ValueError(f'{where}: an object_id appears twice')
    related = _files.field(row, 'relationships', list, where) if 'relationships' in row else []
    found = tuple(_relationship(r, ids, f'{where}: relationship {n}') for n, r in enumerate(related, 1))
    return SceneGraph(image, things, found)


def _thing(row, where) -> Thing:
    row = _files.checked(row, dict, where)
    names = [row['name']] if 'names' not in row and 'name' in row else _files.field(row, 'names', list, where)
    return Thing(
        id=_files.field(row, 'object_id', int, where),
        names=_texts(names, f'{where}: names'),
        synsets=_texts(row.get('synsets', []), f'{where}: synsets'),
        attributes=tuple(a.lower() for a in _texts(row.get('attributes') or [], f'{where}: attributes')),
        box=tuple(_side(row, side, where) for side in ('x', 'y', 'w', 'h')),
    )


def _relationship(row, ids, where) -> Relationship:
    row = _files.checked(row, dict, where)
    subject, other = (_files.field(row, name, int, where) for name in ('subject_id', 'object_id'))
    for end in (subject, other):
        if end not in ids:
            raise ValueError(f'{where}: {_files.shown(end)} is the id of no object of the picture')
    predicate = _files.field(row, 'predicate', str, where).strip().lower()
    return Relationship(subject, predicate, other, _texts(row.get('synsets', []), f'{where}: synsets'))


def _texts(values, where) -> tuple[str, ...]:
    return tuple(
        entry
        for value in _files.checked(values, list, where)
        if (entry := _files.checked(value, str, f'{where}: an entry').strip())
    )


def _side(row, name, where) -> float:
    value = _files.field(row, name, (int, float), where)
    if not abs(value) < 1e6:
        raise ValueError(f'{where}: {name} is {_files.shown(value)}, wanted pixels')
    return value


def _image(row, name, where) -> str:
    return str(_files.field(row, name, int, where))[:80]
