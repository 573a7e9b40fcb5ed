"""Parameters that a run begins with: those of another run, the rows of its answer head put into our order."""

import jax
import jax.numpy as jnp
import numpy as np

from evil_jax.data import answers, tokenizers
from evil_jax.training import checkpoint

ANSWER_HEAD = ('task/head/answer/kernel', 'task/head/answer/bias')  # their last axis is the answers


def load(path, params: dict[str, jax.Array], shapes, assets: tokenizers.Assets) -> tuple[dict[str, jax.Array], str]:
    """Takes over the modules that a checkpoint has.

    Word pieces and explanation tokens have to be the same ones. Answers may have another order, and some may be absent
    there: these keep their fresh values.

    Args:
      path: a work folder or a checkpoint.
      params: fresh ones, {path: array}.
      shapes: of `Net.shapes`.
      assets: ours.

    Returns:
      ({path: array}, what was taken, in words).

    Raises:
      ValueError: no checkpoint; other vocabularies, or not known which; names and shapes that differ.
    """
    folder = checkpoint.find(path)
    have = {name.partition('/')[0] for name in shapes}
    modules = [name for name in checkpoint.MODULES if name in have and (folder / name).is_dir()]
    told = f'initial parameters of {", ".join(modules)} from {folder}'
    theirs, ours = checkpoint.read_origin(folder)['assets'], assets.hashes()
    vocabularies = {'task': ('word', 'word pieces'), 'expl': ('expl', 'explanation tokens')}
    differing = [words for m, (key, words) in vocabularies.items() if m in modules and theirs[key] != ours[key]]
    if differing:
        raise ValueError(
            f'train.init: {folder} was trained with other {" and ".join(differing)} than this data set has: build the '
            'data set with the vocabularies of that run (data.word_vocab, data.expl_vocab, data.lowercase)'
        )
    wanted, rows = dict(shapes), None
    if 'task' in modules and theirs['answers'] != ours['answers']:
        if absent := [path for path in ANSWER_HEAD if path not in shapes]:
            raise ValueError(f'train.init: {folder} has other answers, and the model has no {absent[0]} to rearrange')
        known = checkpoint.find_assets(folder).answers
        rows = answers.remap(assets.answers, known)
        wanted |= {path: _widened(shapes[path], len(known)) for path in ANSWER_HEAD}
        told += f'; answer head: {(rows >= 0).sum()} of our {len(rows)} answers are among its {len(known)}'
    found = checkpoint.restore_params(folder, 'latest', wanted, modules)
    found = {path: x for path, x in found.items() if isinstance(x, jax.Array)}
    if rows is not None:
        found |= {path: _rearranged(found[path], params[path], rows) for path in ANSWER_HEAD}
    return params | found, told


def _widened(leaf, answers_there):
    # Replicated: their number of answers need not divide by the axes that split ours.
    everywhere = jax.sharding.NamedSharding(leaf.sharding.mesh, jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct((*leaf.shape[:-1], answers_there), leaf.dtype, sharding=everywhere)


def _rearranged(theirs, fresh, rows: np.ndarray):
    """For each of our answers its values there, or the fresh ones."""
    choose = lambda there, here: jnp.where(rows >= 0, jnp.take(there, np.maximum(rows, 0), axis=-1), here)
    return jax.jit(choose, out_shardings=fresh.sharding)(theirs, fresh)
