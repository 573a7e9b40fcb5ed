"""Counted operations of attribution methods on a ViT of a size that compiles at once."""

import dataclasses

import pytest

from evil_jax.models import vit
from evil_jax.modes import _attribution_cost


def test_cost_is_counted_in_forward_passes():
    """Wide enough that products are nearly all of it: a gradient is nearly one more pass."""
    size = dataclasses.replace(vit.SIZES['base'], layers=2, width=384, heads=6, hidden=1536, pixels=64)
    found = _attribution_cost.flops(size, batch=2, names=('generic',))
    assert 1.5 < found['generic'] < 2.2
    with pytest.raises(ValueError, match=r"attribution method is 'genric'. Did you mean 'generic'\?"):
        _attribution_cost.flops(size, batch=2, names=('genric',))
