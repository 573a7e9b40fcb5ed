"""A model as others left it: published weights, explained without a training of ours (attribute.checkpoint=init)."""

import functools
import json
import pathlib
import tempfile

from evil_jax import records
from evil_jax.data import tokenizers
from evil_jax.interop import weights
from evil_jax.models import vlnle
from evil_jax.modes import _predictions, decode
from evil_jax.tasks import base
from evil_jax.training import initial, sharding
from evil_jax.training import state as state_lib

_HEADS = ('task/answer/', 'task/head')


def load(config):
    """The model with the parameters that `model.task.init`, `model.expl.init` and `train.init` name.

    Args:
      config: its data folder gives the vocabularies and the classes. A classifier goes without one: its classes are
        then those of the Hugging Face folder's config.json, its words those of the vocab.txt there.

    Returns:
      (decoder, params), as `decode.load_trained`.

    Raises:
      ValueError: nothing is named, what is named does not fit, or no vocabularies and classes are known.
    """
    if not (config.model.task.init or config.train.init):
        raise ValueError(
            "a checkpoint 'init' is the model with weights of others, untrained, but model.task.init is empty: set it "
            'to hf:FOLDER or torch:FILE'
        )
    assets = _assets(config)
    task, mesh = base.make_task(config, assets), sharding.make_mesh(config)
    build = functools.partial(vlnle.build, config, assets)
    net = state_lib.abstract(build, config, mesh)
    fresh = state_lib.fresh(build, net, state_lib.keys(config)[0], mesh)
    params, told = initial.begin(config, fresh, net.shapes, assets)
    if random := sorted(path for path in params if path.startswith(_HEADS) and params[path] is fresh[path]):
        raise ValueError(f'nothing but chance would answer, as {", ".join(random)} stay as drawn: {" ".join(told)}')
    for line in told:
        print(line, flush=True)
    return decode.Decoder(net, task, config, mesh), params


def identity(config) -> list[str]:
    """What tells the weights from others, wherever they lie: hashes of the files."""
    found = []
    for source in (config.model.task.init, config.model.expl.init, config.train.init):
        path = pathlib.Path(source.partition(':')[2] or source) if source else None
        if path is None:
            continue
        found.append(records.file_hash(path) if path.is_file() else _predictions.files_hash(path))
    return found


def _assets(config) -> tokenizers.Assets:
    there = pathlib.Path(config.data.dir) / 'assets'
    spec = weights.spec(config.model.task.init)
    if there.is_dir() or config.data.task != 'classify' or spec is None:
        return tokenizers.load_assets(there)
    path = pathlib.Path(spec.path) / 'config.json'
    labels = json.loads(path.read_text(encoding='utf-8')).get('id2label') if path.is_file() else None
    if not labels:
        raise ValueError(
            f'which classes? {there} does not exist (--mode=build makes it), and {path} has no id2label either'
        )
    texts = [str(labels[key]) for key in sorted(labels, key=int)]
    with tempfile.TemporaryDirectory() as folder:
        nothing = pathlib.Path(folder)
        has_words = (path.parent / 'vocab.txt').is_file()
        word = tokenizers.WordTokenizer.load(path.parent) if has_words else tokenizers.train_word((), nothing / 'word')
        return tokenizers.Assets(word, tokenizers.train_expl((), nothing / 'expl'), tuple(texts))
