"""Scores against numbers by hand, formulas of others, and a bootstrap written out as loops."""

import fractions
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from evil_jax import stats
from evil_jax.counterfactual import judged, rates, score

CLASSES = ('contradiction', 'neutral', 'entailment')


def row(image, before, after, family='sibling', example=None, **more):
    """An edit whose answers are right or wrong: 1, 0, or another wrong answer -1."""
    name = {1: 'right', 0: 'wrong', -1: 'other'}
    kept = before == after
    moved = f'{name[max(before, 0)]}->{name[after]}' if before != 0 or after != -1 else 'wrong->other'
    return dict(
        family=family, example=example or image, image=image, right=max(before, 0), right_star=max(after, 0), kept=kept,
        answer=name[before], answer_star=name[after], transition=f'kept {name[before]}' if kept else moved, **more,
    )  # fmt: skip


def by_family(document):
    return {row['family']: row for row in document['families']}


ROWS = [
    row('p1', 1, 1), row('p1', 1, 0, example='q'), row('p2', 1, 0), row('p2', 0, -1), row('p3', 0, 1, uncertain=True),
    row('p3', 1, 0, was_uncertain=True), row('p4', 0, 0), row('p1', 1, 1, 'hypernym'),
]  # fmt: skip


def test_a_row_by_hand():
    document = score.summary(judged.of_rows(ROWS, signature='s', left_out={'no answer': 2}))
    found = by_family(document)
    assert list(found) == ['hypernym', 'sibling'] and document['all']['n'] == 8
    sibling = found['sibling']
    assert (sibling['n'], sibling['questions'], sibling['images']) == (7, 5, 4)
    assert sibling['acc'] == pytest.approx(4 / 7) and sibling['acc_star'] == pytest.approx(2 / 7)
    assert sibling['difference']['value'] == pytest.approx(-2 / 7)
    assert sibling['flips']['k'] == 5 and sibling['flips']['value'] == pytest.approx(5 / 7)
    assert {name: share['k'] for name, share in sibling['transitions'].items()} == {
        'kept right': 1, 'kept wrong': 1, 'right->wrong': 3, 'wrong->right': 1, 'wrong->other': 1, 'right->right': 0
    }  # fmt: skip
    assert sibling['mcnemar'] == {'lost': 3, 'gained': 1, 'p': 0.625}  # 2 (1 + 4) / 16
    assert sibling['uncertain']['k'] == sibling['was_uncertain']['k'] == 1
    for name in ('shift', 'log_odds', 'unwarranted_stability', 'unwarranted_flips', 'expected_right', 'labels'):
        assert sibling[name] is None
    assert sibling['baselines'] == {} and sibling['beyond_random'] is None
    assert document['signature'] == 's' and document['left_out'] == {'no answer': 2}
    # One picture: nothing says how pictures vary.
    assert found['hypernym']['difference'] == {'value': 0, 'ci95': None} and found['hypernym']['mcnemar']['p'] == 1


def test_without_right_answers():
    rows = [dict(family='delete', image=str(n), kept=n < 2, transition=('changed', 'kept')[n < 2]) for n in range(5)]
    found = by_family(score.summary(judged.of_rows(rows)))['delete']
    assert found['acc'] is found['difference'] is found['mcnemar'] is None and found['flips']['k'] == 3
    assert {name: share['k'] for name, share in found['transitions'].items()} == {'kept': 2, 'changed': 3}


def test_expectations():
    of = lambda expectation, met, expected_right=-1: row(
        'p', 1, met, expectation=expectation, met=met, expected_right=expected_right
    )  # fmt: skip
    rows = [of('CHANGE', 0), of('CHANGE', 1, 0), of('CHANGE', 1, 1), of('INV', 0), of('INV', 1), row('p', 1, 1)]
    found = by_family(score.summary(judged.of_rows(rows)))['sibling']
    pick = lambda name: (found[name]['k'], found[name]['n'])
    assert pick('unwarranted_stability') == (1, 3) and pick('unwarranted_flips') == (1, 2)
    assert pick('expected_right') == (1, 2) and found['unwarranted_flips']['ci95'][1] < 1


@pytest.mark.parametrize(('lost', 'gained'), [(0, 0), (1, 0), (3, 1), (6, 2), (10, 10), (12, 45), (400, 330), (0, 60)])
def test_mcnemar(lost, gained):
    n, fewer = lost + gained, min(lost, gained)
    tail = fractions.Fraction(sum(math.comb(n, k) for k in range(fewer + 1)), 2**n)
    assert score.mcnemar(lost, gained) == pytest.approx(float(min(1, 2 * tail)), rel=1e-10)
    if n:
        assert score.mcnemar(lost, gained) == pytest.approx(scipy_stats.binomtest(lost, n).pvalue, rel=1e-10)
    assert score.mcnemar(lost, gained) == score.mcnemar(gained, lost)


