import dataclasses
import itertools
import time

import numpy as np
import pytest
import sacrebleu.significance
from sacrebleu.metrics import BLEU

from evil_jax import stats
from evil_jax.metrics import _sheet, base, protocol, significance
from evil_jax.records import Example, Prediction


def sheet(tables, correct=None, pictures=None, n=None):
    """A sheet of n examples, 'a' to ..., with tables {part: [Table]} over all of them."""
    n = n or len(next(iter(tables.values()))[0].ids)
    pictures = pictures or range(n)
    rows = [(Prediction(i, 'x'), Example(i, str(p), 'q')) for i, p in zip(ids(n), pictures)]
    columns = [_sheet.Column.of(t, rows, part) for part, some in tables.items() for t in some]
    correct = np.ones(n, bool) if correct is None else np.asarray(correct, bool)
    subsets = {'all': np.ones(n, bool), 'correct': correct}
    return _sheet.Sheet(rows, protocol.named('evil'), 'top', correct, tuple(columns), subsets, {}, {})


def ids(n):
    return [f'{i:05d}' for i in range(n)]


def mean(name, values):
    return base.mean_table(ids(len(values)), name, np.asarray(values, float), f'metric:{name}')


def task(values, **more):
    return sheet({'task': [mean('s_t', values)]}, **more)


def rows_of(found):
    return {(row.system, row.metric): row for row in found}


def bleu_table(hypotheses, references, metric):
    """sacrebleu's own statistics and score as a table, so that only the tests differ."""
    statistics = np.array(metric._extract_corpus_statistics(hypotheses, references), np.float64)

    def corpus(sums, counts):
        flat = np.round(sums).reshape(-1, sums.shape[-1])
        values = [metric._compute_score_from_stats(row.astype(int).tolist()).score for row in flat]
        return {'bleu': np.array(values).reshape(sums.shape[:-1])}

    n = len(hypotheses)
    return base.Table(tuple(ids(n)), statistics, {'bleu': np.zeros(n)}, corpus, {'bleu': 'metric:bleu'})


@pytest.fixture(scope='module')
def translations():
    """Three systems of 60 sentences: B is a little better than A, C much worse."""
    generator = np.random.default_rng(0)
    words = [f'w{i}' for i in range(40)]
    gold = [list(generator.choice(words, 12)) for _ in range(60)]

    def spoiled(share):
        return [' '.join(generator.choice(words) if generator.random() < share else w for w in s) for s in gold]

    return [' '.join(s) for s in gold], {'A': spoiled(0.30), 'B': spoiled(0.27), 'C': spoiled(0.5)}


@pytest.mark.parametrize('test', ['bs', 'ar'])
def test_p_values_are_sacrebleus_on_the_same_draws(translations, test, monkeypatch):
    gold, systems = translations
    monkeypatch.setenv('SACREBLEU_SEED', '12345')
    metric = BLEU(tokenize='none', references=[gold])
    trials = {'bs': 300, 'ar': 500}[test]
    paired = sacrebleu.significance.PairedTest(
        list(systems.items()), {'BLEU': metric}, None, test_type=test, n_samples=trials
    )
    wanted = paired()[1]['BLEU']

    generator = np.random.default_rng(12345)
    sheets = {label: sheet({'task': [bleu_table(texts, None, metric)]}) for label, texts in systems.items()}
    score = {label: own.values(np.ones((1, 60)))['bleu'][0] for label, own in sheets.items()}
    if test == 'bs':
        drawn = generator.choice(60, size=(trials, 60), replace=True)
        counts = np.stack([np.bincount(row, minlength=60) for row in drawn]).astype(float)
        values = {label: own.values(counts)['bleu'] for label, own in sheets.items()}
        got = {x: significance.bootstrap_p(values[x], values['A'], score[x] - score['A']) for x in 'BC'}
    else:
        coin = generator.integers(2, size=(trials, 60), dtype=bool).astype(float)
        got = {}
        for x in 'BC':
            one = _sheet.mixed([(sheets['A'], coin), (sheets[x], 1 - coin)])['bleu']
            other = _sheet.mixed([(sheets['A'], 1 - coin), (sheets[x], coin)])['bleu']
            got[x] = significance.randomisation_p(one - other, score[x] - score['A'])
    for result, x in zip(wanted[1:], 'BC'):
        assert score[x] == pytest.approx(result.score, abs=1e-9)
        assert got[x] == pytest.approx(result.p_value, abs=1e-12), x
    assert got['C'] == 1 / (trials + 1) < got['B']


