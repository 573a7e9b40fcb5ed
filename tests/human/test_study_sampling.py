import collections
import itertools
import json
import re

import pytest

from evil_jax import text
from evil_jax.data import outputs, references
from evil_jax.human import _arrangement, _chance, _choices, known, sampling
from evil_jax.human.study import GOLD, NO_EXPLANATION, TRUSTED, Item, Shown, Study
from evil_jax.records import Example, Prediction

COLOURS = ('red', 'blue', 'green', 'black', 'white', 'brown', 'pink', 'grey')
WHY = ('it is the {} of a rose', 'the {} paint is wet', 'all of them are {}', 'somebody called it {}')


def questions(n=80, pictures=60):
    """Open questions; several are about one picture."""
    return [
        Example(f'q{i:02}', f'm{i * 7 % pictures:02}', f'What colour is thing {i}?',
                answers={COLOURS[i % 8]: 1.0, COLOURS[(i + 1) % 8]: 0.3},
                explanations=[why.format(COLOURS[i % 8]) for why in WHY[: 1 + i % 4]])
        for i in range(n)
    ]  # fmt: skip


def systems(examples, rights, explanation='it looks like it'):
    """(predictions, how right they are) of systems that are right where `rights[label](number of the example)` is."""
    predictions, right = {}, {}
    for label, is_right in rights.items():
        good = {e.id: bool(is_right(number)) for number, e in enumerate(sorted(examples, key=lambda e: e.id))}
        answer = lambda e, good=good: _choices.gold(e) if good[e.id] else 'nothing'
        predictions[label] = {e.id: Prediction(e.id, answer(e), explanation=f'{explanation} {label}') for e in examples}
        right[label] = {name: float(value) for name, value in good.items()}
    return predictions, right


THREE = {'a': lambda i: i % 2, 'b': lambda i: i % 3, 'c': lambda i: True}


def of(study, system):
    return [item for item in study.items.values() if item.system == system]


def test_the_first_right_answers_with_pictures_of_their_own():
    examples = questions()
    predictions, right = systems(examples, THREE)
    study = sampling.sample(examples, predictions, right, dataset='vqax', limit=25, seed=3)
    by_id = {e.id: e for e in examples}
    for system in THREE:
        wanted, seen = [], set()
        for name in _chance.order(3, by_id):
            if right[system][name] and by_id[name].image_id not in seen and len(wanted) < 25:
                wanted.append(name)
                seen.add(by_id[name].image_id)
        assert {item.example for item in of(study, system)} == set(wanted) and len(wanted) == 25
        gold_first = sum(item.explanations[0].system == GOLD for item in of(study, system))
        assert gold_first in (12, 13)
    assert study.settings['shortfalls'] == [] and study.systems == ('a', 'b', 'c')
    assert study.s_t == {'a': 0.5, 'b': pytest.approx(53 / 80), 'c': 1.0}
    # A gold explanation is the same beside each system.
    gold = collections.defaultdict(set)
    for item in study.items.values():
        if not item.trusted:
            gold[item.example] |= {e.text for e in item.explanations if e.system == GOLD}
    assert max(map(len, gold.values())) == 1


def test_pages():
    examples = questions(200, 150)
    predictions, right = systems(examples, THREE)
    study = sampling.sample(examples, predictions, right, dataset='vqax', limit=60, page_items=10, trusted_per_page=2)
    assert [len(page.items) for page in study.pages] == [10] * 22 + [180 - 22 * 8 + 2]
    places = collections.Counter()
    for page in study.pages:
        items = list(study.of(page))
        assert len({item.image_id for item in items}) == len({item.example for item in items}) == len(items)
        trusted = [place for place, item in enumerate(items) if item.trusted]
        assert len(trusted) == 2
        places.update(trusted)
        assert len({item.system for item in items} - {TRUSTED}) == 3 or len(items) < 10
    assert len(places) == 10  # of a page
    assert len({page.id for page in study.pages}) == 23 and study.pages[0].id == 'p001'
    asked = {item.example for item in study.items.values() if not item.trusted}
    assert not asked & {item.example for item in of(study, TRUSTED)}
    for item in study.items.values():
        assert re.fullmatch('i[0-9a-f]{6}', item.id) and item.choices[item.gold] == _choices.gold(
            next(e for e in examples if e.id == item.example)
        )
    assert study.wrong_limit == 1 and study.yes_limit == 16


