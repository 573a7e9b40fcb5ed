"""Pictures as data: URIs, small enough that a page with hundreds of them still opens."""

import base64
import io
import os

import PIL.Image

# Largest side in pixels and WebP quality, tried in this order until the bytes fit.
_TRIES = ((512, 80), (512, 60), (448, 50), (384, 45), (320, 40), (256, 35), (192, 30))


def picture_uri(path, max_bytes: int = 25_000, exact: int = 0) -> tuple[str, tuple[int, int]]:
    """A picture file as a data: URI.

    Args:
      path: of any format that Pillow reads, or an open file. Orientation tags are ignored: region boxes count pixels as
        stored.
      max_bytes: wanted size of the encoded picture; the smallest try is taken even if it is larger.
      exact: pictures with sides up to this many pixels are kept without loss.

    Returns:
      The URI and the (width, height) of the original in pixels.

    Raises:
      ValueError: the file is not a readable picture.
    """
    try:
        with PIL.Image.open(path) as image:
            size = image.size
            image.draft('RGB', (_TRIES[0][0], _TRIES[0][0]))  # lets a JPEG decode at a fraction of its size
            image = _flat(image)
    except (OSError, SyntaxError, ValueError, PIL.Image.DecompressionBombError) as error:
        raise ValueError(f'{path}: not a readable picture: {error}') from error
    if max(size) <= exact:
        return _uri(image, 'PNG')[0], size
    for side, quality in _TRIES:
        smaller = image.copy()
        smaller.thumbnail((side, side))
        uri, length = _uri(smaller, 'WEBP', quality=quality)
        if length <= max_bytes:
            break
    return uri, size


class Album:
    """Pictures that are embedded once each, until they are too many bytes.

    Attributes:
      uris: {number: URI}; pictures of this machine are numbered, not named.
    """

    def __init__(self, room: int, each: int):
        """Args: `room`, bytes of all as URIs; `each`, wanted bytes of one."""
        self.uris: dict[str, str] = {}
        self._known: dict[str, tuple[str | None, str | None]] = {}
        self._room, self._each = room, each

    def add(self, path, of: str) -> tuple[str | None, str | None]:
        """(number of the picture, None), or (None, why it is not shown), in words that name what it is `of`."""
        if not path:
            return None, f'no picture file for this {of}'
        path = str(path)
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path):
        if self._room <= 0:
            return None, 'left out to keep the page small'
        try:
            uri, _ = picture_uri(path, self._each)
        except ValueError:
            # One bad file must not cost the page: its card says so, without this machine's folders.
            return None, f'{os.path.basename(path)} is not a readable picture'
        self._room -= len(uri)
        number = str(len(self.uris))
        self.uris[number] = uri
        return number, None


def _uri(image, form, **settings):
    """(URI, number of bytes that it stands for)."""
    buffer = io.BytesIO()
    image.save(buffer, form, **settings)
    return f'data:image/{form.lower()};base64,' + base64.b64encode(buffer.getvalue()).decode(), buffer.tell()


def _flat(image: PIL.Image.Image) -> PIL.Image.Image:
    """RGB, transparent parts on white."""
    if 'A' not in image.getbands() and 'transparency' not in image.info:
        return image.convert('RGB')
    rgba = image.convert('RGBA')
    white = PIL.Image.new('RGBA', rgba.size, 'white')
    return PIL.Image.alpha_composite(white, rgba).convert('RGB')


def placed(boxes, size, picture_size) -> tuple[list[list[float]], tuple[float, float]]:
    """Boxes to be drawn over a picture, and the frame that they count in.

    Args:
      boxes: [x1, y1, x2, y2] each, or None.
      size: (width, height) that they count in; (1, 1) for boxes relative to the picture, None where it is not known.
      picture_size: of the picture in pixels, or None.
    """
    boxes = [[float(v) for v in box] for box in ([] if boxes is None else boxes)]
    if size is not None and tuple(size) == (1, 1):
        size = picture_size or (400, 300)
        boxes = [[v * size[i % 2] for i, v in enumerate(box)] for box in boxes]
    if size is None:
        size = picture_size or (max([b[2] for b in boxes], default=4), max([b[3] for b in boxes], default=3))
    return [[round(v, 1) for v in box] for box in boxes], (float(size[0]), float(size[1]))
