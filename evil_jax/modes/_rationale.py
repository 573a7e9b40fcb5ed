"""attribute.evaluate=rationale: does a method pick the words that people marked, or that decide? (ERASER)

ERASER's reviews have spans of evidence; of the built-in world it is known which words of a question decide its answer.
"""

import jax
import numpy as np

from evil_jax.attribution import eraser, picks, rationale
from evil_jax.data import words
from evil_jax.modes import _protocols

_WORLD_TOP = (1, 2, 3)


class Protocol:
    """Token-F1 of the most relevant words, IOU-F1 and areas of soft scores."""

    TITLE, AXES = 'Rationales', ('words picked', 'token-F1')
    MAIN = ('token_f1', 'iou_f1', 'auprc')
    NAMES = {
        'token_f1': 'token-F1, as many words as gold ones',
        'token_f1_micro': 'token-F1, micro',
        'recall_ceiling': 'recall that truncation leaves',
        'iou_f1': 'IOU-F1, as many words as gold ones',
        'auprc': 'AUPRC', 'average_precision': 'average precision', 'roc_auc': 'ROC AUC',
    }  # fmt: skip

    def __init__(self, config, decoder, sample, reader):
        del reader
        if 'text' not in sample or config.data.choices:
            reads = f'choices ({config.data.choices})' if config.data.choices else ', '.join(sorted(sample))
            raise ValueError(f'attribute.evaluate=rationale needs one text an example; this model reads {reads}')
        self.config, self.word, self.size = config, decoder.task.assets.word, sample['text'].shape[1]
        world = config.data.builder.startswith('shapes_')
        self.tops = tuple(config.attribute.top) or (_WORLD_TOP if world else rationale.TOP)
        for top in self.tops:
            whole = isinstance(top, int) and not isinstance(top, bool) and top > 0
            if not whole and not (isinstance(top, float) and 0 < top < 1):
                raise ValueError(f'attribute.top has {top!r}, wanted numbers of words, or shares between 0 and 1')
        self.deciding = {}
        self.settings = {
            'evidence': 'words that decide the answer' if world else 'spans that people marked',
            'words picked': ', '.join(map(str, self.tops)),
            'explained': config.attribute.target,
        }

    def measurer(self, explainer, params):
        def measure(params, batch):
            found, _ = explainer.relevance(explainer.decoder.net.merge(params), batch)
            return {'values': _protocols.items(found, 'text', self.size)}

        compiled = jax.jit(measure)
        return lambda batch: compiled(params, batch)

    def finish(self, rows, examples) -> dict:
        instances = [self._instance(values, example) for values, example in zip(rows['values'], examples)]
        draws = {name: value for name, value in _protocols.bootstrap(self.config, examples).items() if name != 'images'}
        result = rationale.evaluate(instances, (*self.tops, picks.GOLD), **draws)
        by_top = {row['top']: row for row in result['top']}
        gold = by_top[picks.GOLD]
        metrics = {
            'token_f1': gold['token_f1']['instance_macro']['f1'],
            'token_f1_micro': gold['token_f1']['instance_micro']['f1'],
            'iou_f1': gold['iou_f1']['macro']['f1'],
            **result['soft'],
            'recall_ceiling': result['ceiling']['instance_macro']['r'],
        }
        points = lambda row: row['token_f1']['instance_macro']['f1']['value']
        return {
            'metrics': {name: _protocols.better(value, 'higher') for name, value in metrics.items()},
            'curves': {'token-F1': sorted([by_top[top]['words'], points(by_top[top])] for top in self.tops)},
            'details': result,
            'files': {f'top{top}.jsonl': self._results(instances, top) for top in self.tops},
        }

    def _instance(self, values, example) -> picks.Instance:
        text = example.text.split()
        word_Q, _ = words.pieces(example.text, self.word, self.size)
        spans = (
            example.extra['evidence'] if 'evidence' in example.extra else [[w, w + 1] for w in example.extra['words']]
        )
        return picks.Instance(
            example.id,
            example.extra.get('docid', example.image_id),
            [tuple(span) for span in spans],
            picks.word_scores(np.where(word_Q >= 0, values, 0), word_Q, len(text)),
            words.shown(word_Q),
        )

    def _results(self, instances, top) -> list[eraser.Result]:
        """What ERASER's own metrics.py reads."""
        picked = lambda i: picks.runs(picks.pick(i, picks.count(top, i)))
        return [eraser.Result(i.id, [eraser.Rationale(i.docid, picked(i), i.score_W.tolist())]) for i in instances]


def check(examples, reader) -> None:
    """Raises ValueError where nobody said which words are evidence."""
    del reader
    for number in range(min(3, len(examples))):
        if not {'evidence', 'words'} & set(examples[number].extra):
            raise ValueError(
                f'attribute.evaluate=rationale needs evidence in words, but example {examples[number].id!r} has none: '
                'wanted data.builder eraser, or a form of the built-in world'
            )
