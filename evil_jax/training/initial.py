"""Parameters that a run begins with: those of another run, the rows of its answer head put into our order; published
weights; or those of the published e-UG code.

`model.task.init` and `model.expl.init` give one module each, `train.init` the modules that these do not name. All that
does not fit, of all of them, is told in one message.
"""

import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging

from evil_jax.data import answers, tokenizers
from evil_jax.interop import eug, export, start
from evil_jax.training import checkpoint, regime

# Of every M_T with a set of answers for all examples (the second: ViT's): they are on the last axis.
ANSWER_HEAD = ('task/head/answer/', 'task/answer/')
PUBLISHED = ('hf:', 'torch:')
_FILES = ('torch:', eug.PREFIX)  # what no mode writes
_VQA = 3129, 'b05467ee028c22da'  # answers of VQA v2, and the hash of LXMERT's order, which e-UG's checkpoints have
# Settings that decide what M_T sees, and what it is: with others a frozen one would read what it never saw.
_SEEN = (
    'compat', 'model.task', 'data.locations', 'data.regions', 'data.choices', 'data.tags', 'data.tag_regions',
    'data.objects', 'data.max_text', 'data.max_regions',
)  # fmt: skip


@dataclasses.dataclass
class _Source:
    """Where some modules come from.

    Attributes:
      setting: key of the config.
      spec: its value.
      modules: those that are taken from there.
      optional: some of them may be absent there (not an M_T that is to be frozen).
    """

    setting: str
    spec: str
    modules: tuple[str, ...]
    optional: bool = False


@dataclasses.dataclass
class _Taken:
    """What a source gives: {path: array}, a line about it for the user, and what does not fit."""

    params: dict
    told: str = ''
    faults: list[str] = dataclasses.field(default_factory=list)


def check(config, workdir, coming: bool = False) -> None:
    """Refuses, before there is a data set, what `begin` would refuse without one.

    Args:
      config: the whole config.
      workdir: of the run. One that has a checkpoint goes on from there, and reads nothing of this.
      coming: a run or an export that is not there yet may be by then.

    Raises:
      ValueError: as `begin`; all that is wrong is in one message.
    """
    if checkpoint.steps(pathlib.Path(workdir) / 'checkpoints'):
        return
    _refuse([fault for source in _sources(config) for fault in _faults(source, config, coming)])


def _refuse(faults: list[str]) -> None:
    if len(faults) > 1:
        raise ValueError('these initial parameters do not fit:\n  ' + '\n  '.join(faults))
    if faults:
        raise ValueError(faults[0])


def begin(config, params: dict[str, jax.Array], shapes, assets: tokenizers.Assets) -> tuple[dict, list[str]]:
    """Takes over the modules that `model.task.init`, `model.expl.init` and `train.init` name.

    Word pieces and explanation tokens have to be the same ones. Answers may have another order, and some may be absent
    there: these keep their fresh values. In the regime 'expl' M_T has to be complete, as nothing trains what is fresh.

    Args:
      config: the whole config.
      params: fresh ones, {path: array}.
      shapes: of `Net.shapes`.
      assets: ours.

    Returns:
      ({path: array}, what was taken from where, in words, one text a source).

    Raises:
      ValueError: no such file or checkpoint; other vocabularies, or not known which; another kind of answer head; names
        and shapes that differ; a missing half. All that is wrong is in one message.
    """
    taken = [_take(source, config, params, shapes, assets) for source in _sources(config)]
    faults = [fault for source in taken for fault in source.faults]
    found = {path: x for source in taken for path, x in source.params.items()}
    if config.train.regime == regime.EXPL and not faults:
        faults += _unfrozen(found, shapes)
    _refuse(faults)
    return params | found, [source.told for source in taken]


def _sources(config) -> list[_Source]:
    here = [m for m in checkpoint.MODULES if regime.built(config).model[m].name]
    named = [m for m in here if config.model[m].init]
    sources = [_Source(f'model.{m}.init', config.model[m].init, (m,)) for m in named]
    if config.train.init:
        rest = tuple(m for m in here if m not in named)
        if not rest:
            keys = ' and '.join(source.setting for source in sources)
            raise ValueError(
                f'train.init is {config.train.init!r}, but {keys} name all of the model: nothing is left to take from '
                'it. Leave one of them out'
            )
        sources.append(_Source('train.init', config.train.init, rest, optional=True))
    if config.train.regime == regime.EXPL and not any('task' in source.modules for source in sources):
        raise ValueError(
            "train.regime is 'expl', which trains M_E on an M_T as it is: set model.task.init (or train.init) to the "
            'work folder or checkpoint that has it'
        )
    return sources


def _faults(source: _Source, config, coming: bool) -> list[str]:
    """What is wrong with a source whatever the data set is."""
    try:
        if coming and not source.spec.startswith(_FILES):
            return []
        _check_spec(source)
        if _is_published(source.spec):
            return []
        if eug.named(source.spec):
            return _unlike_the_original(source, config)
        return _unlike_the_run(source, config, _find_quietly(source.spec))
    except ValueError as error:
        return [_told_of(source, error)]


