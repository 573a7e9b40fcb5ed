"""Sources with every error planted: all are found, and no row is lost."""

import json
import os

import pytest
from planted_sources import CLASSES, SPLIT, TEST, World, esnli_row, snli_row

from evil_jax.construction import merge, pairs


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_all_planted_errors_are_found_and_no_row_is_lost(world):
    planted = {}

    def plant(reason, row, explained=None):
        world.rows.append(row)
        world.explained += [explained] if explained else []
        planted.setdefault(reason, []).append(row['pairID'])

    plant('no_label', snli_row('103', 2, 'neutral', gold_label='-'))
    genome = snli_row('103', 2, 'neutral', pairID='vg_len12r1n')
    plant('visual_genome', genome, esnli_row(genome))
    plant('duplicate', snli_row('100', 0, 'neutral', sentence2='Another claim.'))
    plant('no_explanation', snli_row('103', 2, 'contradiction'))
    blank = snli_row('103', 2, 'entailment')
    plant('no_explanation', blank, esnli_row(blank, Explanation_1=' '))
    other = snli_row('104', 2, 'entailment')
    plant('text_mismatch', other, esnli_row(other, Sentence2='Claim entailment of 104 and 3.'))
    other = snli_row('104', 2, 'neutral')
    plant('text_mismatch', other, esnli_row(other, Sentence1='No caption.'))
    other = snli_row('104', 2, 'contradiction')
    plant('label_mismatch', other, esnli_row(other, gold_label='neutral'))
    same = snli_row('104', 3, 'neutral')
    world.rows.append(same)  # case, blanks and marks are no difference
    world.explained.append(esnli_row(same, Sentence2=same['sentence2'].upper().replace('.', '  . ')))
    world.explained += [world.explained[3] | {'Explanation_1': 'Another.'}, esnli_row(snli_row('777', 0, 'neutral'))]
    planted['no_split'] = [row['pairID'] for row in world.rows if row['pairID'].startswith('105')]

    found, kept, dropped = world.merge(), world.merged(), world.dropped()
    by_reason = {}
    for row in dropped:
        by_reason.setdefault(row['reason'], []).append(row['id'])
    planted['duplicate'] += [world.explained[3]['pairID']]
    assert {reason: sorted(ids) for reason, ids in by_reason.items()} == {r: sorted(ids) for r, ids in planted.items()}
    assert len(kept) + len(dropped) == len(world.rows) + 1  # an explanation's row is among the dropped ones
    assert len(kept) == found.total == 9 * 6 + 1
    assert all(pair.split == SPLIT[pair.image_id] for pair in kept.values())
    assert found.counts == {
        split: dict.fromkeys(CLASSES, 2 * n) | ({'neutral': 2 * n + 1} if split == 'train' else {})
        for split, n in (('train', 5), ('dev', 2), ('test', 2))
    }
    assert found.dropped['text_mismatch'] == {'train': 2}
    assert found.dropped['no_label'] == {'train': 1}
    assert found.published == {
        'train': {'ours': 36, 'paper': 529_527}, 'dev': {'ours': 12, 'paper': 17_858},
        'test': {'ours': 12, 'paper': 17_901},
    }  # fmt: skip
    assert found.explanations_without_pair == 1
    assert any('777.jpg#0r1n' in line for line in world.told)
    assert {(file['role'], file['rows']) for file in found.files} >= {('explanations', 34), ('captions', None)}
    details = {(row['id'], row['reason']): row['detail'] for row in dropped}
    assert "'No caption.'" in details['104.jpg#2r1n', 'text_mismatch']
    assert 'snli_1.0_dev.jsonl:2' in details['100.jpg#0r1n', 'duplicate']
    assert json.loads((world.folder / 'out' / 'merged.json').read_text())['counts'] == found.counts


def test_a_pair_has_what_the_sources_say(world):
    world.rows[0]['sentence1'] = ''  # a caption stands for it
    world.explained[0] |= {'Sentence1': '', 'Sentence1_marked_1': '', 'Explanation_2': 'And so.'}
    world.merge()
    pair = world.merged()['100.jpg#0r1c']
    assert pair == pairs.Pair(
        '100.jpg#0r1c', '100', 'Caption 0 of 100 .', 'Claim contradiction of 100 and 0.', 'contradiction', 'test',
        ['Why 100.jpg#0r1c.', 'And so.'], [[], []], '', f'{world.folder}/snli_1.0_dev.jsonl:1',
    )  # fmt: skip
    assert world.merged()['100.jpg#1r1c'].marked == [['Caption'], []]


