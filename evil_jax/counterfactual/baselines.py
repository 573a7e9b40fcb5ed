"""What is asked beside the edits, so that a rate of flips can be read.

    noop              a word is replaced by itself: the question is the same, byte for byte, and so is the answer of any
                      system that is not random. A flip means that answers are noisy, or were mixed up.
    random_noun, random_verb, random_adjective
                      the word that an edit replaces gives way to any other of its class from the user's own questions.
                      Flips under hypernyms mean little if those under random nouns are as rare.
    blank             the question with a picture without content: what the question alone makes the system say.
    repeat            the question once more: the noise of decoding.

Each is made once an example, the random ones once for each class of word that its edits replace.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from evil_jax import lookup
from evil_jax.counterfactual import morphology
from evil_jax.counterfactual.edits import Edit
from evil_jax.counterfactual.tagging import Tagger, Token
from evil_jax.records import Example

NAMES = ('noop', 'random', 'blank', 'repeat')
FAMILIES = ('noop', 'random_noun', 'random_verb', 'random_adjective', 'blank', 'repeat')
ASKED = {'blank': {'image': 'blank'}, 'repeat': {'repeat': 1}}  # fields of asked rows
_CLASSES = {'n': 'noun', 'v': 'verb', 'a': 'adjective'}
_BEHIND_ARTICLE = re.compile(r'\b(an?)(\s+)$', re.IGNORECASE)


def random_of(family: str) -> str:
    """The random baseline of a family of edits: of the class of word that it replaces."""
    if family == 'synonym_verb':
        return 'random_verb'
    return 'random_adjective' if family.startswith(('synonym_adjective', 'colour_')) else 'random_noun'


class Words:
    """The words of the user's own questions, by class and form ('dogs' and 'men' are of one form)."""

    def __init__(self, texts: Iterable[str], tagger: Tagger):
        found = {}
        for text in texts:
            for token in tagger(text):
                if token.pos in _CLASSES and token.rule != 'unknown' and token.text.islower():
                    found.setdefault(_form(token), set()).add(token.text)
        self._words = {form: sorted(words) for form, words in found.items()}

    def draw(self, form: tuple, key: str, but: Collection[str]) -> str | None:
        """One of them, the same for the same key; None where there is no other than `but`."""
        words = self._words.get(form, [])
        start = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest())
        for step in range(min(len(words), len(but) + 1)):
            word = words[(start + step) % len(words)]
            if word not in but:
                return word
        return None


class Maker:
    """Makes the baselines of an example from its edits, for `exchange.write`."""

    def __init__(self, names: Sequence[str], words: Words, tagger: Tagger, *, seed: int = 0, agree: bool = True):
        """Takes which of `NAMES` are made; `agree` makes 'a' and 'an' fit the random word.

        Raises:
          ValueError: an unknown name.
        """
        makers: dict[str, Callable] = {
            'noop': self._noop, 'random': self._random, 'blank': self._same, 'repeat': self._same
        }  # fmt: skip
        self._makers = [(name, lookup.entry(makers, name, 'baseline')) for name in dict.fromkeys(names)]
        self._words, self._tagger, self._seed, self._agree = words, tagger, seed, agree

    def __call__(self, example: Example, edits: Sequence[Edit]) -> Iterator[Edit]:
        """Yields them, as records of edits."""
        for name, make in self._makers:
            yield from make(name, example, edits)

    def _noop(self, name, example, edits):
        start = _start(edits[0])
        yield _record(name, example, start, edits[0].source, edits[0].source, self._seed)

    def _same(self, name, example, edits):
        yield _record(name, example, 0, '', '', self._seed)

    def _random(self, name, example, edits):
        first = {}
        for edit in edits:
            first.setdefault(random_of(edit.family), edit)
        tokens = {token.start: token for token in self._tagger(example.text)}
        targets = {edit.target.lower() for edit in edits}
        for family, edit in first.items():
            start = _start(edit)
            token = tokens.get(start)
            pos = family.removeprefix('random_')[0]
            form = _form(token) if token and token.pos == pos and token.text == edit.source else (pos, False)
            key = f'{self._seed}\n{example.id}\n{family}'
            word = self._words.draw(form, key, targets | {edit.source.lower()})
            if word is not None:
                word = morphology.match_case(word, edit.source)
                yield _record(family, example, start, edit.source, word, self._seed, self._agree)


def _form(token: Token) -> tuple:
    return token.pos, token.form if token.pos == 'v' else token.plural


def _start(edit: Edit) -> int:
    """Where the edit's word begins: its span may have more than the word, a determiner before it as a rule."""
    return edit.original.rindex(edit.source, *edit.span)


def _record(family, example, start, source, target, seed, agree=False) -> Edit:
    text, end, written = example.text, start + len(source), target
    article = _BEHIND_ARTICLE.search(text, 0, start) if agree else None
    if article:
        fitting = morphology.match_case(morphology.article(target + text[end:]), article[1])
        start, written = article.start(), fitting + article[2] + target
    return Edit(
        id=f'{example.id}#{family}', example_id=example.id, image_id=example.image_id, family=family, original=text,
        text=text[:start] + written + text[end:], span=(start, end), target_span=(start, start + len(written)),
        source=source, target=target, source_lemma=source.lower(), target_lemma=target.lower(), seed=seed,
    )  # fmt: skip
