"""Aligns two texts as METEOR 1.5 does: all possible matches, then a beam search for the best set of them.

Candidate and reference are the original's lines 1 and 2; the search walks the reference. Its order of matches, paths
and ties is the original's, quirks included:
- A match alone on all of its words is fixed before the search. Two identical matches (a word that is both stem and
  synonym, a paraphrase in both directions) are two.
- Paths are ordered by words covered (most first), chunks (fewest first) and distance. Words count 1 if exact and 1/2
  otherwise, rounded down in each match: a stem, a synonym or a paraphrase of one word counts nothing.
- The distance of a match is added to the path that does *not* take it, and so to its later siblings.
- 40 paths go on at each word. Sorting is stable.
"""

from operator import itemgetter

from evil_jax.metrics._meteor.block import EXACT, PARAPHRASE, Block, Text

BEAM = 40
MODULES = 4
STATISTICS = 23

# A path's key is one integer: -words, chunks and distance from high bits to low.
_CHUNK = 1 << 32
_WORD = 1 << 56
_KEY = itemgetter(0)


def statistics(candidate: Text, reference: Text, block: Block) -> list[int]:
    """The original's 23 statistics of a pair.

    Words of candidate and reference; function words of both; for each module (exact, stem, synonym, paraphrase) matched
    content words of both and matched function words of both; chunks; matched words of both.
    """
    chosen = _search(len(reference.words), *_fixed(_matches(candidate, reference, block), candidate, reference))
    counts = [0] * (4 * MODULES)
    chunks, end1, end2 = 0, -1, -1
    for start, length, start1, length1, module in chosen:
        for i in range(start1, start1 + length1):
            counts[4 * module + 2 * candidate.function[i]] += 1
        for i in range(start, start + length):
            counts[4 * module + 1 + 2 * reference.function[i]] += 1
        chunks += start != end2 or start1 != end1
        end1, end2 = start1 + length1, start + length
    return [
        len(candidate.words), len(reference.words), sum(candidate.function), sum(reference.function), *counts, chunks,
        sum(counts[0::2]), sum(counts[1::2]),
    ]  # fmt: skip


def _matches(candidate: Text, reference: Text, block: Block) -> list[list[tuple[int, int, int, int, int]]]:
    """For each word of the reference the matches that start there, in the original's order.

    A match: start and number of words in the reference, start and number of words in the candidate, module.
    """
    where = candidate.where
    matches = []
    identical = candidate.hashes == reference.hashes
    for i, word in enumerate(reference.words):
        found = [(i, 1, j, 1, module) for module, other in block.related(word) if other in where for j in where[other]]
        if identical:
            found = [match for match in found if match[4] == EXACT]
        if len(found) > 1:
            found.sort(key=_BY_MODULE)
        matches.append(found)
    if identical:
        return matches
    for i, n, phrase in reference.spans:
        known = block.paraphrases[phrase]
        for p in _common(known, candidate.phrases):
            matches[i] += [(i, n, j, block.lengths[p], PARAPHRASE) for j in candidate.phrases[p]]
    for j, n, phrase in candidate.spans:
        known = block.paraphrases[phrase]
        for p in _common(known, reference.phrases):
            for i in reference.phrases[p]:
                matches[i].append((i, block.lengths[p], j, n, PARAPHRASE))
    return matches


_BY_MODULE = itemgetter(4, 2)


def _common(known: dict[int, int], phrases: dict[int, list[int]]) -> list[int]:
    """Phrases of a text among the paraphrases of another phrase, in the table's order."""
    common = known.keys() & phrases.keys()
    return sorted(common, key=known.__getitem__) if len(common) > 1 else list(common)


def _fixed(matches, candidate: Text, reference: Text):
    """Splits into the matches alone on their words (by start), and the others."""
    cover1, cover2 = [0] * len(candidate.words), [0] * len(reference.words)
    for found in matches:
        for start, length, start1, length1, _ in found:
            for i in range(start, start + length):
                cover2[i] += 1
            for i in range(start1, start1 + length1):
                cover1[i] += 1
    fixed = {}
    for i, found in enumerate(matches):
        if len(found) == 1:
            start, length, start1, length1, _ = found[0]
            cover = cover2[start : start + length] + cover1[start1 : start1 + length1]
            if all(n == 1 for n in cover):
                fixed[i] = found[0]
    return fixed, matches


def _search(size: int, fixed, matches):
    """The best set of matches, by start in the reference."""
    if sum(map(len, matches)) == len(fixed):
        return [fixed[i] for i in sorted(fixed)]
    fixed1 = fixed2 = 0
    for start, length, start1, length1, _ in fixed.values():
        fixed1 |= (1 << length1) - 1 << start1
        fixed2 |= (1 << length) - 1 << start
    # A path: key, taken words of the candidate (bits), end of the last match in the candidate (-1: none just before),
    # next free word of the reference, chosen matches (linked).
    paths = [(0, 0, -1, 0, None)]
    for i in range(size):
        if len(paths) > 1:
            paths.sort(key=_KEY)
            del paths[BEAM:]
        if i in fixed:
            match = fixed[i]
            start, length, start1, length1, _ = match
            gain = abs(start - start1) - _words(match) * _WORD
            paths = [
                (
                    key + gain + (_CHUNK if last not in (-1, start1) else 0),
                    taken, start1 + length1, start + length, (match, chosen),
                )
                for key, taken, last, _, chosen in paths
            ]  # fmt: skip
            continue
        if fixed2 >> i & 1:
            continue  # inside a fixed match
        options = []
        for match in matches[i]:
            start, length, start1, length1, _ = match
            bits = (1 << length1) - 1 << start1
            if bits & fixed1 or ((1 << length) - 1 << start) & fixed2:
                continue
            gain = -_words(match) * _WORD
            options.append((bits, gain, start1, start1 + length1, start + length, abs(start - start1), match))
        grown = []
        for path in paths:
            key, taken, last, free, chosen = path
            if free > i:  # inside a chosen match
                grown.append(path)
                continue
            for bits, gain, start1, end1, end2, distance, match in options:
                if not taken & bits:
                    chunk = _CHUNK if last != -1 and last != start1 else 0
                    grown.append((key + gain + chunk, taken | bits, end1, end2, (match, chosen)))
                    key += distance
            grown.append((key if last == -1 else key + _CHUNK, taken, -1, i + 1, chosen))
        paths = grown
    paths.sort(key=_KEY)
    ended = [(key if last == -1 else key + _CHUNK, chosen) for key, _, last, _, chosen in paths[:BEAM]]
    chain = min(ended, key=_KEY)[1]
    best = []
    while chain is not None:
        match, chain = chain
        best.append(match)
    return best[::-1]


def _words(match) -> int:
    _, length, _, length1, module = match
    return length + length1 if module == EXACT else length // 2 + length1 // 2
