"""Regions that a network computes from pictures while they are read: the cells of a grid, or the whole picture as one.

The network is a function that the caller brings; here are the pictures, their order and their boxes.
"""

import concurrent.futures
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import PIL.Image

from evil_jax.data import pictures
from evil_jax.data.features.regions import WIDTH, RegionReader, Regions

_THREADS = 16  # that decode, at most: Pillow leaves the interpreter's lock while it does


class Reader(RegionReader):
    """Reads pictures in batches, and decodes the next batch while the network is at work.

    Without `expect` a picture is computed alone.

    Args:
      images: `path` (the folder), `ids()` and `images[image_id]` (a path, or None), as data.pictures.Images.
      compute: uint8 [batch, pixels, pixels, 3], RGB, to float16 [batch, *cells, 2048]; always gets a whole batch, of
        which the last pictures may be black ones that nobody asked for.
      cells: rows and columns of what it gives.
      pixels: side that a picture is scaled to, whatever its shape.
      batch: pictures at a time.
      about: JSON that tells this network and these settings from others; what `provenance` gives. Pictures are not
        looked at, so that a damaged one may be replaced before an interrupted conversion goes on.

    Raises:
      ValueError: on reading for a damaged picture, or one that two files may be; names it.
    """

    def __init__(
        self, images, compute: Callable, *, cells: tuple[int, int], pixels: int, batch: int, about: dict[str, Any]
    ):
        self.path = images.path
        self._images, self._compute, self._cells = images, compute, cells
        self._pixels, self._batch, self._about = pixels, batch, about
        self._index = {image_id: number for number, image_id in enumerate(images.ids())}
        self._order, self._places = [], {}
        self._done: dict[str, Regions] = {}  # the batch that was computed last
        self._ahead: dict[str, concurrent.futures.Future] = {}
        self._threads = concurrent.futures.ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1))

    def provenance(self) -> dict[str, Any]:
        return self._about

    def expect(self, image_ids: Sequence[str]) -> None:
        self._order = list(image_ids)
        self._places = {image_id: place for place, image_id in enumerate(self._order)}

    def outline(self, image_id: str) -> Regions:
        path = self._path(self.resolve(image_id))
        try:
            with PIL.Image.open(path) as image:
                size = image.size
        except pictures.BAD as error:
            raise pictures.unreadable(path, error) from error
        rows, columns = self._cells
        return self._regions(np.zeros((rows, columns, WIDTH), np.float16), size)

    def _find(self, image_id) -> str | None:
        path = self._images[str(image_id)]
        return None if path is None else path.stem

    def _path(self, image_id):
        path = self._images[image_id]
        if path is None or not path.is_file():
            raise ValueError(f'{self.path}: the picture {image_id!r} has gone')
        return path

    def _read(self, image_id: str, position: int) -> Regions:
        if image_id not in self._done:
            place = self._places.get(image_id)
            together = [image_id] if place is None else self._order[place : place + self._batch]
            following = [] if place is None else self._order[place + self._batch : place + 2 * self._batch]
            self._done = self._computed(together, following)
        return self._done[image_id]

    def _computed(self, image_ids, following) -> dict[str, Regions]:
        waiting = [self._ahead.get(image_id) or self._begin(image_id) for image_id in image_ids]
        self._ahead = {image_id: self._begin(image_id) for image_id in following}
        pixels_BHW3 = np.zeros((self._batch, self._pixels, self._pixels, 3), np.uint8)
        sizes = []
        for row, picture in enumerate(waiting):
            pixels_BHW3[row], size = picture.result()
            sizes.append(size)
        found = np.asarray(self._compute(pixels_BHW3))
        return {image_id: self._regions(x, size) for image_id, x, size in zip(image_ids, found, sizes)}

    def _begin(self, image_id):
        return self._threads.submit(square, self._path(image_id), self._pixels)

    def _regions(self, cells, size) -> Regions:
        """Of one picture: cells [rows, columns, 2048], size (width, height) in pixels."""
        rows, columns, width = cells.shape
        y, x = (axis.ravel() for axis in np.meshgrid(np.arange(rows), np.arange(columns), indexing='ij'))
        boxes = np.stack([x, y, x + 1, y + 1], axis=1) / (columns, rows, columns, rows) * np.tile(size, 2)
        n = rows * columns
        return Regions(
            cells.reshape(n, width), boxes.astype(np.float32), size, np.ones(n, np.float32), np.full(n, -1, np.int32)
        )


def square(path, pixels: int) -> tuple[np.ndarray, tuple[int, int]]:
    """(uint8 [pixels, pixels, 3] RGB, (width, height) of the file in pixels) of a picture of any kind.

    The whole picture is scaled, whatever its shape, with Pillow's bilinear filter (which averages what it makes
    smaller), as torchvision's Resize does. Gray, palette and CMYK pictures become RGB, 16 bits 8; what is transparent
    shows white. A tag that says the picture lies on its side is ignored: boxes count pixels as they are stored.

    Raises:
      ValueError: not a picture, or a damaged one; names the file.
    """
    try:
        with PIL.Image.open(path) as image:
            size = image.size
            small = pictures.rgb(image).resize((pixels, pixels), PIL.Image.Resampling.BILINEAR)
    except pictures.BAD as error:
        raise pictures.unreadable(path, error) from error
    return np.asarray(small), size
