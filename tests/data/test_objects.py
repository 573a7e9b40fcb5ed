"""Names of objects: which, in what order, and how they stand in the texts."""

import dataclasses
import json
import pickle

import numpy as np
import pytest

from evil_jax import config as configs
from evil_jax.data import counts, objects, pipeline, text_lengths, tokenizers, transforms
from evil_jax.data.features import convert, open_features
from evil_jax.data.features.regions import Regions
from evil_jax.records import Example
from evil_jax.tasks import base

NAMES = ['red circle', 'stop sign,stopsign', 'dog , puppy', 'crate', 'dog', '']
TEXTS = ['is the red circle left of the blue square ?', 'a dog and a crate and a stop sign', 'because it is']


def regions(classes, conf=None, names=tuple(NAMES)):
    n = len(classes)
    conf = np.linspace(0.9, 0.1, n) if conf is None else conf
    boxes = np.tile(np.float32([[0, 0, 9, 9]]), (n, 1))
    features = np.zeros((n, 2048), np.float16)
    return Regions(features, boxes, (20, 20), np.float32(conf), np.int32(classes), names)


@pytest.fixture(scope='module')
def assets(tmp_path_factory):
    folder = tmp_path_factory.mktemp('assets')
    word = tokenizers.train_word(TEXTS, folder / 'word')
    return tokenizers.Assets(word, tokenizers.train_expl(TEXTS, folder / 'expl', size=400), ('yes', 'no'))


def example(**changes):
    return Example(**{'id': 'e', 'image_id': 'pic', 'text': 'is the red circle left of it', 'label': 'yes'} | changes)


def detected(*args, **kwargs):
    return objects.names(example(), regions(*args, **kwargs), 'detected')


def test_detected_names_are_unique_and_fall_in_confidence():
    assert detected([3, 1, 0]) == ['crate', 'stop sign', 'red circle']
    assert detected([3, 1, 0], [0.2, 0.5, 0.9]) == ['red circle', 'stop sign', 'crate']
    assert detected([3, 1, 0], [0.5, 0.5, 0.5]) == ['red circle', 'stop sign', 'crate'], 'ties: the lower class'
    assert detected([3, 1, 3, 1], [0.1, 0.2, 0.3, 0.4]) == ['stop sign', 'crate'], 'the best of a class counts'
    assert detected([4, 2]) == detected([2, 4]) == ['dog'], 'two classes of one name'
    assert detected([-1, 3, -1]) == ['crate'], 'a region without a class says nothing'
    assert detected([]) == objects.names(example(), None, 'detected') == []
    assert objects.names(example(), regions([3]), '') == []


def test_people_are_no_names():
    """Nor are they where the detector found them: what is in every picture says nothing."""
    names = ('person', 'dog', 'person,human', 'personal computer')
    assert detected([0, 1, 2, 3], names=names) == ['dog', 'personal computer']
    assert detected([2, 0], names=names) == []


def test_the_order_of_regions_does_not_matter():
    rng = np.random.default_rng(0)
    classes, conf = rng.integers(0, 5, 12), rng.choice([0.3, 0.5, 0.7], 12)
    found = {tuple(detected(classes[order], conf[order])) for order in (rng.permutation(12) for _ in range(20))}
    assert len(found) == 1


def test_annotated_names():
    listed = ['person', 'dog', 'wineglass', 'person', 'dog', 'cup']
    assert objects.names(example(objects=listed), regions([3]), 'annotated') == ['dog', 'wineglass', 'cup']
    assert objects.names(example(objects=['person']), None, 'annotated') == []
    assert objects.names(example(objects=[]), None, 'annotated') == []
    with pytest.raises(ValueError, match=r"example 'e' has no objects, which data.objects='annotated' reads"):
        objects.names(example(), regions([3]), 'annotated')


@pytest.mark.parametrize(
    ('found', 'message'),
    [
        (regions([-1, -1]), "image 'pic': .*but none of its 2 regions has a class"),
        (
            regions([3], names=()),
            "image 'pic': .*but what these are called is not known: put objects_vocab.txt or coco",
        ),
        (regions([3, 6]), "image 'pic': .*but class 6 is none of the 6 that have a name"),
        (regions([3, 5]), "image 'pic': .*but class 5 is none of the 6 that have a name"),
    ],
)
def test_what_cannot_be_named_is_one_error(found, message):
    with pytest.raises(ValueError, match=message):
        objects.names(example(), found, 'detected')


