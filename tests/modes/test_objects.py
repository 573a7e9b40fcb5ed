"""Names of objects from raw files to a model: what a build checks, counts and serves; one question at a terminal."""

import json
import shutil

import numpy as np
import pytest

from evil_jax import config as config_lib
from evil_jax.data import load, pipeline, tokenizers
from evil_jax.modes import build, decode, predict
from evil_jax.tasks import base


def world(folder, form='shapes_ve', **data):
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS[form])
    config.data.update({'dir': str(folder), 'world_train': 12, 'world_dev': 4, 'world_test': 4, 'max_text': 40} | data)
    config.build.page = False
    return config


def rows(config, split='train'):
    """Rows as training makes them."""
    task = base.make_task(config, tokenizers.load_assets(f'{config.data.dir}/assets'))
    encode = pipeline.Encode(task, load.open_store(config))
    return task, [encode(example, None) for example in load.load_examples(config, split)]


def test_a_build_counts_names_and_serves_models_without_them(tmp_path, capsys):
    config = world(tmp_path / 'data', objects='detected', max_text=9, max_objects=5)
    numbers = build.run(config, None)
    out = capsys.readouterr().out
    assert numbers['mean_text_objects'] >= numbers['mean_text'] + 5 and numbers['long_text_objects'] == 20
    assert numbers['mean_objects'] > 5 and 'limit data.max_objects 5' in out
    assert 'text_objects' in out and out.count('(limit data.max_text 9)') == 2
    assets = tokenizers.load_assets(tmp_path / 'data' / 'assets')
    for name in ('crate', 'dark', 'triangle', 'pink'):
        assert len(assets.word.encode(name)) == 1, 'hypotheses need not have every word of a name'
    plain = world(tmp_path / 'data', max_text=9)
    numbers = build.run(plain, None)
    out = capsys.readouterr().out
    assert 'built already' in out and 'objects' not in out and 'mean_objects' not in numbers
    assert len(rows(plain)[1]) == 12
    with pytest.raises(ValueError, match=r"data.objects was 'detected' and is now 'annotated'"):
        build.run(world(tmp_path / 'data', objects='annotated'), None)


def test_a_build_without_names_does_not_serve_models_that_read_them(tmp_path):
    build.run(world(tmp_path), None)
    with pytest.raises(ValueError, match=r"data.objects was 'absent' and is now 'detected'"):
        build.run(world(tmp_path, objects='detected'), None)


def test_names_of_the_world_are_those_of_its_scenes(tmp_path):
    config = world(tmp_path, objects='detected', max_objects=30)
    config.build.page = True
    build.run(config, None)
    assert 'Names of objects for the decoder' in (tmp_path / 'build.html').read_text()
    task, found = rows(config)
    word, expl = task.assets.word, task.assets.expl
    for example, row in zip(load.load_examples(config, 'train'), found):
        things = example.extra['scene']['things']
        wanted = {'crate' if t['shape'] == 'crate' else f'{t["colour"]} {t["shape"]}' for t in things}
        text = expl.decode(row['objects'][1 : row['objects_length'] - 1])
        assert sorted(text.split()) == sorted(' '.join(wanted).split())
        tokens = word.tokens(row['text'][: row['text_length']])
        assert tokens.count('[SEP]') == 2 and tokens[-1] == '[SEP]'
        assert ' '.join(tokens[tokens.index('[SEP]') + 1 : -1]) == text


def test_annotated_names_of_vcr(tmp_path):
    config = world(tmp_path, 'shapes_vcr', objects='annotated', max_text=60)
    build.run(config, None)
    task, found = rows(config)
    for example, row in zip(load.load_examples(config, 'train'), found):
        text = ' '.join(dict.fromkeys(example.objects))
        assert task.assets.expl.decode(row['objects'][1 : row['objects_length'] - 1]) == text
        for ids, kinds, length in zip(row['choices'], row['choices_type'], row['choices_length']):
            assert task.assets.word.tokens(ids[kinds == 1]) == [*text.split(), '[SEP]']
            assert (np.flatnonzero(kinds == 1) == np.arange(length)[-len(text.split()) - 1 :]).all()


