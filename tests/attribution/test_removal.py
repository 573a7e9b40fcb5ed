"""What is taken away: against batches shortened by hand, and against attention that is told not to look."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from evil_jax.attribution import perturbation, removal
from evil_jax.attribution.removal import Removal
from evil_jax.models import bert, uniter, updown, vit
from evil_jax.nn import ops

WORDS, ANSWERS, CHOICES, ROWS, TOKENS, REGIONS = 40, 5, 3, 4, 8, 5
UNITER = uniter.Size(layers=2, width=16, heads=2, hidden=32, positions=12, std=1, word_std=1)
BERT = bert.Size(layers=2, width=16, heads=2, hidden=32, positions=12, std=1, word_std=1)
VIT = vit.Size(layers=2, width=16, heads=2, hidden=32, patch=4, pixels=16)
UPDOWN = updown.Size(embedding=16, width=16, hidden=16, locations=True, norms=True)
CLS, SEP, MASK = 1, 2, 3


@functools.cache
def make_model(name):
    """A model with random parameters: biases and norms that change something."""
    make = {
        'uniter': lambda **k: uniter.Uniter(UNITER, words=WORDS, answers=ANSWERS, **k),
        'choices': lambda **k: uniter.Uniter(UNITER, words=WORDS, choices=CHOICES, types=3, **k),
        'bert': lambda **k: bert.Bert(BERT, words=WORDS, answers=ANSWERS, **k),
        'updown': lambda **k: updown.UpDown(UPDOWN, words=WORDS, answers=ANSWERS, **k),
        'vit': lambda **k: vit.Vit(VIT, answers=ANSWERS, **k),
    }[name]
    graph, shapes = nnx.split(nnx.eval_shape(lambda: make(rngs=nnx.Rngs(params=0))))
    r = np.random.default_rng(0)
    draw = lambda x: jnp.asarray((x.ndim == 1) + r.normal(size=x.shape) * 0.3, jnp.float32)
    return nnx.merge(graph, jax.tree.map(draw, shapes))


def make_batch(name, seed=0):
    r = np.random.default_rng(seed)
    if name == 'vit':
        return {'images': r.uniform(-1, 1, (ROWS, 16, 16, 3)).astype(np.float32)}
    length = np.array([TOKENS, 5, 6, 2], np.int32)  # the last text has nothing between its markers
    text = r.integers(4, WORDS, (ROWS, TOKENS)).astype(np.int32)
    text[:, 0], text[np.arange(ROWS), length - 1] = CLS, SEP
    text[0, 3] = SEP  # between two texts
    batch = {
        'text': text,
        'text_type': r.integers(0, 2, (ROWS, TOKENS)).astype(np.int32),
        'text_length': length,
        'features': r.normal(size=(ROWS, REGIONS, 2048)).astype(np.float16),
        'locations': r.random((ROWS, REGIONS, 7), np.float32),
        'region_length': np.array([REGIONS, 3, 1, 4], np.int32),
    }
    if name == 'choices':
        tags = lambda *shape: r.integers(-1, batch['region_length'].reshape(-1, *[1] * (len(shape) - 1)), shape)
        batch |= {
            'text_tags': tags(ROWS, TOKENS).astype(np.int32),
            'choices': r.integers(4, WORDS, (ROWS, CHOICES, TOKENS)).astype(np.int32),
            'choices_type': r.integers(0, 3, (ROWS, CHOICES, TOKENS)).astype(np.int32),
            'choices_length': r.integers(4, TOKENS + 1, (ROWS, CHOICES)).astype(np.int32),
            'choices_tags': tags(ROWS, CHOICES, TOKENS).astype(np.int32),
        }
    return batch


def keep_of(batch, how, seed=1):
    """A mask that removes something of every row that has something, and True wherever nothing can be removed."""
    valid = np.asarray(removal.removable(batch, how))
    keep = np.random.default_rng(seed).random(valid.shape) < 0.5
    keep[0, 4] = False
    return keep | ~valid


def shortened(batch, keep, unit):
    """The batch without what is not kept, made row by row; what stands behind is garbage, which must not matter."""
    batch = {name: np.array(x) for name, x in batch.items()}
    names = {'token': ('text', 'text_type'), 'region': ('features', 'locations')}[unit]
    length = {'token': 'text_length', 'region': 'region_length'}[unit]
    for b in range(ROWS):
        kept = [i for i in range(batch[length][b]) if keep[b, i]]
        for name in names:
            rest = np.flip(batch[name][b])[: len(keep[b]) - len(kept)]
            batch[name][b] = np.concatenate([batch[name][b][kept], rest])
        for name in ('text_tags', 'choices_tags'):
            if unit == 'region' and name in batch:
                batch[name][b] = np.vectorize(lambda t, kept=kept: kept.index(t) if t in kept else -1)(batch[name][b])
        batch[length][b] = len(kept)
    return batch


@functools.cache
def compiled(name, how):
    graph, state = nnx.split(make_model(name))
    answer = jax.jit(lambda state, batch, keep: removal.predictor(nnx.merge(graph, state), batch, how)(keep))
    return functools.partial(answer, state)


def run(name, batch, keep, how):
    return np.asarray(compiled(name, how)(batch, keep))


def not_looking(name, batch, keep):
    """Logits where every position stays where it is, but keys that are not kept get no attention."""
    graph, state = nnx.split(make_model(name))
    start, size = {'vit': (1, 17), 'uniter': (0, TOKENS + REGIONS)}[name]
    hidden = np.zeros((ROWS, size), bool)
    hidden[:, start : start + keep.shape[1]] = ~keep
    scores = ops.FORWARD.scores
    table = {**vars(ops.FORWARD), 'scores': lambda q, k: jnp.where(hidden[:, None, None], -jnp.inf, scores(q, k))}
    ops.OPS['not_looking'] = type(ops.FORWARD)(**table)

    @jax.jit
    def answer(state, batch):
        model = nnx.merge(graph, state)
        model.set_attributes(rules='not_looking')
        taps = [jnp.zeros((ROWS, model.size.heads, size, size))] * len(model.layers)
        return model(batch, taps=taps)[0]

    try:
        return np.asarray(answer(state, batch))
    finally:
        del ops.OPS['not_looking']


CASES = [('uniter', 'region'), ('uniter', 'token'), ('choices', 'region'), ('bert', 'token'), ('updown', 'region')]


@pytest.mark.parametrize('name, unit', CASES)
def test_slicing_is_a_shorter_batch(name, unit):
    batch, how = make_batch(name), Removal(unit, 'slice', special=(SEP,))
    keep = keep_of(batch, how)
    everything = np.ones_like(keep)
    found = run(name, batch, keep, how)
    np.testing.assert_allclose(found, run(name, shortened(batch, keep, unit), everything, how), atol=2e-5)
    whole = run(name, batch, everything, how)
    changed = ~np.isclose(found, whole, atol=1e-3).all(1)
    assert changed.tolist() == (~keep).any(1).tolist()
    if (name, unit) == ('uniter', 'token'):
        graph, state = nnx.split(make_model(name))
        wanted = jax.jit(lambda state, batch: nnx.merge(graph, state)(batch)[0])(state, batch)
        np.testing.assert_allclose(whole, wanted, atol=2e-5)


@pytest.mark.parametrize('name, unit', [('uniter', 'token'), ('vit', 'patch')])
def test_masking_is_attention_that_does_not_look(name, unit):
    batch, how = make_batch(name), Removal(unit, 'mask', special=(SEP,))
    keep = np.random.default_rng(0).random((ROWS, 16)) < 0.5 if unit == 'patch' else keep_of(batch, how)
    found = run(name, batch, keep, how)
    np.testing.assert_allclose(found, not_looking(name, batch, keep), atol=2e-5)
    if unit == 'token':  # positions of the rest tell the two apart
        assert np.abs(found - run(name, batch, keep, Removal(unit, 'slice', special=(SEP,))))[0].max() > 1e-3
    else:
        sliced = run(name, batch, keep, Removal(unit, 'slice', special=(SEP,)))
        np.testing.assert_allclose(found, sliced, atol=2e-5)


def test_a_hidden_region_is_not_seen_through_the_words_that_stand_for_it():
    batch, how = make_batch('choices'), Removal('region', 'mask')
    keep = keep_of(batch, how)
    found = run('choices', batch, keep, how)
    other = batch | {'features': np.where(keep[..., None], batch['features'], 3).astype(np.float16)}
    np.testing.assert_allclose(run('choices', other, keep, how), found, atol=2e-5)
    sliced = run('choices', batch, keep, Removal('region', 'slice', special=(SEP,)))
    np.testing.assert_allclose(sliced, found, atol=2e-5)


@pytest.mark.parametrize('name, unit', [('bert', 'token'), ('updown', 'region')])
def test_zero_puts_nothing_or_mask_in_its_place(name, unit):
    batch, how = make_batch(name), Removal(unit, 'zero', mask_id=MASK)
    keep = keep_of(batch, how)
    if unit == 'token':
        wanted = {'text': np.where(keep, batch['text'], MASK)}
    else:
        wanted = {name: np.where(keep[..., None], batch[name], 0) for name in ('features', 'locations')}
    found = run(name, batch, keep, how)
    np.testing.assert_allclose(found, run(name, batch | wanted, np.ones_like(keep), how), atol=1e-5)
    assert np.abs(found - run(name, batch, np.ones_like(keep), how))[0].max() > 1e-3


def test_markers_and_padding_stay_whatever_the_mask_says():
    batch = make_batch('uniter')
    valid = np.asarray(removal.removable(batch, Removal('token', 'slice', special=(SEP,))))
    assert valid.sum(1).tolist() == [5, 3, 4, 0]
    assert not valid[0, [0, 3, 7]].any() and np.asarray(removal.removable(batch, Removal('token', 'slice')))[0, 3]
    how, nothing = Removal('token', 'slice', special=(SEP,)), np.zeros_like(valid)
    np.testing.assert_allclose(run('bert', batch, nothing, how), run('bert', batch, ~valid, how), atol=1e-6)


@pytest.mark.parametrize('fill, colour', [('black', -1), ('white', 1), ('grey', 0), ('mean', None)])
def test_a_fill_is_stated_before_normalisation_and_covers_all_channels(fill, colour):
    batch = make_batch('vit')
    seen = {}
    model = lambda batch: (seen.update(batch), None)
    keep = np.random.default_rng(0).random((ROWS, 256)) < 0.5
    removal.predictor(model, batch, Removal('pixel', 'fill', fill))(jnp.asarray(keep))
    gone, images = ~keep.reshape(ROWS, 16, 16), np.asarray(seen['images'])
    np.testing.assert_array_equal(images[~gone], batch['images'][~gone])
    wanted = np.zeros((ROWS, 3)) + colour if colour is not None else batch['images'].mean((1, 2))
    for b in range(ROWS):
        np.testing.assert_allclose(images[b][gone[b]], np.tile(wanted[b], (gone[b].sum(), 1)), atol=1e-6)
    keep = np.ones((ROWS, 16), bool)
    keep[:, 6] = False  # second row of patches, third column
    removal.predictor(model, batch, Removal('patch', 'fill', fill))(jnp.asarray(keep))
    changed = (np.asarray(seen['images']) != batch['images']).all(-1)
    wanted = np.zeros((16, 16), bool)
    wanted[4:8, 8:12] = True
    np.testing.assert_array_equal(changed, np.tile(wanted, (ROWS, 1, 1)))


def test_perturbation_of_pixels_is_the_published_protocol_written_out():
    """Of 9 shares and both directions: pixels by the upsampled map, set to 0 in all channels, then normalised."""
    batch, r = make_batch('vit'), np.random.default_rng(3)
    patches = jnp.asarray(r.normal(size=(ROWS, 16)), jnp.float32)
    graph, state = nnx.split(make_model('vit'))

    @jax.jit
    def run(state, batch, patches):
        predict = removal.predictor(nnx.merge(graph, state), batch, Removal('pixel', 'fill'))
        values = removal.picture_values(patches, 16)
        return *perturbation.curves(predict, values, perturbation.PRESETS['chefer2020']), values

    clean, logits, values = run(state, batch, patches)
    pictures = [batch['images']]
    for sign in (-1, 1):
        order = np.argsort(sign * np.asarray(values), axis=1, kind='stable')
        for p in range(1, 10):
            raw = (batch['images'] * 0.5 + 0.5).reshape(ROWS, 256, 3)
            for b in range(ROWS):
                raw[b, order[b, : int(256 * (p / 10))]] = 0
            pictures.append(((raw - 0.5) / 0.5).reshape(ROWS, 16, 16, 3))
    wanted = jax.jit(lambda state, images: nnx.merge(graph, state)({'images': images})[0])(
        state, np.concatenate(pictures)
    )
    np.testing.assert_allclose(clean, wanted[:ROWS], atol=1e-4)
    np.testing.assert_allclose(logits, wanted[ROWS:].reshape(2, 9, ROWS, ANSWERS), atol=1e-4)
    assert np.abs(logits[0] - logits[1]).max() > 1e-2


def test_patches_are_upsampled_with_half_pixel_centres():
    values = np.random.default_rng(0).normal(size=(2, 9)).astype(np.float32)
    centres = (np.arange(24) + 0.5) / 8 - 0.5  # in units of patches; beyond the outer ones nothing changes
    along = lambda x: np.apply_along_axis(lambda row: np.interp(centres, range(3), row), -1, x)
    wanted = along(along(values.reshape(2, 3, 3)).swapaxes(1, 2)).swapaxes(1, 2)
    found = removal.picture_values(jnp.asarray(values), 24)
    np.testing.assert_allclose(found, wanted.reshape(2, -1), atol=1e-6)
    np.testing.assert_array_equal(removal.picture_values(values, 24, 'patch'), values)
    pixels = np.random.default_rng(0).normal(size=(2, 6, 6))
    np.testing.assert_array_equal(removal.picture_values(pixels, 6), pixels.reshape(2, -1))


def test_relevance_of_positions_becomes_that_of_items():
    values = np.arange(12.0).reshape(2, 6) + 1
    found = removal.span_values(jnp.asarray(values), (jnp.array([2, 4]), jnp.array([3, 2])), 4)
    assert found.tolist() == [[3, 4, 5, 0], [11, 12, 0, 0]]


def test_what_cannot_be_removed_is_told():
    with pytest.raises(ValueError, match="unit 'word': wanted one of pixel, patch, token, region"):
        Removal('word', 'slice')
    with pytest.raises(ValueError, match="removal 'slice' of a pixel: wanted one of fill"):
        Removal('pixel', 'slice')
    with pytest.raises(ValueError, match="fill 'red': wanted one of black, grey, white, mean"):
        Removal('pixel', 'fill', 'red')
    with pytest.raises(ValueError, match='mask_id is missing'):
        Removal('token', 'zero')
    tell = lambda name, *how: removal.predictor(make_model(name), make_batch(name), Removal(*how))
    with pytest.raises(ValueError, match="unit 'patch': the batch has no 'images', only features"):
        tell('bert', 'patch', 'fill')
    with pytest.raises(ValueError, match="unit 'region': Bert reads text only"):
        tell('bert', 'region', 'slice')
    with pytest.raises(ValueError, match="unit 'token': an example of Uniter has 3 choices"):
        tell('choices', 'token', 'slice')
    with pytest.raises(ValueError, match=r"removal 'mask': UpDown is no .*wanted slice, zero"):
        tell('updown', 'region', 'mask')
    with pytest.raises(ValueError, match='12 patches are no square grid on a picture of 16 x 16'):
        tell('vit', 'patch', 'fill')(jnp.ones((ROWS, 12), bool))
    with pytest.raises(ValueError, match='4 patches to keep or remove, but Vit reads 16'):
        tell('vit', 'patch', 'mask')(jnp.ones((ROWS, 4), bool))
    with pytest.raises(ValueError, match='255 pixels to keep or remove, but the batch has 256'):
        tell('vit', 'pixel', 'fill')(jnp.ones((ROWS, 255), bool))
    with pytest.raises(ValueError, match='a map of 14 x 14, wanted 16 x 16 pixels'):
        removal.picture_values(jnp.ones((1, 14, 14)), 16)
    with pytest.raises(ValueError, match='a map of 16 x 16, wanted one number a patch'):
        removal.picture_values(jnp.ones((1, 16, 16)), 16, 'patch')
    with pytest.raises(ValueError, match='9 patches are no square grid on a picture of 16 x 16'):
        removal.picture_values(jnp.ones((1, 9)), 16)
