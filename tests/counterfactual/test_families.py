"""Edits of questions: which word goes, what comes, how it is written, and what is left alone."""

import gzip
import itertools
import json
import os
import subprocess
import sys
from collections import Counter

import hypothesis
import pytest
from hypothesis import strategies as st

from evil_jax.counterfactual import colours, families
from evil_jax.counterfactual.edits import FAMILIES, Edit, Settings
from evil_jax.records import Example

SHAPES = (('circle', 'square', 'triangle', 'star'),)


@pytest.fixture(scope='module')
def texts(lexicon):
    """`texts(question, family, **settings)`: the edited questions, all that the settings allow."""

    def make(question, family, max_edits=2000, preset='default', uses=None, **changes):
        settings = Settings.of(preset, families=(family,), max_edits=max_edits, **changes)
        return [edit.text for edit in families.Editor(lexicon, settings, uses).edits(Example('1', '2', question))]

    return make


@pytest.fixture(scope='module')
def made(lexicon):
    """`made(question, family, **settings)`: the one edit, or why there is none."""

    def make(question, family, preset='default', uses=None, **changes):
        editor = families.Editor(lexicon, Settings.of(preset, families=(family,), **changes), uses)
        example = question if isinstance(question, Example) else Example('1', '2', question)
        found = editor.edits(example)
        return found[0] if found else next(iter(editor.coverage.families[family].reasons))

    return make


# --- the paper's examples ---


@pytest.mark.parametrize('question, family, first', [
    ('Is the dog running?', 'hypernym', 'Is the canine running?'),
    ('Who is talking?', 'synonym_verb', 'Who is speaking?'),
    ('Is it delicious?', 'synonym_adjective', 'Is it delightful?'),
    ('What did she picture?', 'synonym_verb', 'What did she visualize?'),
    ('Is that typical?', 'synonym_adjective', 'Is that distinctive?'),
    ('Is the violet car old?', 'colour_max_uncommon', 'Is the deepskyblue car old?'),
    ('Is the violet car old?', 'colour_min_uncommon', 'Is the orchid car old?'),
    ('What color is the dog?', 'delete', 'What color is the ?'),
])  # fmt: skip
def test_what_the_paper_does_first(made, question, family, first):
    seeds = {made(question, family, 'stoikou2023', seed=seed).text for seed in range(6)}
    assert first in seeds and all(len(question) - len(text) < 9 for text in seeds)
    if family != 'delete':  # of two nouns, one is drawn
        assert seeds == {first}


@pytest.mark.parametrize('question, family, word, synset, rank', [
    ('Where is the carrot?', 'sibling', 'radish', 'carrot.n.01', 1),
    ('Is there a horse?', 'sibling', 'zebra', 'horse.n.01', 1),
    ('Is that a bike?', 'sibling', 'truck', 'motorcycle.n.01', 1),
    ('Is the air clean?', 'sibling', 'water', 'air.n.06', 6),
    ('Is it small?', 'synonym_adjective', 'minuscule', 'little.s.07', 6),
    ('Is that typical?', 'synonym_adjective', 'distinctive', 'distinctive.s.01', 2),
])  # fmt: skip
def test_what_the_paper_may_draw(lexicon, question, family, word, synset, rank):
    settings = Settings.of('stoikou2023', families=(family,), max_edits=2000)
    edits = families.Editor(lexicon, settings).edits(Example('1', '2', question))
    [edit] = [edit for edit in edits if edit.target == word]
    assert (edit.source_synset, edit.sense_rank, edit.sense) == (synset, rank, 'any')
    assert edit.path_similarity == (pytest.approx(1 / 3) if family == 'sibling' else None)


def test_first_sense_alone(texts):
    assert texts('Is it small?', 'synonym_adjective', sense='first') == ['Is it little?']
    air = texts('Is the air clean?', 'sibling', preset='stoikou2023', sense='first')
    assert 'Is the oxygen clean?' in air and 'Is the water clean?' not in air


