"""Arrays of one example: what is cut, what is padded, and with what."""

import types

import numpy as np
import pytest

from evil_jax import config as configs
from evil_jax.data import text_lengths, tokenizers, transforms
from evil_jax.data.features.locations import locations
from evil_jax.data.features.regions import Regions
from evil_jax.records import Example

TEXTS = ['is the red circle left of the blue square ?', 'because it is', 'it is', 'blue square', 'red'] * 3


@pytest.fixture(scope='module')
def assets(tmp_path_factory):
    folder = tmp_path_factory.mktemp('assets')
    word = tokenizers.train_word(TEXTS, folder / 'word')
    return tokenizers.Assets(word, tokenizers.train_expl(TEXTS, folder / 'expl'), ('red', 'blue'))


def picture(n, dtype=np.float32, width=2048):
    rng = np.random.default_rng(n)
    corner = rng.uniform(0, 50, (n, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(1, 50, (n, 2))], axis=1).astype(np.float32)
    conf = np.linspace(1, 0, n, dtype=np.float32)
    return Regions(rng.normal(size=(n, width)).astype(dtype), boxes, (200, 100), conf, np.zeros(n, np.int32))


def test_text_gets_its_markers_and_loses_its_end(assets):
    word = assets.word
    row = transforms.text('is it', word, 6)
    assert row['text'].tolist() == [word.cls, *word.encode('is it'), word.sep, word.pad, word.pad]
    assert row['text_length'] == 4 and row['text'].dtype == np.int32 and not row['text_type'].any()
    row = transforms.text('is the red circle left', word, 5)
    assert row['text'].tolist() == [word.cls, *word.encode('is the red'), word.sep] and row['text_length'] == 5
    assert transforms.text('', word, 5)['text_length'] == 2


@pytest.mark.parametrize('convention', ['uniter', 'evil_lmdb', 'evil_vqax'])
def test_regions_are_padded_or_cut_in_their_order(convention):
    encoding = transforms.Encoding(max_regions=4, locations=convention)
    for n in (0, 3, 4, 6):
        found, kept = picture(n), min(n, 4)
        row = transforms.regions(found, encoding)
        assert row['features'].dtype == np.float16 and row['features'].shape == (4, 2048)
        assert row['locations'].dtype == np.float32 and row['locations'].shape == (4, 7)
        assert row['region_length'] == kept
        np.testing.assert_array_equal(row['features'][:kept], found.features[:kept].astype(np.float16))
        np.testing.assert_array_equal(row['locations'][:kept], locations(found, convention)[:kept])
        assert not row['features'][kept:].any() and not row['locations'][kept:].any()


def test_the_most_confident_regions_stay_and_tags_count_among_them(assets):
    found = picture(4)
    found.conf[:] = [0.1, 0.9, 0.2, 0.8]
    found.boxes[:] = [[0, 0, 200, 50], [0, 0, 9, 9], [0, 50, 200, 100], [0, 0, 200, 100]]
    encoding = transforms.Encoding(max_regions=2, choices=4)
    row = transforms.regions(found, encoding)
    assert row['region_length'] == 2
    np.testing.assert_array_equal(row['features'], found.features[[1, 3]].astype(np.float16))
    np.testing.assert_array_equal(row['locations'], locations(found, 'uniter')[[1, 3]])
    # Object 2 is the whole picture, which is the second region that stays; object 1 is shown by one that does not.
    example = choosing(extra={'boxes': [[0, 0, 100, 50], [0, 0, 100, 100]], 'size': [100, 100]})
    linked = transforms.tagged(example, found, assets.word, encoding)['text_tags']
    assert sorted(set(linked.tolist())) == [-1, 1]
    small = picture(4)
    small.boxes[:] = found.boxes[[0, 1, 3, 1]]
    small.conf[:] = [0.1, 0.9, 0.2, 0.8]
    linked = transforms.tagged(example, small, assets.word, encoding)['text_tags']
    assert (linked == -1).all(), 'only regions that are left out show the objects'


def test_a_grid_must_fit():
    boxes = np.float32([[0, 0, 0.5, 0.5], [0.5, 0, 1, 0.5], [0, 0.5, 0.5, 1], [0.5, 0.5, 1, 1]])
    found = Regions(np.ones((4, 2048)), boxes, (1, 1), np.ones(4), np.full(4, -1))
    with pytest.raises(ValueError, match=r"image 'pic': a grid of 4 cells.*build.max_regions=4 and data.max_regions=4"):
        transforms.regions(found, transforms.Encoding(max_regions=3), 'pic')
    assert transforms.regions(found, transforms.Encoding(max_regions=4), 'pic')['region_length'] == 4


