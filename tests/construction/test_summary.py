import json
import types

from judgements import FILTERS, judged, pair

from evil_jax.construction import checked, summary

SET = [types.SimpleNamespace(**vars(each), source='ours', splits=('train',), classes=()) for each in FILTERS]


def report(verdicts=None):
    found = summary.Summary(SET, {'0': ['A dog.', 'Two dogs.']}, examples=1, verdicts=verdicts)
    for each in (
        judged(pair(0), meaning=2.5, words=0.0, scores=[[0, 0, 1], [0, 1, 0]]),
        judged(pair(1), meaning=1.0, words=0.0),
        judged(pair(2), meaning=0.0, words=1.0),
    ):
        found.add(each)
    return json.loads(json.dumps(found.report(), allow_nan=False))


def test_the_report_has_every_part_of_each_filter():
    found = report()
    assert found['table1']['train']['instances'] == 1 == found['kept']['train']['neutral']
    assert found['before']['train']['neutral'] == 3 and 'errors' not in found and 'checked' not in found
    for row, removed in zip(found['filters'], ('0', '2')):
        assert row['removed']['train']['neutral'] == 1 and row['splits'] == ['train'] and row['source'] == 'ours'
        assert row['curve'] and row['histogram'] and 'checked' not in row
        assert [each['id'][0] for each in row['samples']] == [removed]


def test_with_checked_pairs_it_has_what_they_show():
    words = {'0.jpg#0r1n': ('entailment', ''), '1.jpg#0r1n': ('neutral', 'high'), 'x': ('neutral', '')}
    found = report(checked.Checked({i: checked.Verdict(*w) for i, w in words.items()}, blank=4))
    assert found['errors']['before'][0] == 0.5 and found['errors']['after'][0] == 0
    assert found['checked']['n'] == 2 and found['checked']['blank'] == 4 and found['checked']['missing'] == "1 id: 'x'"
    assert found['filters'][0]['checked']['wrong_label']['precision'][0] == 1
    used = [row for row in found['filters'][0]['curve'] if row['in_use']]
    assert used[0]['error'] == 0 and used[0]['bad'] == 0
