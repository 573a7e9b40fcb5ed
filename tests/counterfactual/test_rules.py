"""Rules of tables of judged edits whose biases are known."""

import dataclasses
import json
import time

import numpy as np
import pytest
from scipy import special

from evil_jax.counterfactual import _evidence, judged, rules

WORDS = {
    'sibling': {
        'bedroom': 'bedroom.n.01', 'kitchen': 'kitchen.n.01', 'bathroom': 'bathroom.n.01', 'dog': 'dog.n.01',
        'cat': 'cat.n.01', 'bus': 'bus.n.01', 'car': 'car.n.01', 'fork': 'fork.n.01', 'apple': 'apple.n.01',
    },
    'colour_max_common': dict.fromkeys(('grey', 'red', 'green', 'blue', 'white', 'brown'), ''),
    'colour_max_uncommon': dict.fromkeys(('grey', 'red', 'green', 'blue', 'white', 'brown'), ''),
    'synonym_verb': {'see': 'see.v.01', 'wear': 'wear.v.02', 'hold': 'hold.v.02', 'eat': 'eat.v.01'},
    'delete': {'dog': 'dog.n.01', 'cat': 'cat.n.01', 'bus': 'bus.n.01', 'fork': 'fork.n.01'},
}  # fmt: skip
WANTED = {'synonym_verb': 'INV', 'delete': 'FREE'}
TARGETS = {'colour_max_common': ('yellow', 'black'), 'colour_max_uncommon': ('navy', 'azure'), 'delete': ('',)}
ROOMS = {'bedroom', 'kitchen', 'bathroom'}


def sound(row):
    """Probability that somebody who sees well keeps the answer."""
    return {'INV': 0.97, 'CHANGE': 0.03, 'FREE': 0.5}[row['expectation']]


def table(keeps, questions=60, families=tuple(WORDS), seed=0, blank=None, noop=None, **more):
    """`questions` of every word and family, three questions a picture, each answer kept with probability keeps(row)."""
    generator = np.random.default_rng(seed)
    rows = []
    for family in families:
        for place, (source, synset) in enumerate(WORDS[family].items()):
            for number in range(questions):
                targets = TARGETS.get(family, [word for word in WORDS[family] if word != source])
                row = dict(
                    family=family, source=source, source_synset=synset, target=targets[number % len(targets)],
                    asks=('what', 'count')[number % 2], expectation=WANTED.get(family, 'CHANGE'), senses=3,
                    # Common and uncommon colours are edits of the same questions.
                    # A picture has questions about several words.
                    example=f'{family[:9]} {source} {number}', image=f'picture {(number * len(WORDS) + place) // 3}',
                )  # fmt: skip
                rows.append(row | {'kept': bool(generator.random() < keeps(row))} | more)
    asked = sorted({(row['example'], row['image']) for row in rows})
    baselines = [
        dict(family=family, example=example, image=image, kept=bool(generator.random() < kept))
        for family, kept in (('blank', blank), ('noop', noop))
        if kept is not None
        for example, image in asked
    ]
    return of_rows(rows, baselines)


def of_rows(rows, baselines=None):
    builder = judged.Builder()
    beside = None
    if baselines:
        other = judged.Builder(builder.vocabularies)
        for row in baselines:
            other.add(**row)
    for row in rows:
        builder.add(**row)
    if baselines:
        beside = other.build()
    return builder.build(baselines=beside)


def told(found):
    return {(rule.family, rule.kind, rule.level, rule.source or rule.synset) for rule in found.rules}


@pytest.mark.parametrize('seed', range(3))
def test_a_sound_model_has_no_rules(lexicon, seed):
    found = rules.find(table(sound, seed=seed, blank=0.1), lexicon)
    assert found.rules == [] and found.unconfirmed == []
    assert [(rule.family, rule.kind) for rule in found.families] == [
        ('blank', ''), ('synonym_verb', ''), ('sibling', ''), ('colour_max', ''), ('delete', '')
    ]  # fmt: skip
    assert found.tested['sibling CHANGE STABLE'] > 10
    # Synonyms should be stable; with deletions, either would be well.
    assert [key for key in found.tested if key.startswith('synonym')] == ['synonym_verb INV SENSITIVE']
    assert {'delete FREE STABLE', 'delete FREE SENSITIVE'} <= set(found.tested)


