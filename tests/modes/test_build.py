import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest

from evil_jax import config as config_lib
from evil_jax.data import load, tokenizers
from evil_jax.modes import build
from evil_jax.records import Example

ROOT = pathlib.Path(__file__).resolve().parents[2]


def made(data_set, folder, **data):
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS[data_set])
    config.data.update(dir=str(folder), **data)
    return config


def world(folder, form='shapes_ve', **data):
    return made(form, folder, **{'world_train': 24, 'world_dev': 6, 'world_test': 6, **data})


def real(shared, folder, **data):
    """The ten real pictures and 60,000 real questions, six of which are about them."""
    features = (str(shared / 'data' / 'features' / 'train2014_obj36_demo.tsv'),)
    vocabulary = str(shared / 'data' / 'vocab' / 'trainval_label2ans.json')
    raw = str(shared / 'data' / 'vqav2')
    return made('vqav2', folder, **{'manual_dir': raw, 'features': features, 'answers': vocabulary, **data})


def snapshot(folder):
    return {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in sorted(pathlib.Path(folder).rglob('*')) if p.is_file()}


@pytest.mark.parametrize('form', ['shapes_ve', 'shapes_vqa', 'shapes_vcr'])
def test_the_world(form, tmp_path, capsys):
    config = world(tmp_path / 'data', form)
    numbers = build.run(config, tmp_path)
    assert [numbers[f'examples_{s}'] for s in ('train', 'dev', 'test')] == [24, 6, 6]
    assert numbers['references_test'] == (6 if form == 'shapes_vcr' else 18)
    assert all(isinstance(value, float) for value in numbers.values())
    assets = tokenizers.load_assets(tmp_path / 'data' / 'assets')
    for split in ('train', 'dev', 'test'):
        for example in load.load_examples(config, split):
            assert example.image_id in load.open_store(config)
            assert load.images(config)[example.image_id].is_file()
            if split == 'train':
                assert assets.word.unk not in assets.word.encode(example.text)
                if form != 'shapes_vcr':
                    assert {example.label, *(example.answers or {})} & set(assets.answers)
    if form == 'shapes_ve':
        assert assets.answers == ('contradiction', 'neutral', 'entailment')
        assert 1 / 3 <= numbers['majority_train'] <= 0.5  # of 24 examples
    marks = {} if form != 'shapes_ve' else {'labels': 'gold'}
    assert load.marks(config, 'test[:3]') == load.marks(config, 'dev') == marks
    counted = load.built(config)['counts']
    if form == 'shapes_vcr':
        assert assets.answers == () and numbers['majority_train'] < 0.6
        assert 0.9 * counted['tags']['test'] < counted['linked']['test'] <= counted['tags']['test']
    assert sum(counted['shared'].values()) == 0
    assert load.open_store(config).class_names[0] == 'red circle'
    out = capsys.readouterr().out
    assert 'train 24 examples' in out
    assert 'train: ' + str(tmp_path / 'data' / 'raw') in out

    before = snapshot(tmp_path)
    assert build.run(config, tmp_path) == numbers
    assert snapshot(tmp_path) == before
    assert 'built already' in capsys.readouterr().out


def test_other_settings_are_refused_and_named(tmp_path):
    build.run(world(tmp_path), None)
    with pytest.raises(
        ValueError, match=r'data\.seed was 0 and is now 1; data\.world_dev was 6 and is now 5\. .*delete'
    ):
        build.run(world(tmp_path, world_dev=5, seed=1), None)
    with pytest.raises(ValueError, match=r"data\.word_vocab was 'build' and is now"):
        vocabulary = tmp_path / 'assets' / 'word' / 'vocab.txt'
        build.run(world(tmp_path, word_vocab=str(vocabulary)), None)
    # Settings of training do not matter, and a data set without a limit serves any limit.
    build.run(world(tmp_path, max_text=5, regions='zero', limit=3), None)
    csv = tmp_path / 'raw' / 'esnlive_dev.csv'
    content = csv.read_text()
    csv.write_text(content.replace('circle', 'round'))
    with pytest.raises(ValueError, match=r'built from other files: raw/esnlive_dev\.csv\.bytes was'):
        build.run(world(tmp_path), None)
    csv.write_text(content)
    # Files that came later are other files, too.
    csv.with_name('esnlive_val.csv').write_text(content)
    with pytest.raises(ValueError, match=r'both esnlive_dev\.csv and esnlive_val\.csv could be the dev split'):
        build.run(world(tmp_path), None)


