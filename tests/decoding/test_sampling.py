"""Sampling: the distribution, the filters' edges, and that a row's draw depends on its example alone."""

import functools

import fakes
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from evil_jax.decoding import sampling
from evil_jax.decoding.generate import generate

PROBABILITY_V = np.array([0.05, 0.4, 0.02, 0.3, 0.08, 0.15])  # by rank: 1 3 5 4 0 2
LOGITS_V = np.log(PROBABILITY_V).astype(np.float32) + 3


def draw(count, logits_V=LOGITS_V, seed=0, **filters):
    keys_B = jax.random.split(jax.random.key(seed), count)
    logits_BV = jnp.tile(jnp.asarray(logits_V), (count, 1))
    return np.asarray(jax.jit(functools.partial(sampling.sample, **filters))(keys_B, logits_BV))


@pytest.mark.parametrize(
    'filters, wanted_V',
    [
        (dict(), PROBABILITY_V),
        (dict(temperature=2.0), PROBABILITY_V**0.5),
        (dict(temperature=0.5), PROBABILITY_V**2),
        (dict(top_k=3), PROBABILITY_V * [0, 1, 0, 1, 0, 1]),
        (dict(top_p=0.75), PROBABILITY_V * [0, 1, 0, 1, 0, 1]),  # .4 + .3 < .75: the next one is needed
        (dict(top_p=0.69), PROBABILITY_V * [0, 1, 0, 1, 0, 0]),
        (dict(top_k=2, top_p=0.56), PROBABILITY_V * [0, 1, 0, 0, 0, 0]),  # .4 / .7 = .571 reaches it alone
        (dict(top_k=2, top_p=0.58), PROBABILITY_V * [0, 1, 0, 1, 0, 0]),
        (dict(temperature=2.0, top_k=4, top_p=0.8), PROBABILITY_V**0.5 * [0, 1, 0, 1, 0, 1]),
        (dict(top_k=100), PROBABILITY_V),
        (dict(top_k=6, top_p=0.9999), PROBABILITY_V),
    ],
)
def test_distribution(filters, wanted_V):
    """Chi-square on 20,000 draws; filtered tokens never occur."""
    count_V = np.bincount(draw(20_000, **filters), minlength=6)
    wanted_V = np.asarray(wanted_V) / np.sum(wanted_V)
    assert (count_V[wanted_V == 0] == 0).all()
    kept = wanted_V > 0
    if kept.sum() > 1:
        assert scipy.stats.chisquare(count_V[kept], 20_000 * wanted_V[kept]).pvalue > 1e-3


@pytest.mark.parametrize('filters', [dict(top_k=1), dict(top_p=0.0), dict(top_p=1e-9), dict(temperature=1e-4)])
def test_tightest_filters_are_greedy(filters):
    assert (draw(500, **filters) == 1).all()


def test_of_equal_tokens_the_lowest_id_stays():
    tied_V = np.array([0.0, 2.0, 2.0, 2.0], np.float32)
    assert set(draw(200, tied_V, top_k=1)) == {1}
    assert set(draw(200, tied_V, top_k=2)) == {1, 2}
    assert set(draw(200, tied_V, top_p=0.0)) == {1}


def test_filters_that_keep_all_draw_the_same_as_none():
    plain = draw(300)
    np.testing.assert_array_equal(plain, draw(300, top_k=6))
    np.testing.assert_array_equal(plain, draw(300, top_k=99, top_p=1.0))


def test_padded_columns_are_never_drawn():
    padded_V = np.concatenate([LOGITS_V, np.full(10, -1e9, np.float32)])
    assert draw(2_000, padded_V, temperature=5.0).max() < 6


def sampler(fake, **settings):
    @jax.jit
    def function(batch, key):
        limits = dict(max_tokens=8, end_id=0, pad_id=9)
        return generate(fake, batch, None, None, method='sample', key=key, **limits, **settings)

    return lambda batch, seed=0: [np.asarray(x) for x in function(batch, jax.random.key(seed))]


def test_draws_depend_on_seed_and_example_only():
    fake, batch = fakes.Fake(7, 12, scale=1.0), fakes.prompts(12, 4, 7)
    sample_rows = sampler(fake)
    whole = sample_rows(batch)
    order = np.array([7, 2, 9, 4])
    part = sample_rows({k: v[order] for k, v in batch.items()})
    np.testing.assert_array_equal(whole[0][order], part[0])
    assert (sample_rows(batch, seed=1)[0] != whole[0]).any()
    same_prompt = {**batch, 'prompt': np.tile(batch['prompt'][:1], (12, 1)), 'prompt_length': np.full(12, 3, np.int32)}
    assert len({tuple(row) for row in sample_rows(same_prompt)[0]}) > 4  # rows do not share their noise


def test_scores_are_log_probabilities_of_the_unfiltered_model():
    fake, batch = fakes.Fake(7, 12, scale=1.0), fakes.prompts(12, 4, 7)
    tokens_BT, lengths_B, scores_B = sampler(fake, temperature=0.7, top_k=4)(batch)
    for row in range(12):
        tokens, total = tokens_BT[row, : lengths_B[row]], 0.0
        for step, token in enumerate(tokens):
            total += fake.log_p(fakes.prompt_of(batch, row), tokens[:step])[token]
        assert scores_B[row] == pytest.approx(total, abs=1e-4)


def test_sequences_follow_the_model():
    """Whole two-token explanations of one prompt, against the product of the model's probabilities."""
    fake = fakes.Fake(3, 8, scale=1.0)
    one = fakes.prompts(1, 3, 3)
    batch = {k: np.repeat(v, 20_000, axis=0) for k, v in one.items()}
    batch['row'] = np.arange(20_000, dtype=np.int32)

    def function(batch):
        return generate(
            fake, batch, None, None, method='sample', max_tokens=2, end_id=0, pad_id=0, key=jax.random.key(5)
        )

    tokens_BT = np.asarray(jax.jit(function)(batch)[0])
    every = fakes.every_sequence(fake, fakes.prompt_of(one, 0), 2, 0)
    wanted = np.array([20_000 * np.exp(total) for _, total in every])
    found = [np.all(tokens_BT == (*tokens, 0)[:2], axis=1).sum() for tokens, _ in every]
    assert sum(found) == 20_000
    assert scipy.stats.chisquare(found, wanted * 20_000 / wanted.sum()).pvalue > 1e-3
