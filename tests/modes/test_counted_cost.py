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


def test_time_is_measured_beside_the_forward_pass():
    size = dataclasses.replace(vit.SIZES['base'], layers=1, width=16, heads=2, hidden=32, pixels=32)
    found = _attribution_cost.seconds(size, batch=2, names=('raw_attention',), repeats=1)
    assert list(found) == [_attribution_cost.FORWARD, 'raw_attention']
    assert min(found.values()) > 0


def test_table_has_each_time_at_the_batch_that_it_names(monkeypatch, capsys):
    """A batch of 32 takes thrice its forward pass, one of 256 eight times."""
    times = {32: {'forward': 0.1, 'generic': 0.3}, 256: {'forward': 0.25, 'generic': 2.0}}
    shown = []
    monkeypatch.setattr(_attribution_cost, 'flops', lambda: {'generic': 2.0})
    monkeypatch.setattr(_attribution_cost, 'seconds', lambda batch: times[batch])
    monkeypatch.setattr(_attribution_cost._terminal, 'show', lambda *table: shown.append(table))
    _attribution_cost.run()  # no accelerator
    assert 'nothing is timed' in capsys.readouterr().out
    monkeypatch.setattr(_attribution_cost.jax, 'default_backend', lambda: 'gpu')
    assert _attribution_cost.run() == {'generic': 2.0}
    assert not capsys.readouterr().out
    tables = [[dict(zip(columns, row, strict=True)) for row in rows] for _, columns, rows in shown]
    counted = {'method': 'generic', 'operations / forward, batch 32': '2.00'}
    timed = {'time / forward, batch 32': '3.00', 'heat maps/s, batch 256': '128'}
    assert tables == [[counted], [counted | timed]]