def test_raw_files_may_go_once_everything_is_built(shared, tmp_path, capsys, monkeypatch):
    raw = tiny_vqa(tmp_path / 'raw', shared / 'data' / 'features')
    (tmp_path / 'answers.json').write_text('["yes", "no"]')
    config = made('vqav2', tmp_path / 'out', **raw, answers=str(tmp_path / 'answers.json'))
    numbers = build.run(config, None)
    capsys.readouterr()
    # What is there is compared without being opened.
    monkeypatch.setattr(build._sources, 'open_features', None)
    assert build.run(config, None) == numbers
    assert 'not found here' not in capsys.readouterr().out
    (tmp_path / 'raw' / 'annotations_train.json').unlink()
    (tmp_path / 'answers.json').unlink()
    assert build.run(config, None) == numbers
    gone = 'not found here, so not compared with what was built: data.answers, raw/annotations_train.json\n'
    assert gone in capsys.readouterr().out
    shutil.rmtree(tmp_path / 'raw')
    config.data.features = (str(tmp_path / 'gone.tsv'),)
    assert build.run(config, None) == numbers
    assert 'data.features[0], raw/annotations_dev.json' in capsys.readouterr().out


def test_only_pictures_of_kept_examples_are_converted(tmp_path):
    limited = build.run(world(tmp_path / 'raw_only'), None)  # writes the raw files
    raw = tmp_path / 'raw_only' / 'raw'
    config = world(tmp_path / 'data', manual_dir=str(raw), limit=2)
    numbers = build.run(config, None)
    used = {e.image_id for split in ('train', 'dev', 'test') for e in load.load_examples(config, split)}
    assert numbers['store_images'] == len(used) < limited['store_images']
    assert set(load.open_store(config).ids()) == used
    # An interrupted build with a limit is not in the way of one without.
    (tmp_path / 'data' / 'build.json').unlink()
    config.data.limit = 0
    assert build.run(config, None)['store_images'] == limited['store_images']


def test_cut_regions_are_told(shared, tmp_path, capsys):
    raw = tiny_vqa(tmp_path / 'raw', shared / 'data' / 'features')
    config = made('vqav2', tmp_path / 'out', **raw, answers_min_count=1, max_regions=35)
    numbers = build.run(config, None)
    assert (numbers['cut_images'], numbers['long_regions'], numbers['mean_regions']) == (0, 1, 36)
    printed = capsys.readouterr().out
    assert 'regions: 36.0 per picture on average, at most 36 (limit data.max_regions 35)' in printed
    assert 'warning: 1 of 1 pictures (100.0 %) have more and get cut' in printed
    assert 'than the store keeps' not in printed
    config = made('vqav2', tmp_path / 'again', **raw, answers_min_count=1)
    config.build.max_regions = 20
    numbers = build.run(config, None)
    assert (numbers['cut_images'], numbers['long_regions']) == (1, 0)
    assert 'warning: 1 pictures have more regions than the store keeps' in capsys.readouterr().out


