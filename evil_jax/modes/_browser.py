"""The examples that a report shows, with their pictures and what each system said about them."""

import pathlib
from collections.abc import Sequence

import numpy as np

from evil_jax.data import features, load, shapes
from evil_jax.metrics import judging
from evil_jax.modes import _cards
from evil_jax.modes._scoring import gold_answer
from evil_jax.records import Example, Prediction


def rows(predictions: Sequence[Prediction], examples: Sequence[Example], task, config) -> list[dict]:
    """Rows for the browser of examples: a seeded sample, in random order, since neighbours share their picture.

    Args:
      predictions, examples: all of them.
      task: judges.
      config: `evaluate.report_examples`, `seed`, and where pictures and regions are.
    """
    count = min(config.evaluate.report_examples, len(examples))
    chosen = np.random.default_rng(config.seed).permutation(len(examples))[:count]
    by_id = {p.id: p for p in predictions}
    images, reader, names = _pictures(config)
    unjudged = bool(judging.why_not([(by_id[e.id], e) for e in examples]))
    found = []
    for example in (examples[i] for i in chosen):
        prediction = by_id[example.id]
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
                'answer': tell(prediction.answer or ''),
                'answer_scores': {tell(a): p for a, p in prediction.answer_scores.items()},
                'correct': None if unjudged else judging.judge_one(prediction, example, task.judge),
                'explanation': tell(prediction.explanation or ''),
                'references': [tell(reference) for reference in example.explanations],
                'true': task.explanation_truth(prediction, example),
                'condition': prediction.condition,
            }
        )
    return found


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