def test_p_values_of_compare_agree_with_sacrebleus_within_their_own_noise(translations):
    gold, systems = translations
    metric = BLEU(tokenize='none', references=[gold])
    sheets = {label: [sheet({'task': [bleu_table(systems[label], None, metric)]})] for label in 'AB'}
    got = rows_of(significance.compare(sheets, bootstrap=1000, trials=2000))['B', 'bleu']
    for test, p in (('bs', got.p_bootstrap), ('ar', got.p_randomisation)):
        few = {label: systems[label] for label in 'AB'}
        n = {'bs': 1000, 'ar': 2000}[test]
        paired = sacrebleu.significance.PairedTest(list(few.items()), {'BLEU': metric}, None, test, n)
        wanted = paired()[1]['BLEU'][1].p_value
        assert abs(p - wanted) < 4 * np.sqrt(2 * wanted * (1 - wanted) / n), test


def test_randomisation_is_the_exact_test_in_the_limit():
    """All 2^8 exchanges of eight pairs, counted by hand, against 20,000 random ones."""
    one, other = np.array([1, 1, 1, 0, 1, 1, 0, 1.0]), np.array([0, 1, 0, 0, 0, 1, 1, 0.0])
    observed = abs(one.mean() - other.mean())
    gaps = [abs(np.dot(s, one - other)) / 8 for s in itertools.product((1, -1), repeat=8)]
    exact = np.mean(np.array(gaps) >= observed - 1e-12)
    found = significance.compare({'a': [task(other)], 'b': [task(one)]}, bootstrap=0, trials=20_000)
    got = rows_of(found)['b', 's_t']
    assert exact == pytest.approx(0.375)
    assert got.p_randomisation == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000))
    assert got.delta == pytest.approx(observed) and got.p_bootstrap is None and got.ci95 is None


def test_a_system_against_itself_is_not_significant():
    values = np.random.default_rng(0).random(50)
    found = rows_of(significance.compare({'a': [task(values)], 'same': [task(values)]}, bootstrap=200, trials=200))
    row = found['same', 's_t']
    assert (row.delta, row.delta_ci95) == (0, (0, 0))
    assert row.p_bootstrap == row.p_randomisation == row.p_holm == 1
    assert found['a', 's_t'].delta is None and found['a', 's_t'].p_holm is None


def test_whole_pictures_are_drawn_with_the_draws_of_the_intervals():
    generator = np.random.default_rng(1)
    pictures = [f'p{i}' for i in generator.integers(12, size=100)]
    values = generator.random(100)
    (row,) = significance.compare({'a': [task(values, pictures=pictures)]}, bootstrap=300, seed=7)
    assert row.ci95 == pytest.approx(stats.mean_interval(values, resamples=300, seed=7, clusters=pictures), abs=1e-12)


def test_clustering_matters():
    """Ten copies of each picture's answer are no more evidence than one."""
    generator = np.random.default_rng(2)
    few, other = generator.random(15) < 0.5, generator.random(15) < 0.8
    alone = significance.compare({'a': [task(few)], 'b': [task(other)]}, trials=2000)
    pictures = np.repeat(np.arange(15), 10).tolist()
    copied = significance.compare(
        {k: [task(np.repeat(v, 10), pictures=pictures)] for k, v in (('a', few), ('b', other))}, trials=2000
    )
    for left, right in zip(alone, copied):
        assert right.ci95 == pytest.approx(left.ci95)
        assert right.p_randomisation == left.p_randomisation and right.p_bootstrap == left.p_bootstrap
    apart = significance.compare({k: [task(np.repeat(v, 10))] for k, v in (('a', few), ('b', other))}, trials=2000)
    assert apart[1].p_randomisation < copied[1].p_randomisation / 3


def joint(correct, explained):
    """s_t and an S_E by likeness (s_e_fast) of one system."""
    chosen = np.flatnonzero(correct)
    tables = [mean(name, explained).take(chosen) for name in ('rouge_l', 'cider')]
    return sheet({'task': [mean('s_t', correct)], 'correct': tables}, correct=correct)


def test_correctness_and_explanations_are_exchanged_together():
    generator = np.random.default_rng(3)
    correct = {k: generator.random(40) < 0.7 for k in 'ab'}
    explained = {k: generator.random(40) for k in 'ab'}
    found = significance.compare({k: [joint(correct[k], explained[k])] for k in 'ab'}, bootstrap=50, trials=400, seed=5)
    row = rows_of(found)['b', 's_o_fast']

    def s_o(right, e):
        return right.mean() * e[right].mean()

    assert row.value == pytest.approx(s_o(correct['b'], explained['b']), abs=1e-12)
    gaps = []
    for coin in np.concatenate(list(significance.coins(40, 400, 5))) > 0:
        mixed = [[np.where(coin, of[x], of[y]) for of in (correct, explained)] for x, y in ('ab', 'ba')]
        gaps.append(abs(s_o(*mixed[0]) - s_o(*mixed[1])))
    extreme = (np.array(gaps) >= abs(row.delta) - 1e-12).sum()
    assert row.p_randomisation == (extreme + 1) / 401
    assert (row.n, row.total) == (correct['b'].sum(), 40)
    assert rows_of(found)['b', 's_t'].n == 40


