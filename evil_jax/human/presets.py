"""Statistical models that compare systems, by name: the paper's (as far as it tells them) and ours.

* `clmm` (the default): rating ~ system + (1 | item) + (1 | rater), cumulative logit; gold explanations included.
* `lmm`: score ~ system + (1 | item) + (1 | explanation) + (1 | rater), where yes = 1, weak yes = 2/3, weak no = 1/3,
  no = 0; gold explanations included.
* `kayser2021_lmm`: score ~ system + (1 | dataset), systems only.
* `kayser2021_clmm`: median of an explanation's ratings ~ system + (1 | dataset), cumulative logit, systems only.
* `kayser2021_positive`: yes or weak yes ~ system + (1 | dataset) + (1 | rater), logistic, gold explanations included.

Kayser et al. (2021) name fixed and random factors in their appendix, but no formulas. An item is an example of a data
set, an explanation what one system says of it.

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


@dataclasses.dataclass(frozen=True, slots=True)
class Preset:
    """A model.

    Attributes:
      title: in words.
      kind: 'linear' (of scores) or 'ordinal' (of ratings).
      outcome: 'score', 'rating', 'median' or 'positive'.
      random: factors among dataset, item, explanation and rater.
      gold: whether gold explanations are one of the systems.
    """

    title: str
    kind: str
    outcome: str
    random: tuple[str, ...]
    gold: bool


PRESETS = {
    'clmm': Preset('cumulative link mixed model', 'ordinal', 'rating', ('item', 'rater'), True),
    'lmm': Preset('linear mixed model', 'linear', 'score', ('item', 'explanation', 'rater'), True),
    'kayser2021_lmm': Preset('linear mixed model', 'linear', 'score', ('dataset',), False),
    'kayser2021_clmm': Preset('cumulative link mixed model of medians', 'ordinal', 'median', ('dataset',), False),
    'kayser2021_positive': Preset('logistic mixed model', 'ordinal', 'positive', ('dataset', 'rater'), True),
}
