"""A trained pair as a folder of Hugging Face's kind, which PyTorch reads without JAX or evil_jax, and back.

    config.json, model.safetensors        the pair; AutoModel.from_pretrained(FOLDER, trust_remote_code=True)
    *_evil.py                             its PyTorch code, of evil_jax/interop/pytorch/
    task/, expl/                          tokenizers; where transformers knows a module's architecture, that model alone
    README.md, LICENSE.md, scores.json    the model card, and the scores in it

Names of parameters are ours with dots, and PyTorch's for what is in a module: 'task/head/answer/kernel' [I, O] is
`task.head.answer.weight` [O, I]. What only fills up M_E's vocabulary is left out. The same model gives the
same bytes in every file, also after it has been read from there.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Mapping

import numpy as np

from evil_jax import records
from evil_jax.data import tokenizers
from evil_jax.interop import table, weights

MODEL_TYPE = 'evil'
CONFIG, SCORES = 'config.json', 'scores.json'
# Axis on which M_E has as many entries as the vocabulary, and padding behind them.
_VOCABULARY = {'expl/wte/embedding': 0, 'expl/word/embedding': 0, 'expl/out/kernel': 1, 'expl/out/bias': 0}
_TAKEN = {'type': 'kind'}  # names that torch.nn.Module has a use for
_PYTORCH = pathlib.Path(__file__).parent / 'pytorch'
# Beside what `write` wrote only what belongs to git and to hubs may lie in a folder that is replaced, and stays.
_KEPT = ('.git', '.gitattributes', '.gitignore', '.cache')
_SHOWN = 10


@dataclasses.dataclass(frozen=True)
class Exported:
    """What `read` finds.

    Attributes:
      folder: where.
      config: content of config.json.
      assets: vocabularies and answers.
    """

    folder: pathlib.Path
    config: dict
    assets: tokenizers.Assets

    @property
    def trained(self) -> dict[str, object]:
        """Settings that the model was trained with: {'data.max_text': 20}; M_T's own are those of its run."""
        of_task = self.config.get('task_run', {}).get('trained', {})
        own = {key: value for key, value in of_task.items() if key.startswith('model.task.')}
        return self.config['trained'] | own

    def meta(self) -> dict:
        """What a checkpoint says of itself: 'step', and where it comes from: 'config', 'assets', 'data'."""
        known = {name: self.config.get(name) for name in ('step', 'data')}
        return {**known, 'config': self.trained, 'assets': self.assets.hashes()}

    def scores(self) -> dict | None:
        """Content of scores.json, if there is one."""
        path = self.folder / SCORES
        return read_scores(path) if path.is_file() else None

    def params(self, shapes: Mapping) -> dict[str, np.ndarray]:
        """Our parameters.

        Args:
          shapes: {our path: something with a shape and a dtype}; of the whole model, or of one module.

        Raises:
          ValueError: names or shapes differ; all that do are in the message.
        """
        modules = tuple({f'{path.partition("/")[0]}.' for path in shapes})
        there = weights.read(self.folder / 'model.safetensors')
        there = {name: x for name, x in there.items() if name.startswith(modules)}
        wanted = {path: _Shape(_without_padding(path, tuple(leaf.shape), self._rows)) for path, leaf in shapes.items()}
        integers = {name for name, x in there.items() if not np.issubdtype(x.dtype, np.floating)}
        for name in integers:  # constants: the table takes floating-point numbers
            there[name] = there[name].astype(np.float32)
        found = table.load(_names(shapes), there, wanted, where=self.folder / 'model.safetensors')
        found = {path: x.astype(shapes[path].dtype) for path, x in found.items()}
        room = lambda path, x: [(0, there - here) for here, there in zip(x.shape, shapes[path].shape, strict=True)]
        return {path: np.pad(x, room(path, x)) if path in _VOCABULARY else x for path, x in found.items()}

    @property
    def _rows(self) -> int:
        return self.config['expl']['rows'] if self.config['expl'] else 0

    def misfits(self, shapes: Mapping) -> list[str]:
        """What keeps the parameters from being those of a model, {our path: shape}."""
        try:
            self.params(shapes)
        except ValueError as error:
            return str(error).splitlines()
        return []