@pytest.mark.parametrize('given,wanted', [
    ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # 0.03 * 2 = 0.06; 0.04 * 1 is less, so 0.06 stays
    ([0.001, 0.02, 0.8, 0.9], [0.004, 0.06, 1.0, 1.0]),
    ([0.04], [0.04]),
    ([0.5, 0.5], [1.0, 1.0]),
    ([], []),
])  # fmt: skip
def test_holm(given, wanted):
    assert significance.holm(given) == pytest.approx(wanted)


def test_holm_is_over_the_systems_of_each_score():
    generator = np.random.default_rng(4)
    truth = generator.random(80)
    systems = {k: [task(truth + d + generator.normal(0, 0.3, 80))] for k, d in (('a', 0), ('b', 0.1), ('c', 0.08))}
    found = rows_of(significance.compare(systems, trials=999))
    p = [found[k, 's_t'].p_randomisation for k in 'bc']
    assert [found[k, 's_t'].p_holm for k in 'bc'] == pytest.approx(significance.holm(p))
    assert found['b', 's_t'].tested == 'randomisation' and found['a', 's_t'].tested == ''


def test_several_seeds_have_a_mean_and_a_deviation():
    generator = np.random.default_rng(5)
    base_runs = [generator.random(60) for _ in range(2)]
    runs = [generator.random(60) + 0.05 for _ in range(2)]
    systems = {'a': [task(r) for r in base_runs], 'b': [task(r) for r in runs]}
    row = rows_of(significance.compare(systems, bootstrap=200, trials=300, seed=1))['b', 's_t']
    means = [r.mean() for r in runs]
    assert (row.runs, row.value, row.sd) == (2, pytest.approx(np.mean(means)), pytest.approx(np.std(means, ddof=1)))
    # Of means, the mean over runs is the score of the mean values: the same draws must tell the same.
    flat = {'a': [task(np.mean(base_runs, axis=0))], 'b': [task(np.mean(runs, axis=0))]}
    same = rows_of(significance.compare(flat, bootstrap=200, trials=300, seed=1))['b', 's_t']
    assert row.ci95 == pytest.approx(same.ci95) and row.delta_ci95 == pytest.approx(same.delta_ci95)
    assert row.p_randomisation == same.p_randomisation and row.p_bootstrap == same.p_bootstrap
    assert same.sd is None


def test_unequal_numbers_of_runs_are_bootstrapped_only():
    generator = np.random.default_rng(6)
    systems = {'a': [task(generator.random(30))], 'b': [task(generator.random(30)) for _ in range(3)]}
    systems['c'] = [task(generator.random(30))]
    found = rows_of(significance.compare(systems, bootstrap=100, trials=100))
    row = found['b', 's_t']
    assert row.p_randomisation is None and 'equal numbers of runs: 3 here, 1' in row.untested
    assert row.p_bootstrap is not None and found['c', 's_t'].p_randomisation is not None
    # Holm corrects p-values, whatever test they are of: one system's seeds cost the others nothing.
    assert row.tested == 'bootstrap' and found['c', 's_t'].tested == 'randomisation'
    wanted = significance.holm([row.p_bootstrap, found['c', 's_t'].p_randomisation])
    assert [row.p_holm, found['c', 's_t'].p_holm] == wanted


def test_one_picture_has_no_intervals():
    systems = {k: [task([0, 1, 1], pictures=['p'] * 3)] for k in 'ab'}
    row = rows_of(significance.compare(systems))['b', 's_t']
    assert row.value == pytest.approx(2 / 3) and row.delta == 0
    assert row.ci95 is row.p_bootstrap is row.p_randomisation is row.p_holm is None
    assert 'one picture' in row.untested


