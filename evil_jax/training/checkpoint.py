"""Checkpoints: parameters as `task` and `expl`, each restorable alone, and the rest of a training state.

    <workdir>/checkpoints/<step>/{task,expl,train,meta}    the last `keep`, to resume from
    <workdir>/best/<step>/{task,expl,meta}                 the best by `train.select`
    <workdir>/assets/                                      the vocabularies; each meta has their hashes

A folder that --mode=export wrote is a checkpoint as well, for all that only reads: 'hf:FOLDER'.

A save is written under a temporary name and renamed when complete: a run killed during a save finds the older one.
"""

import contextlib
import hashlib
import json
import pathlib

import jax
import orbax.checkpoint as ocp
from absl import logging

from evil_jax import config as config_lib
from evil_jax import records
from evil_jax.data import load, tokenizers
from evil_jax.interop import export
from evil_jax.training import processes, sharding
from evil_jax.training import state as state_lib

MODULES = ('task', 'expl')
# What may differ between a run and its continuation: where it runs, how often it tells and saves, later modes, and
# where files lie. What is in the files may not: `check_data` and the copy of the vocabularies see to that.
FREE = (
    'mesh', 'sharding', 'decode', 'evaluate', 'build', 'predict', 'sweep', 'export', 'attribute', 'benchmark',
    'train.log_every', 'train.eval_every', 'train.save_every', 'train.keep', 'data.workers', 'data.test', 'data.dir',
    'data.manual_dir', 'data.features', 'data.images', 'data.word_vocab', 'data.expl_vocab', 'data.answers',
)  # fmt: skip
# Where the first parameters came from. Once there is a checkpoint nobody reads them, and they may be gone.
INIT = ('train.init', 'model.task.init', 'model.expl.init')
_SHOWN = 20  # faults of a kind that a message lists


class Checkpoints:
    """Checkpoints of one run; saving goes on in the background while training continues.

    Args:
      workdir: the run's folder.
      keep: how many of the last checkpoints stay.
      origin: JSON, saved with each: of `origin`.
    """

    def __init__(self, workdir, keep: int, origin: dict | None = None):
        workdir = pathlib.Path(workdir).absolute()
        self._origin = origin or {}
        # save_interval_steps and the like are the loop's business; orbax only writes and removes.
        self._last = _manager(workdir / 'checkpoints', max_to_keep=keep)
        self._best = _manager(workdir / 'best')

    def latest_step(self) -> int | None:
        """Step of the newest complete checkpoint."""
        return self._last.latest_step()

    def best(self, select: str | None = None) -> tuple[int, float] | None:
        """(step, score) of the best checkpoint; None if there is none, or not one chosen by the score `select`."""
        found = _best(self._best.directory)
        if found is None or select not in (None, found.get('select')):
            return None
        return found['step'], found['score']

    def save(self, state: state_lib.TrainState, meta: dict) -> None:
        """Saves the state under its step, to resume from. `meta`: JSON."""
        step = int(state.step)
        if step in self._last.all_steps():
            return
        train = ocp.args.StandardSave(_rest(state))
        meta = self._origin | meta | {'step': step}
        self._last.save(step, args=_items(state.params, meta, train=train), force=True)

    def save_best(self, state: state_lib.TrainState, score: float, meta: dict) -> None:
        """Makes this the best checkpoint; the one before goes only when the new one is complete.

        `meta`: JSON; its 'select' names the score.
        """
        step = int(state.step)
        if step in self._best.all_steps():
            self._best.delete(step)
        meta = self._origin | meta | {'step': step, 'score': score}
        self._best.save(step, args=_items(state.params, meta), force=True)
        self._best.wait_until_finished()
        for old in self._best.all_steps():
            if old != step:
                self._best.delete(old)

    def restore(self, abstract: state_lib.TrainState) -> tuple[state_lib.TrainState, dict]:
        """The newest state, onto the mesh of `abstract` (ShapeDtypeStructs with shardings), and its `meta`."""
        folder = pathlib.Path(self._last.directory) / str(self.latest_step())
        params = restore_params(folder, 'latest', abstract.params)
        train = _read(folder / 'train', _rest(abstract))
        return state_lib.TrainState(train['step'], params, train['opt'], train.get('balance')), read_meta(folder)

    def wait(self) -> None:
        """Returns when the last save is on disk."""
        self._last.wait_until_finished()

    def close(self) -> None:
        self._last.close()
        self._best.close()