def test_shifted_explanations(world):
    texts = [row['Sentence2'] for row in world.explained]
    for row, text in zip(world.explained, texts[1:] + texts[:1]):
        row['Sentence2'] = text
    wanted = r'54 of 54 pairs \(100.0%\) .* shifted or of another version. .*: 100.jpg#0r1c: hypothesis at .*; 100'
    with pytest.raises(ValueError, match=wanted):
        world.merge()
    assert not list((world.folder / 'out').iterdir())


def test_what_is_an_error_unless_it_is_allowed(world):
    world.rows += world.rows[:12]
    message = r"pairs: pairIDs stand there more than once, 12 ids: '100.jpg#0r1c', .*, \.\.\.; the first one at "
    with pytest.raises(ValueError, match=message + r'.*train.jsonl:25 was already at .*dev.jsonl:1\.'):
        world.merge(allow=())
    world.explained.append(world.explained[7])
    del world.rows[60:], world.captions['103'], world.captions['104']
    with pytest.raises(ValueError, match=r"construct.explanations: pairIDs .* 1 id: '101.jpg#0r1n'; the first"):
        world.merge(allow=('captions',))
    with pytest.raises(
        ValueError, match=r"pictures of 12 pairs have no captions, 2 ids: '103', '104'. construct.allow"
    ):
        world.merge()
    assert not list((world.folder / 'out').iterdir())
    assert world.merge(allow=('captions', 'duplicates')).without_captions == 12
    with pytest.raises(ValueError, match=r"construct.allow has 'all', wanted some of duplicates, captions"):
        world.merge(allow=('all',))


def test_nothing_is_done_again_for_the_same_files(world):
    sources = world.sources()
    first = world.merge(sources)
    merged = world.folder / 'out' / 'merged.jsonl'
    content, made = merged.read_bytes(), merged.stat().st_ino
    os.utime(sources.pairs[0], (1, 1))  # copied anew, the same bytes
    assert world.merge(sources).counts == first.counts
    assert merged.stat().st_ino == made
    world.merge(sources, dev_images=3)
    assert merged.read_bytes() != content
    world.merge(sources)
    assert merged.read_bytes() == content
    made = merged.stat().st_ino
    text = sources.pairs[0].read_text()
    sources.pairs[0].write_text(text.replace('Claim neutral', 'CLAIM NEUTRAL'))  # as long as before
    world.merge(sources)
    assert merged.stat().st_ino != made
    merged.write_bytes(b'')
    (merged.parent / '.merged.jsonl.0123abcd').touch()  # of a killed process
    world.merge(sources)
    assert b'CLAIM' in merged.read_bytes()
    assert len(list(merged.parent.iterdir())) == 4


def test_an_error_leaves_what_was_merged_before(world):
    world.merge()
    before = {path.name: path.read_bytes() for path in (world.folder / 'out').iterdir()}
    world.rows[40]['gold_label'] = 'maybe'
    with pytest.raises(ValueError, match=r"snli_1.0_train.jsonl:11: gold_label is 'maybe'"):
        world.merge()
    assert {path.name: path.read_bytes() for path in (world.folder / 'out').iterdir()} == before


def test_snli_ve_keeps_its_split(world):
    rows = [row | {'Flickr30K_ID': row['captionID'].partition('.')[0]} for row in world.rows]
    files = [
        world.write(f'snli_ve_{split}.jsonl', ''.join(json.dumps(row) + '\n' for row in part))
        for split, part in (('train', rows[:30]), ('dev', rows[30:48]), ('test', rows[48:]))
    ]
    found = world.merge(world.sources(pairs=files, splits={}))
    assert {split: sum(classes.values()) for split, classes in found.counts.items()} == {
        'train': 30,
        'dev': 18,
        'test': 12,
    }
    assert found.published['dev']['ours'] == 18
    files[0] = files[0].rename(world.folder / 'snli_ve.jsonl')
    with pytest.raises(ValueError, match=r"snli_ve.jsonl:1: nothing tells the split of '100.jpg#0r1c': wanted"):
        world.merge(world.sources(pairs=files, splits={}))


