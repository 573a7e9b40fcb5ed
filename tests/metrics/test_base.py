import numpy as np
import pytest

from evil_jax.metrics import base, bleu, chrf, cider, rouge

METRICS = [bleu, rouge, cider, chrf]


def texts(n=30, seed=0):
    words = np.array(
        ['the', 'a', 'dog', 'cat', 'runs', 'sits', 'on', 'mat', 'beach', 'because', 'it', 'is', 'red', 'two']
    )
    generator = np.random.default_rng(seed)
    line = lambda: ' '.join(generator.choice(words, generator.integers(1, 9)))
    predictions = {f'q{i}': line() for i in range(n)}
    references = {i: [line() for _ in range(generator.integers(1, 4))] for i in predictions}
    return predictions, references


@pytest.mark.parametrize('metric', METRICS)
def test_order_of_ids_changes_nothing(metric):
    predictions, references = texts()
    shuffled = list(predictions)
    np.random.default_rng(1).shuffle(shuffled)
    again = metric.score({i: predictions[i] for i in shuffled}, dict(reversed(references.items())))
    assert again == metric.score(predictions, references)


@pytest.mark.parametrize('metric', METRICS)
def test_names_of_ids_change_nothing(metric):
    predictions, references = texts()
    new = dict(zip(predictions, reversed(predictions)))
    again = metric.score(
        {new[i]: t for i, t in predictions.items()}, {new[i]: t for i, t in references.items()}
    )  # fmt: skip
    for name, score in metric.score(predictions, references).items():
        assert again[name].value == pytest.approx(score.value, abs=1e-12)
        for i in predictions:
            assert again[name].per_example[new[i]] == pytest.approx(score.per_example[i], abs=1e-12)


@pytest.mark.parametrize('metric', METRICS)
def test_taking_rows_is_scoring_them_alone(metric):
    predictions, references = texts()
    some = sorted(predictions)[3:17]
    rows = np.array([sorted(predictions).index(i) for i in some])
    taken = metric.table(predictions, references).take(rows).scores()
    alone = metric.score({i: predictions[i] for i in some}, {i: references[i] for i in some})
    for name in alone:
        assert taken[name].value == pytest.approx(alone[name].value, abs=1e-12)
        assert taken[name].per_example == pytest.approx(alone[name].per_example, abs=1e-12)
        assert taken[name].n == 14


@pytest.mark.parametrize('metric', METRICS)
def test_ids_must_agree(metric):
    with pytest.raises(ValueError, match="no prediction for 1 id: 'b'; no references for 2 ids: 'c', 'd'"):
        metric.score({'a': 'x', 'c': 'x', 'd': 'x'}, {'a': ['x'], 'b': ['x']})
    with pytest.raises(ValueError, match="no reference at all for 1 id: 'a'"):
        metric.score({'a': 'x'}, {'a': []})
    with pytest.raises(ValueError, match="references of 'a': found one text"):
        metric.score({'a': 'x'}, {'a': 'x'})
    with pytest.raises(ValueError, match=r"'a': found None \(NoneType\), wanted text"):
        metric.score({'a': None}, {'a': ['x']})


@pytest.mark.parametrize('metric', METRICS)
def test_nothing_to_score_has_a_reason(metric):
    for score in metric.score({}, {}).values():
        assert score.value is None
        assert score.reason == 'no examples'
        assert score.n == 0


@pytest.mark.parametrize('metric', METRICS)
def test_signature_tells_settings_apart(metric):
    predictions, references = texts()
    for name, score in metric.score(predictions, references).items():
        keys = [part.split(':')[0] for part in score.signature.split('|')]
        assert score.signature.startswith(f'metric:{name}|')
        assert {'nrefs', 'scale', 'case', 'version'} <= set(keys)
        assert len(keys) == len(set(keys))
        assert 'nrefs:1-3' in score.signature
    one = metric.score(predictions, {i: r[:1] for i, r in references.items()})
    assert all('nrefs:1|' in s.signature for s in one.values())


def test_whole_signatures():
    predictions, references = {'a': 'x', 'b': 'y'}, {'a': ['x'], 'b': ['z']}
    assert (
        cider.score(predictions, references)['cider'].signature
        == f'metric:cider|variant:cider-d|tok:none(blanks)|case:mixed|nrefs:1|n:4|sigma:6|df:references(2)|scale:0..10'
        f'|version:evil_jax-{base.evil_jax.__version__}'
    )
    assert 'smooth:coco(1e-15,1e-09)' in bleu.score(predictions, references)['bleu2'].signature
    assert 'sacrebleu-' in bleu.score(predictions, references)['bleu2'].signature


def test_long_lists_of_ids_are_cut():
    message = base.some([f'q{i:02}' for i in range(12)])
    assert message.startswith("12 ids: 'q00', ")
    assert message.endswith("'q09', ...")
