"""What a sound model does, by family, question and label, and by an oracle."""

import itertools

import pytest

from evil_jax.counterfactual import edits, expectations
from evil_jax.records import Example

E, N, C = 'entailment', 'neutral', 'contradiction'


def edit(family, asks='what', **changes):
    given = dict(
        id=f'1#{family}', example_id='1', image_id='9', family=family, original='Is there a dog?',
        text='Is there a cat?', span=(11, 14), target_span=(11, 14), source='dog', target='cat', asks=asks, role='head',
    )  # fmt: skip
    return edits.Edit(**(given | changes))


def question(answer=None):
    return Example('1', '9', 'Is there a dog?', annotations=answer and [answer] * 10)


def statement(label):
    return Example('1', '9', 'There is a dog.', label=label)


def expected(family, example, **changes):
    found = expectations.expect(edit(family, **changes), example)
    assert found.why and '{' not in found.why
    return found.expectation


@pytest.mark.parametrize(('family', 'asks', 'answer', 'wanted'), [
    ('synonym_verb', 'what', 'ball', 'INV'),
    ('synonym_adjective', 'yes/no', 'no', 'INV'),
    ('hypernym', 'colour', 'red', 'INV'),
    ('hypernym', 'where', None, 'INV'),
    ('hypernym', 'yes/no', 'yes', 'INV'),
    ('hypernym', 'yes/no', 'no', 'FREE'),
    ('hypernym', 'yes/no', None, 'FREE'),
    ('hypernym', 'count', '3', 'FREE'),
    ('hypernym', 'which', 'left', 'FREE'),
    ('hyponym', 'yes/no', 'no', 'INV'),
    ('hyponym', 'yes/no', 'yes', 'FREE'),
    ('hyponym', 'what', 'ball', 'FREE'),
    ('sibling', 'yes/no', 'yes', 'FREE'),
    ('sibling', 'colour', 'red', 'FREE'),
    ('colour_max_common', 'what', 'ball', 'CHANGE'),
    ('colour_max_uncommon', 'yes/no', 'yes', 'CHANGE'),
    ('colour_max_uncommon', 'yes/no', 'no', 'FREE'),
    ('colour_max_common', 'count', '2', 'CHANGE'),
    ('colour_max_common', 'count', '0', 'FREE'),
    ('colour_min_common', 'yes/no', 'no', 'INV'),
    ('colour_min_uncommon', 'count', '2', 'INV'),
    ('delete', 'what', 'ball', 'FREE'),
    ('delete', 'count', '2', 'FREE'),
])  # fmt: skip
def test_the_table(family, asks, answer, wanted):
    assert expected(family, question(answer), asks=asks) == wanted


@pytest.mark.parametrize(('family', 'role', 'asks', 'answer', 'wanted'), [
    ('delete', 'modifier', 'what', 'ball', 'INV'),
    ('delete', 'modifier', 'yes/no', 'yes', 'INV'),
    ('delete', 'modifier', 'yes/no', 'no', 'FREE'),
    ('delete', 'modifier', 'count', '2', 'FREE'),
    ('delete', 'of', 'what', 'ball', 'FREE'),
    ('hypernym', 'of', 'what', 'poodle', 'FREE'),
])  # fmt: skip
def test_the_role_of_a_noun(family, role, asks, answer, wanted):
    assert expected(family, question(answer), asks=asks, role=role) == wanted


@pytest.mark.parametrize(('text', 'role', 'wanted'), [
    ('What animal is it?', 'head', 'FREE'), ('On what animal does he sit?', 'head', 'FREE'),
    ('What is the animal eating?', 'head', 'INV'), ('What animal feed is it?', 'modifier', 'INV'),
])  # fmt: skip
def test_more_general_than_what_is_asked_for(text, role, wanted):
    """What organism it is may be answered by 'a plant'; what the organism eats is what the animal eats."""
    start = text.index('animal')
    words = dict(source='animal', target='organism', original=text, span=(start, start + 6), role=role)
    assert expected('hypernym', question('dog'), **words) == wanted


@pytest.mark.parametrize('family', edits.FAMILIES)
def test_only_synonyms_keep_a_label_that_is_not_known(family):
    found = expected(family, statement(None), asks='statement', original='There is a dog.')
    assert found == ('INV' if family.startswith('synonym') else 'FREE')


