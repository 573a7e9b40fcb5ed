"""All attribution methods by name.

    relevance(subject, targets_BK, 'transformer_attribution', Settings(start_layer=1)) -> Relevance

is pure; call it, and make its subject (see subjects.py), inside of one `jax.jit`. Everything is per example: what is
beside it in a batch, and how much padding it has, changes nothing. K targets cost one forward pass.

Legend: B examples, K targets, S positions.
"""

import dataclasses
from collections.abc import Callable

from evil_jax import lookup
from evil_jax.attribution import attention, attnlrp, chance, generic, gradcam, gradients, legrad, lrp
from evil_jax.attribution.base import Relevance, Settings

_LRP = ('chefer2020', 'lrp')
_DEFAULT = Settings()


@dataclasses.dataclass(frozen=True)
class Method:
    """An attribution method.

    Attributes:
      run: `(subject, targets_BK, settings) -> parts`, relevance of each input before it is put in order.
      reads: names of `Settings` that it reads.
      rules: rule sets that it can be told ('' is its own way, where that is none of them).
      needs: 'layers', that what answers or explains is a transformer; 'transformers', that all is (M_T and M_E); or ''.
      by_target: whether it depends on the target's output, or at most on the place that it is read from.
    """

    run: Callable
    reads: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    needs: str = 'layers'
    by_target: bool = True


def _transformer_attribution(subject, targets_BK, settings):
    """Transformer attribution (Chefer, Gur, Wolf, CVPR 2021, arXiv 2012.09838): A' = mean over heads of max(gradient *
    relevance of the attention, 0) (eq. 13), the row of (I + A'_L) ... (I + A'_start) that is read (eq. 14). ViT's
    tables start at layer 1 and BERT's at the last one, with rows scaled to sum to 1: see PRESETS."""
    rules = settings.rules or 'chefer2020'
    return generic.relevance(subject, targets_BK, dataclasses.replace(settings, rules=rules))


_LAYERED = ('rules', 'start_layer', 'row_norm')
METHODS = {
    'raw_attention': Method(attention.raw_attention, needs='', by_target=False),
    'rollout': Method(attention.rollout, _LAYERED, _LRP, by_target=False),
    'gradcam': Method(gradcam.relevance),
    'full_lrp': Method(lrp.full_lrp, ('rules',), _LRP, needs='transformers'),
    'partial_lrp': Method(lrp.partial_lrp, ('rules',), _LRP),
    'transformer_attribution': Method(_transformer_attribution, _LAYERED, _LRP),
    'generic': Method(generic.relevance, _LAYERED, _LRP),
    'attnlrp': Method(attnlrp.relevance, ('rules',), ('attnlrp', 'cplrp'), needs='transformers'),
    'input_x_gradient': Method(gradients.input_x_gradient, needs=''),
    'integrated_gradients': Method(gradients.integrated_gradients, ('steps', 'chunk'), needs=''),
    'smoothgrad': Method(gradients.smoothgrad, ('samples', 'noise', 'chunk', 'seed'), needs=''),
    'legrad': Method(legrad.relevance, ('start_layer',)),
    'random': Method(chance.random, ('seed',), needs='', by_target=False),
}
# Settings of published tables (facts of the authors' code).
PRESETS = {
    'chefer2020_vit': ('transformer_attribution', Settings(start_layer=1, row_norm=False)),
    'chefer2020_bert': ('transformer_attribution', Settings(start_layer=-1, row_norm=True)),
    'chefer2021': ('generic', Settings(start_layer=0, row_norm=False)),
}


def supported(subject) -> tuple[str, ...]:
    """Names of the methods that a subject has what it takes for."""
    has = {'': True, 'layers': subject.has_layers, 'transformers': subject.has_layers and bool(subject.first.taps)}
    return tuple(name for name, method in METHODS.items() if has[method.needs])


def resolve(method: str, settings: Settings = _DEFAULT) -> tuple[str, Settings]:
    """(name of a method, settings) of a method or preset.

    Raises:
      ValueError: a name that is neither; settings that contradict the preset; a rule set that is none of the method's.
    """
    lookup.entry({**METHODS, **PRESETS}, method, 'attribution method')
    if method in PRESETS:
        name, fixed = PRESETS[method]
        for field in ('start_layer', 'row_norm'):
            value, wanted = getattr(settings, field), getattr(fixed, field)
            if value is not None and value != wanted:
                raise ValueError(f'preset {method!r} has {field}={wanted}, not {value}: use {name!r} to set it')
        method = name
        settings = dataclasses.replace(settings, start_layer=fixed.start_layer, row_norm=fixed.row_norm)
    rules = METHODS[method].rules
    if settings.rules and rules and settings.rules not in rules:  # a method without rules ignores them
        raise ValueError(f'rules {settings.rules!r} are not for method {method!r}: wanted one of {", ".join(rules)}')
    return method, settings


def relevance(subject, targets_BK, method: str, settings: Settings = _DEFAULT) -> Relevance:
    """Relevance of every position of a subject's inputs for each target.

    Args:
      subject: of subjects.py.
      targets_BK: int32; answers or choices, or positions of an explanation's tokens (see there). What is out of range
        is not seen here and gets zeros: `subjects.check_targets` is for numbers that are not traced.
      method: of METHODS or PRESETS.
      settings: numbers that the method reads; others are ignored.

    Raises:
      ValueError: see `resolve`; a method that the model does not support; a start_layer that it does not have.
    """
    name, settings = resolve(method, settings)
    if name not in (names := supported(subject)):
        raise ValueError(f'this model does not support method {method!r}: wanted one of {", ".join(names)}')
    layers, start = len(subject.taps), settings.start_layer
    if 'start_layer' in METHODS[name].reads and start is not None and not -layers <= start < layers:
        raise ValueError(f'start_layer is {start}, but there are {layers} layers: wanted {-layers} to {layers - 1}')
    return subject.relevance(METHODS[name].run(subject, targets_BK, settings), targets_BK)
