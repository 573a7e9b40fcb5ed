"""The world as raw files, in the formats of the real data sets."""

import base64
import collections
import csv
import json
import pathlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from evil_jax.data.shapes import language_ve, language_vqa
from evil_jax.data.shapes.explanations import explain
from evil_jax.data.shapes.queries import Query, Verdict, judge
from evil_jax.data.shapes.regions import ATTRIBUTES, CLASSES, Detections, detect
from evil_jax.data.shapes.render import render
from evil_jax.data.shapes.scene import Scene, key, make_scene
from evil_jax.records import write_json

VERSION = 2  # raise when the same settings would give other files
FORMS = ('shapes_ve', 'shapes_vqa')
SPLITS = ('train', 'dev', 'test')
MARKER = 'world.json'
_SUBTYPE = 'shapes'
# A scene belongs to the split in whose range its key falls, so that no two splits share a scene, whatever the counts.
_KEY_RANGES = {'train': range(8), 'dev': range(8, 9), 'test': range(9, 10)}
_PER_SCENE = (4, 7)  # examples of a scene: from, below


class Item(NamedTuple):
    """One example before it is written."""

    number: int  # within its scene
    query: Query
    verdict: Verdict
    text: str
    explanations: list[str]
    words: list[int]


def write_world(
    form: str,
    folder,
    *,
    counts: Mapping[str, int],
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> bool:
    """Writes raw files of `form` ('shapes_ve' or 'shapes_vqa') into `folder`; True if anything had to be written.

    shapes_ve: esnlive_{train,dev,test}.csv (e-SNLI-VE, with explanation_2 and explanation_3). shapes_vqa: questions_,
    annotations_ (VQA v2) and explanations_{train,dev,test}.json (VQA-X). Both: regions.tsv (LXMERT obj36, pictures of
    all splits), objects_vocab.txt, attributes_vocab.txt, images/*.png, scenes.jsonl, truth.jsonl and last world.json.
    The same settings give the same bytes. All of it appears at once: a killed run leaves `.<folder>.partial` beside,
    which the next one replaces. One writer at a time.

    Args:
      folder: made here; may exist if it is empty or holds a finished world of the same settings (nothing is done).
      counts: examples of each split, exactly; a split with 0, or left out, gets no files.
      seed: of everything random.
      progress: called with the number of new examples after each scene.

    Raises:
      ValueError: unknown form or split, a negative count, or a folder with anything else in it.
    """
    folder = pathlib.Path(folder)
    counts = _checked(form, counts)
    settings = {'form': form, 'counts': counts, 'seed': seed, 'version': VERSION}
    if _finished(folder, settings):
        return False
    partial = folder.with_name(f'.{folder.name}.partial')
    if partial.exists():
        shutil.rmtree(partial)
    (partial / 'images').mkdir(parents=True)
    _write_files(form, partial, counts, seed, progress)
    write_json(partial / MARKER, settings)
    partial.replace(folder)
    return True


def _checked(form, counts) -> dict[str, int]:
    if form not in FORMS:
        raise ValueError(f'form of the world is {form!r}, wanted one of {", ".join(FORMS)}')
    for split, count in counts.items():
        if split not in SPLITS or count < 0:
            raise ValueError(f'{count} examples wanted of split {split!r}; splits are {", ".join(SPLITS)}, counts >= 0')
    return {split: int(counts.get(split, 0)) for split in SPLITS}


def _finished(folder, settings) -> bool:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MARKER).is_file():
        raise ValueError(f'{folder}: exists, and is no built-in world (no {MARKER} in it); remove it or choose another')
    with open(folder / MARKER, encoding='utf-8') as file:
        found = json.load(file)
    different = [name for name in settings if found.get(name) != settings[name]]
    if different:
        listed = '; '.join(f'{name} is {found.get(name)!r}, wanted {settings[name]!r}' for name in different)
        raise ValueError(
            f'{folder / MARKER}: the world there was made with other settings: {listed}. Remove the folder'
        )
    return True


def _write_files(form, folder, counts, seed, progress):
    write = _write_ve if form == 'shapes_ve' else _write_vqa
    write_lines(folder / 'objects_vocab.txt', CLASSES)
    write_lines(folder / 'attributes_vocab.txt', ATTRIBUTES)
    first = 1
    with (
        open(folder / 'regions.tsv', 'wb') as tsv,
        open(folder / 'scenes.jsonl', 'w', encoding='utf-8', newline='\n') as scenes,
        open(folder / 'truth.jsonl', 'w', encoding='utf-8', newline='\n') as truths,
    ):
        for number, split in enumerate(SPLITS):
            if not counts[split]:
                continue
            rows = []
            for scene, items, rng in generate(form, split, counts[split], [seed, number]):
                image_number = first + len(rows)
                name = image_id(form, image_number)
                image = render(scene)
                image.save(folder / 'images' / f'{name}.png', compress_level=1)
                tsv.write(tsv_row(name, image.size, detect(scene, image, rng)))
                scenes.write(json.dumps({'image_id': name, 'scene': scene}) + '\n')
                for item in items:
                    truths.write(json.dumps(_truth(form, split, image_number, item)) + '\n')
                rows.append((image_number, items, rng))
                if progress is not None:
                    progress(len(items))
            first += len(rows)
            write(folder, split, rows)


