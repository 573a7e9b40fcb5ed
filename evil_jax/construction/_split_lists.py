"""Which split a picture is in, by lists of pictures, as SNLI-VE's authors do it (Xie et al. 2019).

SNLI's own splits put captions of one picture into several of them. So all files are pooled and split by picture: test
is flickr30k_test.lst, dev the last 1,000 of flickr30k_train_val.lst, and train the rest of that.
"""

import pathlib
from collections.abc import Mapping

from evil_jax.construction.pairs import SPLITS
from evil_jax.data.sources import _files, flickr30k

BOTH = 'trainval'
_WANTED = "wanted 'trainval=a.lst,test=b.lst', or train=, dev=, test="


def parse(value: str) -> dict[str, pathlib.Path]:
    """'trainval=a.lst,test=b.lst' -> {'trainval': a.lst, 'test': b.lst}; '' -> {}.

    Raises:
      ValueError: another form, an unknown or repeated name, trainval beside train or dev, a missing file.
    """
    found = {}
    for part in filter(None, (part.strip() for part in value.split(','))):
        name, equals, path = (piece.strip() for piece in part.partition('='))
        if name not in (BOTH, *SPLITS) or not equals or not path:
            raise ValueError(f'construct.splits has {part!r}, {_WANTED}')
        if name in found:
            raise ValueError(f'construct.splits has {name} twice, {_WANTED}')
        if not pathlib.Path(path).is_file():
            raise ValueError(f'construct.splits: {path}: there is no such file')
        found[name] = pathlib.Path(path)
    if BOTH in found and found.keys() & {'train', 'dev'}:
        raise ValueError(f'construct.splits has {BOTH} and {"train" if "train" in found else "dev"}, {_WANTED}')
    return found


def read(lists: Mapping[str, pathlib.Path], dev_images: int) -> dict[str, str]:
    """{picture: split}.

    Args:
      lists: of `parse`.
      dev_images: pictures of dev, the last ones of trainval.

    Raises:
      ValueError: a picture in two lists, or trainval has no more pictures than dev_images.
    """
    splits: dict[str, str] = {}
    for name, path in lists.items():
        pictures = flickr30k.image_ids(path)
        twice = [picture for picture in pictures if picture in splits]
        if twice:
            other = lists.get(splits[twice[0]], lists.get(BOTH))
            raise ValueError(f'{path} and {other} have the same pictures, {_files.some_ids(twice)}')
        if name != BOTH:
            splits |= dict.fromkeys(pictures, name)
        elif not 0 <= dev_images < len(pictures):
            raise ValueError(
                f'{path} has {len(pictures):,} pictures, of which dev gets construct.dev_images={dev_images:,}: '
                'that leaves none for train'
            )
        else:
            border = len(pictures) - dev_images
            splits |= dict.fromkeys(pictures[:border], 'train') | dict.fromkeys(pictures[border:], 'dev')
    return splits
