"""The form that raters fill in, whoever shows it: its fields, and the rules that a finished page keeps.

The fields are those of the e-ViL questionnaires on MTurk (Kayser et al., 2021), where k = 1, 2, ... is the place of an
item on its page and e = 1, 2, ... that of an explanation in its item:

    c{k}        answer to the task question: number of the choice, from 0
    {k}-e{e}    does the explanation justify the answer: yes, w_yes, w_no, no
    {k}-f{e}    what is wrong with it, several: 0 incorrect description, 1 insufficient justification, 2 confusing
                sentence, 3 nothing
    commentbox  free text

So one parser serves the server and MTurk. `parse` refuses what the form cannot have sent; what a person can do in the
form and should not have done is said by `problems`.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

from evil_jax.human import _fields, responses
from evil_jax.human.study import GOLD, RATINGS, SHORTCOMINGS, Page, Study

WORDS = {'yes': 'yes', 'w_yes': 'weak_yes', 'w_no': 'weak_no', 'no': 'no'}  # of the form -> of the study
NONE = 'none'  # nothing is wrong with the explanation
TICKS = (*SHORTCOMINGS, NONE)  # in the form their numbers
RATING_LABELS = {'yes': 'Yes', 'w_yes': 'Weak yes', 'w_no': 'Weak no', 'no': 'No'}
TICK_LABELS = {
    'incorrect_description': 'Incorrect description of the picture',
    'insufficient_justification': 'Insufficient justification',
    'confusing_sentence': 'Confusing sentence',
    NONE: 'None of these',
}
COMMENT, COMMENT_LENGTH = 'commentbox', 2_000
# What a rater is told, here and by the script of the page, which checks the same rules.
MESSAGES = {
    'choice': 'Question {k}: please choose an answer.',
    'rating': 'Question {k}, explanation {e}: please say whether it justifies the answer.',
    'ticks': 'Question {k}, explanation {e}: please tick what is wrong with it, or "None of these".',
    'none': 'Question {k}, explanation {e}: "None of these" cannot be ticked together with a shortcoming.',
    'yes': 'Question {k}, explanation {e}: an explanation rated "Yes" has nothing wrong with it. '
    'Please tick only "None of these", or choose another rating.',
    'no': 'Question {k}, explanation {e}: an explanation rated "No" or "Weak no" has something wrong with it. '
    'Please tick what it is, or choose another rating.',
    'many_yes': 'You rated {yes} of the {of} explanations "Yes", and we take at most {limit}. '
    'Please look at them again: does each of them say all that it takes to see that the answer is right?',
    'wrong': 'More than {limit} of your answers to the questions about the pictures are wrong. '
    'Please look at the pictures again and correct your answers.',
    'any_wrong': 'Some of your answers to the questions about the pictures are wrong. '
    'Please look at the pictures again and correct your answers.',
}
_OF_WORD = {rating: word for word, rating in WORDS.items()}
_NAME = re.compile(r'c([1-9][0-9]{0,3})|([1-9][0-9]{0,3})-([ef])([1-9])')


@dataclasses.dataclass(frozen=True, slots=True)
class Rated:
    """What was said of one explanation.

    Attributes:
      rating: one of `study.RATINGS`; '' = nothing yet.
      ticks: of `TICKS`, in their order; () = nothing yet.
    """

    rating: str = ''
    ticks: tuple[str, ...] = ()

    @property
    def shortcomings(self) -> tuple[str, ...]:
        return tuple(tick for tick in self.ticks if tick != NONE)


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """What was said of one item: `choice` is the number of the task answer, None = nothing yet."""

    choice: int | None
    rated: tuple[Rated, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Answers:
    """A page, finished or not: a `Task` for each item in the order of the page."""

    tasks: tuple[Task, ...]
    comment: str = ''

    def fields(self) -> dict[str, list[str]]:
        """The form's fields that have a value, for JSON; `parse` of them gives these answers back."""
        fields = {}
        for k, task in enumerate(self.tasks, 1):
            if task.choice is not None:
                fields[f'c{k}'] = [str(task.choice)]
            for e, rated in enumerate(task.rated, 1):
                if rated.rating:
                    fields[f'{k}-e{e}'] = [_OF_WORD[rated.rating]]
                if rated.ticks:
                    fields[f'{k}-f{e}'] = [str(TICKS.index(tick)) for tick in rated.ticks]
        return fields | ({COMMENT: [self.comment]} if self.comment else {})


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """Why a page cannot be taken.

    Attributes:
      field: where to look: name of a field; '' = the page as a whole.
      item: place of the item on the page, from 1; 0 = the page as a whole.
      rule: filled, none, yes, no, many_yes or wrong.
      message: what to do, for the rater.
    """

    field: str
    item: int
    rule: str
    message: str


