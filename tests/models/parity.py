"""Putting our parameters into PyTorch's modules, for parity tests: random nets, no download."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


def put(module, tensors: dict) -> None:
    """Copies arrays into a PyTorch module; names and shapes must agree exactly."""
    import torch  # the tests that come here have skipped where there is none

    module.load_state_dict({k: torch.from_numpy(np.array(v, np.float32)) for k, v in tensors.items()}, strict=True)


def linear(module) -> dict:
    """Weight [O, I] and bias of torch.nn.Linear."""
    return {'weight': np.asarray(module.kernel[...]).T, 'bias': np.asarray(module.bias[...])}


def conv1d(*modules) -> dict:
    """Weight [I, O] and bias of Hugging Face's Conv1D; several of ours lie side by side in one."""
    return {
        'weight': np.concatenate([np.asarray(m.kernel[...]) for m in modules], axis=1),
        'bias': np.concatenate([np.asarray(m.bias[...]) for m in modules]),
    }


def norm(module) -> dict:
    return {'weight': np.asarray(module.scale[...]), 'bias': np.asarray(module.bias[...])}


def table(module, rows=None) -> dict:
    return {'weight': np.asarray(module.embedding[...])[:rows]}


def named(parts: dict) -> dict:
    """{'a': {'weight': w}} -> {'a.weight': w}."""
    return {f'{name}.{leaf}': value for name, leaves in parts.items() for leaf, value in leaves.items()}


def bert_layer(block) -> dict:
    """Our PostNormBlock as a Hugging Face BertLayer."""
    return named({
        'attention.self.query': linear(block.attention.query),
        'attention.self.key': linear(block.attention.key),
        'attention.self.value': linear(block.attention.value),
        'attention.output.dense': linear(block.attention.out),
        'attention.output.LayerNorm': norm(block.attention_norm),
        'intermediate.dense': linear(block.mlp.up),
        'output.dense': linear(block.mlp.down),
        'output.LayerNorm': norm(block.mlp_norm),
    })  # fmt: skip


def gpt2_block(block) -> dict:
    """Our PreNormBlock as a Hugging Face GPT2Block."""
    return named({
        'ln_1': norm(block.attention_norm),
        'attn.c_attn': conv1d(block.attention.query, block.attention.key, block.attention.value),
        'attn.c_proj': conv1d(block.attention.out),
        'ln_2': norm(block.mlp_norm),
        'mlp.c_fc': conv1d(block.mlp.up),
        'mlp.c_proj': conv1d(block.mlp.down),
    })  # fmt: skip


def prefixed(prefix: str, tensors: dict) -> dict:
    return {prefix + k: v for k, v in tensors.items()}


def randomise(model, seed=0):
    """Biases and norms away from 0 and 1, so that a test sees whether each one is used."""
    graph, params = nnx.split(model, nnx.Param)
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    noisy = lambda x, k: x + 0.02 * jax.random.normal(k, x.shape) if jnp.issubdtype(x.dtype, jnp.floating) else x
    leaves = list(map(noisy, leaves, keys))  # integers are constants
    return nnx.merge(graph, jax.tree.unflatten(tree, leaves))


def relative(ours, theirs) -> float:
    """Largest difference, relative to the largest value."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30))