@pytest.mark.parametrize('builder', ['vqax', 'vqav2', 'shapes_vqa', 'esnlive', 'vcr', 'shapes_ve', 'shapes_vcr'])
def test_quirk_6_locations_of_each_data_set(builder):
    """Both ways, and by hand: a box (20, 10)-(120, 40) in a picture 200 wide, 100 high."""
    found = Regions(np.ones((1, 2048)), np.float32([[20, 10, 120, 40]]), (200, 100), np.ones(1), np.zeros(1))
    relative = [0.1, 0.1, 0.6, 0.4]
    fixed, swapped, pixels = [*relative, 0.5, 0.3, 0.15], [*relative, 0.3, 0.5, 0.15], [10, 20, 40, 120, 100, 30, 3000]
    original = pixels if 'vqa' in builder else swapped
    config = configs.base()
    config.data.builder = builder
    for quirks, convention, wanted in (
        ('fixed', 'auto', fixed), ('original', 'auto', original), ('6', 'auto', original), ('1,5', 'auto', fixed),
        ('original', 'uniter', fixed), ('fixed', 'evil_lmdb', swapped), ('fixed', 'evil_vqax', pixels),
    ):  # fmt: skip
        config.compat, config.data.locations = quirks, convention
        row = transforms.regions(found, transforms.Encoding.of(config))
        np.testing.assert_allclose(row['locations'][0], wanted, rtol=1e-5, err_msg=f'{quirks} {convention}')


def test_pixels_are_wanted_of_a_picture_that_has_none():
    found = picture(3)
    found.size = (1, 1)
    with pytest.raises(ValueError, match="image 'pic' has boxes relative to the picture"):
        transforms.regions(found, transforms.Encoding(locations='evil_vqax'), 'pic')


def test_zero_regions_hide_the_picture_but_not_their_number():
    row = transforms.regions(picture(3), transforms.Encoding(max_regions=4, regions='zero'))
    assert row['region_length'] == 3 and not row['features'].any() and not row['locations'].any()
    assert transforms.regions(None, transforms.Encoding(max_regions=4))['region_length'] == 0


def test_other_feature_widths_are_refused():
    with pytest.raises(ValueError, match=r"image 'pic' has features of shape \(3, 1024\), wanted \[n, 2048\]"):
        transforms.regions(picture(3, width=1024), transforms.Encoding(), 'pic')


def test_piece_is_padded_with_end_of_text(assets):
    expl = assets.expl
    row = transforms.piece('question', 'qn', 'is it', expl, 6)
    wanted = [expl.id('<|b_qn|>'), *expl.encode('is it'), expl.id('<|e_qn|>')]
    assert row['question'].tolist() == wanted + [expl.end_of_text] * (6 - len(wanted))
    assert row['question_length'] == len(wanted)


def test_reference_that_trains(assets):
    expl = assets.expl
    example = Example('1', 'p', 'is it', explanations=['red', ' ', 'blue', 'circle'])

    def words(mode, rng, example=example):
        row = transforms.explanation(example, expl, transforms.Encoding(explanation=mode, max_explanation=8), rng)
        assert row['explanation'].shape == (8,)
        return expl.decode(row['explanation'][: row['explanation_length']])

    assert words('random', None) == words('first', np.random.default_rng(1)) == 'red'
    seen = [words('random', np.random.default_rng(seed)) for seed in range(60)]
    assert set(seen) == {'red', 'blue', 'circle'}
    assert seen == [words('random', np.random.default_rng(seed)) for seed in range(60)]
    row = transforms.explanation(Example('1', 'p', 't', explanations=[' ']), expl, transforms.Encoding(), None)
    assert row['explanation_length'] == 0 and (row['explanation'] == expl.end_of_text).all()


def test_targets_are_sparse_and_gold_is_the_first_best():
    row = transforms.targets({7: 0.3, 5: 1.0, 2: 1.0, 9: 0.0})
    assert row['answer_ids'].tolist() == [2, 5, 7] + [0] * 7 and row['gold'] == 2
    np.testing.assert_array_equal(row['answer_scores'], np.float32([1, 1, 0.3] + [0] * 7))
    assert transforms.targets({})['gold'] == -1 and not transforms.targets({3: 0.0})['answer_scores'].any()
    many = transforms.targets({i: 0.3 + 0.05 * i for i in range(12)})
    assert many['answer_ids'].tolist() == list(range(11, 1, -1))


