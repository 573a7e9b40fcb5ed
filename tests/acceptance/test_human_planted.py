"""Planted studies: raters of known quality and bias rate systems of known quality. The statistics find them again, of
one study from the sample over the server to the model. A minute:
`bash launch/test.sh --acceptance tests/acceptance/test_human_planted.py`.
"""

import itertools
import math
import pathlib
import random
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'human'))
import served_study
from served_study import Rater

from evil_jax.human import collected, form, presets, responses, sampling, scores
from evil_jax.human.study import RATINGS, TRUSTED
from evil_jax.records import Example, Prediction

pytestmark = pytest.mark.acceptance
# Log odds of a better rating; thresholds between no, weak no, weak yes, yes; deviations of items and raters.
PLANTED = {'gt': 1.2, 'best': 0.7, 'middle': 0.0, 'worst': -0.9}
THRESHOLDS, ITEMS, RATERS = (-2.0, -1.0, 0.6), 0.8, 0.6
CROWD, CARELESS, LIMIT = 45, 3, 200  # the careless ones answer at random
STUDIES = 8  # of those that do without the server


def _study(dice):
    """Statements about 700 pictures; the three systems are right on most, each on others."""
    names = [f'e{number:03}' for number in range(700)]
    relations = ('entailment', 'neutral', 'contradiction')
    examples = [
        Example(n, f'{n}.jpg', f'statement {n}', label=relations[i % 3], explanations=[f'gold of {n}'])
        for i, n in enumerate(names)
    ]
    systems = [name for name in PLANTED if name != 'gt']
    right = {system: {n: float(dice.random() < 0.7) for n in names} for system in systems}
    said = {
        system: {e.id: Prediction(e.id, e.label, explanation=f'{system} of {e.id}') for e in examples}
        for system in systems
    }
    return sampling.sample(examples, said, right, dataset='esnlive', limit=LIMIT, seed=1)


class _Person:
    """Someone who rates by what was planted, and looks at the shortcomings afterwards."""

    def __init__(self, dice, items, careless):
        self.dice, self.items, self.careless, self.bias = dice, items, careless, dice.gauss(0, RATERS)

    def _rating(self, item, shown):
        if self.careless:
            return self.dice.choice(RATINGS)
        if shown.system == TRUSTED or shown.expected:
            return self.dice.choice(shown.expected)
        odds = self.dice.random()
        latent = PLANTED[shown.system] + self.items[item.example] + self.bias + math.log(odds / (1 - odds))
        return RATINGS[sum(latent > threshold for threshold in THRESHOLDS)]

    def fill(self, study, page):
        """Fields of a page that keeps the rules of the form."""
        fields, wrong, yes = {}, 0, 0
        for k, item in enumerate(study.of(page), 1):
            answer = item.gold
            if wrong < study.wrong_limit and self.dice.random() < 0.05:
                answer, wrong = (item.gold + 1) % len(item.choices), wrong + 1
            fields[f'c{k}'] = [str(answer)]
            for e, shown in enumerate(item.explanations, 1):
                rating = self._rating(item, shown)
                yes += rating == 'yes'
                if yes > form.yes_limit(study, page):
                    rating = 'weak_yes'
                word = next(word for word, meaning in form.WORDS.items() if meaning == rating)
                fields |= {f'{k}-e{e}': [word], f'{k}-f{e}': ['1' if 'no' in rating else '3']}
        return fields


def test_what_was_planted_comes_back(tmp_path, measured):
    dice = random.Random(8)
    study = _study(dice)
    study.write(tmp_path)
    items = {item.example: dice.gauss(0, ITEMS) for item in study.items.values()}
    pages = {page.id: page for page in study.pages}
    careless = set()
    with served_study.running(study, tmp_path, max_pages=6) as (port, _, keys):
        for number in range(CROWD):
            rater = Rater(port, ids={'PROLIFIC_PID': f'person{number}'})
            person, done = _Person(dice, items, number < CARELESS), 0
            rater.begin()
            if person.careless:
                careless.add(keys.rater(f'prolific:person{number}'))
            while name := rater.open():
                status, answer = rater.send('submit', person.fill(study, pages[name]))
                assert status == 200, answer
                done += 1
            assert (keys.completion_code in rater.html) == (done > 0)
    rows = responses.mark(collected.read(tmp_path))
    counted = [row for row in rows if not row.reason]
    places = len({row.assignment for row in rows})
    measured('pages handed in, of all that were wanted', '==', len(pages) * study.raters, places)
    failed = {row.assignment for row in rows if row.reason == responses.CHECK}
    measured('pages with a failed check that are not by careless raters', '==', 0,
             sum(name.split('-')[1] not in careless for name in failed))  # fmt: skip
    measured('pages by careless raters that were caught', '>=', 0.5, len(failed) / (6 * CARELESS))
    summary = scores.summary(counted, resamples=1000, seed=0)
    s_e = {row['system']: row['s_e'] for row in summary['scores'] if row['dataset'] == 'esnlive'}
    order = sorted(s_e, key=s_e.get, reverse=True)
    measured('places of the ranking that are as planted', '==', len(PLANTED), sum(map(str.__eq__, order, PLANTED)))
    for difference in summary['differences']:
        if difference['dataset'] == 'esnlive':
            low, high = difference['ci95']
            planted = PLANTED[difference['a']] - PLANTED[difference['b']]
            measured(f'S_E of {difference["a"]} - {difference["b"]}: interval on the planted side of 0', '>=', 0.0,
                     low if planted > 0 else -high)  # fmt: skip
    model = presets.run('clmm', rows)
    inside = _inside(model)
    measured('planted differences (log odds) inside their 95 % intervals', '>=', len(inside) - 1, sum(inside))
    print('deviations', model['sd'], 'planted', ITEMS, RATERS)
    measured('error of the deviation of raters', '<=', 0.2, abs(model['sd']['rater'] - RATERS))
    measured('error of the deviation of items', '<=', 0.2, abs(model['sd']['item'] - ITEMS))


def test_intervals_hold_over_planted_studies(measured):
    inside = []
    for seed in range(STUDIES):
        dice = random.Random(100 + seed)
        study = _study(dice)
        items = {item.example: dice.gauss(0, ITEMS) for item in study.items.values()}
        people = [_Person(dice, items, False) for _ in range(CROWD)]
        turns, rows = itertools.cycle(range(CROWD)), []
        for page, _ in itertools.product(study.pages, range(study.raters)):
            number = next(turns)
            answers = form.parse(people[number].fill(study, page), **form.shape(study, page))
            assert form.check(study, page, answers) == []
            rows += form.rows(study, page, answers, rater=f'r{number}', assignment=f'{page.id}-r{number}')
        inside += _inside(presets.run('clmm', responses.mark(rows)))
    share = sum(inside) / len(inside)
    measured(f'share of {len(inside)} planted differences inside their 95 % intervals', '>=', 0.9, share)


def _inside(model) -> list[bool]:
    """Of each pair of systems whether the interval has what was planted."""
    assert model['reason'] is None, model
    found = []
    for pair in model['contrasts']:
        low, high = pair['ci95']
        planted = PLANTED[pair['a']] - PLANTED[pair['b']]
        found.append(low <= planted <= high)
        print(
            f'{pair["a"]} - {pair["b"]}: planted {planted:.2f}, found {pair["estimate"]:.2f}, {low:.2f} to {high:.2f}'
        )
    return found
