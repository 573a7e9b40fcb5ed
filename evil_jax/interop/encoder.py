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

from evil_jax.interop import _folder, _text_folder, bert, hf_tokenizer, table, weights
from evil_jax.metrics.resources import Unavailable
from evil_jax.models import bert as net

# On a CPU larger batches are slower (measured on 2 cores: 18,000 tokens/s of MiniLM at 1,536, 12,000 at 6,144).
_TOKENS = {'cpu': 1_536}
_MORE_TOKENS = 32_768


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
        for rows, size, count in _text_folder.batches([len(x) for x in ids], tokens, self._tokens.longest):
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
    if lacking := _text_folder.missing(folder):
        raise Unavailable(f'needs {lacking}')
    name, config = _text_folder.read_config(folder)
    kind, shape = _text_folder.KINDS[name], _text_folder.shape(folder, name, config, lambda n: _wrong_layer(layer, n))
    tokens = hf_tokenizer.read(folder, kind.tokens, shape.longest)
    shape.check_words(folder, tokens)
    size = dataclasses.replace(shape.size, layers=layer)
    model = nnx.eval_shape(lambda: _Body(size, **shape.settings, rngs=nnx.Rngs(0)))
    params = _load(folder, kind, model, shape.size.layers, layer)
    before = ' ' if kind.tokens == 'bytes' and prefix_space else ''
    encode = functools.partial(_encode, *nnx.split(_folder.filled(model, params)))
    signature = {
        'model': _text_folder.called(folder),
        'arch': name,
        'weights': _folder.digest(params, (size.heads, shape.eps, shape.first)),
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


def _wrong_layer(layer, layers):
    fine = isinstance(layer, int) and 0 <= layer <= layers
    return '' if fine else f'it has {layers} layers, wanted layer {layer!r} of 0 ... {layers}'


def _load(folder, kind, model, layers, layer):
    """{our path: array} of the file."""
    there = table.renamed(weights.read(folder), (_text_folder.PREFIXES, *bert.OLD), folder)
    # Heads, a pooler and blocks above the layer are of no use; what else begins as the encoder does has to have a row.
    above = '|'.join(map(str, range(layer, layers))) or 'none'
    blocks = r'(?:encoder|transformer)\.layer\.'
    ignored = (rf'(?!embeddings\.|{blocks}).*', rf'{blocks}(?:{above})\..*', r'embeddings\.position_ids')
    return table.load(kind.rows, there, _folder.flat(model), ignored=ignored, origin='its architecture', where=folder)
