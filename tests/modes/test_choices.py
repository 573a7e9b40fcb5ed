"""Examples with choices of their own through the decoder and the training step, on one device and on eight."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope='module')
def choices():
    spec = importlib.util.spec_from_file_location('modes_choices', HERE / 'choices.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def run(choices, tmp_path_factory):
    """(predictions of an untrained net, metrics of two training steps)."""
    made = choices.Run(tmp_path_factory.mktemp('choices'), condition='gold')
    return made.predictions(), made.steps()


def test_predictions_name_a_choice_by_its_index(choices, run):
    examples, (predictions, _) = choices.make_examples(), run
    assert [p.id for p in predictions] == [e.id for e in examples]
    for prediction, example in zip(predictions, examples):
        scores = prediction.answer_scores
        assert prediction.answer == example.choices[prediction.answer_index]
        # Two of the choices have the same words: the likelier one of them counts.
        assert scores.keys() == set(example.choices) and len(scores) == 3
        assert scores[prediction.answer] == max(scores.values()) and sum(scores.values()) < 1
        assert prediction.condition == ('predicted' if example.label is None else 'gold')


def test_accuracy_and_loss_of_a_step(choices, run):
    """Before the first update the step sees what the decoder predicted; then the loss goes down."""
    predictions, (first, second) = run
    right = [p.answer_index == e.label for p, e in zip(predictions, choices.make_examples())]
    assert first['accuracy'] == pytest.approx(sum(right) / len(right)) and any(right)
    assert first['finite'] and second['task_loss'] < first['task_loss'] and second['expl_loss'] < first['expl_loss']


def test_eight_devices_give_the_same_steps(run, tmp_path):
    environment = os.environ | {'PYTHONPATH': str(HERE.parents[1])}
    printed = subprocess.run(
        [sys.executable, str(HERE / 'choices.py'), str(tmp_path)],
        check=True, capture_output=True, text=True, timeout=300, env=environment,
    ).stdout  # fmt: skip
    for one, other in zip(run[1], json.loads(printed.splitlines()[-1]), strict=True):
        assert other == pytest.approx(one, abs=2e-4)
