"""Regions of one picture, and what every reader of them has in common."""

import dataclasses
import hashlib
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

WIDTH = 2048  # of the bottom-up-attention features that all published containers hold

PICTURES = ('.jpg', '.jpeg', '.png')  # endings of picture files
_ENDING = re.compile(rf'({"|".join(map(re.escape, PICTURES))})?(\.npz)?$', re.IGNORECASE)
# UNITER's names of VCR's pictures: detected regions, and regions that annotators drew.
_VCR = re.compile(r'(vcr_(?:gt_)?(?:train|val|test))_(.+)', re.DOTALL)
# '132417', 'COCO_train2014_000000132417', 'flickr30k_000004465359'. The number must follow an underscore or be the
# whole name: 'abc@0' ends in the number of a scene's frame, which says nothing.
_NUMBERED = re.compile(r'(|.*_)([0-9]+)', re.DOTALL)


@dataclasses.dataclass(slots=True, eq=False)
class Regions:
    """Detected regions of one picture; n of them.

    Attributes:
      features: [n, 2048] float16 or float32, pooled features of the detector.
      boxes: [n, 4] float32, x1 <= x2 and y1 <= y2 as x1, y1, x2, y2 in pixels; where `size` is (1, 1), relative to the
        picture. Detectors keep them inside it; nothing makes sure of that but a warning of `convert`.
      size: (width, height) of the picture in pixels; (1, 1) where the container holds relative boxes and not the size.
      conf: [n] float32, confidence of the class, in [0, 1]; 1 where the container has none.
      classes: [n] int32, index of the class (0-based, without a background class); -1 where the container has none.
      names: of all classes that there are, by index; empty where they are not known.
    """

    features: np.ndarray
    boxes: np.ndarray
    size: tuple[int, int]
    conf: np.ndarray
    classes: np.ndarray
    names: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows) -> 'Regions':
        """The regions that a slice or an array of indices picks."""
        return dataclasses.replace(
            self, features=self.features[rows], boxes=self.boxes[rows], conf=self.conf[rows], classes=self.classes[rows]
        )

    def best(self, n: int, where: str) -> 'Regions':
        """The n most confident regions, in their order (of equally confident ones the first); all if there are no more.

        Raises:
          ValueError: some cells of a grid would be lost, which are no less worth than the others. Begins with `where`.
        """
        if len(self) <= n:
            return self
        if self.grid:
            raise ValueError(
                f'{where}: a grid of {len(self)} cells, of which only the first {n} would stay; set '
                f'build.max_regions={len(self)} and data.max_regions={len(self)}, or more'
            )
        return self.take(np.sort(np.argsort(-self.conf, kind='stable')[:n]))

    @property
    def grid(self) -> bool:
        """Whether these are the cells of a grid: boxes of one size that fill the picture, all of the confidence 1."""
        sides = (self.boxes[:, 2:] - self.boxes[:, :2]) / self.size
        if len(sides) < 2 or not (self.conf == 1).all() or not (sides > 0).all():
            return False
        cells = np.rint(1 / sides[0])  # columns, rows
        places = np.rint(self.boxes[:, :2] / self.size * cells)
        return np.abs(sides * cells - 1).max() < 0.01 and cells.prod() == len(self) == len(np.unique(places, axis=0))

    @property
    def outside(self) -> bool:
        """Whether a box leaves the picture by more than rounding explains: 1 % of the side, and a pixel."""
        slack = np.maximum(np.multiply(self.size, 0.01), 0 if tuple(self.size) == (1, 1) else 1)
        return bool((self.boxes[:, :2] < -slack).any() or (self.boxes[:, 2:] > self.size + slack).any())


def check(regions: Regions, where: str, width: int = WIDTH) -> None:
    """Raises ValueError, which begins with `where`, unless shapes agree, every number is finite, no box is turned over,
    and confidences are in [0, 1].
    """
    n = len(regions.boxes)
    shapes = {'boxes': (n, 4), 'conf': (n,), 'classes': (n,), 'features': (n, width)}
    for name, wanted in shapes.items():
        if (found := getattr(regions, name).shape) != wanted:
            raise ValueError(f'{where}: {name} have shape {found}, wanted {wanted}')
    for name in ('features', 'boxes', 'conf'):
        finite = np.isfinite(getattr(regions, name))
        if not finite.all():
            region = int(np.argwhere(~finite)[0][0])
            raise ValueError(f'{where}: {name} hold {np.sum(~finite)} NaN or infinite values, first in region {region}')
    if (turned := regions.boxes[:, :2] > regions.boxes[:, 2:]).any():
        region = int(np.argwhere(turned)[0][0])
        found = ', '.join(f'{number:g}' for number in regions.boxes[region])
        raise ValueError(
            f'{where}: the box of region {region} is {found}, wanted x1, y1, x2, y2 with x1 <= x2, y1 <= y2'
        )
    if (wrong := np.abs(regions.conf - 0.5) > 0.501).any():  # sums in float16 may exceed 1 a little
        region = int(np.argmax(wrong))
        raise ValueError(f'{where}: the confidence of region {region} is {regions.conf[region]:g}, wanted 0 to 1')
    if not 1 <= min(regions.size) <= max(regions.size) < 2**31:
        raise ValueError(f'{where}: size (width, height) is {regions.size}, wanted at least 1 x 1 and less than 2^31')


