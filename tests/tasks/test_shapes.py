"""The built-in world's task: which form it takes, and that explanations are checked against the scene."""

import json

import pytest

from evil_jax import config as configs
from evil_jax.data import shapes
from evil_jax.data.sources import esnlive, vqav2
from evil_jax.data.sources.esnlive import CLASSES
from evil_jax.records import Prediction
from evil_jax.tasks import base


def task_of(builder):
    config = configs.base()
    config.data.update(task='shapes', builder=builder)
    return base.make_task(config)


def examples_of(form, folder):
    shapes.write_world(form, folder, counts={'test': 12}, seed=1)
    if form == 'shapes_ve':
        examples = list(esnlive.read(folder / 'esnlive_test.csv'))
    else:
        names = ('questions_test.json', 'annotations_test.json', 'explanations_test.json')
        examples = list(vqav2.read(*(folder / name for name in names)))
    with open(folder / 'scenes.jsonl', encoding='utf-8') as file:
        scenes = {row['image_id']: row['scene'] for row in map(json.loads, file)}
    for example in examples:
        example.extra['scene'] = scenes[example.image_id]
    return examples


@pytest.mark.parametrize('form', ['shapes_ve', 'shapes_vqa'])
def test_explanations_are_checked_against_the_scene(form, tmp_path):
    task, examples = task_of(form), examples_of(form, tmp_path / 'world')
    assert len(examples) == 12
    for example in examples:
        for text in example.explanations:
            assert task.explanation_truth(Prediction(example.id, '', explanation=text), example) is True, text
        for text in ('', example.text, 'because I say so'):
            assert task.explanation_truth(Prediction(example.id, '', explanation=text), example) is False, text
        best = example.label if form == 'shapes_ve' else max(example.answers, key=example.answers.get)
        assert task.judge(best, example) >= 0.9
    example.extra.clear()
    assert task.explanation_truth(Prediction(example.id, '', explanation=text), example) is None


def test_the_form_is_the_builders():
    assert task_of('shapes_ve').answers == CLASSES and task_of('shapes_vqa').answers == ()
    with pytest.raises(ValueError, match=r"for data.builder shapes_ve or shapes_vqa or shapes_vcr, found 'vqax'"):
        task_of('vqax')