def parse(
    fields: Mapping[str, str | Sequence[str]],
    number: int,
    choices: Sequence[int],
    *,
    explanations: Sequence[int] | None = None,
) -> Answers:
    """Reads the fields of a page; what is missing may be missing.

    Args:
      fields: name -> its values (one value may be a string).
      number: of items on the page.
      choices: how many choices each of them has.
      explanations: how many explanations each has. None: two.

    Raises:
      ValueError: a field or a value that the form does not have, two values where there is one, a comment that is too
        long or no text; the message names the field.
    """
    explanations = [2] * number if explanations is None else explanations
    if not number == len(choices) == len(explanations):
        raise ValueError(f'{len(choices)} and {len(explanations)} numbers for {number} items')
    picked: list[int | None] = [None] * number
    rated = [[Rated()] * some for some in explanations]
    comment = ''
    for name, values in fields.items():
        values = _fields.texts(name, values)
        if name == COMMENT:
            comment = _fields.free(name, values, COMMENT_LENGTH)
            continue
        match = _NAME.fullmatch(name)
        k = int(match[1] or match[2]) - 1 if match else number
        if k >= number or (match[4] and int(match[4]) > explanations[k]):
            raise ValueError(f'{name[:40]!r}: the form has no such field')
        if match[1]:
            value = _fields.one(name, values, [str(i) for i in range(choices[k])])
            picked[k] = None if value is None else int(value)
            continue
        e = int(match[4]) - 1
        if match[3] == 'e':
            rated[k][e] = dataclasses.replace(rated[k][e], rating=WORDS.get(_fields.one(name, values, list(WORDS)), ''))
        else:
            rated[k][e] = dataclasses.replace(rated[k][e], ticks=_ticks(name, values))
    tasks = tuple(Task(choice, tuple(some)) for choice, some in zip(picked, rated, strict=True))
    return Answers(tasks, comment)


def _ticks(name: str, values: list[str]) -> tuple[str, ...]:
    numbers = _fields.several(name, values, [str(i) for i in range(len(TICKS))])
    return tuple(TICKS[int(number)] for number in numbers)


def problems(
    answers: Answers, *, golds: Sequence[int] | None = None, wrong_limit: int, yes_limit: int
) -> list[Problem]:
    """Why the page cannot be taken, in the order of the questionnaires' rules; [] = it can.

    Rules about the page as a whole are held against a page that keeps all others: until then they say nothing new, and
    that of wrong answers (which says neither which nor how many are wrong) would help to guess.

    Args:
      answers: of the page.
      golds: the right task answers. None: they are not known here (in a browser), that rule is not checked.
      wrong_limit, yes_limit: of the study.
    """
    found = [*_filled(answers), *_inconsistent(answers)]
    if found:
        return found
    yes = sum(rated.rating == 'yes' for task in answers.tasks for rated in task.rated)
    if yes > yes_limit:
        of = sum(len(task.rated) for task in answers.tasks)
        return [Problem('', 0, 'many_yes', MESSAGES['many_yes'].format(yes=yes, of=of, limit=yes_limit))]
    if golds is not None:
        wrong = sum(task.choice != gold for task, gold in zip(answers.tasks, golds, strict=True))
        if wrong > wrong_limit:
            message = MESSAGES['wrong' if wrong_limit else 'any_wrong'].format(limit=wrong_limit)
            return [Problem('', 0, 'wrong', message)]
    return []


