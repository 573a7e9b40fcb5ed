import types

import jax
import numpy as np
import pytest
from flax import nnx
from jax.sharding import PartitionSpec as P

from evil_jax.training import sharding

MESH = types.SimpleNamespace(shape={'data': 1, 'fsdp': 2, 'tensor': 4})


def _specs(shape, spec):
    leaf = jax.ShapeDtypeStruct(shape, np.float32)
    return sharding.param_specs({'task/x/kernel': leaf}, ((r'.*kernel', spec),), MESH)['task/x/kernel']


def test_paths_are_those_of_the_modules(fake):
    state = nnx.split(fake.Pair(jax.random.key(0)), nnx.Param)[1]
    flat = sharding.flatten(state)
    assert 'task/layers/1/kernel' in flat and 'expl/wte/embedding' in flat
    again = sharding.unflatten(flat, state)
    assert jax.tree.structure(again) == jax.tree.structure(state)


def test_specs():
    assert _specs((8, 8), ('fsdp', 'tensor')) == P('fsdp', 'tensor')
    assert _specs((8, 8), ('tensor',)) == P('tensor')
    assert _specs((8, 8), (('fsdp', 'tensor'), None)) == P(('fsdp', 'tensor'), None)
    assert _specs((8, 8), ()) == P()


@pytest.mark.parametrize(
    'text, spec',
    [('fsdp,tensor', ('fsdp', 'tensor')), ('-,tensor', (None, 'tensor')), ('data+fsdp', (('data', 'fsdp'),)), ('', ())],
)
def test_specs_as_text(text, spec):
    assert sharding.parse_spec(text) == spec


def test_an_axis_that_does_not_divide_is_left_out_and_said(caplog):
    with caplog.at_level('WARNING'):
        assert _specs((8, 6), ('fsdp', 'tensor')) == P('fsdp', None)
    said = [r.getMessage() for r in caplog.records]
    assert len(said) == 1 and 'task/x/kernel' in said[0] and 'tensor (4)' in said[0]


def test_errors_name_the_parameter():
    for spec, message in ((('nowhere',), 'nowhere'), (('fsdp', None, None), 'shape')):
        with pytest.raises(ValueError, match=f'task/x/kernel.*{message}'):
            _specs((8, 8), spec)
    with pytest.raises(ValueError, match='task/x/bias'):
        sharding.param_specs({'task/x/bias': jax.ShapeDtypeStruct((2,), np.float32)}, ((r'.*kernel', ()),), MESH)


def test_mesh_takes_the_rest_and_refuses_what_does_not_fit(fake):
    assert dict(sharding.make_mesh(fake.config(), jax.devices()[:1]).shape) == {'data': 1, 'fsdp': 1, 'tensor': 1}
    with pytest.raises(ValueError, match=r'fsdp=3.*1 devices'):
        sharding.make_mesh(fake.config(mesh__fsdp=3), jax.devices()[:1])
    with pytest.raises(ValueError, match='one of them may be -1'):
        sharding.make_mesh(fake.config(mesh__fsdp=-1), jax.devices()[:1])


def test_every_device_gets_as_many_rows(fake):
    mesh = types.SimpleNamespace(shape={'data': 2, 'fsdp': 2, 'tensor': 1})
    sharding.check_batch(16, 2, mesh)
    with pytest.raises(ValueError, match='12 is not a multiple of 8'):
        sharding.check_batch(12, 2, mesh)
