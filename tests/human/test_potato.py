"""Potato: its configuration and items, pictures with boxes, and its annotation output.

A server of version 2.12.1 took such a configuration without complaint (`potato.validate_cli --strict`); what it wrote
when this study was done in a browser has the form below, and no script of its texts ran there.
"""

import html
import json
import re

import PIL.Image
import PIL.ImageOps
import platform_study
import pytest

from evil_jax.human import potato

TICKS = ('incorrect_description', 'insufficient_justification', 'confusing_sentence', 'none')


def _state(study, rater, user):
    """user_state.json of one who did everything; the first label was ticked and unticked again."""
    labels, times = {}, {}
    for page in study.pages:
        fields = platform_study.said(study, page, rater)
        for k, item in enumerate(study.of(page), 1):
            some = [('answer', f'choice_{fields[f"c{k}"][0]}')]
            for e in (1, 2):
                some += [(f'e{e}', fields[f'{k}-e{e}'][0])]
                some += [(f'f{e}', TICKS[int(tick)]) for tick in fields[f'{k}-f{e}']]
            labels[item.id] = [[{'schema': 'e1', 'name': 'w_no'}, False]]
            labels[item.id] += [[{'schema': scheme, 'name': name}, name] for scheme, name in some]
            times[item.id] = {'instance_id': item.id, 'total_time_ms': 1500}
    return {
        'user_id': user,
        'instance_id_ordering': list(labels),
        'instance_id_to_label_to_value': labels,
        'instance_id_to_behavioral_data': times,
    }


def _write(tmp_path, states):
    for state in states:
        path = tmp_path / 'annotation_output' / state['user_id'] / 'user_state.json'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(state, indent=2))
    return tmp_path / 'annotation_output'


def test_output_comes_back(tmp_path):
    study = platform_study.study()
    states = [_state(study, rater, user) for rater, user in enumerate(('ann', 'zoe'))]
    wanted = [
        row
        for page in study.pages
        for rater, user in enumerate(('r-ann', 'r-zoe'))
        for row in platform_study.rows(
            study, page, platform_study.said(study, page, rater), user, f'{page.id}-{user}', 1.5 * len(page.items)
        )
    ]
    assert platform_study.bare(potato.read(_write(tmp_path, states), study, rater='r-{}'.format)) == wanted
    # Labels by scheme, as Potato has them in memory; one rater's file; no times.
    state = states[1]
    for item, labels in state['instance_id_to_label_to_value'].items():
        nested = {}
        for label, value in labels:
            nested.setdefault(label['schema'], {})[label['name']] = value
        state['instance_id_to_label_to_value'][item] = nested
    state['instance_id_to_behavioral_data']['i0f00']['total_time_ms'] = 0
    rows = potato.read(_write(tmp_path, [state]) / 'zoe' / 'user_state.json', study, rater='r-{}'.format)
    assert [row.rating for row in rows] == [row.rating for row in wanted if row.rater == 'r-zoe']
    assert [row.seconds for row in rows] == [None] * 6 + [3.0] * 4


@pytest.mark.parametrize('kind', ['question', 'statement'])
def test_configuration(tmp_path, kind):
    study = platform_study.study(kind)
    config, items = potato.export(study, tmp_path, 'https://host/')
    config = json.loads(config.read_text(encoding='utf-8'))
    rows = [json.loads(line) for line in items.read_text(encoding='utf-8').splitlines()]
    assert [row['id'] for row in rows] == list(study.items)
    assert {field['key'] for field in config['instance_display']['fields']} <= set(rows[0])
    schemes = {scheme['name']: scheme for scheme in config['annotation_schemes']}
    assert list(schemes) == ['answer', 'e1', 'f1', 'e2', 'f2']
    # Potato puts items into its pages unescaped: a script in a text would run there.
    assert not re.search('<(?!br>)', items.read_text(encoding='utf-8'))
    kinds = {field['key']: field['type'] for field in config['instance_display']['fields']}
    assert kinds == dict.fromkeys(('text', 'answers', 'explanation_1', 'explanation_2'), 'html') | {'picture': 'image'}
    assert html.unescape(rows[1]['explanation_2']) == study.items['i1f00'].explanations[1].text
    assert {label['name'] for label in schemes['answer']['labels']} == set(rows[0]['offered'])
    assert html.unescape(rows[0]['answers'].split('<br>')[1]) == f'b) {study.items["i0f00"].choices[1]}'
    assert config['num_annotators_per_item'] == 3 and rows[2]['picture'] == 'https://host/p%202.png'
    assert rows[4]['explanation_1'] == '(no explanation)' and 'e-ug' not in items.read_text()


def test_pictures_are_copied_and_boxes_drawn(tmp_path):
    study = platform_study.study()
    images = tmp_path / 'images'
    images.mkdir()
    for item in study.items.values():
        PIL.Image.new('RGB', (400, 300), 'white').save(images / item.image)
    _, items = potato.export(study, tmp_path / 'potato', pictures=images)
    rows = [json.loads(line) for line in items.read_text(encoding='utf-8').splitlines()]
    assert rows[2]['picture'] == '/media/i2f00.jpg' and rows[0]['picture'] == '/media/p%200.png'
    assert (tmp_path / 'potato' / 'media' / 'p 0.png').read_bytes() == (images / 'p 0.png').read_bytes()
    with PIL.Image.open(tmp_path / 'potato' / 'media' / 'i2f00.jpg') as drawn:
        changed = PIL.ImageOps.invert(drawn.convert('L')).point(lambda v: 255 * (v > 60)).getbbox()
        inside = drawn.getpixel((300, 250))
    assert changed == pytest.approx((200, 150, 361, 271), abs=3) and min(inside) > 240
    (images / 'p 4.png').unlink()
    with pytest.raises(ValueError, match=r'p 4\.png: the picture of item i4f00 is not there'):
        potato.export(study, tmp_path / 'other', pictures=images)
    with pytest.raises(ValueError, match=r'human\.image_url is'):
        potato.export(study, tmp_path / 'other')
    assert not (tmp_path / 'other' / 'config.yaml').exists()


@pytest.mark.parametrize(
    'change, message',
    [
        (lambda state: state.pop('user_id'), "has no 'user_id'"),
        (lambda state: state.update(instance_id_to_label_to_value={}), 'no annotations in it'),
        (lambda state: state['instance_id_to_label_to_value'].update(x=[]), "item x: item 'x' is not one of the study"),
        (lambda state: state['instance_id_to_label_to_value']['i0f00'].append(['x']), "a label is \\['x'\\], wanted"),
        (
            lambda state: state['instance_id_to_label_to_value']['i0f00'].append(
                [{'schema': 'e1', 'name': 'no'}, 'no']
            ),
            'item i0f00: 1-e1: 2 values, wanted one',
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path, change, message):
    study = platform_study.study()
    state = _state(study, 0, 'ann')
    path = _write(tmp_path, [state]) / 'ann' / 'user_state.json'
    change(state)
    path.write_text(json.dumps(state))
    with pytest.raises(ValueError, match=rf'user_state\.json: .*{message}'):
        potato.read(path, study)