@dataclasses.dataclass(frozen=True)
class _Shape:
    shape: tuple[int, ...]


def _names(paths) -> tuple[table.Row, ...]:
    """The table of the pair's own names: one row a path."""
    rows = []
    for path in paths:
        module, _, leaf = path.rpartition('/')
        transform = table.SAME
        if leaf == 'kernel':
            leaf, transform = 'weight', table.TRANSPOSE
        elif leaf == 'embedding' or (leaf == 'scale' and f'{module}/kernel' not in paths):  # of a norm
            leaf = 'weight'
        name = '.'.join(_TAKEN.get(part, part) for part in module.split('/'))
        rows.append((re.escape(path), f'{name}.{leaf}', transform))
    return tuple(rows)


def _without_padding(path, shape, rows) -> tuple[int, ...]:
    axis = _VOCABULARY.get(path)
    return tuple(rows if n == axis else size for n, size in enumerate(shape))


def named(value: str) -> pathlib.Path | None:
    """The folder of a setting 'hf:FOLDER' that is an export of ours; None for any other setting.

    Raises:
      ValueError: 'hf:' with no folder behind it.
    """
    found = weights.spec(value)
    if found is None or found.kind != 'hf' or not is_export(found.path):
        return None
    return found.path


def is_export(folder) -> bool:
    """Whether a folder is an export of ours, as config.json says."""
    path = pathlib.Path(folder) / CONFIG
    return path.is_file() and weights.read_config(folder).get('model_type') == MODEL_TYPE


def read(folder) -> Exported:
    """Opens an export; parameters are read later.

    Raises:
      ValueError: something is missing or malformed; names the file.
    """
    folder = pathlib.Path(folder)
    config = weights.read_config(folder)
    path = folder / CONFIG
    kinds = {'task': dict, 'expl': (dict, type(None)), 'encoding': dict, 'answers': list, 'trained': dict}
    for name, kind in kinds.items():
        if name not in config or not isinstance(config[name], kind):
            raise ValueError(f'{path}: {name} is {str(config.get(name))[:80]}, wanted what --mode=export writes')
    for name, inner, absent in (('scored', 'decode', {}), ('task_run', 'trained', None)):
        value = config.get(name, {inner: {}})
        if not isinstance(value, dict) or not isinstance(value.get(inner, absent), dict):
            raise ValueError(f'{path}: {name} is {str(value)[:80]}, wanted what --mode=export writes')
    rows = config['expl'] and config['expl'].get('rows')
    if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
        raise ValueError(f'{path}: expl.rows is {rows!r}, wanted the size of a vocabulary')
    answers = config['answers']
    if len(set(map(str, answers))) != len(answers) or not all(isinstance(answer, str) for answer in answers):
        raise ValueError(f'{path}: answers are {str(answers)[:80]}, wanted distinct texts')
    word = tokenizers.WordTokenizer.load(folder / 'task')
    return Exported(
        folder, config, tokenizers.Assets(word, tokenizers.ExplTokenizer.load(folder / 'expl'), tuple(answers))
    )


def read_scores(path) -> dict:
    """Content of a scores.json.

    Raises:
      ValueError: it is none; names the file.
    """
    found = weights.read_json(path)
    for protocol, subsets in found.items():
        if protocol == 'schema':
            continue
        for metrics in subsets.values() if isinstance(subsets, dict) else (None,):
            for score in metrics.values() if isinstance(metrics, dict) else (None,):
                if not isinstance(score, dict) or not score.keys() >= _SCORE or not _is_number(score['value']):
                    raise ValueError(f'{path}: {protocol} holds {str(score)[:80]}, wanted what --mode=evaluate writes')
    return found


_SCORE = {'value', 'n', 'signature'}


