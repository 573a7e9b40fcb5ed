"""A study in which people label: which items stand on which pages, and that a study that is there stays."""

import collections
import json

import labelling_study
import pytest

from evil_jax.human import labelling
from evil_jax.human.study import FILE, IMAGES, Study


def test_pages_have_other_pictures_and_checks(tmp_path):
    study = labelling_study.make(tmp_path, number=12, page_items=4)
    assert study == Study.open(tmp_path) and (study.asks, study.raters) == ('labels', 3)
    assert len(study.pages) == 4 and study.settings['shortfalls'][0].startswith('2 trusted items for 4 pages')
    asked = collections.Counter(item.example for item in study.items.values() if not item.trusted)
    assert asked == collections.Counter(one.id for one in labelling_study.asked(12))
    for page in study.pages:
        items = list(study.of(page))
        assert len({item.image_id for item in items}) == len(items) == 4 and sum(item.trusted for item in items) == 1
        assert len(set(page.items)) == 4
    places = {[item.trusted for item in study.of(page)].index(True) for page in study.pages}
    assert len(places) > 1 and (tmp_path / IMAGES).is_dir()
    assert {bool(item.image) for item in study.items.values() if not item.trusted} == {True}


def test_a_study_that_is_there_stays(tmp_path):
    before = labelling_study.make(tmp_path)
    text = (tmp_path / FILE).read_bytes()
    assert labelling_study.make(tmp_path, picture=False) == before and (tmp_path / FILE).read_bytes() == text
    with pytest.raises(ValueError, match=r'study.json is another study \(items, pages\)'):
        labelling_study.make(tmp_path, number=8)
    assert (tmp_path / FILE).read_bytes() == text


def test_without_known_labels_it_says_that_nothing_checks(tmp_path):
    study = labelling_study.make(tmp_path, known=0)
    assert 'pages have 0 of them, not 1' in study.settings['shortfalls'][0]
    assert not any(item.trusted for item in study.items.values())
    with pytest.raises(ValueError, match='no pair was selected'):
        labelling.make([], tmp_path / 'b')
    with pytest.raises(ValueError, match="'x' has label 'maybe'"):
        labelling.make([labelling.Asked('x', '1', 'A dog.', 'maybe')], tmp_path / 'b')
    with pytest.raises(ValueError, match=r"'0.jpg#0r0n' is there twice"):
        labelling.make(labelling_study.asked(1) * 2, tmp_path / 'b')
    with pytest.raises(ValueError, match='no room for others'):
        labelling_study.make(tmp_path / '.', page_items=1)
    assert not (tmp_path / 'b').exists()


def test_studies_of_before_ask_for_ratings(tmp_path):
    labelling_study.make(tmp_path)
    document = json.loads((tmp_path / FILE).read_text())
    assert document.pop('asks') == 'labels'
    (tmp_path / FILE).write_text(json.dumps(document))
    assert Study.open(tmp_path).asks == 'ratings'
    Study.open(tmp_path).write(tmp_path)
    assert 'asks' not in json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps(document | {'asks': 'x'}))
    with pytest.raises(ValueError, match="asks is 'x', wanted one of ratings, labels"):
        Study.open(tmp_path)