def test_first_is_stricter_than_the_default(texts):
    assert texts('Is that typical?', 'synonym_adjective', sense='first') == []
    assert texts('Is that typical?', 'synonym_adjective') == ['Is that distinctive?']


# --- how the new word is written ---


@pytest.mark.parametrize('question, family, edited', [
    ('Are the dogs brown?', 'hypernym', 'Are the canines brown?'),
    ('How many children are there?', 'hypernym', 'How many juveniles are there?'),
    ('How many fire hydrants are there?', 'hypernym', 'How many hydrants are there?'),
    ('Is there a girl?', 'hypernym', 'Is there a woman?'),
    ('Is that an hour?', 'hypernym', 'Is that a time unit?'),
    ('Is there a horse?', 'hypernym', 'Is there an equine?'),
    ('Is there an old horse?', 'hypernym', 'Is there an old equine?'),
    ('IS THE DOG BROWN?', 'hypernym', 'IS THE CANINE BROWN?'),
    ('IS THAT A HORSE?', 'hypernym', 'IS THAT AN EQUINE?'),
    ('Dogs are running.', 'hypernym', 'Canines are running.'),
    ('A horse is here.', 'hypernym', 'An equine is here.'),
    ('Is there a table?', 'hypernym', 'Is there furniture?'),
    ('Is there a red table?', 'hypernym', 'Is there red furniture?'),
    ('A table is here.', 'hypernym', 'Furniture is here.'),
    ('A red table is here.', 'hypernym', 'Red furniture is here.'),
    ('Are these shoes new?', 'hypernym', 'Is this footwear new?'),
    ('Where are the shoes?', 'hypernym', 'Where is the footwear?'),
    ('What are his shoes like?', 'hypernym', 'What is his footwear like?'),
    ('THESE SHOES?', 'hypernym', 'THIS FOOTWEAR?'),
    ('Are TVs old?', 'hypernym', 'Are receivers old?'),
    ('Who wears it?', 'synonym_verb', 'Who has on it?'),
    ('What is he wearing?', 'synonym_verb', 'What is he having on?'),
    ('Where was it taken?', 'synonym_verb', 'Where was it selected?'),
    ('Who used it?', 'synonym_verb', 'Who employed it?'),
    ('Is it larger?', 'synonym_adjective', 'Is it bigger?'),
    ('Is it the largest one?', 'synonym_adjective', 'Is it the biggest one?'),
    ('Is that an orange cat?', 'colour_max_common', 'Is that a blue cat?'),
    ('Is it a red car?', 'colour_min_common', 'Is it a brown car?'),
    ('Is it red-hot by the blue  🚗 "car"?', 'colour_max_common', 'Is it red-hot by the yellow  🚗 "car"?'),
])  # fmt: skip
def test_form_of_the_new_word(made, question, family, edited):
    edit = made(question, family)
    assert isinstance(edit, Edit), edit
    assert edit.text == edited
    assert edit.target in edit.text


def test_what_else_changed_is_recorded(made):
    edit = made('Are these shoes new?', 'hypernym')
    assert edit.adjusted == ('Are>Is', 'these>this')
    assert (edit.span, edit.target_span, edit.source, edit.target) == ((0, 15), (0, 16), 'shoes', 'footwear')
    assert made('Is there a horse?', 'hypernym').adjusted == ('a>an',)
    assert made('Is the dog old?', 'hypernym').adjusted == ()


def test_what_can_be_counted_stays_so(made):
    assert made('How many shoes?', 'hypernym') == 'does not fit'
    assert made('Is one table there?', 'hypernym') == 'does not fit'


def test_pronouns_fit(texts):
    question = 'Is the man holding {}?'
    assert question.format('it').replace('man', 'woman') in texts(question.format('it'), 'sibling')
    his = texts(question.format('his own'), 'sibling')
    assert his and not any('woman' in text for text in his)