def _take(source: _Source, config, params, shapes, assets) -> _Taken:
    """One source; what is wrong with it is in `faults`."""
    try:
        _check_spec(source)
        if _is_published(source.spec):
            return _published(source, config, params, shapes, assets)
        if file := eug.named(source.spec):
            return _original(source, file, config, params, shapes, assets)
        return _run(source, config, params, shapes, assets)
    except ValueError as error:
        return _Taken({}, faults=[_told_of(source, error)])


def _told_of(source, error) -> str:
    return str(error) if source.setting in str(error) else f'{source.setting}: {error}'


def _is_published(spec: str) -> bool:
    return spec.startswith(PUBLISHED) and not export.named(spec)


def _check_spec(source) -> None:
    """Raises ValueError where a setting takes no such files, or there are none; runs are looked for elsewhere."""
    whole = source.setting == 'train.init'
    if _is_published(source.spec) and whole:
        raise ValueError(
            f'train.init is {source.spec!r}: such weights are those of one module, name them in model.task.init or '
            'model.expl.init'
        )
    if eug.named(source.spec) and not whole:
        raise ValueError(f'{source.setting} is {source.spec!r}: such a file has both modules, name it in train.init')


def _find_quietly(spec: str) -> pathlib.Path:
    """A checkpoint of a run; `begin` is where to say that it is not the best."""
    try:
        return checkpoint.find(spec, 'latest')
    except ValueError:
        return checkpoint.find(spec)


def _original(source, file, config, params, shapes, assets) -> _Taken:
    """Modules of a file of the published e-UG code."""
    faults = _unlike_the_original(source, config)
    try:
        found = original(file, shapes, assets)
    except ValueError as error:
        faults.append(f'{source.setting}: {error}')
    if faults:
        return _Taken({}, faults=faults)
    if eug.WTE in found:  # of the rows that are no words the file has none
        found[eug.WTE] = _words_of(found[eug.WTE], params[eug.WTE], assets.expl.size)
    taken = {path: x for path, x in found.items() if path.partition('/')[0] in source.modules}
    told = f'initial parameters from {file}, of the published e-UG code'
    return _Taken(taken, told if len(taken) == len(found) else f'{told}: only {", ".join(source.modules)}')


def _unlike_the_original(source, config) -> list[str]:
    """Settings that a frozen M_T would not get used to; one that is trained on would."""
    if config.train.regime != regime.EXPL or 'task' not in source.modules:
        return []
    try:
        eug.check(config)
    except ValueError as error:
        return [f'{source.setting}: {error}']
    return []


def _published(source, config, params, shapes, assets) -> _Taken:
    """One module from a folder of Hugging Face or a file of PyTorch."""
    (module,) = source.modules
    here = config.model[module]
    found, told = start.load(module, here.name, source.spec, shapes, assets, here.size)
    short = {path: len(x) for path, x in found.items() if x.ndim and len(x) < shapes[path].shape[0]}
    for path, rows in short.items():
        found[path] = np.pad(found[path], ((0, shapes[path].shape[0] - rows), *((0, 0),) * (found[path].ndim - 1)))
    found = _placed(found, shapes)
    return _Taken(found | {path: _words_of(found[path], params[path], rows) for path, rows in short.items()}, told)


def _run(source, config, params, shapes, assets) -> _Taken:
    """Modules of a checkpoint of ours."""
    folder = checkpoint.find(source.spec)
    faults = _unlike_the_run(source, config, folder)
    modules = [m for m in source.modules if m in checkpoint.held(folder)]
    wanted = {path: leaf for path, leaf in shapes.items() if path.partition('/')[0] in modules}
    origin, ours = checkpoint.read_origin(folder), assets.hashes()
    theirs, settings = origin['assets'], checkpoint.settings(origin['config'])
    told = f'initial parameters of {", ".join(modules)} from {folder}'
    vocabularies = {'task': ('word', 'word pieces'), 'expl': ('expl', 'explanation tokens')}
    differing = [words for m, (key, words) in vocabularies.items() if m in modules and theirs[key] != ours[key]]
    if differing:
        faults.append(
            f'{source.setting}: {folder} was trained with other {" and ".join(differing)} than this data set has: '
            'build the data set with the vocabularies of that run (data.word_vocab, data.expl_vocab, data.lowercase)'
        )
    rows = None
    if 'task' in modules:
        rows, known, more = _answers(source, folder, theirs, settings, shapes, assets)
        faults += more
        if rows is not None:
            wanted |= {path: _widened(shapes[path], known) for path in _of_answers(shapes)}
            told += f'; answer head: {(rows >= 0).sum()} of our {len(rows)} answers are among its {known}'
        if config.train.regime == regime.EXPL and rows is not None and (rows < 0).any():
            faults.append(
                f'{source.setting}: {(rows < 0).sum()} of our {len(rows)} answers are not among those of {folder}, and '
                "with train.regime 'expl' nothing would train their rows"
            )
    if misfits := checkpoint.misfits(folder, wanted):
        keys = [f'model.{m}' for m in modules]
        sizes = _differences(settings, config, keys)
        faults.append(
            f'{source.setting}: {folder} does not fit the model:' + ''.join(f'\n    {x}' for x in sizes + misfits)
        )
    if faults:
        return _Taken({}, faults=faults)
    found = checkpoint.restore_params(folder, 'latest', wanted, modules)
    if rows is not None:
        found |= {path: _rearranged(found[path], params[path], rows) for path in _of_answers(shapes)}
    return _Taken(found, told)


