"""A block of texts made ready for alignment: words as numbers, how words are related, phrases of the paraphrase table.

What a pair of texts needs is looked up for the whole block at once, and restricted to words and phrases that the block
has, so that aligning a pair meets only small tables.
"""

import numpy as np

from evil_jax.metrics._meteor import paraphrases
from evil_jax.metrics._meteor.lexicon import Lexicon, java_hash

EXACT, STEM, SYNONYM, PARAPHRASE = range(4)  # the original's modules, in its order


class Text:
    """One text.

    Attributes:
      words: numbers of its words in the block.
      hashes: Java's hash of each word.
      where: word -> positions.
      function: for each word whether it is a function word.
      spans: (start, words, phrase) of its phrases that have paraphrases in the block; by start, then length.
      phrases: phrase -> positions; of all its phrases that the table has.
    """

    __slots__ = ('function', 'hashes', 'phrases', 'spans', 'where', 'words')


class Block:
    """Texts (tuples of words from `normalise.words`) and what relates their words and phrases.

    Attributes:
      texts: a `Text` each.
      lengths: phrase -> number of words.
      paraphrases: phrase -> {phrase of the block: place among its paraphrases in the table}.
    """

    def __init__(self, texts: list[tuple[str, ...]], lexicon: Lexicon, index: paraphrases.Index):
        self._lexicon = lexicon
        numbers: dict[str, int] = {}
        words = [[numbers.setdefault(word, len(numbers)) for word in text] for text in texts]
        self.vocabulary = list(numbers)
        self._hashes = [java_hash(word) for word in self.vocabulary]
        function = [word in lexicon.function_words for word in self.vocabulary]
        self._same: dict[int, list[int]] = {}
        self._stems: dict[int, list[int]] = {}
        self._synsets: dict[int, list[int]] = {}
        for number, word in enumerate(self.vocabulary):
            self._same.setdefault(self._hashes[number], []).append(number)
            self._stems.setdefault(lexicon.stem(word), []).append(number)
            for synset in lexicon.synsets(word):
                self._synsets.setdefault(synset, []).append(number)
        self._related: list[list[tuple[int, int]] | None] = [None] * len(self.vocabulary)
        self.texts = []
        for row in words:
            text = Text()
            text.words = row
            text.hashes = [self._hashes[w] for w in row]
            text.function = [function[w] for w in row]
            text.where = {}
            for i, w in enumerate(row):
                text.where.setdefault(w, []).append(i)
            text.spans = []
            text.phrases = {}
            self.texts.append(text)
        self._add_phrases(words, index)

    def related(self, word: int) -> list[tuple[int, int]]:
        """(module, word) of the block's words that match a word by themselves, the word itself among them."""
        found = self._related[word]
        if found is None:
            text, own = self.vocabulary[word], self._hashes[word]
            found = [(EXACT, other) for other in self._same[own]]
            others = self._stems[self._lexicon.stem(text)]
            found += [(STEM, other) for other in others if self._hashes[other] != own]
            others = {other for synset in self._lexicon.synsets(text) for other in self._synsets[synset]}
            found += [(SYNONYM, other) for other in others if self._hashes[other] != own]
            self._related[word] = found
        return found

    def _add_phrases(self, words: list[list[int]], index: paraphrases.Index) -> None:
        lengths = np.array([len(row) for row in words], np.int64)
        flat = np.array([w for row in words for w in row], np.int64)
        owner = np.repeat(np.arange(len(words)), lengths)
        left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(flat))  # words from here to the end of the text
        start = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        word_hashes = np.array([paraphrases.word_hash(word.encode()) for word in self.vocabulary], np.uint64)
        at = np.arange(len(flat))
        hashes = paraphrases.start_hashes(len(flat))
        found = []
        for n in range(1, index.longest + 1):
            more = left[at] >= n
            at = at[more]
            hashes = paraphrases.append_words(hashes[more], word_hashes[flat[at + n - 1]])
            phrase = index.find(hashes) if len(at) else np.zeros(0, np.int64)
            hit = phrase >= 0
            found.append(np.stack([owner[at[hit]], start[at[hit]], np.full(hit.sum(), n), phrase[hit]]))
        owner, start, length, phrase = np.concatenate(found, 1)
        # Phrases get numbers of the block: small, and the same for a phrase everywhere.
        own, phrase = np.unique(phrase, return_inverse=True)
        self.lengths = np.zeros(len(own), np.int64)
        self.lengths[phrase] = length
        self.lengths = self.lengths.tolist()
        self.paraphrases = _restricted(own, index)
        order = np.lexsort((length, start, owner))
        rows = zip(owner[order].tolist(), start[order].tolist(), length[order].tolist(), phrase[order].tolist())
        for t, i, n, p in rows:
            text = self.texts[t]
            text.phrases.setdefault(p, []).append(i)
            if self.paraphrases[p]:
                text.spans.append((i, n, p))


def _restricted(phrases: np.ndarray, index: paraphrases.Index) -> list[dict[int, int]]:
    """For each of some phrases (sorted): those of them that are its paraphrases -> place in the table's order."""
    first = index.offsets[phrases].astype(np.int64)
    counts = index.offsets[phrases + 1] - first
    flat = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    target = index.targets[flat]
    place = np.searchsorted(phrases, target)
    place[place == len(phrases)] = 0
    here = phrases[place] == target if len(phrases) else np.zeros(0, bool)
    source = np.repeat(np.arange(len(phrases)), counts)[here]
    ends = np.cumsum(np.bincount(source, minlength=len(phrases))).tolist()
    kept = place[here].tolist()
    return [dict(zip(kept[a:b], range(b - a))) for a, b in zip([0, *ends], ends)]