def test_one_that_ignores_grey(lexicon):
    def keeps(row):
        return 0.98 if row['source'] == 'grey' and row['family'].startswith('colour') else sound(row)

    found = rules.find(table(keeps), lexicon)
    assert told(found) == {('colour_max', 'STABLE', 'source', 'grey')}
    (rule,) = found.rules
    assert (rule.n, rule.questions, rule.images, rule.targets, rule.any_target) == (120, 60, 60, 4, True)
    assert (rule.outcome, rule.expectation) == ('unwarranted', 'CHANGE')
    assert rule.rate == rule.k / 120 and 0.8 < rule.low < rule.rate <= rule.high
    assert 20 <= rule.n_effective <= 120
    assert rule.confirmed
    assert tuple(np.add(rule.discovery, rule.confirmation)) == (rule.k, 120)
    assert rule.rate_other < 0.1 and rule.q < 0.01 and rule.p_other < 0.01
    assert len(rule.examples) == 3 and all(name.startswith('colour_ma grey ') for name in rule.examples)
    low, high = (f'{end:.2f}'.removeprefix('0') for end in (rule.low, rule.high))
    k, n = rule.confirmation
    assert rule.sentence == (
        f'Where grey is replaced by any distant colour, the answer is kept: {rule.k} of 120 that should change it, '
        f'95 % interval {low} to {high}, 60 pictures. On the half of the pictures that confirms: {k} of {n}.'
    )


def test_targets_that_differ_are_told_of_each(lexicon):
    def keeps(row):
        return 0.98 if row['source'] == 'grey' and row['target'] == 'navy' else sound(row)

    found = rules.find(table(keeps, questions=120), lexicon)
    (rule,) = found.rules
    assert (rule.level, rule.source, rule.target) == ('target', 'grey', 'navy')
    assert rule.rate_other == pytest.approx(0.03, abs=0.03)  # of grey's other targets
    assert rule.sentence.startswith('Where grey is replaced by navy, the answer is kept: ')


def test_a_word_that_holds_on_average_only(lexicon):
    def keeps(row):
        if row['source'] != 'grey' or not row['family'].startswith('colour'):
            return sound(row)
        return 0.7 if row['target'] == 'navy' else 1.0

    found = rules.find(table(keeps, questions=120), lexicon)
    (rule,) = found.rules
    assert (rule.source, rule.any_target) == ('grey', False)
    assert rule.heterogeneity < 0.01
    assert rule.sentence.startswith('Where grey is replaced by distant colours on average, the answer is kept: ')


def test_one_that_cannot_tell_rooms_apart(lexicon):
    def keeps(row):
        return 0.96 if row['family'] == 'sibling' and row['source'] in ROOMS else sound(row)

    found = rules.find(table(keeps, questions=100), lexicon)
    assert told(found) == {('sibling', 'STABLE', 'class', 'room.n.01')}
    assert set(found.rules[0].members) == ROOMS
    assert found.rules[0].sentence.startswith('Where a kind of room (')
    without = rules.find(table(keeps, questions=100), None)
    assert told(without) == {('sibling', 'STABLE', 'source', room) for room in ROOMS}


def test_one_that_fails_on_one_room(lexicon):
    def keeps(row):
        return 0.96 if row['family'] == 'sibling' and row['source'] == 'kitchen' else sound(row)

    found = rules.find(table(keeps, questions=100), lexicon)
    assert told(found) == {('sibling', 'STABLE', 'source', 'kitchen')}


def test_one_that_reads_the_question_only(lexicon):
    found = rules.find(table(lambda row: 0.97, blank=0.97), lexicon)
    assert told(found) == {
        ('blank', 'STABLE', 'family', ''), ('sibling', 'STABLE', 'family', ''), ('colour_max', 'STABLE', 'family', '')
    }  # fmt: skip
    assert found.rules[0].sentence.startswith('With a blank picture, the answer is kept: ')
    # Deletions are free to keep the answer, and synonyms should: this is said, and no finding.
    families = {rule.family: rule for rule in found.families}
    assert (families['delete'].kind, families['delete'].outcome) == ('STABLE', 'kept')
    assert families['synonym_verb'].kind == ''


def test_one_that_does_not_look_has_no_habits(lexicon):
    keeps = lambda row: 0.98 if row['source'] == 'fork' else sound(row)
    unwarranted, habit = (('sibling', 'STABLE', 'source', 'fork'), ('delete', 'STABLE', 'source', 'fork'))
    assert told(rules.find(table(keeps, blank=0.5), lexicon)) == {unwarranted, habit}
    assert told(rules.find(table(keeps, blank=0.97), lexicon)) == {unwarranted, ('blank', 'STABLE', 'family', '')}


