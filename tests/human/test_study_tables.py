"""CSV and LaTeX of a human study."""

import csv
import io

from evil_jax.human import tables

SHARES = {'no': 0.1, 'weak_no': 0.07, 'weak_yes': 0.28, 'yes': 0.55}
EVIL = r'=1+1 & \input{x} _%'


def row(dataset, system, s_e, s_t=None):
    s_o = None if s_t is None else s_t * s_e
    return {
        'dataset': dataset,
        'system': system,
        'items': 3,
        'lost': 0,
        'ratings': 9,
        's_e': s_e,
        's_e_ci95': [0.5, 0.9],
        's_t': s_t,
        's_o': s_o,
        's_o_ci95': None,
        'shares': SHARES,
        'shortcomings': {'incorrect_description': 0.125},
        'comparative': {'value': 0.6, 'ci95': [0.5, 0.7], 'pairs': 9, 'better': 0.2, 'same': 0.4, 'worse': 0.4},
        'preference': None,
    }


def document(sets=('esnlive', 'vqax', 'vcr'), system='A', **more):
    found = [r for name in sets for r in (row(name, system, 2 / 3, 0.75), row(name, 'gt', 0.8))]
    if len(sets) > 1:
        found += [row('all', system, 2 / 3, 0.75), row('all', 'gt', 0.8)]
    gap = {'dataset': sets[0], 'a': system, 'b': 'gt', 'difference': -0.1, 'ci95': None, 'pictures_shared': 3}
    alpha = {'dataset': sets[0], 'name': 'fleiss', 'value': None, 'reason': 'no unit has two ratings'}
    contrast = {'a': system, 'b': 'gt', 'estimate': -0.5, 'p': 0.01, 'p_holm': 0.02, 'ci95': [-0.9, -0.1]}
    return {
        'scores': {'datasets': list(sets), 'systems': [system], 'scores': found, 'differences': [gap],
                   'agreement': [alpha]},
        'automatic': {sets[0]: {system: {'cider': 1 / 3}}},
        'correlation': [{'dataset': sets[0], 'metric': 'cider', 'rho': 0.3, 'p': 0.04, 'n': 9}],
        'statistics': [{'name': 'clmm', 'formula': 'rating ~ system', 'n': 27, 'contrasts': [contrast], 'reason': None},
                       {'name': 'lmm', 'formula': 'score ~ system', 'n': 27, 'reason': 'one rater only'}],
    } | more  # fmt: skip


def lines(document):
    return list(csv.DictReader(io.StringIO(tables.csv(document), newline='')))


def one(rows, **wanted):
    (found,) = [r for r in rows if all(r[key] == value for key, value in wanted.items())]
    return found


def test_csv_has_every_number_in_full_precision():
    rows = lines(document())
    of = dict(dataset='esnlive', system='A', kind='computed')
    found = one(rows, part='scores', measure='s_e', **of)
    assert (float(found['value']), found['ci95_low'], found['n']) == (2 / 3, '0.5', '3')
    assert one(rows, part='scores', measure='s_t', **of)['n'] == '', 'S_T is of all answers'
    assert one(rows, part='comparative', measure='no worse', **of)['ci95_high'] == '0.7'
    assert float(one(rows, part='automatic', measure='cider')['value']) == 1 / 3
    assert one(rows, part='differences')['value'] == '-0.1', 'numbers are no formulas'
    assert one(rows, part='agreement')['reason'] == 'no unit has two ratings'
    assert one(rows, part='correlation')['measure'] == 'spearman cider'
    fitted, failed = (r for r in rows if r['part'] == 'statistics')
    assert (fitted['against'], fitted['p_holm'], fitted['source']) == ('gt', '0.02', 'rating ~ system')
    assert (failed['measure'], failed['value'], failed['reason']) == ('lmm', '', 'one rater only')
    published = one(rows, part='scores', kind='published', dataset='vqax', system='e-UG', measure='s_e')
    assert published['value'] == '0.715' and 'Table 3' in published['source']
    assert 'Table 2' in one(rows, part='shares', kind='published', dataset='vcr', measure='yes')['source']
    keys = [tuple(r[k] for k in ('part', 'kind', 'dataset', 'system', 'against', 'measure')) for r in rows]
    assert len(keys) == len(set(keys)) and not any(r['system'] == 'gt' and r['measure'] == 's_o' for r in rows)


def test_latex_is_laid_out_as_the_paper():
    text = tables.latex(document())
    assert 'A & 66.7 & 50.0 & 75.0 & 66.7 & 50.0' in text and 'gold explanations & 80.0 & -- & -- & 80.0' in text
    # The paper's own row, from its Table 3: overall S_E, then S_O, S_T, S_E of each data set.
    assert r'e-UG & 68.5 & 54.8 & 79.5 & 68.9 & 57.6 & 80.5 & 71.5 & 45.5 & 69.8 & 65.1 \\' in text
    assert r'VQA-X & ground truth & 4.1 & 4.5 & 25.1 & 66.3 \\' in text, 'Table 2'
    assert r'all & e-UG & 15.9 & 25.0 & 7.4 \\' in text and r'VCR & A & 12.5 & -- & -- \\' in text, 'Table 5'
    for table in text.split(r'\begin{table}')[1:]:
        (spec,) = [line for line in table.splitlines() if 'tabular}{' in line]
        width = len(spec.partition('tabular}{')[2]) - 1
        for line in table.splitlines():
            if line.endswith(r'\\'):
                spans = line.count(r'\multicolumn{3}')
                whole = line.startswith(rf'\multicolumn{{{width}}}')
                assert whole or line.count(' & ') + 1 + 2 * spans == width, line


def test_one_data_set_of_our_own_has_nothing_published():
    text = tables.latex(document(sets=('mine',)))
    assert 'published' not in text and r'A & 50.0 & 75.0 & 66.7 \\' in text and 'all' not in text.split('caption')[0]
    assert {r['kind'] for r in lines(document(sets=('mine',)))} == {'computed'}


def test_labels_are_no_formulas_and_no_commands():
    hostile = document(sets=(EVIL, 'vqax'), system=EVIL)
    assert {r['system'] for r in lines(hostile) if r['part'] == 'automatic'} == {f"'{EVIL}"}
    text = tables.latex(hostile)
    assert r'=1+1 \& \textbackslash{}input\{x\} \_\%' in text and r'\input' not in text
