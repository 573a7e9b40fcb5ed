"""How well a heat map finds an object of which there is a mask (Chefer et al., arXiv 2012.09838, section 4).

    row = measure(map_HW, mask_HW)          # one picture, 8 numbers
    result = summarise(rows, images=ids)    # JSON

A map is scaled to 0..1; what is above its mean is called object. Two protocols:

    reference   of the reference code: pixel accuracy and IoU from sums over the whole set, mIoU the mean over
                background and object; mAP the mean over pictures of one average precision of both channels, 1 - map
                for the background and map for the object, so that half of what is ranked is true
    per_image   means over pictures: pixel accuracy, mean IoU of background and object, average precision of the object

A constant map finds nothing: all of the picture is background, and all scores are ties.

Legend: H, W pixels, N pictures, R regions.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from evil_jax.attribution import ranking
from evil_jax.attribution.estimates import estimates, mean, ratio

COLUMNS = ('correct', 'pixels', 'inter_bg', 'union_bg', 'inter_fg', 'union_fg', 'ap_both', 'ap_fg')


def measure(map_HW, mask_HW, threshold: float | str = 'mean') -> np.ndarray:
    """What one map and one mask add to the scores.

    Args:
      map_HW: relevance at the mask's resolution, of any scale; what is no finite number counts as 0.
      mask_HW: 0 or 1.
      threshold: of the scaled map, above which is object: 'mean', its own mean, or a number from 0 to below 1.

    Returns:
      The numbers of COLUMNS, float64 [8]; ap_fg is NaN where the mask is empty.

    Raises:
      ValueError: another shape, a mask with other values, a threshold that is neither.
    """
    mask_HW = np.asarray(mask_HW)
    scaled_HW, constant = _scaled(map_HW)
    if scaled_HW.shape != mask_HW.shape or mask_HW.ndim != 2 or not mask_HW.size:
        raise ValueError(f'a map of shape {scaled_HW.shape} and a mask of {mask_HW.shape}, wanted two [H, W]')
    if not np.isin(mask_HW, (0, 1)).all():
        raise ValueError(f'a mask holds {np.setdiff1d(mask_HW, (0, 1))[0]}, wanted 0 and 1')
    if threshold != 'mean' and not (isinstance(threshold, float | int) and 0 <= threshold < 1):
        raise ValueError(f"threshold is {threshold!r}, wanted 'mean' or a number from 0 to below 1")
    truth = mask_HW == 1
    # The mean of equal numbers may be a little less than they are.
    found = (
        scaled_HW > (scaled_HW.mean() if threshold == 'mean' else threshold) if not constant else np.zeros_like(truth)
    )
    background = np.zeros_like(scaled_HW) if constant else 1 - scaled_HW
    return np.array(
        [
            (found == truth).sum(),
            truth.size,
            (~found & ~truth).sum(),
            (~found | ~truth).sum(),
            (found & truth).sum(),
            (found | truth).sum(),
            ranking.average_precision(np.stack([~truth, truth]), np.stack([background, scaled_HW])),
            ranking.average_precision(truth, scaled_HW),
        ],
        np.float64,
    )


def _scaled(map_HW) -> tuple[np.ndarray, bool]:
    """The map from 0 to 1, and whether it is constant (then all 0)."""
    map_HW = np.asarray(map_HW, np.float64)
    map_HW = np.where(np.isfinite(map_HW), map_HW, 0.0)
    if not map_HW.size or map_HW.min() == map_HW.max():
        return np.zeros(map_HW.shape), True
    # Halves: the largest float less the smallest would be no number.
    low, high = map_HW.min() / 2, map_HW.max() / 2
    return (map_HW / 2 - low) / (high - low), False


def summarise(rows_N8, *, images: Sequence[Hashable] | None = None, **bootstrap) -> dict:
    """Scores of a set, each {'value', 'ci95', 'n'}, all from 0 to 1.

    Args:
      rows_N8: of `measure`.
      images: picture of each row; pictures are drawn whole. None: each row is a picture of its own.
      **bootstrap: resamples, seed, level of `estimates.estimates`.

    Returns:
      JSON: 'reference' with 'pixel_accuracy', 'miou', 'map'; 'per_image' with 'pixel_accuracy', 'iou', 'ap'. Pictures
      with an empty mask count for neither a per-image AP nor, where nothing was found, an IoU of the object.

    Raises:
      ValueError: no rows, or rows of another width.
    """
    rows_N8 = np.asarray(rows_N8, np.float64)
    if rows_N8.ndim != 2 or rows_N8.shape[1] != len(COLUMNS) or not len(rows_N8):
        raise ValueError(f'rows of shape {rows_N8.shape}, wanted [N, {len(COLUMNS)}] with N > 0')
    of = dict(zip(COLUMNS, rows_N8.T))
    iou_N2 = ratio(rows_N8[:, [2, 4]], rows_N8[:, [3, 5]])
    iou_N = np.nanmean(iou_N2, 1)  # one of the two is always there

    def statistic(counts_BN):
        sums = {name: counts_BN @ of[name] for name in COLUMNS[:6]}
        ious = [ratio(sums[f'inter_{c}'], sums[f'union_{c}']) for c in ('bg', 'fg')]
        return {
            'reference pixel_accuracy': ratio(sums['correct'], sums['pixels']),
            'reference miou': np.nanmean(ious, 0),
            'reference map': mean(counts_BN, of['ap_both']),
            'per_image pixel_accuracy': mean(counts_BN, of['correct'] / of['pixels']),
            'per_image iou': mean(counts_BN, iou_N),
            'per_image ap': mean(counts_BN, of['ap_fg']),
        }

    result = {'reference': {}, 'per_image': {}}
    for name, estimate in estimates(statistic, len(rows_N8), images=images, **bootstrap).items():
        protocol, _, score = name.partition(' ')
        result[protocol][score] = estimate
    return result


def paint(values_R, boxes_R4, height: int, width: int) -> np.ndarray:
    """Relevance of regions as a map: each pixel has the largest of the boxes that cover its middle, 0 without one.

    Args:
      values_R: relevance of the regions.
      boxes_R4: x1, y1, x2, y2 in pixels of this picture; what is outside it is left away.

    Returns:
      float64 [height, width].

    Raises:
      ValueError: not a box a value, a box that is turned round, or NaN.
    """
    values_R, boxes_R4 = np.asarray(values_R, np.float64), np.asarray(boxes_R4, np.float64).reshape(-1, 4)
    if values_R.shape != boxes_R4.shape[:1]:
        raise ValueError(f'{len(boxes_R4)} boxes for values of shape {values_R.shape}, wanted a value a box')
    wrong = ~(boxes_R4[:, :2] <= boxes_R4[:, 2:]).all(1) | np.isnan(values_R)
    if wrong.any():
        row = np.flatnonzero(wrong)[0]
        raise ValueError(f'region {row} has relevance {values_R[row]} and the box {boxes_R4[row].tolist()}')
    map_HW = np.zeros((height, width))
    edges_R4 = np.clip(np.ceil(boxes_R4 - 0.5), 0, (width, height) * 2).astype(int)
    for r in np.argsort(values_R, kind='stable'):  # the largest last, over the others
        x1, y1, x2, y2 = edges_R4[r]
        map_HW[y1:y2, x1:x2] = values_R[r]
    return map_HW
