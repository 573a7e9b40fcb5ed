"""A pair of a picture and a hypothesis, with the texts that e-SNLI-VE is made of."""

import dataclasses
import json
from collections.abc import Iterator

from evil_jax.data.sources import _files, snli

CLASSES = snli.CLASSES  # order of scores, counts and tables
SPLITS = ('train', 'dev', 'test')


@dataclasses.dataclass(slots=True)
class Pair:
    """One row.

    Attributes:
      id: pairID.
      image_id: number of the Flickr picture, no folder and no ending; of other data any name.
      premise: the caption that was shown to who wrote hypothesis and explanations; '' = none is known.
      hypothesis: as it stands in the source.
      label: one of CLASSES.
      split: one of SPLITS.
      explanations: none to three, never empty texts.
      marked: words that the first explanation's author highlighted, of the premise, and of the hypothesis.
      original: the label before people gave it another; '' = it is still the same.
      where: 'file:line' of the source, for messages.
    """

    id: str
    image_id: str
    premise: str
    hypothesis: str
    label: str
    split: str
    explanations: list[str]
    marked: tuple[list[str], list[str]] = ((), ())
    original: str = ''
    where: str = ''

    def to_json(self) -> dict:
        return {name: getattr(self, name) for name in self.__slots__}  # dataclasses.asdict copies: ten times slower


def read(path) -> Iterator[Pair]:
    """Yields the pairs of a file of `line`s, one in memory at a time."""
    for where, row in _files.iter_json(path):
        try:
            yield Pair(**row)
        except TypeError as error:
            raise ValueError(f'{where}: not a pair: {error}') from error


def line(pair: Pair) -> bytes:
    """A pair as a line of JSON lines."""
    return json.dumps(pair.to_json(), ensure_ascii=False).encode() + b'\n'
