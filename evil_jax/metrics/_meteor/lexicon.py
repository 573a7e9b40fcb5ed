"""What METEOR knows about English words, read from the user's jar: function words, abbreviations, WordNet synsets."""

import functools
import importlib.metadata
import os
import zipfile

from evil_jax.metrics._meteor import normalise
from evil_jax.metrics.resources import Unavailable

MEMBERS = {
    'function': 'function/english.words',
    'prefixes': 'nonbreaking/english.prefixes',
    'exceptions': 'synonym/english.exceptions',
    'synsets': 'synonym/english.synsets',
}
# WordNet's rules for inflected forms: an ending, and what stands in its place in the base form. The first that gives a
# known word decides.
_ENDINGS = (
    ('s', ''), ('ses', 's'), ('xes', 'x'), ('zes', 'z'), ('ches', 'ch'), ('shes', 'sh'), ('men', 'man'), ('ies', 'y'),
    ('s', ''), ('ies', 'y'), ('es', 'e'), ('es', ''), ('ed', 'e'), ('ed', ''), ('ing', 'e'), ('ing', ''),
    ('er', ''), ('est', ''), ('er', 'e'), ('est', 'e'),
)  # fmt: skip
_KNOWN = 1 << 20  # words


class Lexicon:
    """English words as METEOR 1.5 sees them.

    Attributes:
      function_words: words that weigh less.
      prefixes: for `normalise.words`.
      stem: word -> Java's hash of its stem: the jar compares hashes.
      synsets: word -> WordNet synsets (frozenset of int) of it and of its base form.

    Args:
      jar: path of meteor-1.5.jar.

    Raises:
      Unavailable: the jar lacks a resource, or the stemmer is another one.
    """

    def __init__(self, jar: str | os.PathLike):
        try:
            with zipfile.ZipFile(jar) as archive:
                lines = {name: _lines(archive.read(member).decode()) for name, member in MEMBERS.items()}
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise Unavailable(f'needs meteor-1.5.jar of pycocoevalcap: {jar} cannot be read ({error})') from error
        self.function_words = frozenset(lines['function'])
        self.prefixes = _prefixes(lines['prefixes'])
        self._synsets = dict(zip(lines['synsets'][::2], lines['synsets'][1::2]))
        self._bases: dict[str, list[str]] = {}
        for base, forms in zip(lines['exceptions'][::2], lines['exceptions'][1::2]):
            for form in forms.split():
                self._bases.setdefault(form, []).append(base)
        self._stem_word = stemmer().stemWord
        # Words repeat; what is known of them goes with the lexicon.
        self.stem = functools.lru_cache(_KNOWN)(self._stem)
        self.synsets = functools.lru_cache(_KNOWN)(self._synsets_of)

    def _stem(self, word: str) -> int:
        return java_hash(self._stem_word(word))

    def _synsets_of(self, word: str) -> frozenset[int]:
        bases = self._bases.get(word)
        return frozenset(
            int(number)
            for form in (word, *([self._base(word)] if bases is None else bases))
            for number in self._synsets.get(form, '').split()
        )

    def _base(self, word: str) -> str:
        if word.endswith('ss') or len(word) <= 2:
            return word
        for ending, instead in _ENDINGS:
            if word.endswith(ending):
                base = word[: -len(ending)] + instead
                if base in self._synsets:
                    return base
        return ''


def stemmer():
    """The Snowball stemmer for English, in Python (the package may prefer a compiled one of another version).

    Raises:
      Unavailable: it is missing, or has rules that the jar does not have.
    """
    try:
        from snowballstemmer.english_stemmer import EnglishStemmer

        found = stemmer_version()
    except ImportError as error:
        raise Unavailable("needs snowballstemmer 2: pip install 'snowballstemmer<3'") from error
    if not found.startswith('2.'):
        raise Unavailable(f"needs snowballstemmer 2 (rules of {found} differ): pip install 'snowballstemmer<3'")
    return EnglishStemmer()


@functools.cache
def stemmer_version() -> str:
    """'2.2.0'."""
    return importlib.metadata.version('snowballstemmer')


def java_hash(word: str) -> int:
    """String.hashCode of Java, unsigned. The jar takes words of one hash for equal ('an' and 'c0'), and so do we."""
    value = 0
    if word.isascii():
        for unit in word.encode():
            value = (31 * value + unit) & 0xFFFFFFFF
        return value
    data = word.encode('utf-16-le')
    for low, high in zip(data[::2], data[1::2]):
        value = (31 * value + low + 256 * high) & 0xFFFFFFFF
    return value


def _lines(text: str) -> list[str]:
    return text.replace('\r\n', '\n').replace('\r', '\n').removesuffix('\n').split('\n')


def _prefixes(lines: list[str]) -> dict[str, int]:
    found = {}
    for line in lines:
        parts = line.split()
        if parts and not parts[0].startswith('#'):
            numbers = len(parts) > 1 and parts[1] == '#NUMERIC_ONLY#'
            found[parts[0]] = normalise.BEFORE_NUMBERS if numbers else normalise.ANY
    return found
