import pytest

from evil_jax.metrics import vqa


def ten(**counts):
    return [answer.replace('_', ' ') for answer, n in counts.items() for _ in range(n)]


@pytest.mark.parametrize(
    ('matches', 'wanted'), [(0, 0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 1), (9, 1)]
)  # fmt: skip
def test_leave_one_out(matches, wanted):
    # One match: nine of the ten sets still have it (1/3 each), the set without it has none.
    assert vqa.accuracy('red', ten(red=matches, blue=10 - matches)) == pytest.approx(wanted)


def test_normalised_only_if_annotators_disagree():
    assert vqa.accuracy('The red.', ten(red=9, blue=1)) == 1
    assert vqa.accuracy('The red.', ten(red=10)) == 0  # unanimous: letter by letter
    assert vqa.accuracy('two', ten(two=10)) == 1  # so a number word still equals itself
    assert vqa.accuracy('2', ten(two=10)) == 0
    assert vqa.accuracy('2', ten(two=9, three=1)) == 1


def test_strict_normalises_always_and_knows_none():
    assert vqa.accuracy('The red.', ten(red=10), strict=True) == 1
    assert vqa.accuracy('2', ten(two=10), strict=True) == 1
    assert vqa.accuracy('0', ten(none=9, red=1)) == 1 and vqa.accuracy('0', ten(none=9, red=1), strict=True) == 0
    assert vqa.accuracy('None', ten(none=9, red=1), strict=True) == 1
    assert vqa.accuracy('zero', ten(two=5, zero=5), strict=True) == 1
    # The two leave-one-out sets of the two that agree count 1/3, the eight others 2/3.
    assert vqa.accuracy('Red', ten(red=2, blue=8), strict=True) == pytest.approx((2 * 1 / 3 + 8 * 2 / 3) / 10)


def test_unanimous_only_after_normalisation_is_not_unanimous():
    # 'Red' and 'red' differ as they are written, so all are normalised: ten times 'red'.
    assert vqa.accuracy('the red', ['Red'] * 5 + ['red'] * 5) == 1
    # 'a' and 'an' are nothing but articles: ten times the empty answer.
    assert vqa.accuracy('the', ['a'] * 5 + ['an'] * 5) == 1
    assert vqa.accuracy('0', ['none'] * 2 + ['zero'] * 2 + ['no'] * 6) == 1  # 4 of ten


def test_by_hand_from_the_definition():
    # Two said 'red'. Each of these two leaves one match: 1/3. Each of the eight others leaves both: 2/3.
    assert vqa.accuracy('red', ten(red=2, blue=8)) == pytest.approx((2 * 1 / 3 + 8 * 2 / 3) / 10)
    # Three: 3 times 2/3, 7 times min(1, 3/3).
    assert vqa.accuracy('red', ten(red=3, blue=7)) == pytest.approx((3 * 2 / 3 + 7) / 10)
    # All ten: nine matches are left each time.
    assert vqa.accuracy('red', ten(red=10)) == 1


def test_annotations_are_normalised_too():
    assert vqa.accuracy('dont', ["Don't"] * 4 + ['no'] * 6) == 1
    assert vqa.accuracy('1000', ['1,000'] * 4 + ['no'] * 6) == 1


def test_blanks_are_trimmed_before_the_comparison_of_annotators():
    assert vqa.accuracy(' red\n', ['red', 'red ', '\tred'] * 3 + ['red']) == 1
    # They all say 'red' after trimming, so nothing is normalised.
    assert vqa.accuracy('Red', ['red', 'red ', '\tred'] * 3 + ['red']) == 0


def test_score():
    predictions = {'a': 'red', 'b': 'a dog'}
    scores = vqa.score(predictions, {'a': ten(red=2, blue=8), 'b': ten(dog=9, cat=1)})
    assert scores['vqa_accuracy'].value == pytest.approx(0.8)
    assert scores['vqa_accuracy'].per_example == pytest.approx({'a': 0.6, 'b': 1})
    assert 'norm:official(unless unanimous)|annotators:10' in scores['vqa_accuracy'].signature
    with pytest.raises(ValueError, match='no annotations'):
        vqa.accuracy('red', [])
    with pytest.raises(ValueError, match="no references for 1 id: 'b'"):
        vqa.score(predictions, {'a': ten(red=10)})


def test_soft_score_is_a_look_up():
    scores = vqa.soft({'a': 'red', 'b': 'Red', 'c': 'x'}, {'a': {'red': 0.6}, 'b': {'red': 1.0}, 'c': {}})
    assert scores['vqa_soft'].per_example == {'a': 0.6, 'b': 0, 'c': 0}
    assert scores['vqa_soft'].value == pytest.approx(0.2)
    assert vqa.soft_score('red', {'red': 0.3}) == 0.3
    with pytest.raises(ValueError, match="no answers for 1 id: 'a'"):
        vqa.soft({'a': 'x'}, {})
