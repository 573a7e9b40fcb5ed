"""A natural-language-inference model in a Hugging Face folder: what follows from a premise, of many pairs of texts.

    tell = open_classifier('roberta-large-mnli')
    tell([('Two dogs play.', 'Animals are outside.')])     # [1, 3] float32: P of contradiction, neutral, entailment

RoBERTa, BERT and DistilBERT for sequence classification; both texts are one row of tokens, as transformers makes it.
(Of '<pad>' in a text transformers' RoBERTa does not count the position; here it is a token as any other.)
Which output means which class is read from the folder's config.json and never assumed. Pairs are sorted by length and
cut into batches of about as many tokens; layers are compiled apart, so a new length costs the compilation of one. Of
the last layer only what the first token needs is computed: the classifier reads no other.

Legend: B pairs of a batch, T tokens, D width, A classes.
"""

import functools
import hashlib
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from evil_jax.construction import pairs as pairs_lib
from evil_jax.interop import _folder, _nli_labels, _text_folder, bert, hf_tokenizer, roberta, table, weights
from evil_jax.models import bert as net

DTYPES = ('float32', 'bfloat16')
_ROWS = {'bert': bert.TABLE, 'distilbert': bert.DISTIL, 'roberta': roberta.CLASSIFIER}
_UNUSED = (r'cls\..*', r'lm_head\..*', r'vocab_(transform|layer_norm|projector)\..*', r'embeddings\.position_ids')
_AXES = ('data', 'fsdp')  # of a mesh, over which rows are split
_TOKENS = {'cpu': 576}  # of a batch; RoBERTa-base at 1,536 is a quarter slower on 2 cores: it leaves the caches
_MORE_TOKENS = 32_768


class _Net(net.Encoder):
    """The encoder with its classifier."""

    def __init__(self, size, **settings):
        super().__init__(size, **settings)
        self.head = net.Head(size.width, len(pairs_lib.CLASSES), std=size.std, rngs=settings['rngs'])

    def answer(self, x_BTD, length_B):
        """Logits_BA from what the last layer but one says; here `layers` is the last one alone."""
        return self.head(self.pool_first(self.layers[0].first(x_BTD, length_B)))