@pytest.mark.parametrize('container', ['lxmert', 'butd', 'lmdb', 'npz'])
def test_regions_are_found_in_every_container_and_thresholds_apply(container, tmp_path, capsys):
    config = world(tmp_path, world_container=container, world_train=12, world_dev=2, world_test=2)
    numbers = build.run(config, None)
    assert numbers['examples_train'] == 12
    names = [name for name in load.built(config)['sources'] if name.startswith('features/')]
    assert len(names) == 1
    found = load.open_store(config)
    config.data.dir = str(tmp_path / 'again')
    config.data.manual_dir = str(tmp_path / 'raw')
    config.build.update(threshold=0.99, min_regions=2, max_regions=3)
    build.run(config, None)
    counts = load.open_store(config).region_counts()
    told = 'first' if container == 'butd' else 'most confident'
    assert f'than the store keeps; the {told} ones stayed' in capsys.readouterr().out
    # Bottom-up-attention's files know no confidence: each region has 1.
    assert set(counts) == {3} if container == 'butd' else set(counts) <= {2, 3} and min(counts) == 2
    assert max(found.region_counts()) == 4


def test_a_grid_is_found_and_kept_whole(tmp_path):
    config = world(tmp_path, world_container='grid', world_train=12, world_dev=2, world_test=2)
    with pytest.raises(ValueError, match=r'grid_npz: .*a grid of 9 cells, of which only the first 4 would stay'):
        build.run(config, None)  # data.max_regions
    config.data.max_regions = 9
    assert build.run(config, None)['mean_regions'] == 9
    assert 'features/grid_npz' in load.built(config)['sources']


def test_databases_are_found_where_uniter_puts_them(tmp_path):
    for name in ('img_db/vcr_train/feat_th0.2_max100_min10', 'img_db/flickr30k/feat_th0.2_max100_min10', 'coco/feat_x',
                 'all', 'vcr_train.db', 'vcr1images/film/other'):  # fmt: skip
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / 'data.mdb').touch()
    (tmp_path / 'regions_npz').mkdir()
    (tmp_path / 'a.tsv').touch()
    found = build._sources.feature_paths(config_lib.base(), tmp_path)
    assert sorted(found) == [
        'features/a.tsv', 'features/all', 'features/coco/feat_x', 'features/img_db/flickr30k/feat_th0.2_max100_min10',
        'features/img_db/vcr_train/feat_th0.2_max100_min10', 'features/regions_npz',
    ]  # fmt: skip
    assert found['features/all'] == tmp_path / 'all'


def test_regions_that_are_found_twice_or_drawn_by_people_are_left_out(tmp_path, capsys):
    build.run(world(tmp_path / 'out', world_container='lmdb'), None)
    made_by_world = tmp_path / 'out' / 'raw' / 'feat_th0.2_max100_min10'
    raw = tmp_path / 'raw'
    for name in (
        'img_db/vcr_gt_train/feat_numbb100',
        'img_db/a/all',
        'img_db/a/all_compressed',
        'img_db/b/all_compressed',
    ):
        shutil.copytree(made_by_world, raw / name)
    config = config_lib.base()
    assert sorted(build._sources.feature_paths(config, raw)) == [
        'features/img_db/a/all', 'features/img_db/b/all_compressed',
    ]  # fmt: skip
    capsys.readouterr()
    build._sources.open_features(config, raw)
    assert capsys.readouterr().out.splitlines() == [
        f'not read: {raw}/img_db/a/all_compressed: {raw}/img_db/a/all has the same regions',
        f'not read: {raw}/img_db/vcr_gt_train/feat_numbb100: regions that annotators drew; list it in data.features to '
        'read them in place of the detected ones',
    ]
    shutil.rmtree(raw / 'img_db' / 'a')
    shutil.rmtree(raw / 'img_db' / 'b')
    with pytest.raises(
        ValueError, match=r'no folder regions_npz or grid_npz \(not .*annotators drew.*Set data.features, for'
    ):
        build._sources.open_features(config, raw)
    config.data.features = (str(raw / 'img_db/vcr_gt_train/feat_numbb100'),)
    build._sources.open_features(config, raw)
    assert not capsys.readouterr().out


