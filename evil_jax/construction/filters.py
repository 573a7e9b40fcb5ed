"""The filters that a config asks for."""

from evil_jax import lookup
from evil_jax.construction._filter import Filter
from evil_jax.construction.false_neutral import FalseNeutral
from evil_jax.construction.keywords import Keywords
from evil_jax.construction.similarity import Similarity
from evil_jax.construction.uncertainty import Uncertainty

_MAKERS = {
    'false_neutral': lambda construct: FalseNeutral(construct.false_neutral),
    'keywords': lambda construct: Keywords(construct.keywords, construct.explanation),
    'similarity': lambda construct: Similarity(construct.similarity),
    'uncertainty': lambda construct: Uncertainty(construct.uncertainty),
}
NAMES = tuple(_MAKERS)


def make(construct) -> list[Filter]:
    """The filters of `construct.filters`, in that order; each has settings in `construct.NAME`.

    Raises:
      ValueError: an unknown filter or one that stands there twice, or a setting that makes no sense.
    """
    for name in construct.filters:
        if list(construct.filters).count(name) > 1:
            raise ValueError(f'construct.filters has {name!r} more than once')
    return [lookup.entry(_MAKERS, name, 'a filter of construct.filters')(construct) for name in construct.filters]