def test_undefined_scores_and_trials():
    """System b is right once only: where that example is not drawn it has no S_E."""
    right = np.zeros(20, bool)
    right[3] = True
    values = np.random.default_rng(7).random(20)
    systems = {
        'a': [joint(values > 0.5, values)],
        'b': [joint(right, values)],
        'c': [joint(np.zeros(20, bool), values)],
    }
    found = rows_of(significance.compare(systems, bootstrap=200, trials=200))
    b, c = found['b', 's_e_fast'], found['c', 's_e_fast']
    assert b.ci95 == pytest.approx((values[3],) * 2) and 0 < b.p_bootstrap <= 1 and 0 < b.p_randomisation <= 1
    assert b.p_bootstrap > 0.3, 'a resample without a value must not be evidence'
    assert c.value is None and 'undefined' in c.reason and c.p_holm is None and c.delta is None
    assert found['c', 's_t'].value == 0


def test_scores_that_one_system_lacks():
    values = np.random.default_rng(8).random(20)
    more = sheet({'task': [mean('s_t', values)], 'correct': [mean('bleurt', values)]})
    more = dataclasses.replace(more, absent={})
    bare = dataclasses.replace(task(values), absent={'bleurt': 'needs a checkpoint'})
    found = rows_of(significance.compare({'a': [bare], 'b': [more]}, bootstrap=50, trials=50))
    assert found['a', 'bleurt'].value is None and found['a', 'bleurt'].reason == 'needs a checkpoint'
    b = found['b', 'bleurt']
    assert b.value == pytest.approx(values.mean()) and b.ci95 and b.delta is None and "'a' has no such" in b.untested


@pytest.mark.parametrize('subset', ['main', 'all'])
def test_the_sheet_says_why_a_score_is_missing(subset):
    """As scores.json says it, and of any run that lacks it."""
    values = np.random.default_rng(11).random(20)
    tables = lambda of: [mean(name, of) for name in ('rouge_l', 'cider')]
    whole = sheet({'task': [mean('s_t', values)], 'correct': tables(values), 'all': tables(values)})
    unknown = 'predictions have no answer'
    reasons = dict(task=unknown, correct=unknown, all='', true='no truth values')
    blind = dataclasses.replace(sheet({'all': tables(values)}), reasons=reasons)
    found = rows_of(significance.compare({'a': [whole], 'b': [whole, blind]}, subset=subset, bootstrap=0, trials=0))
    assert {found['b', m].reason for m in ('s_t', 's_e_fast', 's_o_fast')} == {unknown}
    explained = found['b', 'cider']
    assert explained.reason == (unknown if subset == 'main' else None)
    assert found['b', 's_t'].n == 10 and explained.n == (10 if subset == 'main' else 20)


def test_nothing_asked_for_nothing_done():
    found = significance.compare({'a': [task([0, 1])], 'b': [task([1, 1])]}, bootstrap=0, trials=0)
    assert [(r.value, r.ci95, r.p_holm, r.tested) for r in found] == [(0.5, None, None, ''), (1.0, None, None, '')]


def test_the_seed_decides():
    generator = np.random.default_rng(9)
    systems = {k: [task(generator.random(40))] for k in 'ab'}
    options = dict(bootstrap=100, trials=100)
    assert significance.compare(systems, seed=1, **options) == significance.compare(systems, seed=1, **options)
    assert significance.compare(systems, seed=1, **options) != significance.compare(systems, seed=2, **options)
    whole = np.concatenate(list(significance.coins(7, 50, 3)))
    assert set(np.unique(whole)) == {0, 1} and abs(whole.mean() - 0.5) < 0.1


def test_errors():
    with pytest.raises(ValueError, match='no system'):
        significance.compare({})
    with pytest.raises(ValueError, match="'b' has no runs"):
        significance.compare({'a': [task([1])], 'b': []})
    with pytest.raises(ValueError, match="'b' has 1 ids more and 0 fewer than 'a'"):
        significance.compare({'a': [task([1, 0])], 'b': [task([1, 0, 1])]})


@pytest.mark.acceptance
def test_sums_by_picture_save_most_of_the_work(measured):
    """14,740 examples of 1,000 pictures (the test split of e-SNLI-VE), against each example its own picture."""
    generator = np.random.default_rng(10)
    n = 14_740
    wide = [dataclasses.replace(mean('wide', generator.random(n)), statistics=generator.random((n, 100))) for _ in 'ab']

    def seconds(pictures):
        systems = {k: [sheet({'correct': [table]}, pictures=pictures)] for k, table in zip('ab', wide)}
        start = time.perf_counter()
        significance.compare(systems, bootstrap=1000, trials=1000)
        return time.perf_counter() - start

    by_picture, by_row = seconds((np.arange(n) % 1000).tolist()), seconds(range(n))
    measured('comparison by pictures, share of the time of one by rows', '<=', 1 / 3, by_picture / by_row)