def test_the_same_sources_under_other_names(tmp_path):
    config = world(tmp_path / 'out')
    build.run(config, None)
    found = tmp_path / 'out' / 'raw' / 'regions.tsv'
    config.data.features = (str(found),)
    build.run(config, None)  # found by itself then, listed now
    content = found.read_bytes()
    lines = content.splitlines(keepends=True)
    parts = [tmp_path / 'one.tsv', tmp_path / 'two.tsv']
    parts[0].write_bytes(b''.join(lines[:5]))
    parts[1].write_bytes(b''.join(lines[5:]))
    two = world(tmp_path / 'two', manual_dir=str(found.parent), features=tuple(map(str, parts)))
    build.run(two, None)
    two.data.features = tuple(map(str, parts[::-1]))
    build.run(two, None)
    parts[0].write_bytes(b''.join(lines[:4]))
    with pytest.raises(ValueError, match=r'other files: data\.features\[0\]\.bytes was \d+ and is now \d+\. Choose'):
        build.run(two, None)
    parts[0].write_bytes(b''.join(lines[:5]))
    two.data.features = (*map(str, parts), str(found))
    with pytest.raises(ValueError, match=r'other files: data\.features\[2\] was not there\. Choose'):
        build.run(two, None)
    two.data.features = (str(found), str(parts[0]), str(parts[1]))
    with pytest.raises(ValueError, match=r'other files: data\.features\[0\] \(new\) was not there\. Choose'):
        build.run(two, None)


def test_what_a_message_shows_of_other_files():
    built = {name: {'bytes': 1, 'name': name} for name in 'abcde'}
    found = {name: {'bytes': 2, 'name': 'x'} for name in 'abcde'}
    assert build._sources.changes(built, found) == (
        'a.bytes was 1 and is now 2; b.bytes was 1 and is now 2; c.bytes was 1 and is now 2; and 2 more'
    )
    assert build._sources.changes(built, {'a': built['a']}) == ''


def test_pictures_that_no_row_can_hold_are_told_before_the_work(shared, tmp_path):
    raw = tiny_vqa(tmp_path / 'raw', shared / 'data' / 'features')
    (tmp_path / 'grid').mkdir()
    grid = tmp_path / 'grid' / 'COCO_train2014_000000132417.jpg.npz'
    np.savez(grid, x=np.ones((2048, 14, 14), np.float32))
    settings = dict(features=(str(grid.parent),), answers_min_count=1)
    config = made('vqav2', tmp_path / 'out', **raw | settings)
    with pytest.raises(
        ValueError, match=r'grid: image .*: a grid of 196 cells, of which only the first 100 would stay'
    ):
        build.run(config, None)
    config.build.max_regions = 196
    with pytest.raises(ValueError, match=r'of which only the first 36 would stay; set .* data.max_regions=196'):
        build.run(config, None)
    config.data.max_regions = 196
    config.compat = '6'
    with pytest.raises(
        ValueError, match=r"grid: image .* has boxes relative to the picture, .*set data.locations='uniter'"
    ):
        build.run(config, None)
    assert not (tmp_path / 'out' / 'store').exists() and not (tmp_path / 'out' / 'tfds').exists()
    config.data.locations = 'uniter'
    assert build.run(config, None)['cut_images'] == 0


def test_warnings_are_lines_for_people(shared, tmp_path, capsys):
    raw = tiny_vqa(tmp_path / 'raw', shared / 'data' / 'features')
    path = tmp_path / 'regions.tsv'
    shutil.copyfile(raw['features'][0], path)
    (tmp_path / 'regions_offset.txt').write_text('nonsense')
    build.run(made('vqav2', tmp_path / 'out', **raw | {'features': (str(path),)}, answers_min_count=1), None)
    printed = capsys.readouterr()
    assert f'\nwarning: {tmp_path}/regions_offset.txt does not belong to {path} (' in f'\n{printed.out}'
    assert 'UserWarning' not in printed.out + printed.err


