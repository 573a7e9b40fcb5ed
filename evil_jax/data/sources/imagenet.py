"""ImageNet's pictures and their classes, in the two forms that circulate: a folder a class, or one folder and a list.

Which index a class has in a classifier is a matter of its own, and a well-known trap. Models count synsets in
alphabetical order, from 0, and so does val.txt; the development kit's ground truth counts otherwise, from 1, and only
its meta.mat says which synset a number is.
"""

import os
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from evil_jax.data.features.regions import PICTURES
from evil_jax.data.sources import _files

GROUND_TRUTH = 'ILSVRC2012_validation_ground_truth.txt'
META = 'meta.mat'
# All classes, one a line: a synset, which words may follow.
CLASSES = ('synsets.txt', 'synset_words.txt', 'LOC_synset_mapping.txt')


_NUMBERED = re.compile(r'ILSVRC2012_val_(\d{8})\.', re.ASCII)


class Labelled(NamedTuple):
    """Pictures in file order, (name without ending, class), and all classes in their order."""

    rows: tuple[tuple[str, str], ...]
    classes: tuple[str, ...]


def read(pictures, truth=None, classes=None, meta=None) -> Labelled:
    """Reads which picture is of which class.

    Args:
      pictures: a folder. Without `truth` the folders in it are the classes; else it holds the pictures.
      truth: a file with `name class` a line (val.txt), or with a number a line, of the development kit.
      classes: a file that lists all classes in a classifier's order, of which `pictures` may show some.
      meta: the development kit's meta.mat.

    Returns:
      Classes are synsets (names of folders), as `classes` lists them or else sorted. Numbers in `truth` become synsets
      where `classes`, or for the development kit's `meta`, says which; else they stay numbers, from the first that the
      file may hold (0, of the development kit 1) to the largest in it.

    Raises:
      ValueError: no pictures, two of one name, a picture without a class or a class that is not listed, a bad line.
    """
    pictures = pathlib.Path(pictures)
    listed = _listed(pathlib.Path(classes)) if classes else ()
    if truth is None:
        rows, known = _folders(pictures), listed
        if not known and (empty := sorted({path.name for path in _below(pictures)} - {label for _, label in rows})):
            raise ValueError(
                f'{pictures}: no pictures in folder {empty[0]!r}: the classes behind it would count otherwise. Remove '
                f'it, or list all classes in {" or ".join(CLASSES)}'
            )
    else:
        rows, known = _flat(pictures, pathlib.Path(truth), listed, meta)
    known = known or tuple(sorted({label for _, label in rows}))
    if missing := sorted({label for _, label in rows}.difference(known)):
        raise ValueError(f'{pictures}: class {missing[0][:80]!r} is none of the {len(known):,} in {classes or meta}')
    seen = {}
    for name, label in rows:
        if name in seen:
            raise ValueError(f'{pictures}: there are two pictures {name!r} (classes {seen[name]} and {label})')
        seen[name] = label
    return Labelled(tuple(rows), known)


def has_class_folders(folder) -> bool:
    """Whether pictures lie in folders below this one, and none in it."""
    return not any(_pictures(folder)) and any(any(_pictures(path)) for path in _below(folder))


def _below(folder) -> list[pathlib.Path]:
    return sorted(path for path in pathlib.Path(folder).iterdir() if path.is_dir() and not path.name.startswith('.'))


def _pictures(folder) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if os.path.splitext(entry.name)[1].lower() in PICTURES:
                yield entry.name


def _stem(name: str) -> str:
    return os.path.splitext(name)[0]


def _folders(folder) -> list[tuple[str, str]]:
    rows = [(_stem(name), path.name) for path in _below(folder) for name in sorted(_pictures(path))]
    if not rows:
        raise ValueError(f'{folder}: no pictures ({", ".join(PICTURES)}) in the folders below it, one a class')
    return rows


def _flat(folder, truth, listed, meta):
    names = sorted(_pictures(folder))
    if not names:
        raise ValueError(f'{folder}: no pictures ({", ".join(PICTURES)}) in it, wanted those of {truth}')
    lines = [line.split() for line in _files.read_text(truth).splitlines() if line.strip()]
    kit = all(len(line) == 1 for line in lines)
    label_of = _by_place(names, lines, truth) if kit else _by_name(lines, truth)
    if without := [name for name in names if name not in label_of]:
        raise ValueError(f'{truth}: no class of {_files.some_ids(without)}')
    rows = [(_stem(name), label_of[name]) for name in names]
    if not all(label.isascii() and label.isdecimal() for _, label in rows):
        return rows, listed
    first, synset_of = (1, _kit_synsets(meta)) if kit else (0, dict(enumerate(listed)))
    numbers = [int(label) for _, label in rows]
    if not synset_of:
        if min(numbers) < first:
            raise ValueError(f'{truth}: class {min(numbers)}, wanted numbers from {first}')
        return [(name, str(n)) for (name, _), n in zip(rows, numbers)], tuple(map(str, range(first, max(numbers) + 1)))
    if outside := [n for n in numbers if n not in synset_of]:
        raise ValueError(f'{truth}: class {outside[0]} is none of the {len(synset_of):,} that are listed')
    return [(name, synset_of[n]) for (name, _), n in zip(rows, numbers)], listed or tuple(sorted(synset_of.values()))


def _by_name(lines, truth) -> dict[str, str]:
    found = {}
    for number, line in enumerate(lines, 1):
        name = os.path.basename(line[0])
        if len(line) != 2 or name in found:
            raise ValueError(
                f'{truth}: entry {number} is {_files.shown(" ".join(line))}, wanted a new name and its class'
            )
        found[name] = line[1]
    return found


def _by_place(names, lines, truth) -> dict[str, str]:
    """ImageNet's pictures have their line's number in the name, so some may be missing; others are taken in order."""
    numbered = [_NUMBERED.match(name) for name in names]
    if all(numbered):
        numbers = [int(match[1]) for match in numbered]
    elif len(lines) == len(names):
        numbers = range(1, len(names) + 1)
    else:
        raise ValueError(f'{truth}: has {len(lines):,} lines for {len(names):,} pictures')
    return {name: lines[number - 1][0] for name, number in zip(names, numbers) if 1 <= number <= len(lines)}


def _listed(path) -> tuple[str, ...]:
    found = [line.split()[0] for line in _files.read_text(path).splitlines() if line.strip()]
    if len(set(found)) < len(found) or not found:
        raise ValueError(f'{path}: lists {len(found)} classes, {len(set(found))} of them different')
    return tuple(found)


def _kit_synsets(path) -> dict[int, str]:
    """Synsets by the development kit's numbers; {} without its meta.mat. Those without children are the classes."""
    if path is None:
        return {}
    import scipy.io  # slow to import

    try:
        table = scipy.io.loadmat(path, squeeze_me=True)['synsets']
        rows = zip(table['ILSVRC2012_ID'], table['WNID'], table['num_children'], strict=True)
        found = {int(number): str(synset) for number, synset, children in rows if int(children) == 0}
    except Exception as error:  # whatever SciPy finds wrong in a damaged file
        raise ValueError(f'{path}: not the meta.mat of the development kit of 2012: {error}') from error
    if not found:
        raise ValueError(f'{path}: lists no synset without children')
    return found