def _filled(answers: Answers) -> Iterator[Problem]:
    for k, task in enumerate(answers.tasks, 1):
        if task.choice is None:
            yield Problem(f'c{k}', k, 'filled', MESSAGES['choice'].format(k=k))
        for e, rated in enumerate(task.rated, 1):
            if not rated.rating:
                yield Problem(f'{k}-e{e}', k, 'filled', MESSAGES['rating'].format(k=k, e=e))
            if not rated.ticks:
                yield Problem(f'{k}-f{e}', k, 'filled', MESSAGES['ticks'].format(k=k, e=e))


# Rule -> does what was said of an explanation break it.
_CONSISTENCY = {
    'none': lambda r: NONE in r.ticks and len(r.ticks) > 1,
    'yes': lambda r: r.rating == 'yes' and bool(r.shortcomings) and NONE not in r.ticks,
    'no': lambda r: r.rating in RATINGS[:2] and r.ticks == (NONE,),
}


def _inconsistent(answers: Answers) -> Iterator[Problem]:
    for rule, broken in _CONSISTENCY.items():
        for k, task in enumerate(answers.tasks, 1):
            for e, rated in enumerate(task.rated, 1):
                if broken(rated):
                    yield Problem(f'{k}-f{e}', k, rule, MESSAGES[rule].format(k=k, e=e))


def shape(study: Study, page: Page) -> dict:
    """What `parse` wants to know of a page: `parse(fields, **shape(study, page))`."""
    items = list(study.of(page))
    return {
        'number': len(items),
        'choices': [len(item.choices) for item in items],
        'explanations': [len(item.explanations) for item in items],
    }


def check(study: Study, page: Page, answers: Answers) -> list[Problem]:
    """All `problems` of a page, by the limits and right answers of its study. A shorter page has fewer "yes"."""
    golds = [item.gold for item in study.of(page)]
    return problems(answers, golds=golds, wrong_limit=study.wrong_limit, yes_limit=yes_limit(study, page))


def yes_limit(study: Study, page: Page) -> int:
    """How many "yes" the page may have: the study's limit is that of its longest page."""
    full = max(sum(len(item.explanations) for item in study.of(other)) for other in study.pages)
    return study.yes_limit * sum(len(item.explanations) for item in study.of(page)) // full


def rows(
    study: Study,
    page: Page,
    answers: Answers,
    *,
    rater: str,
    assignment: str,
    seconds: float | None = None,
    status: str = 'submitted',
    source: str = '',
) -> list[responses.Response]:
    """The page as rows of the tidy table, one for each explanation, in the order shown.

    Those of a trusted item never count: their `reason` says so, or that its check failed.
    """
    found = []
    for item, task in zip(study.of(page), answers.tasks, strict=True):
        gold = tuple(shown.text for shown in item.explanations if shown.system == GOLD)
        for shown, rated in zip(item.explanations, task.rated, strict=True):
            failed = shown.expected and rated.rating not in shown.expected
            found.append(
                responses.Response(
                    dataset=study.dataset,
                    system=shown.system,
                    item=item.example,
                    beside=item.system if item.trusted or shown.system == GOLD else shown.system,
                    rater=rater,
                    rating=rated.rating,
                    shortcomings=rated.shortcomings,
                    task_answer='' if task.choice is None else item.choices[task.choice],
                    gold_answer=item.choices[item.gold],
                    correct=task.choice == item.gold,
                    seconds=seconds,
                    assignment=assignment,
                    status=status,
                    reason=(responses.CHECK if failed else responses.KNOWN) if item.trusted else '',
                    explanation=shown.text,
                    references=() if shown.system == GOLD else gold,
                    image_id=item.image_id,
                    source=source,
                )
            )
    return found
