"""A published classifier of pictures, as model.task.init takes it: its outputs follow their labels."""

import dataclasses
import json
import types

import nets
import numpy as np
import pytest
from flax import nnx

from evil_jax.interop import start, vit, weights
from evil_jax.models import vit as vit_net

SIZE = dataclasses.replace(vit_net.SIZES['tiny'], layers=1)
ANSWERS = ('cat', 'dog', 'newt')


def make(answers):
    shapes = nets.random(nets.abstract(lambda: vit_net.Vit(SIZE, answers=answers, rngs=nnx.Rngs(0))))
    return {f'task/{path}': x for path, x in shapes.items()}


def publish(folder, params, labels):
    weights.write(folder / 'model.safetensors', vit.save({k.removeprefix('task/'): x for k, x in params.items()}))
    config = vit.hf_config(SIZE, len(labels)) | {'id2label': {str(n): label for n, label in enumerate(labels)}}
    (folder / 'config.json').write_text(json.dumps(config))


def load(folder, shapes, answers):
    found, told = start.load('task', 'vit', f'hf:{folder}', shapes, types.SimpleNamespace(answers=answers))
    return found, told


def test_the_outputs_follow_their_labels(tmp_path):
    theirs, ours = make(3), make(3)
    publish(tmp_path, theirs, ['Newt', 'Cat', 'Dog'])
    found, told = load(tmp_path, ours, ANSWERS)
    assert told == f'{len(ours)} of {len(ours)} parameters of task from hf:{tmp_path}'
    for name in ('kernel', 'bias'):
        np.testing.assert_array_equal(found[f'task/answer/{name}'], theirs[f'task/answer/{name}'][..., [1, 2, 0]])
    encoder = [path for path in theirs if not path.startswith('task/answer')]
    assert all(np.array_equal(found[path], theirs[path]) for path in encoder)


@pytest.mark.parametrize(
    ('outputs', 'labels', 'why'),
    [
        (3, ['LABEL_0', 'LABEL_1', 'LABEL_2'], 'no config.json with id2label says'),
        (3, ['cat', 'dog', 'tree'], "labels in config.json, 'cat', 'dog', 'tree', are not our answers"),
        (5, list('abcde'), r'the classifier there is (5, 32), wanted (3, 32)'),
    ],
)
def test_a_head_of_others_stays_fresh_and_it_is_told_why(tmp_path, outputs, labels, why):
    publish(tmp_path, make(outputs), labels)
    ours = make(3)
    found, told = load(tmp_path, ours, ANSWERS)
    assert ours.keys() - found.keys() == {'task/answer/kernel', 'task/answer/bias'}
    assert '; fresh: answer (' in told and why in told


@pytest.mark.parametrize('name', ['n{:08}', '{}'])
def test_all_of_imagenet_is_in_everybodys_order_whatever_its_classes_are_called(tmp_path, name):
    answers = tuple(name.format(number) for number in range(1_000))
    theirs = make(1_000)
    publish(tmp_path, theirs, [f'word {number}' for number in range(1_000)])
    found, _ = load(tmp_path, theirs, answers)
    np.testing.assert_array_equal(found['task/answer/bias'], theirs['task/answer/bias'])
    other, told = load(tmp_path, theirs, answers[::-1])  # an order of one's own
    assert 'task/answer/bias' not in other and 'are not our answers' in told