def test_class_names_of_the_published_files(shared, tmp_path):
    """Visual Genome's 1,600, and COCO's 80, whose category numbers have gaps."""
    vocab = shared / 'data' / 'vocab'
    (tmp_path / 'vg').mkdir()
    (tmp_path / 'vg' / 'objects_vocab.txt').write_bytes((vocab / 'vg_objects_vocab.txt').read_bytes())
    names = objects.class_names([tmp_path / 'absent', tmp_path / 'vg'])
    assert len(names) == 1600 and names[0] == 'yolk' and names[6] == 'alarm clock'
    synonyms = next(i for i, name in enumerate(names) if ',' in name)
    assert detected([synonyms], names=names) == [names[synonyms].split(',')[0]]
    (tmp_path / 'coco').mkdir()
    (tmp_path / 'coco' / 'cocoontology.json').write_bytes((vocab / 'cocoontology.json').read_bytes())
    names = objects.class_names([tmp_path / 'coco', tmp_path / 'vg'])
    assert len(names) == 80 and names[:2] == ['person', 'bicycle'] and names[-1] == 'toothbrush'
    assert names[10:12] == ['firehydrant', 'stopsign'], 'numbers 11 and 13'
    assert objects.class_names([tmp_path / 'absent']) == objects.class_names([]) == []


@pytest.mark.parametrize(
    ('content', 'message'),
    [('{', 'cocoontology.json: not JSON'), ('[1]', 'wanted category numbers'), ('{"1": "person"}', 'wanted category'),
     ('{"one": {"name": "person"}}', 'wanted category'), ('{"1": {"name": 3}}', 'wanted category')],
)  # fmt: skip
def test_another_ontology_is_refused(content, message, tmp_path):
    (tmp_path / 'cocoontology.json').write_text(content)
    with pytest.raises(ValueError, match=message):
        objects.class_names([tmp_path])


def test_names_of_the_store_travel_with_the_regions(tmp_path):
    """Also through pickle, as to a worker process, and when regions are picked."""
    boxes = np.tile(np.float32([[1, 1, 9, 9]]), (2, 1))
    np.savez(tmp_path / 'a.npz', features=np.ones((2, 2048), np.float32), bbox=boxes, image_w=20, image_h=20,
             num_boxes=2, conf=np.float32([[0.2], [0.8]]), soft_labels=np.float32([[0, 1, 0], [0, 0, 1]]))  # fmt: skip
    (tmp_path / 'regions').mkdir()
    (tmp_path / 'a.npz').rename(tmp_path / 'regions' / 'a.npz')
    convert.convert([tmp_path / 'regions'], tmp_path / 'store', class_names=['cat', 'dog'], progress=False)
    reader = pickle.loads(pickle.dumps(open_features(tmp_path / 'store')))
    assert objects.names(example(), reader['a'], 'detected') == ['dog', 'cat']
    assert objects.names(example(), reader['a'].best(1, 'a'), 'detected') == ['dog']
    assert open_features(tmp_path / 'regions')['a'].names == ()


def test_whole_names_fit_or_are_left_out(assets):
    encode = assets.expl.encode
    names = ['red circle', 'stop sign', 'crate', 'blue square', 'dog']
    for room in range(-1, len(encode(' '.join(names))) + 2):
        ids = objects.fitting(names, encode, room)
        kept = [n for n in range(len(names) + 1) if encode(' '.join(names[:n])) == ids]
        assert len(kept) == 1 and len(ids) <= max(room, 0)
        if kept[0] < len(names):
            assert len(encode(' '.join(names[: kept[0] + 1]))) > room, 'one more would have fitted'
    assert objects.fitting([], encode, 9) == []