def _is_number(value) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def check_target(folder) -> None:
    """Raises ValueError unless an export may be written there: a new or empty folder, or an older export.

    An older one holds nothing that people put there or changed: a replaced folder is gone.
    """
    folder = pathlib.Path(folder)
    if not folder.exists():
        above = next(path for path in folder.absolute().parents if path.exists())
        if not above.is_dir():
            raise ValueError(f'{folder}: {above} is a file: choose another export.dir')
        _check_writable(folder, above)
        return
    mine = [path for path in folder.iterdir() if path.name not in _KEPT] if folder.is_dir() else [folder]
    if mine and not is_export(folder):
        raise ValueError(f'{folder} is not empty and no export of evil_jax: choose another export.dir')
    _check_writable(folder, folder.resolve().parent)
    if mine and (foreign := _foreign(folder, mine)):
        more = f' and {len(foreign) - _SHOWN} more' if len(foreign) > _SHOWN else ''
        raise ValueError(
            f'{folder} would be replaced, but holds what --mode=export did not write, or not so: '
            f'{", ".join(foreign[:_SHOWN])}{more}. Choose another export.dir, or move these files'
        )


def _check_writable(folder, above):
    if not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(f'{folder}: no right to write in {above}: choose another export.dir')


def _foreign(folder, mine) -> list[str]:
    """Names in an older export of what `write` did not write, or not so."""
    config = weights.read_config(folder)
    written = config.pop('files', None)
    written = written if isinstance(written, dict) else {}
    found = []
    for path in sorted(inner for top in mine for inner in (top, *([] if top.is_symlink() else top.rglob('*')))):
        name = path.relative_to(folder)
        if '__pycache__' in name.parts:
            continue
        if path.is_dir() and not path.is_symlink():
            foreign = str(name) not in ('task', 'expl')
        else:
            foreign = written.get(str(name)) != (_content_hash(config) if str(name) == CONFIG else _hash(path))
        found += [str(name)] if foreign else []
    return found


def _hash(path) -> str:
    try:
        return records.file_hash(path)
    except OSError:  # a link to nowhere, or a file that only others may read
        return ''


