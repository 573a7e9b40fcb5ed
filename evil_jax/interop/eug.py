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
import pickle
import re
from collections.abc import Callable

import numpy as np

from evil_jax import compat

PREFIX = 'eug:'
WTE = 'expl/wte/embedding'
QUIRKS = (1, 2, 3, 4, 5, 6)  # of compat.py: those that a trained model has got used to
_SHOWN = 20  # faults of a kind that a message lists


def _same(x):
    return x


def _third(n: int):
    """GPT-2 keeps query, key and value side by side in one matrix [D, 3 D] and one bias [3 D]."""
    return lambda x: np.split(x, 3, axis=-1)[n] if x.shape[-1] % 3 == 0 else x


# Leaves of a module: (our name, their name, transform). torch.nn.Linear keeps [outputs, inputs], GPT-2's Conv1D and we
# [inputs, outputs].
_TABLE = (('embedding', 'weight', _same),)
_NORM = (('scale', 'weight', _same), ('bias', 'bias', _same))
_LINEAR = (('kernel', 'weight', np.transpose), ('bias', 'bias', _same))
_CONV = (('kernel', 'weight', _same), ('bias', 'bias', _same))
_FUSED = tuple((('kernel', 'weight', _third(n)), ('bias', 'bias', _third(n))) for n in range(3))

