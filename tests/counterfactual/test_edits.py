"""Records of edits and their settings: what they refuse, and their way through JSON."""

import json

import pytest

from evil_jax.counterfactual.edits import FAMILIES, Edit, Settings


def edit(**changes):
    fields = dict(
        id='7#hypernym', example_id='7', image_id='3', family='hypernym', original='Is the dog old?',
        text='Is the canine old?', span=(7, 10), target_span=(7, 13), source='dog', target='canine',
    )  # fmt: skip
    return Edit(**fields | changes)


def through_json(record):
    return Edit.from_json(json.loads(json.dumps(record.to_json())))


def test_an_edit_comes_back_from_json():
    full = edit(
        source_synset='dog.n.01', target_synset='canine.n.02', sense='lexicon', sense_rank=1, sense_count=7,
        how='first', path_similarity=0.5, frequency=(42, 0), lemma_rule='entry', tagger='heuristic', role='head',
        asks='yes/no', quality=0.25, adjusted=('a>an',), choices=['a', 'b'], objects=['dog'], expectation='INV',
        expected=('yes',), why='a dog is a canine',
    )  # fmt: skip
    assert through_json(full) == full
    assert through_json(edit()) == edit()


def test_what_an_edit_does_not_have_is_not_written():
    assert sorted(edit().to_json()) == sorted(
        ['id', 'example_id', 'image_id', 'family', 'original', 'text', 'span', 'target_span', 'source', 'target']
    )
    assert edit(path_similarity=0.5, distance=0.0).to_json()['distance'] == 0.0


@pytest.mark.parametrize('row, message', [
    ([], 'wanted a JSON object, found list'),
    (edit().to_json() | {'id': 7}, "field 'id' is 7, wanted str"),
    (edit().to_json() | {'twin': 1}, "field 'twin' is 1, wanted bool"),
    (edit().to_json() | {'sense_rank': True}, "field 'sense_rank' is True, wanted int"),
    (edit().to_json() | {'sens': 'first'}, "unknown field 'sens' of Edit. Did you mean 'sense'"),
    ({'id': '7'}, "missing field 'example_id' of Edit"),
    (edit().to_json() | {'expectation': 'MAYBE'}, "expectation of '7#hypernym' is 'MAYBE'"),
])  # fmt: skip
def test_what_is_no_edit(row, message):
    with pytest.raises(ValueError, match='^.*' + message.replace('(', r'\(')):
        Edit.from_json(row)


def test_settings_of_lists_can_be_keys():
    settings = Settings.of('stoikou2023', families=['delete', 'sibling'] * 2, siblings=[['circle', 'square']], seed=3)
    same = Settings(**json.loads(json.dumps(settings.to_json())))
    assert same == settings and hash(same) == hash(settings)
    assert settings.siblings == (('circle', 'square'),) and settings.families == ('delete', 'sibling')


def test_presets():
    assert Settings.of('default') == Settings()
    paper = Settings.of('stoikou2023')
    assert (paper.preset, paper.sense, paper.metric, paper.names) == ('stoikou2023', 'any', 'stoikou2023', 'raw')
    assert not paper.repair and not paper.familiar
    assert Settings.of('stoikou2023', sense='first').sense == 'first'
    assert Settings().families == FAMILIES and len(set(FAMILIES)) == 10


@pytest.mark.parametrize('changes, message', [
    (dict(sense='frist'), "sense is 'frist'. Did you mean 'first'"),
    (dict(preset='paper'), "preset is 'paper'"),
    (dict(families=('hypernyms',)), "a family is 'hypernyms'. Did you mean 'hypernym'"),
    (dict(names='short'), "names is 'short'"),
    (dict(scope='text'), "scope is 'text'"),
    (dict(max_edits=0), 'max_edits is 0, wanted at least 1'),
    (dict(min_quality=1.5), 'min_quality is 1.5'),
    (dict(siblings=('circle', 'square')), 'siblings is'),
    *((dict(siblings=(group,)), 'siblings is') for group in (('circle',), ('a', 'A'), ('a', ' '), (1, 2), 3)),
])  # fmt: skip
def test_what_is_no_setting(changes, message):
    with pytest.raises(ValueError, match=message):
        Settings(**changes)
