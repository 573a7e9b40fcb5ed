"""The world as raw files, in the formats of the real data sets."""

import json
import pathlib
import shutil
from collections.abc import Callable, Mapping

from evil_jax.data.shapes.annotations import Entailment, Questions
from evil_jax.data.shapes.annotations_vcr import Choices
from evil_jax.data.shapes.containers import CONTAINERS, open_container
from evil_jax.data.shapes.examples import generate
from evil_jax.data.shapes.regions import ATTRIBUTES, CLASSES, detect
from evil_jax.data.shapes.render import render
from evil_jax.data.shapes.sources import write_sources
from evil_jax.records import write_json

VERSION = 2  # raise when the same settings would give other files
SPLITS = ('train', 'dev', 'test')
MARKER = 'world.json'
_FORMS = {'shapes_ve': Entailment, 'shapes_vqa': Questions, 'shapes_vcr': Choices}
FORMS = tuple(_FORMS)
TEXTS = 'shapes_nli'  # a form of texts alone
# A marker without a container means this one: the first worlds had no other.
_FIRST_CONTAINER = 'lxmert'


def write_world(
    form: str,
    folder,
    *,
    counts: Mapping[str, int],
    seed: int = 0,
    container: str = '',
    progress: Callable[[int], object] | None = None,
) -> bool:
    """Writes raw files of `form` into `folder`; True if anything had to be written.

    shapes_ve: esnlive_{train,dev,test}.csv (e-SNLI-VE, with explanation_2 and explanation_3). shapes_vqa: questions_,
    annotations_ (VQA v2) and explanations_{train,dev,test}.json (VQA-X). shapes_vcr: train.jsonl, val.jsonl (the test
    split), vcr1images/*/*.json and dev_ids.txt (the pictures of train.jsonl that are the dev split; VCR has none).

    shapes_nli: the sources of e-SNLI-VE, texts alone (`sources.write_sources`), and world.json.

    All others: the regions of the pictures of all splits (`containers`), objects_vocab.txt, attributes_vocab.txt,
    images/ with PNG files, scenes.jsonl, truth.jsonl and last world.json. The same settings give the same bytes. All of
    it appears at once: a killed run leaves `.<folder>.partial` beside, which the next one replaces. One writer at a
    time.

    Args:
      folder: made here; may exist if it is empty or holds a finished world of the same settings (nothing is done).
      counts: examples of each split, exactly; a split with 0, or left out, gets no files.
      seed: of everything random.
      container: of the regions, 'lxmert', 'butd', 'lmdb', 'npz' or 'grid'; '' = lxmert, of shapes_vcr lmdb, of
        shapes_nli none.
      progress: called with the number of new examples after each scene.

    Raises:
      ValueError: unknown form, container or split, a negative count, or a folder with anything else in it.
    """
    folder = pathlib.Path(folder)
    counts = _checked(form, counts, container)
    container = container or (_FORMS[form].container if form != TEXTS else '')
    settings = {'form': form, 'counts': counts, 'seed': seed, 'version': VERSION}
    if container != _FIRST_CONTAINER:
        settings['container'] = container
    if _finished(folder, settings):
        return False
    partial = folder.with_name(f'.{folder.name}.partial')
    if partial.exists():
        shutil.rmtree(partial)
    if form == TEXTS:
        write_sources(partial, counts, seed, progress)
    else:
        (partial / 'images').mkdir(parents=True)
        _write_files(_FORMS[form](), form, container, partial, counts, seed, progress)
    write_json(partial / MARKER, settings)
    partial.replace(folder)
    return True


def _checked(form, counts, container) -> dict[str, int]:
    if form not in (*FORMS, TEXTS):
        raise ValueError(f'form of the world is {form!r}, wanted one of {", ".join((*FORMS, TEXTS))}')
    if container not in ('', *CONTAINERS):
        raise ValueError(f'container of the regions is {container!r}, wanted one of {", ".join(CONTAINERS)}')
    if container and form == TEXTS:
        raise ValueError(f'container of the regions is {container!r}, but {TEXTS} has no regions')
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
    found, wanted = ({'container': _FIRST_CONTAINER} | each for each in (found, settings))
    different = [name for name in wanted if found.get(name) != wanted[name]]
    if different:
        listed = '; '.join(f'{name} is {found.get(name)!r}, wanted {wanted[name]!r}' for name in different)
        raise ValueError(
            f'{folder / MARKER}: the world there was made with other settings: {listed}. Remove the folder'
        )
    return True


def _write_files(annotations, form, container, folder, counts, seed, progress):
    write_lines(folder / 'objects_vocab.txt', CLASSES)
    write_lines(folder / 'attributes_vocab.txt', ATTRIBUTES)
    first = 1
    with (
        open_container(container, folder, sum(counts.values())) as add_regions,
        open(folder / 'scenes.jsonl', 'w', encoding='utf-8', newline='\n') as scenes,
        open(folder / 'truth.jsonl', 'w', encoding='utf-8', newline='\n') as truths,
    ):
        for number, split in enumerate(SPLITS):
            if not counts[split]:
                continue
            pictures = []
            for scene, items, rng in generate(form, split, counts[split], [seed, number]):
                picture = annotations.picture(split, first + len(pictures), scene, items, rng)
                image = render(scene)
                path = folder / 'images' / f'{picture.stem}.png'
                path.parent.mkdir(exist_ok=True)
                image.save(path, compress_level=1)
                add_regions(picture.names, image, detect(scene, image, rng))
                scenes.write(json.dumps({'image_id': picture.names.image_id, 'scene': scene}) + '\n')
                for example_id, item in zip(picture.ids, items):
                    truths.write(json.dumps(_truth(example_id, split, item)) + '\n')
                pictures.append(picture)
                if progress is not None:
                    progress(len(items))
            first += len(pictures)
            annotations.write(folder, split, pictures)


def _truth(example_id, split, item):
    return {
        'id': example_id,
        'split': split,
        'kind': item.query.kind,
        'objects': list(item.verdict.things),
        'words': item.words,
    }


def write_lines(path, lines) -> None:
    """A vocabulary: one entry a line."""
    path.write_text(''.join(f'{line}\n' for line in lines), encoding='utf-8')
