"""Human ratings of explanations: files -> ratings -> one exact score an item.

The question of the e-ViL study is "does the explanation justify the answer?"; its four answers are worth 1 (yes), 2/3
(weak yes), 1/3 (weak no) and 0 (no) (Kayser et al., 2021, section 5.3). Ratings are kept as integers out of a common
denominator, because means of thirds are no exact floats: 1/3 + 0 + 1/3 and 2/3 + 0 + 0 differ in the last bit, and two
items that people like equally well would get different ranks. Printing 15 digits does not heal that.

`read` knows two forms (the readers are in `_files.py`):

* `long`: one rating a row, CSV (',', ';' or tab) or JSON lines. `item` (or `item_id`, `id`) and `rating` (or `score`);
  if at hand `system` (or `model`), `annotator` (or `worker`, `rater`), `dataset`, `image_id` (or `image`),
  `explanation` (or `prediction`), `reference` (`reference_1`, ...; in JSON a list `references`), `flags` (or
  `shortcomings`; joined by ';', or a list), `status`, `gold_answer` and `chosen_answer` (or `task_answer`), `reason`
  (why it does not count) and `beside` (the system that a gold explanation was shown with). Ratings are the words yes,
  weak_yes, weak_no, no, or thirds (1, 2/3, 0.667, ...), or integers of a scale that a column `scale` (such as 1-4) or
  the argument states. The tidy table of a study (`responses.py`) has this form.
* `ofax`: the survey of OFA-X, one row for an assignment and a task, with the generated and the gold explanation.

A rating counts if it is there, its work was not rejected, and the rater gave the gold answer: who does not see what the
question is about cannot judge its explanation.
"""

import dataclasses
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from evil_jax.human import _files

FORMATS = tuple(_files.READERS)
GOLD = ('gt', 'gold', 'ground_truth')  # systems of these names are the gold explanations, rated beside generated ones


@dataclasses.dataclass(frozen=True, slots=True)
class Rating:
    """What one annotator said of one explanation.

    Attributes:
      dataset, system, item: what was rated; `item` is the example's id. A file without systems has the system ''.
      score: integer from 0 (worst) to `out_of` (best).
      out_of: the number of steps of the scale: 3 for yes/weak_yes/weak_no/no.
      annotator: who said so, or None.
      image: key of the picture, or None.
      explanation: the rated text, or None if it is not in the file.
      references: gold explanations, if they are in the file.
      flags: shortcomings that were ticked.
      source: file and line.
      beside: of a gold explanation, the system that it was shown with: beside another it is rated again. '' = not told.
    """

    dataset: str
    system: str
    item: str
    score: int
    out_of: int = 3
    annotator: str | None = None
    image: str | None = None
    explanation: str | None = None
    references: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    source: str = ''
    beside: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """All ratings of one explanation.

    Attributes:
      dataset, system, item, image, explanation, references, beside: as in `Rating`.
      scores: the ratings, each an integer from 0 to `out_of`.
      out_of: the number of steps of the scale, the same for all items of a data set.
      flags: how many raters ticked what.
    """

    dataset: str
    system: str
    item: str
    scores: tuple[int, ...]
    out_of: int
    image: str | None = None
    explanation: str | None = None
    references: tuple[str, ...] = ()
    flags: Mapping[str, int] = dataclasses.field(default_factory=dict)
    beside: str = ''

    @property
    def key(self) -> str:
        """The id of this explanation among all data sets and systems: metrics are joined to people by it."""
        return key(self.dataset, self.system, self.item, self.beside)

    @property
    def total(self) -> int:
        return sum(self.scores)

    @property
    def mean(self) -> Fraction:
        """Exact mean in [0, 1]: equal opinions are equal numbers, also where items have 3 and 5 ratings."""
        return Fraction(self.total, len(self.scores) * self.out_of)

    @property
    def gold(self) -> bool:
        return is_gold(self.system)


def key(dataset: str, system: str, item: str, beside: str = '') -> str:
    """'data set | system | item | beside'; a part that is empty is left out."""
    return ' | '.join(filter(None, (dataset, system, item, beside)))


def is_gold(system: str) -> bool:
    """Whether the name of a system says that its explanations are the gold ones."""
    return system.casefold().replace(' ', '_') in GOLD


def read(
    path: str | os.PathLike,
    format: str = 'long',
    *,
    scale: tuple[int, int] | None = None,
    dataset: str | None = None,
    system: str | None = None,
) -> list[Rating]:
    """The ratings of a file that count, in its order.

    Args:
      path: the file.
      format: `long` or `ofax`.
      scale: (worst, best) of integer ratings in `long` files without a column `scale`.
      dataset: of rows that name none. None: esnlive, vqax or vcr if the file's name says so, else that name.
      system: of rows that name none. None: '', and 'ofax' for OFA-X.

    Raises:
      ValueError: an unknown format; or, naming file and line, a rating outside its scale, a missing column or id, a
        repeated rating of one annotator, a file without any row.
    """
    return read_counted(path, format, scale=scale, dataset=dataset, system=system)[0]