def generate(form: str, split: str, count: int, seed) -> Iterator[tuple[Scene, list[Item], np.random.Generator]]:
    """Scenes with their examples, `count` examples in all; the generator of a scene serves whatever follows from it.

    Kinds and labels are balanced: each example takes what is furthest behind its share among what the scene offers.
    """
    shares = _shares(form)
    made, done, scene_number = collections.Counter(), 0, 0
    while done < count:
        rng = np.random.default_rng([*seed, scene_number])
        scene_number += 1
        scene = make_scene(rng)
        while key(scene) % 10 not in _KEY_RANGES[split]:
            scene = make_scene(rng)
        items = _items(form, scene, min(int(rng.integers(*_PER_SCENE)), count - done), shares, made, rng)
        if items:
            done += len(items)
            yield scene, items, rng


def _shares(form) -> dict[tuple[str, str | None], float]:
    if form == 'shapes_vqa':
        return language_vqa.SHARES
    labels = language_ve.LABELS
    return {(kind, label): share / len(labels) for kind, share in language_ve.SHARES.items() for label in labels}


def _items(form, scene, wanted, shares, made, rng) -> list[Item]:
    language = language_ve if form == 'shapes_ve' else language_vqa
    items, asked = [], set()
    buckets = list(shares)
    while len(items) < wanted:
        total = made.total() + 1
        noise = rng.random(len(buckets))
        order = sorted(
            range(len(buckets)), key=lambda i: made[buckets[i]] - shares[buckets[i]] * total + 0.5 * noise[i]
        )
        for bucket in (buckets[i] for i in order):
            query = language.sample(scene, *bucket, rng)
            if query is not None and query not in asked:
                break
        else:
            return items  # the scene offers no more
        asked.add(query)
        made[bucket] += 1
        verdict = judge(scene, query)
        text = language.phrase(query, rng) if form == 'shapes_ve' else language.phrase(query)
        words = language_ve.decisive_words(text, query, verdict.missing)
        items.append(Item(len(items), query, verdict, text, explain(scene, query, verdict, rng), words))
    return items


def image_id(form: str, number: int) -> str:
    """Key of a picture in regions.tsv, scenes.jsonl and images/."""
    return f'{1_000_000_000 + number:010d}' if form == 'shapes_ve' else f'COCO_{_SUBTYPE}_{number:012d}'


def _example_id(form, image_number, item) -> str:
    if form == 'shapes_ve':
        return f'{image_id(form, image_number)}.jpg#0r{item.number}{item.verdict.label[0]}'
    return str(_question_id(image_number, item))


def _question_id(image_number, item) -> int:
    return image_number * 1000 + item.number


def _truth(form, split, image_number, item):
    return {
        'id': _example_id(form, image_number, item),
        'split': split,
        'kind': item.query.kind,
        'objects': list(item.verdict.things),
        'words': item.words,
    }


def tsv_row(name: str, size: tuple[int, int], found: Detections) -> bytes:
    """One line of LXMERT's obj36 files: height before width, base64 columns, CRLF."""
    width, height = size
    arrays = (found.class_ids, found.class_conf, found.attribute_ids, found.attribute_conf, found.boxes, found.features)
    *ids, boxes, features = (base64.b64encode(np.ascontiguousarray(array).tobytes()) for array in arrays)
    head = [name.encode(), b'%d' % height, b'%d' % width]
    return b'\t'.join([*head, *ids, b'%d' % len(found.boxes), boxes, features]) + b'\r\n'


def write_lines(path, lines) -> None:
    """A vocabulary: one entry a line."""
    path.write_text(''.join(f'{line}\n' for line in lines), encoding='utf-8')


def _write_ve(folder, split, rows):
    header = ['', 'pairID', 'Flickr30kID', 'hypothesis', 'gold_label', 'explanation', 'explanation_2', 'explanation_3']
    with open(folder / f'esnlive_{split}.csv', 'w', encoding='utf-8', newline='') as file:
        table = csv.writer(file, lineterminator='\n')
        table.writerow(header)
        index = 0
        for number, items, _ in rows:
            picture = f'{image_id("shapes_ve", number)}.jpg'
            for item in items:
                pair = _example_id('shapes_ve', number, item)
                table.writerow([index, pair, picture, item.text, item.verdict.label, *item.explanations])
                index += 1


def _write_vqa(folder, split, rows):
    head = {
        'info': {'description': 'built-in world shapes', 'version': str(VERSION)},
        'task_type': 'Open-Ended',
        'data_type': _SUBTYPE,
        'license': {'name': 'Apache-2.0'},
        'data_subtype': _SUBTYPE,
    }
    questions, annotations, explanations = [], [], {}
    for number, items, rng in rows:
        for item in items:
            question = {'image_id': number, 'question_id': _question_id(number, item)}
            questions.append(question | {'question': item.text})
            question_type, answer_type = language_vqa.groups(item.query)
            said = language_vqa.annotate(item.verdict.answer, rng)
            annotations.append(
                question
                | {
                    'question_type': question_type,
                    'answer_type': answer_type,
                    'multiple_choice_answer': item.verdict.answer,
                    'answers': [
                        {'answer': answer, 'answer_confidence': 'yes', 'answer_id': i}
                        for i, answer in enumerate(said, 1)
                    ],
                }
            )
            explanations[str(question['question_id'])] = item.explanations
    for name, document in {
        'questions': head | {'questions': questions},
        'annotations': head | {'annotations': annotations},
        'explanations': explanations,
    }.items():
        (folder / f'{name}_{split}.json').write_text(json.dumps(document), encoding='utf-8')