def _manager(folder, **options):
    # Both may save at the same time: their barriers between processes need names of their own.
    apart = ocp.options.MultiprocessingOptions(barrier_sync_key_prefix=folder.name)
    options = ocp.CheckpointManagerOptions(
        cleanup_tmp_directories=True, enable_async_checkpointing=True, multiprocessing_options=apart, **options
    )
    return ocp.CheckpointManager(folder, options=options)


def _rest(state: state_lib.TrainState) -> dict:
    """What a training state has beside parameters. Without weight averaging there is nothing of it, as in checkpoints
    that are older."""
    rest = {'step': state.step, 'opt': state.opt}
    return rest if state.balance is None else rest | {'balance': state.balance}


def nest(flat: dict) -> dict:
    """{'task/layers/0/bias': x} -> {'task': {'layers': {'0': {'bias': x}}}}."""
    tree: dict = {}
    for path, leaf in flat.items():
        *parents, name = path.split('/')
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = leaf
    return tree


def _items(params, meta: dict, **more) -> ocp.args.Composite:
    tree = nest(params)
    modules = {name: ocp.args.StandardSave(tree[name]) for name in MODULES if name in tree}
    return ocp.args.Composite(**modules, **more, meta=ocp.args.JsonSave(meta))


def _read(folder, abstract):
    with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as reader:
        return reader.restore(folder, args=ocp.args.StandardRestore(abstract))


def read_meta(folder) -> dict:
    """The JSON saved with a checkpoint: step, what `origin` says, and for a best one its score and the score's name."""
    if export.is_export(folder):
        return export.read(folder).meta()
    return json.loads((pathlib.Path(folder) / 'meta' / 'metadata').read_text(encoding='utf-8'))


def origin(config, assets: tokenizers.Assets) -> dict:
    """What a run comes from, for its checkpoints: 'config' as JSON, 'assets' and 'data' as hashes of the content."""
    return {'config': plain(config), 'assets': assets.hashes(), 'data': data_hash(config)}


def read_origin(folder) -> dict:
    """`origin` of a checkpoint.

    Raises:
      ValueError: the checkpoint does not say.
    """
    meta = read_meta(folder)
    if absent := [name for name in ('config', 'assets', 'data') if name not in meta]:
        raise ValueError(f'{folder}/meta does not say with which {" and ".join(absent)} it was trained: train again')
    return {name: meta[name] for name in ('config', 'assets', 'data')}


def find_assets(folder, *others) -> tokenizers.Assets:
    """The vocabularies that a checkpoint was trained with.

    Args:
      folder: of the checkpoint. Looked at are `assets` in it and in its work folder.
      others: folders to look at next.

    Raises:
      ValueError: there are none, or only others; says what was found where.
    """
    folder = pathlib.Path(folder)
    if export.is_export(folder):
        return export.read(folder).assets
    wanted, found = read_origin(folder)['assets'], []
    for place in dict.fromkeys((folder / 'assets', folder.parent.parent / 'assets', *map(pathlib.Path, others))):
        if not place.is_dir():
            found.append(f'{place}: no such folder')
            continue
        assets = tokenizers.load_assets(place)
        faults = differences(wanted, assets.hashes())
        if not faults:
            return assets
        found.append(f'{place}: others ({"; ".join(faults)})')
    raise ValueError(
        f'the vocabularies that {folder} was trained with are in none of these folders; '
        f'copy assets/ of its work folder to {folder / "assets"}:\n  ' + '\n  '.join(found)
    )


def steps(folder) -> list[int]:
    """Steps of the complete checkpoints in a folder such as `<workdir>/checkpoints`, ascending."""
    folder = pathlib.Path(folder)
    return sorted(ocp.utils.checkpoint_steps(folder)) if folder.is_dir() else []


def _best(folder) -> dict | None:
    """The meta of the best checkpoint below a folder.

    There is more than one only after a kill between a save and the removal of the one before. Scores of different
    names cannot be compared: the name of the latest step counts.
    """
    metas = [read_meta(pathlib.Path(folder) / str(step)) for step in steps(folder)]
    same = [meta for meta in metas if meta.get('select') == metas[-1].get('select')]
    return max(same, key=lambda meta: (meta['score'], meta['step']), default=None)