def test_names_of_classes_must_be_text(tmp_path):
    (tmp_path / 'objects_vocab.txt').write_bytes(b'cat\n\xff\n')
    with pytest.raises(ValueError, match=rf'{tmp_path}/objects_vocab.txt: not UTF-8: .*byte 0xff'):
        build._class_names(tmp_path, [])


@pytest.mark.parametrize('form', ['shapes_vqa', 'shapes_vcr'])
def test_the_page_of_a_build(form, tmp_path, capsys):
    config = world(tmp_path / 'data', form)
    build.run(config, None)
    path = tmp_path / 'data' / 'build.html'
    assert f'{path}\n' in capsys.readouterr().out
    first = path.read_text()
    assert first.count('<article') == 8 + 6 + 6 and first.count('data:image/webp') == 20
    assert ('choice 1' in first) == (form == 'shapes_vcr') == ('[square' in first or '[circle' in first)
    assert 'class="limit"' in first and 'raw/scenes.jsonl' in first
    # Raw files are not needed to write it again, other limits draw another line, and the same page is not written.
    shutil.move(tmp_path / 'data' / 'raw', tmp_path / 'raw')
    config.data.images = str(tmp_path / 'raw' / 'images')
    path.unlink()
    build.run(config, None)
    assert path.read_text() == first
    other = config.copy_and_resolve_references()
    other.update(seed=7)
    other.data.limit = 2
    written = path.stat().st_mtime_ns
    build.run(other, None)
    assert path.stat().st_mtime_ns == written, 'the examples shown are those of the build, not of a run'
    config.data.max_text = 6
    build.run(config, None)
    assert 'limit <code>data.max_text</code> 6' in path.read_text() and 'are cut.' in path.read_text()
    before = path.stat().st_mtime_ns
    build.run(config, None)
    assert path.stat().st_mtime_ns == before and 'is up to date' in capsys.readouterr().out
    config.build.page = False
    path.unlink()
    build.run(config, None)
    assert not path.exists()
    config.build.page = True
    config.data.images = str(tmp_path / 'nowhere')
    with pytest.raises(ValueError, match=r"data\.images is '.*nowhere', which is not a folder"):
        build.run(config, None)


def test_a_finished_folder_may_be_read_only(tmp_path, capsys, monkeypatch):
    config = world(tmp_path / 'data')
    numbers = build.run(config, None)
    path = tmp_path / 'data' / 'build.html'
    path.write_text('old')

    def refuse(*_):
        raise PermissionError(13, 'Permission denied')

    monkeypatch.setattr(build._summary.page.records, 'atomic_write', refuse)  # root may write anywhere
    capsys.readouterr()
    assert build.run(config, None) == numbers
    assert f'{path} was not written: [Errno 13] Permission denied' in capsys.readouterr().out
    assert path.read_text() == 'old'


def test_counts_of_another_version_are_told(tmp_path):
    config = world(tmp_path)
    build.run(config, None)
    document = json.loads((tmp_path / 'build.json').read_text())
    document['counts']['later'] = 1
    (tmp_path / 'build.json').write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r'build\.json: counts of another version: .*later'):
        build.run(config, None)


def test_missing_features_are_refused_by_default(shared, tmp_path):
    config = real(shared, tmp_path)
    with pytest.raises(ValueError, match=r'59994 examples are about 39418 pictures without region features') as error:
        build.run(config, None)
    message = str(error.value)
    assert "data.missing_features='drop'" in message
    ids = message.split('features: ')[1].split(', ...')[0].split(', ')
    assert len(ids) == 20
    lines = (tmp_path / 'missing_features.txt').read_text().splitlines()
    assert len(lines) == 59_994 + 1
    assert lines[1] == f'train\t228478002\t{ids[0]}'
    assert not (tmp_path / 'tfds').exists()
    assert not (tmp_path / 'store').exists()


