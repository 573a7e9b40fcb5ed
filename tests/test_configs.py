"""The configuration: its keys are an interface, and every shipped config is valid."""

import importlib.util
import pathlib

import ml_collections
import pytest

from evil_jax import config as config_lib

CONFIGS = sorted((pathlib.Path(__file__).resolve().parent.parent / 'configs').glob('*.py'))
TOP = {'seed', 'mesh', 'sharding', 'data', 'model', 'optim', 'train', 'decode', 'evaluate', 'build', 'predict'}


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_top_level_keys_are_pinned():
    assert set(config_lib.base()) == TOP


def keys(tree):
    return {k: keys(v) if isinstance(v, ml_collections.ConfigDict) else None for k, v in tree.items()}


@pytest.mark.parametrize('path', CONFIGS, ids=lambda p: p.stem)
@pytest.mark.parametrize('data', config_lib.DATA_SETS)
def test_shipped_configs_are_valid(path, data):
    module = load(path)
    assert 'python -m evil_jax.main' in module.__doc__
    for arg in (data, f'{data},shrink'):
        config = module.get_config(arg)
        config_lib.validate(config)
        assert keys(config) == keys(config_lib.base()), 'a config may change values, never keys'


def test_parse_arg_is_typed():
    parse = lambda arg: config_lib.parse_arg(arg, data='a', size='tiny', steps=3, rate=0.5, fast=False).to_dict()
    assert parse('b,steps=4,rate=1,fast') == {'data': 'b', 'size': 'tiny', 'steps': 4, 'rate': 1.0, 'fast': True}
    assert parse(None)['data'] == 'a'
    for wrong, hint in (
        ('b,stps=4', 'steps'),
        ('b,steps=x', 'wanted int'),
        ('b,c', 'needs a value'),
        ('b,fast=3', 'bool'),
    ):
        with pytest.raises(ValueError, match=hint):
            parse(wrong)


@pytest.mark.parametrize(
    ('key', 'value', 'hint'),
    [
        ('data.builder', 'vqaxx', "Did you mean 'vqax'"),
        ('data.task', 'nothing', 'There are'),
        ('train.select', 's_x', 'wanted one of s_t'),
        ('train.batch', 0, 'at least 1'),
        ('optim.accum', 7, 'not a multiple'),
        ('sharding', (('(', ()),), 'not a regular expression'),
    ],
)
def test_validate_names_key_and_values(key, value, hint):
    config = config_lib.base()
    section, _, name = key.rpartition('.')
    (config[section] if section else config)[name] = value
    with pytest.raises(ValueError, match=hint):
        config_lib.validate(config)


def test_first_match_is_whole_and_ordered():
    table = (('task/.*', 1), ('.*bias', 2))
    assert config_lib.first_match(table, 'task/bias') == 1
    assert config_lib.first_match(table, 'expl/bias') == 2
    with pytest.raises(ValueError, match="no pattern matches parameter 'expl/biases'"):
        config_lib.first_match(table, 'expl/biases')
