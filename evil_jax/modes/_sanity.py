"""attribute.evaluate=sanity: do maps depend on the model, and on the class? (Adebayo et al., NeurIPS 2018)

Parameters are drawn anew, group by group from the head down; the class that is explained stays that of the trained
model. Class sensitivity: the map of the likeliest class beside that of the least likely one.

Legend: B batch, S positions.
"""

import functools

import jax
import jax.numpy as jnp

from evil_jax.attribution import methods, sanity, subjects
from evil_jax.models import vlnle
from evil_jax.modes import _protocols
from evil_jax.training import state as state_lib

_KINDS = ('spearman', 'overlap')


class Protocol:
    """Rank correlation, and overlap of the most relevant tenth, between maps that should differ: lower is better."""

    TITLE, AXES = 'Sanity checks', ('groups of parameters drawn anew', 'rank correlation')
    MAIN = ('model_spearman', 'class_spearman', 'model_overlap', 'class_overlap')
    NAMES = {
        'model_spearman': 'all parameters anew: rank correlation',
        'class_spearman': 'least likely class: rank correlation',
        'model_overlap': 'all parameters anew: overlap of the top tenth',
        'class_overlap': 'least likely class: overlap of the top tenth',
    }

    def __init__(self, config, decoder, sample, reader):
        del sample, reader
        self.config = config
        build = functools.partial(vlnle.build, decoder.config, decoder.task.assets)
        # Another seed than that of training: the parameters that it began with may resemble what it made of them.
        self.fresh = state_lib.fresh(build, decoder.net, jax.random.key(config.seed + 1), decoder.mesh)
        self.deciding = {}
        self.settings = {'order': 'cascade from the head down', 'explained': 'predicted answer of the trained model'}

    def measurer(self, explainer, params):
        decoder = explainer.decoder

        def maps(params, batch, target_B):
            model = decoder.net.merge(params)
            subject = subjects.answer(model.task, batch)
            found = methods.relevance(subject, target_B[:, None], explainer.method, explainer.settings)
            position_S, inside = jnp.arange(found.values_BKS.shape[-1]), []
            for start, length in found.spans.values():
                start_B1, length_B1 = (x.reshape(len(target_B), 1) for x in (start, length))
                inside.append((position_S >= start_B1) & (position_S < start_B1 + length_B1))
            # The class token, from which an answer is read, is 0 by definition in maps of many methods: a place where
            # two maps agree whatever they say.
            return found.values_BKS[:, 0], jnp.stack(inside).any(0) & (position_S > 0)

        answer = jax.jit(lambda params, batch: decoder.net.merge(params).task(batch)[0])
        maps = jax.jit(maps)
        trained, fresh = ({p: x for p, x in tree.items() if p.startswith('task/')} for tree in (params, self.fresh))
        rest = {path: leaf for path, leaf in params.items() if path not in trained}

        def measure(batch):
            likeliest_B, least_B = sanity.extremes(jax.device_get(answer(params, batch))).T
            reference, valid = jax.device_get(maps(params, batch, likeliest_B))
            other = jax.device_get(maps(params, batch, least_B)[0])
            rows = {f'class {kind}': values for kind, values in sanity.similarity(reference, other, valid).items()}
            redrawn = lambda tree: jax.device_get(maps(rest | tree, batch, likeliest_B)[0])
            for name, found in sanity.randomise(redrawn, trained, fresh, sanity.head_down(trained), valid_NS=valid):
                rows |= {f'{name} {kind}': values for kind, values in found.items()}
            return rows

        return measure

    def finish(self, rows, examples) -> dict:
        draws = _protocols.bootstrap(self.config, examples)
        details = {name: sanity.summarise({name: values}, **draws)[name] for name, values in rows.items()}
        groups = [
            name.rpartition(' ')[0] for name in rows if name.endswith(' spearman') and not name.startswith('class')
        ]
        metrics = {}
        for kind in _KINDS:
            metrics[f'model_{kind}'] = _protocols.better(details[f'{groups[-1]} {kind}'], 'lower')
            metrics[f'class_{kind}'] = _protocols.better(details[f'class {kind}'], 'lower')
        points = [[0.0, 1.0]]
        for number, group in enumerate(groups, 1):
            if (value := details[f'{group} spearman']['value']) is not None:
                points.append([float(number), value])
        return {'metrics': metrics, 'curves': {'cascade': points}, 'details': details}