def test_length_is_what_the_limits_cut(assets):
    """A text of exactly `length` tokens stays whole, and loses something at one token less."""
    n = text_lengths.length('text', 'is it red', assets)
    whole, cut = (transforms.text('is it red', assets.word, maximum)['text'] for maximum in (n, n - 1))
    assert len(set(whole.tolist()) - set(cut.tolist())) == 1
    for kind, span in (('question', 'qn'), ('answer', 'ans'), ('explanation', 'rtnl')):
        n = text_lengths.length(kind, 'blue square', assets)
        assert not assets.expl.piece(span, 'blue square', n)[1] and assets.expl.piece(span, 'blue square', n - 1)[1]


def choosing(**changes):
    values = {
        'id': 'v', 'image_id': 'p', 'text': 'is <|det2|> left of <|det1|> ?', 'label': 1,
        'choices': ['it is', 'blue <|det2|>', 'the red blue red blue square', ''], 'objects': ['circle', 'square'],
        'extra': {'boxes': [[0, 0, 50, 50], [0, 0, 100, 100]], 'size': [100, 100]},
    }  # fmt: skip
    return Example(**values | changes)


def test_pairs_of_question_and_choice(assets):
    """[CLS] question [SEP] choice [SEP], of types 0 and 2, each tag's piece with the region that shows its object."""
    word = assets.word
    # Region 0 is the square, 1 the circle: both relative to pictures of another size.
    found = picture(3)
    found.boxes[:] = [[0, 0, 200, 100], [0, 0, 100, 50], [150, 50, 160, 60]]
    encoding = transforms.Encoding(choices=4, max_text=13)
    row = transforms.tagged(choosing(), found, word, encoding)
    q = word.encode('is square left of circle ?')
    assert row['text'].tolist() == [word.cls, *q, word.sep] + [word.pad] * (11 - len(q)) and len(q) >= 6
    assert row['text_length'] == len(q) + 2 and not row['text_type'].any()
    linked = [t for t, region in zip(word.tokens(row['text']), row['text_tags']) if region >= 0]
    assert linked == ['square', *word.tokens(word.encode('circle'))]
    assert {t: r for t, r in zip(word.tokens(row['text']), row['text_tags']) if r >= 0}['square'] == 0
    assert {name: a.shape for name, a in row.items() if name.startswith('choices')} == {
        'choices': (4, 13), 'choices_type': (4, 13), 'choices_length': (4,), 'choices_tags': (4, 13)
    }  # fmt: skip
    assert all(a.dtype == np.int32 for a in row.values())
    for i, choice in enumerate(['it is', 'blue square', 'the red blue red blue square', '']):
        ids = word.encode(choice)[: 13 - 3 - len(q)]
        pair, n = [word.cls, *q, word.sep, *ids, word.sep], len(q) + 2
        assert row['choices'][i].tolist() == pair + [word.pad] * (13 - len(pair)) and row['choices_length'][i] == len(
            pair
        )
        kinds = [0] * n + [2] * (len(ids) + 1)
        assert row['choices_type'][i].tolist() == kinds + [0] * (13 - len(pair))
        assert row['choices_tags'][i, :n].tolist() == [*row['text_tags'][: n - 1], -1]
        tags_there = row['choices_tags'][i, n:].tolist()
        assert tags_there == ([-1, 0] if i == 1 else [-1, -1]) + [-1] * (len(tags_there) - 2)


def test_a_pair_that_is_too_long_keeps_its_inner_separator(assets):
    word, words = assets.word, 'is the red circle left of the blue square'
    example = choosing(text=words, choices=['it is red', 'blue'])
    for maximum in (5, 7, 9, 12, 13):
        row = transforms.tagged(example, None, word, transforms.Encoding(choices=2, max_text=maximum))
        q = word.encode(words)[: maximum - 4]
        for ids, pair in zip(map(word.encode, example.choices), row['choices']):
            assert pair.tolist() == [word.cls, *q, word.sep, *ids[: maximum - 3 - len(q)], word.sep] + [word.pad] * max(
                0, maximum - 3 - len(q) - len(ids)
            )
        assert row['text'].tolist() == transforms.text(words, word, maximum)['text'].tolist()