def test_six_real_questions_about_ten_real_pictures(shared, tmp_path, capsys):
    config = real(shared, tmp_path, missing_features='drop')
    numbers = build.run(config, None)
    assert numbers['store_images'] == 5  # of the ten
    assert sum(numbers[f'examples_{s}'] for s in ('train', 'dev', 'test')) == 6
    assert sum(numbers[f'missing_{s}'] for s in ('train', 'dev', 'test')) == 59_994
    assert numbers['answers'] == 3_129
    store = load.open_store(config)
    for split in ('train', 'dev', 'test'):
        for example in load.load_examples(config, split):
            assert store.resolve(example.image_id) == f'COCO_train2014_{int(example.image_id):012d}'
            assert len(example.annotations) == 10
    assert 'left out: 59994 examples' in capsys.readouterr().out
    page = (tmp_path / 'build.html').read_text()
    assert '59,994 examples are without region features' in page and page.count('<article') == 6
    assert page.count('<g class="box">') == 6 * 36 and 'no picture file for this example' in page


def tiny_vqa(folder, features, answers=('yes', 'no')):
    """Two questions about real pictures, with the words and answers of a test."""
    folder.mkdir(exist_ok=True)
    row = lambda n: {'question_id': n, 'image_id': 132417, 'question': f'Is this the question number {n % 10}?'}
    for split, start in (('train', 0), ('dev', 10)):
        questions = {'questions': [row(n) for n in range(start, start + len(answers))]}
        annotations = [{'question_id': n, 'answers': [{'answer': a}] * 10} for n, a in enumerate(answers, start)]
        (folder / f'questions_{split}.json').write_text(json.dumps(questions))
        (folder / f'annotations_{split}.json').write_text(json.dumps({'annotations': annotations}))
    return {'manual_dir': str(folder), 'features': (str(features / 'train2014_obj36_demo.tsv'),)}


def test_outside_the_vocabulary_and_too_long(shared, tmp_path, capsys):
    raw = tiny_vqa(tmp_path / 'raw', shared / 'data' / 'features', ('yes', 'no', 'certainly not'))
    (tmp_path / 'answers.json').write_text('{"no": 1, "yes": 0}')
    out = tmp_path / 'out'
    config = made('vqav2', out, **raw, answers=str(tmp_path / 'answers.json'), max_text=8, max_question=100)
    numbers = build.run(config, None)
    assert (numbers['outside_train'], numbers['outside_dev'], numbers['answers']) == (1, 1, 2)
    assert (out / 'outside_vocabulary.txt').read_text().splitlines()[1] == 'train\t2\tcertainly not'
    # [CLS] Is this the question number 0 ? [SEP]: nine tokens
    assert (numbers['mean_text'], numbers['long_text'], numbers['long_question']) == (9, 6, 0)
    printed = capsys.readouterr().out
    assert '2 examples have no gold answer inside the vocabulary of 2: 2, 12' in printed
    assert 'warning: 6 of 6 text texts (100.0 %) have more and get cut' in printed
    assert 'test: no files in' in printed
    config.data.max_text = 9
    assert build.run(config, None)['long_text'] == 0
    assert json.loads((out / 'assets' / 'answers.json').read_text()) == ['yes', 'no']


def test_splits_that_share_examples_or_pictures(shared, tmp_path, capsys):
    raw = tiny_vqa(tmp_path / 'raw', shared / 'data' / 'features')
    config = made('vqav2', tmp_path / 'out', **raw, answers_min_count=1, labels='original')
    build.run(config, None)
    printed = capsys.readouterr().out
    assert 'warning: 1 of the pictures of dev are in train, too\n' in printed
    assert "warning: data.labels is 'original', which makes no difference here\n" in printed
    assert load.built(config)['counts']['shared'] == {'train': 0, 'dev': 1}
    for kind in ('questions', 'annotations'):
        shutil.copy(tmp_path / 'raw' / f'{kind}_train.json', tmp_path / 'raw' / f'{kind}_dev.json')
    with pytest.raises(ValueError, match=r'^2 examples are in two splits: 0 \(train and dev\), 1 \(train and dev\)'):
        build.run(made('vqav2', tmp_path / 'again', **raw, answers_min_count=1), None)
    assert not (tmp_path / 'again' / 'store').exists()


