"""A document of a human study, as `scores.summary`, `presets.run` and the readers of ratings make it."""

import itertools

import PIL.Image

QUALITY = {'A': 0.7, 'B': 0.6, 'gt': 0.8}  # less a little by data set is S_E
COMPARED = {
    'value': 0.61, 'ci95': [0.57, 0.65], 'pairs': 870, 'items': 298, 'better': 0.15, 'same': 0.46, 'worse': 0.39,
}  # fmt: skip
GAPS = (('A', 'B', 0.1), ('A', 'gt', -0.1), ('B', 'gt', -0.05))
AGREED = {'fleiss': 0.2, 'krippendorff_ordinal': 0.31, 'krippendorff_ordinal_weights': 0.28}
SETS = ('esnlive', 'vqax', 'vcr')


def row(dataset, system, s_t=0.8, **more):
    """A row of scores."""
    s_e = QUALITY.get(system, 0.5) - 0.01 * len(dataset)
    s_t = None if system == 'gt' else s_t
    found = {
        'dataset': dataset,
        'system': system,
        'items': 298,
        'lost': 2,
        'ratings': 871,
        'raters': 61,
        'pictures': 298,
        's_e': s_e,
        's_e_ci95': [s_e - 0.03, s_e + 0.03],
        's_e_ratings': s_e + 0.001,
        's_e_median': s_e + 0.01,
        's_e_majority': s_e + 0.02,
        's_t': s_t,
        's_o': None if s_t is None else s_t * s_e,
        's_o_ci95': None if s_t is None else [s_t * s_e - 0.02, s_t * s_e + 0.02],
        'shares': {'no': 0.1, 'weak_no': 0.07, 'weak_yes': 0.28, 'yes': 0.55},
        'shortcomings': {
            'incorrect_description': 0.16,
            'insufficient_justification': 0.25,
            'confusing_sentence': 0.07,
        },
        'comparative': None if system == 'gt' else COMPARED,
        'preference': None,
    }
    return found | ({'datasets': 3} if dataset == 'all' else {}) | more


def scores(sets=SETS, systems=('A', 'B'), **more):
    several = ('all',) if len(sets) > 1 else ()
    return {
        'datasets': list(sets),
        'systems': list(systems),
        'counts': {'ratings': 3600, 'counted': 3391, 'left_out': {'answered otherwise': 180, 'failed check': 29}},
        'scores': [row(name, system) for name in (*sets, *several) for system in (*systems, 'gt')],
        'differences': [
            {'dataset': name, 'a': a, 'b': b, 'difference': gap, 'ci95': [gap - 0.07, gap + 0.07],
             'pictures_shared': 280}
            for name in sets
            for a, b, gap in GAPS
        ],
        'agreement': [
            {'dataset': name, 'name': coefficient, 'value': value, 'se': 0.02, 'p': 0.0, 'ci95': [0.1, 0.4],
             'units': 590, 'ratings': 1700, 'single': 3}
            for name in sets
            for coefficient, value in AGREED.items()
        ],
        'raters': [
            {'dataset': name, 'rater': f'r{i:012x}', 'pages': 4, 'ratings': 74, 'left_out': 6, 'mean': 0.71,
             'bias': -0.02, 'agreement': 0.84, 'wrong': 0.05, 'checks': 4, 'checks_failed': i % 2, 'seconds': 412.0}
            for name in sets
            for i in range(3)
        ],
        'notes': {'s_e': 'mean of an item’s raters, then of items'},
    } | more  # fmt: skip


def model(**more):
    systems = ('A', 'B', 'gt')
    return {
        'name': 'clmm',
        'title': 'cumulative link mixed model',
        'formula': 'rating ~ system + (1 | item) + (1 | rater), logit link',
        'unit': 'log odds of a better rating',
        'n': 3391,
        'sizes': {'system': 3, 'item': 890, 'rater': 61},
        'reference': 'gt',
        'thresholds': [{'name': 'no|weak_no', 'estimate': -2.51, 'se': 0.25}],
        'coefficients': [
            {'name': 'A', 'estimate': -0.77, 'se': 0.21, 'statistic': -3.7, 'df': None, 'p': 0.0002,
             'ci95': [-1.18, -0.36]},
            {'name': 'dataset vqax', 'estimate': 0.31, 'se': 0.1, 'statistic': 3.1, 'df': None, 'p': 0.02,
             'ci95': [0.11, 0.51]},
        ],
        'sd': {'item': 0.97, 'rater': 0.45},
        'log_likelihood': -1125.1,
        'likelihood_ratio': {'chi2': 100.0, 'df': 2, 'p': 9.8e-21},
        'contrasts': [
            {'a': a, 'b': b, 'estimate': 0.27 * i - 0.3, 'se': 0.2, 'statistic': 1.3, 'df': None, 'p': 0.019,
             'p_holm': 0.04 * i + 0.001, 'ci95': [0.27 * i - 0.7, 0.27 * i + 0.1]}
            for i, (a, b) in enumerate(itertools.combinations(systems, 2))
        ],
        'notes': ['ratings of trusted items are no part of it'],
        'reason': None,
    } | more  # fmt: skip


def disagreement(i=0, **more):
    said = lambda j: {
        'rater': f'r{j:012x}',
        'rating': ('no', 'weak_yes', 'yes')[(i + j) % 3],
        'shortcomings': ['incorrect_description'] if (i + j) % 3 == 0 else [],
        'gold_rating': ('yes', 'weak_yes')[j % 2],
        'gold_shortcomings': [],
    }
    return {
        'why': ('spread', 'better')[i % 2],
        'dataset': SETS[i % 3],
        'system': 'AB'[i // 2 % 2],
        'item': f'{i}.jpg#1r1',
        'image_id': f'{i}.jpg',
        'explanation': f'a man number {i} stands on a board in the water',
        'mean': 0.5,
        'gold_explanation': 'he is riding a wave',
        'gold_mean': 0.89,
        'ratings': [said(j) for j in range(3)],
        'question': 'Is the man surfing?',
        'answer': 'yes',
    } | more


def document(folder=None, number=9, **more):
    """A whole one; with a folder the first disagreements have pictures."""
    rows = [disagreement(i) for i in range(number)]
    for i in range(min(2, number) if folder else 0):
        path = folder / f'{i}.png'
        PIL.Image.new('RGB', (60, 40 + 10 * i), (40 + 90 * i, 120, 160)).save(path)
        rows[i] |= {'picture': str(path), 'boxes': [('person1', 0.25, 0.1, 0.75, 0.9)]}
    return {
        'title': 'Three sets',
        'facts': {'raters': 61, 'from': 'the server'},
        'scores': scores(),
        'statistics': [model()],
        'automatic': {'vqax': {'A': {'cider': 0.8, 'bertscore': 0.87}, 'B': {'cider': 0.75}}},
        'correlation': [
            {'dataset': 'vqax', 'metric': 'cider', 'n': 590, 'rho': 0.31, 'p': 0.0001, 'ci95': [0.2, 0.4]},
            {'dataset': 'vqax', 'metric': 'spice', 'n': 0, 'left_out': 590, 'rho': None, 'reason': 'needs Java'},
        ],
        'left_out': {'answered otherwise': 180, 'failed check': 29, 'rejected': 0},
        'disagreements': rows,
        'settings': {'bootstrap': 1000, 'seed': 0},
        'cost': {'paid': 412.5, 'currency': 'USD'},
        'files': {'ratings.csv': 'every rating'},
    } | more  # fmt: skip
