"""UNITER's published checkpoints (ChenRocks/UNITER), or BERT's, as parameters to begin with.

    --config.model.task.init=torch:uniter-base.pt                  for e-SNLI-VE and VQA-X, as e-UG
    --config.model.task.init=torch:uniter-base-vcr_2nd_stage.pt    for VCR
    --config.model.task.init=hf:bert-base-cased                    words and layers; the image embedding stays fresh

The word pieces are bert-base-cased's 28,996; the VCR file has 81 rows behind them, for people and things, which are cut
off. Types are 0 question, 1 image, and in the VCR file 2 answer, 3 rationale, which no model of ours has. A file with
two types, for a model that needs the third, gives it the values of the first: so UNITER's own VCR stage began.

Heads of pre-training and the vector of masked regions have no use here; our answer heads stay fresh.
"""

from collections.abc import Mapping

import numpy as np
from absl import logging

from evil_jax.interop import bert, table, vocabulary, weights

IMAGE = table.rows(
    ('image/feature', 'img_embeddings.img_linear', table.LINEAR),
    ('image/feature_norm', 'img_embeddings.img_layer_norm', table.NORM),
    ('image/location', 'img_embeddings.pos_linear', table.LINEAR),
    ('image/location_norm', 'img_embeddings.pos_layer_norm', table.NORM),
    ('image/norm', 'img_embeddings.LayerNorm', table.NORM),
)
ENCODER = bert.ENCODER + IMAGE + bert.POOLER
# UNITER's own checkpoints have other heads than e-UG, whose names these are.
HEADS = table.rows(
    ('head/up', 'logit_fc.0', table.LINEAR),
    ('head/norm', 'logit_fc.2', table.NORM),
    ('head/answer', 'logit_fc.3', table.LINEAR),
    ('head_vcr/up', 'vcr_fc.0', table.LINEAR),
    ('head_vcr/norm', 'vcr_fc.2', table.NORM),
    ('head_vcr/answer', 'vcr_fc.3', table.LINEAR),
)
TABLE = table.prefixed(ENCODER, theirs='uniter.') + HEADS
VCR_ROWS = 81  # behind the word pieces of uniter-base-vcr_2nd_stage.pt
_WORD, _TYPE = 'embeddings.word_embeddings.weight', 'embeddings.token_type_embeddings.weight'
_CASED = 28_996
_SPECIAL = {'pad': 0, 'unk': 100, 'cls': 101, 'sep': 102}  # ids in bert-base-cased
_PRETRAINING = (
    r'cls\.predictions\.(bias|decoder\.weight|transform\.(dense|LayerNorm)\.(weight|bias))',
    r'feat_regress\.(weight|bias|net\.[02]\.(weight|bias))',
    r'region_classifier\.net\.[023]\.(weight|bias)',
    r'itm_output\.(weight|bias)',
    r'img_embeddings\.mask_embedding\.weight',
    r'embeddings\.position_ids',
)
_BERT_UNUSED = (r'cls\..*', r'classifier\..*', r'embeddings\.position_ids')


def load(path, shapes: Mapping, assets, size=None) -> dict[str, np.ndarray]:
    """M_T's parameters, all but the answer head, from a checkpoint of UNITER or of BERT.

    Args:
      path: a file or a Hugging Face folder, see `weights.read`.
      shapes: {our path: something with a shape}.
      assets: `data.tokenizers.Assets`: its word pieces have to be those of the file.
      size: `models.uniter.Size`; with it a folder's config.json is compared, whose number of heads no array shows.

    Returns:
      {our path: array}; from BERT without `image/`.

    Raises:
      ValueError: everything that does not fit, in one message.
    """
    there = table.renamed(weights.read(path), ((r'^(uniter|bert)\.', ''), *bert.OLD), path)
    seeing = any(name.startswith('img_embeddings.') for name in there)
    there = _cut(there, shapes, len(assets.word), seeing)
    fresh = ('head/.*', 'head_vcr/.*') if seeing else ('head/.*', 'head_vcr/.*', 'image/.*')
    return table.load(
        ENCODER, there, shapes, ignored=_PRETRAINING if seeing else _BERT_UNUSED, fresh=fresh,
        differing=[
            *bert.config_faults(path, size, bert.EPS), *vocabulary.word_faults(path, assets.word),
            *_cased_faults(assets.word),
        ],
        advice=_advice(there, assets), origin='UNITER' if seeing else 'BERT', where=path,
    )  # fmt: skip


def _cut(there, shapes, words, seeing):
    """Tables with as many rows as ours where the file's are known to have more, or one type less."""
    there = dict(there)
    if seeing and _WORD in there and there[_WORD].ndim and len(there[_WORD]) == words + VCR_ROWS:
        there[_WORD] = there[_WORD][:words]
    wanted, types = shapes['text/type/embedding'].shape[0], there.get(_TYPE)
    if types is not None and types.ndim == 2:
        if len(types) == 2 and wanted == 3:
            logging.info('token type 2 begins as type 0')
            types = types[[0, 1, 0]]
        there[_TYPE] = types[:wanted] if len(types) <= 4 else types
    return there


def _cased_faults(word):
    """As many word pieces as bert-base-cased has, but others: a file shows only their number."""
    found = {name: getattr(word, name) for name in _SPECIAL}
    if len(word) != _CASED or found == _SPECIAL:
        return []
    return [f'ids of special word pieces are {found} in data.word_vocab, {_SPECIAL} in bert-base-cased']


def _advice(there, assets) -> str:
    told = bert.advice(there, assets)
    return told and f'{told} (of UNITER: bert-base-cased, {_CASED} of them)'


def save(params: Mapping) -> dict[str, np.ndarray]:
    """UNITER's names for M_T's parameters, `uniter.` before those of the encoder; answer heads as e-UG calls them."""
    return table.save(TABLE, params, where='UNITER')
