"""The configuration: its keys are an interface, and every shipped config is valid."""

import importlib.util
import pathlib

import ml_collections
import pytest

from evil_jax import config as config_lib

CONFIGS = sorted((pathlib.Path(__file__).resolve().parent.parent / 'configs').glob('*.py'))
TOP = {
    'seed',
    'compat',
    'mesh',
    'sharding',
    'data',
    'model',
    'optim',
    'train',
    'decode',
    'evaluate',
    'build',
    'predict',
    'sweep',
    'export',
    'benchmark',
    'attribute',
    'counterfactual',
    'human',
    'construct',
}


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_top_level_keys_are_pinned():
    assert set(config_lib.base()) == TOP


def keys(tree):
    return {k: keys(v) if isinstance(v, ml_collections.ConfigDict) else None for k, v in tree.items()}


def data_sets(path):
    """Those of a config's own, or the ones that all models of questions share."""
    return getattr(load(path), 'DATA_SETS', config_lib.DATA_SETS)


@pytest.mark.parametrize(
    ('path', 'data'),
    [(path, data) for path in CONFIGS for data in data_sets(path)],
    ids=lambda p: getattr(p, 'stem', p),
)
def test_shipped_configs_are_valid(path, data):
    module = load(path)
    assert 'python -m evil_jax.main' in module.__doc__
    for arg in (data, f'{data},shrink'):
        config = module.get_config(arg)
        config_lib.validate(config)
        assert keys(config) == keys(config_lib.base()), 'a config may change values, never keys'


def test_the_original_reads_tags_as_characters_without_regions():
    get_config = load(CONFIGS[[path.stem for path in CONFIGS].index('eug')]).get_config
    for data in ('vcr', 'shapes_vcr', 'esnlive'):
        ours, original = get_config(data), get_config(f'{data},compat=original')
        config_lib.validate(original)
        assert (ours.compat, ours.data.tags, ours.data.tag_regions) == ('fixed', 'names', True)
        assert (original.compat, original.data.tags, original.data.tag_regions) == ('original', 'det', False)
    with pytest.raises(ValueError, match=r"config\.compat is 'orignal'"):
        config_lib.validate(get_config('vcr,compat=orignal'))


def test_learning_instructions_compare_regimes_of_any_model():
    get_config = load(CONFIGS[[path.stem for path in CONFIGS].index('learning_instructions')]).get_config
    for model, name in {'eug': 'uniter', 'fme': 'updown', 'pjx': 'mcb', 'rvt': 'bert', 'qa_gpt2': 'bert'}.items():
        config = get_config(f'shapes_ve,model={model},seeds=2,steps=70')
        config_lib.validate(config)
        assert (config.model.task.name, config.train.steps, config.train.save_every) == (name, 70, 70)
        assert config.sweep.grid == (('train.regime', ('task', 'joint')), ('seed', (0, 1)))
        assert (config.sweep.over, config.sweep.select, config.sweep.split) == (('seed',), 's_t', 'test')
    assert get_config('vqax,model=eug,size=tiny').model.expl.size == 'tiny'
    assert get_config('vqax,model=eug').train.steps == config_lib.base().train.steps, 'real data: as the model says'
    for steps in ('', ',steps=70000'):
        config, of_model = get_config(f'vqax,model=pjx{steps}'), load(CONFIGS[0].parent / 'pjx.py').get_config('vqax')
        assert config.train.steps == (70_000 if steps else of_model.train.steps)
        assert config.train.save_every == of_model.train.save_every < config.train.steps, 'may be interrupted'
    assert get_config('shapes_ve,steps=7,shrink').train.steps == get_config('vqax,steps=7,shrink').train.steps == 7
    assert get_config('shapes_ve,shrink').train.steps == 2
    for arg, hint in {
        'model=fmee': "Did you mean 'fme'",
        'seeds=0': 'at least 1',
        'model=../eug': 'There are: ',
    }.items():
        with pytest.raises(ValueError, match=hint):
            get_config(f'shapes_ve,{arg}')


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
        ('train.select', 's_x', "wanted one of 's_t'"),
        ('train.batch', 0, 'at least 1'),
        ('train.save_every', 0, 'config.train.save_every is 0, wanted at least 1'),
        ('train.steps', 0, 'config.train.steps is 0, wanted at least 1'),
        ('train.eval_examples', 0, 'config.train.eval_examples is 0, wanted at least 1'),
        ('data.max_answer', 1, 'config.data.max_answer is 1, wanted at least 2'),
        ('data.limit', -1, 'config.data.limit is -1, wanted at least 0'),
        ('decode.limit', -5, 'config.decode.limit is -5, wanted at least 0'),
        ('optim.warmup', 1.5, 'config.optim.warmup is 1.5, wanted at most 1'),
        ('construct.filters', ('keywords,similarity',), "'keywords,similarity', wanted a tuple: .'keywords', 's"),
        ('construct.keywords.words', (1,), 'config.construct.keywords.words has 1, wanted a tuple'),
        ('optim.lr', float('nan'), 'config.optim.lr is nan, wanted at least 0'),
        ('model.task.name', 'gpt2', "config.model.task.name is 'gpt2'.* There are: bert, .*uniter"),
        ('model.expl.name', 'uniter', "config.model.expl.name is 'uniter'.* There are: gpt2"),
        ('model.task.size', 'bse', "config.model.task.size is 'bse'. Did you mean 'base'"),
        ('model.expl.size', 'tny', "config.model.expl.size is 'tny'. Did you mean 'tiny'"),
        ('evaluate.metrics', ('rouge', 'bleuu'), "config.evaluate.metrics is 'bleuu'. Did you mean 'bleu'"),
        ('evaluate.metrics', ('vqa',), "config.evaluate.metrics is 'vqa'.* There are: bertscore, bleu"),
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


