"""How many questions each family of edits could edit, and why the others could not be."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# From what stops a whole text to what stops the last of its words. A text whose words are stopped by different reasons
# counts for the one that comes last here: it was nearest to an edit.
REASONS = {
    'empty': 'nothing but blanks',
    'too long': 'longer than max_length characters',
    'not English': 'too few words are English',
    'only function words': 'no noun, verb or adjective',
    'no noun': 'none was found',
    'no verb': 'none was found that says more than be, do or have',
    'no adjective': 'none was found but colours',
    'no colour': 'none was found',
    'protected': 'its words are names, tags or parts of fixed phrases',
    'negated': 'its words stand after a negator or a downward quantifier',
    'not in WordNet': 'none of its words has a sense',
    'no synonym': 'no sense of its words has another word',
    'no hypernym': 'its words are at the top of WordNet',
    'no hyponym': 'its words are at the bottom of WordNet',
    'no sibling': 'its words share no hypernym with another word',
    'no other colour': 'no colour of the class is left',
    'does not fit': 'replacements disagree with a pronoun, a number or the words beside them',
    'low quality': 'replacements stay below min_quality',
}
_LATER = {reason: place for place, reason in enumerate(REASONS)}


def nearest(reasons: Iterable[str]) -> str:
    """Of the reasons that stopped the words of a text, the one that counts for the text."""
    return max(reasons, key=_LATER.__getitem__)


@dataclasses.dataclass(slots=True)
class Count:
    """Of one family.

    Attributes:
      asked: questions that were looked at.
      edited: those with an edit.
      edits: the edits.
      reasons: the questions without one, by `REASONS`.
    """

    asked: int = 0
    edited: int = 0
    edits: int = 0
    reasons: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    @property
    def share(self) -> float:
        """Of the questions that were edited; 0 where there are none."""
        return self.edited / self.asked if self.asked else 0.0


class Coverage:
    """Counts questions and edits of each family, in the order of `families`."""

    def __init__(self, families: Iterable[str]):
        self.families = {family: Count() for family in families}

    def add(self, family: str, edits: int, reason: str = '') -> None:
        """One question: the number of its edits, or the reason why it has none."""
        count = self.families[family]
        count.asked += 1
        if edits:
            count.edited += 1
            count.edits += edits
        else:
            count.reasons[reason] += 1

    def table(self) -> list[dict[str, Any]]:
        """Rows for reports: family, asked, edited, share, edits and the reasons, most frequent first, in words."""
        return [
            {
                'family': family,
                'asked': count.asked,
                'edited': count.edited,
                'share': count.share,
                'edits': count.edits,
                'reasons': [
                    {'reason': reason, 'meaning': REASONS[reason], 'questions': number}
                    for reason, number in count.reasons.most_common()
                ],
            }
            for family, count in self.families.items()
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            family: {
                'asked': count.asked,
                'edited': count.edited,
                'edits': count.edits,
                'reasons': dict(count.reasons.most_common()),
            }
            for family, count in self.families.items()
        }


def require(table: Sequence[Mapping[str, Any]], share: float) -> None:
    """Refuses families that edited too few questions, and that none edited any.

    Args:
      table: of `Coverage.table`.
      share: least share of the questions that each family must have edited.

    Raises:
      ValueError: the first family below `share`, with its commonest reason; no edit at all, with all reasons.
    """
    if not any(row['edited'] for row in table):
        asked = max((row['asked'] for row in table), default=0)
        reasons = dict.fromkeys(reason['reason'] for row in table for reason in row['reasons'])
        raise ValueError(f'none of {asked:,} questions can be edited: {", ".join(reasons) or "no family of edits"}')
    for row in table:
        if row['share'] < share:
            common = row['reasons'][0]
            raise ValueError(
                f'{row["family"]} edits {row["edited"]} of {row["asked"]} questions ({row["share"]:.1%}), wanted '
                f'{share:.1%}; the commonest reason is {common["reason"]!r}, {common["questions"]} questions'
            )
