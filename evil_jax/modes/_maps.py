"""attributions.npz: heat maps as numbers. Nothing in it is pickled.

N examples with up to K targets each:

    id, image_id, predicted, gold [N]  of the examples; what the model answered, and the right answer or ''
    probability float32 [N]            of the predicted answer
    kind, target [N, K]                'answer', 'token' or 'explanation' ('' where an example has fewer), and its text
    index int32 [N, K]                 of the answer, or the token's place in its explanation; -1
    <span> float32 [N, K, L]           relevance; 0 behind <span>_length
    <span>_length int32 [N, K]
    <span>_tokens [N, K, L]            what stands there (not of regions and patches)
    boxes float32 [N, L, 4], size [N, 2]     of regions: x1, y1, x2, y2 in pictures of (width, height)
    settings                           the method and the settings of the run, as JSON

Spans are what a model reads: 'text' (M_T: of a choice the question and the choice, of an explanation the question
alone), 'regions', 'patches' row by row, and of explanations what M_E reads: 'question', 'answer', 'explanation',
'objects'.
"""

import io
import json

import numpy as np

from evil_jax import records
from evil_jax.modes import _explainer
from evil_jax.training import checkpoint


def write(path, config, task, method: str, done, regions) -> None:
    """Writes the file, atomically.

    Args:
      done: explained examples.
      regions: `image_id -> Regions` of pictures, or None.
    """
    targets = max(len(one.targets) for one in done)
    names = list(dict.fromkeys(name for one in done for target in one.targets for name in target.values))
    fill = lambda values, default: values + [default] * (targets - len(values))
    said = [one.prediction for one in done]
    arrays = {
        'id': np.array([one.example.id for one in done]),
        'image_id': np.array([one.example.image_id for one in done]),
        'predicted': np.array([p.answer for p in said]),
        'probability': np.array([p.answer_scores.get(p.answer, np.nan) for p in said], np.float32),
        'gold': np.array([gold(task, one) for one in done]),
        'kind': np.array([fill([t.kind for t in one.targets], '') for one in done]),
        'target': np.array([fill([t.text for t in one.targets], '') for one in done]),
        'index': np.array([fill([t.index for t in one.targets], -1) for one in done], np.int32),
    }
    for name in names:
        arrays |= _span(name, task, done, targets)
    if regions is not None:
        found = [regions(one.example.image_id) for one in done]
        boxes = np.zeros((len(done), max(map(len, found), default=0), 4), np.float32)
        for n, one in enumerate(found):
            boxes[n, : len(one)] = one.boxes
        arrays |= {'boxes': boxes, 'size': np.array([one.size for one in found], np.float32)}
    settings = {'method': method, 'attribute': checkpoint.plain(config)['attribute'], 'seed': config.seed}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays, settings=np.array(json.dumps(settings)))
    records.atomic_write(path, buffer.getvalue())


def _span(name, task, done, targets) -> dict[str, np.ndarray]:
    of = lambda target: target.values.get(name, np.zeros(0, np.float32))
    longest = max(len(of(target)) for one in done for target in one.targets)
    values = np.zeros((len(done), targets, longest), np.float32)
    counts = np.zeros((len(done), targets), np.int32)
    words = [[[''] * longest for _ in range(targets)] for _ in done]
    for n, one in enumerate(done):
        for k, target in enumerate(one.targets):
            counts[n, k] = len(of(target))
            values[n, k, : counts[n, k]] = of(target)
            if name in target.values:
                read = tokens(task, one, target, name)
                words[n][k][: len(read)] = read
    found = {name: values, f'{name}_length': counts}
    return found | ({f'{name}_tokens': np.array(words)} if any(w for row in words for ws in row for w in ws) else {})


def tokens(task, one: _explainer.Attributed, target: _explainer.Target, name: str) -> list[str]:
    """What stands at the places of a span; [] where these are no words."""
    expl, number = task.assets.expl, len(target.values[name])
    if name == 'text':
        pair = 'choices' in one.row and target.kind == 'answer'
        ids = one.row['choices'][target.index] if pair else one.row['text']
        return task.assets.word.tokens(ids[:number].tolist())
    if name in ('question', 'objects'):
        ids = one.row[name].tolist()
    elif name == 'answer':
        table = one.row['answers'] if 'answers' in one.row else task.answer_table[0]
        ids = table[one.targets[0].index].tolist()
    elif name == 'explanation':
        ids = [expl.id('<|b_rtnl|>'), *(one.prediction.explanation_ids or ()), expl.id('<|e_rtnl|>')]
    else:
        return []
    return [_explainer.spelled(expl, token) for token in ids[:number]]


def gold(task, one: _explainer.Attributed) -> str:
    """The right answer in words, '' where it is not known."""
    index = int(one.row.get('gold', -1))
    return task.answer_text(index, one.example) if index >= 0 else ''