def test_a_text_with_names(assets):
    """[CLS] text [SEP] names [SEP], of types 0 and 1; names are cut first, one by one."""
    word = assets.word
    ids, dog, circle = word.encode('is it left'), word.encode('dog'), word.encode('red circle')
    row = transforms.text('is it left', word, 12, ['dog', 'red circle'])
    whole = [word.cls, *ids, word.sep, *dog, *circle, word.sep]
    assert len(dog) == 1 and len(circle) == 2
    assert row['text'].tolist() == whole + [word.pad] * (12 - len(whole)) and row['text_length'] == len(whole)
    assert row['text_type'].tolist() == [0] * 5 + [1] * 4 + [0] * 3
    row = transforms.text('is it left', word, 8, ['dog', 'red circle'])
    assert row['text'].tolist() == [word.cls, *ids, word.sep, *dog, word.sep, word.pad]
    for room, names in ((6, ['dog']), (12, []), (4, ['dog'])):
        plain = transforms.text('is it left', word, room)
        for name, array in transforms.text('is it left', word, room, names).items():
            np.testing.assert_array_equal(array, plain[name])


def test_pairs_with_names(assets):
    """[CLS] question [SEP] choice [SEP] names [SEP], of types 0, 2 and 1; the pair itself is as without names."""
    word, maximum = assets.word, 14
    asked = example(text='is the <|det1|>', choices=['left', 'a dog and a crate and a'], objects=['dog'], label=0)
    encoding = transforms.Encoding(choices=2, max_text=maximum)
    plain = transforms.tagged(asked, None, word, encoding)
    named = transforms.tagged(asked, None, word, encoding, ['crate', 'red circle'])
    crate, circle = word.encode('crate'), word.encode('red circle')
    assert len(crate) == 1
    for before, after, n, kinds, more in (
        (plain['text'], named['text'], plain['text_length'], named['text_type'], [*crate, *circle]),
        (plain['choices'][0], named['choices'][0], plain['choices_length'][0], named['choices_type'][0],
         [*crate, *circle]),
        (plain['choices'][1], named['choices'][1], plain['choices_length'][1], named['choices_type'][1], []),
    ):  # fmt: skip
        segment = [*more, word.sep] if more else []
        assert after.tolist() == before.tolist()[:n] + segment + [word.pad] * (maximum - n - len(segment))
        assert kinds[n : n + len(segment)].tolist() == [1] * len(segment) and 1 not in kinds[:n]
    assert named['choices_type'][0].tolist()[:6] == [0] * 5 + [2], 'names change nothing before them'
    assert named['choices_length'].tolist() == [plain['choices_length'][0] + 4, plain['choices_length'][1]]
    assert (named['choices_tags'] == plain['choices_tags']).all()


def test_the_piece_of_the_decoder(assets):
    expl = assets.expl
    ids = expl.encode('dog red circle')
    row = transforms.objects(['dog', 'red circle'], expl, 20)
    whole = [expl.id('<|b_img|>'), *ids, expl.id('<|e_img|>')]
    assert row['objects'].tolist() == whole + [expl.end_of_text] * (20 - len(whole))
    assert row['objects_length'] == len(whole) and row['objects'].dtype == np.int32
    row = transforms.objects(['dog', 'red circle'], expl, len(whole) - 1)
    assert row['objects'][: row['objects_length']].tolist() == [whole[0], *expl.encode('dog'), whole[-1]]
    for names, maximum in (([], 5), (['dog'], 2)):
        row = transforms.objects(names, expl, maximum)
        assert row['objects'].tolist() == [whole[0], whole[-1]] + [expl.end_of_text] * (maximum - 2)
        assert row['objects_length'] == 2


def make_task(assets, task='esnlive', **data):
    config = configs.base()
    config.data.update(task=task, builder=task, max_text=14, max_regions=2, max_objects=9, **data)
    answers = ('contradiction', 'neutral', 'entailment') if task == 'esnlive' else ()
    return base.make_task(config, dataclasses.replace(assets, answers=answers))


class Reader(dict):
    """Of one picture with more regions than a row keeps."""


