"""Predictions and examples that belong together, by their ids. What does not agree is counted and refused.

Which examples were scored is half of a score: nothing is left out unless the user said so, and then it is counted.
"""

import collections
import dataclasses
from collections.abc import Collection, Sequence

from evil_jax import lookup
from evil_jax.data.sources import _files
from evil_jax.records import Example, Prediction

ALLOW = ('duplicates', 'missing', 'extra')


@dataclasses.dataclass(frozen=True)
class Counts:
    """What was left out.

    Attributes:
      duplicates: predictions whose id appeared before in the file.
      missing: examples without a prediction.
      extra: ids of predictions without an example.
    """

    duplicates: int = 0
    missing: int = 0
    extra: int = 0

    def __str__(self):
        """'missing:3,extra:1', for signatures; '' where all ids agreed."""
        return ','.join(f'{name}:{n}' for name, n in dataclasses.asdict(self).items() if n)


def match(
    predictions: Sequence[Prediction], examples: Sequence[Example], allow: Collection[str] = (), path='predictions'
) -> tuple[list[Prediction], list[Example], Counts]:
    """Predictions and examples, one for one, in the order of the examples.

    Args:
      predictions: in file order; ids may repeat.
      examples: ids must be unique.
      allow: those of ALLOW that are no error: of `duplicates` the first prediction counts, `missing` examples are left
        out, `extra` predictions are dropped.
      path: begins the error message.

    Returns:
      (predictions, examples, what was left out).

    Raises:
      ValueError: an unknown word in `allow`; repeated ids of examples; what is not allowed, all of it in one message;
        nothing in common.
    """
    for word in sorted(set(allow) - set(ALLOW)):
        raise ValueError(f'unknown word {word!r} in allow.{lookup.nearest(word, ALLOW)} There are: {", ".join(ALLOW)}')
    repeated = [i for i, n in collections.Counter(e.id for e in examples).items() if n > 1]
    if repeated:
        raise ValueError(f'repeated among the examples: {_files.some_ids(repeated)}')
    first, again = {}, {}
    for prediction in predictions:
        if prediction.id in first:
            again.setdefault(prediction.id, []).append(prediction)
        else:
            first[prediction.id] = prediction
    known = {e.id for e in examples}
    missing = [e.id for e in examples if e.id not in first]
    extra = [i for i in first if i not in known]
    counts = Counts(sum(map(len, again.values())), len(missing), len(extra))
    faults = {
        'duplicates': again and _told_twice(first, again, counts.duplicates),
        'missing': missing and f'no prediction for {_files.some_ids(missing)}',
        'extra': extra and f'no example for {_files.some_ids(extra)}',
    }
    refused = [text for name, text in faults.items() if text and name not in allow]
    if refused or len(missing) == len(examples):
        refused = refused or ['nothing in common']
        of = f'of {len(predictions):,} predictions and {len(examples):,} examples'
        raise ValueError(f'{path}: {"; ".join(refused)} ({of}){_advice(first, examples, faults, allow)}')
    kept = [e for e in examples if e.id in first]
    return [first[e.id] for e in kept], kept, counts


def _told_twice(first, again, count) -> str:
    said = lambda p: (p.answer, p.answer_index, p.explanation)
    others = sum(any(said(p) != said(first[i]) for p in rows) for i, rows in again.items())
    differ = f'{others} of them with another answer or explanation' if others else 'always with the same texts'
    more = 'prediction repeats' if count == 1 else 'predictions repeat'
    return f'{count:,} {more} {_files.some_ids(list(again))}, {differ}'


def _advice(first, examples, faults, allow) -> str:
    """What may help: the two kinds of ids, where they have nothing in common, or what would be allowed."""
    if any(e.id in first for e in examples) or not first or not examples:
        names = [name for name, text in faults.items() if text and name not in allow]
        return f'. To leave them out, allow {",".join(names)}'
    seen = f': no id in common; for example prediction {next(iter(first))!r}, example {examples[0].id!r}'
    if all(i in first for i in map(str, range(len(first)))):
        seen += ". The predictions are numbered: as references take the file with these numbers (such as NLX-GPT's own)"
    return seen