def test_what_changes_no_more_than_asking_again_is_no_rule(lexicon):
    sensitive = {('synonym_verb', 'SENSITIVE', 'family', '')}
    changes = lambda again: sensitive & told(rules.find(table(lambda row: 0.05, **again), lexicon))
    assert changes({}) == changes({'noop': 0.98}) == changes({'noop': 0.5}) == sensitive
    found = rules.find(table(lambda row: 0.05, noop=0.05), lexicon)
    assert not [rule for rule in (*found.rules, *found.unconfirmed) if rule.kind == 'SENSITIVE']


def test_words_that_contradict_a_whole_family_are_named(lexicon):
    two = lambda row: 0.2 if row['source'] in ('fork', 'apple') else 0.98
    mixed = rules.find(table(two, families=('sibling',)), lexicon)
    assert [rule.kind for rule in mixed.families] == ['']  # two words of nine are more than a tenth
    few = WORDS['sibling'] | {'horse': 'horse.n.01', 'train': 'train.n.01', 'cup': 'cup.n.01'}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(WORDS, 'sibling', few)
        found = rules.find(table(lambda row: 0.2 if row['source'] == 'fork' else 0.98, families=('sibling',)), lexicon)
    assert told(found) == {('sibling', 'STABLE', 'family', '')}
    assert found.rules[0].exceptions == ('fork',)
    assert 'Not so: fork.' in found.rules[0].sentence


def test_synonyms_that_change_the_answer_are_unwarranted(lexicon):
    found = rules.find(table(lambda row: 0.03 if row['source'] == 'see' else sound(row), questions=90), lexicon)
    assert told(found) == {('synonym_verb', 'SENSITIVE', 'source', 'see')}
    assert found.rules[0].outcome == 'unwarranted'
    assert 'the answer changes: ' in found.rules[0].sentence
    assert ' that should keep it, 95 % interval ' in found.rules[0].sentence


def test_habits_without_expectation(lexicon):
    def keeps(row):
        return 0.98 if row['family'] == 'delete' and row['source'] == 'fork' else sound(row)

    (rule,) = rules.find(table(keeps), lexicon).rules
    assert (rule.family, rule.source, rule.outcome) == ('delete', 'fork', 'kept')
    assert 'should' not in rule.sentence


def test_edits_are_compared_with_those_of_the_same_expectation(lexicon):
    """A sound model keeps "no" when it is asked for another colour, and changes "yes"."""

    def expected(row):
        return 'FREE' if row['asks'] == 'count' else 'CHANGE'

    def keeps(row):
        return 0.97 if expected(row) == 'FREE' else 0.03

    rows = table(keeps, questions=120, families=('sibling',))
    free = rows.where(asks='count')
    codes = np.where(free, rows.code('expectation', 'FREE'), rows.code('expectation', 'CHANGE')).astype(np.uint8)
    found = rules.find(dataclasses.replace(rows, expectation=codes), lexicon)
    assert found.rules == []
    assert [(rule.expectation, rule.kind) for rule in found.families] == [('CHANGE', ''), ('FREE', 'STABLE')]


def test_a_kept_answer_that_is_right_now_is_not_held_against_it(lexicon):
    found = rules.find(table(lambda row: 0.97 if row['source'] == 'grey' else sound(row), met=1), lexicon)
    assert found.rules == []


def test_a_habit_is_not_told_beside_the_same_rule_that_is_unwarranted(lexicon):
    rows = table(lambda row: 0.97 if row['source'] in ROOMS else 0.1, questions=160, families=('sibling',))
    for expectations in (('CHANGE', 'FREE'), ('FREE', ''), ('CHANGE', 'CHANGE')):
        codes = np.array([rows.code('expectation', name) for name in expectations], np.uint8)
        found = rules.find(dataclasses.replace(rows, expectation=codes[np.arange(len(rows)) % 2]), lexicon)
        assert [rule.synset for rule in found.rules] == ['room.n.01']
        assert found.rules[0].outcome == ('unwarranted' if 'CHANGE' in expectations else 'kept')


