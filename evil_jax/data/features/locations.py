"""Location features of regions: the seven numbers that UNITER adds to each region, in three conventions."""

import numpy as np

from evil_jax.data.features.regions import Regions

CONVENTIONS = ('uniter', 'evil_lmdb', 'evil_vqax')


def locations(regions: Regions, convention: str) -> np.ndarray:
    """Seven numbers a region; w, h are of the box, W, H of the picture.

    uniter: x1/W, y1/H, x2/W, y2/H, w/W, h/H, (w/W)(h/H). What UNITER was pre-trained with [UNITER data/data.py].
      Its files hold the first six in float16; here everything is float32, from boxes in pixels.
    evil_lmdb: the same with w and h swapped: x1/W, y1/H, x2/W, y2/H, h/H, w/W, product. What e-UG's code does for
      e-SNLI-VE and VCR [e-ViL eViL_data.py].
    evil_vqax: raw pixels, y first: y1, x1, y2, x2, w, h, w h. What it does for VQA-X [e-ViL eViL_data.py, inherited
      from Transformers-VQA].

    Returns:
      [n, 7] float32.

    Raises:
      ValueError: unknown convention.
    """
    if convention not in CONVENTIONS:
        raise ValueError(f'location convention is {convention!r}, wanted one of {", ".join(CONVENTIONS)}')
    x1, y1, x2, y2 = np.asarray(regions.boxes, np.float32).T
    if convention == 'evil_vqax':
        w, h = x2 - x1, y2 - y1
        return np.stack([y1, x1, y2, x2, w, h, w * h], axis=1)
    width, height = map(np.float32, regions.size)
    x1, y1, x2, y2 = x1 / width, y1 / height, x2 / width, y2 / height
    w, h = x2 - x1, y2 - y1
    sides = [w, h] if convention == 'uniter' else [h, w]
    return np.stack([x1, y1, x2, y2, *sides, w * h], axis=1)