def find(path, which: str = 'best') -> pathlib.Path:
    """Folder of one checkpoint.

    Args:
      path: a work folder, or a checkpoint itself (then `which` does not matter).
      which: 'best' (the latest if no evaluation chose one), 'latest', or the folder of a checkpoint.
      Each of both may be 'hf:FOLDER', of --mode=export.

    Raises:
      ValueError: there is none.
    """
    path = path if which in ('best', 'latest') else which
    name = str(path)
    path = export.named(name) or pathlib.Path(path).absolute()
    if name.startswith('hf:') and not export.is_export(path):
        raise ValueError(f'{name}: there is no config.json of --mode=export; wanted the folder of an export')
    if any((path / name).is_dir() for name in MODULES):
        return path
    if which == 'best' and (best := _best(path / 'best')):
        return path / 'best' / str(best['step'])
    for folder in (path / 'checkpoints', path):
        if done := steps(folder):
            if which == 'best':
                logging.warning('%s has no best checkpoint; taking the latest, step %d', path, done[-1])
            return folder / str(done[-1])
    raise ValueError(f'no complete checkpoint in {path}: wanted a work folder of --mode=train, or a checkpoint folder')


def held(folder) -> list[str]:
    """Which of the two modules a checkpoint holds."""
    folder = pathlib.Path(folder)
    if export.is_export(folder):
        return list(MODULES) if export.read(folder).config['expl'] else ['task']
    return [name for name in MODULES if (folder / name).is_dir()]


def restore_params(path, which: str, abstract, modules=MODULES):
    """Parameters of a checkpoint, in the structure and placement of `abstract`.

    Args:
      path, which: see `find`.
      abstract: tree of ShapeDtypeStructs addressed 'task/...', 'expl/...': {path: shape}, `Net.like`, or the state of
        `nnx.split`. Leaves without a sharding go to the first device.
      modules: which of the two are wanted; the other leaves of `abstract` are left as they are.

    Raises:
      ValueError: no checkpoint, a module is not in it, or names and shapes differ; all faults of both modules.
    """
    folder = find(path, which)
    flat = sharding.flatten(abstract)
    here = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    wanted = {
        p: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=getattr(leaf, 'sharding', None) or here)
        for p, leaf in flat.items()
        if p.partition('/')[0] in modules
    }
    if faults := misfits(folder, wanted):
        raise ValueError(f'{folder} does not fit the model:\n  ' + '\n  '.join(faults))
    if export.is_export(folder):
        found = export.read(folder).params(wanted)
        place = lambda x, where: jax.make_array_from_callback(x.shape, where, lambda index: x[index])
        flat |= {path: place(x, wanted[path].sharding) for path, x in found.items()}
        return sharding.unflatten(flat, abstract)
    for module, tree in nest(wanted).items():
        flat |= sharding.flatten({module: _read(folder / module, tree)})
    return sharding.unflatten(flat, abstract)


def misfits(folder, wanted: dict) -> list[str]:
    """What keeps a checkpoint from being restored into a model, {path: shape}.

    One text for each parameter that only one of them has or that differs in shape, and for each module that is not
    there. Modules that are not wanted do not matter.
    """
    if export.is_export(folder):
        return export.read(folder).misfits(wanted)
    faults = []
    for module in dict.fromkeys(path.partition('/')[0] for path in wanted):
        shapes = {p: tuple(leaf.shape) for p, leaf in wanted.items() if p.startswith(f'{module}/')}
        if module not in held(folder):
            faults.append(f'no parameters of {module!r}, which the model needs')
            continue
        saved = saved_shapes(folder, module)
        kinds = (
            [f'{p}: missing in the checkpoint' for p in sorted(shapes.keys() - saved.keys())],
            [f'{p}: not in the model' for p in sorted(saved.keys() - shapes.keys())],
            [
                f'{p}: checkpoint {saved[p]}, model {shapes[p]}'
                for p in sorted(shapes.keys() & saved.keys())
                if saved[p] != shapes[p]
            ],
        )
        for found in kinds:
            faults += found[:_SHOWN] + ([f'... and {len(found) - _SHOWN} more of {module}'] if found[_SHOWN:] else [])
    return faults


def saved_shapes(folder, module: str) -> dict[str, tuple[int, ...]]:
    """Shapes of the parameters of a module in a checkpoint, by path."""
    tree = ocp.StandardCheckpointHandler().metadata((pathlib.Path(folder) / module).absolute()).tree
    return {path: tuple(leaf.shape) for path, leaf in sharding.flatten({module: tree}).items()}


