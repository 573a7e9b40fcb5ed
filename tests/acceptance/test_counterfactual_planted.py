"""Rules of simulated answerers whose biases are known, over 50 seeds, through the files of the whole pipeline. Ten
minutes: `bash launch/test.sh --acceptance tests/acceptance/test_counterfactual_planted.py`.
"""

import pathlib
import sys

import pytest

from evil_jax.counterfactual import lexicon as lexicons

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'counterfactual'))
import answerers

pytestmark = pytest.mark.acceptance
SEEDS = range(50)


@pytest.mark.parametrize('oracle', [False, True], ids=['without oracle', 'with oracle'])
def test_rules_found_are_those_planted(oracle, tmp_path, measured):
    lexicon = lexicons.open_lexicon()
    exact, told, false, wanted, missed = dict.fromkeys(answerers.BIASES, 0), 0, 0, 0, 0
    for seed in SEEDS:
        for bias, found in answerers.run(tmp_path / f'{seed}', lexicon, seed, oracle).items():
            got, known = answerers.told(found), answerers.planted(bias, oracle)
            exact[bias] += got == known
            told, false = told + len(got), false + len(got - known)
            wanted, missed = wanted + len(known), missed + len(known - got)
            for what, which in (('false', got - known), ('missed', known - got)):
                print(*(f'{seed} {bias}: {what} {rule}' for rule in sorted(which)), sep='\n')
    name = 'planted rules with an oracle' if oracle else 'planted rules'
    for bias, number in exact.items():
        measured(f'{name}: share of seeds in which those of {bias!r} are found exactly', '>=', 0.9, number / len(SEEDS))
    measured(f'{name}: false ones of {told} told', '<=', 0.05, false / told)
    measured(f'{name}: missed ones of {wanted}', '<=', 0.05, missed / wanted)
