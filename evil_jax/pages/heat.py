"""Heat as arrays and colours: bilinear upsampling, scaling, the heat of boxes, and a table of colours with opacity.

Pages draw with the same table as `attribution.render`. Everything is about one map at a time: nothing is compared
between maps. Shapes: h, w patches; H, W pixels; R boxes.
"""

import functools

import numpy as np

# OKLab (lightness, green to red, blue to yellow) at equal steps. Lightness alone tells the order, so that it survives
# colour-blindness and grey print; blue against orange is the pair that all kinds of it tell apart.
_SEQUENTIAL = (
    (0.30, 0.022, -0.105),
    (0.46, 0.105, -0.105),
    (0.61, 0.165, 0.010),
    (0.77, 0.085, 0.120),
    (0.95, -0.030, 0.120),
)
_DIVERGING = (
    (0.42, -0.020, -0.150),
    (0.68, -0.055, -0.110),
    (0.95, 0.000, 0.000),
    (0.68, 0.070, 0.120),
    (0.42, 0.095, 0.085),
)
_OPACITY = 0.66  # of the strongest heat: the picture must still be seen under it
_FLOOR = 0.2  # opacity where there is none, in a sequential map: its dark colour dims what does not matter
# Björn Ottosson, "A perceptual color space for image processing" (2020).
_LAB_TO_LMS = np.array([
    [1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480],
])  # fmt: skip
_LMS_TO_RGB = np.array([
    [4.0767416621, -3.3077115913, 0.2309699292], [-1.2684380046, 2.6097574011, -0.3413193965],
    [-0.0041960863, -0.7034186147, 1.7076147010],
])  # fmt: skip


def finite(values, what: str) -> np.ndarray:
    """Values as float64. ValueError where one is no finite number, naming `what`."""
    values = np.asarray(values, np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f'{what}: {np.count_nonzero(~np.isfinite(values))} of {values.size} values are not finite')
    return values


def upsample(map_hw, size: tuple[int, int]) -> np.ndarray:
    """Bilinear, by the centres of the pixels: PyTorch's `interpolate(mode='bilinear', align_corners=False)`.

    Args:
      map_hw: [..., h, w].
      size: (H, W).

    Returns:
      float64 [..., H, W].
    """
    map_hw = np.asarray(map_hw, np.float64)
    if map_hw.ndim < 2 or 0 in map_hw.shape[-2:] or min(size) < 1:
        raise ValueError(f'a map of shape {map_hw.shape} cannot become {size}: wanted [..., h, w] and two sizes >= 1')
    rows, columns = (_weights(n, wanted) for n, wanted in zip(map_hw.shape[-2:], size))
    return rows @ map_hw @ columns.T


def _weights(n, wanted):
    """[wanted, n]: what each new pixel takes of each old one."""
    place = np.clip((np.arange(wanted) + 0.5) * n / wanted - 0.5, 0, n - 1)
    low = np.floor(place).astype(int)
    weights = np.zeros((wanted, n))
    weights[np.arange(wanted), low] = 1 - (place - low)
    weights[np.arange(wanted), np.minimum(low + 1, n - 1)] += place - low
    return weights


def scaled(values, signed: bool = False, what: str = 'map') -> np.ndarray:
    """One map as the colours take it.

    Args:
      values: of any shape, one map.
      signed: divided by the largest magnitude, in [-1, 1], zero stays zero; else min-max, in [0, 1]. A constant map is
        zero everywhere in the latter; so is an empty one.
      what: named where a value is not finite.

    Raises:
      ValueError: a value is not finite.
    """
    values = finite(values, what)
    if not values.size:
        return values
    with np.errstate(over='ignore'):
        low, span = (0.0, np.abs(values).max()) if signed else (values.min(), np.ptp(values))
    # Differences of huge values overflow, those of tiny ones lose all digits: both are as good as constant.
    if not np.isfinite(span) or span < np.finfo(np.float64).tiny:
        return np.zeros_like(values)
    return (values - low) / span


def is_signed(*maps) -> bool:
    """Whether values below zero are more than noise beside the largest magnitude."""
    found = np.concatenate([np.ravel(np.asarray(m, np.float64)) for m in maps]) if maps else np.zeros(0)
    return bool(found.size and found.min() < -1e-6 * np.abs(found).max())


def of_boxes(values_R, boxes_R4, size: tuple[int, int]) -> np.ndarray:
    """Each pixel has the value of largest magnitude among the boxes that cover its centre; zero where there is none.

    Args:
      values_R: of each box.
      boxes_R4: (x1, y1, x2, y2) in pixels; one thinner than a pixel covers the pixel that it lies in.
      size: (H, W).

    Returns:
      float64 [H, W].

    Raises:
      ValueError: other shapes, values that are not finite, a box whose end lies before its beginning.
    """
    values_R = finite(values_R, 'values of boxes')
    boxes_R4 = finite(boxes_R4, 'boxes').reshape(-1, 4)
    if values_R.shape != boxes_R4.shape[:1]:
        raise ValueError(f'values of shape {values_R.shape} for {len(boxes_R4)} boxes')
    if bad := [i for i, (x1, y1, x2, y2) in enumerate(boxes_R4) if x2 < x1 or y2 < y1]:
        raise ValueError(f'box {bad[0]} is {boxes_R4[bad[0]].tolist()}: wanted x1 <= x2 and y1 <= y2')
    field = np.zeros(size)
    for i in np.argsort(np.abs(values_R), kind='stable'):
        (left, right), (top, bottom) = (_covered(boxes_R4[i, a], boxes_R4[i, a + 2], size[1 - a]) for a in (0, 1))
        field[top:bottom, left:right] = values_R[i]
    return field


def _covered(low, high, n):
    """(first, end) of the pixels, of n, whose centres lie in [low, high)."""
    first, end = int(np.ceil(low - 0.5)), int(np.ceil(high - 0.5))
    if end == first:
        first = int(np.floor(low))
        end = first + 1
    return min(max(first, 0), n), min(max(end, 0), n)


@functools.cache
def table(signed: bool = False) -> np.ndarray:
    """uint8 [256, 4]: red, green, blue, opacity of each level of heat (`levels`)."""
    anchors = np.array(_DIVERGING if signed else _SEQUENTIAL)
    heat = np.clip((np.arange(256) - 128) / 127, -1, 1) if signed else np.arange(256) / 255
    across = ((heat + 1) / 2 if signed else heat) * (len(anchors) - 1)
    lab = np.stack([np.interp(across, np.arange(len(anchors)), anchors[:, i]) for i in range(3)], axis=1)
    linear = np.clip((lab @ _LAB_TO_LMS.T) ** 3 @ _LMS_TO_RGB.T, 0, 1)
    colours = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    opacity = _OPACITY * np.abs(heat) if signed else _FLOOR + (_OPACITY - _FLOOR) * heat
    found = np.round(255 * np.concatenate([colours, opacity[:, None]], axis=1)).astype(np.uint8)
    found.setflags(write=False)
    return found


def levels(heat, signed: bool = False) -> np.ndarray:
    """uint8 levels, rows of `table`, of scaled values: [0, 1] to 0..255; signed [-1, 1] to 1..255, zero to 128."""
    heat = finite(heat, 'heat')
    if heat.size and (heat.min() < -signed - 1e-9 or heat.max() > 1 + 1e-9):
        raise ValueError(f'heat from {heat.min():.4g} to {heat.max():.4g}: wanted [{-int(signed)}, 1], see `scaled`')
    return np.floor((128 + 127 * heat if signed else 255 * heat) + 0.5).clip(0, 255).astype(np.uint8)
