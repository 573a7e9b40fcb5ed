import json
import time

import pytest

from evil_jax.human import ratings, summary
from evil_jax.metrics import bleu, chrf, cider, rouge

FILE = """item,system,annotator,dataset,rating,explanation,reference,image_id,flags
1,A,x,vqax,yes,a cat sits,a cat is sitting,7,
1,A,y,vqax,weak_yes,a cat sits,a cat is sitting,7,confusing
2,A,x,vqax,no,no idea,it is red,7,confusing;insufficient
2,A,y,vqax,no,no idea,it is red,7,
3,A,x,vqax,weak_yes,a dog,a dog runs,8,
1,gt,x,vqax,yes,a cat is sitting,,7,
2,gt,x,vqax,weak_yes,it is red,,7,
"""


@pytest.fixture
def found(tmp_path):
    path = tmp_path / 'r.csv'
    path.write_text(FILE)
    return ratings.read_counted(path)


def test_summary_of_a_small_study(found):
    rows, left_out = found
    items = ratings.aggregate(rows)
    metrics = {}
    for predictions, references in ratings.texts(items).values():
        metrics['rouge_l'] = rouge.score(predictions, references)['rouge_l'].per_example
    metrics['constant'] = dict.fromkeys(metrics['rouge_l'], 1.0)
    part = summary.summarise(rows, metrics, left_out=left_out, resamples=50)
    assert json.loads(json.dumps(part, allow_nan=False)) == part
    assert part['ratings'] == 7
    own, gold = part['scores']
    assert (own['system'], own['items'], own['ratings'], gold['system']) == ('A', 3, 5, 'gt')
    assert own['s_e_human'] == pytest.approx((5 / 6 + 0 + 2 / 3) / 3)
    assert own['s_e_human_ratings'] == pytest.approx(7 / 15)
    assert own['flags'] == {'confusing': 0.4, 'insufficient': 0.2}
    assert 'flags' not in gold
    assert [(r['metric'], r['n'], r['rho']) for r in part['correlation']] == [
        ('rouge_l', 3, pytest.approx(0.5)), ('constant', 3, None)
    ]  # fmt: skip
    assert [r['name'] for r in part['agreement']] == list(summary.AGREEMENT)
    assert part['agreement'][0]['units'] == 2 and part['agreement'][0]['single'] == 3
    titles = [title for title, columns, cells in summary.tables(part) if all(len(c) == len(columns) for c in cells)]
    assert len(titles) == 3


def test_nothing_rated_nothing_scored():
    part = summary.summarise([], {'m': {}})
    assert part['scores'] == part['correlation'] == part['agreement'] == []
    assert summary.tables(part) == []
    part = summary.summarise([ratings.Rating('d', '', '1', 2, out_of=4)], resamples=0)
    assert (
        part['scores'][0]['s_e_human'] == part['scores'][0]['s_e_human_ratings'] == 0.5
        and 'ci95' not in part['scores'][0]
    )
    assert part['correlation'] == []
    assert part['agreement'][0]['value'] is None


@pytest.fixture(scope='module')
def real(shared):
    """OFA-X's ratings of its own explanations, how many do not count, and our metrics."""
    folder = shared / 'data' / 'human_eval'
    paths = [folder / f'ofax_large_{name}.csv' for name in ('esnlive', 'vqax')]
    rows, left_out = ratings.read_files(paths, 'ofax')
    metrics: dict = {}
    for predictions, references in ratings.texts(ratings.aggregate(rows)).values():
        for module in (bleu, rouge, cider, chrf):
            for name, score in module.score(predictions, references).items():
                metrics.setdefault(name, {}).update(score.per_example)
    return rows, left_out, metrics


def test_real_ratings_and_metrics(real):
    """The shape of the paper's Table 6 on ratings that anyone can have."""
    rows, left_out, metrics = real
    part = summary.summarise(rows, metrics, left_out=left_out)
    by = {(r['metric'], r['dataset']): r for r in part['correlation']}
    assert len(by) == 7 * 3 and all(r['left_out'] == 0 for r in by.values())
    assert [by['bleu1', d]['n'] for d in ('esnlive', 'vqax', 'all')] == [296, 300, 596]
    # As in the paper: weak everywhere, and much weaker on e-SNLI-VE than on VQA-X.
    for metric in metrics:
        assert 0 < by[metric, 'esnlive']['rho'] < by[metric, 'vqax']['rho'] < 0.4
        assert by[metric, 'vqax']['p'] < 1e-4
        low, high = by[metric, 'all']['ci95']
        assert low < by[metric, 'all']['rho'] < high
    assert summary.summarise(rows, metrics, left_out=left_out) == part


@pytest.mark.acceptance
def test_time_of_real_ratings(real, measured):
    rows, left_out, metrics = real
    start = time.perf_counter()
    summary.summarise(rows, metrics, left_out=left_out)
    measured(f'agreement and correlation of {len(rows):,} ratings: seconds', '<=', 20, time.perf_counter() - start)
