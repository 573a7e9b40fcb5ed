"""BLEURT from a folder on this machine, without TensorFlow: a function that scores pairs of texts.

    regress = bleurt.open_bleurt('/models/bleurt-base-128')
    regress(['a reference'], ['a candidate'])            # float32, one number a pair

Two kinds of folders:
* a checkpoint as google-research/bleurt publishes it (bleurt-base-128 ... BLEURT-20-D3): bleurt_config.json, BERT's
  config, vocab.txt or a model of SentencePiece, variables/ and saved_model.pb. Nothing of the graph in saved_model.pb
  is run; but it tells which GELU the checkpoint has: BERT's code in TensorFlow means the one by tanh, and a graph that
  has the operation Erf or Erfc means the other.
* a Hugging Face folder with BertForSequenceClassification or RemBertForSequenceClassification of one output, or a
  conversion by bleurt-pytorch (model_type 'bleurt'). There 'gelu' is the one by erf: scores of a conversion differ
  from those of its original in the third decimal.
"""

import pathlib
import re
from collections.abc import Sequence

import jax
import numpy as np
from flax import nnx

from evil_jax.interop import _folder, bert, bleurt_text, rembert, table, tf_checkpoint, weights
from evil_jax.metrics import resources
from evil_jax.models import bleurt
from evil_jax.models.bert import Size

_HEAD = table.rows(('head', 'classifier', table.LINEAR))
TABLE = table.prefixed(rembert.TABLE, 'encoder/') + _HEAD  # Hugging Face's names, without 'bert.'
_RENAMED = (
    (r'^(bert|rembert|bleurt)\.', ''),
    (r'^encoder\.embedding_projection\.', 'encoder.embedding_hidden_mapping_in.'),  # bleurt-pytorch
    *bert.OLD,
)
_UNUSED = (r'embeddings\.(position_ids|token_type_ids)',)
_UNUSED_TF = ('global_step', r'.*/adam_[mv]', r'beta[12]_power')
_SPM = ('spm.model', 'sentencepiece.model', 'sent_piece.model', 'spiece.model')
_GELU_TF = {'gelu': 'gelu_tanh', 'relu': 'relu'}
_GELU_HF = {'gelu': 'gelu', 'gelu_new': 'gelu_tanh', 'gelu_pytorch_tanh': 'gelu_tanh', 'relu': 'relu'}
_ERF = re.compile(rb'\x12(\x03Erf|\x04Erfc)')  # operation (field 2) of a node of a TensorFlow graph
_BATCH = 32
_MOST_LAYERS = 1000