def test_temperature_matters_to_sampling_only():
    config = config_lib.base()
    config.decode.temperature = 0.0
    config_lib.validate(config)
    config.decode.method = 'sample'
    with pytest.raises(ValueError, match=r"config\.decode\.temperature is 0\.0, wanted more than 0 .*'greedy'"):
        config_lib.validate(config)


def test_names_need_room_between_their_markers():
    config = config_lib.base()
    config.data.max_objects = 2
    config_lib.validate(config)
    config.model.expl.image = 'tags'
    with pytest.raises(ValueError, match=r"max_objects is 2, wanted at least 3 with config\.model\.expl\.image='tags'"):
        config_lib.validate(config)
    config.data.max_objects = 3
    config_lib.validate(config)


def test_a_model_may_have_no_explanations():
    config = config_lib.base()
    config.model.expl.update(name='', size='none')
    config_lib.validate(config)
    config.model.expl.name = 'gpt2'  # the size counts again
    with pytest.raises(ValueError, match='none'):
        config_lib.validate(config)


def test_shrunk_experiments_have_a_data_folder_of_their_own():
    config = config_lib.base()
    assert config_lib.shrink(config_lib.base()).data.dir == f'{config.data.dir}-shrink'


def test_first_match_is_whole_and_ordered():
    table = (('task/.*', 1), ('.*bias', 2))
    assert config_lib.first_match(table, 'task/bias') == 1
    assert config_lib.first_match(table, 'expl/bias') == 2
    with pytest.raises(ValueError, match="no pattern matches parameter 'expl/biases'"):
        config_lib.first_match(table, 'expl/biases')


@pytest.mark.parametrize('data', config_lib.DATA_SETS)
def test_rvt_reads_names_and_qa_only_reads_none(data):
    rvt, qa, eug = (
        load(CONFIGS[[path.stem for path in CONFIGS].index(name)]).get_config(data)
        for name in ('rvt', 'qa_gpt2', 'eug')
    )
    choosing = bool(config_lib.DATA_SETS[data].get('choices'))
    assert (rvt.data.objects, rvt.model.expl.image) == ('annotated' if choosing else 'detected', 'tags')
    assert (qa.data.objects, qa.model.expl.image) == ('', 'none')
    assert rvt.model.task.name == qa.model.task.name == 'bert' and rvt.model.expl.name == qa.model.expl.name == 'gpt2'
    assert rvt.data.max_text >= eug.data.max_text + 10 and rvt.data.dir == f'{eug.data.dir}-objects'
    assert qa.data.to_dict() == eug.data.to_dict(), 'one data folder'