def test_words_nobody_should_be_called_do_not_come(texts):
    every = ' '.join(texts('Is that a person?', 'hyponym', preset='stoikou2023', sense='first'))
    assert 'worker' in every and not any(
        word in every for word in ('slave', 'cripple', 'homo', 'sodomite', 'white person')
    )
    assert 'whore' not in ' '.join(texts('Is that a woman?', 'hyponym', preset='stoikou2023', sense='first'))


def test_familiar_words_come_by_default(texts):
    assert sorted(texts('Is there a horse?', 'sibling')) == ['Is there a mule?', 'Is there a zebra?']
    assert 'Is there a hinny?' in texts('Is there a horse?', 'sibling', preset='stoikou2023')


def test_quality(made):
    assert made('Is there a girl?', 'hypernym').quality > 0.4
    assert made('Is it wet?', 'synonym_adjective').quality < 0.01  # lactating
    assert made('Is it wet?', 'synonym_adjective', min_quality=0.1) == 'low quality'


# --- deletion ---


@pytest.mark.parametrize('question, edited, literal', [
    ('What is the dog?', 'What is?', 'What is the ?'),
    ('Where is his dog now?', 'Where is now?', 'Where is his  now?'),
    ('Is there a dog bowl?', 'Is there a bowl?', 'Is there a  bowl?'),
    ('Is there a hospital entrance?', 'Is there an entrance?', 'Is there a  entrance?'),
    ('Is this door red?', 'Is this red?', 'Is this  red?'),
    ('Dogs run fast.', 'Run fast.', ' run fast.'),
    ('dogs  run', 'run', '  run'),
    ('Is this the glass of milk?', 'Is this milk?', 'Is this the  of milk?'),
    ("Is the man's red?", 'Is the red?', "Is the 's red?"),
    ('Two \t dogs \t run.', 'Two \t run.', 'Two \t  \t run.'),
])  # fmt: skip
def test_deletion(made, question, edited, literal):
    texts = {made(question, 'delete', seed=seed).text for seed in range(8)}
    assert edited in texts
    plain = {made(question, 'delete', repair=False, seed=seed).text for seed in range(8)}
    assert literal in plain
    assert made(question, 'delete').repair and not made(question, 'delete', repair=False).repair


def test_a_deleted_word_keeps_its_sense_for_rules(made):
    edit = made('Where is the dog?', 'delete')
    assert (edit.source, edit.target, edit.source_synset, edit.adjusted) == ('dog', '', 'dog.n.01', ('the>',))


def test_the_last_word_is_not_deleted(made):
    assert made('Dog?', 'delete') == made('Dog?', 'delete', repair=False) == 'does not fit'
    assert made('The dog?', 'delete') == 'does not fit'


# --- which words ---


@pytest.mark.parametrize('question, reason', [
    ('', 'empty'),
    (' \t\n', 'empty'),
    ('dog ' * 2500, 'too long'),
    ('Wo ist der Hund heute Abend gewesen?', 'not English'),
    ('of the and', 'only function words'),
    ('?!', 'only function words'),
    ('Is it running?', 'no noun'),
    ('Is Blorkington there?', 'not in WordNet'),
    ('No dog is running.', 'negated'),
    ('Every dog is running.', 'negated'),
    ('There are few dogs.', 'negated'),
])  # fmt: skip
def test_why_there_is_no_edit(made, question, reason):
    assert made(question, 'hypernym') == reason


@pytest.mark.parametrize('question, family, reason', [
    ('What is the dog?', 'synonym_verb', 'no verb'),
    ('What is the dog?', 'synonym_adjective', 'no adjective'),
    ('Is the dog white?', 'synonym_adjective', 'no adjective'),
    ('What is the dog?', 'colour_max_common', 'no colour'),
    ('Is it a black and white photo?', 'colour_max_common', 'protected'),
    ('Is he going to do it?', 'synonym_verb', 'protected'),
    ('Where is the sky?', 'sibling', 'no sibling'),
    ('Where is the bathroom?', 'hyponym', 'no hyponym'),
])  # fmt: skip
def test_why_a_family_has_no_edit(made, question, family, reason):
    assert made(question, family) == reason


