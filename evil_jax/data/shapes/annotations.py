"""The world's annotation files in the formats of e-SNLI-VE and of VQA v2 with VQA-X (VCR: annotations_vcr.py)."""

import csv
import json
import pathlib
from typing import NamedTuple

import numpy as np

from evil_jax.data.shapes import language_vqa
from evil_jax.data.shapes.containers import Names
from evil_jax.data.shapes.examples import Item
from evil_jax.data.shapes.scene import Scene

_SUBTYPE = 'shapes'
_VERSION = '2'  # of the files, as they say


class Picture(NamedTuple):
    """One picture with its examples; ids are the examples'."""

    scene: Scene
    names: Names
    items: list[Item]
    ids: list[str]
    number: int
    rng: np.random.Generator

    @property
    def stem(self) -> str:
        """Its file below images/, without the ending."""
        return self.names.image_id


class Entailment:
    """shapes_ve: esnlive_{train,dev,test}.csv, with explanation_2 and explanation_3."""

    container = 'lxmert'

    def picture(self, split: str, number: int, scene: Scene, items: list[Item], rng) -> Picture:
        """Names a picture, the `number`-th of all, and its examples."""
        name = f'{1_000_000_000 + number:010d}'
        ids = [f'{name}.jpg#0r{item.number}{item.verdict.label[0]}' for item in items]
        return Picture(scene, Names(name, name, f'flickr30k_{name:0>12}.npz'), items, ids, number, rng)

    def write(self, folder: pathlib.Path, split: str, pictures: list[Picture]) -> None:
        """Writes the files of one split."""
        header = ['', 'pairID', 'Flickr30kID', 'hypothesis', 'gold_label']
        header += ['explanation', 'explanation_2', 'explanation_3']
        with open(folder / f'esnlive_{split}.csv', 'w', encoding='utf-8', newline='') as file:
            table = csv.writer(file, lineterminator='\n')
            table.writerow(header)
            rows = ((pair, picture, item) for picture in pictures for pair, item in zip(picture.ids, picture.items))
            for index, (pair, picture, item) in enumerate(rows):
                image = f'{picture.names.image_id}.jpg'
                table.writerow([index, pair, image, item.text, item.verdict.label, *item.explanations])


class Questions:
    """shapes_vqa: questions_, annotations_ (VQA v2) and explanations_{train,dev,test}.json (VQA-X)."""

    container = 'lxmert'

    def picture(self, split: str, number: int, scene: Scene, items: list[Item], rng) -> Picture:
        """Names a picture, the `number`-th of all, and its examples."""
        names = Names(f'COCO_{_SUBTYPE}_{number:012d}', str(number), f'coco_{_SUBTYPE}_{number:012d}.npz')
        return Picture(scene, names, items, [str(number * 1000 + item.number) for item in items], number, rng)

    def write(self, folder: pathlib.Path, split: str, pictures: list[Picture]) -> None:
        """Writes the files of one split."""
        head = {
            'info': {'description': 'built-in world shapes', 'version': _VERSION},
            'task_type': 'Open-Ended',
            'data_type': _SUBTYPE,
            'license': {'name': 'Apache-2.0'},
            'data_subtype': _SUBTYPE,
        }
        questions, annotations, explanations = [], [], {}
        for picture in pictures:
            for number, item in zip(picture.ids, picture.items):
                question = {'image_id': picture.number, 'question_id': int(number)}
                questions.append(question | {'question': item.text})
                annotations.append(question | self._annotation(item, picture.rng))
                explanations[number] = item.explanations
        for name, document in {
            'questions': head | {'questions': questions},
            'annotations': head | {'annotations': annotations},
            'explanations': explanations,
        }.items():
            (folder / f'{name}_{split}.json').write_text(json.dumps(document), encoding='utf-8')

    def _annotation(self, item, rng):
        question_type, answer_type = language_vqa.groups(item.query)
        said = language_vqa.annotate(item.verdict.answer, rng)
        return {
            'question_type': question_type,
            'answer_type': answer_type,
            'multiple_choice_answer': item.verdict.answer,
            'answers': [
                {'answer': answer, 'answer_confidence': 'yes', 'answer_id': i} for i, answer in enumerate(said, 1)
            ],
        }
