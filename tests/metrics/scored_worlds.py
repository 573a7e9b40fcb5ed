"""Predictions and examples made at random, for tests of the scores."""

import numpy as np

from evil_jax.metrics import base
from evil_jax.records import Example, Prediction

CLASSES = ['contradiction', 'neutral', 'entailment']


WORDS = [
    'the',
    'a',
    'dog',
    'cat',
    'man',
    'runs',
    'sits',
    'on',
    'mat',
    'beach',
    'because',
    'it',
    'is',
    'red',
    'two',
    'so',
    'must',
    'be',
]


def equal_class(answer, example):
    return float(answer == example.label)


def soft(answer, example):
    return example.answers.get(answer, 0.0)


def class_world(n=60, pictures=20, seed=0):
    generator = np.random.default_rng(seed)
    line = lambda: ' '.join(generator.choice(WORDS, generator.integers(3, 12)))
    examples, predictions, truth = [], [], {}
    for i in range(n):
        label = CLASSES[generator.integers(3)]
        answer = label if generator.random() < 0.7 else CLASSES[generator.integers(3)]
        gold = [line() for _ in range(generator.integers(1, 4))]
        text = gold[0] if generator.random() < 0.3 else line()
        examples.append(Example(f'q{i}', f'i{i % pictures}', 'a hypothesis', label=label, explanations=gold))
        predictions.append(Prediction(f'q{i}', answer, explanation=text))
        truth[f'q{i}'] = bool(generator.random() < 0.8)
    return predictions, examples, truth


def vqa_world():
    answers = [{'red': 1.0, 'blue': 0.3}, {'yes': 0.9}, {'2': 1.0}, {'no': 0.6}]
    given = ['blue', 'yes', '3', 'no']
    types = ['other', 'yes/no', 'number', 'yes/no']
    examples = [
        Example(
            str(i), str(i), 'a question', answers=a, annotations=[k for k, s in a.items() for _ in range(5)],
            answer_type=t, explanations=['it is a dog', f'there are {i} dogs'],
        )
        for i, (a, t) in enumerate(zip(answers, types))
    ]  # fmt: skip
    predictions = [Prediction(str(i), g, explanation='there is a dog') for i, g in enumerate(given)]
    return predictions, examples


def mean_metric(name, values):
    """A scorer handed in by a mode, as METEOR, SPICE and BERTScore are."""

    def table(predictions, references):
        ids, _, _ = base.join(predictions, references)
        return base.mean_table(ids, name, [values[i] for i in ids], base.signature(name, scale='0..1'))

    return table