def test_statements_are_edited_before_a_negator_only(texts, made):
    assert texts('A horse is not near a car.', 'hypernym') == ['An equine is not near a car.']
    assert len(texts('Is the horse not near a car?', 'hypernym')) == 2
    negated = made('Is there no horse?', 'hypernym')
    assert negated.negated and negated.asks == 'yes/no'
    statement = Example('1', '2', 'Is there no horse?', label='entailment')
    assert made(statement, 'hypernym') == 'negated'


def test_participles_that_are_adjectives(made):
    edit = made('Where is the pictured cat?', 'synonym_adjective')
    assert edit.source == edit.source_lemma == 'pictured' and edit.text == 'Where is the visualized cat?'
    assert made('Where was it taken?', 'synonym_verb').source_lemma == 'take'


def test_classes_of_the_users_own(texts, made):
    assert sorted(texts('Where are the circles?', 'sibling', siblings=SHAPES)) == [
        'Where are the squares?', 'Where are the stars?', 'Where are the triangles?',
    ]  # fmt: skip
    edit = made('A red Square is here.', 'sibling', siblings=SHAPES)
    assert edit.source_lemma == 'square' and edit.target in ('Circle', 'Triangle', 'Star') and edit.how == 'siblings'
    phrases = (('fire engine', 'police car'),)
    assert texts('Is a fire engine here?', 'sibling', siblings=phrases) == ['Is a police car here?']
    assert made('Is there a horse?', 'sibling', siblings=SHAPES).target_synset  # WordNet's elsewhere


def test_common_colours_are_those_that_are_used(made):
    uses = Counter(red=9, navy=9, green=4)
    assert made('Is it red?', 'colour_max_common', uses=uses).target == 'navy'
    assert made('Is it red?', 'colour_max_common', uses=uses, min_uses=4).target == 'green'
    edit = made('Is it red?', 'colour_max_uncommon', uses=uses)
    assert edit.target not in ('navy', 'red')
    assert edit.metric == 'ciede2000' and edit.distance == pytest.approx(colours.distance('red', edit.target), abs=1e-3)


def test_names_of_colours(made):
    assert made('Is it a black car?', 'colour_min_uncommon').text == 'Is it a dark slate gray car?'
    raw = made('Is it a black car?', 'colour_min_uncommon', names='raw')
    assert (raw.text, raw.target_lemma) == ('Is it a darkslategray car?', 'darkslategray')


def test_one_of_the_nearest_colours(lexicon):
    settings = Settings(families=('colour_max_common',), nearest=3)
    editor = families.Editor(lexicon, settings)
    found = {editor.edits(Example(str(i), '2', 'Is it red?'))[0].target for i in range(40)}
    assert len(found) == 3


# --- how many ---


def test_one_edit_or_several_or_everywhere(texts):
    question = 'Is the dog near the girl?'
    both = ['Is the canine near the girl?', 'Is the dog near the woman?']
    assert texts(question, 'hypernym', 1)[0] in both
    assert sorted(texts(question, 'hypernym', 2)) == both
    assert sorted(texts(question, 'hypernym', 1, all_positions=True)) == both
    assert texts(question, 'hypernym', 1) == texts(question, 'hypernym', 3)[:1]


def test_ids(lexicon):
    editor = families.Editor(lexicon, Settings(families=('hypernym', 'delete'), max_edits=2))
    edits = editor.edits(Example('7', '2', 'Is the dog near the girl?'))
    assert [edit.id for edit in edits] == ['7#hypernym', '7#hypernym.1', '7#delete', '7#delete.1']
    assert editor.coverage.to_json()['delete'] == {'asked': 1, 'edited': 1, 'edits': 2, 'reasons': {}}


