"""Label Studio: its interface and tasks, and its two kinds of exported JSON."""

import json
from xml.etree import ElementTree

import platform_study
import pytest

from evil_jax.human import label_studio


def _annotation(study, item, fields, k, user, **changes):
    """As the interface makes it: one result for each group in which something is chosen."""
    result = [
        {'id': name, 'type': 'choices', 'from_name': name, 'to_name': 'text', 'value': {'choices': values}}
        for name, values in _names(fields, k).items()
    ]
    result.append({'from_name': 'note', 'type': 'textarea', 'value': {'text': ['hm']}})
    return {'completed_by': user, 'lead_time': 2.5, 'was_cancelled': False, 'result': result} | changes


def _names(fields, k):
    ticks = ('incorrect_description', 'insufficient_justification', 'confusing_sentence', 'none')
    found = {'answer': [f'choice_{fields[f"c{k}"][0]}']}
    for e in (1, 2):
        found |= {f'e{e}': fields[f'{k}-e{e}'], f'f{e}': [ticks[int(tick)] for tick in fields[f'{k}-f{e}']]}
    return found


@pytest.fixture
def exported(tmp_path):
    """The study, and what comes back of it: both raters of platform_study, the second a dict as Label Studio has it."""
    study = platform_study.study()
    config, tasks = label_studio.export(study, tmp_path, 'https://host/pictures/')
    tasks = json.loads(tasks.read_text(encoding='utf-8'))
    items = iter(tasks)
    for page in study.pages:
        for k, item in enumerate(study.of(page), 1):
            task = next(items)
            task['annotations'] = [
                _annotation(study, item, platform_study.said(study, page), k, 7),
                _annotation(study, item, platform_study.said(study, page, 1), k, {'id': 9, 'email': 'a@b.c'}),
            ]
    return study, ElementTree.parse(config).getroot(), tasks


def _read(tmp_path, study, tasks):
    path = tmp_path / 'result.json'
    path.write_text(json.dumps(tasks))
    return label_studio.read(path, study, rater='user {}'.format)


def _wanted(study):
    return [
        row
        for page in study.pages
        for rater, user in enumerate(('user 7', 'user a@b.c'))
        for row in platform_study.rows(
            study, page, platform_study.said(study, page, rater), user, f'{page.id}-{user}', 2.5 * len(page.items)
        )
    ]


def test_interface_asks_for_all_fields(exported):
    study, config, tasks = exported
    groups = {group.get('name'): group for group in config.iter('Choices')}
    assert list(groups) == ['answer', 'e1', 'f1', 'e2', 'f2']
    assert all(group.get('required') == 'true' for group in groups.values())
    objects = {tag.get('name'): tag.get('value') for tag in config.iter() if tag.get('value', '').startswith('$')}
    assert {group.get('toName') for group in groups.values()} <= set(objects)
    assert {value[1:] for value in objects.values()} <= set(tasks[0]['data'])
    assert [choice.get('alias') for choice in groups['e2']] == ['yes', 'w_yes', 'w_no', 'no']
    hidden = [view for view in config.iter('View') if view.get('whenTagName') == 'answer']
    assert len(hidden) == 2 and 'explanation_2' in {tag.get('name') for tag in hidden[1].iter('Text')}
    texts = [[task['data']['explanation_1'], task['data']['explanation_2']] for task in tasks]
    assert texts == [[shown.text or '(no explanation)' for shown in item.explanations] for item in study.items.values()]
    assert tasks[0]['data']['picture'] == 'https://host/pictures/p%200.png'
    assert 'e-ug' not in json.dumps(tasks) and 'ex0' not in json.dumps(tasks)


def test_json_comes_back(tmp_path, exported):
    study, _, tasks = exported
    assert platform_study.bare(_read(tmp_path, study, tasks)) == _wanted(study)
    other = _annotation(study, None, platform_study.said(study, study.pages[0]), 1, 7, was_cancelled=True, result=[])
    tasks[0]['annotations'].append(other)
    # What was changed later counts, whatever the order in the file.
    first = tasks[1]['annotations'][0]
    tasks[1]['annotations'].append(first | {'result': [], 'updated_at': '2026-01-01T00:00:00Z'})
    first['updated_at'] = '2026-02-01T00:00:00Z'
    assert platform_study.bare(_read(tmp_path, study, tasks)) == _wanted(study)


def test_min_json_comes_back(tmp_path, exported):
    study, _, tasks = exported
    flat = []
    for task in tasks:
        for annotation in task['annotations']:
            user = annotation['completed_by']
            row = task['data'] | {'annotator': user['email'] if isinstance(user, dict) else user, 'lead_time': 2.5}
            for result in annotation['result'][:-1]:
                some = result['value']['choices']
                row[result['from_name']] = some[0] if len(some) == 1 else {'choices': some}
            flat.append(row)
    assert platform_study.bare(_read(tmp_path, study, flat)) == _wanted(study)


def test_answers_kept_as_texts_and_unfinished_items(tmp_path, exported):
    study, _, tasks = exported
    del tasks[1:]
    tasks[0]['annotations'] = [_annotation(study, None, platform_study.said(study, study.pages[0]), 1, 7)]
    result = tasks[0]['annotations'][0]['result']
    result[0]['value']['choices'] = ['2']  # the text of the first choice, whose name is choice_0
    (row, other) = _read(tmp_path, study, tasks)
    assert (row.task_answer, row.correct, row.seconds, other.system) == ('2', True, 2.5, 'gt')
    del result[1:]
    (row, other) = _read(tmp_path, study, tasks)
    assert row.rating == other.rating == ''


@pytest.mark.parametrize(
    'change, message',
    [
        (lambda task: task['data'].update(item='x'), "task 1: item 'x' is not one of the study"),
        (lambda task: task['annotations'][0].update(completed_by=None), 'task 1: completed_by is None, wanted a user'),
        (lambda task: task['annotations'][0]['result'][0]['value'].update(choices=['cow']), "answer 'cow', wanted one"),
        (lambda task: task['annotations'][0]['result'][1]['value'].update(choices=['yes', 'no']), '1-e1: 2 values'),
        (lambda task: task.update(annotations=[]), 'no annotations in it'),
        (lambda task: task.update(annotations=3), 'task 1: annotations is 3, wanted list'),
    ],
)
def test_what_is_wrong_is_named(tmp_path, exported, change, message):
    study, _, tasks = exported
    change(tasks[0])
    with pytest.raises(ValueError, match=rf'result\.json: {message}|result\.json: task 1: item i0f00: {message}'):
        _read(tmp_path, study, tasks[:1])