def test_every_family_has_rows_whatever_is_asked():
    for family, asks, answer in itertools.product(edits.FAMILIES, ('', 'colour', 'yes/no', 'why'), ('yes', 'x', None)):
        assert expected(family, question(answer), asks=asks) in ('INV', 'CHANGE', 'FREE')
    assert expectations.LABELS.keys() == set(edits.FAMILIES)


def test_words_are_in_the_reason():
    found = expectations.expect(edit('hypernym', source='dog', target='{canine}'), question())
    assert found.why == '{canine} is more general than dog and means it, too' and found.expected is None


@pytest.mark.parametrize(('family', 'label', 'wanted', 'labels'), [
    ('synonym_verb', E, 'INV', (E,)), ('synonym_adjective', N, 'INV', (N,)), ('synonym_verb', C, 'INV', (C,)),
    ('hypernym', E, 'INV', (E,)), ('hypernym', N, 'FREE', (E, N)), ('hypernym', C, 'FREE', None),
    ('hyponym', E, 'FREE', None), ('hyponym', N, 'FREE', (N, C)), ('hyponym', C, 'INV', (C,)),
    ('sibling', E, 'CHANGE', (N, C)), ('sibling', N, 'FREE', None), ('sibling', C, 'FREE', None),
    ('colour_max_common', E, 'CHANGE', (N, C)), ('colour_max_uncommon', N, 'FREE', None),
    ('colour_min_common', E, 'FREE', (E, N)), ('colour_min_uncommon', C, 'FREE', None),
    ('delete', E, 'INV', (E,)), ('delete', N, 'FREE', (E, N)), ('delete', C, 'FREE', None),
])  # fmt: skip
def test_labels_by_natural_logic(family, label, wanted, labels):
    found = expectations.expect(edit(family, 'statement'), statement(label))
    assert (found.expectation, found.expected) == (wanted, labels)
    assert found.why


@pytest.mark.parametrize(('family', 'source', 'target', 'asked', 'labels'), [
    ('colour_min_uncommon', 'red', 'crimson', 'INV', (E, N)), ('colour_min_common', 'red', 'brown', 'FREE', None),
    ('colour_min_common', 'silver', 'gray', 'INV', (E, N)), ('colour_min_uncommon', 'Sky Blue', 'azure', 'INV', (E, N)),
    ('colour_max_common', 'red', 'green', 'CHANGE', (N, C)), ('colour_max_common', 'navy', 'blue', 'FREE', None),
    ('colour_min_common', 'reddish', 'brown', 'INV', (E, N)),
])  # fmt: skip
def test_colours_that_people_call_the_same(family, source, target, asked, labels):
    words = dict(source=source, target=target, source_lemma=source, target_lemma=target)
    assert expected(family, question('ball'), **words) == asked
    assert expectations.expect(edit(family, 'statement', **words), statement(E)).expected == labels


@pytest.mark.parametrize('family', edits.FAMILIES)
@pytest.mark.parametrize('example', [statement(E), question('yes')], ids=['statement', 'question'])
def test_under_a_negation_only_synonyms_keep(family, example):
    found = expectations.expect(edit(family, 'yes/no', negated=True), example)
    assert found.expectation == ('INV' if family.startswith('synonym') else 'FREE')
    assert 'negation' in found.why or family.startswith('synonym')


def test_joint_renaming_keeps_the_choice():
    example = Example('1', '9', 'Is there a dog?', choices=['a dog', 'b', 'c', 'd'], label=0)
    joint = edit('sibling', choices=['a cat', 'b', 'c', 'd'])
    assert expectations.expect(joint, example, lambda *_: 'no').expectation == 'INV'
    assert expectations.expect(edit('sibling'), example).expectation == 'FREE'


def test_baselines_are_left_alone():
    found = expectations.expect(edit('noop'), question(), lambda *_: 'yes')
    assert (found.expectation, found.expected, found.why) == ('', None, '')


def says(**answers):
    """An oracle with an answer for each text, by its last word."""
    return lambda example, text: answers.get(text.rstrip('?.').split()[-1])