def _answers(source, folder, theirs, settings, shapes, assets):
    """(our answers as rows of theirs, or None where the head is taken as it is; how many they are; what is wrong)."""
    choices, head = settings['data.choices'], any(path.startswith(ANSWER_HEAD) for path in shapes)
    if bool(choices) == head:
        kinds = 'a set of answers for all examples', 'choices in each example'
        return None, 0, [
            f'{source.setting}: {folder} was trained with {kinds[bool(choices)]}, this data set has '
            f'{kinds[not choices]}: their answer heads have nothing in common'
        ]  # fmt: skip
    if theirs['answers'] == assets.hashes()['answers']:
        return None, 0, []
    try:
        known = checkpoint.find_assets(folder).answers
    except ValueError as error:
        return None, 0, [f'{source.setting}: {error}']
    return answers.remap(assets.answers, known), len(known), []


def _of_answers(shapes) -> list[str]:
    """Leaves of the answer head: each has a value, or a column, for each answer."""
    return [path for path in shapes if path.startswith(ANSWER_HEAD)]


def _unlike_the_run(source, config, folder) -> list[str]:
    """Modules that a checkpoint has not, and settings with which a frozen M_T would mean something else here than where
    it was trained; training it on would put that right."""
    there, freezes = checkpoint.held(folder), config.train.regime == regime.EXPL and 'task' in source.modules
    absent = [m for m in source.modules if m not in there]
    partly = source.optional and len(absent) < len(source.modules)
    faults = []
    if absent and (not partly or (freezes and 'task' in absent)):
        faults.append(f'{source.setting}: {folder} has no parameters of {" and ".join(absent)}')
    if freezes and 'task' in there:
        settings = checkpoint.settings(checkpoint.read_origin(folder)['config'])
        found = _differences(settings, config, _SEEN)
        faults += [f'{source.setting}: M_T of {folder} was trained with {x}' for x in found]
    return faults


def _unfrozen(found, shapes) -> list[str]:
    """Integers count: the hashes of a count sketch are drawn once, and others would mean something else."""
    fresh = [path for path in shapes if path.startswith('task/') and path not in found]
    if not fresh:
        return []
    some = ', '.join(fresh[:5]) + (f' and {len(fresh) - 5} more' if fresh[5:] else '')
    return [f"train.regime is 'expl', but these parameters of M_T come from nowhere and would stay random: {some}"]


def _differences(settings: dict, config, keys) -> list[str]:
    """Settings below the keys that differ, both values named."""
    chosen = lambda tree: {
        k: v for k, v in tree.items() if checkpoint.below(k, keys) and not checkpoint.below(k, checkpoint.INIT)
    }
    return checkpoint.differences(chosen(settings), chosen(checkpoint.leaves(checkpoint.plain(config))))


def original(file, shapes, assets: tokenizers.Assets) -> dict[str, jax.Array]:
    """All parameters from a file of the published e-UG code, {path: array}, in their places.

    Args:
      file: the .pth file.
      shapes: of `Net.shapes`.
      assets: whose vocabularies have to be e-UG's. Sizes are all that a file tells of them.

    Raises:
      ValueError: see `eug.load`.
    """
    found = eug.load(file, shapes, assets.expl.size)
    answers_there, order = _VQA
    if len(assets.answers) == answers_there and assets.hashes()['answers'] != order:
        logging.warning(
            "%s does not say which answers its outputs mean; e-UG's are in the order of LXMERT's "
            'trainval_label2ans.json, but those of the data set are others, or in another order: see data.answers',
            file,
        )
    return _placed(found, shapes)


def _placed(found: dict[str, np.ndarray], shapes) -> dict[str, jax.Array]:
    place = lambda x, where: jax.make_array_from_callback(x.shape, where, lambda index: x[index])
    return {path: place(x, shapes[path].sharding) for path, x in found.items()}


def _words_of(theirs, fresh, words: int):
    """A word table: the first rows of one, the other's behind them."""
    join = lambda there, here: jnp.where(jnp.arange(len(there))[:, None] < words, there, here)
    return jax.jit(join, out_shardings=fresh.sharding)(theirs, fresh)


def _widened(leaf, answers_there):
    # Replicated: their number of answers need not divide by the axes that split ours.
    everywhere = jax.sharding.NamedSharding(leaf.sharding.mesh, jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct((*leaf.shape[:-1], answers_there), leaf.dtype, sharding=everywhere)


def _rearranged(theirs, fresh, rows: np.ndarray):
    """For each of our answers its values there, or the fresh ones."""
    choose = lambda there, here: jnp.where(rows >= 0, jnp.take(there, np.maximum(rows, 0), axis=-1), here)
    return jax.jit(choose, out_shardings=fresh.sharding)(theirs, fresh)