def test_the_seed_decides_and_nothing_else(tmp_path):
    examples = questions()
    predictions, right = systems(examples, THREE)
    one = sampling.sample(examples, predictions, right, dataset='vqax', limit=20, seed=1)
    backwards = lambda table: {k: dict(reversed(rows.items())) for k, rows in reversed(table.items())}
    other = sampling.sample(examples[::-1], backwards(predictions), backwards(right), dataset='vqax', limit=20, seed=1)
    one.write(tmp_path / 'one')
    other.write(tmp_path / 'other')
    assert (tmp_path / 'one/study.json').read_bytes() == (tmp_path / 'other/study.json').read_bytes()
    assert Study.open(tmp_path / 'one') == one
    assert (
        sampling.sample(examples, predictions, right, dataset='vqax', limit=20, seed=2)
        .items.keys()
        .isdisjoint(one.items)
    )
    fewer = sampling.sample(examples, predictions, right, dataset='vqax', limit=10, seed=1)
    assert {i.example for i in of(fewer, 'a')} < {i.example for i in of(one, 'a')}


def test_ids_that_would_be_the_same_are_longer(monkeypatch):
    monkeypatch.setattr(_chance, 'opaque', lambda seed, digits, *what: '0' * digits)
    examples = questions(5)
    study = sampling.sample(examples, *systems(examples, THREE), dataset='vqax', trusted='')
    assert sorted(study.items) == [f'i{0:0{6 + i}}' for i in range(2 + 3 + 5)]


def test_few_pages_share_pictures():
    """Else a rater, who answers a question once, could do hardly more than one page."""
    examples = questions(300, 300)
    predictions, right = systems(examples, {'a': bool, 'b': bool, 'c': bool, 'd': bool})
    study = sampling.sample(examples, predictions, right, dataset='vqax', limit=100, trusted='')
    pages = [{item.image_id for item in study.of(page)} for page in study.pages]
    met = [sum(bool(page & other) for other in pages) - 1 for page in pages]
    assert max(met) <= 7  # of 39
    counts = [collections.Counter(item.system for item in study.of(page)) for page in study.pages]
    assert all(max(count.values()) <= 4 and len(count) == 4 for count in counts)


