"""Parameters that a run begins with: those of another run, the rows of its answer head put into our order; or those of
the published e-UG code."""

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging

from evil_jax.data import answers, tokenizers
from evil_jax.interop import eug
from evil_jax.training import checkpoint

ANSWER_HEAD = ('task/head/answer/kernel', 'task/head/answer/bias')  # their last axis is the answers
_VQA = 3129, 'b05467ee028c22da'  # answers of VQA v2, and the hash of LXMERT's order, which e-UG's checkpoints have


def load(path, params: dict[str, jax.Array], shapes, assets: tokenizers.Assets) -> tuple[dict[str, jax.Array], str]:
    """Takes over the modules that a checkpoint has.

    Word pieces and explanation tokens have to be the same ones. Answers may have another order, and some may be absent
    there: these keep their fresh values.

    Args:
      path: a work folder or a checkpoint, or 'eug:PATH' for a file of the published e-UG code (interop/eug.py).
      params: fresh ones, {path: array}.
      shapes: of `Net.shapes`.
      assets: ours.

    Returns:
      ({path: array}, what was taken, in words).

    Raises:
      ValueError: no checkpoint; other vocabularies, or not known which; names and shapes that differ.
    """
    if file := eug.named(str(path)):
        found = original(file, shapes, assets)
        if eug.WTE in found:  # of the rows that are no words the file has none
            found[eug.WTE] = _words_of(found[eug.WTE], params[eug.WTE], assets.expl.size)
        return params | found, f'initial parameters from {file}, of the published e-UG code'
    folder = checkpoint.find(path)
    have = {name.partition('/')[0] for name in shapes}
    modules = [name for name in checkpoint.MODULES if name in have and (folder / name).is_dir()]
    told = f'initial parameters of {", ".join(modules)} from {folder}'
    origin, ours = checkpoint.read_origin(folder), assets.hashes()
    theirs, choices = origin['assets'], origin['config'].get('data', {}).get('choices', 0)
    if 'task' in modules and bool(choices) == any(path in shapes for path in ANSWER_HEAD):
        kinds = 'a set of answers for all examples', 'choices in each example'
        raise ValueError(
            f'train.init: {folder} was trained with {kinds[bool(choices)]}, this data set has {kinds[not choices]}: '
            'their answer heads have nothing in common'
        )
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


def original(file, shapes, assets: tokenizers.Assets) -> dict[str, jax.Array]:
    """All parameters from a file of the published e-UG code, {path: array}, in their places.

    Args:
      file: the .pth file.
      shapes: of `Net.shapes`.
      assets: whose vocabularies have to be e-UG's. Sizes are all that a file tells of them.

    Raises:
      ValueError: see `eug.load`.
    """
    found = eug.load(file, shapes, assets.expl.size)
    answers_there, order = _VQA
    if len(assets.answers) == answers_there and assets.hashes()['answers'] != order:
        logging.warning(
            "%s does not say which answers its outputs mean; e-UG's are in the order of LXMERT's "
            'trainval_label2ans.json, but those of the data set are others, or in another order: see data.answers',
            file,
        )
    place = lambda x, where: jax.make_array_from_callback(x.shape, where, lambda index: x[index])
    return {path: place(x, shapes[path].sharding) for path, x in found.items()}


def _words_of(theirs, fresh, words: int):
    """A word table: the first rows of one, the other's behind them."""
    join = lambda there, here: jnp.where(jnp.arange(len(there))[:, None] < words, there, here)
    return jax.jit(join, out_shardings=fresh.sharding)(theirs, fresh)


def _widened(leaf, answers_there):
    # Replicated: their number of answers need not divide by the axes that split ours.
    everywhere = jax.sharding.NamedSharding(leaf.sharding.mesh, jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct((*leaf.shape[:-1], answers_there), leaf.dtype, sharding=everywhere)


def _rearranged(theirs, fresh, rows: np.ndarray):
    """For each of our answers its values there, or the fresh ones."""
    choose = lambda there, here: jnp.where(rows >= 0, jnp.take(there, np.maximum(rows, 0), axis=-1), here)
    return jax.jit(choose, out_shardings=fresh.sharding)(theirs, fresh)
