"""What is right about an original question, and when two answers are the same."""

import functools
from collections.abc import Sequence

from evil_jax import text
from evil_jax.metrics import vqa
from evil_jax.records import Example

MODES = ('official', 'strict', 'exact')
# Answers that there is none, as the strict normaliser leaves them.
_UNCERTAIN = frozenset(
    {
        'unknown', 'not known', "i don't know", 'i do not know', "don't know", 'unsure', 'not sure', "i'm not sure",
        'i am not sure', 'uncertain', 'unclear', 'not clear', "can't tell", 'cannot tell', 'can not tell', "can't say",
        'cannot say', "can't see", 'cannot see', "can't be determined", 'cannot be determined', 'not visible',
        'not shown', 'not there', 'not present', 'not in picture', 'not in image', 'not in photo', 'not applicable',
        'na', 'no idea', 'no answer', 'unanswerable', 'not possible', 'impossible', 'hard to tell', 'hard to say',
    }
)  # fmt: skip
_NOTHING = frozenset({'nothing', 'none', 'nobody', 'no 1', 'nowhere'})  # to "How many?" they are answers


@functools.lru_cache(maxsize=1 << 16)
def normalise(answer: str, strict: bool) -> str:
    """The official VQA normaliser; what it leaves nothing of, as 'the', stays as it is."""
    return text.vqa_normalise(answer, strict) or answer.strip().lower()


@functools.lru_cache(maxsize=1 << 16)
def uncertain(answer: str, asks: str) -> bool:
    """Whether an answer says that there is none."""
    said = normalise(answer.lower().replace('n/a', 'na'), True)  # else it becomes an n, as articles go
    return said in _UNCERTAIN or (said in _NOTHING and asks != 'count')


class Gold:
    """The right answers of one example, in the first of these forms that it has:

    - `choices` and `label`: the number of a choice (VCR);
    - `annotations`: several annotators' answers, scored by metrics/vqa.py in modes 'official' and 'strict'; in mode
      'exact' what most of them say, or the first of those. A single annotator is always compared exactly;
    - `label`: a class (e-SNLI-VE);
    - `answers`: soft scores, looked up as the answer is written, then in its normalised form (Visual Genome, LXMERT).

    Attributes:
      answer: the right answer, normalised; what most say, or what scores most; '' where nothing is known.
      label: the class, where answers are classes, else None.
    """

    def __init__(self, example: Example, mode: str):
        self._example, self._strict, self._mode = example, mode == 'strict', mode
        self._accuracies = {}
        self.label = None
        annotations = example.annotations or ()
        if example.choices is not None and isinstance(example.label, int):
            self.answer, self._accuracy = str(example.label), self._same
        elif annotations:
            said = [normalise(answer, self._strict) for answer in annotations]
            self.answer = max(said, key=said.count)
            self._accuracy = self._same if mode == 'exact' or len(said) == 1 else self._annotated
        elif isinstance(example.label, str):
            self.label = example.label
            self.answer, self._accuracy = normalise(example.label, self._strict), self._same
        elif example.answers:
            best = max(example.answers, key=example.answers.get)
            self.answer, self._accuracy = normalise(best, self._strict), self._soft
        else:
            self.answer, self._accuracy = '', lambda written, said: float('nan')

    def accuracy(self, written: str, said: str) -> float:
        """Of an answer as it was written and as it is compared, 0 to 1; NaN where nothing is known."""
        found = self._accuracies.get((written, said))
        if found is None:
            found = self._accuracies[written, said] = self._accuracy(written, said)
        return found

    def _same(self, written, said):
        return float(said == self.answer)

    def _annotated(self, written, said):
        return vqa.accuracy(written, self._example.annotations, self._strict)

    def _soft(self, written, said):
        answers = self._example.answers
        return float(answers[written] if written in answers else answers.get(said, 0.0))


def number(written: str, index: int | None, choices: Sequence[str]) -> int | None:
    """Which choice an answer is: as the system says, or the first with this text; None where it is none of them."""
    if index is not None and 0 <= index < len(choices):
        return index
    return choices.index(written) if written in choices else None
