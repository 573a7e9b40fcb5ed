"""Order and content of batches: independent of processes, workers and restarts; padding; errors."""

import contextlib
import itertools

import numpy as np
import pytest

from evil_jax.data import pipeline

EXAMPLES = list(range(100, 123))  # 23 of them


def local_functions():
    """Worker processes cannot import test modules; functions inside a function are pickled by value."""

    def good(example, rng):
        noise = 0.0 if rng is None else rng.random()
        return {'value': np.int32(example), 'noise': np.float32(noise), 'row_BF': np.full((2, 3), example, np.float16)}

    def bad(example, rng):
        raise ValueError('image 7 is missing')

    return good, bad


transform, bad_transform = local_functions()


def train(n=9, **kwargs):
    kwargs = {'batch': 6, 'seed': 3} | kwargs
    with contextlib.closing(pipeline.train_batches(EXAMPLES, transform, **kwargs)) as batches:
        return list(itertools.islice(batches, n))


def evaluate(examples=EXAMPLES, **kwargs):
    with contextlib.closing(pipeline.eval_batches(examples, transform, **({'batch': 6} | kwargs))) as batches:
        return list(batches)


def joined(parts):
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def same(left, right):
    assert len(left) == len(right) > 0
    for a, b in zip(left, right):
        assert a.keys() == b.keys()
        for name in a:
            assert a[name].dtype == b[name].dtype
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_shapes_and_types():
    first = train(1)[0]
    assert {name: (a.shape, a.dtype.name) for name, a in first.items()} == {
        'value': ((6,), 'int32'), 'noise': ((6,), 'float32'), 'row_BF': ((6, 2, 3), 'float16'),
        'mask': ((6,), 'bool'), 'row': ((6,), 'int32'),
    }  # fmt: skip
    assert first['mask'].all()
    np.testing.assert_array_equal(first['value'], first['row'] + 100)


def test_every_epoch_has_every_row_once_in_a_new_order():
    rows = joined(train(16))['row']
    epochs = [rows[i : i + 23].tolist() for i in range(0, 92, 23)]
    assert all(sorted(epoch) == list(range(23)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4 and epochs[0] != list(range(23))


def test_order_and_choices_depend_on_the_seed_and_the_place():
    same(train(), train())
    assert joined(train(seed=4))['row'].tolist() != joined(train())['row'].tolist()
    noise = joined(train())['noise']
    assert len(set(noise.tolist())) == len(noise)
    # Another batch size cuts the same endless sequence elsewhere.
    same([joined(train(9))], [joined(train(27, batch=2))])


@pytest.mark.parametrize('count', [2, 3, 6])
def test_processes_read_parts_of_the_same_batches(count):
    parts = [train(rows=np.arange(6)[p * 6 // count : (p + 1) * 6 // count]) for p in range(count)]
    same(train(), [joined(step) for step in zip(*parts)])


def test_rows_of_a_process_need_not_be_neighbours():
    (whole,), (part,) = train(1, start_step=2), train(1, start_step=2, rows=[0, 1, 4])
    same([part], [{name: array[[0, 1, 4]] for name, array in whole.items()}])
    last, part = evaluate()[-1], evaluate(rows=[1, 5])[-1]
    same([part], [{name: array[[1, 5]] for name, array in last.items()}])


def test_resume_is_a_step_number():
    whole = train(9)
    for step in (1, 4, 8):
        same(whole[step:], train(9 - step, start_step=step))
    far = train(1, start_step=10**9)
    assert far[0]['mask'].all()


@pytest.mark.parametrize('workers', [1, 2])
def test_worker_processes_change_nothing(workers):
    part = {'start_step': 3, 'rows': range(3, 6)}
    same(train(7, **part), train(7, **part, workers=workers))


def test_worker_processes_change_nothing_in_evaluation():
    same(evaluate(), evaluate(workers=2))


def test_evaluation_is_in_order_with_a_masked_tail():
    batches = evaluate()
    whole = joined(batches)
    assert len(batches) == 4 and all(len(b['row']) == 6 for b in batches)
    assert whole['row'].tolist() == [*range(23), -1] and whole['mask'].tolist() == [True] * 23 + [False]
    assert whole['value'].tolist() == [*EXAMPLES, EXAMPLES[-1]] and not whole['noise'].any()
    assert len(evaluate(EXAMPLES[:18])) == 3 and joined(evaluate(EXAMPLES[:18]))['mask'].all()


def test_processes_see_equally_many_evaluation_batches():
    # 7 rows in batches of 6: the second process's part of the last batch is padding only.
    parts = [evaluate(EXAMPLES[:7], rows=rows) for rows in (range(3), range(3, 6))]
    assert [len(p) for p in parts] == [2, 2]
    same(evaluate(EXAMPLES[:7]), [joined(step) for step in zip(*parts)])
    assert parts[1][1]['row'].tolist() == [-1, -1, -1]


def test_evaluation_resumes_at_any_row():
    assert joined(evaluate(start=12))['row'].tolist() == [*range(12, 23), -1]
    assert joined(evaluate(start=22))['row'].tolist() == [22] + [-1] * 5
    assert evaluate(start=23) == []


@pytest.mark.parametrize('make', [pipeline.train_batches, pipeline.eval_batches])
def test_errors(make):
    seed = {'seed': 0} if make is pipeline.train_batches else {}
    with pytest.raises(ValueError, match='the split has no examples'):
        make([], transform, batch=4, **seed)
    with pytest.raises(ValueError, match=r'rows \[2, 4\] of a batch of 4, wanted some of 0 ... 3'):
        make(EXAMPLES, transform, batch=4, rows=[2, 4], **seed)
    with pytest.raises(ValueError, match='batch of 0'):
        make(EXAMPLES, transform, batch=0, **seed)
    with pytest.raises(ValueError, match=r'rows \[\] of a batch of 4'):
        make(EXAMPLES, transform, batch=4, rows=[], **seed)


def test_bad_places():
    with pytest.raises(ValueError, match=r'start is 24, wanted .* 0 ... 23'):
        pipeline.eval_batches(EXAMPLES, transform, batch=4, start=24)
    with pytest.raises(ValueError, match='start_step is -1'):
        pipeline.train_batches(EXAMPLES, transform, batch=4, seed=0, start_step=-1)


class _Task:
    def transform(self, example, regions, rng):
        return {'seen': np.int32(regions)}


class _Example:
    image_id = 'pic'


def test_encode_looks_the_picture_up():
    assert pipeline.Encode(_Task(), {'pic': 5})(_Example(), None)['seen'] == 5


@pytest.mark.parametrize('workers', [0, 1])
def test_errors_of_the_transform_reach_the_caller(workers):
    batches = pipeline.train_batches(EXAMPLES, bad_transform, batch=4, seed=0, workers=workers)
    with pytest.raises(ValueError, match='image 7 is missing'):
        next(batches)
