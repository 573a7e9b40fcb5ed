"""AttnLRP (Achtibat et al., ICML 2024, arXiv 2402.05602) and CP-LRP (Ali et al., ICML 2022, arXiv 2202.07304).

The rule sets 'attnlrp' and 'cplrp' change the backward pass so that input * gradient is the relevance (Arras et al.
2025): the seed is the target's output, and one forward and one backward pass are all there is to compute.

Legend: K targets, B rows, S positions.
"""

from evil_jax.attribution import gradients

RULES = 'attnlrp'


def relevance(subject, targets_BK, settings):
    """Relevance of the inputs, summed over their width: a tuple of [K, B, S]."""
    return gradients.times(subject.inputs, gradients.at(subject, targets_BK, subject.inputs, settings.rules or RULES))
