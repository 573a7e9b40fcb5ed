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


@pytest.mark.parametrize('mark', ';/[]"{}()=+\\_-><@`,?!')
def test_each_mark(mark):
    assert text.vqa_punctuation(f'x{mark}y') == 'x y'
    assert text.vqa_punctuation(f'x {mark}y') == text.vqa_punctuation(f'x{mark} y') == 'x y'
    assert text.vqa_punctuation(f'x{mark}y z{mark} w') == 'xy z w'  # one blank beside it, and it goes everywhere
    assert text.vqa_punctuation(f'1,0{mark}y') == '10y'  # a comma between digits: every mark goes


@pytest.mark.parametrize(
    ('answer', 'wanted'),
    [
        # One mark has a blank beside it and goes; the other has none and becomes a blank.
        ('a/b -c', 'a b c'),
        # The marks are decided on the text as it came: the blank that '/' leaves does not count for '-'.
        ('a/-b', 'a  b'),
        ('1, 000', '1 000'),  # no digit after the comma, but a blank
        ('1,a', '1 a'),  # no digit after the comma
        ('a,1,2', 'a12'),  # the pair of digits counts wherever it stands
        ('-1', ' 1'),  # neither end of a text is a blank
        ('x\r-y', 'x\r y'),  # nor is a carriage return
        ('2.5.', '2.5'),
        ('p.m', 'pm'),
        ('1.a', '1a'),  # a digit before does not save a period, as the pattern means to say
        ('a.1', 'a.1'),  # a digit after does
        ('.' * 32, ''),
        ('.' * 33, '.'),
    ],
)
def test_punctuation_of_several_marks(answer, wanted):
    assert text.vqa_punctuation(answer) == wanted


def test_every_number_word_and_every_article():
    words = 'none zero one two three four five six seven eight nine ten'
    assert text.vqa_words(words) == '0 0 1 2 3 4 5 6 7 8 9 10'
    assert text.vqa_words(words.upper()) == '0 0 1 2 3 4 5 6 7 8 9 10'
    assert text.vqa_words('THE an A cat') == 'cat'
    assert text.vqa_words("one's theirs another") == "one's theirs another"  # whole words only


def test_contractions_want_exactly_one_apostrophe_missing():
    assert text.vqa_words('youll youve wont shant oclock maam') == "you'll you've won't shan't o'clock ma'am"
    assert text.vqa_words("yalld've") == "yalld've"
    assert text.vqa_words('couldntve') == 'couldntve'
    assert text.vqa_words("ow's'at 'ows'at 'ow'sat") == "'ow's'at 'ow's'at 'ow's'at"
    assert text.vqa_words('lets ill id hell shed shes whore') == 'lets ill id hell shed shes whore'  # not in the table
    assert text.vqa_words("Ive I'm id've") == "ive i'm id've"  # there with a capital only, and never met
    assert text.vqa_words("somebodyd somebodyd've") == "somebodyd somebody'd've"


def test_all_steps():
    assert text.vqa_blanks(' a\tb\nc ') == 'a b c'
    assert text.vqa_blanks('\r\na\rb\u00a0') == 'a\rb'  # inside, only newline and tab become blanks
    assert text.vqa_normalise('T-shirt') == 't shirt'
    assert text.vqa_normalise('None.') == '0'  # the period goes before the word is looked up
    assert text.vqa_normalise('A/the') == ''
    assert text.vqa_normalise(' The\nU.S. flag, dont! ') == "us flag don't"


def test_tags_as_numbers_and_as_names():
    line = '<|det1|> and <|det12|> and <|det123|>'
    assert text.tags_to_numbers(line) == '1 and 12 and 123'
    assert text.tags_to_numbers(line, one_digit=True) == '1 and <|det12|> and <|det123|>'
    assert text.tags_to_names(line, ['person'] * 11 + ['dog']) == '[person 1] and [dog 12] and [object 123]'
    assert text.tags_to_names('<|det0|> <|detx|>', None) == '[object 0] <|detx|>'
