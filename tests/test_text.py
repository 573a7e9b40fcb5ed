"""The answer normaliser, quirk by quirk; each case is what the official code returns."""

import pytest

from evil_jax import text


def test_words_keep_case_and_punctuation():
    assert text.words(' A man,  outside.\tHe  ') == ['A', 'man,', 'outside.', 'He']
    assert text.words('') == []


@pytest.mark.parametrize(
    ('answer', 'wanted'),
    [
        ('blue/green', 'blue green'),  # a mark without a neighbouring blank becomes a blank
        ('blue / green', 'blue  green'),  # with one it is deleted: both blanks stay
        ('a-b - c-d', 'ab  cd'),  # and one blank decides for the whole text
        ('1,000', '1000'),
        ('1,000/kg', '1000kg'),  # digits around a comma delete every mark
        ('yes,no', 'yes no'),
        ('12:30', '12:30'),  # the colon and the apostrophe are no marks
        ("dog's", "dog's"),
        ('3.5', '3.5'),
        ('3.', '3'),  # the misspelt look-behind: also after a digit
        ('u.s.', 'us'),
        ('.5', '.5'),
        ('.' * 40 + 'x', '.' * 8 + 'x'),  # re.UNICODE (32) is taken as the number of replacements
    ],
)
def test_punctuation(answer, wanted):
    assert text.vqa_punctuation(answer) == wanted


@pytest.mark.parametrize(
    ('answer', 'wanted'),
    [
        ('The Two  dogs', '2 dogs'),
        ('none', '0'),
        ('ten', '10'),
        ('eleven', 'eleven'),
        ('a an the', ''),
        ('dont', "don't"),
        ("couldn'tve", "couldn't've"),
        ("couldnt've", "couldn't've"),
        ("y'alld've", "y'all'd've"),
        ('twas', "'twas"),
        ("somebody'd", 'somebodyd'),  # the one entry that points the wrong way
        ('Im', 'im'),  # entries with a capital can never match lower-cased text
        ('well', 'well'),
    ],
)
def test_words_step(answer, wanted):
    assert text.vqa_words(answer) == wanted


def test_all_steps():
    assert text.vqa_blanks(' a\tb\nc ') == 'a b c'
    assert text.vqa_normalise(' The\nU.S. flag, dont! ') == "us flag don't"


def test_tags_as_numbers_and_as_names():
    line = '<|det1|> and <|det12|> and <|det123|>'
    assert text.tags_to_numbers(line) == '1 and 12 and 123'
    assert text.tags_to_numbers(line, one_digit=True) == '1 and <|det12|> and <|det123|>'
    assert text.tags_to_names(line, ['person'] * 11 + ['dog']) == '[person 1] and [dog 12] and [object 123]'
    assert text.tags_to_names('<|det0|> <|detx|>', None) == '[object 0] <|detx|>'
