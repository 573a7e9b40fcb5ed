"""Settings that models do not read: refused, told, or read after all."""

import importlib.util
import pathlib
import types

import pytest

from evil_jax import config as config_lib
from evil_jax.models import settings, vlnle

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / 'configs'
BERT = {'model.task.name': 'bert', 'model.expl.image': 'none'}
LSTM = {'model.expl.name': 'lstm_decoder'}
MCB, UPDOWN = ({'model.task.name': name} | LSTM for name in ('mcb', 'updown'))
TAGS = {'data.objects': 'detected', 'model.expl.image': 'tags'}


def make(**changes):
    config = config_lib.base()
    config.update_from_flattened_dict(changes)
    config_lib.validate(config)
    return config


@pytest.fixture
def told(monkeypatch):
    found = []
    monkeypatch.setattr(settings, '_warn', found.append)
    return found


@pytest.mark.parametrize('data', config_lib.DATA_SETS)
@pytest.mark.parametrize(
    'name', ['pjx', 'pjx,fusion=product', 'fme', 'fme,gate=relu', 'rvt', 'qa_gpt2', 'eug', 'eug,compat=original']
)
def test_what_is_shipped_is_read(name, data, told):
    name, *more = name.split(',')
    spec = importlib.util.spec_from_file_location(name, CONFIGS / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    settings.check(module.get_config(','.join([data, *more])))
    assert not told


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (MCB | {'compat': '3'}, r'compat=3 has quirk 3, which mcb \(config\.model\.task\.name\) has not'),
        (UPDOWN | {'compat': '4,5'}, 'compat=4,5 has quirk 4, which updown'),
        (MCB | {'compat': '1'}, r'has quirk 1, which lstm_decoder \(config\.model\.expl\.name\) has not'),
        (UPDOWN | {'compat': 'original'}, r'quirk 3 and 4, which updown(.|\n)*quirk 1 and 2, which lstm_decoder'),
        (LSTM | {'compat': '2'}, 'has quirk 2, which lstm_decoder'),
        (BERT | {'compat': 'original'}, 'compat=original has quirk 3 and 4, which bert'),
        (BERT | {'compat': '3,8'}, 'has quirk 3, which bert'),
        (LSTM | {'model.expl.image': 'none'}, r"config\.model\.expl\.image is 'none', but lstm_decoder always reads"),
        (MCB | TAGS, r"config\.model\.expl\.image is 'tags', but lstm_decoder"),
        (BERT | LSTM | {'model.expl.image': 'memory'},
         "name is 'lstm_decoder', which reads the vectors of M_T, but 'bert' hands none over: wanted 'gpt2' with"),
        (BERT | TAGS | {'data.regions': 'zero'}, r"regions is 'zero', .* config\.data\.objects is 'detected'"),
    ],
)  # fmt: skip
def test_what_would_be_ignored_is_refused(changes, message):
    config = make(**changes)
    with pytest.raises(ValueError, match=message):
        settings.check(config)
    with pytest.raises(ValueError, match=message):
        vlnle.build(config, types.SimpleNamespace(), None)


@pytest.mark.parametrize(
    'changes',
    [{'compat': 'original'}, {'compat': '1,2,3,4'}, MCB | {'compat': '5,6,7,8,12,14,17'}, BERT | {'compat': '2'},
     LSTM | {'compat': '3,4'}, {'compat': 'original', 'model.expl.name': ''}, BERT | TAGS, {'data.regions': 'zero'},
     {'model.remat': True}, BERT | {'model.remat': True}, {'model.expl.image': 'none'}, TAGS,
     BERT | {'data.objects': 'annotated', 'model.expl.name': ''}, UPDOWN | {'model.task.gate': 'relu'},
     LSTM | {'model.expl.attend': 'answer'}, {'model.expl.attend': 'answer', 'model.expl.name': ''}],
)  # fmt: skip
def test_what_is_read_is_not_told(changes, told):
    settings.check(make(**changes))
    assert not told


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'model.task.fusion': 'product'}, "config.model.task.fusion is 'product', which uniter does not read"),
        (MCB | {'model.task.gate': 'relu'}, "config.model.task.gate is 'relu', which mcb does not read"),
        ({'model.expl.attend': 'answer'}, "config.model.expl.attend is 'answer', which gpt2 does not read"),
        (UPDOWN | {'model.remat': True, 'model.expl.name': ''}, 'config.model.remat is True, which updown does not'),
        (MCB | {'model.remat': True}, 'config.model.remat is True, which lstm_decoder does not read'),
        ({'data.objects': 'detected'}, "data.objects is 'detected': uniter reads names of objects in its text"),
    ],
)
def test_what_else_is_ignored_is_told(changes, message, told):
    settings.check(make(**changes))
    assert len(told) == 1 and message in told[0]


def test_it_is_told_once(caplog):
    for _ in range(2):
        settings.check(make(**{'model.task.gate': 'relu'}))
    assert caplog.text.count("config.model.task.gate is 'relu', which uniter does not read") == 1
