"""e-SNLI as lines of text: one file for each field, and line n of all of them is one pair.

`esnli_s1.dev, esnli_s2.dev, esnli_labels.dev, esnli_preproc1_expl_{1,2,3}.dev`, in the folder of the first, which
stands for all. Sentences and explanations are tokenised, explanations lower-cased. There is no pairID, so nothing says
which picture a line is about; ids are made of split and line.
"""

import itertools
import pathlib
from collections.abc import Iterator

from evil_jax.data.sources import _files, esnli, snli

FIRST = 'esnli_s1.'
_OTHERS = ('esnli_s2.', 'esnli_labels.')
_EXPLANATIONS = tuple(f'esnli_preproc1_expl_{n}.' for n in (1, 2, 3))


def files(path) -> list[pathlib.Path]:
    """All files of the set that `path`, an `esnli_s1.SPLIT`, stands for; explanation files that are not there are none.

    Raises:
      ValueError: another name, or a file is missing.
    """
    path = pathlib.Path(path)
    if not path.name.startswith(FIRST):
        raise ValueError(f'{path}: lines of e-SNLI are named by their first file, {FIRST}SPLIT')
    ending = path.name.removeprefix(FIRST)
    beside = lambda start: path.with_name(start + ending)
    for name in _OTHERS:
        if not beside(name).is_file():
            raise ValueError(f'{beside(name)}: there is no such file, which belongs to {path}')
    return [path, *map(beside, _OTHERS), *(beside(name) for name in _EXPLANATIONS if beside(name).is_file())]


def read(path) -> Iterator[esnli.Row]:
    """Yields the pairs, in file order.

    Raises:
      ValueError: a missing file, files with other numbers of lines (both are named), an unknown label, an empty
        hypothesis.
    """
    paths = files(path)
    ending = paths[0].name.removeprefix(FIRST)
    for number, row in enumerate(itertools.zip_longest(*map(_files.iter_lines, paths)), 1):
        if None in row:
            short = row.index(None)
            other = next(i for i, line in enumerate(row) if line is not None)
            longer = number + sum(1 for _ in itertools.islice(_files.iter_lines(paths[other]), number, None))
            raise ValueError(
                f'{paths[short]} has {number - 1:,} lines, and {paths[other]} has {longer:,}: '
                'line n of all of them is one pair, so one of them is cut or of another version'
            )
        premise, hypothesis, label, *texts = (_files.text(cell.strip(), f'{paths[0]}:{number}') for cell in row)
        snli.checked_label(label, f'{paths[2]}:{number}: the label')
        if not hypothesis:
            raise ValueError(f'{paths[1]}:{number}: the hypothesis is empty')
        made = f'esnli.{ending}:{number}'
        yield esnli.Row(made, label, premise, hypothesis, list(filter(None, texts)), ([], []), f'{paths[0]}:{number}')
