"""Checkpoints of the published e-UG code (maximek3/e-ViL: `best_task.pth`, `LAST.pth`, ...) as our parameters.

    --config.compat=original --config.decode.checkpoint=eug:LAST.pth     answer and explain with it
    --config.train.init=eug:LAST.pth                                     start training from it

The names are those of its modules: `encoder` is UNITER, `logit_fc` and `vcr_fc` are the two answer heads, of which
every file has both, `decoder` is GPT-2. The file holds neither vocabularies nor answers. They have to be what the code
read: BERT's cased word pieces (28,996), GPT-2's tokens with 63 markers (50,320), for VQA-X the 3,129 answers in
LXMERT's order, for e-SNLI-VE contradiction, neutral, entailment.

Under compat='original' outputs are those of the published code in float32, but for what stands before the model:
regions of a TSV are kept in float16 in our feature store, and sides of boxes are differences of their corners
(data/features/locations.py).
"""

import pathlib

import numpy as np

from evil_jax import compat
from evil_jax.interop import gpt2, table, uniter, weights

PREFIX = 'eug:'
WTE = 'expl/wte/embedding'
QUIRKS = (1, 2, 3, 4, 5, 6)  # of compat.py: those that a trained model has got used to

_UNITER, _GPT2 = 'encoder.model.uniter.', 'decoder.model.transformer.'
TABLE = (
    *table.prefixed(uniter.ENCODER, 'task/', _UNITER),
    *table.prefixed(uniter.HEADS, 'task/'),
    *table.prefixed(gpt2.TABLE, 'expl/', _GPT2),
)
# What else a file has: buffers, the head of the other kind of task, and the output layer, which is `wte` again.
_WORDS, _TIED = f'{_GPT2}wte.weight', 'decoder.model.lm_head.weight'
_IGNORED = (
    rf'decoder\.model\.transformer\.{gpt2.BUFFERS}',
    r'encoder\.model\.uniter\.embeddings\.position_ids',
    r'(logit|vcr)_fc\.[023]\.(weight|bias)',
)


def named(name: str) -> pathlib.Path | None:
    """The file that a setting 'eug:PATH' names; None for a setting of another kind.

    Raises:
      ValueError: there is no such file.
    """
    if not name.startswith(PREFIX):
        return None
    path = pathlib.Path(name.removeprefix(PREFIX)).absolute()
    if not path.is_file():
        raise ValueError(f'{name}: {path} is no file; wanted a checkpoint of the published e-UG code, such as LAST.pth')
    return path


def check(config) -> None:
    """Refuses settings with which a checkpoint would silently see what it never saw.

    Raises:
      ValueError: names what is missing.
    """
    faults = [f'quirk {n}: {compat.QUIRKS[n]}' for n in QUIRKS if not compat.has(config, n)]
    if faults:
        faults.append(f'config.compat is {config.compat!r}, wanted {compat.ORIGINAL!r}')
    elif config.data.choices and config.compat != compat.ORIGINAL:
        faults.append(f'config.compat is {config.compat!r}, wanted {compat.ORIGINAL!r}: pairs are cut in another way')
    if config.data.choices and config.data.tags != 'det':
        faults.append(f"config.data.tags is {config.data.tags!r}, wanted 'det'")
    if config.data.choices and config.data.tag_regions:
        faults.append('config.data.tag_regions is True, wanted False')
    if faults:
        raise ValueError(
            'a checkpoint of the published e-UG code works only as it was trained:\n  ' + '\n  '.join(faults)
        )


def read(path) -> dict[str, np.ndarray]:
    """The arrays of a file by name; `module.` of DataParallel is taken off.

    Raises:
      ValueError: PyTorch is not installed, or the file is no state dict; names the file.
    """
    return weights.read_torch(path, wrapped=False)  # the published code writes a state dict and nothing else


def load(path, shapes: dict, tokens: int) -> dict[str, np.ndarray]:
    """Our parameters from a file, complete.

    Args:
      path: the .pth file.
      shapes: {our path: something with a shape}, of the whole model; one without M_E takes none of GPT-2.
      tokens: size of M_E's vocabulary with its markers. Rows of our word table beyond it are zero: the file has none.

    Returns:
      {our path: array}, float32.

    Raises:
      ValueError: no such file (see `read`), or names and shapes differ: all that do are in the message.
    """
    there, wanted = read(path), dict(shapes)
    if WTE in shapes:  # compared are words: ours has padding behind them
        wanted[WTE] = np.broadcast_to(np.float32(0), (tokens, *shapes[WTE].shape[1:]))
    found = table.load(
        TABLE, there, wanted, ignored=(*_IGNORED, *(() if WTE in shapes else (r'decoder\..*',))),
        tied=((_TIED, _WORDS),) if WTE in shapes else (), advice=_advice(there, shapes, tokens), origin='e-UG',
        where=path,
    )  # fmt: skip
    if WTE in found:
        found[WTE] = np.pad(found[WTE], ((0, shapes[WTE].shape[0] - tokens), (0, 0)))
    return found


def _advice(there, shapes, tokens) -> str:
    """What to do where the vocabularies are others."""
    tables = {
        'word pieces': (f'{_UNITER}embeddings.word_embeddings.weight', _rows(shapes.get('task/text/word/embedding'))),
        'explanation tokens': (_WORDS, tokens if WTE in shapes else None),
        'answers': ('logit_fc.3.weight', _rows(shapes.get('task/head/answer/bias'))),
    }
    others = [
        f'{len(there[name])} {what} in the file, {ours} in the data set'
        for what, (name, ours) in tables.items()
        if name in there and ours is not None and there[name].ndim and len(there[name]) != ours
    ]
    if not others:
        return ''
    return (
        f'\n  The vocabularies differ: {"; ".join(others)}. Build the data set with those of e-UG: data.word_vocab of '
        "bert-base-cased, data.expl_vocab of gpt2, data.answers LXMERT's trainval_label2ans.json for VQA-X"
    )


def _rows(leaf) -> int | None:
    return None if leaf is None else leaf.shape[0]