def clustered(images, edits, seed=0):
    """Edits whose gains lean the same way within a picture."""
    generator = np.random.default_rng(seed)
    rows = []
    for image in range(images):
        lean = generator.random()
        for _ in range(generator.integers(1, edits)):
            rows.append(row(str(image), 1, int(generator.random() < lean), shift=lean))
    return judged.of_rows(rows)


def test_intervals_are_those_of_a_bootstrap_of_pictures_in_loops():
    table = clustered(20, 6)
    found = by_family(score.summary(table, seed=5, resamples=50))['sibling']
    gains, shifts = {}, {}
    for image, right, star, shift in zip(table.texts('image'), table.right, table.right_star, table.shift):
        gains.setdefault(image, []).append(float(star) - float(right))
        shifts.setdefault(image, []).append(float(shift))
    images, means = list(gains), []
    for counts in np.concatenate(list(stats.resample(20, 50, 5))):
        drawn = [image for image, count in zip(images, counts) for _ in range(int(count))]
        pool = lambda values, drawn=drawn: np.mean([value for image in drawn for value in values[image]])
        means.append((pool(gains), pool(shifts)))
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    assert found['difference']['ci95'] == pytest.approx([low[0], high[0]])
    assert found['shift']['ci95'] == pytest.approx([low[1], high[1]])
    assert found['shift']['value'] == pytest.approx(np.mean([s for values in shifts.values() for s in values]))


def test_intervals_are_as_wide_as_the_cluster_robust_error():
    table = clustered(400, 9)
    low, high = by_family(score.summary(table, resamples=2000))['sibling']['difference']['ci95']
    gain = table.right_star.astype(float) - table.right
    residuals = np.bincount(table.image, gain - gain.mean())  # the linearised ratio estimator
    error = math.sqrt((residuals**2).sum()) / len(table)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.06)
    naive = gain.std() / math.sqrt(len(table))
    assert error > 1.5 * naive  # and edits of one picture are far from independent


def test_baselines_are_of_the_same_questions():
    of = lambda family, example, kept: dict(family=family, example=example, image=example, kept=kept)
    builder = judged.Builder()
    for n in range(10):
        builder.add(**of('sibling', str(n), n >= 6))
    builder.add(**of('synonym_verb', '11', True))
    beside = judged.Builder(builder.vocabularies)
    for n in range(12):
        for family in ('noop', 'random_noun'):
            beside.add(**of(family, str(n), family == 'noop' or n not in (1, 2, 3, 11)))
    beside.add(**of('random_verb', '11', False))
    document = score.summary(builder.build(baselines=beside.build()), resamples=100)
    found = by_family(document)
    counts = {name: (share['k'], share['n']) for name, share in found['sibling']['baselines'].items()}
    assert counts == {'noop': (0, 10), 'random_noun': (3, 10)}
    assert found['sibling']['beyond_random']['value'] == pytest.approx(0.3)
    low, high = found['sibling']['beyond_random']['ci95']
    assert 0 <= low < 0.3 < high < 0.7
    assert found['synonym_verb']['beyond_random'] == {'value': -1, 'ci95': None}
    assert document['all']['beyond_random'] is None and document['all']['baselines']['random_noun']['n'] == 11
    lines = score.lines(document)
    assert lines[1].split()[:2] == ['synonym_verb', '1'] and len(lines) == 4
    assert '0.600 [' in lines[2] and ' 0.300 ' in lines[2]


def test_matrices_of_classes():
    of = lambda before, after, gold: dict(family='sibling', answer=before, answer_star=after, gold=gold)
    neutral, entailment = CLASSES[1:]
    rows = [of(neutral, neutral, neutral)] * 2 + [of(entailment, neutral, neutral), of(entailment, 'dog', entailment)]
    found = score.label_matrices(judged.of_rows(rows, labels=CLASSES))
    assert found == {
        'labels': list(CLASSES),
        'counts': [[0, 0, 0], [0, 2, 0], [0, 1, 0]],
        'by_gold': {
            'contradiction': [[0] * 3] * 3,
            'neutral': [[0, 0, 0], [0, 2, 0], [0, 1, 0]],
            'entailment': [[0] * 3] * 3,
        },
        'outside': 1,
    }
    assert score.label_matrices(judged.of_rows(rows)) is None


def test_lines():
    document = score.summary(judged.of_rows(ROWS), resamples=0)
    lines = score.lines(document)
    assert lines[0].split()[:4] == ['family', 'edits', 'acc', 'acc*']
    assert lines[2].split()[:5] == ['sibling', '7', '0.571', '0.286', '-0.286']
    flips = rates.of(~judged.of_rows(ROWS[:7]).kept, judged.of_rows(ROWS[:7]).image)['ci95']
    assert f'0.714 [{flips[0]:.3f}, {flips[1]:.3f}]' in lines[2] and lines[2].endswith('0.62')
    assert len({len(line) for line in lines}) == 1


def test_same_seed_same_numbers():
    table = clustered(10, 4)
    assert score.summary(table, seed=1) == score.summary(table, seed=1) != score.summary(table, seed=2)