_UNITER, _GPT2 = 'encoder.model.uniter', 'decoder.model.transformer'
_LAYER, _BLOCK = rf'{_UNITER}.encoder.layer.\1', rf'{_GPT2}.h.\1'
_MODULES = (
    ('task/text/word', f'{_UNITER}.embeddings.word_embeddings', _TABLE),
    ('task/text/position', f'{_UNITER}.embeddings.position_embeddings', _TABLE),
    ('task/text/type', f'{_UNITER}.embeddings.token_type_embeddings', _TABLE),
    ('task/text/norm', f'{_UNITER}.embeddings.LayerNorm', _NORM),
    ('task/image/feature', f'{_UNITER}.img_embeddings.img_linear', _LINEAR),
    ('task/image/feature_norm', f'{_UNITER}.img_embeddings.img_layer_norm', _NORM),
    ('task/image/location', f'{_UNITER}.img_embeddings.pos_linear', _LINEAR),
    ('task/image/location_norm', f'{_UNITER}.img_embeddings.pos_layer_norm', _NORM),
    ('task/image/norm', f'{_UNITER}.img_embeddings.LayerNorm', _NORM),
    (r'task/layers/(\d+)/attention/(query|key|value)', rf'{_LAYER}.attention.self.\2', _LINEAR),
    (r'task/layers/(\d+)/attention/out', f'{_LAYER}.attention.output.dense', _LINEAR),
    (r'task/layers/(\d+)/attention_norm', f'{_LAYER}.attention.output.LayerNorm', _NORM),
    (r'task/layers/(\d+)/mlp/up', f'{_LAYER}.intermediate.dense', _LINEAR),
    (r'task/layers/(\d+)/mlp/down', f'{_LAYER}.output.dense', _LINEAR),
    (r'task/layers/(\d+)/mlp_norm', f'{_LAYER}.output.LayerNorm', _NORM),
    ('task/pooler', f'{_UNITER}.pooler.dense', _LINEAR),
    ('task/head/up', 'logit_fc.0', _LINEAR),
    ('task/head/norm', 'logit_fc.2', _NORM),
    ('task/head/answer', 'logit_fc.3', _LINEAR),
    ('task/head_vcr/up', 'vcr_fc.0', _LINEAR),
    ('task/head_vcr/norm', 'vcr_fc.2', _NORM),
    ('task/head_vcr/answer', 'vcr_fc.3', _LINEAR),
    ('expl/wte', f'{_GPT2}.wte', _TABLE),
    ('expl/wpe', f'{_GPT2}.wpe', _TABLE),
    (r'expl/layers/(\d+)/attention_norm', f'{_BLOCK}.ln_1', _NORM),
    (r'expl/layers/(\d+)/attention/query', f'{_BLOCK}.attn.c_attn', _FUSED[0]),
    (r'expl/layers/(\d+)/attention/key', f'{_BLOCK}.attn.c_attn', _FUSED[1]),
    (r'expl/layers/(\d+)/attention/value', f'{_BLOCK}.attn.c_attn', _FUSED[2]),
    (r'expl/layers/(\d+)/attention/out', f'{_BLOCK}.attn.c_proj', _CONV),
    (r'expl/layers/(\d+)/mlp_norm', f'{_BLOCK}.ln_2', _NORM),
    (r'expl/layers/(\d+)/mlp/up', f'{_BLOCK}.mlp.c_fc', _CONV),
    (r'expl/layers/(\d+)/mlp/down', f'{_BLOCK}.mlp.c_proj', _CONV),
    ('expl/norm', f'{_GPT2}.ln_f', _NORM),
)
# (our path regex, their name, transform of their array)
TABLE: tuple[tuple[str, str, Callable], ...] = tuple(
    (f'{ours}/{leaf}', f'{theirs}.{name}', transform)
    for ours, theirs, leaves in _MODULES
    for leaf, name, transform in leaves
)
# What else a file has: buffers, the head of the other kind of task, and the output layer, which is `wte` again.
_TIED = 'decoder.model.lm_head.weight'
_IGNORED = (
    r'decoder\.model\.transformer\.h\.\d+\.attn\.(bias|masked_bias)',
    r'encoder\.model\.uniter\.embeddings\.position_ids',
    r'(logit|vcr)_fc\.[023]\.(weight|bias)',
    re.escape(_TIED),
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
    """The arrays of a file by name, in float32; `module.` of DataParallel is taken off.

    Raises:
      ValueError: PyTorch is not installed, or the file is no state dict; names the file.
    """
    try:
        import torch
    except ImportError as error:
        raise ValueError(f'{path}: reading it needs PyTorch: pip install "evil_jax[torch]"') from error
    try:
        # weights_only: nothing in the file is executed.
        found = torch.load(path, map_location='cpu', weights_only=True)
    except (OSError, EOFError, KeyError, TypeError, ValueError, RuntimeError, pickle.UnpicklingError) as error:
        reason = str(error).strip().splitlines() or ['']
        raise ValueError(f'{path}: not a state dict of PyTorch: {type(error).__name__}: {reason[0]}') from error
    if not isinstance(found, dict) or not found:
        raise ValueError(f'{path}: holds {type(found).__name__} of {_size(found)}, wanted a state dict: name -> tensor')
    wrong = next((n for n, x in found.items() if not isinstance(n, str) or not isinstance(x, torch.Tensor)), None)
    if wrong is not None:
        raise ValueError(
            f'{path}: entry {wrong!r} is a {type(found[wrong]).__name__}, wanted a state dict: name -> tensor'
        )
    prefix = 'module.' if all(name.startswith('module.') for name in found) else ''
    return {name.removeprefix(prefix): x.detach().float().numpy() for name, x in found.items()}


def _size(found):
    return f'{len(found)} entries' if hasattr(found, '__len__') else 'no length'


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
    there = read(path)
    found, used, missing, differing = {}, set(), [], []
    for ours, leaf in shapes.items():
        theirs, transform = _counterpart(ours)
        if theirs is None:
            missing.append(f'{ours}: e-UG has nothing that corresponds')
            continue
        used.add(theirs)
        if theirs not in there:
            missing.append(f'{theirs} ({ours})')
            continue
        array, wanted = transform(there[theirs]), tuple(leaf.shape)
        if ours == WTE:
            array, wanted = _padded(array, wanted, tokens)
        if array.shape != wanted:
            differing.append(f'{theirs}: {array.shape} as {ours}, wanted {wanted}')
        elif not np.isfinite(array).all():
            differing.append(f'{theirs}: holds NaN or infinity')
        found[ours] = array
    ignored = (*_IGNORED, *(() if any(p.startswith('expl/') for p in shapes) else (r'decoder\..*',)))
    unexpected = [n for n in sorted(there.keys() - used) if not any(re.fullmatch(pattern, n) for pattern in ignored)]
    words = f'{_GPT2}.wte.weight'
    if {_TIED, words} <= there.keys() and not np.array_equal(there[_TIED], there[words]):
        differing.append(f'{_TIED}: other values than {words}; they are one table in e-UG')
    faults = {'missing': missing, 'unexpected': unexpected, 'differing': differing}
    if any(faults.values()):
        raise ValueError(f'{path} does not fit the model:{_listed(faults)}{_advice(there, shapes, tokens)}')
    return found


def _listed(faults: dict[str, list[str]]) -> str:
    lines = []
    for kind, found in faults.items():
        if found:
            lines += [f'  {len(found)} {kind}:', *(f'    {line}' for line in found[:_SHOWN])]
        if len(found) > _SHOWN:
            lines.append(f'    ... and {len(found) - _SHOWN} more')
    return ''.join(f'\n{line}' for line in lines)


def _counterpart(ours):
    """(their name, transform) for one of our paths; (None, None) if the table has none."""
    for pattern, template, transform in TABLE:
        if match := re.fullmatch(pattern, ours):
            return match.expand(template), transform
    return None, None


def _padded(array, wanted, tokens):
    """The word table of GPT-2 with rows of zeros up to ours, and the shape that it should have: compared are words."""
    if array.shape == (tokens, *wanted[1:]) and tokens <= wanted[0]:
        return np.pad(array, ((0, wanted[0] - tokens), (0, 0))), wanted
    return array, (tokens, *wanted[1:])


def _advice(there, shapes, tokens) -> str:
    """What to do where the vocabularies are others."""
    tables = {
        'word pieces': (f'{_UNITER}.embeddings.word_embeddings.weight', _rows(shapes.get('task/text/word/embedding'))),
        'explanation tokens': (f'{_GPT2}.wte.weight', tokens if WTE in shapes else None),
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
