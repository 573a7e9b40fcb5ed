"""Location features of regions: the seven numbers that UNITER adds to each region, in three conventions."""

import numpy as np

from evil_jax.data.features.regions import Regions

CONVENTIONS = ('uniter', 'evil_lmdb', 'evil_vqax')


def locations(regions: Regions, convention: str, image_id: str = '') -> np.ndarray:
    """Seven numbers a region; w, h are of the box, W, H of the picture.

    uniter: x1/W, y1/H, x2/W, y2/H, w/W, h/H, (w/W)(h/H). What UNITER was pre-trained with [UNITER data/data.py].
      UNITER and e-UG read the first six from float16 and multiply in float32. Here w/W and h/H are differences of the
      corners, in float32: from boxes in pixels, or from corners in float16 where the file has nothing else. Rounding to
      float16 moves a number in [0, 1] by 2^-12 at most: a side differs by less than 0.0008, the area by 0.0015.
    evil_lmdb: the same with w and h swapped: x1/W, y1/H, x2/W, y2/H, h/H, w/W, product. What e-UG's code does for
      e-SNLI-VE and VCR [e-ViL eViL_data.py].
    evil_vqax: raw pixels, y first: y1, x1, y2, x2, w, h, w h. What it does for VQA-X [e-ViL eViL_data.py, inherited
      from Transformers-VQA].

    Args:
      regions: boxes in pixels; or, where `size` is (1, 1), relative to the picture, as UNITER's files hold them.
      convention: one of CONVENTIONS.
      image_id: named in errors.

    Returns:
      [n, 7] float32.

    Raises:
      ValueError: unknown convention; evil_vqax without pixels.
    """
    if convention not in CONVENTIONS:
        raise ValueError(f'location convention is {convention!r}, wanted one of {", ".join(CONVENTIONS)}')
    x1, y1, x2, y2 = np.asarray(regions.boxes, np.float32).T
    if convention == 'evil_vqax':
        if tuple(regions.size) == (1, 1):
            raise ValueError(
                f'image {image_id!r} has boxes relative to the picture, of unknown size, but location features '
                "evil_vqax are pixels: set data.locations='uniter' or 'evil_lmdb', or take region files with pixels"
            )
        w, h = x2 - x1, y2 - y1
        return np.stack([y1, x1, y2, x2, w, h, w * h], axis=1)
    width, height = map(np.float32, regions.size)
    x1, y1, x2, y2 = x1 / width, y1 / height, x2 / width, y2 / height
    w, h = x2 - x1, y2 - y1
    sides = [w, h] if convention == 'uniter' else [h, w]
    return np.stack([x1, y1, x2, y2, *sides, w * h], axis=1)
