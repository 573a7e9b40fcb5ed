"""A study with texts that platforms could take for something else, and what two raters say of it."""

import dataclasses

from evil_jax.human import form
from evil_jax.human.study import GOLD, TRUSTED, Item, Page, Shown, Study

TEXTS = ('=1+1 is 2', '${gt_1} <script>alert(1)</script> & "x"', 'a \U0001f600 dog,\nrunning', '- because', '')


def study(kind='question') -> Study:
    """Pages of three items and of two; the second item is a trusted one."""
    items = {}
    for i, text in enumerate(TEXTS):
        shown = (Shown('e-ug', text), Shown(GOLD, f'gold {text}'))
        if i == 1:
            shown = (Shown(TRUSTED, text, ('no', 'weak_no')), Shown(GOLD, f'gold {text}'))
        choices = ('2', 'a <b>', 'choice_0') if kind == 'question' else ('Entailment', 'Neutral', 'Contradiction')
        boxes = (('dog 2', 0.5, 0.5, 0.9, 0.9),) if i == 2 else ()
        item = Item(
            f'i{i}f00', f'ex{i}', f'p {i}.png', f'{text}?', choices, i % 3, shown[:: (-1) ** i], f'im{i}', boxes
        )
        items[item.id] = item
    names = tuple(items)
    pages = (Page('p001', names[:3]), Page('p002', names[3:]))
    return Study('vqax', kind, items, pages, 3, 1, 5, {'e-ug': 0.8}, {}, {})


def said(study, page, rater=0):
    """Fields of a finished page. The second rater fails the trusted item and answers the first question wrongly."""
    fields = {}
    for k, item in enumerate(study.of(page), 1):
        fields[f'c{k}'] = [str((item.gold + (rater and k == 1)) % 3)]
        for e, shown in enumerate(item.explanations, 1):
            bad = shown.system == TRUSTED and not rater
            fields[f'{k}-e{e}'] = ['no' if bad else ('yes', 'w_yes')[(k + rater) % 2]]
            fields[f'{k}-f{e}'] = ['0', '2'] if bad else ['3']
    return fields


def rows(study, page, fields, rater, assignment, seconds):
    """What is to come back of it."""
    answers = form.parse(fields, **form.shape(study, page))
    return form.rows(study, page, answers, rater=rater, assignment=assignment, seconds=seconds)


def bare(rows):
    """Rows without their places in files."""
    return [dataclasses.replace(row, source='') for row in rows]
