"""The page that a rater fills in: served by us, or as a layout for MTurk. Fields and rules are those of `form`.

A served page knows neither the right answers nor who wrote an explanation. On MTurk the rules can only be held in the
page, so there it has the right answers, as the original questionnaires do.
"""

import html
import json
import string
from collections.abc import Mapping

from evil_jax import pages
from evil_jax.human import form
from evil_jax.human.study import GOLD, NO_EXPLANATION, Item, Page, Study

# (value, label, hint) of each button, as of the choices.
_RATINGS = tuple((word, label, '') for word, label in form.RATING_LABELS.items())
_TICKS = tuple((str(form.TICKS.index(tick)), label, '') for tick, label in form.TICK_LABELS.items())
_HINTS = {
    'entailment': 'The statement is true.',
    'neutral': 'The picture is not enough to tell.',
    'contradiction': 'The statement is false.',
}
TITLE = 'Do these explanations justify the answer?'


def page(
    study: Study,
    page: Page,
    *,
    urls: Mapping[str, str],
    draft_url: str,
    submit_url: str,
    token: str,
    answers: form.Answers | None = None,
    progress: tuple[int, int] = (0, 0),
) -> str:
    """A page of our server, as HTML.

    Its script posts JSON {"token": ..., "fields": {name: [value, ...]}}: each change to `draft_url`, the finished page
    to `submit_url`. 200 {"next": URL} leads on; 422 {"problems": [...]} (`form.Problem`) is shown as the browser's own.

    Args:
      study, page: what is asked.
      urls: id of an item -> where its picture is; '' or absent: it has none.
      draft_url, submit_url: of the server.
      token: that these requests carry.
      answers: what the rater said so far.
      progress: (pages that the rater did, how many there are for the rater; 0 = not known).
    """
    items = []
    tasks = answers.tasks if answers else (None,) * len(page.items)
    for k, (item, task) in enumerate(zip(study.of(page), tasks, strict=True), 1):
        items.append(_item(k, item, study.kind, urls.get(item.id, ''), task))
    return _render(
        study,
        items,
        parts=('_rating_rules', '_questionnaire_server'),
        served=True,
        place=place(*progress),
        first=not progress[0],
        submit_url=submit_url,
        comment=answers.comment if answers else '',
        boxes=any(item.boxes for item in study.of(page)),
        data={
            'draft_url': draft_url,
            'submit_url': submit_url,
            'token': token,
            'yes_limit': form.yes_limit(study, page),
        },
    )


def layout(study: Study, page: Page) -> str:
    """A page as a layout for MTurk: the variables of `inputs` stand where their values come. It needs nothing else.

    All pages with as many items, choices and explanations (`shape`) can use the same layout.
    """
    items = []
    for k, item in enumerate(study.of(page), 1):
        letters = string.ascii_lowercase[: len(item.choices)]
        labels = item.choices if study.kind == 'statement' else [f'${{answer_{k}_{a}}}' for a in letters]
        texts = [f'${{explanation_{k}_{a}}}' for a in string.ascii_lowercase[8 : 8 + len(item.explanations)]]
        items.append(
            {
                'k': k,
                'picture': f'${{impath_{k}}}',
                'boxes': f'${{boxes_{k}}}',
                'text': f'${{question_{k}}}',
                'choices': choices(labels, study.kind),
                'picked': (),
                'explanations': [{'text': text, 'rating': (), 'ticks': ()} for text in texts],
                'gold': f'${{gt_{k}}}',
            }
        )
    return _render(
        study,
        items,
        parts=('_rating_rules', '_questionnaire_mturk'),
        served=False,
        place='',
        first=True,
        submit_url='',
        comment='',
        boxes=any(item.boxes for item in study.items.values()),
        data={'yes_limit': form.yes_limit(study, page), 'wrong_limit': study.wrong_limit},
    )


def shape(study: Study, page: Page) -> tuple[tuple[int, int], ...]:
    """(number of choices, number of explanations) of each item: pages that share it share their layout."""
    return tuple((len(item.choices), len(item.explanations)) for item in study.of(page))


def inputs(study: Study, page: Page, urls: Mapping[str, str]) -> dict[str, str]:
    """The variables of `layout` for a page, and those that only come back: a row of MTurk's input.

    MTurk puts values into the page as they are, so texts are HTML here. `{k}_gt_idx` is the place of the gold
    explanation (0 = the first one, '' = none or several), `{k}_ques_id` the id of the item.
    """
    row = {}
    for k, item in enumerate(study.of(page), 1):
        row |= {f'impath_{k}': urls.get(item.id, ''), f'question_{k}': item.text, f'gt_{k}': str(item.gold)}
        row |= {f'answer_{k}_{string.ascii_lowercase[i]}': choice for i, choice in enumerate(item.choices)}
        for i, shown in enumerate(item.explanations):
            row[f'explanation_{k}_{string.ascii_lowercase[8 + i]}'] = shown.text or NO_EXPLANATION
        gold = [i for i, shown in enumerate(item.explanations) if shown.system == GOLD]
        row |= {f'{k}_gt_idx': str(gold[0]) if len(gold) == 1 else '', f'{k}_ques_id': item.id}
        row[f'boxes_{k}'] = json.dumps(item.boxes)
    return {name: html.escape(' '.join(value.split())) for name, value in row.items()}


def place(done: int, of: int) -> str:
    """'Page 2 of 5': where a rater is who did so many pages, of so many (0 = not known)."""
    return f'Page {done + 1} of {of}' if of else f'Page {done + 1}' if done else ''


def _item(k: int, item: Item, kind: str, url: str, task: form.Task | None) -> dict:
    rated = task.rated if task else (form.Rated(),) * len(item.explanations)
    return {
        'k': k,
        'picture': url,
        'boxes': json.dumps(item.boxes) if item.boxes else '',
        'text': item.text,
        'choices': choices(item.choices, kind),
        'picked': () if task is None or task.choice is None else (str(task.choice),),
        'explanations': [
            {
                # Spaces that nobody sees would tell people's texts from others.
                'text': ' '.join(shown.text.split()) or NO_EXPLANATION,
                'rating': [word for word, rating in form.WORDS.items() if rating == said.rating],
                'ticks': [str(form.TICKS.index(tick)) for tick in said.ticks],
            }
            for shown, said in zip(item.explanations, rated, strict=True)
        ],
    }


def choices(labels, kind: str) -> list[tuple[str, str, str]]:
    """(value, label, hint) of each answer that can be chosen."""
    hints = _HINTS if kind == 'statement' else {}
    return [(str(i), label, hints.get(label.casefold(), '')) for i, label in enumerate(labels)]


def _render(study: Study, items: list[dict], *, parts, served: bool, data: dict, **context) -> str:
    return pages.render(
        'questionnaire',
        asks='ratings',
        parts=parts,
        served=served,
        on_mturk=not served,
        title=TITLE,
        kind=study.kind,
        number=len(items),
        items=items,
        ratings=_RATINGS,
        ticks=_TICKS,
        comment_length=form.COMMENT_LENGTH,
        data=pages.script_json(data | {'messages': form.MESSAGES}),
        **context,
    )