def test_an_oracle_decides():
    found = expectations.expect(edit('sibling'), question('yes'), says(dog='yes', cat='no'))
    assert (found.expectation, found.expected) == ('CHANGE', ('no',))
    assert found.why == '"no" is right, no longer "yes": says the oracle'
    found = expectations.expect(edit('colour_max_common'), question(), says(dog='yes', cat='Yes'))
    assert (found.expectation, found.expected) == ('INV', ('Yes',))
    found = expectations.expect(edit('hyponym', 'statement'), statement(E), says(dog=E, cat=N))
    assert (found.expectation, found.expected) == ('CHANGE', (N,))
    near = dict(source_lemma='red', target_lemma='crimson')
    found = expectations.expect(edit('colour_min_common', **near), question(), says(dog='yes', cat='no'))
    assert (found.expectation, found.expected) == ('CHANGE', ('no',))


def test_an_oracle_that_does_not_know_or_is_contradicted():
    for oracle in (says(), says(dog='yes'), says(cat='no'), says(dog='no', cat='no')):
        found = expectations.expect(edit('sibling', 'yes/no'), question('yes'), oracle)
        assert (found.expectation, found.expected) == ('FREE', None)


@pytest.mark.parametrize(('family', 'asks', 'gold', 'other'), [
    ('hypernym', 'colour', 'purple', 'blue'), ('hypernym', 'yes/no', 'yes', 'no'), ('hyponym', 'yes/no', 'no', 'yes'),
])  # fmt: skip
def test_an_oracle_that_denies_what_follows_from_the_words(family, asks, gold, other):
    """The couch is purple: of the only seat the same is so, and another seat is not meant."""
    found = expectations.expect(edit(family, asks), question(gold), says(dog=gold, cat=other))
    assert (found.expectation, found.expected) == ('INV', None)
    found = expectations.expect(edit(family, asks), question(gold), says(dog=gold, cat=gold))
    assert (found.expectation, found.expected) == ('INV', (gold,))


def test_both_spellings_of_gray_are_right():
    for gold in ('gray', 'grey', None):
        found = expectations.expect(edit('sibling', 'colour'), question(gold), says(dog='grey', cat='dark gray'))
        assert (found.expectation, found.expected) == ('CHANGE', ('dark gray', 'dark grey'))
        found = expectations.expect(edit('sibling', 'colour'), question(gold), says(dog='gray', cat='gray'))
        assert (found.expectation, set(found.expected)) == ('INV', {'gray', 'grey'})


class Shows:
    """An oracle that only knows whether the new thing is there."""

    why = 'seen'

    def __init__(self, seen):
        self.seen = seen

    def __call__(self, example, text):
        return None

    def shows(self, edit, example):
        return self.seen


@pytest.mark.parametrize(('family', 'asks', 'gold', 'seen', 'wanted'), [
    ('sibling', 'colour', 'red', False, 'CHANGE'), ('sibling', 'colour', 'red', True, 'FREE'),
    ('sibling', 'yes/no', 'yes', False, 'CHANGE'), ('sibling', 'yes/no', 'no', False, 'FREE'),
    ('sibling', 'yes/no', None, False, 'FREE'), ('sibling', 'count', '3', False, 'CHANGE'),
    ('sibling', 'count', '0', False, 'FREE'), ('colour_max_common', 'what', 'ball', True, 'FREE'),
    ('colour_max_common', 'what', 'ball', False, 'CHANGE'), ('colour_max_common', 'what', 'ball', None, 'CHANGE'),
    ('colour_min_common', 'what', 'ball', False, 'INV'), ('hyponym', 'what', 'ball', False, 'FREE'),
    ('hypernym', 'what', 'ball', True, 'INV'), ('delete', 'what', 'ball', False, 'FREE'),
])  # fmt: skip
def test_what_the_picture_lacks(family, asks, gold, seen, wanted):
    found = expectations.expect(edit(family, asks), question(gold), Shows(seen))
    assert found.expectation == wanted and found.expected is None
    if family == 'sibling':
        assert found.why.endswith(': seen') and 'picture' in found.why
    negated = expectations.expect(edit(family, asks, negated=True), question(gold), Shows(seen))
    assert negated.expectation == 'FREE'
    labelled = expectations.expect(edit('sibling', 'statement'), statement(E), Shows(True))
    assert labelled.expected == (N, C)
