"""Token vectors of any BERT, DistilBERT or RoBERTa in a Hugging Face folder, for metrics such as BERTScore.

    embed = open_encoder('distilbert-base-uncased', layer=5)
    vectors, ids = embed(['a dog runs'])[0]          # [T, D] float32 and [T], with [CLS] and [SEP]

Only the blocks up to the layer are built and loaded, and of the file's names all of those have to fit. Texts are sorted
by length and cut into batches of about as many tokens each, whose length is one of a few, so few shapes are compiled.
Nothing is downloaded.

Legend: B texts of a batch, T tokens, D width.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import tokenizers
from absl import logging
from flax import nnx

from evil_jax.interop import _folder, bert, hf_tokenizer, table, weights
from evil_jax.metrics.resources import Unavailable
from evil_jax.models import bert as net

# On a CPU larger batches are slower (measured on 2 cores: 18,000 tokens/s of MiniLM at 1,536, 12,000 at 6,144).
_TOKENS = {'cpu': 1_536}
_MORE_TOKENS = 32_768
_WEIGHTS = ('model.safetensors', 'pytorch_model.bin')  # or their shards and an index, see `weights.read`
_NAMES = {'dim': 'hidden_size', 'n_layers': 'num_hidden_layers', 'n_heads': 'num_attention_heads',
          'hidden_dim': 'intermediate_size', 'activation': 'hidden_act'}  # fmt: skip
_FIXED = {'hidden_act': 'gelu', 'position_embedding_type': 'absolute', 'is_decoder': False,
          'add_cross_attention': False}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class _Kind:
    rows: tuple  # names of parameters
    tokens: str  # see hf_tokenizer.read
    eps: float | None  # of the norms; None: config.json says, else 1e-12


_KINDS = {
    'bert': _Kind(bert.ENCODER, 'words', None),
    'distilbert': _Kind(bert.DISTIL, 'words', 1e-12),
    'roberta': _Kind(bert.ENCODER, 'bytes', None),
}


class _Body(net.Encoder):
    """Without the pooler, whose weights the file of a layer in the middle may not even have."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        del self.pooler


