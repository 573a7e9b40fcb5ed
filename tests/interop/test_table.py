"""The engine of tables: what fits is converted exactly, both ways; what does not is told, all of it, in one message."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evil_jax.interop import table

TABLE = table.rows(
    ('word', 'embed', table.EMBEDDING),
    (r'layers/(\d+)/up', r'h.\1.up', table.LINEAR),
    (r'layers/(\d+)/norm', r'h.\1.ln', table.NORM),
    *(
        (rf'layers/(\d+)/{name}', r'h.\1.qkv', (('kernel', 'weight', table.THIRD(n)), ('bias', 'bias', table.THIRD(n))))
        for n, name in enumerate(('query', 'key', 'value'))
    ),
    ('patch', 'conv', (('kernel', 'weight', table.CONV), ('bias', 'bias', table.SAME))),
) + (('first', 'cls_token', table.FIRST),)


def make(layers=2, width=3, seed=0):
    """Our parameters: no two numbers are equal, no two axes have one size."""
    rng = np.random.default_rng(seed)
    sizes = {'word/embedding': (7, width), 'patch/kernel': (2, 4, 5, 6), 'patch/bias': (6,), 'first': (1, width)}
    for n in range(layers):
        sizes |= {f'layers/{n}/up/kernel': (width, 4 * width), f'layers/{n}/up/bias': (4 * width,)}
        sizes |= {f'layers/{n}/norm/{leaf}': (width,) for leaf in ('scale', 'bias')}
        for name in ('query', 'key', 'value'):
            sizes |= {f'layers/{n}/{name}/kernel': (width, width), f'layers/{n}/{name}/bias': (width,)}
    return {path: rng.standard_normal(shape).astype(np.float32) for path, shape in sizes.items()}


@given(layers=st.integers(0, 3), width=st.integers(1, 5), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_there_and_back_is_the_same_bit_for_bit(layers, width, seed):
    params = make(layers, width, seed)
    there = table.save(TABLE, params, where='test')
    assert all(x.flags.c_contiguous and x.dtype == np.float32 for x in there.values())
    back = table.load(TABLE, there, params, where='test')
    assert back.keys() == params.keys()
    for path, x in params.items():
        assert back[path].tobytes() == x.tobytes(), path
    again = table.save(TABLE, dict(sorted(back.items(), reverse=True)), where='test')  # in any order
    assert {n: x.tobytes() for n, x in again.items()} == {n: x.tobytes() for n, x in there.items()}


def test_arrays_are_put_where_they_belong():
    params = make()
    there = table.save(TABLE, params, where='test')
    assert sorted(there) == sorted([
        'cls_token', 'conv.bias', 'conv.weight', 'embed.weight',
        *(f'h.{n}.{name}.{leaf}' for n in range(2) for name in ('ln', 'qkv', 'up') for leaf in ('weight', 'bias')),
    ])  # fmt: skip
    np.testing.assert_array_equal(there['h.1.up.weight'], params['layers/1/up/kernel'].T)
    np.testing.assert_array_equal(there['h.0.qkv.weight'][:, 3:6], params['layers/0/key/kernel'])
    np.testing.assert_array_equal(there['h.0.qkv.bias'][6:], params['layers/0/value/bias'])
    assert there['conv.weight'][5, 4, 1, 3] == params['patch/kernel'][1, 3, 4, 5]
    assert there['cls_token'].shape == (1, 1, 3)


def test_half_precision_becomes_float32():
    params = make(1)
    there = {n: x.astype(np.float16) for n, x in table.save(TABLE, params, where='test').items()}
    found = table.load(TABLE, there, params, where='test')
    assert {x.dtype for x in found.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(found['first'], params['first'].astype(np.float16))


def load_faults(there, shapes, **settings):
    with pytest.raises(ValueError) as error:
        table.load(TABLE, there, shapes, where='model.bin', **settings)
    return str(error.value)


def test_all_faults_of_a_file_are_told_at_once():
    params = make()
    there = table.save(TABLE, params, where='test')
    del there['h.0.ln.bias'], there['h.1.qkv.weight']
    there |= {
        'h.2.up.bias': np.zeros(12, np.float32),  # a layer more
        'h.0.up.weight': np.zeros((3, 12), np.float32),  # not transposed
        'h.0.qkv.weight': np.zeros((3, 8), np.float32),  # no three parts
        'conv.weight': np.zeros((6, 5, 2), np.float32),  # an axis less
        'cls_token': np.zeros((2, 1, 3), np.float32),
        'embed.weight': np.zeros((7, 3), np.int8),
        'h.1.ln.weight': np.array([1, np.nan, 1], np.float32),
        'h.1.ln.bias': np.array([1, np.inf, 1], np.float32),
    }
    told = load_faults(there, {**params, 'gate/kernel': params['first']}, origin='GPT-9', advice='\n  Advice.')
    for part in (
        'model.bin does not fit the model:\n  5 missing:\n',
        '\n    h.0.ln.bias (layers/0/norm/bias)\n',
        '\n    h.1.qkv.weight (layers/1/key/kernel)\n',
        '\n    gate/kernel: GPT-9 has nothing that corresponds\n',
        '\n  1 unexpected:\n    h.2.up.bias\n',
        '\n    h.0.up.weight: (12, 3) as layers/0/up/kernel, wanted (3, 12)\n',
        '\n    h.0.qkv.weight: (3, 8) as layers/0/query/kernel, wanted (3, 3)\n',
        '\n    conv.weight: (6, 5, 2) as patch/kernel, wanted (2, 4, 5, 6)\n',
        '\n    cls_token: (2, 1, 3) as first, wanted (1, 3)',
        '\n    embed.weight: int8 as word/embedding, wanted floating-point numbers',
        '\n    h.1.ln.weight: holds NaN or infinity',
        '\n    h.1.ln.bias: holds NaN or infinity',
    ):
        assert part in told, part
    assert told.endswith('\n  Advice.')


def test_an_axis_too_few_is_a_fault_even_where_shapes_agree():
    params = make(0)
    there = table.save(TABLE, params, where='test') | {'cls_token': params['first']}
    there['cls_token'] = np.zeros((3,), np.float32)
    told = load_faults(there, {**params, 'first': np.zeros(3)})
    assert 'cls_token: (3,) as first, wanted (3,) in their order of axes' in told


def test_names_that_are_of_no_use_and_paths_that_stay_fresh():
    params = make(1)
    there = table.save(TABLE, params, where='test')
    mask = {'h.0.mask': np.ones(3, np.float32)}
    assert '1 unexpected:\n    h.0.mask' in load_faults(there | mask, params)
    assert '1 unexpected:\n    h.0.mask' in load_faults(there | mask, params, ignored=('h.mask', '.*mas'))
    found = table.load(TABLE, there | mask, params, ignored=(r'h\.\d+\.mask', r'embed\..*'), where='test')
    assert found.keys() == params.keys()  # ignored, but of use
    assert '2 unexpected:\n    conv.bias\n    conv.weight' in load_faults(there, params, fresh=('patch/.*',))
    found = table.load(TABLE, there, params, fresh=('patch/.*',), ignored=(r'conv\..*',), where='test')
    assert found.keys() == {path for path in params if not path.startswith('patch')}


def test_tied_arrays_have_to_be_equal():
    params = make(0)
    there = table.save(TABLE, params, where='test')
    tied, head = (('head.weight', 'embed.weight'),), there['embed.weight']
    for more in ({}, {'head.weight': head.copy()}):
        assert table.load(TABLE, there | more, params, tied=tied, where='test').keys() == params.keys()
    told = load_faults(there | {'head.weight': head + 1}, params, tied=tied)
    assert '1 differing:\n    head.weight: other values than embed.weight' in told


def test_every_path_needs_one_row_and_every_part_its_whole():
    params = make(1)
    there = table.save(TABLE, params, where='test')
    twice = (*TABLE, ('word/embedding', 'other', table.SAME))
    with pytest.raises(ValueError, match=r'word/embedding: is both embed\.weight and other'):
        table.load(twice, there, params, where='test')
    two = {path: x for path, x in params.items() if '/key/' not in path}
    told = load_faults(there, two)
    assert 'h.0.qkv.bias: is taken for layers/0/query/bias, layers/0/value/bias, wanted 3 parts' in told
    shared = (*TABLE, ('again', 'cls_token', table.FIRST))
    with pytest.raises(ValueError, match='cls_token: is taken for first, again, wanted one of them'):
        table.load(shared, there, {**params, 'again': params['first']}, where='test')


def test_saving_is_as_strict():
    params = make(1)
    del params['layers/0/key/bias']
    params |= {
        'gate/kernel': params['first'],
        'layers/0/value/kernel': np.zeros((3, 2), np.float32),
        'patch/bias': np.full(6, np.nan, np.float32),
        'patch/kernel': np.zeros((2, 4), np.float32),
    }
    with pytest.raises(ValueError) as error:
        table.save(TABLE, params, where='the run')
    for part in (
        'the run cannot be saved under other names:\n  5 differing:\n',
        'gate/kernel: has no name there',
        'h.0.qkv.bias: is taken for layers/0/query/bias, layers/0/value/bias, wanted 3 parts',
        'h.0.qkv.weight: parts of shapes (3, 2), (3, 3), wanted equal ones',
        'patch/bias: holds NaN or infinity',
        'patch/kernel: (2, 4) cannot become conv.weight',
    ):
        assert part in str(error.value), part


def test_names_before_the_table_sees_them():
    rules = (r'^bert\.', ''), (r'\.gamma$', '.weight')
    assert table.renamed({'bert.a.gamma': 1, 'cls.bert.b': 2}, rules, 'x') == {'a.weight': 1, 'cls.bert.b': 2}
    with pytest.raises(ValueError, match=r'x: bert\.a\.gamma and a\.weight are two names of one parameter'):
        table.renamed({'a.weight': 1, 'bert.a.gamma': 2}, rules, 'x')
    (row, *_) = table.prefixed(TABLE, 'task/', 'model.')
    assert row[:2] == ('task/word/embedding', 'model.embed.weight')


def test_long_lists_are_cut():
    shapes = {f'x{n}': np.zeros(1) for n in range(50)}
    told = load_faults({}, shapes)
    assert '50 missing:' in told and 'x39:' in told and 'x40:' not in told and '... and 10 more' in told


def test_layers_that_lack_the_same_are_one_line():
    params = make(5)
    there = table.save(TABLE, params, where='test')
    for n in (1, 2, 3):
        there[f'h.{n}.up.bias'] = np.zeros(1, np.float32)
    for name in ('0.ln.bias', '4.ln.bias', '0.up.weight', '2.up.weight', '3.up.weight', '0.ln.weight', '1.ln.weight'):
        del there[f'h.{name}']
    told = load_faults(there, params)
    assert '\n    h.*.up.bias: (1,) as layers/*/up/bias, wanted (12,), * = 1 ... 3' in told
    assert '7 missing:' in told and '\n    h.*.ln.weight (layers/*/norm/scale), * = 0 ... 1' in told
    assert told.count('ln.bias') == 2 and told.count('up.weight') == 3
    blocks = load_faults({'a.0.b.1.c': 0, 'a.1.b.2.c': 0}, {})
    assert 'a.0.b.1.c' in blocks and 'a.1.b.2.c' in blocks


def test_a_transform_of_ones_own():
    flip = table.Transform(np.flip, np.flip)
    rows = (('a', 'b', flip),)
    there = table.save(rows, {'a': np.arange(3, dtype=np.float32)}, where='x')
    assert there['b'].tolist() == [2, 1, 0] and there['b'].flags.c_contiguous
