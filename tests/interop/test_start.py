"""The one entry point of published weights: which file of this folder reads what, and what is told."""

import types

import nets
import numpy as np
import pytest
from flax import nnx

from evil_jax.data import tokenizers
from evil_jax.interop import bert, gpt2, start, weights
from evil_jax.models import bert as bert_net
from evil_jax.models import gpt2 as gpt2_net

WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', *(f'w{n}' for n in range(30))]
SIZE = bert_net.Size(layers=1, width=8, heads=2, hidden=16, positions=9)
EXPL = gpt2_net.Size(layers=1, width=8, heads=2, positions=20, std=0.1)


@pytest.fixture
def assets(tmp_path):
    expl = tokenizers.train_expl(['a man waits'], tmp_path / 'bpe', size=258)
    return types.SimpleNamespace(word=tokenizers.WordTokenizer(WORDS), expl=expl, answers=('yes', 'no'))


def make(assets):
    """Parameters of a pair, by module."""
    task = nets.abstract(lambda: bert_net.Bert(SIZE, words=len(WORDS), answers=2, rngs=nnx.Rngs(0)))
    markers = gpt2_net.Markers(0, 1, 2, (3, 4, 5, 6))
    expl = nets.abstract(lambda: gpt2_net.Gpt2(EXPL, rows=assets.expl.rows, markers=markers, rngs=nnx.Rngs(0)))
    pair = {'task': nets.random(task), 'expl': nets.random(expl)}
    return pair, {f'{kind}/{path}': x for kind, params in pair.items() for path, x in params.items()}


def test_modules_begin_with_published_weights(assets, tmp_path):
    pair, shapes = make(assets)
    encoder = {path: x for path, x in pair['task'].items() if not path.startswith('head')}
    for name in ('bert', 'gpt2'):
        (tmp_path / name).mkdir()
    weights.write(tmp_path / 'bert/model.safetensors', bert.save(encoder))
    weights.write(tmp_path / 'gpt2/model.safetensors', gpt2.save(pair['expl'], len(assets.expl.vocabulary)))
    found, told = start.load('task', 'bert', f'hf:{tmp_path}/bert', shapes, assets, 'tiny')
    assert found.keys() == {f'task/{path}' for path in encoder}
    assert all(x.tobytes() == shapes[path].tobytes() for path, x in found.items())
    assert told == f'23 of 25 parameters of task from hf:{tmp_path}/bert; fresh: head/answer'
    weights.write(tmp_path / 'bert/model.safetensors', bert.save(pair['task']))  # whose labels nobody knows
    _, told = start.load('task', 'bert', f'hf:{tmp_path}/bert', shapes, assets, 'tiny')
    assert '; fresh: head/answer (no config.json with id2label says' in told
    (tmp_path / 'bert/config.json').write_text('{"id2label": {"0": "yes", "1": "no"}}')
    found, told = start.load('task', 'bert', f'hf:{tmp_path}/bert', shapes, assets)
    assert told == f'25 of 25 parameters of task from hf:{tmp_path}/bert'
    assert all(x.tobytes() == shapes[path].tobytes() for path, x in found.items())
    found, told = start.load('expl', 'gpt2', f'hf:{tmp_path}/gpt2', shapes, assets)
    assert found.keys() == {path for path in shapes if path.startswith('expl/')}
    assert told == (
        f'20 of 20 parameters of expl from hf:{tmp_path}/gpt2; the first {len(assets.expl.vocabulary)} of 384 rows of '
        'wte/embedding'
    )


def test_sizes_of_a_setting_are_compared(assets, tmp_path):
    pair, shapes = make(assets)
    weights.write(tmp_path / 'model.safetensors', gpt2.save(pair['expl'], assets.expl.size))
    (tmp_path / 'config.json').write_text('{"n_head": 2, "n_layer": 1, "n_embd": 8, "n_ctx": 20}')
    with pytest.raises(ValueError) as error:
        start.load('expl', 'gpt2', f'hf:{tmp_path}', shapes, assets, 'tiny')
    assert str(error.value).startswith(f'config.model.expl.init: {tmp_path} does not fit the model:')
    for part in (
        'n_head is 2, wanted 8',
        'n_layer is 1, wanted 2',
        'n_embd is 8, wanted 128',
        'n_positions is 20, wan',
    ):
        assert part in str(error.value), part


def test_what_no_weights_are_known_of(assets, tmp_path):
    _, shapes = make(assets)
    for kind, name, source, there in (
        ('task', 'bert', 'runs/eug', "config.model.task.init is 'runs/eug', wanted hf:FOLDER or torch:FILE"),
        ('task', 'bert', 'hf:bert-base-cased', 'bert-base-cased does not exist; wanted the folder of a Hugging Face'),
        ('task', 'mcb', f'hf:{tmp_path}', 'but no published weights of mcb are known, only of: bert, uniter'),
        ('expl', 'bert', f'hf:{tmp_path}', 'but no published weights of bert are known, only of: gpt2'),
        ('task', 'eug', f'hf:{tmp_path}', 'of eug are known, only of: bert, uniter'),
        ('task', 'bert', f'hf:{tmp_path}', f'config.model.task.init: {tmp_path} has no weights: found bpe; wanted'),
    ):
        with pytest.raises(ValueError) as error:
            start.load(kind, name, source, shapes, assets)
        assert there in str(error.value), there


def test_a_word_table_in_parts_keeps_its_order(assets, tmp_path):
    """A file without markers is the beginning of our table."""
    pair, shapes = make(assets)
    rows = len(assets.expl.vocabulary)
    weights.write(tmp_path / 'x.safetensors', gpt2.save(pair['expl'], rows))
    found, _ = start.load('expl', 'gpt2', f'hf:{tmp_path}/x.safetensors', shapes, assets)
    np.testing.assert_array_equal(found['expl/wte/embedding'], shapes['expl/wte/embedding'][:rows])
