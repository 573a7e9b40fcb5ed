"""Words of a text and their places."""

import re
from typing import NamedTuple

POSSESSIVE = "'s"  # as a lemma; of is and has, shortened, 'be'


class Token(NamedTuple):
    """A word of a text, or several that are one entry of WordNet ('fire hydrant').

    Attributes:
      text: as it is written: the text from `start` to `end`.
      start, end: its place in the text.
      lemma: its dictionary form in lower case, with blanks.
      pos: 'n', 'v', 'a', 'r'; 'f' of function words, which be, do, have, modals and possessive 's are too; 'x' of
        tags of objects and of figures.
      rule: how the lemma was found (morphology.lemmas); 'unknown' where WordNet does not have it, '' for 'f' and 'x'.
      plural: whether a noun is in the plural.
      form: of a verb: 'base', 's', 'past', 'participle' or 'ing'.
    """

    text: str
    start: int
    end: int
    lemma: str
    pos: str
    rule: str = ''
    plural: bool = False
    form: str = ''


# A tag of an object is one word; so are don't, o'clock and T-shirt, but dog's is two.
WORD = re.compile(r"<\|\w+\|>|\w+(?:-\w+)*(?:['’](?:t|clock)\b)?|['’](?:s|re|ll|ve|d|m)\b", re.IGNORECASE)

# A word, as the first group, or a punctuation mark.
PIECE = re.compile(rf'({WORD.pattern})|[^\w\s]', re.IGNORECASE)


def tokenise(text: str) -> list[tuple[int, int]]:
    """(start, end) of every word, figure, tag of an object and contraction ('s, 're); punctuation is left out."""
    return [match.span() for match in WORD.finditer(text)]
