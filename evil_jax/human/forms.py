"""What a study asks for: its form, its page and its table, by `Study.asks`."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evil_jax.human import form, label_form, label_page, labels, questionnaire, responses
from evil_jax.human.study import Page, Study


@dataclasses.dataclass(frozen=True, slots=True)
class Tally:
    """What the experimenter sees of a finished page: answers known to be right or wrong, and checks of the rater."""

    answers: int = 0
    wrong: int = 0
    checks: int = 0
    failed: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """One kind of form. Answers are of a class of its own, which has `fields()` and `comment`.

    Attributes:
      title, intro: of the page before the first one, where the study has no text of its own.
      files: names of its table, CSV and JSON lines.
      parse: (fields, study, page) -> answers; ValueError for what the form cannot have sent.
      check: (study, page, answers) -> why the page cannot be taken.
      page: as `questionnaire.page`.
      layout, shape, inputs: of MTurk, as those of `questionnaire`.
      rows: as `form.rows`: rows of the table, with `source` and what `write` wants.
      mark: (rows, trusted_failures=) -> rows, with the reason why each does not count.
      write: (path_csv, path_jsonl, rows).
      tally: (study, page, answers) -> Tally.
    """

    title: str
    intro: str
    files: tuple[str, str]
    parse: Callable[[Mapping[str, str | Sequence[str]], Study, Page], Any]
    check: Callable[[Study, Page, Any], list[form.Problem]]
    page: Callable[..., str]
    layout: Callable[[Study, Page], str]
    shape: Callable[[Study, Page], tuple]
    inputs: Callable[[Study, Page, Mapping[str, str]], dict[str, str]]
    rows: Callable[..., list]
    mark: Callable[..., list]
    write: Callable[..., None]
    tally: Callable[[Study, Page, Any], Tally]


def of(study: Study) -> Form:
    """The form of a study."""
    return _LABELS if study.asks == 'labels' else _RATINGS


def _rated(study: Study, page: Page, answers: form.Answers) -> Tally:
    wrong = total = checks = failed = 0
    for item, task in zip(study.of(page), answers.tasks, strict=True):
        total += not item.trusted
        wrong += not item.trusted and task.choice != item.gold
        known = [(e, r) for e, r in zip(item.explanations, task.rated, strict=True) if e.expected]
        checks += len(known)
        failed += sum(r.rating not in e.expected for e, r in known)
    return Tally(total, wrong, checks, failed)


def _labelled(study: Study, page: Page, answers: label_form.Answers) -> Tally:
    """Of the others nobody knows the right label: that is what people are asked."""
    pairs = zip(study.of(page), answers.tasks, strict=True)
    known = [task.choice == item.gold for item, task in pairs if item.trusted]
    return Tally(checks=len(known), failed=known.count(False))


_CONSENT = 'What you say is kept without your name and used for research. You can stop at any time by closing the page.'
_RATINGS = Form(
    title='Rating explanations',
    intro='Thank you for your interest in this study. You will see pictures, each with a question or a statement and '
    f'with explanations of the right answer, and you will say how good these explanations are.\n\n{_CONSENT}',
    files=('ratings.csv', 'ratings.jsonl'),
    parse=lambda fields, study, page: form.parse(fields, **form.shape(study, page)),
    check=form.check,
    page=questionnaire.page,
    layout=questionnaire.layout,
    shape=questionnaire.shape,
    inputs=questionnaire.inputs,
    rows=form.rows,
    mark=responses.mark,
    write=responses.write,
    tally=_rated,
)
_LABELS = Form(
    title='Pictures and statements',
    intro='Thank you for your interest in this study. You will see pictures, each with a statement, and you will say '
    'whether the picture shows that it is true, shows that it is false, or leaves it open, and why.\n\n'
    f'{_CONSENT}',
    files=('labels.csv', 'labels.jsonl'),
    parse=label_form.parse,
    check=label_form.check,
    page=label_page.page,
    layout=label_page.layout,
    shape=label_page.shape,
    inputs=label_page.inputs,
    rows=label_form.rows,
    mark=labels.mark,
    write=labels.write,
    tally=_labelled,
)
