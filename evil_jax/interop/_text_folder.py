"""What readers of texts share whose model is a BERT, DistilBERT or RoBERTa in a Hugging Face folder: what config.json
says, which files there are, and batches of texts of many lengths.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from evil_jax.interop import _folder, bert, hf_tokenizer, weights
from evil_jax.models import bert as net

WEIGHTS = ('model.safetensors', 'pytorch_model.bin')  # or their shards and an index, see `weights.read`
PREFIXES = (r'^(bert|distilbert|roberta)\.', '')  # of names of parameters, in models with a head
_NAMES = {'dim': 'hidden_size', 'n_layers': 'num_hidden_layers', 'n_heads': 'num_attention_heads',
          'hidden_dim': 'intermediate_size', 'activation': 'hidden_act'}  # fmt: skip
_FIXED = {'hidden_act': 'gelu', 'position_embedding_type': 'absolute', 'is_decoder': False,
          'add_cross_attention': False}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Kind:
    """An architecture.

    Attributes:
      rows: names of the parameters of its encoder.
      tokens: see `hf_tokenizer.read`.
      eps: of the norms; None: config.json says, else 1e-12.
    """

    rows: tuple
    tokens: str
    eps: float | None


KINDS = {
    'bert': Kind(bert.ENCODER, 'words', None),
    'distilbert': Kind(bert.DISTIL, 'words', 1e-12),
    'roberta': Kind(bert.ENCODER, 'bytes', None),
}


@dataclasses.dataclass(frozen=True)
class Shape:
    """Numbers of a folder's encoder.

    Attributes:
      size: of our model; its layers are those of the file.
      words: rows of the word table.
      eps: of the norms.
      first: position of the first token: RoBERTa's stand behind that of its padding.
    """

    size: net.Size
    words: int
    eps: float
    first: int

    @property
    def longest(self) -> int:
        """Most tokens of a row."""
        return self.size.positions - self.first

    @property
    def settings(self) -> dict:
        """Arguments of `models.bert.Encoder` beside its size."""
        return {'words': self.words, 'eps': self.eps, 'first': self.first}

    def check_words(self, folder, tokens: hf_tokenizer.Tokens) -> None:
        """Raises ValueError where the tokeniser has words that the model has not."""
        if len(tokens) > self.words:
            raise ValueError(f'{folder}: the tokeniser has {len(tokens)} entries, the model {self.words} words')


def missing(folder: pathlib.Path) -> str:
    """What a folder lacks, in words; '' = it has a config.json and weights."""
    if not folder.is_dir():
        return f'the encoder: {folder} is no folder (nothing is downloaded)'
    if not (folder / 'config.json').is_file():
        return f'the encoder: {folder} has no config.json'
    if not any(True for name in WEIGHTS for _ in folder.glob(f'{name}*')):
        return f'the weights of the encoder: {folder} has neither {" nor ".join(WEIGHTS)}'
    return ''


def called(folder: pathlib.Path) -> str:
    """What a folder is called; in Hugging Face's cache (models--NAME/snapshots/HASH) that is further up."""
    folder = folder.absolute()
    cached = folder.parent.name == 'snapshots' and folder.parent.parent.name.startswith('models--')
    name = folder.parent.parent.name.removeprefix('models--').replace('--', '/') if cached else folder.name
    return name.replace('|', '_')  # which separates the parts of a signature


def read_config(folder: pathlib.Path) -> tuple[str, dict]:
    """(key of KINDS, config.json by the names that BERT uses).

    Raises:
      ValueError: another architecture.
    """
    found = weights.read_config(folder)
    name = found.get('model_type')
    if name is None:  # folders of the first years
        architecture = str((found.get('architectures') or [''])[0]).lower()
        name = next((n for n in ('distilbert', 'roberta', 'bert') if architecture.startswith(n)), architecture or None)
    if name not in KINDS:
        raise ValueError(f'{folder}: config.json is of a {name!r}, wanted one of {", ".join(KINDS)}')
    return name, {_NAMES.get(key, key): value for key, value in found.items()}


def shape(folder: pathlib.Path, name: str, config: Mapping, check: Callable[[int], str] = lambda layers: '') -> Shape:
    """The numbers in a config.json.

    Args:
      name, config: of `read_config`.
      check: what is wrong with a number of layers, in words; '' = nothing.

    Raises:
      ValueError: a configuration that our model does not have; tells everything that is wrong.
    """
    kind, faults = KINDS[name], bert.compared(config, _FIXED)
    eps = kind.eps or config.get('layer_norm_eps', 1e-12)
    if not isinstance(eps, float) or not 0 < eps < 1:
        faults.append(f'config.json: layer_norm_eps is {eps!r}, wanted a small number')
    number = lambda key: _folder.number(config, key, faults)
    width, heads, layers, words, hidden, positions = map(number, (
        'hidden_size', 'num_attention_heads', 'num_hidden_layers', 'vocab_size', 'intermediate_size',
        'max_position_embeddings',
    ))  # fmt: skip
    types = 0 if name == 'distilbert' else number('type_vocab_size')
    if width % heads:
        faults.append(f'config.json: hidden_size {width} is not a multiple of {heads} heads')
    faults += [fault for fault in [check(layers)] if fault]
    if faults:
        raise ValueError(f'{folder}: {"; ".join(faults)}')
    first = config.get('pad_token_id', 1) + 1 if kind.tokens == 'bytes' else 0
    size = net.Size(
        layers=layers, width=width, heads=heads, hidden=hidden, positions=positions, types=types,
        pool='tanh' if types else 'relu',
    )  # fmt: skip
    return Shape(size, words, eps, first)


def batches(
    lengths: Sequence[int], tokens: int, longest: int, step: Callable[[int], int] | None = None
) -> Iterator[tuple[list[int], int, int]]:
    """Cuts texts into batches, the longest first: yields (their numbers, tokens of a row, rows).

    Args:
      lengths: of the texts.
      tokens: about as many tokens has each batch, padding included; at least one text.
      longest: a row is never longer.
      step: of what number the tokens of a row are a multiple, by the length of the longest text; None: `coarse`.
    """
    step = step or coarse
    order = np.argsort(-np.asarray(lengths, np.int64), kind='stable').tolist()
    while order:
        length = lengths[order[0]]
        size = min(-(-length // step(length)) * step(length), max(longest, length))
        count = max(1, tokens // size)
        yield order[:count], size, count
        order = order[count:]


def coarse(length: int) -> int:
    """Fine where most texts are, so that little is computed in vain, coarse where few are."""
    return next((step for most, step in ((32, 4), (64, 8), (128, 16), (256, 32)) if length <= most), 64)