class Regressor:
    """`(references, candidates) -> scores`, float32 [N]; see `open_bleurt`.

    Attributes:
      name: of the model, for a signature: what it is called, with a hash of all that its numbers depend on.
      most: tokens of a pair; longer ones are cut.
    """

    def __init__(self, model: bleurt.Bleurt, cutter: bleurt_text.Cutter, most: int, name: str, batch: int = _BATCH):
        self.cutter, self.most, self.name, self._batch = cutter, most, name, batch
        graph, self._params = nnx.split(model)
        self._run = jax.jit(lambda params, ids, types, length: nnx.merge(graph, params)(ids, types, length))

    def __call__(self, references: Sequence[str], candidates: Sequence[str]) -> np.ndarray:
        """Scores of pairs. Pairs that occur several times are computed once; empty texts are texts.

        Raises:
          ValueError: not as many references as candidates.
        """
        if len(references) != len(candidates):
            raise ValueError(f'BLEURT: {len(references)} references for {len(candidates)} candidates')
        numbers: dict[tuple[str, str], int] = {}
        which = [numbers.setdefault(pair, len(numbers)) for pair in zip(references, candidates)]
        return self._scores(list(numbers))[which]

    def _scores(self, pairs):
        texts = {text: n for n, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
        cut = self.cutter.cut(list(texts))
        rows = [self.cutter.pair(cut[texts[r]], cut[texts[c]], self.most) for r, c in pairs]
        # The longest first: so that memory that does not suffice is missed at once, and what fills up the last batch
        # is short.
        order = sorted(range(len(rows)), key=lambda n: -len(rows[n][0]))
        found = np.zeros(len(rows), np.float32)
        for start in range(0, len(order), self._batch):
            some = order[start : start + self._batch]
            found[some] = self._batch_scores([rows[n] for n in some], whole=len(order) > self._batch)
        return found

    def _batch_scores(self, rows, whole):
        """Few shapes, because each one is compiled: lengths in steps, full batches unless there is just one."""
        count = self._batch if whole else min(1 << (len(rows) - 1).bit_length(), self._batch)
        length = min(_step(max(len(ids) for ids, _ in rows)), self.most)
        ids_BQ, type_BQ = np.zeros((2, count, length), np.int32)
        length_B = np.ones(count, np.int32)  # rows that fill up have one token: nothing at all has no softmax
        for n, (ids, types) in enumerate(rows):
            ids_BQ[n, : len(ids)], type_BQ[n, : len(ids)], length_B[n] = ids, types, len(ids)
        # In full float32 on every device: TPU and GPU would round factors, and small differences of scores count.
        with jax.default_matmul_precision('highest'):
            return np.asarray(self._run(self._params, ids_BQ, type_BQ, length_B))[: len(rows)]


def _step(length):
    return -(-length // 16) * 16 if length <= 128 else -(-length // 64) * 64


def open_bleurt(folder, batch: int = _BATCH) -> Regressor:
    """The regressor of a folder, see above.

    Args:
      folder: a checkpoint of google-research/bleurt, or a Hugging Face folder.
      batch: most pairs that are computed at once.

    Raises:
      resources.Unavailable: no folder, or the package sentencepiece is needed and absent.
      ValueError: everything in it that does not fit, in one message.
    """
    if not str(folder) or not pathlib.Path(folder).is_dir():
        raise resources.Unavailable(
            f'needs a BLEURT checkpoint on this machine ({str(folder) or "none"} is no folder): unpack one of those '
            'that checkpoints.md of github.com/google-research/bleurt lists, and name its folder in evaluate.bleurt'
        )
    folder = pathlib.Path(folder)
    if (folder / 'bleurt_config.json').is_file():
        return _published(folder, batch)
    if (folder / 'config.json').is_file():
        return _hugging_face(folder, batch)
    raise ValueError(
        f'{folder} has neither bleurt_config.json (a checkpoint of BLEURT) nor config.json (a Hugging Face folder)'
    )


def _published(folder, batch):
    where = folder / 'bleurt_config.json'
    config = weights.read_json(where)
    name, vocabulary, pieces = (_text(config, key, where) for key in ('name', 'vocab_file', 'sp_model'))
    lowercase, most = config.get('do_lower_case'), config.get('max_seq_length')
    if vocabulary:
        if not isinstance(lowercase, bool):
            raise ValueError(f'{where}: do_lower_case is {lowercase!r}, wanted true or false beside a vocab_file')
        cutter = bleurt_text.word_pieces(_beside(where, vocabulary), lowercase)
    elif pieces:
        cutter = bleurt_text.sentence_pieces(_beside(where, f'{pieces}.model'))
    else:
        raise ValueError(f'{where}: neither vocab_file nor sp_model says how texts are cut')
    path = _beside(where, _text(config, 'bert_config_file', where) or 'bert_config.json')
    there = tf_checkpoint.read(folder / 'variables' / 'variables', _UNUSED_TF)
    activation = _GELU_TF
    if (folder / 'saved_model.pb').is_file() and _ERF.search((folder / 'saved_model.pb').read_bytes()):
        activation = {**_GELU_TF, 'gelu': 'gelu'}
    return _regressor(
        folder, path, weights.read_json(path), there, tensorflow(TABLE), activation, cutter, most, name, batch
    )


def _hugging_face(folder, batch):
    path = folder / 'config.json'
    config = weights.read_json(path)
    if config.get('model_type') not in ('bert', 'rembert', 'bleurt'):
        raise ValueError(f'{path}: model_type is {config.get("model_type")!r}, wanted bert, rembert or bleurt')
    there = table.renamed(weights.read(folder), _RENAMED, folder)
    pieces = next((folder / name for name in _SPM if (folder / name).is_file()), None)
    cutter = bleurt_text.sentence_pieces(pieces) if pieces else bleurt_text.word_pieces(folder)
    most, told = config.get('max_position_embeddings'), folder / 'tokenizer_config.json'
    if told.is_file() and isinstance(stated := weights.read_json(told).get('model_max_length'), int):
        most = min(most, stated) if isinstance(most, int) else stated  # 1e30 stands for 'not known'
    there = {name: array for name, array in there.items() if not any(re.fullmatch(p, name) for p in _UNUSED)}
    return _regressor(folder, path, config, there, TABLE, _GELU_HF, cutter, most, folder.resolve().name, batch)


def _regressor(folder, path, config, there, names, activations, cutter, most, name, batch):
    word, up = (next(n for ours, n, _ in names if ours == f'encoder/text/{part}')
                for part in ('word/embedding', 'up/kernel'))  # fmt: skip
    faults = []
    rows = lambda ours: len(there[n]) if (n := _name(names, ours)) in there and there[n].ndim else 0
    number = lambda key, default=None: _folder.number(config, key, faults, default)
    size = Size(
        layers=number('num_hidden_layers'), width=number('hidden_size'), heads=number('num_attention_heads'),
        hidden=number('intermediate_size'),
        positions=number('max_position_embeddings', rows('encoder/text/position/embedding')),
        types=number('type_vocab_size', rows('encoder/text/type/embedding')),
    )  # fmt: skip
    words = number('vocab_size', rows('encoder/text/word/embedding'))
    # Which of the keys says how wide the words are depends on the program that wrote the file; the arrays always do.
    inputs = there[word].shape[-1] if up in there and word in there and there[word].ndim == 2 else 0
    for key in ('embedding_size', 'input_embedding_size'):
        if inputs and config.get(key, inputs) != inputs:
            faults.append(f'{key} is {config[key]!r}, the words of the file have {inputs} numbers')
    if (act := config.get('hidden_act', 'gelu')) not in activations:
        faults.append(f'hidden_act is {act!r}, wanted one of {", ".join(activations)}')
    eps = config.get('layer_norm_eps', bert.EPS)
    if isinstance(eps, bool) or not isinstance(eps, float | int) or not 0 <= eps < 1:
        faults.append(f'layer_norm_eps is {eps!r}, wanted a small number')
    if (kind := config.get('position_embedding_type', 'absolute')) != 'absolute':
        faults.append(f'position_embedding_type is {kind!r}, wanted absolute')
    if size.layers > _MOST_LAYERS:
        faults.append(f'num_hidden_layers is {size.layers}, wanted at most {_MOST_LAYERS}')
    if size.width % size.heads:
        faults.append(f'hidden_size {size.width} is no multiple of {size.heads} num_attention_heads')
    if cutter.size > words:
        faults.append(f'the vocabulary beside it has {cutter.size} entries, vocab_size is {words}')
    if isinstance(most, bool) or not isinstance(most, int) or not bleurt_text.SPECIAL <= most <= size.positions:
        faults.append(
            f'pairs may have {most!r} tokens (max_seq_length), wanted {bleurt_text.SPECIAL} to {size.positions}'
        )
    if faults:
        raise ValueError(f'{path}: {"; ".join(faults)}')
    model = nnx.eval_shape(
        lambda: bleurt.Bleurt(
            size, words=words, inputs=inputs, activation=activations[act], eps=float(eps), rngs=nnx.Rngs(params=0)
        )
    )
    found = table.load(names, there, _folder.flat(model), origin='BLEURT', where=folder)
    more = (activations[act], size.heads, float(eps), most, cutter.digest)
    label = re.sub(r'[^\w.+-]+', '_', name or folder.resolve().name)
    signature = f'{label}({_folder.digest(found, more)},max={most},{activations[act]},{cutter.kind})'
    return Regressor(_folder.filled(model, found), cutter, most, signature, batch)


def tensorflow(rows) -> tuple[table.Row, ...]:
    """The table of a model of BERT's kind by the names that BERT's code in TensorFlow gives, from Hugging Face's.

    Kernels there are [inputs, outputs] as ours are; the one layer without a scope of its own is BLEURT's.
    """
    found = []
    for ours, theirs, transform in rows:
        module, _, leaf = theirs.rpartition('.')
        name = 'bert/' + module.replace('.layer.', '.layer_').replace('.', '/')
        name = 'dense' if module == 'classifier' else name
        if transform is table.TRANSPOSE:
            leaf, transform = 'kernel', table.SAME
        elif module.endswith('LayerNorm'):
            leaf = {'weight': 'gamma', 'bias': 'beta'}[leaf]
        elif ours.endswith('/embedding'):
            leaf = ''
        found.append((ours, f'{name}/{leaf}'.rstrip('/'), transform))
    return tuple(found)


def _name(names, ours):
    return next(theirs for path, theirs, _ in names if path == ours)


def _text(config, key, where):
    value = config.get(key) or ''
    if not isinstance(value, str):
        raise ValueError(f'{where}: {key} is {value!r}, wanted text')
    return value


def _beside(where, name):
    """The file of this name in the folder of `where`, which says so."""
    if pathlib.PurePath(name).name != name or '\0' in name:
        raise ValueError(f'{where}: {name!r} is no name of a file in its folder')
    return where.parent / name
