"""What all filters have in common: where they look, and how a number becomes a decision."""

from evil_jax.construction.pairs import CLASSES, SPLITS, Pair


class Filter:
    """A rule that removes pairs. Sub-classes say what it measures.

    Attributes:
      name: of the filter, its file and its settings.
      source: section of the paper that has it (Kayser et al. 2021), and what of it is ours.
      needs_scores: whether it looks at what an NLI model says of captions and hypothesis.
      threshold: largest number that stays; None: the number is no measure, whatever is found removes a pair.
      splits, classes: where it looks; () = everywhere.
    """

    name = ''
    source = ''
    needs_scores = False

    def __init__(self, settings):
        """Args:
          settings: `construct.NAME` of the config.

        Raises:
          ValueError: an unknown split or class, or a threshold that is no number.
        """
        self.threshold = settings.get('threshold')
        self.splits, self.classes = tuple(settings.splits), tuple(settings.classes)
        for field, wanted in (('splits', SPLITS), ('classes', CLASSES)):
            for value in getattr(self, field):
                if value not in wanted:
                    where = f'construct.{self.name}.{field}'
                    raise ValueError(f'{where} has {value!r}, wanted some of {", ".join(wanted)}, or () for all')
        if self.threshold is not None and self.threshold != self.threshold:
            raise ValueError(f'construct.{self.name}.threshold is {self.threshold}, wanted a number')

    def applies(self, pair: Pair) -> bool:
        """Whether it looks at this pair."""
        return pair.split in (self.splits or SPLITS) and pair.label in (self.classes or CLASSES)

    def removes(self, value: float) -> bool:
        """Whether a number of `measure` removes the pair: what is exactly the threshold, or no number, stays."""
        return value > (self.threshold or 0)
