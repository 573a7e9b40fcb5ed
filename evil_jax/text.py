"""Text: the blank tokeniser of the published e-ViL scores, object tags, cells of CSV, and the official VQA evaluation's
normaliser.

Source of the normaliser: GT-Vision-Lab/VQA, PythonEvaluationTools/vqaEvaluation/vqaEval.py, whose behaviour is
reproduced quirk by quirk, since every published VQA number depends on it.
"""

import re
from collections.abc import Sequence


def words(text: str) -> list[str]:
    """Splits on white space, as e-ViL's BLEU and CIDEr do: case and punctuation stay (ROUGE-L: single blanks)."""
    return text.split()


TAG = re.compile(r'<\|det(\d+)\|>')  # of an object, VCR's: its number, which counts from 1
_ONE_DIGIT_TAG = re.compile(r'<\|det(\d)\|>')


def tags_to_numbers(text: str, one_digit: bool = False) -> str:
    """`<|detN|>` becomes N; with `one_digit` only 0 to 9, as in the references of the published code."""
    return (_ONE_DIGIT_TAG if one_digit else TAG).sub(r'\1', text)


def tags_to_names(text: str, objects: Sequence[str] | None) -> str:
    """For people to read: `<|detN|>` becomes '[person N]', by the class names of the objects, which count from 1."""

    def name(match):
        number = int(match[1])
        return f'[{objects[number - 1] if 1 <= number <= len(objects or ()) else "object"} {number}]'

    return TAG.sub(name, text)


def csv_cell(value):
    """A value as a cell. Strings alone can be formulas: they get a ' in front, which programs take for "text"."""
    if value is None:
        return ''
    if isinstance(value, str):
        return f"'{value}" if value.lstrip(' ').startswith(('=', '+', '-', '@', '\t', '\r')) else value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) >= 2 else repr(value)  # counts are counts
    return value


# Order does not matter: each mark is decided on the *input*, not on the text changed so far. No ':' and no apostrophe.
_MARKS = ';/[]"{}()=+\\_-><@`,?!'
# The upstream pattern means "no digit before" but spells the look-behind (?!<=\d), which always holds.
# So a period goes whenever no digit follows it, also in '3.'.
_PERIOD = re.compile(r'\.(?!\d)')
# Upstream passes re.UNICODE (32) where re.sub takes the number of replacements.
_MOST_PERIODS = 32
_DIGITS_WITH_COMMA = re.compile(r'\d,\d')
_ARTICLES = frozenset(('a', 'an', 'the'))
_NUMBERS = {
    'none': '0', 'zero': '0', 'one': '1', 'two': '2', 'three': '3', 'four': '4', 'five': '5', 'six': '6',
    'seven': '7', 'eight': '8', 'nine': '9', 'ten': '10',
}  # fmt: skip

_APOSTROPHES = """
ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've he's
how'd how'll how's isn't it'd it'd've it'll ma'am might've mightn't mightn't've must've mustn't needn't not've o'clock
oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's someone'd
someone'd've someone'll someone's something'd something'd've something'll that's there'd there'd've there're there's
they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're what's what've when's
where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't would've wouldn't wouldn't've
y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""


def _contractions() -> dict[str, str]:
    """Each spelling of a word above that lacks exactly one of its apostrophes -> the word.

    Upstream's entries for I'm, I've, I'd've are left out: their keys have a capital and texts are lower-cased before.
    One upstream entry goes the wrong way and is kept so.
    """
    table = {
        word[:at] + word[at + 1 :]: word
        for word in _APOSTROPHES.split()
        for at, letter in enumerate(word)
        if letter == "'"
    }
    return table | {"somebody'd": 'somebodyd'}


_CONTRACTIONS = _contractions()


def vqa_blanks(answer: str) -> str:
    """First step, for every answer: newlines and tabs become blanks, the ends are trimmed."""
    return answer.replace('\n', ' ').replace('\t', ' ').strip()


def vqa_punctuation(answer: str) -> str:
    """Punctuation step.

    A mark with a blank on either side anywhere in the text is deleted everywhere, otherwise it becomes a blank; in a
    text with a comma between digits every mark is deleted. Then periods without a following digit go (the first 32).
    """
    deleted_all = _DIGITS_WITH_COMMA.search(answer) is not None
    result = answer
    for mark in _MARKS:
        if mark in answer:
            deleted = deleted_all or f'{mark} ' in answer or f' {mark}' in answer
            result = result.replace(mark, '' if deleted else ' ')
    return _PERIOD.sub('', result, count=_MOST_PERIODS)


def vqa_words(answer: str, strict: bool = False) -> str:
    """Word step: lower case, number words none..ten to digits, articles dropped, apostrophes put back.

    With `strict` 'none' stays a word: it does not always answer "How many?".
    """
    numbered = [word if strict and word == 'none' else _NUMBERS.get(word, word) for word in answer.lower().split()]
    return ' '.join(_CONTRACTIONS.get(word, word) for word in numbered if word not in _ARTICLES)


def vqa_normalise(answer: str, strict: bool = False) -> str:
    """All three steps. The official accuracy takes the last two only where the annotators disagree (metrics/vqa.py)."""
    return vqa_words(vqa_punctuation(vqa_blanks(answer)), strict)
