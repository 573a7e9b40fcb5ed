"""Which form a file of ratings has, and reading several of different forms."""

import json

import platform_study
import pytest

from evil_jax.human import formats, responses

MTURK = (
    'HITId,AssignmentId,WorkerId,AssignmentStatus,Input.impath_1,Input.question_1,Input.explanation_1_i,'
    'Input.explanation_1_j,Input.gt_1,Input.1_gt_idx,Input.1_ques_id,Answer.c1,Answer.1-e1,Answer.1-e2\n'
    'H,A1,W1,Submitted,a.jpg,S,M,G,0,1,q1,0,yes,no\n'
)
STATE = {'user_id': 'ann', 'instance_id_to_label_to_value': {'i0f00': [[{'schema': 'answer', 'name': 'choice_0'}, 1]]}}


@pytest.mark.parametrize(
    'form, text',
    [
        ('mturk', MTURK),
        ('tidy', 'item,system,rating\n1,A,yes\n'),
        ('tidy', '\ufeffid;model;score\n1;A;0,33\n'),
        ('tidy', '{"item": "1", "rating": "yes"}\n{"item": "2", "rating": "no"}\n'),
        ('ofax', 'assignment,worker,status,item_id,gold_answer,chosen_answer,rating_generated,rating_gt\n'),
        ('label_studio', ' [{"id": 1, "data": {}, "annotations": []}]'),
        ('potato', json.dumps(STATE, indent=1)),
        ('potato', json.dumps(STATE)),
    ],
)
def test_detect(tmp_path, form, text):
    path = tmp_path / 'file'
    path.write_text(text, encoding='utf-8')
    assert formats.detect(path) == form


def test_folders_and_files_of_no_form(tmp_path):
    with pytest.raises(ValueError, match=r'no ratings in this folder, wanted user_state\.json'):
        formats.detect(tmp_path)
    (tmp_path / 'ann').mkdir()
    (tmp_path / 'ann' / 'user_state.json').write_text(json.dumps(STATE))
    assert formats.detect(tmp_path) == 'potato'
    for text in ('a,b\n1,2\n', '', '{"item": "1"}', 'item\n1\n'):
        (tmp_path / 'x').write_text(text)
        with pytest.raises(ValueError, match=r'x: ratings of no known form \(tidy, mturk.*: no field|no ratings in it'):
            formats.detect(tmp_path / 'x')


def test_several_files(tmp_path):
    study = platform_study.study()
    batch, state = tmp_path / 'batch.csv', tmp_path / 'user_state.json'
    batch.write_text(MTURK)
    state.write_text(json.dumps(STATE))
    page = study.pages[0]
    rows = platform_study.rows(study, page, platform_study.said(study, page), 'r1', 'a1', 5.0)
    responses.write(tmp_path / 'ratings.csv', tmp_path / 'ratings.jsonl', rows)
    found = formats.read([batch, tmp_path / 'ratings.csv', state], study=study, system='B')
    assert [row.system for row in found] == ['B', 'gt', *(row.system for row in rows), 'e-ug', 'gt']
    assert platform_study.bare(found[2:-2]) == rows and found[-1].task_answer == '2'
    assert found[0].rater == formats.read(batch)[0].rater != 'W1'
    with pytest.raises(ValueError, match=r"other\.csv:2: assignment 'A1' is in .*batch\.csv too"):
        (tmp_path / 'other.csv').write_text(MTURK)
        formats.read([batch, tmp_path / 'other.csv'])
    with pytest.raises(ValueError, match='a file of potato says only how items of a study were rated: which study'):
        formats.read(state)
    with pytest.raises(ValueError, match="format of ratings is 'x', wanted auto or one of tidy"):
        formats.read(batch, 'x')
    with pytest.raises(ValueError, match=r"no column 'AssignmentId'"):
        formats.read(tmp_path / 'ratings.csv', 'mturk', study)


@pytest.mark.parametrize('to', formats.PLATFORMS)
def test_export(tmp_path, to):
    files = formats.export(platform_study.study(), to, tmp_path / to, 'https://host/')
    assert files and {path.name for path in files} == {path.name for path in (tmp_path / to).iterdir()}
    with pytest.raises(ValueError, match=f"human.to is '{to}x', wanted one of mturk"):
        formats.export(platform_study.study(), f'{to}x', tmp_path)