def test_a_record_says_all(made):
    edit = made('How many dogs are there?', 'sibling')
    assert edit.to_json() | {'text': 0, 'target': 0, 'target_lemma': 0, 'target_synset': 0, 'target_span': 0} == {
        'id': '1#sibling', 'example_id': '1', 'image_id': '2', 'family': 'sibling', 'text': 0, 'target': 0,
        'original': 'How many dogs are there?', 'span': (9, 13), 'source': 'dogs', 'source_lemma': 'dog',
        'target_lemma': 0, 'target_synset': 0, 'target_span': 0, 'source_synset': 'dog.n.01', 'sense': 'lexicon',
        'sense_rank': 1, 'sense_count': 7, 'how': edit.how, 'path_similarity': pytest.approx(1 / 3),
        'frequency': edit.frequency, 'lemma_rule': 's>', 'tagger': 'heuristic', 'role': 'head', 'asks': 'count',
        'quality': edit.quality, 'preset': 'default',
    }  # fmt: skip
    assert made('Is the cat sitting?', 'synonym_verb').twin is False
    assert made('What does it picture?', 'synonym_verb').twin is True


# --- VCR ---

VCR = Example(
    'v', 'i', 'What does <|det1|> do with the dog by the other dog?',
    ['<|det1|> pets the dog.', 'Dogs bark.', 'Nothing.'], objects=['person', 'dog', 'car'],
    explanations=['The dog of <|det1|> is by <|det2|>.'],
)  # fmt: skip


def test_question_alone(made):
    edit = made(VCR, 'hypernym')
    question = 'What does <|det1|> do with the {} by the other {}?'
    assert edit.text in (question.format('canine', 'dog'), question.format('dog', 'canine'))
    assert edit.choices is edit.objects is edit.explanations is None


def test_joint_renaming(made):
    edit = made(VCR, 'hypernym', scope='joint')
    assert edit.text == 'What does <|det1|> do with the canine by the other canine?'
    assert edit.choices == ['<|det1|> pets the canine.', 'Canines bark.', 'Nothing.']
    assert edit.explanations == ['The canine of <|det1|> is by <|det2|>.']
    assert edit.objects == ['person', 'canine', 'car']
    assert made(VCR, 'delete', scope='joint').choices is None
    assert Edit.from_json(json.loads(json.dumps(edit.to_json()))) == edit


def test_joint_renaming_keeps_its_own_way_clear(made):
    example = Example('v', 'i', 'Are these shoes shoes?', ['Shoes.'])
    assert made(example, 'hypernym', scope='joint').text == 'Is this footwear footwear?'
    example = Example('v', 'i', 'A table table?', ['Shoes.'])
    assert made(example, 'hypernym', scope='joint') == 'does not fit'
    example = Example('v', 'i', 'Are the shoes with the shoes?', ['Shoes.', 'The shoes are old.'])
    edit = made(example, 'hypernym', scope='joint')
    assert edit.text == 'Is the footwear with the footwear?' and edit.choices == ['Footwear.', 'The footwear is old.']
    example = Example('v', 'i', 'Are these shoes?', ['The shoes.', 'The footwear.', 'The footwear.'])
    assert made(example, 'hypernym', scope='joint') == 'does not fit'  # which of them is right could not be told


def test_people_keep_their_class(made):
    example = Example('v', 'i', 'Where is the person?', ['a', 'b'], objects=['person'])
    assert made(example, 'hypernym', scope='joint').objects == ['person']


# --- any text ---

WORDS = st.sampled_from(
    ['dog', 'Dogs', 'an', 'A', 'the', 'is', 'are', 'these', 'shoes', 'fire', 'hydrant', 'red', 'sky', 'blue', 'old',
     'wearing', 'hour', "man's", '<|det1|>', 'TV', '"', "'s", '🐕', 'café', '8', 'of', 'children', 'not', 'two',
     'furniture', 'ÀÉ', 'x' * 50, 'İ', 'ß', 'ﬁsh', '\u200b', 'deep sky blue', '(cat)', 'circles']
)  # fmt: skip
BLANKS = st.sampled_from([' ', '  ', '\t', '\n', '\xa0', ', ', '-', ' \u3000', ''])
MIXED = st.lists(st.tuples(WORDS, BLANKS), max_size=12).map(lambda parts: ''.join(itertools.chain.from_iterable(parts)))


