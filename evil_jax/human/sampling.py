"""Decides what people are asked: which examples of each system, with which answers, in which order, on which pages.

The protocol is e-ViL's (Kayser et al. 2021, section 4 and appendix): the test set is shuffled once for all systems; of
each the first 300 right answers with a picture of their own; the gold explanation and the system's, in random order.
All of it depends on the seed and on names alone, not on the order of files.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evil_jax import text
from evil_jax.data import tags
from evil_jax.human import _arrangement, _chance, _choices, _selection, known
from evil_jax.human.study import GOLD, NO_EXPLANATION, TRUSTED, Item, Page, Shown, Study
from evil_jax.records import Example, Prediction

# Of the original forms, for ten items a page: more wrong task answers, or more "yes" among 20, are not taken.
_WRONG, _WRONG_OPEN, _YES, _TEN = 2, 1, 16, 10


def sample(
    examples: Sequence[Example],
    predictions: Mapping[str, Mapping[str, Prediction]],
    right: Mapping[str, Mapping[str, float]],
    *,
    dataset: str,
    limit: int = 300,
    raters: int = 3,
    page_items: int = 10,
    choices: int = 3,
    trusted: str | Sequence[known.Known] = 'auto',
    trusted_per_page: int = 1,
    wrong_limit: int | None = None,
    seed: int = 0,
    has_picture: Callable[[str], object] | None = None,
    made_from: Mapping[str, Any] | None = None,
) -> Study:
    """A study of one data set. Pictures are not in it yet: `pictures.add` puts them there.

    Args:
      examples: of the test set, with gold explanations.
      predictions: by label of the system and id.
      right: how right each answer is, by label and id; more than 0 is right.
      dataset: its name.
      limit: examples of each system; 0 = all that can be had.
      raters: of each page.
      page_items: on a page, trusted ones included.
      choices: answers to choose from; e-SNLI-VE has its three.
      trusted: items with known ratings: 'auto' makes them from other examples (a gold explanation of another picture
        explains nothing), '' = none, or items of your own (`known.read`).
      trusted_per_page: of them.
      wrong_limit: of a page; None = as the paper, 1 wrong answer of ten for open questions and 2 elsewhere.
      seed: decides all that is random.
      has_picture: of an image id; examples without are left out. None = it does not matter.
      made_from: what tells the sources from others.

    Returns:
      The study. `settings` has the arguments, for each system what became of its right answers in numbers ('systems'),
      and in words what falls short of what was wanted ('shortfalls').

    Raises:
      ValueError: settings that make no study, repeated ids, predictions without judgement, no system with a right
        answer that can be asked about.
    """
    _check(locals())
    ordered = _ordered(examples, seed)
    found, counts, shortfalls = {}, {}, []
    for system in sorted(predictions):
        found[system], counts[system], short = _selection.select(
            ordered, predictions[system], right[system], limit, has_picture
        )
        shortfalls += [f'{system}: {line}' for line in short]
    if not any(found.values()):
        told = [
            f'{s}: ' + ', '.join(f'{n:,} {what.replace("_", " ")}' for what, n in counts[s].items()) for s in counts
        ]
        raise ValueError(f'nobody can be asked about anything: {"; ".join(told)}')
    makers = _Makers(ordered, choices, seed, dataset)
    items = _items(found, predictions, right, makers, counts)
    questions = {_choices.is_relation(e) for rows in found.values() for e in rows}
    questions |= {_choices.is_relation(row.example) for row in trusted if not isinstance(trusted, str)}
    if len(questions) > 1:
        raise ValueError(f'{dataset}: some examples have relations to a picture as answers, others do not')
    relations = questions.pop()
    per_page = trusted_per_page if trusted else 0
    pages = _arrangement.arrange(items, page_items - per_page)
    if per_page:
        if trusted == 'auto':  # some more than needed: not every item can stand on every page
            pictures = {item.image_id for item in items}
            checks = itertools.islice(makers.automatic(pictures, has_picture), len(pages) * per_page + page_items)
        else:
            by_id = {row.example.id: row for row in trusted}
            checks = (by_id[name] for name in _chance.order(seed, by_id))
        shortfalls += _arrangement.insert(pages, [makers.trusted(row) for row in checks], per_page)
    _arrangement.shuffle(pages, seed)
    longest = max(map(len, pages))
    if not relations and (few := sum(len(item.choices) < choices for page in pages for item in page)):
        shortfalls.append(f'{few} items have fewer than {choices} answers to choose from')
    paper = _WRONG if relations or items[0].example in makers.with_choices else _WRONG_OPEN
    return Study(
        dataset=dataset,
        kind='statement' if relations else 'question',
        items={item.id: item for page in pages for item in page},
        pages=tuple(Page(f'p{number:03}', tuple(item.id for item in page)) for number, page in enumerate(pages, 1)),
        raters=raters,
        wrong_limit=_of_ten(paper, longest) if wrong_limit is None else wrong_limit,
        yes_limit=_of_ten(_YES, longest),
        s_t={system: sum(right[system].values()) / len(right[system]) for system in sorted(predictions)},
        settings={
            'seed': seed, 'limit': limit, 'page_items': page_items, 'choices': choices,
            'trusted': trusted if isinstance(trusted, str) else 'own', 'trusted_per_page': per_page,
            'systems': counts, 'shortfalls': shortfalls,
        },
        made_from=dict(made_from or {}),
    )  # fmt: skip


def _check(given) -> None:
    """Raises ValueError for arguments of `sample` that make no study."""
    predictions, right = given['predictions'], given['right']
    least = {'limit': 0, 'raters': 1, 'page_items': 1, 'choices': 2, 'trusted_per_page': 0}
    for name, smallest in least.items():
        if given[name] < smallest:
            raise ValueError(f'{name} is {given[name]}, wanted at least {smallest}')
    if given['wrong_limit'] is not None and given['wrong_limit'] < 0:
        raise ValueError(f'wrong_limit is {given["wrong_limit"]}, wanted at least 0: no page could be handed in')
    if isinstance(given['trusted'], str) and given['trusted'] not in ('auto', ''):
        raise ValueError(f"trusted is {given['trusted']!r}, wanted 'auto', '' or known items")
    if given['trusted'] and given['trusted_per_page'] >= given['page_items']:
        raise ValueError(
            f'trusted_per_page is {given["trusted_per_page"]} of {given["page_items"]} page_items: no place is left'
        )
    if not predictions or predictions.keys() != right.keys():
        raise ValueError(f'predictions are of {sorted(predictions)}, judgements of {sorted(right)}')
    for system, rows in predictions.items():
        if system in (GOLD, TRUSTED, ''):
            raise ValueError(f'a system has the label {system!r}, which means something else here: take another')
        if not rows or rows.keys() != right[system].keys():
            odd = min(rows.keys() ^ right[system].keys(), default='')
            raise ValueError(f'{system}: predictions and judgements are not of the same ids, for example {odd!r}')


def _ordered(examples, seed) -> list[Example]:
    by_id = {example.id: example for example in examples}
    if len(by_id) < len(examples):
        seen = set()
        twice = next(e.id for e in examples if e.id in seen or seen.add(e.id))
        raise ValueError(f'example {twice!r} is there twice')
    return [by_id[name] for name in _chance.order(seed, by_id)]


def _of_ten(number: int, items: int) -> int:
    """A limit of a page of ten, for another length; at least as lenient."""
    return -(-number * items // _TEN)


class _Makers:
    """What items are made with: the same for all systems."""

    def __init__(self, ordered, choices, seed, dataset):
        self.ordered, self.seed, self._dataset, self._ids = ordered, seed, dataset, {}
        self._chooser = _choices.Chooser(ordered, choices, seed)
        self.with_choices = {e.id for e in ordered if e.choices is not None}

    def item(self, example: Example, explanations, what: str, given: Sequence[str] = ()) -> Item:
        """One item.

        Args:
          example: what is asked.
          explanations: in the order shown.
          what: tells it from other items of the example.
          given: answers that are not wrong.
        """
        answers, gold = self._chooser.of(example, given)
        question = text.tags_to_names(example.text, example.objects)
        spoken = ' '.join((question, *answers, *(e.text for e in explanations)))
        return Item(
            id=self._id(example.id, what),
            example=example.id,
            image='',
            text=question,
            choices=answers,
            gold=gold,
            explanations=tuple(explanations),
            image_id=example.image_id,
            boxes=_boxes(example, spoken),
        )

    def _id(self, *what) -> str:
        """Opaque; names that would get the same id get longer ones."""
        names = ('i' + _chance.opaque(self.seed, digits, self._dataset, *what) for digits in itertools.count(6))
        return next(name for name in names if self._ids.setdefault(name, what) == what)

    def automatic(self, pictures: set[str], has_picture) -> Iterator[known.Known]:
        """Known items of other pictures than these, which others ask about, and then of these.

        From the end: what stands between the first right answers is what systems find hard.
        """
        usable = [e for e in reversed(self.ordered) if not _selection.why_not(e, has_picture)]
        first = {}
        for example in sorted(usable, key=lambda e: e.image_id in pictures):
            first.setdefault(example.image_id, example)
        answer = {e.id: text.vqa_normalise(_choices.gold(e)) for e in usable}
        return known.automatic(list(first.values()), usable, self.seed, lambda a, b: answer[a.id] != answer[b.id])

    def trusted(self, row: known.Known) -> Item:
        """The item of a known one, its explanations in random order."""
        shown = list(row.explanations)
        _chance.rng(self.seed, 'trusted sides', row.example.id).shuffle(shown)
        return self.item(row.example, shown, 'trusted')


def _boxes(example: Example, spoken: str) -> tuple[tuple[str, float, float, float, float], ...]:
    """Of the objects that the texts speak of: a name, and the box in shares of the picture.

    The published code writes an object as its number alone.
    """
    found = tags.located(example)
    if found is None:
        return ()
    boxes_O4 = (found['boxes'] / [*found['size'], *found['size']]).clip(0, 1).round(4).tolist()
    numbers = {int(digits) for digits in re.findall(r'(?<![\w.])\d{1,3}(?![\w.]*\w)', spoken)}
    named = [(name, *box) for number, (name, box) in enumerate(zip(found['classes'], boxes_O4), 1) if number in numbers]
    return tuple(row for row in named if row[1] < row[3] and row[2] < row[4])


def _items(found, predictions, right, makers, counts) -> list[Item]:
    """The items of all systems, in the order of the examples; `counts` learns what they are like."""
    gold_first = {}
    for system, rows in found.items():
        sides = [place % 2 == 0 for place in range(len(rows))]
        _chance.rng(makers.seed, 'sides', system).shuffle(sides)
        gold_first |= {(system, example.id): side for example, side in zip(rows, sides)}
        counts[system] |= dict.fromkeys(('empty', 'same_as_gold', 'other_answer'), 0)
    items = []
    for example in makers.ordered:
        systems = [system for system in found if (system, example.id) in gold_first]
        if not systems:
            continue
        gold = _choices.gold(example)
        given = [
            predictions[system][example.id].answer or ''
            for system in predictions
            if example.id in predictions[system] and right[system][example.id] > 0
        ]
        reference = _chance.rng(makers.seed, 'reference', example.id).choice(_selection.references(example))
        reference = Shown(GOLD, text.tags_to_names(reference, example.objects))
        for system in systems:
            prediction = predictions[system][example.id]
            words = text.tags_to_names(prediction.explanation.strip(), example.objects)
            counts[system]['empty'] += not words
            counts[system]['same_as_gold'] += words == reference.text
            if example.answers is not None and example.label is None:
                said = text.vqa_normalise(prediction.answer or '')
                counts[system]['other_answer'] += said != text.vqa_normalise(gold)
            shown = [reference, Shown(system, words or NO_EXPLANATION)]
            if not gold_first[system, example.id]:
                shown.reverse()
            items.append(makers.item(example, shown, f'system {system}', given))
    return items
