"""attribute.evaluate=segmentation: does a heat map cover what a mask says is decisive?

ImageNet-Segmentation has masks of objects; of the built-in world it is known which things decide an answer.
"""

import jax
import numpy as np

from evil_jax.attribution import segmentation
from evil_jax.data import pictures, shapes, transforms
from evil_jax.data.shapes import masks
from evil_jax.modes import _protocols
from evil_jax.pages import heat

_SHOWN = {
    'reference': {'pixel_accuracy': 'pixel_accuracy', 'miou': 'miou', 'map': 'map'},
    'per_image': {'pixel_accuracy': 'pixel_accuracy_per_image', 'iou': 'iou_per_image', 'ap': 'ap_per_image'},
}


class Protocol:
    """Pixel accuracy, mIoU and mAP of what is above the mean of a map."""

    TITLE, AXES = 'Segmentation', ('', '')
    MAIN = ('pixel_accuracy', 'miou', 'map')
    NAMES = {
        'pixel_accuracy': 'pixel accuracy', 'miou': 'mIoU', 'map': 'mAP',
        'pixel_accuracy_per_image': 'pixel accuracy, per image', 'iou_per_image': 'IoU, per image',
        'ap_per_image': 'AP, per image',
    }  # fmt: skip

    def __init__(self, config, decoder, sample, reader):
        self.config, self.reader, self.task = config, reader, decoder.task
        reads = _protocols.spans(decoder, sample)
        if not {'patches', 'regions'} & set(reads):
            raise ValueError(
                f'attribute.evaluate=segmentation needs patches or regions; this model reads {", ".join(reads)}'
            )
        self.pixels = sample['images'].shape[1] if 'images' in sample else 0
        self.settings = {
            'masks': 'of the objects' if self.pixels else 'of the decisive things',
            'threshold': 'mean of the map',
            'explained': config.attribute.target,
        }
        self.deciding = {}

    def measurer(self, explainer, params):
        span = 'patches' if self.pixels else 'regions'

        def measure(params, batch):
            found, _ = explainer.relevance(explainer.decoder.net.merge(params), batch)
            size = found.values_BKS.shape[-1] - 1 if self.pixels else batch['features'].shape[1]
            return {'values': _protocols.items(found, span, size)}

        compiled = jax.jit(measure)
        return lambda batch: compiled(params, batch)

    def finish(self, rows, examples) -> dict:
        measured = [
            segmentation.measure(*self._pair(values, example)) for values, example in zip(rows['values'], examples)
        ]
        draws = _protocols.bootstrap(self.config, examples)
        result = segmentation.summarise(np.stack(measured), **draws)
        metrics = {
            shown: _protocols.better(result[protocol][name], 'higher')
            for protocol, names in _SHOWN.items()
            for name, shown in names.items()
        }
        return {'metrics': metrics, 'curves': {}, 'details': result}

    def _pair(self, values, example):
        """(map, mask) at the resolution of the mask."""
        if self.pixels:
            mask = pictures.resized_mask(self.reader.mask(example.image_id), self.pixels, self.config.data.resize)
            cells = int(len(values) ** 0.5)
            return heat.upsample(values.reshape(cells, cells), mask.shape), mask
        scene, things = example.extra['scene'], example.extra['objects']
        width, height = scene['size']
        found = transforms.fitting(self.reader[example.image_id], self.task.encoding, example.image_id)
        return segmentation.paint(values[: len(found)], found.boxes, height, width), masks.mask(scene, things)


def check(examples, reader) -> None:
    """Raises ValueError where there are no masks."""
    if hasattr(reader, 'mask') or all('scene' in examples[i].extra for i in range(min(3, len(examples)))):
        return
    raise ValueError(
        'attribute.evaluate=segmentation needs masks: of ImageNet-Segmentation (data.builder=imagenet_seg) or of the '
        f'built-in world ({", ".join(shapes.FORMS)})'
    )
