"""The page on which people label, served by us or as a layout for MTurk. Fields and rules are those of `label_form`."""

import html
import json
from collections.abc import Mapping

import markupsafe

from evil_jax import pages
from evil_jax.human import label_form, questionnaire
from evil_jax.human.study import Item, Page, Study

TITLE = 'What does the picture say about the statement?'


def page(
    study: Study,
    page: Page,
    *,
    urls: Mapping[str, str],
    draft_url: str,
    submit_url: str,
    token: str,
    answers: label_form.Answers | None = None,
    progress: tuple[int, int] = (0, 0),
) -> str:
    """A page of our server, as HTML; arguments and what its script posts are those of `questionnaire.page`."""
    tasks = answers.tasks if answers else (label_form.Labelled(),) * len(page.items)
    items = [
        _item(k, item, urls.get(item.id, ''), task)
        for k, (item, task) in enumerate(zip(study.of(page), tasks, strict=True), 1)
    ]
    return _render(
        items,
        parts=('_label_rules', '_questionnaire_server'),
        served=True,
        boxes=any(item.boxes for item in study.of(page)),
        place=questionnaire.place(*progress),
        first=not progress[0],
        submit_url=submit_url,
        comment=answers.comment if answers else '',
        data={'draft_url': draft_url, 'submit_url': submit_url, 'token': token},
    )


def layout(study: Study, page: Page) -> str:
    """A page as a layout for MTurk: the variables of `inputs` stand where their values come. It needs nothing else."""
    items = [
        {
            'k': k,
            'picture': f'${{impath_{k}}}',
            'boxes': f'${{boxes_{k}}}',
            'text': f'${{question_{k}}}',
            'choices': questionnaire.choices(item.choices, study.kind),
            'picked': (),
            'words': f'${{words_{k}}}',
            'explanation': '',
        }
        for k, item in enumerate(study.of(page), 1)
    ]
    return _render(
        items,
        parts=('_label_rules', '_questionnaire_mturk'),
        served=False,
        boxes=any(item.boxes for item in study.items.values()),
        place='',
        first=True,
        submit_url='',
        comment='',
        data={},
    )


def shape(study: Study, page: Page) -> tuple[int, ...]:
    """Number of labels of each item: pages that share it share their layout."""
    return tuple(len(item.choices) for item in study.of(page))


def inputs(study: Study, page: Page, urls: Mapping[str, str]) -> dict[str, str]:
    """The variables of `layout` for a page, and `{k}_ques_id`, which only comes back: a row of MTurk's input.

    MTurk puts values into the page as they are, so texts are HTML here, and `words_{k}` is the buttons of the words.
    """
    row = {}
    for k, item in enumerate(study.of(page), 1):
        plain = {f'impath_{k}': urls.get(item.id, ''), f'question_{k}': item.text, f'{k}_ques_id': item.id}
        plain[f'boxes_{k}'] = json.dumps(item.boxes)
        row |= {name: html.escape(' '.join(value.split())) for name, value in plain.items()}
        row[f'words_{k}'] = str(_words(k, item.text, ()))
    return row


def _words(k: int, text: str, on) -> markupsafe.Markup:
    """A box to tick for each word that can be highlighted."""
    parts = []
    for number, word in enumerate(label_form.words(text)):
        if not label_form.pieces(word):
            parts.append(markupsafe.Markup('<span>{}</span>').format(word))
            continue
        ticked = markupsafe.Markup(' checked') if number in on else ''
        button = '<label><input type="checkbox" name="{}-w" value="{}"{}><span>{}</span></label>'
        parts.append(markupsafe.Markup(button).format(k, number, ticked, word))
    return markupsafe.Markup(' ').join(parts)


def _item(k: int, item: Item, url: str, task: label_form.Labelled) -> dict:
    return {
        'k': k,
        'picture': url,
        'boxes': json.dumps(item.boxes) if item.boxes else '',
        'text': item.text,
        'choices': questionnaire.choices(item.choices, 'statement'),
        'picked': () if task.choice is None else (str(task.choice),),
        'words': _words(k, item.text, task.words),
        'explanation': task.explanation,
    }


def _render(items, *, data: dict, **context) -> str:
    return pages.render(
        'questionnaire',
        asks='labels',
        on_mturk=not context['served'],
        title=TITLE,
        kind='statement',
        number=len(items),
        items=items,
        comment_length=label_form.COMMENT_LENGTH,
        length=label_form.LENGTH,
        data=pages.script_json(data | {'messages': label_form.MESSAGES, 'least': label_form.LEAST}),
        **context,
    )