@pytest.mark.parametrize(
    ('data', 'removed', 'message'),
    [
        (
            {'objects': 'detected'},
            'objects_vocab.txt',
            r'it is not known what the classes .* looked for objects_vocab.txt',
        ),
        (
            {'objects': 'detected', 'world_container': 'butd'},
            '',
            r'regions_butd.tsv: image .* has a class: the features',
        ),
        (
            {'objects': 'detected', 'world_container': 'grid', 'max_regions': 9},
            'objects_vocab.txt',
            r'grid_npz: image .* none of its 9 regions has a class: the features hold none',
        ),
        ({'objects': 'annotated'}, '', r"example '1000000001.jpg#0r0.' has no objects, which data.objects='annotated'"),
    ],
)
def test_names_that_are_not_there_are_told_before_the_work(data, removed, message, tmp_path):
    config = world(tmp_path, **data)
    if removed:
        build._raw_folder(config, build.lookup.module('data/builders', 'shapes_ve').Builder)
        (tmp_path / 'raw' / removed).unlink(missing_ok=True)  # a grid comes without
    with pytest.raises(ValueError, match=message):
        build.run(config, None)
    assert not (tmp_path / 'store').exists() and not (tmp_path / 'tfds').exists()


def test_an_ontology_names_the_classes_as_well(tmp_path):
    config = world(tmp_path, objects='detected')
    build._raw_folder(config, build.lookup.module('data/builders', 'shapes_ve').Builder)
    vocabulary = tmp_path / 'raw' / 'objects_vocab.txt'
    names = vocabulary.read_text().splitlines()
    table = {str(3 * n + 1): {'name': f'thing{n}', 'supercategory': 'x'} for n in range(len(names))}
    (tmp_path / 'raw' / 'cocoontology.json').write_text(json.dumps(table))
    vocabulary.unlink()
    build.run(config, None)
    assert load.open_store(config).class_names == [f'thing{n}' for n in range(len(names))]


def test_one_question_at_the_terminal(toy, tmp_path, monkeypatch):
    """Regions of a file are called as the file beside it says; annotated objects are nowhere."""
    config = world(tmp_path / 'data', objects='detected')
    build.run(config, None)
    assets = tokenizers.load_assets(tmp_path / 'data' / 'assets')
    seen = []

    class Stop(Exception):
        pass

    class Decoder:
        task = base.make_task(config, assets)

        @property
        def mesh(self):
            raise Stop

    def transform(example, found, before=Decoder.task.transform):
        seen.append(found)
        return before(example, found)

    monkeypatch.setattr(Decoder.task, 'transform', transform)
    monkeypatch.setattr(decode, 'load_trained', lambda *_: (Decoder(), None))
    monkeypatch.setattr(decode, 'find_checkpoint', lambda *_: tmp_path)
    image_id = load.open_store(config).ids()[0]
    config.predict.update(question='there is a red circle', image_id=image_id)
    regions = tmp_path / 'alone' / 'regions.tsv'
    regions.parent.mkdir()
    shutil.copy(tmp_path / 'data' / 'raw' / 'regions.tsv', regions)
    with pytest.raises(Stop):
        predict.run(config, tmp_path)
    config.predict.features = str(regions)
    with pytest.raises(
        ValueError, match=f"image '{image_id}': .* not known: put objects_vocab.txt or cocoontology.json"
    ):
        predict.run(config, tmp_path)
    shutil.copy(tmp_path / 'data' / 'raw' / 'objects_vocab.txt', regions.parent)
    with pytest.raises(Stop):
        predict.run(config, tmp_path)
    assert list(seen[0].names) == list(seen[2].names) and (seen[0].classes == seen[2].classes).all()
    config.data.objects = 'annotated'
    with pytest.raises(
        ValueError, match=r"no objects that people annotated.*\(data.objects='annotated'\): use --mode="
    ):
        predict.run(config, tmp_path)