@pytest.mark.parametrize('task', ['esnlive', 'vcr'])
def test_rows_of_a_task(assets, task):
    """Names of all regions, also of those that a row has no room for; without data.objects nothing changes."""
    choices = {'choices': 2} if task == 'vcr' else {}
    asked = example(label=0, objects=['dog', 'person'], **({'choices': ['left', 'dog']} if choices else {}))
    reader = Reader(pic=regions([0, 3, 4]))
    plain = pipeline.Encode(make_task(assets, task, **choices), reader)(asked, None)
    assert 'objects' not in plain
    expl, word = assets.expl, assets.word
    for how, names in (('detected', 'red circle crate dog'), ('annotated', 'dog')):
        encode = pickle.loads(pickle.dumps(pipeline.Encode(make_task(assets, task, objects=how, **choices), reader)))
        row = encode(asked, None)
        assert row.keys() == plain.keys() | {'objects', 'objects_length'}
        assert expl.decode(row['objects'][1 : row['objects_length'] - 1]) == names
        n = plain['text_length']
        assert row['text'][n : row['text_length']].tolist() == [*word.encode(names), word.sep]
        for name in plain.keys() - {'text', 'text_type', 'text_length', 'choices', 'choices_type', 'choices_length'}:
            np.testing.assert_array_equal(row[name], plain[name])
    missing = make_task(assets, task, objects='detected', **choices).transform(asked, None)
    np.testing.assert_array_equal(missing['text'], plain['text'])
    assert missing['objects_length'] == 2


def test_lengths_know_the_names(assets):
    """What is counted is what an uncut row has, also of pairs."""
    length = lambda kind, words: text_lengths.length(kind, words, assets)
    names = ['crate', 'red circle', 'stop sign']
    asked = example(choices=['left', 'it is'], objects=['dog'])
    for choices in (0, 2):
        encoding = transforms.Encoding(choices=choices, objects='detected', max_text=60, max_objects=60)
        found = list(text_lengths.lengths(asked, encoding, length, names))
        told = [tokens for kind, tokens in found if kind == 'text_objects']
        if choices:
            row = transforms.tagged(asked, None, assets.word, encoding, names)
            assert told == row['choices_length'].tolist()
        else:
            assert told == [transforms.text(asked.text, assets.word, 60, names)['text_length']]
        piece = transforms.objects(names, assets.expl, 60)['objects_length']
        assert [tokens for kind, tokens in found if kind == 'objects'] == [piece]
        rest = [item for item in found if item[0] not in ('text_objects', 'objects')]
        assert rest == list(text_lengths.lengths(asked, dataclasses.replace(encoding, objects=''), length))
        bare = [t for kind, t in text_lengths.lengths(asked, encoding, length) if kind.startswith('text')]
        assert bare[::2] == bare[1::2], 'without names there is no segment of them'
    assert [text_lengths.limit(kind) for kind in ('text', 'text_objects', 'objects', 'regions')] == [
        'max_text', 'max_text', 'max_objects', 'max_regions'
    ]  # fmt: skip


def test_counts_know_the_names(assets):
    asked = [example(id=str(n), image_id=picture, label='yes') for n, picture in enumerate('abb')]
    store = {'a': regions([0]), 'b': regions([3, 4])}
    encoding = transforms.Encoding(objects='detected')
    found, _ = counts.count({'train': asked}, assets, encoding, [1, 2], store.__getitem__)
    piece = lambda words: str(len(assets.expl.encode(words)) + 2)
    assert found.lengths['objects'] == {piece('red circle'): 1, piece('crate dog'): 2}
    assert sum(found.lengths['text_objects'].values()) == 3
    assert {row['text'] for row in found.longest['text_objects']} == {
        'is the red circle left of it | red circle', 'is the red circle left of it | crate dog'
    }  # fmt: skip
    assert {row['text'] for row in found.longest['objects']} == {'red circle', 'crate dog'}
    plain, _ = counts.count({'train': asked}, assets, transforms.Encoding(), [1, 2], store.__getitem__)
    assert found.lengths == plain.lengths | {k: found.lengths[k] for k in ('objects', 'text_objects')}
    assert found.coverage['word']['occurrences'] == plain.coverage['word']['occurrences'] + 2 + 2 + 2
    json.dumps(dataclasses.asdict(found))
