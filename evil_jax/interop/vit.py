"""Vision Transformers: Hugging Face's names of their parameters, with or without `vit.` before them.

    --config.model.task.init=hf:FOLDER      google/vit-base-patch16-224, a fine-tuned classifier ...

A classifier is taken as BERT's is (bert.py): where the labels in config.json are our answers, in whatever order. Where
both are the 1,000 classes of ImageNet the order is everybody's, whatever they are called: that of the synsets.

Folders keep the names that transformers had before its version 5 (encoder.layer.3.attention.attention.query); a state
dict of version 5 has its own (layers.3.attention.q_proj). Both are read, the first are written.
"""

import math
import re
from collections.abc import Mapping

import numpy as np

from evil_jax.interop import bert, table, weights


def _unflattened(x):
    side = math.isqrt(len(x) // 3)
    return x.reshape(side, side, 3, -1).transpose(3, 2, 0, 1)


# A convolution that meets every pixel once is a product of patches: [O, 3, h, w] and [h w 3, O].
_PATCH = table.Transform(lambda x: x.transpose(2, 3, 1, 0).reshape(-1, len(x)), _unflattened)
_LAYER = r'encoder.layer.\1'
ENCODER = (
    ('patch/kernel', 'embeddings.patch_embeddings.projection.weight', _PATCH),
    ('patch/bias', 'embeddings.patch_embeddings.projection.bias', table.SAME),
    ('token/embedding', 'embeddings.cls_token', table.FIRST),
    ('position/embedding', 'embeddings.position_embeddings', table.FIRST),
    *table.rows(
        (r'layers/(\d+)/attention_norm', f'{_LAYER}.layernorm_before', table.NORM),
        (r'layers/(\d+)/attention/(query|key|value)', rf'{_LAYER}.attention.attention.\2', table.LINEAR),
        (r'layers/(\d+)/attention/out', f'{_LAYER}.attention.output.dense', table.LINEAR),
        (r'layers/(\d+)/mlp_norm', f'{_LAYER}.layernorm_after', table.NORM),
        (r'layers/(\d+)/mlp/up', f'{_LAYER}.intermediate.dense', table.LINEAR),
        (r'layers/(\d+)/mlp/down', f'{_LAYER}.output.dense', table.LINEAR),
        ('norm', 'layernorm', table.NORM),
    ),
)
_POOLER = table.rows(('pooler', 'pooler.dense', table.LINEAR))
_HEAD = table.rows(('answer', 'classifier', table.LINEAR))
TABLE = ENCODER + _POOLER + _HEAD
# Names of transformers 5 -> those of its files.
_NEW = (
    (r'^vit\.', ''),
    (r'^layers\.(\d+)\.', r'encoder.layer.\1.'),
    (r'\.attention\.q_proj\.', r'.attention.attention.query.'),
    (r'\.attention\.k_proj\.', r'.attention.attention.key.'),
    (r'\.attention\.v_proj\.', r'.attention.attention.value.'),
    (r'\.attention\.o_proj\.', r'.attention.output.dense.'),
    (r'\.mlp\.fc1\.', r'.intermediate.dense.'),
    (r'\.mlp\.fc2\.', r'.output.dense.'),
)
_HEADS = (('answer', 'classifier'), ('pooler', 'pooler'))


def load(path, shapes: Mapping, assets=None, size=None) -> dict:
    """Parameters of `models.vit.Vit` from a Hugging Face folder or a file.

    A classifier or pooler of the file is read where the model has one, and not missed where it has none.

    Args:
      path: see `weights.read`.
      shapes: {our path: something with a shape}.
      assets: `data.tokenizers.Assets`: outputs of a classifier are put into the order of its answers. None: they stay.
      size: `models.vit.Size`; with it the folder's config.json is compared: no array shows the number of heads.

    Returns:
      {our path: array}, float32; with `assets` without the answer head where the file has none that fits.

    Raises:
      ValueError: everything that does not fit, in one message.
    """
    there = table.renamed(weights.read(path), _NEW, path)
    unused = [rf'{theirs}\..*' for ours, theirs in _HEADS if f'{ours}/kernel' not in shapes]
    columns, _ = _classifier(path, there, shapes, assets)
    fresh = ['answer/.*'] if columns is None else []
    unused += [r'classifier\..*'] if columns is None else []
    found = table.load(
        TABLE, there, shapes, ignored=(*unused, 'embeddings.mask_token'), fresh=fresh,
        differing=_config_faults(path, size), origin='ViT', where=path,
    )  # fmt: skip
    return found | {name: x[..., columns] for name, x in found.items() if name.startswith('answer/')}


def why_fresh(path, shapes: Mapping, assets) -> str:
    """Why `load` does not take the classifier of a file, in words; '' where it does, or where there is none."""
    return _classifier(path, table.renamed(weights.read(path), _NEW, path), shapes, assets)[1]


def _classifier(path, there, shapes, assets):
    """(for each of our classes its output in the file, or None where our head stays fresh; why it does)."""
    if 'answer/kernel' not in shapes:
        return None, ''
    width, ours = shapes['answer/kernel'].shape
    if assets is None:
        return np.arange(ours), ''
    if 'classifier.weight' not in there:
        return None, ''
    if (found := there['classifier.weight'].shape) != (ours, width):
        return None, f'the classifier there is {found}, wanted {(ours, width)}'
    if _is_imagenet(assets.answers):
        return np.arange(ours), ''
    return bert.columns(bert.config_labels(path), assets.answers)


def _is_imagenet(answers) -> bool:
    """Whether answers are the classes of ImageNet-1k as everybody counts them: synsets in their order, or numbers."""
    if len(answers) != 1_000:
        return False
    synsets = all(re.fullmatch(r'n\d{8}', answer) for answer in answers) and list(answers) == sorted(answers)
    return synsets or list(answers) == [str(number) for number in range(1_000)]


def save(params: Mapping) -> dict:
    """Hugging Face's names for all parameters: of ViTForImageClassification with an answer head, else of ViTModel."""
    found, prefix = table.save(TABLE, params, where='ViT'), 'vit.' if 'answer/kernel' in params else ''
    return {name if name.startswith('classifier.') else prefix + name: array for name, array in found.items()}


def hf_config(size, labels: int = 0) -> dict:
    """config.json of transformers for a `models.vit.Size`. `labels`: outputs of a classifier; 0 = none."""
    head = {'id2label': {str(n): f'LABEL_{n}' for n in range(labels)}} if labels else {}
    architecture = 'ViTForImageClassification' if labels else 'ViTModel'
    return {'model_type': 'vit', 'architectures': [architecture], **_wanted(size), **head}


def _wanted(size) -> dict:
    return bert.encoder_config(size) | {
        'hidden_act': 'gelu', 'layer_norm_eps': 1e-12, 'qkv_bias': True, 'image_size': size.pixels,
        'patch_size': size.patch, 'num_channels': 3,
    }  # fmt: skip


def _config_faults(path, size) -> list[str]:
    there = weights.find_config(path)
    return [] if size is None or there is None else bert.compared(there, _wanted(size))
