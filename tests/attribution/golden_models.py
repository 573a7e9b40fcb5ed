"""The small nets behind the golden arrays of the reference code, as models of ours in float64 (needs jax_enable_x64).

`arrays` holds the golden arrays by the names of the file; data/attribution/ORIGINS.md says where they are from.
"""

import ast
import re

import jax.numpy as jnp
import numpy as np
from flax import nnx

from evil_jax.models import bert as bert_net
from evil_jax.models import vit as vit_net

_BLOCK = {
    'norm1.weight': 'attention_norm/scale', 'norm1.bias': 'attention_norm/bias',
    'attn.proj.weight': 'attention/out/kernel', 'attn.proj.bias': 'attention/out/bias',
    'norm2.weight': 'mlp_norm/scale', 'norm2.bias': 'mlp_norm/bias',
    'mlp.fc1.weight': 'mlp/up/kernel', 'mlp.fc1.bias': 'mlp/up/bias',
    'mlp.fc2.weight': 'mlp/down/kernel', 'mlp.fc2.bias': 'mlp/down/bias',
}  # fmt: skip
_VIT = {
    'patch_embed.proj.bias': 'patch/bias', 'cls_token': 'token/embedding', 'pos_embed': 'position/embedding',
    'norm.weight': 'norm/scale', 'norm.bias': 'norm/bias', 'head.weight': 'answer/kernel', 'head.bias': 'answer/bias',
}  # fmt: skip
_BERT = (  # of the names without `bert.`
    (r'embeddings\.(word|position)_embeddings\.weight', r'text/\1/embedding'),
    (r'embeddings\.token_type_embeddings\.weight', 'text/type/embedding'),
    (r'embeddings\.LayerNorm\.(\w+)', r'text/norm/\1'),
    (r'encoder\.layer\.(\d+)\.attention\.self\.(\w+)\.(\w+)', r'layers/\1/attention/\2/\3'),
    (r'encoder\.layer\.(\d+)\.attention\.output\.dense\.(\w+)', r'layers/\1/attention/out/\2'),
    (r'encoder\.layer\.(\d+)\.attention\.output\.LayerNorm\.(\w+)', r'layers/\1/attention_norm/\2'),
    (r'encoder\.layer\.(\d+)\.intermediate\.dense\.(\w+)', r'layers/\1/mlp/up/\2'),
    (r'encoder\.layer\.(\d+)\.output\.dense\.(\w+)', r'layers/\1/mlp/down/\2'),
    (r'encoder\.layer\.(\d+)\.output\.LayerNorm\.(\w+)', r'layers/\1/mlp_norm/\2'),
    (r'pooler\.dense\.(\w+)', r'pooler/\1'),
    (r'classifier\.(\w+)', r'head/answer/\1'),
)


def vit_model(weights, *, final_eps: float) -> vit_net.Vit:
    """A Vit of timm's names. The reference's relevance model has 1e-5 in its last norm, its other one 1e-6."""
    width, _, patch, _ = weights['patch_embed.proj.weight'].shape
    depth = 1 + max(int(name.split('.')[1]) for name in weights if name.startswith('blocks.'))
    cells = round((weights['pos_embed'].shape[1] - 1) ** 0.5)
    size = vit_net.Size(depth, width, 4, len(weights['blocks.0.mlp.fc1.bias']), patch, cells * patch)
    answers = len(weights['head.bias'])
    make = lambda: vit_net.Vit(
        size, answers=answers, eps=1e-6, final_eps=final_eps, dtype=jnp.float64, rngs=nnx.Rngs(params=0)
    )
    found = {ours: weights[theirs] for theirs, ours in _VIT.items()}
    found['patch/kernel'] = weights['patch_embed.proj.weight'].transpose(2, 3, 1, 0).reshape(-1, width)
    found['answer/kernel'] = found['answer/kernel'].T
    for name in ('token/embedding', 'position/embedding'):
        found[name] = found[name][0]
    for layer in range(depth):
        of = lambda name, layer=layer: weights[f'blocks.{layer}.{name}']
        for theirs, ours in _BLOCK.items():
            found[f'layers/{layer}/{ours}'] = of(theirs).T
        for leaf, theirs in (('kernel', 'weight'), ('bias', 'bias')):
            for name, part in zip(('query', 'key', 'value'), np.split(of(f'attn.qkv.{theirs}'), 3)):
                found[f'layers/{layer}/attention/{name}/{leaf}'] = part.T
    return _filled(make, found)


def bert_model(weights, config: dict) -> bert_net.Bert:
    """A Bert of Hugging Face's names."""
    size = bert_net.Size(
        config['num_hidden_layers'], config['hidden_size'], config['num_attention_heads'], config['intermediate_size'],
        config['max_position_embeddings'],
    )  # fmt: skip
    answers, words = len(weights['classifier.bias']), config['vocab_size']
    make = lambda: bert_net.Bert(
        size, words=words, answers=answers, eps=config['layer_norm_eps'], dtype=jnp.float64, rngs=nnx.Rngs(params=0)
    )
    found = {}
    for name, array in weights.items():
        name = name.removeprefix('bert.')
        ours = [re.sub(theirs, ours, name) for theirs, ours in _BERT if re.fullmatch(theirs, name)]
        if name != 'embeddings.position_ids':
            path = ours[0].replace('weight', 'scale' if 'norm/' in ours[0] else 'kernel')
            found[path] = array.T if path.endswith('kernel') else array
    return _filled(make, found)


def _filled(make, found: dict):
    graph, state = nnx.split(nnx.eval_shape(make))
    flat = {'/'.join(map(str, path)): leaf for path, leaf in nnx.to_flat_state(state)}
    assert flat.keys() == found.keys(), flat.keys() ^ found.keys()
    for path, leaf in flat.items():
        assert leaf.shape == found[path].shape, path
    filled = {path: jnp.asarray(found['/'.join(map(str, path))], jnp.float64) for path, _ in nnx.to_flat_state(state)}
    return nnx.merge(
        graph, nnx.from_flat_state({path: leaf.replace(filled[path]) for path, leaf in nnx.to_flat_state(state)})
    )


def _read(path):
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    return arrays, {name[2:]: array.astype(np.float64) for name, array in arrays.items() if name.startswith('w/')}


def vit(shared, *, final_eps=1e-5):
    """(model, images [2, 56, 56, 3], arrays); `final_eps` is 1e-6 in their `ViT_new`, of attention and rollout."""
    arrays, weights = _read(shared / 'data/attribution/vit_tiny_golden_f64.npz')
    return vit_model(weights, final_eps=final_eps), jnp.asarray(arrays['x'].transpose(0, 2, 3, 1)), arrays


def bert(shared):
    """(model, batch of 2 texts of 13 tokens, arrays)."""
    arrays, weights = _read(shared / 'data/attribution/bert_tiny_golden_f64.npz')
    ids = jnp.asarray(arrays['input_ids'])
    batch = {'text': ids, 'text_type': jnp.zeros_like(ids), 'text_length': jnp.full(len(ids), ids.shape[1])}
    return bert_model(weights, ast.literal_eval(str(arrays['config_json']))), batch, arrays
