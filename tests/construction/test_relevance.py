"""The relevance of explanations: which attributes they name, and files of attributes."""

import json

import pytest

from evil_jax.construction import relevance


def _read(tmp_path, rows, name='attributes.csv'):
    (tmp_path / name).write_text('pairID,attributes\n' + ''.join(f'{row}\n' for row in rows))
    return relevance.read(tmp_path / name)


@pytest.mark.parametrize(
    ('explanation', 'score'),
    [
        ('Umbrellas are up and the streets were all wet.', 1.0),
        ('She holds a parasol.', 0.5),
        ('The street is here. PARASOL!', 0.5),  # a phrase wants all of its words
        ('There is an umbrellastand in the weather', 0.0),
        ('', 0.0),
    ],
)
def test_an_explanation_names_attributes(tmp_path, explanation, score):
    found = _read(tmp_path, ['x,umbrella|parasol; wet street ;'])
    assert relevance.score(explanation, found['x']) == score


def test_csv_and_json_lines_are_alike(tmp_path):
    row = {'pairID': 'x', 'attributes': ['umbrella|parasol', 'wet street']}
    (tmp_path / 'a.jsonl').write_text(json.dumps(row))
    assert relevance.read(tmp_path / 'a.jsonl') == _read(tmp_path, ['x,umbrella|parasol;wet street'])


@pytest.mark.parametrize(
    ('rows', 'message'),
    [
        (['x,a', 'x,b'], ":3: pairID 'x' again .first at .*:2"),
        (['x, ;'], ':2: no attributes'),
        (['x,a;|'], r":2: attribute '\|' has no word"),
        ([], 'no attributes of any pair'),
        ([',a'], ':2: pairID is empty'),
    ],
)
def test_what_is_wrong_is_named(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        _read(tmp_path, rows)


def test_summary():
    found = relevance.summary([1, 0.5, 0, 1])
    assert found['explanations'] == 4 and found['mean'][0] == 0.625 and found['full'][0] == 0.5
    assert found['mean'][1] < 0.625 < found['mean'][2] and found['full'][1] < 0.5 < found['full'][2]
    assert relevance.summary([1, 0.5, 0, 1]) == found
    assert relevance.summary([]) == {'explanations': 0, 'mean': None, 'full': None}