def test_empty_splits_are_refused(shared, tmp_path):
    raw = tiny_vqa(tmp_path / 'raw', shared / 'data' / 'features')
    (tmp_path / 'raw' / 'questions_dev.json').write_text('{"questions": []}')
    with pytest.raises(ValueError, match=r'the dev split is empty: its files hold no example .*questions_dev\.json'):
        build.run(made('vqav2', tmp_path / 'out', **raw), None)
    row = {'question_id': 0, 'image_id': 132418, 'question': 'Where?'}
    (tmp_path / 'raw' / 'questions_dev.json').write_text(json.dumps({'questions': [row]}))
    (tmp_path / 'raw' / 'annotations_dev.json').unlink()
    with pytest.raises(ValueError, match=r'the dev split is empty: all of its 1 examples are without region features'):
        build.run(made('vqav2', tmp_path / 'out', **raw, missing_features='drop'), None)


def test_vocabularies(shared, tmp_path):
    raw = tiny_vqa(tmp_path / 'raw', shared / 'data' / 'features')
    with pytest.raises(ValueError, match=r'no answer heads 9 questions .*the most frequent heads 1'):
        build.run(made('vqav2', tmp_path / 'out', **raw), None)
    # A refused build leaves nothing in the way of the next one, whatever its settings.
    numbers = build.run(made('vqav2', tmp_path / 'out', **raw, answers_min_count=1), None)
    assert numbers['answers'] == 2
    assets = tmp_path / 'out' / 'assets'
    again = made('vqav2', tmp_path / 'again', **raw, answers=str(assets / 'answers.json'))
    again.data.update(word_vocab=str(assets / 'word'), expl_vocab=str(assets / 'expl'))
    build.run(again, None)
    for name in ('word/vocab.txt', 'expl/vocab.json', 'expl/merges.txt', 'answers.json'):
        assert (tmp_path / 'again' / 'assets' / name).read_bytes() == (assets / name).read_bytes()
    for key in ('word_vocab', 'expl_vocab', 'answers'):
        wrong = made('vqav2', tmp_path / 'wrong', **raw)
        wrong.data[key] = str(tmp_path / 'absent')
        with pytest.raises(ValueError, match=rf"data\.{key} is '.*absent', wanted 'build' or"):
            build.run(wrong, None)
    (tmp_path / 'raw' / 'questions_train.json').unlink()
    with pytest.raises(ValueError, match=r"no train split to make a vocabulary from: data\.word_vocab is 'build'"):
        build.run(made('vqav2', tmp_path / 'dev_only', **raw), None)


@pytest.mark.parametrize(
    'quirks, setting, lowercase, told',
    [
        ('fixed', 'auto', False, False),
        ('5', 'auto', True, False),
        ('fixed', 'yes', True, False),
        ('5', 'no', False, True),
        ('fixed', 'no', False, False),
    ],
)
def test_quirk_5_in_the_vocabulary_that_is_kept(quirks, setting, lowercase, told, tmp_path, caplog):
    vocabulary = tmp_path / 'vocab.txt'
    vocabulary.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\nParis\n')
    config = made('shapes_ve', tmp_path, word_vocab=str(vocabulary), lowercase=setting)
    config.compat = quirks
    builder = types.SimpleNamespace(classes=('a', 'b'), inputs='regions')
    examples = [Example('1', 'p', 'Is it Paris?')]
    assets = build._vocabularies.write(config, tmp_path, builder, lambda: examples, labels=builder.classes)
    assert assets.lowercase is tokenizers.load_assets(tmp_path / 'assets').lowercase is lowercase
    assert ('quirk 5 of config.compat, lower-casing, is off' in caplog.text) is told
    # Two configurations that make the same vocabulary may share a build.
    same = made('shapes_ve', tmp_path, word_vocab=str(vocabulary), lowercase=setting)
    assert (load.settings(config) == load.settings(same)) is (lowercase is (setting == 'yes'))