def test_of_stable_and_sensitive_habits_the_few_are_told(lexicon):
    def keeps(row):
        return {'fork': 0.98, 'bus': 0.02}.get(row['source'], 0.6)

    found = rules.find(table(keeps, questions=100, families=('sibling',), expectation='FREE'), lexicon)
    assert told(found) == {('sibling', 'STABLE', 'source', 'fork'), ('sibling', 'SENSITIVE', 'source', 'bus')}


@pytest.mark.parametrize('halves', [True, False])
@pytest.mark.parametrize('seed', range(2))
def test_what_is_told_holds_of_all_that_it_fits(seed, halves):
    """Answers to 'what' are kept, but of buses, which are told apart: of all of them only 78 % are."""
    generator = np.random.default_rng(seed)
    groups = [
        ('dog', 'what', 80, 0.97), ('dog', 'where', 80, 0.97), ('cat', 'what', 80, 0.97), ('cat', 'where', 80, 0.97),
        ('fork', 'what', 40, 0.97), ('fork', 'where', 40, 0.1), ('bus', 'what', 50, 0.03), ('bus', 'where', 50, 0.03),
        ('apple', 'where', 900, 0.5),
    ]  # fmt: skip
    whole = of_rows(
        dict(family='delete', source=word, asks=asks, expectation='FREE', example=f'{word} {asks} {i}',
             image=f'{word} {asks} {i}', kept=bool(generator.random() < rate))
        for word, asks, number, rate in groups
        for i in range(number)
    )  # fmt: skip
    found = rules.find(whole, None, rules.Settings(seed=seed, halves=halves))
    assert told(found) == {('delete', 'STABLE', 'source', word) for word in ('dog', 'cat')} | {
        ('delete', 'SENSITIVE', 'source', 'bus')
    }
    for rule in [*found.rules, *found.unconfirmed]:
        fitting = whole.where(**{rule.level: rule.source or rule.condition[1]})
        assert rule.n == fitting.sum()


def test_a_condition_that_most_of_its_edits_meet_for_another_reason(lexicon):
    """Rooms keep their answers, and most words of one sense are rooms."""
    rows = table(lambda row: 0.97 if row['source'] in ROOMS else 0.4, questions=160, families=('sibling',), seed=1)
    single = np.isin(rows.texts('source'), [*ROOMS, 'fork'])
    assert rows.kept[single].mean() > 0.81
    rows = dataclasses.replace(rows, senses=np.where(single, 1, 3).astype(np.uint16))
    (rule,) = rules.find(rows, lexicon).rules
    assert (rule.level, rule.synset) == ('class', 'room.n.01')


def test_what_most_of_a_family_does_is_no_finding(lexicon):
    """Answers change, but in a third of the questions, where half are kept."""

    rows = table(lambda row: 0, questions=120, families=('sibling',), expectation='FREE')
    asks = np.where(np.arange(len(rows)) % 3 == 0, rows.code('asks', 'what'), rows.code('asks', 'count'))
    kept = np.random.default_rng(0).random(len(rows)) < np.where(asks == rows.code('asks', 'what'), 0.6, 0.04)
    found = rules.find(dataclasses.replace(rows, asks=asks.astype(np.uint16), kept=kept), lexicon)
    assert found.rules == []
    assert [rule.kind for rule in found.families] == ['']


def test_kinds_of_questions(lexicon):
    def keeps(row):
        return 0.97 if row['family'] == 'delete' and row['asks'] == 'count' else sound(row)

    (rule,) = rules.find(table(keeps, questions=120), lexicon).rules
    assert (rule.level, rule.condition) == ('asks', ('asks', 'count'))
    assert rule.sentence.startswith('In questions for a number, where a noun is deleted, the answer is kept: ')


def test_what_holds_in_one_half_only_is_not_confirmed(lexicon):
    whole = table(sound)
    (evidence,) = [e for e in _evidence.gather(whole, True, 0) if (e.family, e.kind) == ('colour_max', 'STABLE')]
    first = set(evidence.edits.texts('image')[~evidence.second])
    assert 0.4 < len(first) / len(set(whole.texts('image'))) < 0.6

    def keeps(row):
        lucky = row['source'] == 'grey' and row['family'].startswith('colour') and row['image'] in first
        return 1.0 if lucky else sound(row)

    found = rules.find(table(keeps), lexicon)
    assert found.rules == []
    assert [(rule.source, rule.confirmed) for rule in found.unconfirmed] == [('grey', False)]
    at_once = rules.find(table(keeps), lexicon, rules.Settings(halves=False))
    assert at_once.rules == []  # half of the answers are kept


