"""Tables of parameter names, ours and others', and the strict engine that converts arrays by them, both ways.

A table is a tuple of rows `(our path, their name, transform)`. Our path is a regular expression without `task/` or
`expl/`; their name is a template for what it matched (`\\1`). The same rows serve `load` and `save`:

    TABLE = table.rows(
        (r'layers/(\\d+)/mlp/up', r'encoder.layer.\\1.intermediate.dense', table.LINEAR),
        ('pooler', 'pooler.dense', table.LINEAR),
    )
    found = table.load(TABLE, weights.read(path), shapes, where=path)
    weights.write('model.safetensors', table.save(TABLE, found, where='our parameters'))

Nothing is guessed: every parameter has one row, every array is used or expected to be of no use, shapes are equal. All
that is wrong is told at once.
"""

import collections
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

_SHOWN = 40  # faults of a kind that a message lists; the same one of several layers counts once
_LAYER = re.compile(r'(?<=[./])\d+(?=[./])')


@dataclasses.dataclass(frozen=True)
class Transform:
    """How their array becomes ours, and back.

    Attributes:
      load, save: their array -> ours, and its inverse. They raise ValueError or IndexError for a shape that they
        cannot take.
      part: (n, count) where ours is the n-th of `count` equal parts that they keep side by side along the last axis.
    """

    load: Callable[[np.ndarray], np.ndarray]
    save: Callable[[np.ndarray], np.ndarray]
    part: tuple[int, int] | None = None


def _same(x):
    return x


def _transposed(x):
    return x.transpose(1, 0)


SAME = Transform(_same, _same)
TRANSPOSE = Transform(_transposed, _transposed)  # torch.nn.Linear keeps [outputs, inputs], we [inputs, outputs]
CONV = Transform(lambda x: x.transpose(2, 3, 1, 0), lambda x: x.transpose(3, 2, 0, 1))  # [O, I, h, w] and [h, w, I, O]
FIRST = Transform(lambda x: x.reshape(_without_first(x)), lambda x: x[None])  # [1, ...] and [...]


def _without_first(x):
    if not x.ndim or len(x) != 1:
        raise ValueError(f'{x.shape} does not begin with 1')
    return x.shape[1:]


def THIRD(n: int) -> Transform:
    """GPT-2 keeps query, key and value side by side in one matrix [D, 3 D] and one bias [3 D]."""
    return Transform(lambda x: np.split(x, 3, axis=-1)[n], _same, part=(n, 3))


Row = tuple[str, str, Transform]

# Leaves of a module: (our name, their name, transform).
EMBEDDING = (('embedding', 'weight', SAME),)
NORM = (('scale', 'weight', SAME), ('bias', 'bias', SAME))
LINEAR = (('kernel', 'weight', TRANSPOSE), ('bias', 'bias', SAME))
CONV1D = (('kernel', 'weight', SAME), ('bias', 'bias', SAME))  # GPT-2's, [inputs, outputs] as ours


def rows(*modules: tuple[str, str, tuple]) -> tuple[Row, ...]:
    """The table of modules `(our path, their name, leaves)`."""
    return tuple(
        (f'{ours}/{leaf}', f'{theirs}.{name}', transform)
        for ours, theirs, leaves in modules
        for leaf, name, transform in leaves
    )


def prefixed(table: Iterable[Row], ours: str = '', theirs: str = '') -> tuple[Row, ...]:
    """The table with other beginnings of names."""
    return tuple((ours + path, theirs + name, transform) for path, name, transform in table)


def renamed(there: Mapping, rules: Sequence[tuple[str, str]], where) -> dict:
    """Arrays by the names that our tables use.

    Args:
      there: {their name: array}.
      rules: (regular expression, what stands for it), applied in this order to every name.
      where: begins the message.

    Raises:
      ValueError: two names become one.
    """
    found = {}
    for name in there:
        new = name
        for pattern, replacement in rules:
            new = re.sub(pattern, replacement, new)
        if new in found:
            raise ValueError(f'{where}: {name} and {found[new]} are two names of one parameter, wanted one of them')
        found[new] = name
    return {new: there[name] for new, name in found.items()}


