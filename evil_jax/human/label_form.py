"""The form in which people label: does a picture entail, contradict or leave open a statement, and why.

As the neutral pairs of e-SNLI-VE were labelled anew (Kayser et al., 2021, appendix B): a rater chooses one of three
labels, highlights the words of the statement that decide it, and writes an explanation with at least half of these
words in it. Where k = 1, 2, ... is the place of an item on its page, the fields are

    c{k}        number of the label, from 0
    {k}-w       numbers of the highlighted words of the statement, from 0, as blanks divide it
    {k}-x       the explanation
    commentbox  free text

`parse` refuses what the form cannot have sent; `check` says what a person should not have done.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from evil_jax.human import _fields, labels
from evil_jax.human.form import COMMENT, COMMENT_LENGTH, Problem
from evil_jax.human.study import Item, Page, Study

LENGTH = 600  # characters of an explanation; the longest of e-SNLI-VE have some 60 words
LEAST = 3  # words of one
# What a rater is told, here and by the script of the page, which checks the same rules.
MESSAGES = {
    'choice': 'Statement {k}: please choose an answer.',
    'words': 'Statement {k}: please highlight the words that decide it.',
    'explanation': 'Statement {k}: please explain your answer in a sentence.',
    'half': 'Statement {k}: please use at least half of the highlighted words in the explanation. '
    'It has {used} of {of}, and {wanted} are needed.',
    'again': 'Statement {k}: the explanation only says the statement again. Please say what in the picture decides it.',
}
_NAME = re.compile(r'c([1-9][0-9]{0,3})|([1-9][0-9]{0,3})-([wx])')
_PIECE = re.compile(r'[^\W_]+')


@dataclasses.dataclass(frozen=True, slots=True)
class Labelled:
    """What was said of one item.

    Attributes:
      choice: number of the label, None = nothing yet.
      words: numbers of the highlighted words.
      explanation: as written, with single blanks.
    """

    choice: int | None = None
    words: tuple[int, ...] = ()
    explanation: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class Answers:
    """A page, finished or not: a `Labelled` for each item in the order of the page."""

    tasks: tuple[Labelled, ...]
    comment: str = ''

    def fields(self) -> dict[str, list[str]]:
        """The form's fields that have a value, for JSON; `parse` of them gives these answers back."""
        found = {}
        for k, task in enumerate(self.tasks, 1):
            if task.choice is not None:
                found[f'c{k}'] = [str(task.choice)]
            if task.words:
                found[f'{k}-w'] = [str(number) for number in task.words]
            if task.explanation:
                found[f'{k}-x'] = [task.explanation]
        return found | ({COMMENT: [self.comment]} if self.comment else {})


def words(text: str) -> list[str]:
    """The words of a statement, of which those with a letter or digit can be highlighted."""
    return text.split()


def pieces(text: str) -> list[str]:
    """What is compared of a text: runs of letters and digits, in small letters."""
    return _PIECE.findall(unicodedata.normalize('NFKC', text).lower())


def parse(fields: Mapping[str, str | Sequence[str]], study: Study, page: Page) -> Answers:
    """Reads the fields of a page; what is missing may be missing.

    Raises:
      ValueError: a field or a value that the form does not have, or a text that is too long; the field is named.
    """
    items = list(study.of(page))
    tasks, comment = [Labelled()] * len(items), ''
    for name, values in fields.items():
        values = _fields.texts(name, values)
        if name == COMMENT:
            comment = _fields.free(name, values, COMMENT_LENGTH)
            continue
        match = _NAME.fullmatch(name)
        k = int(match[1] or match[2]) - 1 if match else len(items)
        if k >= len(items):
            raise ValueError(f'{name[:40]!r}: the form has no such field')
        tasks[k] = dataclasses.replace(tasks[k], **_said(name, values, items[k], match[3]))
    return Answers(tuple(tasks), comment)


def _said(name, values, item, what) -> dict:
    if what is None:
        value = _fields.one(name, values, [str(i) for i in range(len(item.choices))])
        return {'choice': None if value is None else int(value)}
    if what == 'w':
        wanted = [str(i) for i, word in enumerate(words(item.text)) if pieces(word)]
        return {'words': tuple(int(value) for value in _fields.several(name, values, wanted))}
    return {'explanation': ' '.join(_fields.free(name, values, LENGTH).split())}


def alike(a: str, b: str) -> bool:
    """Whether two pieces are one word, or forms of one: 'dog' and 'dogs', 'run' and 'running'.

    It is lenient on purpose, and simple, since the script of the page decides it in the same way: they are the same, or
    begin with the same four letters (three where one of them has three or four).
    """
    shorter = min(len(a), len(b))
    same = 3 if shorter < 5 else 4
    return a == b or (shorter >= 3 and a[:same] == b[:same])


def used(text: str, numbers: Sequence[int], explanation: str) -> int:
    """How many of the highlighted words of a statement are in an explanation."""
    there = set(pieces(explanation))
    # Of "man's" the longest piece counts.
    wanted = [max(pieces(words(text)[number]), key=len) for number in numbers]
    return sum(any(alike(piece, other) for other in there) for piece in wanted)


def check(study: Study, page: Page, answers: Answers) -> list[Problem]:
    """Why the page cannot be taken; [] = it can. What is empty comes first, as in the page."""
    items = list(study.of(page))
    empty = list(_empty(items, answers))
    return empty or [
        problem
        for k, (item, task) in enumerate(zip(items, answers.tasks, strict=True), 1)
        for problem in _poor(k, item.text, task)
    ]


def _empty(items: Sequence[Item], answers: Answers) -> Iterator[Problem]:
    for k, (item, task) in enumerate(zip(items, answers.tasks, strict=True), 1):
        if task.choice is None:
            yield Problem(f'c{k}', k, 'filled', MESSAGES['choice'].format(k=k))
        if not task.words and pieces(item.text):  # of a statement such as '...' there are none
            yield Problem(f'{k}-w', k, 'filled', MESSAGES['words'].format(k=k))
        if len(pieces(task.explanation)) < LEAST:
            yield Problem(f'{k}-x', k, 'filled', MESSAGES['explanation'].format(k=k))


def _poor(k: int, text: str, task: Labelled) -> Iterator[Problem]:
    found, wanted = used(text, task.words, task.explanation), (len(task.words) + 1) // 2
    if found < wanted:
        message = MESSAGES['half'].format(k=k, used=found, of=len(task.words), wanted=wanted)
        yield Problem(f'{k}-x', k, 'half', message)
    elif pieces(task.explanation) == pieces(text):
        yield Problem(f'{k}-x', k, 'again', MESSAGES['again'].format(k=k))


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
) -> list[labels.Label]:
    """The page as rows of the table of labels, one for each item, in the order shown.

    Those of a trusted item never count: their `reason` says so, or that its check failed.
    """
    found = []
    for item, task in zip(study.of(page), answers.tasks, strict=True):
        label = '' if task.choice is None else item.choices[task.choice].lower()
        known = labels.KNOWN if task.choice == item.gold else labels.CHECK
        found.append(
            labels.Label(
                item=item.example,
                rater=rater,
                label=label,
                words=tuple(words(item.text)[number] for number in task.words),
                explanation=task.explanation,
                given=item.choices[item.gold].lower(),
                hypothesis=item.text,
                image_id=item.image_id,
                dataset=study.dataset,
                seconds=seconds,
                assignment=assignment,
                status=status,
                reason=known if item.trusted else '',
                trusted=item.trusted,
                source=source,
            )
        )
    return found
