"""What is in a rater's page and in its layout for MTurk; what it does in a browser: test_questionnaire_browser.py."""

import dataclasses
import re

import rater_pages

from evil_jax.human import form, questionnaire
from evil_jax.human.study import GOLD, Shown

URLS = {'urls': {}, 'draft_url': '/d', 'submit_url': '/s', 'token': 't'}


def test_a_served_page_does_not_know_what_is_right():
    study = rater_pages.study()
    other = {
        name: dataclasses.replace(
            item,
            gold=(item.gold + 1) % 3,
            example='other',
            image_id='other',
            explanations=tuple(
                Shown(GOLD, f' {shown.text}\n'.replace(' ', '  '), ('yes',)) for shown in item.explanations
            ),
        )
        for name, item in study.items.items()
    }
    changed = dataclasses.replace(study, items=other, s_t={'e-ug': 0.5}, settings={'a': 1}, wrong_limit=2)
    page = study.pages[0]
    assert questionnaire.page(study, page, **URLS) == questionnaire.page(changed, page, **URLS)


def test_texts_and_answers_of_anybody_are_text():
    attack = '</script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7777777 * 7 }}${x}" onfocus="alert(1)'
    study = rater_pages.study('question', words=attack)
    page = study.pages[0]
    answers = form.parse({'commentbox': f'</textarea>{attack}'}, **form.shape(study, page))
    text = questionnaire.page(study, page, answers=answers, **URLS | {'urls': {'i0': attack}})
    assert not any(trace in text for trace in ('<script>alert', '<img src=x', '54444439', '" onfocus'))
    assert text.count('</textarea>') == 1
    row = questionnaire.inputs(study, page, {'i0': attack})
    assert not any(mark in value for value in row.values() for mark in '<>"')


def test_the_layout_for_mturk_has_the_variables_of_its_inputs():
    for kind in ('statement', 'question'):
        study = rater_pages.study(kind)
        page = study.pages[0]
        text = questionnaire.layout(study, page)
        # MTurk takes each dollar with a brace for a variable; those of the questionnaires' names also come back.
        variables = set(re.findall(r'\$\{(.*?)\}', text))
        row = questionnaire.inputs(study, page, {'i0': 'https://x/0.png'})
        only_back = {f'{k}_{name}' for k in (1, 2, 3) for name in ('gt_idx', 'ques_id')}
        shown = set(row) - only_back
        if kind == 'statement':
            shown -= {f'answer_{k}_{letter}' for k in (1, 2, 3) for letter in 'abc'}
        assert variables == shown and text.count('${') == len(re.findall(r'\$\{\w+\}', text))
        assert '://' not in text.replace('http://www.w3.org/2000/svg', '')  # it loads nothing from elsewhere
        assert text.startswith('<section>') and '<form' not in text
    assert (row['impath_1'], row['gt_2'], row['1_gt_idx'], row['2_gt_idx']) == ('https://x/0.png', '1', '1', '0')
    assert row['explanation_1_i'] == study.items['i0'].explanations[0].text and row['3_ques_id'] == 'i2'
    assert questionnaire.shape(study, page) == ((3, 2),) * 3
