"""The world's annotation files in VCR's format: train.jsonl, val.jsonl and below vcr1images/ the pictures' metadata.

VCR publishes no dev split: its pictures are among those of train.jsonl, and dev_ids.txt names them. Files of the real
data set hold the same fields [R2C dataloaders/vcr.py; annotation readme of VCR].
"""

import collections
import json
import pathlib
import re

import numpy as np

from evil_jax.data.shapes.annotations import Picture
from evil_jax.data.shapes.containers import Names
from evil_jax.data.shapes.examples import Item
from evil_jax.data.shapes.render import outline, polygon
from evil_jax.data.shapes.scene import Scene
from evil_jax.text import TAG

DEV_IDS = 'dev_ids.txt'
_FILES = {'train': 'train', 'dev': 'train', 'test': 'val'}
_PER_MOVIE, _SECONDS = 100, 10  # pictures, and the time from one to the next
_MARGIN = 2  # pixels that people leave around a thing when they draw its box


class Choices:
    """shapes_vcr; object i of a picture is thing i of its scene, called by its shape."""

    container = 'lmdb'

    def __init__(self):
        self._numbers = collections.Counter()  # of the next example in each file

    def picture(self, split: str, number: int, scene: Scene, items: list[Item], rng) -> Picture:
        """Names a picture, the `number`-th of all, and its examples."""
        movie, place = divmod(number - 1, _PER_MOVIE)
        start, end = (_time(n * _SECONDS) for n in (place, place + 1))
        stem, file = f'shapes_{movie:04d}_{start}-{end}@0', _FILES[split]
        first = self._numbers[file]
        self._numbers[file] += len(items)
        ids = [f'{file}-{first + n}' for n in range(len(items))]
        names = Names(stem, stem, f'vcr_{file}_{stem}.npz')
        return VcrPicture(scene, names, items, ids, number, rng)

    def write(self, folder: pathlib.Path, split: str, pictures: list[Picture]) -> None:
        """Writes the examples of one split, and the metadata of its pictures."""
        with open(folder / f'{_FILES[split]}.jsonl', 'a', encoding='utf-8', newline='\n') as file:
            for picture in pictures:
                for annot_id, item in zip(picture.ids, picture.items):
                    file.write(json.dumps(_row(picture, annot_id, item)) + '\n')
        for picture in pictures:
            path = folder / 'vcr1images' / f'{picture.stem}.json'
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(_metadata(picture.scene)), encoding='utf-8')
        if split == 'dev':
            ids = ''.join(f'{picture.names.image_id}\n' for picture in pictures)
            (folder / DEV_IDS).write_text(ids, encoding='utf-8')


class VcrPicture(Picture):
    """A picture in the folder of its movie."""

    @property
    def stem(self) -> str:
        return f'{self.movie}/{self.names.image_id}'

    @property
    def movie(self) -> str:
        return f'shapes_{(self.number - 1) // _PER_MOVIE:04d}'


def _time(seconds: int) -> str:
    return f'00.{seconds // 60:02d}.{seconds % 60:02d}.000'


def _row(picture: VcrPicture, annot_id: str, item: Item) -> dict[str, object]:
    """One line; what is random in it comes from the picture's generator."""
    label = int(picture.rng.integers(len(item.denied) + 1))
    reasons = [*item.denied[:label], *item.explanations, *item.denied[label:]]
    file, number = annot_id.split('-')
    return {
        'movie': picture.movie,
        'objects': _objects(picture.scene),
        'interesting_scores': [0],
        'answer_likelihood': 'possible',
        'img_fn': f'{picture.stem}.jpg',
        'metadata_fn': f'{picture.stem}.json',
        'answer_orig': _original(item.choices[item.label]),
        'question_orig': _original(item.text),
        'rationale_orig': _original(item.explanations[0]),
        'question': tokens(item.text),
        'answer_match_iter': _places(item.label),
        'answer_sources': [int(number)] * len(item.choices),
        'answer_choices': [tokens(text) for text in item.choices],
        'answer_label': item.label,
        'rationale_choices': [tokens(text) for text in reasons],
        'rationale_sources': [int(number)] * len(reasons),
        'rationale_match_iter': _places(label),
        'rationale_label': label,
        'img_id': f'{file}-{picture.number - 1}',
        'question_number': item.number,
        'annot_id': annot_id,
        'match_fold': f'{file}-0',
        'match_index': int(number),
    }


def _objects(scene) -> list[str]:
    return [thing['shape'] for thing in scene['things']]


def tokens(text: str) -> list[str | list[int]]:
    """A text as VCR holds it: words, and lists of 0-based objects for tags. '<|det1|> and <|det2|>' is one list."""
    found = []
    for word in text.split():
        match = TAG.fullmatch(word)
        if not match:
            found.append(word)
        elif found[-1:] == ['and'] and isinstance(found[-2], list):
            found.pop()
            found[-1].append(int(match[1]) - 1)
        else:
            found.append([int(match[1]) - 1])
    return found


def _original(text: str) -> str:
    """A text as the annotator typed it: 1-based numbers, no blank before a mark."""
    return re.sub(r' ([.,?])', r'\1', TAG.sub(r'\1', text))


def _places(label: int) -> list[int]:
    """For each choice the round in which it was found: the right one in round 0."""
    return [0 if i == label else i + (i < label) for i in range(4)]


def _metadata(scene: Scene) -> dict[str, object]:
    """Boxes [x1, y1, x2, y2, score], outlines (a list of polygons for each object) and names of a picture's objects."""
    width, height = scene['size']
    tight = np.array([outline(thing) for thing in scene['things']]) + _MARGIN * np.array([-1, -1, 1, 1])
    boxes = np.clip(tight, 0, [width, height, width, height]).round(2).tolist()
    return {
        'boxes': [[*box, 1.0] for box in boxes],
        'segms': [[np.clip(polygon(thing), 0, [width, height]).round(2).tolist()] for thing in scene['things']],
        'names': _objects(scene),
        'width': width,
        'height': height,
    }
