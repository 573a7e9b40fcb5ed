"""Statistical models that compare systems, by name: the paper's (as far as it tells them) and ours.

* `clmm`: rating ~ system + (1 | item) + (1 | rater), cumulative logit.
* `clmm_explanation`: the same + (1 | explanation); slow (3 to 8 minutes for 21,600 ratings on 2 cores).
* `lmm`: score ~ system + (1 | item) + (1 | explanation) + (1 | rater) + (1 | item:rater), where yes = 1, weak yes =
  2/3, weak no = 1/3, no = 0.

These three include gold explanations as a system and have `dataset` as a fixed factor where there are several.

* `kayser2021_lmm`: score ~ system + (1 | dataset), systems only.
* `kayser2021_clmm`: median of an explanation's ratings ~ system + (1 | dataset), cumulative logit, systems only.
* `kayser2021_positive`: yes or weak yes ~ system + (1 | dataset) + (1 | rater), logistic, gold explanations included.

Kayser et al. (2021) name fixed and random factors in their appendix, but no formulas. An item is an example of a data
set, an explanation what one system says of it, item:rater what the two explanations have in common that a rater judges
together.

Several ratings of one explanation share what is good or bad about it. A model without `explanation` takes them for
independent and finds differences too often: in simulated studies like the published ones it calls 13 % of pairs
different that are alike, where 5 % was asked for, and `lmm` 6 % (tests/acceptance/test_human_lmm.py). `notes` says so.

`run` gives one JSON object. Everything but `name`, `title`, `formula`, `unit` and `n` may be None or empty where
`reason` is not None:

    {
      "name": "clmm",
      "title": "cumulative link mixed model",
      "formula": "rating ~ system + (1 | item) + (1 | rater), logit link",
      "unit": "log odds of a better rating",          # of estimates; 'score, 0 to 1' of linear models
      "n": 21600,                                     # ratings (or medians) in the model
      "sizes": {"system": 5, "item": 2477, "rater": 210},
      "reference": "gt",                              # the system that the coefficients are differences to
      "thresholds": [{"name": "no|weak_no", "estimate": -2.51, "se": 0.25}],          # [] of linear models
      "coefficients": [
        {"name": "e-UG", "estimate": -0.77, "se": 0.21, "statistic": -3.7, "df": null, "p": 0.0002,
         "ci95": [-1.18, -0.36]}                      # linear models also have "(Intercept)"
      ],
      "sd": {"item": 0.97, "rater": 0.45},            # random effects; linear models also have 'residual'
      "log_likelihood": -1125.1,
      "likelihood_ratio": {"chi2": 100.0, "df": 4, "p": 9.8e-21},                     # all systems alike?
      "contrasts": [
        {"a": "e-UG", "b": "RVT", "estimate": 0.27, "se": 0.2, "statistic": 1.3, "df": null, "p": 0.19,
         "p_holm": 0.38, "ci95": [-0.13, 0.67]}       # a minus b, all pairs; ci95 is of this pair alone
      ],
      "notes": ["one data set: no random effect of it"],
      "reason": null                                  # or why there is no model
    }
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from evil_jax import lookup
from evil_jax.human import _coding, _observations, contrasts, mixed
from evil_jax.human.responses import Response
from evil_jax.human.study import GOLD


@dataclasses.dataclass(frozen=True, slots=True)
class Preset:
    """A model.

    Attributes:
      title: in words.
      kind: 'linear' (of scores) or 'ordinal' (of ratings).
      outcome: one of `_observations.OUTCOMES`.
      fixed: factors; `system`, and in ours `dataset`.
      random: factors among dataset, item, explanation and rater.
      gold: whether gold explanations are one of the systems.
    """

    title: str
    kind: str
    outcome: str
    fixed: tuple[str, ...]
    random: tuple[str, ...]
    gold: bool


_LMM, _CLMM = 'linear mixed model', 'cumulative link mixed model'
_OURS = ('system', 'dataset')
_SHARED = (
    'several ratings of one explanation are taken for independent, so p-values are too small where explanations '
    'differ in more than chance: see lmm or clmm_explanation'
)
_UNITS = {
    'score': 'score, 0 to 1',
    'rating': 'log odds of a better rating',
    'median': 'log odds of a better median',
    'positive': 'log odds of yes or weak yes',
}
PRESETS = {
    'clmm': Preset(_CLMM, 'ordinal', 'rating', _OURS, ('item', 'rater'), True),
    'clmm_explanation': Preset(_CLMM, 'ordinal', 'rating', _OURS, ('item', 'explanation', 'rater'), True),
    'lmm': Preset(_LMM, 'linear', 'score', _OURS, ('item', 'explanation', 'rater', 'item:rater'), True),
    'kayser2021_lmm': Preset(_LMM, 'linear', 'score', ('system',), ('dataset',), False),
    'kayser2021_clmm': Preset(f'{_CLMM} of medians', 'ordinal', 'median', ('system',), ('dataset',), False),
    'kayser2021_positive': Preset(
        'logistic mixed model', 'ordinal', 'positive', ('system',), ('dataset', 'rater'), True
    ),
}


def run(name: str, responses: Iterable[Response]) -> dict:
    """Fits a model of this name and compares all pairs of systems. Shape: see above.

    Args:
      name: a key of `PRESETS`.
      responses: of one or several studies; those that do not count (`reason`) are left out.

    Raises:
      ValueError: an unknown name, or a rating that is none.
    """
    preset = lookup.entry(PRESETS, name, 'model of ratings')
    data = _observations.observations(responses, preset.outcome, preset.gold)
    random, notes = _observations.usable(data.factors, preset.random)
    notes = [*data.notes, *notes]
    if 'explanation' not in preset.random and len(set(data.factors['explanation'])) < len(data.values):
        notes.append(_SHARED)
    fixed = [factor for factor in preset.fixed if factor == 'system' or len(set(data.factors[factor])) > 1]
    systems = sorted(set(data.factors['system']), key=lambda system: (system == GOLD, system))
    found = {
        'name': name,
        'title': preset.title,
        'formula': _formula(preset, fixed, random),
        'unit': _UNITS[preset.outcome],
        'n': len(data.values),
        'sizes': {factor: len(set(data.factors[factor])) for factor in dict.fromkeys([*fixed, *random])},
        'reference': None,
        'thresholds': [],
        'coefficients': [],
        'sd': {},
        'log_likelihood': None,
        'likelihood_ratio': None,
        'contrasts': [],
        'notes': notes,
        'reason': None,
    }
    if len(systems) < 2:
        without = '' if preset.gold else '; gold explanations are none of them in this model'
        return found | {'reason': f'wanted two systems, there is {", ".join(systems) or "none"}{without}'}
    reference = GOLD if GOLD in systems else systems[0]
    levels = {'system': [reference, *(system for system in systems if system != reference)]}
    terms = {factor: data.factors[factor] for factor in fixed}
    effects = {factor: data.factors[factor] for factor in random}
    x, _ = _coding.treatment(terms, levels, len(data.values))
    if np.linalg.matrix_rank(x) < x.shape[1]:
        return found | {'reason': 'systems cannot be compared: they have no data set in common'}
    if preset.kind == 'linear':
        fit, ratio, told = _linear(data, terms, effects, levels)
    else:
        used = set(data.values)
        categories = [level for level in _observations.LEVELS[preset.outcome] if level in used]
        fit, ratio, told = _ordinal(data, terms, effects, levels, categories)
    if fit.reason is not None:
        return found | {'reason': fit.reason}
    return found | {
        'reference': reference,
        **_numbers(fit, preset.kind, terms, systems),
        'likelihood_ratio': ratio and dict(zip(('chi2', 'df', 'p'), ratio)),
        'notes': [*notes, *told],
    }


def _formula(preset, fixed, random):
    terms = ' + '.join([*fixed, *(f'(1 | {factor})' for factor in random)])
    return f'{preset.outcome} ~ {terms}' + (', logit link' if preset.kind == 'ordinal' else '')


def _linear(data, fixed, random, levels):
    """(fit, ratio of likelihoods with and without systems, notes)."""
    fit = mixed.fit(data.values, fixed, random, fixed_levels=levels)
    if fit.reason is not None:
        return fit, None, []
    notes = [f'{factor} does not vary (sd 0)' for factor in fit.singular]
    if not fit.converged:
        notes.append('the maximum of the likelihood was not found to all digits')
    full = mixed.fit(data.values, fixed, random, fixed_levels=levels, reml=False)
    null = mixed.fit(data.values, _others(fixed), random, reml=False)
    return fit, mixed.likelihood_ratio(full, null), notes


def _ordinal(data, fixed, random, levels, categories):
    from evil_jax.human import clmm  # which linear models do not need

    fit = clmm.fit(data.values, fixed, random, levels=categories, fixed_levels=levels)
    if fit.reason is not None:
        return fit, None, []
    null = clmm.fit(data.values, _others(fixed), random, levels=categories)
    if null.reason is not None:
        return fit, None, [*fit.notes, f'no test of all systems: without them {null.reason}']
    return fit, clmm.likelihood_ratio(fit, null), list(fit.notes)


def _others(fixed):
    return {factor: values for factor, values in fixed.items() if factor != 'system'}


def _numbers(fit, kind, fixed, systems):
    """The part of the document that a fit gives."""
    linear = kind == 'linear'
    names = list(fit.coefficients) if linear else list(fit.names)
    values = dict(fit.coefficients) if linear else fit.thresholds | fit.coefficients
    labels = {f'system{system}': system for system in systems}
    labels |= {f'{factor}{level}': f'{factor} {level}' for factor in _others(fixed) for level in set(fixed[factor])}
    rows = []
    for name in fit.coefficients:
        keys = ('estimate', 'se', 'statistic', 'df', 'p', 'ci95')
        numbers = contrasts.tested(values[name], fit.se[name], fit.df[name] if linear else None)
        rows.append({'name': labels.get(name, name)} | dict(zip(keys, numbers)) | {'ci95': list(numbers[-1])})
    pairs = contrasts.pairwise(
        systems,
        {system: names.index(name) for name, system in labels.items() if system in systems and name in names},
        list(values.values()),
        fit.cov,
        fit.degrees if linear else None,
    )
    thresholds = {} if linear else fit.thresholds
    return {
        'thresholds': [{'name': name, 'estimate': v, 'se': fit.se[name]} for name, v in thresholds.items()],
        'coefficients': rows,
        'sd': dict(fit.sd),
        'log_likelihood': fit.log_likelihood,
        'contrasts': [pair.to_json() for pair in pairs],
    }