def test_support():
    def keeps(row):
        return 1.0 if row['source'] == 'grey' else 0.0

    at_once = rules.Settings(halves=False)
    colours = ('colour_max_common',)
    assert len(rules.find(table(keeps, 42, colours), None, at_once).rules) == 1
    more = dataclasses.replace(at_once, min_questions=43)
    assert rules.find(table(keeps, 42, colours), None, more).rules == []
    more = dataclasses.replace(at_once, min_images=43)
    assert rules.find(table(keeps, 42, colours), None, more).rules == []
    # 60 questions about three pictures are worth three.
    rows = table(keeps, 60, colours)
    few = dataclasses.replace(rows, image=rows.image % 3)
    few.names['image'][:] = [f'picture {i}' for i in range(len(few.names['image']))]
    assert rules.find(few, None, dataclasses.replace(at_once, min_images=2)).rules == []


def test_the_order_of_rows_and_the_seed(lexicon):
    def keeps(row):
        return 0.95 if row['source'] in ('grey', 'bedroom', 'kitchen', 'see') else sound(row)

    whole = table(keeps)
    found = rules.find(whole, lexicon)
    shuffled = whole.take(np.random.default_rng(0).permutation(len(whole)))
    other = rules.find(shuffled, lexicon)
    examples = lambda found: [dataclasses.replace(rule, examples=()) for rule in found.rules]
    assert len(found.rules) >= 2
    assert examples(found) == examples(other)
    again = rules.find(whole, lexicon, rules.Settings(seed=1))
    assert {rule.source for rule in again.rules} == {rule.source for rule in found.rules}
    assert [rule.discovery for rule in again.rules] != [rule.discovery for rule in found.rules]


def test_rules_are_json(lexicon):
    found = rules.find(table(lambda row: 0.97, blank=0.97), lexicon)
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert list(document) == ['settings', 'rules', 'unconfirmed', 'families', 'tested']
    assert document['rules'][0]['family'] == 'blank'
    assert document['rules'][0]['p_other'] is None
    assert document['settings']['tau'] == 0.8


def test_settings_that_make_no_sense():
    for wrong in (dict(tau=1.0), dict(alpha=0.0), dict(min_images=0)):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            rules.Settings(**wrong)


def test_no_edits(lexicon):
    found = rules.find(of_rows([]), lexicon)
    assert (found.rules, found.families, found.tested) == ([], [], {})


@pytest.mark.acceptance
def test_a_million_edits_take_seconds(lexicon, measured):
    whole = table(lambda row: 0.95 if row['source'] == 'grey' else sound(row), questions=300)
    rows = np.random.default_rng(0).integers(len(whole), size=1_000_000)
    start = time.monotonic()
    found = rules.find(whole.take(rows), lexicon)
    measured('rules of a million edits: seconds', '<=', 15, time.monotonic() - start)
    measured('rules of a million edits: found', '==', 1, len(found.rules))


@pytest.mark.acceptance
@pytest.mark.parametrize('halves', [True, False])
def test_false_discoveries_among_words_with_all_kinds_of_rates(halves, measured):
    """150 words, most of them below tau or just above; answers about a picture correlate by .5 (probits)."""
    words, each, false, found = 150, 80, 0, 0
    row = dict(family='sibling', target='new', expectation='CHANGE')
    whole = of_rows(
        row
        | dict(source=f'{word}', example=f'{word} {number}', image=f'{(word * each + number) % (words * each // 5)}')
        for word in range(words)
        for number in range(each)
    )
    for seed in range(40):
        generator = np.random.default_rng(seed)
        rate = np.where(generator.random(words) < 0.1, 0.95, np.clip(generator.beta(8, 4, words), 0.05, 0.9))
        picture = generator.normal(size=len(whole.names['image']))[whole.image]
        score = np.sqrt(0.5) * picture + np.sqrt(0.5) * generator.normal(size=len(whole))
        kept = special.ndtr(score) < np.repeat(rate, each)
        for rule in rules.find(dataclasses.replace(whole, kept=kept), None, rules.Settings(halves=halves)).rules:
            found += 1
            false += rule.level != 'source' or rate[int(rule.source)] < 0.8
    what = 'with halves' if halves else 'without halves'
    measured(f'rules of 40 tables of words, {what}: found', '>=', 300, found)
    measured(f'rules of 40 tables of words, {what}: false share', '<=', 0.05, false / found)
