"""Names of a picture's objects as text, for models that read no features (RVT: Marasovic et al. 2020, section 3).

There they are a set, in whatever order Python gives it; here the order is fixed, so that a picture always reads the
same: detected ones by falling confidence, annotated ones as the annotators listed them. As there, 'person' is left out
of both: people are in nearly every picture of VCR.
"""

import bisect
import json
import pathlib
from collections.abc import Callable, Iterable, Sequence

from evil_jax.data.features.regions import Regions
from evil_jax.data.tags import PERSON
from evil_jax.records import Example

FILES = ('objects_vocab.txt', 'cocoontology.json')


def class_names(folders: Iterable[pathlib.Path]) -> list[str]:
    """Names of a detector's classes by index, as they stand in the first folder that has one of FILES; [] without.

    objects_vocab.txt (Visual Genome's 1,600 classes): one a line, comma between synonyms.
    cocoontology.json: {"1": {"name": ...}, ...} by COCO's category numbers, which have gaps. Detectors count the 80
    classes without gaps, in the order of these numbers: class 0 is "1", class 11 is "13".

    Raises:
      ValueError: a file that cannot be read so.
    """
    for folder in folders:
        for name, read in zip(FILES, (_read_lines, _read_ontology)):
            if (path := folder / name).is_file():
                try:
                    return read(path.read_text(encoding='utf-8-sig'), path)
                except UnicodeDecodeError as error:
                    raise ValueError(f'{path}: not UTF-8: {error}') from error
    return []


def _read_lines(text, path):
    return text.splitlines()


def _read_ontology(text, path):
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f'{path}: not JSON: {error}') from error
    good = isinstance(table, dict) and all(
        key.isdecimal() and isinstance(entry, dict) and isinstance(entry.get('name'), str)
        for key, entry in table.items()
    )
    if not good:
        raise ValueError(f'{path}: wanted category numbers with their names, such as {{"1": {{"name": "person"}}}}')
    return [table[key]['name'] for key in sorted(table, key=int)]


def names(example: Example, found: Regions | None, how: str) -> list[str]:
    """The names that models read, each once.

    Args:
      example: 'annotated' takes its objects, without 'person'.
      found: the picture's regions, or None for an example without a picture, which has no names.
      how: 'detected', 'annotated', or '' for none.

    Raises:
      ValueError: names the example or the picture. 'annotated' without objects; 'detected' with regions whose classes
        are all unknown, or without names of the classes, or with a class that has no name.
    """
    if how == 'annotated':
        if example.objects is None:
            raise ValueError(f"example {example.id!r} has no objects, which data.objects='annotated' reads")
        return [name for name in dict.fromkeys(example.objects) if name.strip() and name != PERSON]
    return detected(found, example.image_id) if how else []


def detected(found: Regions | None, image_id: str) -> list[str]:
    """Names of the regions' classes without 'person', the most confident first; ties: that of the lower index first."""
    if found is None or not len(found):
        return []
    where = f"image {image_id!r}: data.objects='detected' reads the names of its regions' classes, but"
    if (found.classes < 0).all():
        raise ValueError(f'{where} none of its {len(found)} regions has a class: the features hold none')
    if not len(found.names):
        raise ValueError(f'{where} what these are called is not known: put {" or ".join(FILES)} beside the features')
    known = []
    for kind in (int(found.classes[i]) for i in _by_confidence(found)):
        if kind >= len(found.names) or not (name := _first(found.names[kind])):
            raise ValueError(f'{where} class {kind} is none of the {len(found.names)} that have a name')
        known.append(name)
    return [name for name in dict.fromkeys(known) if name != PERSON]


def _by_confidence(found) -> list[int]:
    rows = [i for i in range(len(found)) if found.classes[i] >= 0]
    return sorted(rows, key=lambda i: (-float(found.conf[i]), int(found.classes[i])))


def _first(name: str) -> str:
    """The first of the synonyms."""
    return name.partition(',')[0].strip()


def fitting(names: Sequence[str], encode: Callable[[str], list[int]], room: int) -> list[int]:
    """Tokens of the names, with a blank between them: as many whole names as have at most `room` tokens together."""
    ids = lambda count: encode(' '.join(names[:count]))
    if not names or room < 1:
        return []
    if len(whole := ids(len(names))) <= room:
        return whole
    return ids(bisect.bisect_right(range(1, len(names)), room, key=lambda count: len(ids(count))))
