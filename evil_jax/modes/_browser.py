"""The examples that a report shows, with their pictures and what each system said about them."""

import pathlib
from collections.abc import Sequence

import numpy as np

from evil_jax.data import features, load, shapes
from evil_jax.metrics import judging
from evil_jax.modes import _cards
from evil_jax.modes._systems import Run
from evil_jax.records import Example, Prediction
from evil_jax.tasks._fields import gold_answer


def rows(runs: Sequence[Run], examples: Sequence[Example], task, config) -> list[dict]:
    """Rows for the browser of examples: a seeded sample, in random order, since neighbours share their picture.

    Args:
      runs: the first one's answers come first, beside those of the first run of each other system.
      examples: all of them.
      task: judges.
      config: `evaluate.report_examples`, `seed`, and where pictures and regions are.
    """
    count = min(config.evaluate.report_examples, len(examples))
    chosen = np.random.default_rng(config.seed).permutation(len(examples))[:count]
    systems = {run.system: {p.id: p for p in run.predictions} for run in reversed(runs)}
    own, *others = [(system, systems[system]) for system in dict.fromkeys(run.system for run in runs)]
    images, reader, names = _pictures(config)
    found = []
    for example in (examples[i] for i in chosen):
        prediction = own[1][example.id]
        tell = lambda words, example=example: _cards.shown(words, example)
        index = prediction.answer_index
        if index is None and prediction.answer in (example.choices or ()):
            index = example.choices.index(prediction.answer)
        found.append(
            _cards.picture(example, images, reader, names)
            | {
                'id': example.id,
                'text': tell(example.text),
                'choices': _cards.choices(example, index),
                'gold': example.answers or [tell(a) for a in (gold_answer(example),) if a is not None],
                'answer_scores': {tell(a): p for a, p in prediction.answer_scores.items()},
                'references': [tell(reference) for reference in example.explanations],
                **_said(prediction, example, task),
                'condition': prediction.condition,
                **({'system': own[0]} if others else {}),
                'others': [{'system': name, **_said(of[example.id], example, task)} for name, of in others],
            }
        )
    return found


def _said(prediction: Prediction, example: Example, task) -> dict:
    """What one system said about an example, and how right it is."""
    tell = lambda words: _cards.shown(words or '', example)
    judged = prediction.answer is not None and (example.label is not None or example.answers is not None)
    return {
        'answer': tell(prediction.answer),
        'explanation': tell(prediction.explanation),
        'correct': judging.judge_one(prediction, example, task.judge) if judged else None,
        'true': None if prediction.explanation is None else task.explanation_truth(prediction, example),
    }


def _pictures(config):
    """(pictures by image id or None, region reader or None, names of the regions' classes).

    Of examples from a file only pictures and regions that the user names are shown: those of the configured data set
    may have the same ids and be others.
    """
    own = not config.evaluate.references
    images = load.images(config) if own or config.data.images else None
    if own and (pathlib.Path(config.data.dir) / 'store').is_dir():
        reader = load.open_store(config)
    else:
        reader = features.open_features(config.data.features[0]) if config.data.features else None
    return images, reader, shapes.CLASSES if own and config.data.builder.startswith('shapes_') else ()
