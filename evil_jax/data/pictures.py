"""Pictures for models that read pixels: found by image id, read from files, made into arrays. No JAX.

What a reader of pictures is, wherever they come from (`data/builders/_base.py:ExampleBuilder.reader`):
  reader[image_id]     uint8 [H, W, 3], RGB;  `image_id in reader`;  ids(): all of them
  provenance()         JSON that tells its content from others
It is picklable and opens files when they are asked for.
"""

import hashlib
import os
import pathlib
import struct

import numpy as np
import PIL.Image
import PIL.ImageOps

from evil_jax.data.features import regions

RESIZE = ('squash', 'crop')
_MARGIN = 256 / 224  # 'crop' cuts 224 pixels out of 256
_DEEP = ('I', 'I;16', 'I;16B', 'I;16L', 'I;16N')  # of Pillow: 16 bits a channel
_BILINEAR = PIL.Image.Resampling.BILINEAR

# What Pillow raises for damaged files, of whichever format.
BAD = (
    OSError, SyntaxError, ValueError, EOFError, struct.error, LookupError, TypeError, AttributeError, ArithmeticError,
    MemoryError, PIL.Image.DecompressionBombError,
)  # fmt: skip


def read(path) -> np.ndarray:
    """The picture in a file, as people see it: uint8 [H, W, 3], RGB.

    Gray, palette and CMYK pictures become RGB, 16 bits 8; what is transparent shows white. A picture whose EXIF tag
    says that it lies on its side is turned.

    Raises:
      ValueError: not a picture, or a damaged one; names the file.
    """
    try:
        with PIL.Image.open(path) as image:
            return np.array(rgb(PIL.ImageOps.exif_transpose(image)))
    except BAD as error:
        raise unreadable(path, error) from error


def rgb(image: PIL.Image.Image) -> PIL.Image.Image:
    """A picture of any kind as RGB, 8 bits a channel."""
    if image.mode in _DEEP:
        return PIL.Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8)).convert('RGB')
    if 'A' not in image.getbands() and 'transparency' not in image.info:
        return image.convert('RGB')
    white = PIL.Image.new('RGBA', image.size, 'white')
    return PIL.Image.alpha_composite(white, image.convert('RGBA')).convert('RGB')


def unreadable(path, error) -> ValueError:
    """What to raise where reading a picture failed with one of `BAD`."""
    return ValueError(f'{path}: not a readable picture: {error or type(error).__name__}')


def prepare(picture, pixels: int, resize: str = 'squash') -> np.ndarray:
    """What a Vision Transformer reads of a picture: float32 [pixels, pixels, 3], (x - 0.5) / 0.5 of RGB in [0, 1].

    Args:
      picture: uint8 [H, W, 3], or [H, W] or [H, W, 1] where it has one channel.
      pixels: side.
      resize: 'squash' scales the whole picture, whatever its shape; 'crop' scales the shorter side to
        `pixels` * 256 / 224 and cuts the middle out. Both with Pillow's bilinear filter (which averages what it makes
        smaller), as torchvision's Resize does with pictures of Pillow.

    Raises:
      ValueError: an array of another kind.
    """
    return normalised(resized(picture, pixels, resize))


def resized(picture, pixels: int, resize: str = 'squash') -> np.ndarray:
    """The uint8 [pixels, pixels, 3] that `prepare` normalises: for people to look at."""
    picture = np.asarray(picture)
    if (
        picture.dtype != np.uint8
        or picture.ndim not in (2, 3)
        or (picture.ndim == 3 and picture.shape[2] not in (1, 3))
    ):
        raise ValueError(f'a picture is {picture.dtype} {list(picture.shape)}, wanted uint8 [H, W, 3] or [H, W]')
    if not picture.size:
        raise ValueError(f'a picture of shape {list(picture.shape)} has no pixels')
    if picture.ndim == 2:
        picture = picture[..., None]
    image = PIL.Image.fromarray(np.broadcast_to(picture, (*picture.shape[:2], 3)).copy())
    return np.asarray(_scaled(image, pixels, resize, _BILINEAR))


def resized_mask(mask_HW, pixels: int, resize: str = 'squash') -> np.ndarray:
    """A mask of a picture, uint8 [H, W], as it lies over what `resized` makes of that: the nearest of its values."""
    return np.asarray(_scaled(PIL.Image.fromarray(mask_HW), pixels, resize, PIL.Image.Resampling.NEAREST))


