"""GPT-2 and its family (distilgpt2, medium ...): Hugging Face's names, with or without `transformer.` before them.

    --config.model.expl.init=hf:FOLDER      gpt2, or what --mode=export wrote

A published file has 50,257 tokens; our 63 markers and four type rows behind them stay fresh then. A file may also have
the markers (50,320 rows), or the type rows as well (50,324): then these are taken. Rows of padding are no file's.

Saved are as many rows as take part in the softmax. Under compat='fixed' these are 50,324, and `vocab_size` counts the
type rows, so that GPT2LMHeadModel(input_ids, token_type_ids=...) with the ids 50320 ... 50323 computes what we do;
under quirk 2 (types are the first four words) they are 50,320.
"""

from collections.abc import Mapping

import numpy as np

from evil_jax.data import tokenizers
from evil_jax.interop import bert, table, vocabulary, weights

_FUSED = {name: tuple((leaf, theirs, table.THIRD(n)) for leaf, theirs in (('kernel', 'weight'), ('bias', 'bias')))
          for n, name in enumerate(('query', 'key', 'value'))}  # fmt: skip
TABLE = table.rows(
    ('wte', 'wte', table.EMBEDDING),
    ('wpe', 'wpe', table.EMBEDDING),
    (r'layers/(\d+)/attention_norm', r'h.\1.ln_1', table.NORM),
    *((rf'layers/(\d+)/attention/{name}', r'h.\1.attn.c_attn', leaves) for name, leaves in _FUSED.items()),
    (r'layers/(\d+)/attention/out', r'h.\1.attn.c_proj', table.CONV1D),
    (r'layers/(\d+)/mlp_norm', r'h.\1.ln_2', table.NORM),
    (r'layers/(\d+)/mlp/up', r'h.\1.mlp.c_fc', table.CONV1D),
    (r'layers/(\d+)/mlp/down', r'h.\1.mlp.c_proj', table.CONV1D),
    ('norm', 'ln_f', table.NORM),
)
WTE = 'wte/embedding'
BUFFERS = r'h\.\d+\.attn\.(bias|masked_bias)'  # causal masks that old versions kept in their files


def load(path, shapes: Mapping, assets, size=None) -> dict[str, np.ndarray]:
    """M_E's parameters from a Hugging Face folder or a file.

    Args:
      path: see `weights.read`.
      shapes: {our path: something with a shape}.
      assets: `data.tokenizers.Assets`: its explanation tokens have to be those of the file.
      size: `models.gpt2.Size`; with it a folder's config.json is compared, whose number of heads no array shows.

    Returns:
      {our path: array}. The word table has as many rows as the file: ours has more, and the others stay fresh.

    Raises:
      ValueError: everything that does not fit, in one message.
    """
    there = table.renamed(weights.read(path), ((r'^transformer\.', ''),), path)
    expl = assets.expl
    plain, known = len(expl.vocabulary), [len(expl.vocabulary), expl.size, expl.rows]
    rows = len(there['wte.weight']) if 'wte.weight' in there and there['wte.weight'].ndim else plain
    words = np.broadcast_to(np.float32(0), (rows if rows in known else plain, *shapes[WTE].shape[1:]))
    advice = '' if rows in known else (
        f'\n  The vocabularies differ: {rows} tokens in the file; the data set has {plain}, {expl.size} with its '
        f'{len(tokenizers.SPECIALS)} markers, {expl.rows} with type rows. Build it with the tokens of the file: '
        'data.expl_vocab, the folder of the same model'
    )  # fmt: skip
    return table.load(
        TABLE, there, {**shapes, WTE: words}, ignored=(BUFFERS,), tied=(('lm_head.weight', 'wte.weight'),),
        differing=[*_config_faults(path, size), *vocabulary.expl_faults(path, expl)],
        advice=advice, origin='GPT-2', where=path,
    )  # fmt: skip


def _config_faults(path, size) -> list[str]:
    there = weights.find_config(path)
    if size is None or there is None:
        return []
    wanted = hf_config(size, 0)
    wanted = {key: wanted[key] for key in ('model_type', 'n_layer', 'n_embd', 'n_head', 'n_positions', *_FIXED)}
    return bert.compared({'n_positions': there.get('n_ctx', size.positions), **there}, wanted)


# What our GPT-2 has no setting for; transformers' default values where a file does not say.
_FIXED = {
    'activation_function': 'gelu_new',
    'layer_norm_epsilon': 1e-5,
    'scale_attn_weights': True,
    'scale_attn_by_inverse_layer_idx': False,
    'add_cross_attention': False,
    'tie_word_embeddings': True,
}


def save(params: Mapping, rows: int, prefix: str = 'transformer.') -> dict[str, np.ndarray]:
    """GPT2LMHeadModel's names for M_E's parameters; its output layer is the word table, and is not stored.

    Args:
      params: {our path: array}.
      rows: of the word table that are no padding: `models.gpt2.Gpt2.rows`.
      prefix: '' gives GPT2Model's names.
    """
    cut = {path: np.asarray(x)[:rows] if path == WTE else x for path, x in params.items()}
    if len(cut.get(WTE, ())) != rows:
        raise ValueError(f'the word table has {len(cut.get(WTE, ()))} rows, wanted at least {rows}')
    return table.save(table.prefixed(TABLE, theirs=prefix), cut, where='GPT-2')


def hf_config(size, rows: int, end_of_text: int | None = None) -> dict:
    """config.json of transformers for a `models.gpt2.Size` and as many rows as `save` was given."""
    return {
        'model_type': 'gpt2',
        'architectures': ['GPT2LMHeadModel'],
        'vocab_size': rows,
        'n_layer': size.layers,
        'n_embd': size.width,
        'n_head': size.heads,
        'n_positions': size.positions,
        'bos_token_id': end_of_text,
        'eos_token_id': end_of_text,
        **_FIXED,
    }
