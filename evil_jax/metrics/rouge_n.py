"""ROUGE-1 as Google's rouge-score computes it without its stemmer (Lin, 2004): words that two texts share. Scale 0..1.

Words are runs of the letters a to z and of digits, in lower case; any other character parts them. A word that a text
repeats counts as often as both texts have it. F is the harmonic mean of precision and recall, so the order of the texts
does not matter. Two texts without words score 0.
"""

import collections
import re

_WORD = re.compile('[a-z0-9]+')


def rouge_1(text: str, other: str) -> float:
    """F of two texts."""
    words, others = (_WORD.findall(each.lower()) for each in (text, other))
    if not (words and others):
        return 0.0
    common = (collections.Counter(words) & collections.Counter(others)).total()
    return 2 * common / (len(words) + len(others))