def _scaled(image, pixels, resize, filter_):
    if resize == 'squash':
        return image.resize((pixels, pixels), filter_)
    if resize != 'crop':
        raise ValueError(f'resize is {resize!r}, wanted one of {", ".join(map(repr, RESIZE))}')
    shorter = round(pixels * _MARGIN)
    # The longer side is rounded down and the middle to the nearest even number, as torchvision does.
    width, height = (shorter * side // min(image.size) for side in image.size)
    left, top = round((width - pixels) / 2), round((height - pixels) / 2)
    return image.resize((width, height), filter_).crop((left, top, left + pixels, top + pixels))


def normalised(picture_HW3: np.ndarray) -> np.ndarray:
    """(x - 0.5) / 0.5 of a uint8 picture's values in [0, 1], float32: black is -1."""
    return picture_HW3.astype(np.float32) / np.float32(127.5) - np.float32(1)


def shifted(picture_HW3: np.ndarray, down: int, right: int) -> np.ndarray:
    """A normalised picture, moved by some pixels; what comes in at the edges is black."""
    moved = np.full_like(picture_HW3, -1)
    height, width = picture_HW3.shape[:2]
    there = lambda by, side: slice(max(by, 0), side + min(by, 0))
    moved[there(down, height), there(right, width)] = picture_HW3[there(-down, height), there(-right, width)]
    return moved


class Images:
    """`images[image_id]` is the path of the picture, or None.

    Names agree as those of region features do (`data.features.regions.RegionReader.resolve`), in any folder below
    `path`: `132417` is `COCO_train2014_000000132417.jpg`.
    """

    def __init__(self, path: pathlib.Path | None):
        self.path = path
        self._paths: dict[str, list[pathlib.Path]] | None = None  # by name without ending
        self._names = {}

    def __getitem__(self, image_id: str) -> pathlib.Path | None:
        """Raises ValueError where several pictures may be meant."""
        if self._paths is None:
            self._scan()
        found = [image_id] if image_id in self._paths else regions.same_picture(image_id, self._names)
        paths = [path for name in found for path in self._paths[name]]
        if len(paths) > 1:
            first, second = (path.relative_to(self.path) for path in paths[:2])
            raise ValueError(f'{image_id!r} could be {first} or {second} in the folder of pictures')
        return paths[0] if paths else None

    def ids(self) -> list[str]:
        """Names without ending of all pictures, in the order of their folders and names."""
        if self._paths is None:
            self._scan()
        return list(self._paths)

    def _scan(self):
        found = {}
        for directory, _, names in sorted(os.walk(self.path)) if self.path else ():
            for name in sorted(names):
                path = pathlib.Path(directory, name)
                if path.suffix.lower() in regions.PICTURES:
                    found.setdefault(path.stem, []).append(path)
        # At once, and last: several threads may look pictures up.
        self._names = regions.by_name(found)
        self._paths = found


class Pictures:
    """The reader (see the module) of a folder of picture files.

    Args:
      folder: pictures may lie in any folder below it, under names as `Images` understands them.
    """

    def __init__(self, folder):
        self.path = pathlib.Path(folder)
        self._images = Images(self.path)

    def __getitem__(self, image_id: str) -> np.ndarray:
        return read(self._path(image_id))

    def __contains__(self, image_id: str) -> bool:
        return self._images[image_id] is not None

    def __len__(self) -> int:
        return len(self._images.ids())

    def ids(self) -> list[str]:
        return self._images.ids()

    def provenance(self) -> dict[str, object]:
        """Of all pictures names and sizes, which are there without opening them: a folder may hold a million."""
        digest = hashlib.sha256()
        for image_id in sorted(self.ids()):
            path = self._path(image_id)
            digest.update(f'{path.relative_to(self.path).as_posix()} {path.stat().st_size}\n'.encode())
        return {'format': 'pictures', 'images': len(self), 'sha256': digest.hexdigest()}

    def _path(self, image_id):
        path = self._images[image_id]
        if path is None:
            example = f', for example {self.ids()[0]!r}' if len(self) else ''
            raise ValueError(f'{self.path}: no picture {image_id!r}; it has {len(self)} pictures{example}')
        return path
