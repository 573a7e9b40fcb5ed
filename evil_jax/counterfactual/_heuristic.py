"""The default tagger: WordNet's readings of a word, and the rules of _grammar.py that choose among them."""

from evil_jax.counterfactual import _compounds, _grammar, _places, _vocabulary
from evil_jax.counterfactual._places import Place
from evil_jax.counterfactual._tokens import POSSESSIVE, WORD, Token
from evil_jax.counterfactual.lexicon import Lexicon

# Words, phrases and decisions that are remembered, of each so many; then they are forgotten and filled anew.
_REMEMBERED = 1 << 18

_SENTENCE, _PAUSE = frozenset('.?!;:…'), frozenset(',()[]–—')
_OPEN = frozenset('NARBSEG')  # first letters of the signs of words that are no function words
_UNKNOWN = object()  # of a phrase that was not looked up yet; None is of one that is no entry


class Heuristic:
    """Tags texts by WordNet and word order. Any number of threads may use one.

    What depends on a word and its nearest neighbours alone is worked out once and remembered.
    """

    def __init__(self, lexicon: Lexicon):
        self._lexicon = lexicon
        self._words, self._phrases, self._decisions = {}, {}, {}

    def __call__(self, text: str) -> list[Token]:
        known = self._words
        written, words, spans, signs, gaps, behind = [], [], [], [], {}, -1
        for match in WORD.finditer(text):
            start, end = span = match.span()
            token = text[start:end]
            word = known.get(token) or self._word(token)
            sign = word.sign
            if start != behind + 1 or (behind >= 0 and text[behind] != ' '):
                gap = _gap(text[max(behind, 0) : start])
                if gap is not None:
                    gaps[len(words)] = gap
                    sign = '$' if gap else sign  # as the words before see it
            written.append(token)
            words.append(word)
            spans.append(span)
            signs.append(sign)
            behind = end
        signs += ['$', '$']
        return self._tokens(text, written, words, spans, signs, gaps)

    def _tokens(self, text, written, words, spans, signs, gaps):
        """`gaps`: number of a word -> what the gap before it means (_gap), where that is more than blanks."""
        tokens, decisions = [], self._decisions
        (before, open), at, count = _places.START, 0, len(words)
        while at < count:
            word, after = words[at], signs[at + 1]
            if at in gaps:
                before, open = _places.behind_gap(gaps[at], before, open)
            if not word.kind and after[0] in _OPEN:
                phrase, last = self._compound(text, words, spans, signs, gaps, at, before, open)
                if phrase is not None:
                    start, end = spans[at][0], spans[last][1]
                    tail = (phrase.lemma, 'n', phrase.rule, bool(phrase.forms))
                    tokens.append(Token(text[start:end], start, end, *tail))
                    before, open = _places.follow(word, 'n', phrase, Place(before, open, '', ''))
                    at = last + 1
                    continue
            later = signs[at + 2] if word.ahead == 2 and after != '$' and words[at + 1].vague else ''
            key = (word.text, before, open, after if word.ahead else '', later)
            tail, before, open = decisions.get(key) or self._decide(word, key)
            tokens.append(Token(written[at], *spans[at], *tail))
            at += 1
        return tokens

    def _compound(self, text, words, spans, signs, gaps, at, before, open):
        """(reading, number of its last word) of the longest entry that begins at a word; (None, at) without one."""
        for last in range(at + _compounds.LONGEST - 1, at, -1):
            if not gaps.keys().isdisjoint(range(at + 1, last + 1)):
                continue
            if 'N' in signs[last] and all(sign[0] in _OPEN for sign in signs[at + 1 : last + 1]):
                phrase = text[spans[at][0] : spans[last][1]]
                reading = self._phrases.get(phrase, _UNKNOWN)
                if reading is _UNKNOWN:
                    reading = _remember(self._phrases, phrase, _compounds.entry(self._lexicon, phrase, words[last]))
                if reading and _grammar.is_compound(words[at], words[last], Place(before, open, signs[last + 1], '')):
                    return reading, last
        return None, at

    def _word(self, written):
        return _remember(self._words, written, _vocabulary.word(self._lexicon, written))

    def _decide(self, word, key):
        """((lemma, pos, ...) of the token, `before` and `open` behind it)."""
        place = Place(*key[1:])
        if word.ahead == 2:
            pos = _grammar.choose(word, place)
        else:
            pos = 'f' if word.kind else word.first('nvar')
        reading = word.readings.get(pos)
        before, open = _places.follow(word, pos, reading, place)
        if reading is None:
            lemma = 'be' if word.text == POSSESSIVE and before == 'be' else word.text
            tail = (lemma, 'x' if word.kind == 'tag' or word.text[0].isdigit() else 'f')
        else:
            form = _places.verb_form(reading, place) if pos == 'v' else ''
            tail = (reading.lemma, pos, reading.rule, 'plural' in reading.forms, form)
        return _remember(self._decisions, key, (tail, before, open))


def _remember(table, key, value):
    if len(table) >= _REMEMBERED:
        table.clear()
    table[key] = value
    return value


def _gap(text):
    """'.' the end of a sentence, ',' a pause, '/' a slash, '' quotes and the rest; None for nothing but blanks."""
    marks = set(text)
    if marks & _SENTENCE:
        return '.'
    return '/' if '/' in marks else ',' if marks & _PAUSE else '' if text.strip() else None