class Embedder:
    """`embed(texts) -> [(vectors [T, D] float32, ids [T] int32), ...]`, in the order of the texts.

    Equal texts are embedded once and share their arrays; blanks around a text are dropped.

    Attributes:
      special: ids of [CLS] and [SEP], which stand first and last.
      layer: whose output the vectors are.
      signature: model, weights (12 digits of their sha256), layer, tokeniser and versions.
      truncated: texts so far that had more tokens than the model reads; of those only the beginning counts.
    """

    def __init__(self, encode, tokens: hf_tokenizer.Tokens, *, layer: int, before: str, signature: dict):
        self._encode, self._tokens, self._before = encode, tokens, before
        self.special = (tokens.cls, tokens.sep)
        self.layer, self.signature, self.truncated = layer, signature, 0

    def __call__(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        texts = [text.strip() for text in texts]
        distinct = {text: n for n, text in enumerate(dict.fromkeys(texts))}
        # An empty text has no word that a blank could stand before.
        ids, cut = self._tokens([self._before + text if text else text for text in distinct])
        if cut and not self.truncated:
            text = list(distinct)[cut[0]]
            logging.warning(
                'texts of more than %d tokens are cut, %d so far, for example %r (told once)',
                self._tokens.longest, len(cut), text[:60] + '...' * (len(text) > 60),
            )  # fmt: skip
        self.truncated += len(cut)
        found = self._vectors(ids)
        return [found[distinct[text]] for text in texts]

    def _vectors(self, ids):
        found, waiting = [None] * len(ids), None
        tokens = _TOKENS.get(jax.default_backend(), _MORE_TOKENS)
        for rows, size, count in batches([len(x) for x in ids], tokens, self._tokens.longest):
            ids_BT, length_B = np.zeros((count, size), np.int32), np.ones(count, np.int32)
            for b, row in enumerate(rows):
                ids_BT[b, : len(ids[row])], length_B[b] = ids[row], len(ids[row])
            # The next batch is under way while the arrays of this one are handed out.
            waiting, done = (rows, self._encode(ids_BT, length_B)), waiting
            _hand_out(found, ids, done)
        _hand_out(found, ids, waiting)
        return found


def _hand_out(found, ids, done) -> None:
    if done is None:
        return
    rows, vectors_BTD = done[0], np.asarray(done[1])
    for b, row in enumerate(rows):
        found[row] = vectors_BTD[b, : len(ids[row])], np.array(ids[row], np.int32)


def batches(lengths: Sequence[int], tokens: int, longest: int):
    """Cuts texts into batches, the longest first: yields (their numbers, tokens of a row, rows).

    Args:
      lengths: of the texts.
      tokens: about as many tokens has each batch, padding included; at least one text.
      longest: a row is never longer.
    """
    order = np.argsort(-np.asarray(lengths, np.int64), kind='stable').tolist()
    while order:
        size = min(_round_up(lengths[order[0]]), max(longest, lengths[order[0]]))
        count = max(1, tokens // size)
        yield order[:count], size, count
        order = order[count:]


def _round_up(length: int) -> int:
    """Fine where most texts are, so that little is computed in vain, coarse where few are."""
    step = next((step for most, step in ((32, 4), (64, 8), (128, 16), (256, 32)) if length <= most), 64)
    return -(-length // step) * step


def open_encoder(folder, layer: int = 5, *, prefix_space: bool = True) -> Embedder:
    """The encoder of a Hugging Face folder, up to a layer.

    Args:
      folder: config.json, weights (see `weights.read`) and tokeniser (see `hf_tokenizer.read`).
      layer: whose output the vectors are: 1 is the first block's, 0 is the embeddings.
      prefix_space: put a blank before every text of RoBERTa, as bert-score does with transformers 3 and 4, and so did
        whoever made its baselines. With transformers 5 it asks for the blank in vain.

    Raises:
      Unavailable: no folder, or a file in it is missing.
      ValueError: another architecture, a configuration that our model does not have, or weights that do not fit it.
    """
    if not str(folder):
        raise Unavailable(
            "needs a folder of BERT, DistilBERT or RoBERTa (the paper's: distilbert-base-uncased): set "
            'evaluate.bertscore.encoder'
        )
    folder = pathlib.Path(folder).expanduser()
    if not folder.is_dir():
        raise Unavailable(f'needs the encoder: {folder} is no folder (nothing is downloaded)')
    if not (folder / 'config.json').is_file():
        raise Unavailable(f'needs the encoder: {folder} has no config.json')
    if not any(True for name in _WEIGHTS for _ in folder.glob(f'{name}*')):
        raise Unavailable(f'needs the weights of the encoder: {folder} has neither {" nor ".join(_WEIGHTS)}')
    kind, name, config = _config(folder)
    size, words, layers, eps, first = _size(folder, kind, config, layer)
    tokens = hf_tokenizer.read(folder, kind.tokens, size.positions - first)
    if len(tokens) > words:
        raise ValueError(f'{folder}: the tokeniser has {len(tokens)} entries, the model {words} words')
    model = nnx.eval_shape(lambda: _Body(size, words=words, first=first, eps=eps, rngs=nnx.Rngs(0)))
    params = _load(folder, kind, model, layers, layer)
    before = ' ' if kind.tokens == 'bytes' and prefix_space else ''
    encode = functools.partial(_encode, *nnx.split(_folder.filled(model, params)))
    signature = {
        'model': _name(folder.absolute()),
        'arch': name,
        'weights': _folder.digest(params, (size.heads, eps, first)),
        'layer': str(layer),
        'tok': tokens.kind + '+blank' * bool(before),
        'longest': str(tokens.longest),
        'version': f'tokenizers-{tokenizers.__version__}+jax-{jax.__version__}',
    }
    return Embedder(encode, tokens, layer=layer, before=before, signature=signature)


@functools.partial(jax.jit, static_argnums=0)
def _encode(graph, state, ids_BT, length_B):
    with jax.default_matmul_precision('highest'):  # else a GPU or TPU drops more digits than scores may differ in
        return nnx.merge(graph, state).encode(ids_BT, None, length_B)[0].astype(jnp.float32)


def _name(folder) -> str:
    """What a folder is called; in Hugging Face's cache (models--NAME/snapshots/HASH) that is further up."""
    cached = folder.parent.name == 'snapshots' and folder.parent.parent.name.startswith('models--')
    name = folder.parent.parent.name.removeprefix('models--').replace('--', '/') if cached else folder.name
    return name.replace('|', '_')  # which separates the parts of a signature


def _config(folder):
    """(kind, its name, config.json by the names that BERT uses)."""
    found = weights.read_config(folder)
    name = found.get('model_type')
    if name is None:  # folders of the first years
        architecture = str((found.get('architectures') or [''])[0]).lower()
        name = next((n for n in ('distilbert', 'roberta', 'bert') if architecture.startswith(n)), architecture or None)
    if name not in _KINDS:
        raise ValueError(f'{folder}: config.json is of a {name!r}, wanted one of {", ".join(_KINDS)}')
    return _KINDS[name], name, {_NAMES.get(key, key): value for key, value in found.items()}


def _size(folder, kind, config, layer):
    """(size of the body, words, layers of the file, eps, position of the first token)."""
    faults = bert.compared(config, _FIXED)
    eps = kind.eps or config.get('layer_norm_eps', 1e-12)
    if not isinstance(eps, float) or not 0 < eps < 1:
        faults.append(f'config.json: layer_norm_eps is {eps!r}, wanted a small number')
    number = lambda key: _folder.number(config, key, faults)
    width, heads, layers, words, hidden, positions = map(number, (
        'hidden_size', 'num_attention_heads', 'num_hidden_layers', 'vocab_size', 'intermediate_size',
        'max_position_embeddings',
    ))  # fmt: skip
    types = 0 if kind is _KINDS['distilbert'] else number('type_vocab_size')
    if width % heads:
        faults.append(f'config.json: hidden_size {width} is not a multiple of {heads} heads')
    if not isinstance(layer, int) or not 0 <= layer <= layers:
        faults.append(f'it has {layers} layers, wanted layer {layer!r} of 0 ... {layers}')
    if faults:
        raise ValueError(f'{folder}: {"; ".join(faults)}')
    # RoBERTa's positions stand behind that of its padding.
    first = config.get('pad_token_id', 1) + 1 if kind.tokens == 'bytes' else 0
    size = net.Size(layers=layer, width=width, heads=heads, hidden=hidden, positions=positions, types=types)
    return size, words, layers, eps, first


def _load(folder, kind, model, layers, layer):
    """{our path: array} of the file."""
    prefixes = (r'^(bert|distilbert|roberta)\.', '')
    there = table.renamed(weights.read(folder), (prefixes, *bert.OLD), folder)
    # Heads, a pooler and blocks above the layer are of no use; what else begins as the encoder does has to have a row.
    above = '|'.join(map(str, range(layer, layers))) or 'none'
    blocks = r'(?:encoder|transformer)\.layer\.'
    ignored = (rf'(?!embeddings\.|{blocks}).*', rf'{blocks}(?:{above})\..*', r'embeddings\.position_ids')
    return table.load(kind.rows, there, _folder.flat(model), ignored=ignored, origin='its architecture', where=folder)
