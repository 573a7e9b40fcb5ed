import numpy as np
import pytest
import torch

from evil_jax.pages import heat


@pytest.mark.parametrize('old,new', [((14, 14), (224, 224)), ((2, 3), (7, 5)), ((1, 1), (4, 6)), ((5, 4), (3, 2))])
def test_upsampling_equals_that_of_pytorch(old, new):
    maps = np.random.default_rng(0).normal(size=(2, 3, *old))
    wanted = torch.nn.functional.interpolate(torch.tensor(maps), size=new, mode='bilinear', align_corners=False)
    np.testing.assert_allclose(heat.upsample(maps, new), wanted.numpy(), rtol=0, atol=1e-12)


def test_upsampling_by_hand():
    # Centres of four pixels over two patches lie at -0.25, 0.25, 0.75, 1.25; the outer ones stay at the border.
    np.testing.assert_allclose(heat.upsample([[0.0, 1.0]], (1, 4)), [[0, 0.25, 0.75, 1]])
    for bad, size in (([1.0, 2.0], (2, 2)), (np.zeros((0, 2)), (2, 2)), (np.zeros((2, 2)), (0, 2))):
        with pytest.raises(ValueError, match='cannot become'):
            heat.upsample(bad, size)


def test_scaling_by_hand():
    np.testing.assert_allclose(heat.scaled([[2, 4], [3, 6]]), [[0, 0.5], [0.25, 1]])
    np.testing.assert_allclose(heat.scaled([-4, 0, 2], signed=True), [-1, 0, 0.5])


@pytest.mark.parametrize('constant', [[0.0] * 3, [7.0] * 3, [-1e300] * 3, [], [5e-324, 0.0], [1e308, -1e308]])
def test_a_map_without_differences_is_zero_never_nan(constant):
    found = heat.scaled(np.array(constant))
    assert found.shape == (len(constant),) and not found.any()


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match='relevance: 1 of 2 values are not finite'):
        heat.scaled([0.5, bad], what='relevance')
    with pytest.raises(ValueError, match='values of boxes: 1 of 1'):
        heat.of_boxes([bad], [[0, 0, 1, 1]], (2, 2))
    with pytest.raises(ValueError, match='boxes: 1 of 4'):
        heat.of_boxes([1.0], [[0, 0, 1, bad]], (2, 2))


def test_signed_maps_are_told_from_noise_below_zero():
    assert heat.is_signed([1.0, 2.0], [[-0.1]]) and not heat.is_signed([1.0, -1e-9]) and not heat.is_signed()
    assert heat.is_signed([-3.0]) and not heat.is_signed([]) and not heat.is_signed([0.0])


def test_heat_of_boxes_by_hand():
    boxes = [[0, 0, 3, 2], [1, 1, 4, 3], [3.4, 0, 3.45, 1], [-5, 2, 1, 99]]
    found = heat.of_boxes([0.5, -0.9, 0.2, 0.1], boxes, (3, 4))
    wanted = [[0.5, 0.5, 0.5, 0.2], [0.5, -0.9, -0.9, -0.9], [0.1, -0.9, -0.9, -0.9]]
    np.testing.assert_array_equal(found, wanted)
    # The strongest wins wherever it stands in the list; of equal ones the later.
    np.testing.assert_array_equal(
        heat.of_boxes([-0.9, 0.1, 0.5, 0.2], [boxes[i] for i in (1, 3, 0, 2)], (3, 4)), wanted
    )
    assert not heat.of_boxes([], np.zeros((0, 4)), (2, 2)).any()
    assert not heat.of_boxes([1.0], [[5, 5, 9, 9]], (3, 4)).any(), 'outside the picture'
    with pytest.raises(ValueError, match=r'values of shape \(2,\) for 1 boxes'):
        heat.of_boxes([1, 2], [[0, 0, 1, 1]], (2, 2))
    with pytest.raises(ValueError, match='box 1 is'):
        heat.of_boxes([1, 2], [[0, 0, 1, 1], [2, 0, 1, 1]], (2, 2))


def lightness(rgb):
    """CIE L* of sRGB."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    y = linear @ [0.2126, 0.7152, 0.0722]
    return np.where(y > 0.008856, 116 * np.cbrt(y) - 16, 903.3 * y)


# Machado, Oliveira, Fernandes (2009), severity 1: what protan, deutan and tritan eyes see of linear RGB.
BLIND = np.array([
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
])  # fmt: skip


def seen(rgb):
    """The colours as they are, and as colour-blind people see them."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for matrix in BLIND:
        found = np.clip(linear @ matrix.T, 0, 1)
        yield np.where(found <= 0.0031308, 12.92 * found, 1.055 * found ** (1 / 2.4) - 0.055)
    yield rgb


def test_lightness_orders_the_colours_for_every_eye():
    sequential, diverging = heat.table() / 255, heat.table(True) / 255
    for colours in seen(sequential[:, :3]):
        steps = np.diff(lightness(colours)[::8])
        assert (steps > 0.5).all(), 'every step is lighter'
    for colours in seen(diverging[:, :3]):
        assert (np.diff(lightness(colours)[1::8])[:15] > 0).all() and (np.diff(lightness(colours)[128::8]) < 0).all()
        assert np.abs(colours[255] - colours[1]).max() > 0.25, 'the ends differ'
    assert (np.diff(sequential[:, 3]) >= 0).all() and sequential[0, 3] > 0
    assert diverging[128, 3] == 0 and (np.diff(diverging[1:129, 3]) <= 0).all()
    np.testing.assert_array_equal(diverging[1:128, 3], diverging[:128:-1, 3])
    assert not heat.table().flags.writeable


def test_levels():
    np.testing.assert_array_equal(heat.levels([0, 0.5, 1]), [0, 128, 255])
    np.testing.assert_array_equal(heat.levels([-1, 0, 0.5, 1], True), [1, 128, 192, 255])
    for bad, signed in (([-0.1], False), ([1.1], True), ([-1.1], True)):
        with pytest.raises(ValueError, match=r'wanted \[-?[01], 1\]'):
            heat.levels(bad, signed)