@pytest.mark.parametrize('size', [1, 2, 5, 9])
def test_any_number_of_items_of_any_number_of_systems(size):
    rng = _chance.rng(size)
    for _ in range(60):
        pictures, labels = rng.randrange(1, 30), 'abcdefg'[: rng.randrange(1, 7)]
        items = [
            Item(f'{m}{label}', str(m), '', '', ('x',), 0, (Shown(label, ''),), f'm{m}')
            for m, label in itertools.product(range(pictures), labels)
            if rng.random() < 0.7
        ]
        if not items:
            continue
        pages = _arrangement.arrange(items, size)
        assert sorted(i.id for page in pages for i in page) == sorted(i.id for i in items)
        assert all(0 < len({i.image_id for i in page}) == len(page) <= size for page in pages)
        most = max(collections.Counter(i.image_id for i in items).values())
        assert len(pages) == max(most, -(-len(items) // size))


# --- answers ---


def test_wrong_answers_of_open_questions_are_nobodys():
    examples = questions()
    examples[0].answers = {'Brownish': 1.0}
    examples[0].annotations = ['Brownish', 'white!', 'the black']
    chooser = _choices.Chooser(examples, 4, 0)
    for example in examples:
        answers, gold = chooser.of(example, given=('Green.',))
        assert len(set(answers)) == 4 and answers[gold] == _choices.gold(example)
        said = {text.vqa_normalise(a) for a in (*example.answers, *(example.annotations or ()), 'green')}
        assert said & {text.vqa_normalise(a) for a in answers} == {text.vqa_normalise(answers[gold])} - (
            {'green'} - {answers[gold]}
        )
    assert 'brown' not in chooser.of(examples[0])[0]  # 'Brownish' begins like it
    assert {chooser.of(e)[1] for e in examples} == {0, 1, 2, 3}


def test_the_right_answer_of_an_open_question():
    tied = Example('q', 'm', '?', answers={'b': 1.0, 'a': 1.0, 'c': 0.9}, annotations=['a'] * 4 + ['b'] * 6)
    assert _choices.gold(tied) == 'b'
    tied.annotations = None
    assert _choices.gold(tied) == 'b'  # answers.heading: the first with the highest score
    tied.extra['multiple_choice_answer'] = 'a'
    assert _choices.gold(tied) == 'a'
    assert _choices.gold(Example('q', 'm', '?', answers={'a': 0.0})) is None


def test_relations_have_the_original_order():
    for label, gold in (('contradiction', 2), ('neutral', 1), ('entailment', 0), (0, 2), (2, 0)):
        answers = _choices.Chooser([], 3, 0).of(Example('e', 'm', 'a hypothesis', label=label))
        assert answers == (('Entailment', 'Neutral', 'Contradiction'), gold)
    with pytest.raises(ValueError, match="'e' has label 3 and no choices"):
        _choices.gold(Example('e', 'm', 'a hypothesis', label=3))


def scenes(n=12, movies=4, choices=('<|det1|> waves', '<|det1|> waves', '<|det2|> sits', 'nobody')):
    return [
        Example(f'v{i:03}', f'{i}@0', 'why is <|det2|> here?', choices=list(choices), label=0,
                objects=['person', 'dog', 'person'], explanations=[f'<|det1|> is at place {i} with <|det3|>'],
                extra={'boxes': [[0, 0, 10, 20], [5, 5, 60, 50], [1, 1, 1, 9]], 'size': [40, 40],
                       'img_fn': f'lsmdc_{min(i, movies - 1)}/{i}@0.jpg'})
        for i in range(n)
    ]  # fmt: skip


def test_choices_and_boxes_of_tagged_texts():
    examples = scenes()
    predictions, right = systems(examples, {'a': bool}, explanation='2 is far from <|det9|>')
    for label in ('a',):  # the first example is wrong, all others are right
        study = sampling.sample(examples, predictions, right, dataset='vcr', trusted='')
        item = of(study, label)[0]
    assert sorted(item.choices) == ['[dog 2] sits', '[person 1] waves', 'nobody']
    assert item.choices[item.gold] == '[person 1] waves' and item.text == 'why is [dog 2] here?'
    generated = next(e.text for e in item.explanations if e.system == 'a')
    assert generated == '2 is far from [object 9] a'
    # Of what the texts speak of; clipped; a box without area is none.
    assert item.boxes == (('person 1', 0.0, 0.0, 0.25, 0.5), ('dog 2', 0.125, 0.125, 1.0, 1.0))
    assert (study.kind, study.wrong_limit) == ('question', 2)


def test_every_movie_is_there():
    examples = scenes(200, 30)  # most scenes are of the last movie
    predictions, right = systems(examples, {'a': lambda i: i % 2, 'b': lambda i: i != 5})
    study = sampling.sample(examples, predictions, right, dataset='vcr', limit=40, trusted='')
    movies = {e.id: e.extra['img_fn'].partition('/')[0] for e in examples}
    assert {movies[i.example] for i in of(study, 'b')} == set(movies.values()) - {'lsmdc_5'}
    assert {movies[i.example] for i in of(study, 'a')} == {f'lsmdc_{i}' for i in (*range(1, 29, 2), 29)}
    assert len(of(study, 'a')) == len(of(study, 'b')) == 40
    assert study.settings['systems']['b']['movies'] == 29 and not study.settings['shortfalls']
    small = sampling.sample(examples, predictions, right, dataset='vcr', limit=10, trusted='')
    assert len({movies[i.example] for i in of(small, 'b')}) == 10
    assert small.settings['shortfalls'] == ['a: 10 of 15 movies', 'b: 10 of 29 movies']


# --- trusted items ---


def test_a_foreign_explanation_is_bad():
    examples = questions(60, 60)
    predictions, right = systems(examples, {'a': bool})
    study = sampling.sample(examples, predictions, right, dataset='vqax', limit=20, page_items=5)
    by_text = {why: e for e in examples for why in e.explanations}
    by_id = {e.id: e for e in examples}
    assert len(of(study, TRUSTED)) == len(study.pages) == 5
    for item in of(study, TRUSTED):
        own = next(e for e in item.explanations if e.system == GOLD)
        foreign = next(e for e in item.explanations if e.system == TRUSTED)
        assert own.text in by_id[item.example].explanations and own.expected == ()
        assert foreign.expected == ('no', 'weak_no')
        assert _choices.gold(by_text[foreign.text]) != item.choices[item.gold]


def test_a_foreign_object_does_not_tell_that_it_is_foreign():
    example = scenes(1)[0]
    other = Example('x', 'y', '?', label=0, choices=['a', 'b'], objects=['person', 'cat', 'person', 'dog'],
                    explanations=['<|det1|> sees <|det2|> and <|det4|>'])  # fmt: skip
    (found,) = known.automatic([example], [example, other], 0, lambda a, b: a is not b)
    assert found.explanations[1].text == '[person 1] sees cat and dog'


def test_when_nothing_is_left_trusted_items_ask_the_same_again():
    examples = questions(12, 12)
    predictions, right = systems(examples, {'a': lambda i: True, 'b': lambda i: True})
    study = sampling.sample(examples, predictions, right, dataset='vqax', limit=0, page_items=4)
    assert sum(item.trusted for page in study.pages for item in study.of(page)) == len(study.pages) == 8
    for page in study.pages:
        assert len({item.image_id for item in study.of(page)}) == len(page.items)
    assert study.settings['shortfalls'] == [
        '8 trusted items ask what another item asks, too: there are no more examples'
    ]
    alone = sampling.sample(*(examples[:1], *systems(examples[:1], {'a': lambda i: True})), dataset='vqax')
    assert [len(page.items) for page in alone.pages] == [1]
    assert alone.settings['shortfalls'] == [
        'a: 1 of 300 examples: there are no more right answers with a picture of their own',
        '1 of 1 trusted items are missing: no other picture, or no other answer, to make them of',
    ]
    assert len(next(iter(alone.items.values())).choices) == 3


KNOWN = {
    'id': 'k', 'image_id': 'pk', 'text': 'Is <|det1|> wet?', 'answers': {'no': 1.0}, 'objects': ['dog'],
    'known': [{'text': 'the sky is blue', 'ratings': ['weak_yes', 'yes']}, {'text': 'cats', 'ratings': ['no']}],
}  # fmt: skip


def test_known_items_of_a_file(tmp_path):
    path = tmp_path / 'known.jsonl'
    one = KNOWN | {'id': 'k2', 'known': KNOWN['known'][1:], 'explanations': ['<|det1|> lies in the sun']}
    path.write_text(json.dumps(KNOWN) + '\n' + json.dumps(one) + '\n')
    items = known.read(path)
    assert items[0].explanations == (Shown(TRUSTED, 'the sky is blue', ('weak_yes', 'yes')),
                                     Shown(TRUSTED, 'cats', ('no',)))  # fmt: skip
    assert items[1].explanations[1] == Shown(GOLD, '[dog 1] lies in the sun')
    examples = questions()
    study = sampling.sample(
        examples, *systems(examples, {'a': bool}), dataset='vqax', limit=45, page_items=10, trusted=items
    )
    uses = collections.Counter(i.example for p in study.pages for i in study.of(p) if i.trusted)
    assert uses.keys() == {'k', 'k2'} and sorted(uses.values()) == [2, 3]
    assert study.settings['shortfalls'] == ['2 trusted items are used up to 3 times']
    assert {i.text for i in of(study, TRUSTED)} == {'Is [dog 1] wet?'} and study.settings['trusted'] == 'own'


@pytest.mark.parametrize(('change', 'message'), [
    ({'known': []}, r'0 known explanations, wanted two'),
    ({'known': KNOWN['known'][:1]}, r'1 known explanations, wanted two, or one and a gold explanation'),
    ({'known': [{'text': 'x', 'ratings': ['maybe']}]}, r"known 1: ratings are \['maybe'\], wanted some of no, weak_no"),
    ({'known': [{'text': 'x', 'ratings': []}]}, 'known 1: ratings are'),
    ({'known': [{'text': ' ', 'ratings': ['no']}]}, 'known 1: text is empty'),
    ({'known': {}}, 'known is {}, wanted list'),
    ({'answers': {}}, 'the example has no gold answer'),
    ({'text': ''}, 'the example has no text'),
    ({'id': 7}, "field 'id' is 7"),
    ({'colour': 1}, "unknown field 'colour'"),
])  # fmt: skip
def test_bad_known_items(tmp_path, change, message):
    path = tmp_path / 'known.jsonl'
    path.write_text(json.dumps(KNOWN | {'id': 'fine'}) + '\n' + json.dumps(KNOWN | change) + '\n')
    with pytest.raises(ValueError, match=rf'known\.jsonl:2: .*{message}'):
        known.read(path)
    path.write_text(json.dumps(KNOWN) + '\n' + json.dumps(KNOWN) + '\n')
    with pytest.raises(ValueError, match=r"known\.jsonl:2: the id 'k' was there before"):
        known.read(path)


# --- what cannot be asked ---


def test_what_became_of_right_answers_is_told():
    examples = questions(20, 20)
    predictions, right = systems(examples, {'a': lambda i: True})
    ids = _chance.order(0, [e.id for e in examples])
    by_id = {e.id: e for e in examples}
    predictions['a'][ids[0]].explanation = None
    predictions['a'][ids[1]].explanation = ' '
    by_id[ids[2]].explanations = [' ', '']
    by_id[ids[3]].text = ''
    predictions['a'][ids[5]].answer = next(answer for answer, score in by_id[ids[5]].answers.items() if score < 1)
    predictions['a'][ids[6]].explanation = by_id[ids[6]].explanations[0]
    by_id[ids[6]].explanations = by_id[ids[6]].explanations[:1]
    missing = by_id[ids[4]].image_id
    study = sampling.sample(
        examples, predictions, right, dataset='vqax', limit=10, trusted='', has_picture=lambda image: image != missing
    )
    assert study.settings['systems']['a'] == {
        'predictions': 20, 'right': 20, 'not_explained': 1, 'no_gold_explanation': 1, 'no_text': 1, 'no_picture': 1,
        'taken': 10, 'empty': 1, 'same_as_gold': 1, 'other_answer': 1,
    }  # fmt: skip
    shown = {e.text for i in of(study, 'a') if i.example == ids[1] for e in i.explanations}
    assert NO_EXPLANATION in shown
    other = next(i for i in of(study, 'a') if i.example == ids[5])
    assert predictions['a'][ids[5]].answer not in other.choices


@pytest.mark.parametrize(('change', 'message'), [
    ({'limit': -1}, 'limit is -1, wanted at least 0'),
    ({'choices': 1}, 'choices is 1, wanted at least 2'),
    ({'wrong_limit': -1}, 'wrong_limit is -1, wanted at least 0: no page could be handed in'),
    ({'page_items': 2, 'trusted_per_page': 2}, 'trusted_per_page is 2 of 2 page_items: no place is left'),
    ({'trusted': 'automatic'}, "trusted is 'automatic', wanted 'auto'"),
    ({'predictions': {}}, r"predictions are of \[\], judgements of \['a'\]"),
    ({'predictions': {'gt': {}}, 'right': {'gt': {}}}, "the label 'gt', which means something else"),
    ({'right': {'a': {'q00': 1.0}}}, "not of the same ids, for example 'q01'"),
    ({'right': {'a': {f'q{i:02}': 0.0 for i in range(20)}}},
     'nobody can be asked about anything: a: 20 predictions, 0 right, 0 taken'),
    ({'examples': questions(20, 20) + questions(1)}, "example 'q00' is there twice"),
    ({'trusted': [known.Known(Example('x', 'm', 'a dog', label=1), (Shown('gt', ''), Shown('trusted', '', ('no',))))]},
     'vqax: some examples have relations'),
])  # fmt: skip
def test_what_makes_no_study(change, message):
    examples = questions(20, 20)
    predictions, right = systems(examples, {'a': lambda i: True})
    given = {'examples': examples, 'predictions': predictions, 'right': right} | change
    with pytest.raises(ValueError, match=message):
        sampling.sample(**given, dataset='vqax')


@pytest.mark.parametrize(('field', 'value', 'message'), [
    ('raters', '3', "raters is '3', wanted a whole number of at least 1"),
    ('wrong_limit', -1, 'wrong_limit is -1, wanted a whole number of at least 0'),
    ('yes_limit', None, 'yes_limit is None'),
    ('kind', 'riddle', "kind is 'riddle', wanted one of question, statement"),
    ('s_t', [], 's_t is'),
    ('s_t', {'a': 'x'}, "s_t of 'a' is 'x', wanted a number from 0 to 1"),
])  # fmt: skip
def test_a_study_changed_by_hand_is_refused(tmp_path, field, value, message):
    examples = questions(4, 4)
    predictions, right = systems(examples, {'a': lambda i: True})
    sampling.sample(examples, predictions, right, dataset='vqax').write(tmp_path)
    path = tmp_path / 'study.json'
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(ValueError, match=f'study.json: {message}'):
        Study.open(tmp_path)


def test_real_answers(shared):
    data = shared / 'data'
    examples = references.read([data / 'vqax/vqaX_test.json'], 'vqax')
    rows = outputs.read(data / 'generated/nlxgpt_vqaX_p_full_unfiltered.json', 'nlxgpt_full', examples)
    by_id = {e.id: e for e in examples}
    right = {'nlx': {p.id: by_id[p.id].answers.get(p.answer, 0.0) for p in rows}}
    study = sampling.sample(examples, {'nlx': {p.id: p for p in rows}}, right, dataset='vqax')
    assert len(of(study, 'nlx')) == 300 and len(study.pages) == 34 and not study.settings['shortfalls']
    for item in study.items.values():
        wrong = {text.vqa_normalise(c) for c in item.choices} - {text.vqa_normalise(item.choices[item.gold])}
        assert len(wrong) == 2 and not wrong & {text.vqa_normalise(a) for a in by_id[item.example].annotations}