def test_the_published_code_cuts_the_whole_pair(assets):
    """Its end is lost, whatever that is; a pair without an inner separator is of one type."""
    word, words = assets.word, 'is the red circle left of the blue square'
    example = choosing(text=words, choices=['it is red', 'blue'])
    question = word.encode(words)
    for maximum in range(5, len(question) + 8):
        row = transforms.tagged(example, None, word, transforms.Encoding(choices=2, max_text=maximum, cut_pairs=True))
        for n, choice in enumerate(example.choices):
            pair = [word.cls, *[*question, word.sep, *word.encode(choice)][: maximum - 2], word.sep]
            second = pair.index(word.sep) + 1 if pair.count(word.sep) == 2 else len(pair)
            assert row['choices'][n].tolist() == pair + [word.pad] * (maximum - len(pair))
            assert row['choices_length'][n] == len(pair)
            kinds = [0] * second + [2] * (len(pair) - second)
            assert row['choices_type'][n].tolist() == kinds + [0] * (maximum - len(pair))
    for value, wanted in (('original', True), ('fixed', False), ('1,3', False)):
        config = configs.base()
        config.compat = value
        assert transforms.Encoding.of(config).cut_pairs is wanted


@pytest.mark.parametrize('off', [{'tag_regions': False}, {'regions': 'zero'}])
def test_tags_may_stay_without_regions(assets, off):
    found = picture(1)
    found.boxes[:] = [[0, 0, 200, 100]]
    linked = transforms.tagged(choosing(), found, assets.word, transforms.Encoding(choices=4))
    bare = transforms.tagged(choosing(), found, assets.word, transforms.Encoding(choices=4, **off))
    assert (linked['choices_tags'] == 0).any() and (linked['text_tags'] == 0).sum() == 1
    assert (bare['choices_tags'] == -1).all() and (bare['text_tags'] == -1).all()
    np.testing.assert_array_equal(bare['choices'], linked['choices'])


def test_characters_of_tags_go_to_the_word_pieces_on_request(assets):
    word = assets.word
    row = transforms.tagged(choosing(), None, word, transforms.Encoding(choices=4, tags='det', max_text=60))
    assert row['text'][: row['text_length']].tolist() == [word.cls, *word.encode(choosing().text), word.sep]


def test_lengths_of_all_texts(assets):
    """Of an example with choices the pairs count, as `tagged` would need them, and what the decoder reads."""
    length = lambda kind, words: text_lengths.length(kind, words, assets)
    example = choosing(explanations=['because it is <|det1|>'])
    found = list(text_lengths.lengths(example, transforms.Encoding(choices=4), length))
    row = transforms.tagged(example, None, assets.word, transforms.Encoding(choices=4, max_text=60))
    assert [n for kind, n in found if kind == 'text'] == row['choices_length'].tolist()
    assert [n for kind, n in found if kind == 'answer'] == [length('answer', choice) for choice in example.choices]
    assert [n for kind, n in found if kind == 'question'] == [length('question', example.text)]
    assert [n for kind, n in found if kind == 'explanation'] == [length('explanation', example.explanations[0])]
    plain = Example('1', 'p', 'is it', explanations=['red', 'blue square'])
    assert list(text_lengths.lengths(plain, transforms.Encoding(), length)) == [
        ('text', length('text', 'is it')), ('question', length('question', 'is it')),
        ('explanation', length('explanation', 'red')), ('explanation', length('explanation', 'blue square')),
    ]  # fmt: skip


def test_texts_that_make_a_word_vocabulary():
    example = choosing(choices=['<|det1|>', 'no'], objects=['person', 'dog'])
    wanted = ['is dog left of Casey ?', 'Casey', 'no', example.text, '<|det1|>', 'no']
    assert list(transforms.read_texts(example)) == wanted
    assert list(transforms.read_texts(Example('1', 'p', 'is it'))) == ['is it']


def test_explanations_name_objects_that_have_no_tag(assets):
    example = choosing(explanations=['it is <|det46|>'], objects=['red'] * 45 + ['blue square'])
    row = transforms.explanation(example, assets.expl, transforms.Encoding(), None)
    assert assets.expl.decode(row['explanation'][: row['explanation_length']]) == 'it is blue square'


def test_encoding_takes_every_field_from_the_configuration():
    config = configs.base()
    config.data.update(max_text=7, locations='evil_vqax', explanation='first')
    encoding = transforms.Encoding.of(config)
    assert (encoding.max_text, encoding.locations, encoding.explanation) == (7, 'evil_vqax', 'first')
    with pytest.raises((KeyError, AttributeError)):
        transforms.Encoding.of(types.SimpleNamespace(data={}))