class Classifier:
    """`classifier(pairs) -> probabilities [n, 3] float32`, in the order of the pairs and of `labels`.

    Equal pairs are scored once. What a pair gets depends on its company by rounding alone (about 1e-6 in float32).

    Attributes:
      labels: what the columns mean.
      stated: what the model's outputs mean, as its config.json has it.
      signature: model, arch, weights (12 digits of their sha256), labels, tok, longest, dtype: all that decides.
      digest: 12 hex digits of the signature without the folder's name.
      truncated: pairs so far of more tokens than the model reads, whose longer text was cut.
    """

    def __init__(self, net_: '_Parts', tokens: hf_tokenizer.Tokens, *, labels, batch: int, types: int, signature: dict):
        self._net, self._tokens, self._batch, self._types = net_, tokens, batch, types
        self.labels, self.signature, self.truncated = tuple(labels), signature, 0
        self.stated = tuple(labels[net_.order.index(output)] for output in range(len(labels)))
        decides = sorted((key, value) for key, value in signature.items() if key != 'model')
        self.digest = hashlib.sha256(repr(decides).encode()).hexdigest()[:12]

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """See the class. `pairs`: (premise, hypothesis); a text may be empty."""
        distinct = {pair: n for n, pair in enumerate(dict.fromkeys(map(tuple, pairs)))}
        ids, types, cut = self._tokens.pairs(distinct)
        if cut and not self.truncated:
            first = list(distinct)[cut[0]]
            logging.warning(
                'pairs of more than %d tokens are cut, %d so far, for example %r (told once)',
                self._tokens.longest, len(cut), ' / '.join(text[:40] + '...' * (len(text) > 40) for text in first),
            )  # fmt: skip
        self.truncated += len(cut)
        found, waiting = np.zeros((len(ids), len(self.labels)), np.float32), None
        step = (lambda length: 1 if length <= 64 else 4) if self._net.fine else None
        for rows, size, count in _text_folder.batches([len(x) for x in ids], self._batch, self._tokens.longest, step):
            count = -(-count // self._net.ways) * self._net.ways
            ids_BT, type_BT = np.zeros((2, count, size), np.int32)
            length_B = np.ones(count, np.int32)
            for b, row in enumerate(rows):
                length_B[b] = len(ids[row])
                ids_BT[b, : len(ids[row])], type_BT[b, : len(ids[row])] = ids[row], types[row]
            # The next batch is under way while this one is waited for.
            waiting, done = (rows, self._net(ids_BT, type_BT if self._types else None, length_B)), waiting
            _hand_out(found, done)
        _hand_out(found, waiting)
        return found[[distinct[tuple(pair)] for pair in pairs]]


def _hand_out(found, done) -> None:
    if done is not None:
        rows, values_BA = done
        found[rows] = np.asarray(values_BA)[: len(rows)]


class _Parts:
    """The model in parts that are compiled apart: what the first layer reads, a layer, the last one with the head.

    All layers but the last are one program for any length. On a mesh rows are split over its data and fsdp axes.
    """

    def __init__(self, model: _Net, order: Sequence[int], mesh):
        self.fine = jax.default_backend() == 'cpu'  # where a compilation is cheap and copies of weights are not
        model.set_attributes(joined=not self.fine)
        self._layers = [nnx.split(layer) for layer in model.layers[:-1]]
        model.layers = nnx.List(model.layers[-1:])
        self._ends, self.order = nnx.split(model), tuple(order)
        self._rows = mesh and NamedSharding(mesh, PartitionSpec(tuple(axis for axis in _AXES if axis in mesh.shape)))
        self.ways = math.prod(mesh.shape.get(axis, 1) for axis in _AXES) if mesh else 1

    def __call__(self, ids_BT, type_BT, length_B):
        ids_BT, type_BT, length_B = jax.device_put((ids_BT, type_BT, length_B), self._rows)
        x_BTD = _embed(*self._ends, ids_BT, type_BT)
        for graph, state in self._layers:
            x_BTD = _layer(graph, state, x_BTD, length_B)
        return _answer(*self._ends, self.order, x_BTD, length_B)


def _precision(dtype):
    """In float32 a GPU or TPU would else drop more digits than scores may differ in."""
    return jax.default_matmul_precision('highest' if dtype == jnp.float32 else 'default')


@functools.partial(jax.jit, static_argnums=0)
def _embed(graph, state, ids_BT, type_BT):
    return nnx.merge(graph, state).words(ids_BT, type_BT)


@functools.partial(jax.jit, static_argnums=0)
def _layer(graph, state, x_BTD, length_B):
    with _precision(x_BTD.dtype):
        return nnx.merge(graph, state)(x_BTD, length_B)[0]


@functools.partial(jax.jit, static_argnums=(0, 2))
def _answer(graph, state, order, x_BTD, length_B):
    with _precision(x_BTD.dtype):
        return jax.nn.softmax(nnx.merge(graph, state).answer(x_BTD, length_B))[:, jnp.array(order)]


def open_classifier(
    folder, *, labels: Sequence[str] = pairs_lib.CLASSES, dtype: str = 'float32', tokens: int = 0,
    mesh: jax.sharding.Mesh | None = None,
    specs: Callable[[Mapping], Mapping[str, PartitionSpec]] | None = None,
) -> Classifier:  # fmt: skip
    """The classifier of a Hugging Face folder.

    Args:
      folder: config.json, weights (see `weights.read`) and tokeniser (see `hf_tokenizer.read`).
      labels: the three classes in the order that the scores are wanted in.
      dtype: 'float32', or 'bfloat16' for what layers compute; the head and the probabilities are float32.
      tokens: of a batch, padding included, on each device that rows are split over; 0 = what suits the device.
      mesh: rows are split over its axes data and fsdp; None: the first device does everything.
      specs: with a mesh, {our path: something with a shape} -> {our path: PartitionSpec}, such as
        `training.sharding.param_specs` with a table; None: every device has all parameters.

    Raises:
      ValueError: a file is missing, another architecture, a configuration that our model does not have, weights that do
        not fit it, a head of other than three classes, or labels that do not say what they mean.
    """
    folder = pathlib.Path(folder).expanduser()
    if dtype not in DTYPES:
        raise ValueError(f'dtype is {dtype!r}, wanted one of {", ".join(DTYPES)}')
    if lacking := _text_folder.missing(folder):
        raise ValueError(f'scores of pairs of texts need {lacking}')
    name, config = _text_folder.read_config(folder)
    shape = _text_folder.shape(folder, name, config)
    there = table.renamed(weights.read(folder), (_text_folder.PREFIXES, *bert.OLD), folder)
    _nli_labels.check_head(folder, config, there)
    order = _nli_labels.order(folder, config, labels)
    words = hf_tokenizer.read(folder, _text_folder.KINDS[name].tokens, shape.longest)
    shape.check_words(folder, words)
    settings = {**shape.settings, 'dtype': jnp.dtype(dtype)}
    model = nnx.eval_shape(lambda: _Net(shape.size, **settings, rngs=nnx.Rngs(0)))
    shapes = _folder.flat(model)
    ignored = (*_UNUSED, *((r'pooler\..*',) if name == 'roberta' else ()))
    params = table.load(_ROWS[name], there, shapes, ignored=ignored, origin='its architecture', where=folder)
    signature = {
        'model': _text_folder.called(folder),
        'arch': name,
        'weights': _folder.digest(params, (shape.size.heads, shape.eps, shape.first, order)),
        'labels': ','.join(labels),
        'tok': words.kind,
        'longest': str(words.longest),
        'dtype': dtype,
    }
    parts = _Parts(_folder.filled(model, _placed(params, shapes, mesh, specs)), order, mesh)
    batch = (tokens or _TOKENS.get(jax.default_backend(), _MORE_TOKENS)) * parts.ways
    return Classifier(parts, words, labels=labels, batch=batch, types=shape.size.types, signature=signature)


def _placed(params, shapes, mesh, specs):
    """Parameters on the devices of a mesh."""
    if mesh is None:
        return params
    where = specs(shapes) if specs else dict.fromkeys(params, PartitionSpec())
    return {path: jax.device_put(x, NamedSharding(mesh, where[path])) for path, x in params.items()}
