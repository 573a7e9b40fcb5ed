"""Protocols: how explanations are prepared, and which examples count as answered correctly.

The same predictions get CIDEr 83 under one protocol and 111 under another, so the protocol stands in every signature:

| | texts | BLEU, METEOR, ROUGE-L, CIDEr, SPICE see | references | a VQA answer is correct if |
|---|---|---|---|---|
| `evil` | as they are | texts split at blanks | the first; all, if answers are open | its soft score is above 0 |
| `coco` | as they are | Penn Treebank words, lower case, no punctuation | all | no answer has a higher soft score |
| `nlxgpt` | lower case, no full stops | Penn Treebank words | all | no annotators' answer is more frequent |
| `nlxgpt_any` | as `nlxgpt` | as `nlxgpt` | all | some annotator gave it, letter by letter |

Sources: `evil`, the code published with Kayser et al. (2021); `coco`, pycocoevalcap; `nlxgpt`, Sammani et al. (CVPR
2022), whose table of filtered scores follows `nlxgpt` while its accuracy is that of `nlxgpt_any`. Where answers are
classes or choices, each protocol asks for the right one. (NLX-GPT's own rule for VCR, BERTScore >= 0.92 of a written
answer, is not among them: choices are judged here as choices.)
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence

from evil_jax import lookup, text
from evil_jax.records import Example

TOKENISED = ('bleu', 'meteor', 'rouge', 'cider', 'spice')  # the others bring their own idea of a word


@dataclasses.dataclass(frozen=True)
class Protocol:
    """See the table above.

    Attributes:
      name: of the protocol.
      words: texts are split into Penn Treebank words for the metrics in `TOKENISED`.
      lower, stops: whether texts are lower-cased; whether full stops stay.
      first: one reference only, except where answers are open.
      rule: a key of `RULES`.
    """

    name: str
    words: bool = True
    lower: bool = False
    stops: bool = True
    first: bool = False
    rule: str = 'top'

    def clean(self, line: str) -> str:
        """A prediction or reference as every metric gets it."""
        line = line.lower() if self.lower else line
        return line if self.stops else line.replace('.', '')

    def references(self, example: Example, open_answers: bool = True) -> list[str]:
        """Those gold explanations that count.

        Args:
          example: whose explanations.
          open_answers: whether the answers of the data set are open, for examples that do not tell.
        """
        told = example.label is not None or example.choices is not None or example.answers is not None
        is_open = example.answers is not None if told else open_answers
        return example.explanations[:1] if self.first and not is_open else example.explanations

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        rules = {
            'nonzero': 'its soft score is above 0', 'top': 'no answer has a higher soft score',
            'top_answer': "no annotators' answer is more frequent", 'any_annotator': 'some annotator gave it',
        }  # fmt: skip
        texts = 'Texts in lower case without full stops' if self.lower else 'Texts as they are'
        words = 'split into Penn Treebank words' if self.words else 'split at blanks'
        references = 'one reference, of open questions all' if self.first else 'all references'
        return f'{texts}, {words}; {references}; a VQA answer is right if {rules[self.rule]}.'

    @property
    def texts(self) -> str:
        """What `clean` does, for signatures; '' = nothing."""
        return '+'.join(['lower'] * self.lower + ['nostops'] * (not self.stops))


PROTOCOLS = {
    p.name: p
    for p in (
        Protocol('evil', words=False, first=True, rule='nonzero'),
        Protocol('coco'),
        Protocol('nlxgpt', lower=True, stops=False, rule='top_answer'),
        Protocol('nlxgpt_any', lower=True, stops=False, rule='any_annotator'),
    )
}


def named(name: str) -> Protocol:
    """The protocol of that name. Raises ValueError for an unknown one, naming the nearest."""
    return lookup.entry(PROTOCOLS, name, 'the protocol')


def _best(example):
    return max(example.answers.values(), default=1.0) if example.answers is not None else 1.0


def _top(answer, judged, example):
    return judged > 0 and judged >= _best(example)


def _nonzero(answer, judged, example):
    return judged > 0


def _top_answer(answer, judged, example):
    count = Counter(example.annotations)
    return count[answer] == max(count.values())


# (answer, how right it is, example) -> whether it counts as correct.
RULES: dict[str, Callable[[str, float, Example], bool]] = {
    'top': _top,
    'nonzero': _nonzero,
    'equality': lambda answer, judged, example: judged >= 1,
    'top_answer': _top_answer,
    'any_annotator': lambda answer, judged, example: answer in example.annotations,
}
_BY_SOFT_SCORES = {'top_answer': 'top', 'any_annotator': 'nonzero'}  # where annotators' answers are not at hand


def rule_for(name: str, protocol: Protocol, examples: Sequence[Example]) -> str:
    """The rule that applies: the one named, or with 'auto' the protocol's for open answers and equality elsewhere.

    Where some example has no annotators' answers, all go by the soft scores made of them, and the rule is that one.

    Raises:
      ValueError: an unknown rule.
    """
    if name == 'auto':
        name = protocol.rule if any(e.answers is not None for e in examples) else 'equality'
    if name not in RULES:
        raise ValueError(f'unknown rule {name!r}.{lookup.nearest(name, RULES)} Known: auto, {", ".join(RULES)}')
    return name if all(e.annotations for e in examples) else _BY_SOFT_SCORES.get(name, name)


TAGS = ('all', '0-9')


def without_tags(line: str, tags: str) -> str:
    """Object tags of VCR (`<|detN|>`) become the number N, which is what decoders write; 0-9: of one digit only."""
    return text.tags_to_numbers(line, one_digit=tags == '0-9')