def fingerprint(path) -> dict[str, Any]:
    """Name, size and sha256 of the first and last MiB: tells big files apart without reading them."""
    path = pathlib.Path(path)
    size, part = path.stat().st_size, 1 << 20
    with open(path, 'rb') as file:
        head = hashlib.sha256(file.read(part)).hexdigest()
        file.seek(max(0, size - part))
        tail = hashlib.sha256(file.read(part)).hexdigest()
    return {'name': path.name, 'bytes': size, 'head_sha256': head, 'tail_sha256': tail}


class RegionReader:
    """Base of the readers: looks ids up. A container sets `path` and `_index` (id -> position), and defines `_read`
    and `provenance`.
    """

    path: pathlib.Path
    _index: dict[str, int]
    _names: dict[str, list[tuple[str, str]]] | None = None

    def __getstate__(self):
        return self.__dict__ | {'_names': None}  # quickly made anew

    def _read(self, image_id: str, position: int) -> Regions:
        raise NotImplementedError

    def provenance(self) -> dict[str, Any]:
        """Where the features come from, for the record of a store: the same content gives the same value."""
        raise NotImplementedError

    def expect(self, image_ids: Sequence[str]) -> None:
        """Hears which pictures will be read next, of `ids()`: a reader that computes may do several at once."""

    def outline(self, image_id: str) -> Regions:
        """Regions of a picture; features that would have to be computed may be zeros."""
        return self[image_id]

    def ids(self) -> list[str]:
        """The ids, in the order of the file."""
        return list(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, image_id) -> bool:
        return self._find(image_id) is not None

    def __getitem__(self, image_id) -> Regions:
        position = self._index.get(image_id) if isinstance(image_id, str) else None
        if position is None:
            image_id = self.resolve(image_id)
            position = self._index[image_id]
        return self._read(image_id, position)

    def resolve(self, image_id) -> str:
        """The id as this container spells it: the same string, else the one id that names the same picture.

        Endings (.jpg, .npz) do not count, nor do zeros before a picture number. VQA v2 calls 132417 what LXMERT's files
        call COCO_train2014_000000132417, and UNITER's coco_train2014_000000132417.npz; flickr30k_000004465359.npz is
        4465359; vcr_val_<name>.npz and vcr_gt_val_<name>.npz are <name>. A name without a prefix fits any prefix, but
        names whose prefixes differ are never the same picture.

        Raises:
          ValueError: no such picture, or several.
        """
        found = self._find(image_id)
        if found is None:
            example = f', for example {next(iter(self._index))!r}' if self._index else ''
            raise ValueError(f'{self.path}: no regions of image {str(image_id)!r}; it has {len(self)} images{example}')
        return found

    def _find(self, image_id) -> str | None:
        image_id = str(image_id)
        if image_id in self._index:
            return image_id
        if self._names is None:
            self._names = by_name(self._index)
        close = same_picture(image_id, self._names)
        if len(close) > 1:
            shown = ' or '.join(map(repr, close[:5])) + (f' or {len(close) - 5} more' if len(close) > 5 else '')
            raise ValueError(f'{self.path}: image {image_id!r} may be {shown}')
        return close[0] if close else None


def without_ending(name: str) -> str:
    """The name of a picture or of its features without .jpg, .jpeg, .png, .npz."""
    return name[: _ENDING.search(name).start()]


def split_name(image_id: str) -> tuple[str, str]:
    """(prefix in lower case, name) of a picture: ('coco_val2014_', '9'), ('vcr_train', 'abc@0'), ('', 'abc@0')."""
    name = without_ending(image_id) or image_id
    if match := _VCR.fullmatch(name):
        return match[1], match[2]
    if match := _NUMBERED.fullmatch(name):
        return match[1].lower(), match[2].lstrip('0') or '0'
    return '', name


def by_name(keys: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """Names of pictures, to be looked up by `same_picture`: name without prefix -> (prefix, name as it is)."""
    names = {}
    for key in keys:
        prefix, name = split_name(key)
        names.setdefault(name, []).append((prefix, key))
    return names


def same_picture(image_id: str, names: Mapping[str, Sequence[tuple[str, str]]]) -> list[str]:
    """Those of `by_name(...)` that mean the picture `image_id` (see `RegionReader.resolve`); several: it is not known
    which.
    """
    wanted, name = split_name(image_id)
    candidates = names.get(name, ())
    close = [key for prefix, key in candidates if prefix == wanted]
    return close or [key for prefix, key in candidates if not prefix or not wanted]


def writable(folder) -> bool:
    """Whether files may be added to a folder. Root may everywhere, but a folder without write bits is to stay as is."""
    return os.access(folder, os.W_OK) and bool(os.stat(folder).st_mode & 0o222)