def test_own_pairs_bring_captions_and_explanations(world):
    own = {'image_id': 'a/x.png', 'hypothesis': 'It sleeps.', 'label': 'neutral', 'premise': 'A dog.'}
    rows = [
        own | {'id': 1, 'split': 'dev', 'explanations': ['So.', 'And so.'], 'captions': ['A dog.', 'A pet.']},
        own | {'id': '2', 'original': 'entailment', 'marked': [['dog'], []]},
    ]
    lines = world.write('own.test.jsonl', ''.join(json.dumps(row) + '\n' for row in rows))
    table = world.write(
        'own.csv',
        'pairID,Flickr30kID,hypothesis,gold_label,explanation,explanation_2,split,captions\n'
        '3.jpg#1r1n,3.jpg,"It, so.",entailment,One.,,train,"[""A."", ""B.""]"\n4,,No picture.,-,,,train,\n',
    )
    sources = merge.Sources([lines, table])
    found, kept = world.merge(sources, allow=()), world.merged()
    assert [(p.id, p.image_id, p.split, p.premise, p.explanations, p.original) for p in kept.values()] == [
        ('1', 'x', 'dev', 'A dog.', ['So.', 'And so.'], ''),
        ('2', 'x', 'test', 'A dog.', [], 'entailment'),  # where no explanations are named, none are needed
        ('3.jpg#1r1n', '3', 'train', 'B.', ['One.'], ''),
    ]
    assert (found.dropped, found.published, found.without_captions) == ({'no_label': {'train': 1}}, {}, 0)
    assert merge.captions(sources, world.folder / 'out') == {'x': ['A dog.', 'A pet.'], '3': ['A.', 'B.']}
    lines.write_text(lines.read_text() + json.dumps(rows[0] | {'id': '5', 'captions': ['A cat.']}) + '\n')
    with pytest.raises(
        ValueError, match=r"own.test.jsonl:3: picture 'x' has other captions than in .*own.test.jsonl:1"
    ):
        world.merge(sources)
    again = merge.Sources([world.folder / 'out' / 'merged.jsonl'])  # what was merged is a source too
    before = [pair.to_json() | {'where': ''} for pair in kept.values()]
    merge.merge(again, world.folder / 'again', tell=world.told.append)
    assert [p.to_json() | {'where': ''} for p in pairs.read(world.folder / 'again' / 'merged.jsonl')] == before


def test_published_lines_and_released_rows_are_pairs_too(shared, tmp_path):
    data = shared / 'data'
    sources = merge.Sources([data / 'snli' / 'esnli_s1.dev', data / 'esnlive' / 'esnlive_test.csv'])
    found = merge.merge(sources, tmp_path, tell=lambda text: None)
    assert {split: sum(classes.values()) for split, classes in found.counts.items()} == {'dev': 9_842, 'test': 14_740}
    assert found.counts['test'] == {'contradiction': 5_721, 'neutral': 3_801, 'entailment': 5_218}
    assert found.dropped == {}
    first, *_, last = pairs.read(tmp_path / 'merged.jsonl')
    assert first.explanations[0] == 'the to go packages may not be from lunch .'
    assert (last.image_id, last.split) == (last.id.partition('.')[0], 'test')


@pytest.mark.parametrize(
    ('name', 'text', 'message'),
    [
        (
            'a.csv',
            'pairID,Sentence1,Sentence2,Explanation_1\n',
            'which is e-SNLI and belongs to construct.explanations',
        ),
        ('a.jsonl', '{"a": 1}\n', 'found a first line with a'),
        ('a.json', '[1]', r"found '\[1\]'"),
        ('a.txt', '', 'found nothing'),
        ('a.train.jsonl', '{"id": "1", "hypothesis": "It."}\n', "a.train.jsonl:1: has no 'image_id'"),
        ('a.train.jsonl', '{"hypothesis": "It.", "id": "1", "image_id": "2", "label": "no"}', "label is 'no'"),
        ('a.csv', 'id,image_id,hypothesis,label,split\n1,2,It.,neutral,all\n', "a.csv:2: split is 'all'"),
        (
            'a.csv',
            'id,image_id,hypothesis,label,split\n1,2,It.,-,dev\n',
            r'no pair is left after merging \(no_label 1\)',
        ),
    ],
)
def test_no_pairs(world, name, text, message):
    with pytest.raises(ValueError, match=message):
        world.merge(merge.Sources([world.write(name, text)]))


def test_split_lists(world):
    with pytest.raises(ValueError, match=r'construct.splits is empty: SNLI is split anew by picture'):
        world.merge(world.sources(splits={}))
    world.lists['test'] = [*TEST, '103']
    with pytest.raises(ValueError, match=r"test.lst and .*trainval.lst have the same pictures, 1 id: '103'"):
        world.merge()
    world.lists['test'] = TEST
    with pytest.raises(
        ValueError, match=r'trainval.lst has 7 pictures, of which dev gets construct.dev_images=7: that'
    ):
        world.merge(dev_images=7)
    path = world.folder / 'test.lst'
    for value, message in (
        ('x', "construct.splits has 'x', wanted 'trainval="),
        (f'val={path}', "construct.splits has 'val="),
        (f'test={path},test={path}', 'has test twice'),
        (f'trainval={path},dev={path}', 'has trainval and dev'),
        ('test=none.lst', 'construct.splits: none.lst: there is no such file'),
    ):
        with pytest.raises(ValueError, match=message):
            merge.parse_splits(value)
    assert merge.parse_splits('') == {}
