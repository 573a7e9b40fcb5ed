"""Every data set's model can be built, with the limits and sizes that a user can ask for."""

import importlib.util
import pathlib
import types

import jax
import pytest
from flax import nnx
from vocabularies import ASSETS

from evil_jax import config as config_lib
from evil_jax import lookup
from evil_jax.models import vit, vlnle
from evil_jax.training import initial, sharding

EUG = pathlib.Path(__file__).resolve().parents[2] / 'configs/eug.py'


def config_of(arg):
    spec = importlib.util.spec_from_file_location('eug', EUG)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config(arg)


def abstract(config):
    return nnx.eval_shape(lambda: vlnle.build(config, ASSETS, jax.random.key(0)))


@pytest.mark.parametrize('variant', ['size=tiny', 'shrink'])
@pytest.mark.parametrize('data', config_lib.DATA_SETS)
def test_every_data_set_fits_the_tiny_model(data, variant):
    config = config_of(f'{data},{variant}')
    model = abstract(config)
    # The longest row of decoding: markers, every piece at its limit, `<|b_rtnl|>` and the new tokens.
    d = config.data
    row = 2 + d.max_text + d.max_regions + d.max_question + d.max_answer + 1 + d.max_explanation
    assert row <= model.expl.wpe.embedding.shape[0]


def test_rows_beyond_the_position_table_are_refused():
    config = config_of('esnlive,size=tiny')
    config.data.max_regions += 20
    abstract(config)
    config.data.max_regions += 1
    with pytest.raises(ValueError, match=r'rows of up to 257 positions .*GPT-2 has 256'):
        abstract(config)


@pytest.mark.parametrize('data', ['shapes_vqa', 'shapes_vcr'])
@pytest.mark.parametrize('quirks, wanted', [('fixed', 0.0), ('1,2,3,4', 0.0), ('original', 0.2)])
def test_attention_probabilities_are_dropped_in_the_original_only(data, quirks, wanted):
    config = config_of(data)
    config.compat, config.model.dropout = quirks, 0.2
    model = abstract(config)
    layers = [*model.task.layers, *model.expl.layers]
    assert [layer.attention.dropout for layer in layers] == [wanted] * len(layers)
    assert [layer.dropout for layer in layers] == [0.2] * len(layers)


def test_an_unknown_size_names_the_nearest():
    for module in ('task', 'expl'):
        config = config_of('vqax,size=tiny')
        config.model[module].size = 'tinny'
        with pytest.raises(ValueError, match=rf"config\.model\.{module}\.size is 'tinny'\. Did you mean 'tiny'"):
            abstract(config)


def shapes_of(name, answers, choices=0):
    config = config_of('vcr,size=tiny' if choices else 'vqax,size=tiny')
    config.model.task.name, config.model.expl.name = name, ''
    if name == 'vit':
        config.data.update(builder='digits', task='classify', pixels=vit.SIZES['tiny'].pixels)
    assets = types.SimpleNamespace(**vars(ASSETS) | {'answers': answers})
    model = nnx.eval_shape(lambda: vlnle.build(config, assets, jax.random.key(0)))
    return {path: leaf.shape for path, leaf in sharding.flatten(nnx.split(model, nnx.Param)[1]).items()}


@pytest.mark.parametrize('name', lookup.defining('models', 'build_task'))
def test_the_answers_of_every_task_module_can_be_rearranged(name):
    """initial.py puts the last axis of exactly these leaves into another order. With choices there are none of them."""
    few, many = shapes_of(name, ('yes', 'no')), shapes_of(name, ('yes', 'no', 'red'))
    of_answers = [path for path in few if few[path] != many[path]]
    assert of_answers and few.keys() == many.keys()
    for path in of_answers:
        assert path.startswith(initial.ANSWER_HEAD) and (few[path][-1], many[path][-1]) == (2, 3), path
    assert {path for path in few if path.startswith(initial.ANSWER_HEAD)} == set(of_answers)
    if name != 'vit':  # it reads no choices
        assert not any(path.startswith(initial.ANSWER_HEAD) for path in shapes_of(name, (), choices=4))
