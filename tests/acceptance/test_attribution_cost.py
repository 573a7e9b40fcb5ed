"""Cost of attribution methods on ViT-B/16 at batch 32, as counted operations beside the plain forward pass."""

import pytest

from evil_jax.modes import _attribution_cost


@pytest.mark.acceptance
def test_heat_maps_in_forward_passes(measured):
    found = _attribution_cost.flops()
    wanted = {'raw_attention': 1.1, 'rollout': 1.1, 'gradcam': 1.3, 'generic': 3.5, 'transformer_attribution': 6.0,
              'attnlrp': 3.5, 'input_x_gradient': 3.5, 'legrad': 3.5}  # fmt: skip
    assert found.keys() == wanted.keys()
    for name, limit in wanted.items():
        measured(f'{name}: ViT-B/16 heat map at batch 32, in forwards', '<=', limit, found[name])