@functools.cache
def _compiled(pattern: str) -> re.Pattern:
    return re.compile(pattern)


def _counterparts(table, ours) -> list[tuple[str, Transform]]:
    """(their name, transform) of each row that one of our paths matches."""
    matches = ((_compiled(pattern).fullmatch(ours), template, transform) for pattern, template, transform in table)
    return [(match.expand(template), transform) for match, template, transform in matches if match]


def _any(patterns, name) -> bool:
    return any(_compiled(pattern).fullmatch(name) for pattern in patterns)


def load(
    table: Iterable[Row], there: Mapping, shapes: Mapping, *, ignored: Sequence[str] = (), fresh: Sequence[str] = (),
    tied: Sequence[tuple[str, str]] = (), differing: Sequence[str] = (), advice: str = '', origin: str = 'the file',
    where,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Our parameters from their arrays, complete.

    Args:
      table: rows; each of our paths matches one of them.
      there: {their name: array}.
      shapes: {our path: something with a shape}.
      ignored: regular expressions of their names that are of no use to us; one that has a row is used all the same.
      fresh: regular expressions of our paths that stay as they are. They are not among the results.
      tied: (their name, another): the first is not used, but has to hold what the other does.
      differing: further faults, such as those of a config file, which go into the same message.
      advice: the end of the message.
      origin: the message's word for what they are.
      where: the file; begins the message.

    Returns:
      {our path: array}, float32. Arrays may be views of theirs.

    Raises:
      ValueError: names or shapes differ, or a value is not finite: all that do are in the message.
    """
    table = tuple(table)
    found, missing, differing = {}, [], list(differing)
    taken = collections.defaultdict(list)  # their name -> (part of it, our path)
    for ours, leaf in shapes.items():
        if _any(fresh, ours):
            continue
        counterparts = _counterparts(table, ours)
        if len(counterparts) != 1:
            names = ' and '.join(name for name, _ in counterparts)
            missing.append(f'{ours}: ' + (f'is both {names}' if names else f'{origin} has nothing that corresponds'))
            continue
        [(theirs, transform)] = counterparts
        if theirs not in there:
            missing.append(f'{theirs} ({ours})')
            taken[theirs].append((transform.part, ours))
            continue
        taken[theirs].append((transform.part, ours))
        array, fault = _taken(np.asarray(there[theirs]), transform, tuple(leaf.shape), ours)
        if fault:
            differing.append(f'{theirs}: {fault}')
        found[ours] = array
    for theirs, uses in taken.items():
        differing += [f'{theirs}: {fault}' for fault in _shared(uses)]
    aside = {name for name, _ in tied}
    unexpected = [n for n in sorted(there.keys() - taken.keys() - aside) if not _any(ignored, n)]
    for name, other in tied:
        if {name, other} <= there.keys() and not np.array_equal(there[name], there[other]):
            differing.append(f'{name}: other values than {other}; they are one table')
    faults = {'missing': missing, 'unexpected': unexpected, 'differing': differing}
    if any(faults.values()):
        raise ValueError(f'{where} does not fit the model:{_listed(faults)}{advice}')
    return found


def _taken(array, transform, wanted, ours):
    """(our array, None), or (their array, what is wrong with it)."""
    try:
        mine = transform.load(array)
    except (ValueError, IndexError):  # numpy.exceptions.AxisError is both
        return array, f'{array.shape} as {ours}, wanted {wanted}' + ' in their order of axes' * (array.shape == wanted)
    if mine.shape != wanted:
        return mine, f'{mine.shape} as {ours}, wanted {wanted}'
    if not np.issubdtype(array.dtype, np.floating):
        return mine, f'{array.dtype} as {ours}, wanted floating-point numbers'
    mine = mine.astype(np.float32, copy=False)
    return mine, None if np.isfinite(mine).all() else 'holds NaN or infinity'


def _shared(uses) -> list[str]:
    """What is wrong where several of our paths, or not all parts, are of one name."""
    parts = [part for part, _ in uses]
    wanted = [None] if None in parts else [(n, parts[0][1]) for n in range(parts[0][1])]
    if sorted(parts, key=repr) == sorted(wanted, key=repr):
        return []
    paths = ', '.join(path for _, path in uses)
    whole = 'one of them' if None in parts else f'{len(wanted)} parts'
    return [f'is taken for {paths}, wanted {whole}']


def save(table: Iterable[Row], params: Mapping, *, where) -> dict[str, np.ndarray]:
    """Their arrays from our parameters: what `load` takes, inverted bit for bit.

    Args:
      table: rows; each of our paths matches one of them.
      params: {our path: array}.
      where: begins the message.

    Returns:
      {their name: array}, float32, rows one after the other in memory; parts that they keep side by side are joined.

    Raises:
      ValueError: a path without a row or with two, a part that is absent, two paths of one name, or a value that is not
        finite: all of them are in the message.
    """
    table, faults, parts = tuple(table), [], collections.defaultdict(list)
    for ours, value in params.items():
        counterparts = _counterparts(table, ours)
        if len(counterparts) != 1:
            names = ' and '.join(name for name, _ in counterparts)
            faults.append(f'{ours}: ' + (f'is both {names}' if names else 'has no name there'))
            continue
        [(theirs, transform)] = counterparts
        array = np.asarray(value)
        try:
            array = transform.save(array.astype(np.float32, copy=False))
        except (ValueError, IndexError):
            faults.append(f'{ours}: {array.shape} cannot become {theirs}')
            continue
        if not np.isfinite(array).all():
            faults.append(f'{ours}: holds NaN or infinity')
        parts[theirs].append((transform.part, ours, array))
    found = {}
    for theirs, uses in parts.items():
        wrong = _shared([(part, ours) for part, ours, _ in uses])
        shapes = {array.shape for _, _, array in uses}
        if not wrong and len(shapes) > 1:
            wrong = [f'parts of shapes {", ".join(map(str, sorted(shapes)))}, wanted equal ones']
        faults += [f'{theirs}: {fault}' for fault in wrong]
        if not wrong:
            arrays = [array for _, _, array in sorted(uses, key=lambda use: use[0] or (0, 1))]
            whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=-1)
            found[theirs] = np.asarray(whole, order='C')  # np.ascontiguousarray would make a vector of a number
    if faults:
        raise ValueError(f'{where} cannot be saved under other names:{_listed({"differing": faults})}')
    return found


def _listed(faults: Mapping[str, list[str]]) -> str:
    lines = []
    for kind, found in faults.items():
        if found:
            shown = _grouped(found)
            lines += [f'  {len(found)} {kind}:', *(f'    {line}' for line in shown[:_SHOWN])]
            if len(shown) > _SHOWN:
                lines.append(f'    ... and {len(shown) - _SHOWN} more')
    return ''.join(f'\n{line}' for line in lines)


def _grouped(lines: Sequence[str]) -> list[str]:
    """Faults that differ in the number of their layer alone, as one line where the layers follow each other."""
    groups = collections.defaultdict(list)
    for line in lines:
        groups[_LAYER.sub('*', line)].append(line)
    shown = []
    for pattern, group in groups.items():
        found = [set(map(int, _LAYER.findall(line))) for line in group]
        numbers = sorted(n for each in found for n in each)
        alone = len(group) > 1 and all(len(each) == 1 for each in found)
        if alone and numbers == list(range(numbers[0], numbers[0] + len(group))):
            shown.append(f'{pattern}, * = {numbers[0]} ... {numbers[-1]}')
        else:
            shown += group
    return shown
