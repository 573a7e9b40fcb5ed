"""Arrays of a picture (.npz, or a folder of such files), as py-bottom-up-attention, UNITER and PJ-X write them.

One file is one picture, and its name without .npz the image id. Regions: features (or x) [n, 2048], with norm_bb [n, 6]
relative to the picture, conf [n, 1] and soft_labels [n, 1601] (UNITER's generate_npz.py), or with bbox (or boxes)
[n, 4] in pixels, image_w and image_h (py-bottom-up-attention). A grid: x [2048, rows, columns] float32 alone (PJ-X,
ResNet's 14 x 14 of a picture): each cell is a region, row by row, with boxes relative to the picture.

A grid has 196 regions, none of which is surer than another, so that it is refused where fewer would stay: set
build.max_regions=196 (what the store keeps) and data.max_regions=196 (what the model reads), for both the default is
less. PJ-X divides each vector by its L2 norm when it loads them; here they stay as they are, the norm is the model's
matter.

Arrays of other names are not looked at, pickles never loaded. Source: `_arrays.py`.
"""

import hashlib
import os
import pathlib
from typing import Any

from evil_jax.data.features import _arrays
from evil_jax.data.features._file import File
from evil_jax.data.features.regions import WIDTH, RegionReader, Regions, fingerprint


def matches(path: pathlib.Path) -> bool:
    if path.is_dir():
        return any(_is_picture(entry) for entry in os.scandir(path))
    return path.suffix == '.npz' and path.is_file()


def provenance(path: pathlib.Path) -> dict[str, Any]:
    if path.is_file():
        return {'format': 'npz'} | fingerprint(path)
    sizes = {entry.name: entry.stat().st_size for entry in os.scandir(path) if _is_picture(entry)}
    names = sorted(sizes)
    listing = hashlib.sha256('\n'.join(f'{name} {sizes[name]}' for name in names).encode('utf-8', 'surrogateescape'))
    ends = [fingerprint(path / name)['head_sha256'] for name in (names[0], names[-1])]
    return {'format': 'npz_folder', 'name': path.name, 'count': len(names), 'listing_sha256': listing.hexdigest()} | {
        'first_sha256': ends[0],
        'last_sha256': ends[1],
    }


class Reader(RegionReader):
    """Opens a file when it is asked for its picture.

    Args:
      path: an .npz file or a folder of them (folders in it are not looked into).
      width: wanted width of a feature vector.

    Raises:
      ValueError: on reading for a file that is damaged or does not hold regions; names it.
    """

    def __init__(self, path, *, width: int = WIDTH):
        self.path = pathlib.Path(path).absolute()
        self.width = width
        if self.path.is_file():
            self._folder, names = self.path.parent, [self.path.name]
        else:
            self._folder = self.path
            names = sorted(entry.name for entry in os.scandir(self.path) if _is_picture(entry))
        self._index = {name.removesuffix('.npz'): position for position, name in enumerate(names)}

    def provenance(self) -> dict[str, Any]:
        return provenance(self.path)

    def _read(self, image_id: str, position: int) -> Regions:
        path = self._folder / f'{image_id}.npz'
        try:
            file = File(path)
        except FileNotFoundError:
            raise ValueError(f'{path}: the file of image {image_id!r} has gone') from None
        if file.size > _arrays.LIMIT:
            raise ValueError(
                f'{path}: {file.size} bytes; more than {_arrays.LIMIT >> 20} MiB are no regions of a picture'
            )
        return _arrays.regions(_arrays.unzip(file.read(0, file.size), str(path)), str(path), self.width)


def _is_picture(entry: os.DirEntry) -> bool:
    return entry.name.endswith('.npz') and not entry.name.startswith('.') and entry.is_file()
