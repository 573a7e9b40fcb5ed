import signal
import subprocess
import sys

import numpy as np
import pytest

from evil_jax.construction import scores

SIGNATURE = {'weights': 'abc', 'dtype': 'float32'}


class Model:
    """Says something else of each pair of texts, and notes what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, text_pairs):
        self.asked.append(list(text_pairs))
        return np.array([say(*pair) for pair in text_pairs])


def say(premise, hypothesis):
    first = (hash(len(premise)) * 7 + len(hypothesis)) % 90 / 100
    return first, 0.1, 0.9 - first


PAIRS = [('a', 'bc'), ('ab', 'c'), ('', ''), ('a', 'bc'), ('\u00e9', 'long ' * 9)]


def test_each_different_pair_is_asked_once_and_never_again(tmp_path):
    model, told = Model(), []
    with scores.Cache(tmp_path / 'new' / 'x.sqlite', SIGNATURE) as cache:
        assert cache.missing(PAIRS) == 4
        got = cache.scored(PAIRS, model, lambda done, of: told.append((done, of)))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, [say(*pair) for pair in PAIRS], atol=1e-7)
    assert told == [(4, 4)]
    assert len(model.asked) == 1
    assert model.asked[0][0] == PAIRS[-1]  # long ones first
    with scores.Cache(tmp_path / 'new' / 'x.sqlite', SIGNATURE) as cache:
        again = cache.scored([*PAIRS[::-1], ('a', 'd')], model)
        assert len(cache) == 5
        assert cache.scored([], model).shape == (0, 3)
    np.testing.assert_array_equal(again[:-1], got[::-1])
    assert model.asked[1:] == [[('a', 'd')]]


def test_what_was_said_before_an_interruption_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(scores, 'BATCH', 2)
    model = Model()

    def dies(text_pairs):
        if len(model.asked) == 1:
            raise KeyboardInterrupt
        return model(text_pairs)

    with pytest.raises(KeyboardInterrupt), scores.Cache(tmp_path / 'x', SIGNATURE) as cache:
        cache.scored(PAIRS, dies)
    with scores.Cache(tmp_path / 'x', SIGNATURE) as cache:
        assert cache.missing(PAIRS) == 2


_KILLED = """
import os, signal, sys
import numpy as np
from evil_jax.construction import scores
def score(pairs):
    if pairs[0][0].startswith('last'):
        os.kill(os.getpid(), signal.SIGKILL)
    return np.full((len(pairs), 3), 1 / 3)
with scores.Cache(sys.argv[1], {'weights': 'abc', 'dtype': 'float32'}) as cache:
    for name in ('first', 'second', 'last'):
        cache.scored([(f'{name} {i}', sys.argv[2]) for i in range(500)], score)
"""


def test_two_processes_that_are_killed_leave_what_both_have_written(tmp_path):
    command = [sys.executable, '-c', _KILLED, str(tmp_path / 'x')]
    processes = [subprocess.Popen([*command, name]) for name in ('one', 'two')]
    assert [process.wait(60) for process in processes] == [-signal.SIGKILL] * 2
    with scores.Cache(tmp_path / 'x', SIGNATURE) as cache:
        assert len(cache) == 2 * 2 * 500


def test_scores_of_another_model_are_refused(tmp_path):
    with scores.Cache(tmp_path / 'x', SIGNATURE) as cache:
        cache.scored(PAIRS, Model())
    with (
        pytest.raises(ValueError, match=r"x: has scores of another model \(weights 'abc', now 'abd'\): name another"),
        scores.Cache(tmp_path / 'x', SIGNATURE | {'weights': 'abd'}),
    ):
        pass
    with scores.Cache(tmp_path / 'x', SIGNATURE) as cache:
        assert len(cache) == 4


def test_a_file_of_another_kind_is_left_alone(tmp_path):
    (tmp_path / 'x').write_text('notes ' * 100)
    with (
        pytest.raises(ValueError, match='x: cannot be used to keep scores of the NLI model: file is not a database'),
        scores.Cache(tmp_path / 'x', SIGNATURE),
    ):
        pass
    assert (tmp_path / 'x').read_text() == 'notes ' * 100


@pytest.mark.parametrize(
    ('said', 'message'),
    [
        (np.ones((2, 2)) / 2, r'scores of shape \(2, 2\) for 1 pairs of texts, wanted \(1, 3\)'),
        (np.array([[0.1, 0.2, np.nan]]), 'no probabilities'),
        (np.array([[-1.0, 0.5, 1.5]]), 'no probabilities'),  # logits
        (np.array([[0.9, 0.9, 0.9]]), 'no probabilities'),
    ],
)
def test_what_is_no_probability_is_not_kept(tmp_path, said, message):
    with scores.Cache(tmp_path / 'x', SIGNATURE) as cache:
        with pytest.raises(ValueError, match=message):
            cache.scored([('a', 'b')], lambda _: said)
        assert len(cache) == 0
