"""Greedy search, padding, masks, early stop: against the definition, computed token by token in NumPy."""

import functools

import fakes
import jax
import numpy as np
import pytest

from evil_jax.decoding.generate import generate

END, PAD = 0, 9


def compiled(fake, **settings):
    function = functools.partial(generate, fake, end_id=END, pad_id=PAD, **settings)
    jitted = jax.jit(lambda batch: function(batch, None, None))
    return lambda batch: [np.asarray(x) for x in jitted(batch)]


def run(fake, batch, **settings):
    return compiled(fake, **settings)(batch)


def greedy_by_hand(fake, prompt, max_tokens):
    tokens, total = [], 0.0
    while len(tokens) < max_tokens and END not in tokens:
        log_p = fake.log_p(prompt, tokens)
        tokens.append(int(np.argmax(log_p)))
        total += log_p[tokens[-1]]
    return tokens, total


def test_greedy_equals_the_definition_on_ragged_prompts():
    fake, batch = fakes.Fake(7, 12), fakes.prompts(16, 4, 7)
    tokens_BT, lengths_B, scores_B = run(fake, batch, max_tokens=8)
    ended = 0
    for row in range(16):
        wanted, total = greedy_by_hand(fake, fakes.prompt_of(batch, row), 8)
        assert tokens_BT[row, : lengths_B[row]].tolist() == wanted
        assert (tokens_BT[row, lengths_B[row] :] == PAD).all()
        assert scores_B[row] == pytest.approx(total, abs=1e-4)
        ended += wanted[-1] == END
    assert 0 < ended < 16  # both kinds of row occur


def test_equal_logits_give_the_lowest_id():
    fake, batch = fakes.Fake(7, 12), fakes.prompts(2, 4, 7)
    fake.out_DV = np.zeros_like(fake.out_DV)
    tokens_BT, lengths_B, _ = run(fake, batch, max_tokens=5)
    assert tokens_BT.tolist() == [[0, PAD, PAD, PAD, PAD]] * 2 and lengths_B.tolist() == [1, 1]


@pytest.mark.parametrize('method', ['greedy', 'sample', 'beam'])
def test_rows_beyond_the_vocabulary_are_never_generated(method):
    """The scores stay those of the whole table's distribution."""
    fake, batch = fakes.Fake(7, 12), fakes.prompts(16, 4, 7)
    settings = dict(max_tokens=8, method=method, beams=3, length_penalty=0.0, key=jax.random.key(0))
    assert run(fake, batch, **settings)[0][:, 0].max() > 3
    tokens_BT, lengths_B, scores_B = run(fake, batch, **settings, vocabulary=4)
    for row in range(16):
        tokens, total = tokens_BT[row, : lengths_B[row]], 0.0
        assert tokens.max() < 4
        for step, token in enumerate(tokens):
            total += fake.log_p(fakes.prompt_of(batch, row), tokens[:step])[token]
        assert scores_B[row] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize('method', ['greedy', 'beam'])
def test_padding_rows_are_pad_and_change_nothing(method):
    fake, batch = fakes.Fake(7, 12), fakes.prompts(6, 4, 7)
    search = compiled(fake, max_tokens=6, method=method, beams=3)
    whole = search(batch)
    masked = search({**batch, 'mask': np.array([True, False, True, True, True, False])})
    for a, b in zip(whole, masked):
        np.testing.assert_array_equal(a[[0, 2, 3, 4]], b[[0, 2, 3, 4]])
    tokens_BT, lengths_B, scores_B = masked
    assert (tokens_BT[[1, 5]] == PAD).all() and not lengths_B[[1, 5]].any() and not scores_B[[1, 5]].any()


@pytest.mark.parametrize('method', ['greedy', 'sample', 'beam'])
def test_loop_stops_when_all_rows_ended(method):
    """`extend` runs once less than the longest row has tokens; a batch of padding runs it not at all."""
    fake, batch = fakes.Fake(7, 40), fakes.prompts(32, 4, 7)
    search = compiled(fake, max_tokens=30, method=method, beams=1, key=jax.random.key(0))
    lengths_B = search(batch)[1]
    some_B = lengths_B < 20
    assert some_B.sum() > 1
    for mask_B in (some_B, some_B & (lengths_B < 10), np.zeros(32, bool)):
        jax.effects_barrier()
        fake.steps = 0
        search({**batch, 'mask': mask_B})
        jax.effects_barrier()
        assert fake.steps == max(lengths_B[mask_B], default=1) - 1


def test_one_token_needs_no_extend():
    fake, batch = fakes.Fake(7, 12), fakes.prompts(3, 4, 7)
    for method in ('greedy', 'beam'):
        tokens_BT, lengths_B, _ = run(fake, batch, max_tokens=1, method=method)
        assert tokens_BT.shape == (3, 1) and lengths_B.tolist() == [1, 1, 1]
        wanted = [greedy_by_hand(fake, fakes.prompt_of(batch, row), 1)[0] for row in range(3)]
        assert tokens_BT.tolist() == wanted
    jax.effects_barrier()
    assert fake.steps == 0


@pytest.mark.parametrize(
    'settings, message',
    [
        (dict(method='nucleus'), "'nucleus'.*greedy, sample, beam"),
        (dict(method='sample'), 'random key'),
        (dict(method='sample', temperature=0.0), 'temperature is 0.0'),
        (dict(method='sample', top_p=1.5), 'top_p is 1.5'),
        (dict(method='sample', top_k=-1), 'top_k is -1'),
        (dict(method='beam', beams=0), 'beams is 0'),
        (dict(max_tokens=0), 'max_tokens is 0'),
    ],
)
def test_bad_settings_are_named(settings, message):
    fake, batch = fakes.Fake(7, 12), fakes.prompts(2, 4, 7)
    with pytest.raises(ValueError, match=message):
        generate(fake, batch, None, None, end_id=END, pad_id=PAD, **{'max_tokens': 4, **settings})