def read_counted(path, format: str = 'long', *, scale=None, dataset=None, system=None) -> tuple[list[Rating], Counter]:
    """As `read`, and how many ratings do not count, by reason ('answered otherwise', 'rejected', 'no rating')."""
    if format not in _files.READERS:
        raise ValueError(f'format of ratings is {format!r}, wanted one of {", ".join(FORMATS)}')
    ratings, left_out, seen = [], Counter(), {}
    for row in _files.READERS[format](path, scale, dataset, system):
        if isinstance(row, str):
            left_out[row] += 1
            continue
        rating = Rating(**row)
        if rating.annotator is not None:
            name = (rating.dataset, rating.system, rating.item, rating.beside, rating.annotator)
            if name in seen:
                again = f'annotator {rating.annotator!r} rates {rating.item!r} again'
                raise ValueError(f'{rating.source}: {again} (first at {seen[name]})')
            seen[name] = rating.source
        ratings.append(rating)
    return ratings, left_out


def read_files(paths: Iterable[str | os.PathLike], format: str = 'long') -> tuple[list[Rating], Counter]:
    """`read_counted` of several files together."""
    ratings, left_out = [], Counter()
    for path in paths:
        some, others = read_counted(path, format)
        ratings += some
        left_out += others
    return ratings, left_out


def aggregate(ratings: Iterable[Rating]) -> list[Item]:
    """One `Item` for each explanation, sorted by its names, so that the order of files never matters.

    Ratings of one data set on different scales are brought to the common multiple of their steps.

    Raises:
      ValueError: the ratings of one item show different explanations, references or pictures; or two items have the
        same `key`.
    """
    groups: dict[tuple[str, str, str, str], list[Rating]] = {}
    for rating in ratings:
        groups.setdefault((rating.dataset, rating.system, rating.item, rating.beside), []).append(rating)
    steps: dict[str, int] = {}
    for (dataset, *_), group in groups.items():
        steps[dataset] = math.lcm(steps.get(dataset, 1), *{r.out_of for r in group})
    items = []
    for name in sorted(groups):
        group, out_of = groups[name], steps[name[0]]
        items.append(
            Item(
                *name[:3],
                beside=name[3],
                scores=tuple(sorted(r.score * (out_of // r.out_of) for r in group)),
                out_of=out_of,
                image=_same(group, 'image', None),
                explanation=_same(group, 'explanation', None),
                references=_same(group, 'references', ()),
                flags=dict(sorted(Counter(flag for r in group for flag in r.flags).items())),
            )
        )
    owners: dict[str, Item] = {}
    for item in items:
        other = owners.setdefault(item.key, item)
        if other is not item:
            raise ValueError(f'{item.key!r} is two things, {_parts(other)} and {_parts(item)}: rename one')
    return items


def _parts(item):
    return f'data set {item.dataset!r} system {item.system!r} item {item.item!r}'


def _same(group, field, unset):
    """The value that all ratings of an item agree on. Those that say nothing are not asked."""
    first = None
    for rating in group:
        value = getattr(rating, field)
        if value == unset:
            continue
        if first is not None and getattr(first, field) != value:
            other = getattr(first, field)
            raise ValueError(
                f'{rating.source}: {field} of {rating.item!r} is {value!r}, but {other!r} at {first.source}'
            )
        first = first or rating
    return unset if first is None else getattr(first, field)


def texts(items: Iterable[Item]) -> dict[str, tuple[dict[str, str], dict[str, list[str]]]]:
    """Of items whose texts are known: {data set: ({key: explanation}, {key: references})}, which metrics can score.

    Gold explanations are left out: a reference cannot be compared with itself.
    """
    found: dict[str, tuple[dict, dict]] = {}
    for item in items:
        if item.explanation is None or not item.references or item.gold:
            continue
        predictions, references = found.setdefault(item.dataset, ({}, {}))
        predictions[item.key] = item.explanation
        references[item.key] = list(item.references)
    return found


def keyed(
    metrics: Mapping[str, Mapping[str, float | None]],
    items: Sequence[Item],
    *,
    system: str | None = None,
    dataset: str | None = None,
) -> dict[str, dict[str, float | None]]:
    """Metric values by example id -> by the keys of the rated items that they belong to.

    Args:
      metrics: {metric: {example id: value}} of one system on one data set.
      items: all rated items.
      system, dataset: whose values these are. None: any, which must be one, gold aside.

    Returns:
      {metric: {key: value}}; rated items that have no value are not in it.

    Raises:
      ValueError: the items are of several systems or data sets, and it was not said which; or none fits.
    """
    chosen = [i for i in items if not i.gold and system in (None, i.system) and dataset in (None, i.dataset)]
    for what, wanted in (('system', system), ('dataset', dataset)):
        names = sorted({getattr(i, what) for i in items if not i.gold})
        if wanted is None and len({getattr(i, what) for i in chosen}) > 1:
            raise ValueError(f'ratings of several {what}s, say which one the predictions are: {", ".join(names)}')
        if wanted is not None and not chosen:
            raise ValueError(f'no ratings of {what} {wanted!r}; there are: {", ".join(names)}')
    return {
        name: {i.key: values[i.item] for i in chosen if i.item in values} for name, values in metrics.items()
    }  # fmt: skip