def _content_hash(config) -> str:
    """Of config.json without the hashes that it holds."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:16]


def write(folder, config: dict, params: Mapping, assets: tokenizers.Assets, texts: Mapping[str, str], alone=()) -> None:
    """Writes an export, all or nothing.

    Args:
      folder: new, empty, or an older export, which is replaced when the new one is complete; see `check_target`.
      config: what the PyTorch model is made of, and `trained`: content of config.json but for what is the same in all.
      params: {our path: array}.
      assets: vocabularies.
      texts: {name: content} of further files, the model card among them.
      alone: (sub-folder, content of its config.json, {their name: array}) of the modules that transformers knows.

    Raises:
      ValueError: the folder holds something else, nothing can be written there, or another process writes there; a
        value is not finite.
    """
    folder = pathlib.Path(folder).resolve()
    with contextlib.ExitStack() as stack:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock = folder.parent / f'.{folder.name}.lock'
            stack.enter_context(records.locked(lock, f'{folder}: another --mode=export writes there right now'))
            _clear(folder)
            check_target(folder)
            temporary = tempfile.TemporaryDirectory(dir=folder.parent, prefix=f'.{folder.name}.')
            new = pathlib.Path(stack.enter_context(temporary)) / 'new'
            new.mkdir()
        except OSError as error:
            raise ValueError(f'{folder}: nothing can be written there: {error.strerror or error}') from error
        _fill(new, config, params, assets, texts, alone)
        _swap(folder, new, new.with_name('old'))


def _swap(folder, new, old) -> None:
    """Puts `new` in the place of `folder`, whose own files go to `old`."""
    kept = [name for name in _KEPT if os.path.lexists(folder / name)]
    try:
        for name in kept:
            os.rename(folder / name, new / name)
        if folder.exists():
            os.rename(folder, old)
        os.rename(new, folder)
    except BaseException:
        _restore(folder, new, old)
        raise


def _restore(folder, new, old) -> bool:
    """Undoes a part of `_swap`. Returns whether nothing that is to be kept is left in `new` or `old`."""
    if old.exists() and not folder.exists():
        os.rename(old, folder)
    left = [half / name for half in (new, old) for name in _KEPT if os.path.lexists(half / name)]
    for path in left:
        if not os.path.lexists(folder / path.name):
            os.rename(path, folder / path.name)
    return not any(map(os.path.lexists, left))


def _clear(folder) -> None:
    """Removes what an export left that was killed. The caller keeps others out."""
    name = re.compile(rf'\.{re.escape(folder.name)}\.[a-z0-9_]{{8}}')  # of tempfile
    for left in [path for path in folder.parent.iterdir() if name.fullmatch(path.name) and path.is_dir()]:
        if {path.name for path in left.iterdir()} <= {'new', 'old'} and _restore(folder, left / 'new', left / 'old'):
            shutil.rmtree(left)


def _fill(folder, config, params, assets, texts, alone):
    document = {
        'architectures': ['EvilModel'],
        'auto_map': {'AutoConfig': 'configuration_evil.EvilConfig', 'AutoModel': 'modeling_evil.EvilModel'},
        'dtype': 'float32',
        'model_type': MODEL_TYPE,
        **config,
    }
    params = {path: np.asarray(x) for path, x in params.items()}
    kinds = {path: x.dtype for path, x in params.items()}
    for path in _VOCABULARY.keys() & params.keys():
        shape = _without_padding(path, params[path].shape, config['expl']['rows'])
        params[path] = params[path][tuple(map(slice, shape))]
    names = _names(params)
    there = table.save(names, params, where='the model')
    for (_, name, _), path in zip(names, params, strict=True):
        if not np.issubdtype(kinds[path], np.floating):
            there[name] = there[name].astype(kinds[path])
    weights.write(folder / 'model.safetensors', there)
    for path in sorted(_PYTORCH.glob('*_evil.py')):
        shutil.copyfile(path, folder / path.name)
    save_words(folder / 'task', assets.word)
    save_pieces(folder / 'expl', assets.expl)
    for name, settings, arrays in alone:
        write_json(folder / name / 'config.json', settings)
        weights.write(folder / name / 'model.safetensors', arrays)
    for name, content in texts.items():
        records.atomic_write(folder / name, content)
    # By these it is seen whether somebody has edited a file since, or put one there.
    files = {str(path.relative_to(folder)): _hash(path) for path in folder.rglob('*') if path.is_file()}
    files[CONFIG] = _content_hash(json.loads(text(document)))
    write_json(folder / CONFIG, document | {'files': files})


def write_json(path, value) -> None:
    """Writes `text(value)`: the same value gives the same bytes."""
    records.atomic_write(path, text(value))


def text(value) -> str:
    """JSON whose keys are in order."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, sort_keys=True) + '\n'


def save_words(folder, word: tokenizers.WordTokenizer) -> None:
    """vocab.txt, and what tells AutoTokenizer how to read it."""
    word.save(folder)
    write_json(folder / 'tokenizer_config.json', {'do_lower_case': word.lowercase, 'tokenizer_class': 'BertTokenizer'})


def save_pieces(folder, expl: tokenizers.ExplTokenizer) -> None:
    """vocab.json and merges.txt, and the markers as added tokens, which AutoTokenizer puts behind them."""
    expl.save(folder)
    flags = dict.fromkeys(('lstrip', 'normalized', 'rstrip', 'single_word'), False) | {'special': True}
    ids = {expl.id(marker): {'content': marker, **flags} for marker in (tokenizers.END_OF_TEXT, *tokenizers.SPECIALS)}
    for token in ids.values():  # white space around object tags is dropped
        token['lstrip'] = token['rstrip'] = '<|det' in token['content']
    end = tokenizers.END_OF_TEXT
    settings = {
        'add_prefix_space': False,
        'added_tokens_decoder': {str(i): token for i, token in sorted(ids.items())},
        'bos_token': end, 'eos_token': end, 'pad_token': end, 'unk_token': end,
        'tokenizer_class': 'GPT2Tokenizer',
    }  # fmt: skip
    write_json(folder / 'tokenizer_config.json', settings)
