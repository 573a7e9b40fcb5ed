"""attribute.evaluate=perturbation: accuracy while the most, or the least, relevant items are taken away.

Of tokens and regions also comprehensiveness and sufficiency (ERASER), and what single items do (Liu et al. 2022).

Legend: B batch, N items, F shares, A answers.
"""

import dataclasses

import jax
import jax.numpy as jnp

from evil_jax.attribution import curves, perturbation, removal
from evil_jax.data import tokenizers
from evil_jax.modes import _protocols, _scoring

_UNITS = {'patches': 'pixel', 'regions': 'region', 'text': 'token'}  # of the first that a model reads
_SPANS = {'pixel': 'patches', 'patch': 'patches', 'token': 'text', 'region': 'regions'}
_SINGLES = 20  # items of an example that are removed one at a time, as in Liu et al. 2022


class Protocol:
    """Accuracy while the most, or the least, relevant items are taken away."""

    TITLE, AXES = 'Perturbation', ('share removed', 'accuracy')
    MAIN = (
        'auc_author_positive',
        'auc_author_negative',
        'auc_positive',
        'auc_negative',
        'comprehensiveness',
        'violation',
    )
    NAMES = {
        'auc_positive': 'positive AUC',
        'auc_negative': 'negative AUC',
        'auc_difference': 'negative - positive',
        'auc_author_positive': 'positive, 0-90 % x 100',
        'auc_author_negative': 'negative, 0-90 % x 100',
        'auc_author_difference': 'difference, 0-90 % x 100',
        'auc_card_positive': 'positive, 10-90 % x 100',
        'auc_card_negative': 'negative, 10-90 % x 100',
        'auc_card_difference': 'difference, 10-90 % x 100',
        'auc_positive_correct': 'positive AUC, correct ones',
        'auc_negative_correct': 'negative AUC, correct ones',
        'comprehensiveness': 'comprehensiveness (AOPC)',
        'sufficiency': 'sufficiency (AOPC)',
        'violation': 'violation',
        'rank_correlation': 'rank correlation',
    }

    def __init__(self, config, decoder, sample, reader):
        del reader
        section = config.attribute
        self.config, self.task = config, decoder.task
        unit = section.unit
        if unit == 'auto':
            unit = next(unit for span, unit in _UNITS.items() if span in _protocols.spans(decoder, sample))
        kind = removal.KINDS[unit][0] if section.removal == 'auto' else section.removal
        word = decoder.task.assets.word
        ids = {token: n for n, token in enumerate(word.vocabulary)}
        self.how = removal.Removal(
            unit, kind, section.fill, mask_id=ids.get(tokenizers.MASK, word.unk), special=(word.cls, word.sep, word.pad)
        )
        preset = 'chefer2020' if unit in ('pixel', 'patch') else 'chefer2021'
        if unit == 'region' and config.data.max_regions >= 100:
            preset = 'chefer2021_boxes'
        self.steps = perturbation.PRESETS[preset]
        if section.fractions:
            if not all(isinstance(share, int | float) for share in section.fractions):
                raise ValueError(f'attribute.fractions is {section.fractions!r}, wanted numbers above 0, up to 1')
            self.steps = dataclasses.replace(self.steps, fractions=tuple(section.fractions))
        self._check(decoder.net, sample)
        self.erasing = unit in ('token', 'region')
        self.soft = config.data.builder in _scoring.OPEN
        self.settings = {
            'unit': unit, 'removal': kind, 'shares': ', '.join(f'{f:g}' for f in self.steps.fractions),
            'explained': section.target,
            **({'fill': f'{section.fill} (RGB before normalisation)'} if kind == 'fill' else {}),
            **({'in its place': word.vocabulary[self.how.mask_id]} if (unit, kind) == ('token', 'zero') else {}),
        }  # fmt: skip

        self.deciding = {name: value for name, value in self.settings.items() if name != 'explained'}

    def _check(self, net, sample) -> None:
        """What the model does not have is told before anything is measured."""

        def look(params, batch):
            removal.predictor(net.merge(params).task, batch, self.how)
            return ()

        jax.eval_shape(look, net.shapes, sample)

    def measurer(self, explainer, params):
        def measure(params, batch):
            model = explainer.decoder.net.merge(params)
            found, _ = explainer.relevance(model, batch)
            values_BN, valid_BN = self._items(found, batch), removal.removable(batch, self.how)
            predict = removal.predictor(model.task, batch, self.how)
            gold, probability = self._gold(batch, jax.eval_shape(lambda b: model.task(b)[0], batch).shape[-1])
            clean_BA, logits_2FBA = perturbation.curves(predict, values_BN, self.steps, valid_BN)
            rows = perturbation.measure(clean_BA, logits_2FBA, gold, probability)
            if self.erasing:
                erased = perturbation.curves(predict, values_BN, perturbation.PRESETS['eraser'], valid_BN)
                measured = perturbation.measure(*erased, gold, probability)
                rows['erased'] = measured['probability']
                single = perturbation.singles(predict, values_BN, valid_BN, most=_SINGLES, probability=probability)
                rows |= {f'single_{name}': value for name, value in single.items()}
            return rows

        compiled = jax.jit(measure)
        return lambda batch: compiled(params, batch)

    def _items(self, found, batch):
        """Relevance of what can be taken away, BN."""
        span = _SPANS[self.how.unit]
        if span == 'patches':
            values_BP = _protocols.items(found, span, found.values_BKS.shape[-1] - 1)  # all but the class token
            return removal.picture_values(values_BP, batch['images'].shape[1], self.how.unit)
        return _protocols.items(found, span, batch['text' if span == 'text' else 'features'].shape[1])

    def _gold(self, batch, answers: int):
        if not self.soft:
            return batch['gold'], 'softmax'
        index_BA = jnp.arange(answers)
        scores = batch['answer_scores'][..., None] * (batch['answer_ids'][..., None] == index_BA)
        return scores.sum(1), 'sigmoid'

    def finish(self, rows, examples) -> dict:
        draws = _protocols.bootstrap(self.config, examples)
        names = ('score', 'log_odds', 'max_logit', 'max_probability', 'probability')
        result = curves.summarise({name: rows[name] for name in names}, self.steps.fractions, **draws)
        metrics = {}
        for direction, which in (('positive', 'lower'), ('negative', 'higher'), ('difference', 'higher')):
            for area in ('auc', 'auc_author', 'auc_card'):
                if area in result[direction]:
                    metrics[f'{area}_{direction}'] = _protocols.better(result[direction][area], which)
        for direction, which in (('positive', 'lower'), ('negative', 'higher')):
            metrics[f'auc_{direction}_correct'] = _protocols.better(result['correct'][direction]['auc'], which)
        if self.erasing:
            fractions = perturbation.PRESETS['eraser'].fractions
            erased = curves.erasure({'probability': rows['erased']}, fractions, **draws)
            metrics['comprehensiveness'] = _protocols.better(erased['comprehensiveness_aopc'], 'higher')
            metrics['sufficiency'] = _protocols.better(erased['sufficiency_aopc'], 'lower')
            single = curves.effects({n: rows[f'single_{n}'] for n in ('values', 'valid', 'drop', 'change')})
            for name, which in (('violation', 'lower'), ('rank_correlation', 'higher')):
                metrics[name] = _protocols.better(curves.estimate(single[name][:, None], **draws)[0], which)
        x = result['fractions']
        points = lambda d: [[a, b['value']] for a, b in zip(x, result[d]['score']) if b['value'] is not None]
        return {'metrics': metrics, 'curves': {d: points(d) for d in ('positive', 'negative')}, 'details': result}
