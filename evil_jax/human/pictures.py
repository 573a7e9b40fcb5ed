"""Copies the pictures of a study to where it is served from."""

import dataclasses
import io
import pathlib
import tempfile

import PIL.Image
import PIL.ImageOps

from evil_jax import records
from evil_jax.data import pictures
from evil_jax.human import _chance
from evil_jax.human.study import IMAGES, Study

LARGEST = 1000  # pixels of the longer side: a page has ten of them
_QUALITY = 90


def add(study: Study, images, folder) -> Study:
    """Writes `<folder>/images/`, all of it or nothing, in the place of what was there.

    Pictures get names that tell nothing, at most `LARGEST` pixels a side, and lose what else is in their files (where
    and when they were taken). PNG stays PNG, which small drawings need; others become JPEG.

    Args:
      study: of `sampling.sample`.
      images: `images[image_id]` is the path of the picture or None (`data.pictures.Images`); None = there are none.
      folder: of the study.

    Returns:
      The study, in which items name their pictures. Missing ones are told in `settings['shortfalls']`.

    Raises:
      ValueError: a picture that cannot be read, or several of one id; the file is named.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = sorted({item.image_id for item in study.items.values()})
    boxed = {item.image_id for item in study.items.values() if item.boxes}
    names, missing = {}, []
    with tempfile.TemporaryDirectory(dir=folder, prefix=f'.{IMAGES}.') as temporary:
        new, old = pathlib.Path(temporary, 'new'), pathlib.Path(temporary, 'old')
        new.mkdir()
        for image_id in wanted:
            path = images[image_id] if images is not None else None
            if path is None:
                missing.append(image_id)
                continue
            content, ending = _copy(path, upright=image_id not in boxed)
            names[image_id] = _chance.opaque(study.settings['seed'], 16, 'picture', image_id) + ending
            records.atomic_write(new / names[image_id], content)  # it names the file on a full disk
        if (folder / IMAGES).exists():
            (folder / IMAGES).rename(old)
        try:
            new.rename(folder / IMAGES)
        except OSError:
            if old.exists():
                old.rename(folder / IMAGES)
            raise
    settings = dict(study.settings)
    if missing:
        told = f'{len(missing)} of {len(wanted)} pictures are not there, for example {missing[0]!r}'
        settings['shortfalls'] = [*settings['shortfalls'], told]
    items = {item.id: dataclasses.replace(item, image=names.get(item.image_id, '')) for item in study.items.values()}
    return dataclasses.replace(study, items=items, settings=settings)


def _copy(path, upright: bool) -> tuple[bytes, str]:
    """(content, ending) of the copy. Boxes count pixels as stored, so what has boxes is not turned."""
    try:
        with PIL.Image.open(path) as image:
            lossless = image.format == 'PNG'
            image.draft('RGB', (2 * LARGEST, 2 * LARGEST))  # lets a JPEG decode at a fraction of its size
            copy = pictures.rgb(PIL.ImageOps.exif_transpose(image) if upright else image)
    except pictures.BAD as error:
        raise pictures.unreadable(path, error) from error
    copy.thumbnail((LARGEST, LARGEST), PIL.Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    clean = PIL.Image.frombytes('RGB', copy.size, copy.tobytes())  # `info` (EXIF, comments) stays behind
    if lossless:
        clean.save(buffer, 'PNG')
    else:
        clean.save(buffer, 'JPEG', quality=_QUALITY)
    return buffer.getvalue(), '.png' if lossless else '.jpg'
