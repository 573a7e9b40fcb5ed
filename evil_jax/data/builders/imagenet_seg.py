"""ImageNet-Segmentation (Guillaumin et al. 2014): 4,276 pictures of 445 classes, each with a mask of its object.

One file in `manual_dir`: gtsegs_ijcv.mat. All pictures are the test split; a label is a synset. Not all of them are
classes of ImageNet-1k. The masks are read by `Builder.reader(folder).mask(image_id)`.
"""

import pathlib

from evil_jax.data.builders import _base
from evil_jax.data.sources.gtsegs import GtSegs
from evil_jax.records import Example

NAME = 'gtsegs_ijcv.mat'


class ImagenetSeg(_base.ExampleBuilder):
    """Pictures with their class and a mask."""

    description = __doc__
    inputs = 'pictures'

    @classmethod
    def files(cls, folder, options=_base.DEFAULT):
        return {'test': {'mat': _file(folder)}}

    @classmethod
    def read(cls, files, options=_base.DEFAULT):
        reader = GtSegs(files['mat'])
        for name in reader.ids():
            yield Example(id=name, image_id=name, text='', label=reader.synset(name))

    @classmethod
    def labels(cls, files, options=_base.DEFAULT):
        return tuple(GtSegs(files['test']['mat']).synsets())

    @classmethod
    def pictures(cls, folder):
        return None

    @classmethod
    def reader(cls, folder):
        return GtSegs(_file(folder))


def _file(folder) -> pathlib.Path:
    path = pathlib.Path(folder) / NAME
    if not path.is_file():
        raise ValueError(f'no raw files: {path} does not exist. Set data.manual_dir')
    return path


Builder = ImagenetSeg
