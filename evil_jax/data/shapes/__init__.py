"""The built-in world `shapes`: scenes, pictures, regions, statements, questions and explanations that can be checked.

write_world(form, folder, counts=..., seed=...)     raw files in the formats of the real data sets
write_sources(folder, counts, seed)                 the sources of e-SNLI-VE: SNLI, e-SNLI, captions, lists
label_by_caption(caption, hypothesis), oracle(pairs, classes)
explanation_is_true(scene, example, text)           judge of generated explanations
make_scene(rng), render(scene), mask(scene, things)
detect(scene, image, rng), box_features(image, boxes), cell_features(image, 3, 3)
"""

from evil_jax.data.shapes.captions import label_by_caption, oracle
from evil_jax.data.shapes.containers import CONTAINERS
from evil_jax.data.shapes.masks import mask
from evil_jax.data.shapes.queries import Noun, Query, Verdict, judge
from evil_jax.data.shapes.regions import ATTRIBUTES, CLASSES, Detections, box_features, cell_features, detect
from evil_jax.data.shapes.render import render
from evil_jax.data.shapes.scene import COLOURS, PLACES, RELATIONS, SHAPES, SIZES, make_scene
from evil_jax.data.shapes.sources import dev_images, write_sources
from evil_jax.data.shapes.truth import explanation_is_true, parse_query
from evil_jax.data.shapes.write import FORMS, VERSION, write_world

__all__ = [
    'ATTRIBUTES', 'CLASSES', 'COLOURS', 'CONTAINERS', 'FORMS', 'PLACES', 'RELATIONS', 'SHAPES', 'SIZES', 'VERSION',
    'Detections', 'Noun', 'Query', 'Verdict',
    'box_features', 'cell_features', 'detect', 'dev_images', 'explanation_is_true', 'judge', 'label_by_caption',
    'make_scene', 'mask', 'oracle', 'parse_query', 'render', 'write_sources', 'write_world',
]  # fmt: skip
