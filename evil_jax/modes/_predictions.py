"""predictions.jsonl and its sidecar predictions.meta.json: what is in the file, what made it, and how it grows."""

import hashlib
import json
import pathlib
from collections.abc import Sequence

from evil_jax import compat, records
from evil_jax.data import load
from evil_jax.interop import export
from evil_jax.records import Example, Prediction
from evil_jax.training import checkpoint, processes

# Settings that a checkpoint was trained with and that decoding must share: with another value the model would silently
# see something it never saw. Names and shapes of parameters are checked when they are restored.
TRAINED_WITH = (
    'compat', 'model.task', 'model.expl', 'data.task', 'data.lowercase', 'data.locations', 'data.regions',
    'data.choices', 'data.tags', 'data.tag_regions', 'data.max_text', 'data.max_regions', 'data.max_question',
    'data.max_answer', 'data.max_explanation', 'data.objects', 'data.max_objects', 'data.pixels', 'data.resize',
)  # fmt: skip
# Decoding settings that decide what is predicted; the batch size does with quirk 3 only, and the rest has a name of its
# own below.
_DECODE = ('condition', 'method', 'temperature', 'top_k', 'top_p', 'beams', 'length_penalty', 'max_tokens')


def sidecar(config, trained: pathlib.Path, task, reader, split, examples: Sequence[Example], batch: int) -> dict:
    """What decides the predictions: settings, and hashes of checkpoint and data.

    Args:
      trained: folder of the checkpoint, or a file of the published e-UG code.
      task: folder of the checkpoint whose M_T takes the place of its own, or None.
      reader: of `load.open_inputs`.
      split: its name.
      examples: of the split, as many as are decoded.
      batch: rows that are decoded together.
    """
    config_leaves = checkpoint.leaves(checkpoint.plain(config))
    deciding = (*TRAINED_WITH, 'model.dtype')
    settings = {key: value for key, value in config_leaves.items() if _decides(key, deciding)}
    if config.decode.method == 'sample':
        settings['seed'] = config.seed
    return {
        'schema': 1,
        'split': split,
        'examples': len(examples),
        'checkpoint': identity(trained),
        **({'task_checkpoint': identity(task)} if task else {}),
        'data': {
            'examples': files_hash(load.folder(config)),
            **_inputs(reader),
            **load.heeded(config),
        },
        'decode': {key: config_leaves[f'decode.{key}'] for key in _DECODE}
        | ({'batch': batch} if compat.has(config, 3) else {}),
        'config': settings,
    }


def _inputs(reader) -> dict[str, str]:
    """What tells apart what is looked up for examples; {} where nothing is."""
    if reader is None:
        return {}
    found = reader.provenance()
    if sha256 := found.get('sha256'):
        return {'features': sha256[:16]}
    return {'features': hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]}


def trained_with(leaves: dict, *without: str) -> dict:
    """The settings of `TRAINED_WITH` among the leaves of a config, but for those below `without`."""
    return {
        key: value
        for key, value in leaves.items()
        if _decides(key, TRAINED_WITH) and not checkpoint.below(key, without)
    }


def _decides(key, prefixes):
    return checkpoint.below(key, prefixes) and key not in checkpoint.INIT


def identity(trained: pathlib.Path) -> dict[str, object]:
    """What tells a checkpoint from all others, wherever it lies."""
    if trained.is_file():
        return {'file': trained.name, 'sha256': records.file_hash(trained)}
    if export.is_export(trained):
        weights = trained / 'model.safetensors'
        return {'file': weights.name, 'sha256': records.file_hash(weights)}
    return {'step': checkpoint.read_meta(trained)['step'], 'sha256': checkpoint_hash(trained)}


def checkpoint_hash(folder) -> str:
    """sha256 over the parameter files of a checkpoint, first 16 hex digits."""
    return files_hash(*(pathlib.Path(folder) / module for module in checkpoint.MODULES))


def files_hash(*folders) -> str:
    """sha256 over names and contents of all files below the folders, first 16 hex digits."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(p for p in folder.rglob('*') if p.is_file()):
            digest.update(f'{folder.name}/{path.relative_to(folder)} {records.file_hash(path)}\n'.encode())
    return digest.hexdigest()[:16]


class Writer:
    """Appends predictions to `<workdir>/predictions.jsonl`; of several processes the first reads and writes.

    Opening it repairs a last line that a kill left unfinished. Where predictions depend on the batch (`meta` names it),
    an unfinished batch goes too.

    Args:
      workdir: folder of the file and its sidecar.
      meta: JSON, of `sidecar`.

    Attributes:
      done: how many predictions there are.

    Raises:
      ValueError: the file there was made with another `meta` (the differing keys are named), has no sidecar or a line
        that is no Prediction.
    """

    def __init__(self, workdir, meta: dict):
        self.path = pathlib.Path(workdir) / 'predictions.jsonl'
        self.done = processes.first(lambda: self._open(meta))

    def _open(self, meta) -> int:
        path = self.path.with_name('predictions.meta.json')
        lines = _complete_lines(self.path)
        if lines:
            self._compare(path, meta)
        if len(lines) < meta['examples']:
            lines = lines[: len(lines) - len(lines) % meta['decode'].get('batch', 1)]
        for number, line in enumerate(lines, 1):
            try:
                Prediction.from_json(json.loads(line))
            except (ValueError, TypeError) as error:
                raise ValueError(f'{self.path}:{number}: {error}') from error
        if lines:
            if self.path.stat().st_size > (size := sum(map(len, lines))):
                with open(self.path, 'r+b') as file:
                    file.truncate(size)
        else:
            # In this order: never does a sidecar stand beside predictions that it does not describe.
            self.path.unlink(missing_ok=True)
            records.write_json(path, meta)
        return len(lines)

    def _compare(self, path, meta):
        way_out = f'Move {self.path} and its sidecar away, or take another --workdir'
        if not path.exists():
            raise ValueError(f'{self.path} has no {path.name}: it is not known what made it. {way_out}')
        try:
            before = json.loads(path.read_text(encoding='utf-8'))
        except ValueError as error:
            raise ValueError(f'{path}: not JSON: {error}. {way_out}') from error
        if isinstance(before, dict) and isinstance(before.get('config'), dict):
            defaults = checkpoint.settings({})  # of settings that are younger than the file
            before['config'] = {k: defaults[k] for k in meta['config'] if k in defaults} | before['config']
        if found := checkpoint.differences(checkpoint.leaves(before), checkpoint.leaves(meta)):
            raise ValueError(f'{self.path} was decoded with other settings:\n  ' + '\n  '.join(found) + f'\n{way_out}')

    def append(self, predictions: list[Prediction]) -> None:
        """Adds lines, in the order of the examples."""
        if processes.index() == 0:
            lines = ''.join(json.dumps(p.to_json(), ensure_ascii=False) + '\n' for p in predictions)
            with open(self.path, 'ab') as file:
                file.write(lines.encode())
        self.done += len(predictions)

    def close(self) -> None:
        """Returns when every process is done: the file is then complete for all of them."""
        processes.meet()


def _complete_lines(path: pathlib.Path) -> list[bytes]:
    """The lines of a file that end in a line feed: of the others a kill left a part."""
    if not path.exists():
        return []
    with open(path, 'rb') as file:
        return [line for line in file if line.endswith(b'\n')]