def test_no_features_at_all(shared, tmp_path):
    raw = tiny_vqa(tmp_path / 'raw', shared / 'data' / 'features')
    with pytest.raises(ValueError, match=r'no region features: data\.features is empty and .*raw has no \.tsv file'):
        build.run(made('vqav2', tmp_path / 'out', **raw | {'features': ()}), None)


def test_no_permission(tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(ValueError, match=r'data\.dir .*file/data: cannot write there: .*Not a directory'):
        build.run(world(tmp_path / 'file' / 'data'), None)
    locked = tmp_path / 'locked'
    locked.mkdir()
    locked.chmod(0o555)
    with pytest.raises(ValueError, match=r'data\.dir .*locked: cannot write there: it has no write permission'):
        build.run(world(locked), None)
    assert not list(locked.iterdir())


def test_one_build_at_a_time(tmp_path):
    with open(tmp_path / '.build.lock', 'w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match='another process builds there right now'):
            build.run(world(tmp_path), None)
    build.run(world(tmp_path), None)


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import test_build
from evil_jax.data import tokenizers
from evil_jax.data.features import store
def stop(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
where = sys.argv[1]
if where == 'examples':
    from evil_jax.data.builders import _base
    encode, count = _base.encode, iter(range(10**6))
    _base.encode = lambda example: stop() if next(count) == 10 else encode(example)
elif where == 'assets':
    tokenizers.save_assets = stop
elif where == 'counting':
    test_build.build.counts_lib.count = stop
test_build.build.run(test_build.world({folder!r}), None)
"""


@pytest.mark.parametrize('where', ['examples', 'assets', 'counting'])
def test_a_killed_build_is_finished_by_the_next(where, tmp_path):
    config = world(tmp_path / 'data')
    code = KILLED.format(tests=str(pathlib.Path(__file__).parent), folder=config.data.dir)
    done = subprocess.run([sys.executable, '-c', code, where], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with pytest.raises(ValueError, match='Run --mode=build first'):
        load.load_examples(config, 'train')
    store = snapshot(tmp_path / 'data' / 'store')
    raw = snapshot(tmp_path / 'data' / 'raw')
    assert store
    numbers = build.run(config, None)
    assert (
        snapshot(tmp_path / 'data' / 'store').items() >= {p: v for p, v in store.items() if 'shard-' in str(p)}.items()
    )
    assert snapshot(tmp_path / 'data' / 'raw') == raw
    other = build.run(world(tmp_path / 'other'), None)
    assert numbers == other
    assert list(load.load_examples(config, 'train')) == list(load.load_examples(world(tmp_path / 'other'), 'train'))
    names = {p.name for p in (tmp_path / 'data').rglob('*')}
    assert not [n for n in names if 'incomplete' in n or 'partial' in n]


def test_a_log_has_no_progress_bars_and_jax_stays_out(tmp_path):
    code = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import test_build
test_build.build.run(test_build.world({str(tmp_path)!r}), None)
print([name for name in ('tensorflow', 'jax') if name in sys.modules])
"""
    start = time.monotonic()
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ['[]'], done.stderr
    assert '%|' not in done.stderr and '/s]' not in done.stderr, 'bars are for terminals'
    assert 'it/s' not in done.stdout
    assert time.monotonic() - start < 60
    assert os.path.getsize(tmp_path / 'build.json') > 0