@pytest.fixture(scope='module')
def editors(lexicon):
    return [
        families.Editor(lexicon, Settings.of(preset, all_positions=True, max_edits=2, siblings=SHAPES))
        for preset in ('default', 'stoikou2023')
    ]


@hypothesis.settings(max_examples=120, deadline=None, derandomize=True)
@hypothesis.given(text=MIXED | st.text(max_size=40))
def test_nothing_changes_outside_of_the_span(editors, text):
    for editor in editors:
        edits = editor.edits(Example('1', '2', text))
        assert len({edit.id for edit in edits}) == len({(edit.family, edit.text) for edit in edits}) == len(edits)
        for edit in edits:
            start, end = edit.span
            assert 0 <= start < end <= len(text) and edit.original == text != edit.text
            put = edit.text[slice(*edit.target_span)]
            assert edit.text == text[:start] + put + text[end:] and edit.target_span[0] == start
            assert edit.source in text[start:end] and edit.target in put
            assert edit.text.count('<|det1|>') == text.count('<|det1|>')
            assert Edit.from_json(json.loads(json.dumps(edit.to_json()))) == edit


# --- the same again ---

QUESTIONS = [
    'Is the dog near the red car?', 'How many children are in the kitchen?', 'What is the man wearing?',
    'What color is the small train on the left?', 'Is it a sunny day?',
]  # fmt: skip


def everything(lexicon, questions, **changes):
    editor = families.Editor(lexicon, Settings(**changes))
    examples = [Example(f'e{QUESTIONS.index(question)}', '1', question) for question in questions]
    return {edit.id: edit.text for edit in families.edit_all(examples, editor)}


def test_the_same_whatever_stands_before(lexicon):
    found = everything(lexicon, QUESTIONS)
    assert everything(lexicon, QUESTIONS[::-1]) == found
    assert everything(lexicon, QUESTIONS[1:2]).items() <= found.items()
    assert everything(lexicon, QUESTIONS, families=FAMILIES[::-1]) == found
    assert everything(lexicon, QUESTIONS, seed=1) != found


def test_the_same_in_another_process(lexicon):
    code = (
        'import json, sys; sys.path[:0] = json.loads(sys.argv[1]); import test_families; '
        'from evil_jax.counterfactual.lexicon import open_lexicon; '
        'print(json.dumps(test_families.everything(open_lexicon(), test_families.QUESTIONS)))'
    )
    path = json.dumps([os.path.dirname(__file__), *sys.path])
    environment = os.environ | {'PYTHONHASHSEED': '123'}
    run = subprocess.run(
        [sys.executable, '-c', code, path], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == everything(lexicon, QUESTIONS)


# --- real questions ---


def test_real_questions(lexicon, shared):
    with gzip.open(shared / 'data/vqav2/small_2962.jsonl.gz', 'rt') as file:
        rows = [json.loads(line) for line in itertools.islice(file, 0, None, 5)]
    editor = families.Editor(lexicon, Settings())
    edits = list(families.edit_all((Example(str(r['question_id']), 'i', r['question']) for r in rows), editor))
    share = {family: count.share for family, count in editor.coverage.families.items()}
    assert share['hypernym'] > 0.93 and share['sibling'] > 0.92 and share['hyponym'] > 0.87 and share['delete'] > 0.94
    assert 0.25 < share['synonym_verb'] < 0.37 and 0.1 < share['synonym_adjective'] < 0.22
    assert all(count.edited + sum(count.reasons.values()) == len(rows) for count in editor.coverage.families.values())
    assert len({edit.id for edit in edits}) == len(edits)


def test_a_synonym_does_not_repeat_the_word_behind_it(texts):
    found = texts('Do the women belong to a band?', 'synonym_verb')
    assert found and not any(' to to ' in text for text in found)
