"""Answerers with known biases, through the files of the whole pipeline: the rules found are those that are planted.

tests/acceptance/test_counterfactual_planted.py does this with all families and 50 seeds.
"""

import answerers
import pytest

FAMILIES = ('sibling', 'colour_max_common', 'colour_max_uncommon')


@pytest.mark.parametrize('seed, oracle', [(0, False), (1, True)])
def test_rules_are_those_that_are_planted(seed, oracle, lexicon, tmp_path):
    found = answerers.run(tmp_path, lexicon, seed, oracle, of=FAMILIES, pictures=600)
    known = {'blank', 'sibling', 'colour_max'}
    for bias, rules in found.items():
        assert answerers.told(rules) == {rule for rule in answerers.planted(bias, oracle) if rule[0] in known}, bias
    assert {'edits.jsonl', 'asked.jsonl', 'asked.csv', 'grey.jsonl'} <= {path.name for path in tmp_path.iterdir()}
    # Without an oracle nobody knows whether a kitchen stands beside the bedroom: a habit, no fault.
    assert found['rooms'].rules[0].outcome == ('unwarranted' if oracle else 'kept')
    (grey,) = found['grey'].rules
    assert grey.low > 0.8 > 0.1 > grey.rate_other
    assert grey.outcome == 'unwarranted' and grey.any_target
    assert grey.sentence.startswith(f'Where grey is replaced by any distant colour, the answer is kept: {grey.k} of ')
    assert found['text'].rules[0].sentence.startswith('With a blank picture, the answer is kept: ')