def check_config(config, workdir) -> None:
    """Refuses to continue a run with another experiment.

    Compares `<workdir>/config.json`, where there is one; the keys of `FREE` and `INIT` may differ. `train.steps` may
    not: the learning rate depends on it.

    Raises:
      ValueError: names every key that differs with both values.
    """
    path = pathlib.Path(workdir) / 'config.json'
    if not path.exists():
        return
    before, now = (
        {key: value for key, value in settings(tree).items() if not below(key, (*FREE, *INIT))}
        for tree in (json.loads(path.read_text(encoding='utf-8')), plain(config))
    )
    if faults := differences(before, now):
        raise ValueError(
            f'{workdir} holds a run of another config; take a new --workdir or the same values:\n  '
            + '\n  '.join(faults)
        )


def remembered(config, workdir):
    """The config with which a run goes on: it keeps saying where its parameters came from, whatever `config` says.

    Returns:
      `config` itself, or a copy with the `INIT` of the last checkpoint. A value that is given up is warned of.
    """
    folder = pathlib.Path(workdir) / 'checkpoints'
    if not (done := steps(folder)):
        return config
    before, now = (settings(tree) for tree in (read_origin(folder / str(done[-1]))['config'], plain(config)))
    config = config.copy_and_resolve_references()
    for key in INIT:
        if now[key] and now[key] != before[key]:
            logging.warning(
                '%s: %r is not read, as the run goes on from step %d; it began with %r',
                key, now[key], done[-1], before[key],
            )  # fmt: skip
        config.update_from_flattened_dict({key: before[key]})
    return config


def check_data(config, workdir) -> None:
    """Refuses to continue a run with a data set of other content; it may lie in another place.

    Raises:
      ValueError: names both data sets.
    """
    folder = pathlib.Path(workdir) / 'checkpoints'
    if not (done := steps(folder)):
        return
    before, now = read_origin(folder / str(done[-1]))['data'], data_hash(config)
    if before != now:
        raise ValueError(
            f'{workdir} was trained on another data set than {config.data.dir} holds now: settings and sources of '
            f'build.json have the hash {now}, wanted {before}. Take a new --workdir or the data set of that run'
        )


def data_hash(config) -> str:
    """Of settings and sources of the data set."""
    document = load.built(config)
    what = json.dumps({name: document[name] for name in ('settings', 'sources')}, sort_keys=True)
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def exclusive(workdir, mode: str) -> contextlib.AbstractContextManager:
    """A context in which this is the only run of a mode with this work folder; of several processes the first locks.

    Raises:
      ValueError: another run is at work there.
    """
    if processes.index():
        return contextlib.nullcontext()
    message = f'{workdir}: another --mode={mode} works in this folder right now; wait for it or take another --workdir'
    return records.locked(pathlib.Path(workdir) / f'.{mode}.lock', message)


def plain(config) -> dict:
    """The config as JSON: tuples become lists."""
    return json.loads(json.dumps(config.to_dict()))


def write_config(config, workdir) -> None:
    """Writes `<workdir>/config.json`."""
    records.write_json(pathlib.Path(workdir) / 'config.json', plain(config))


def settings(document: dict) -> dict[str, object]:
    """All leaves of a config that was written as JSON, {'a.b': 1}; keys that are younger have their defaults."""
    return leaves(plain(config_lib.base())) | leaves(document)


def leaves(tree, prefix: str = '') -> dict[str, object]:
    """{'a': {'b': 1}} -> {'a.b': 1}."""
    if not isinstance(tree, dict):
        return {prefix: tree}
    return {
        key: value
        for name, node in tree.items()
        for key, value in leaves(node, f'{prefix}.{name}' if prefix else name).items()
    }


def differences(before: dict, now: dict) -> list[str]:
    """One text for each key whose values differ."""
    absent = '(absent)'
    pairs = ((key, before.get(key, absent), now.get(key, absent)) for key in sorted(before.keys() | now.keys()))
    return [f'{key}: {there!r} there, {here!r} here' for key, there, here in pairs if there != here]


def below(key: str, prefixes) -> bool:
    """Whether a key such as 'model.task.size' is one of the prefixes or stands below one."""
    return any(key == prefix or key.startswith(f'{prefix}.') for prefix in prefixes)
