import html.parser
import re
import subprocess

from evil_jax.pages import sweep

ATTACK = '</script><img src=x onerror="document.title=1">{{ 7 * 7 }}<svg onload=alert(1)>'


def cell(mean, sd=0.01, n=3):
    return {'mean': mean, 'sd': sd, 'n': n}


def document(word='s_t', value='task', rates=(1e-5, 2e-5, 5e-5), **more):
    """Three rates by two regimes, three seeds each; of the last group one run has failed."""
    key = 'train.regime'
    groups = [
        {'overrides': {'optim.lr': lr, key: regime}, 'names': [f'{lr}{regime}{i}' for i in range(3)], 'done': 3}
        | {'scores': {word: cell(0.5 + i / 10 + 0.05 * (regime == 'joint')), 'bleu4': cell(0.1)}}
        for i, lr in enumerate(rates)
        for regime in (value, 'joint')
    ]
    groups[-1] |= {'done': 2, 'scores': {}}
    points = [
        {'name': name, 'overrides': g['overrides'] | {'seed': i}, 'status': 'done', 'scores': {word: 0.5}}
        | {'seconds': 61.2, 'steps': 500, 'data_dir': 'd'}
        for g in groups
        for i, name in enumerate(g['names'])
    ]
    points[-1] |= {'status': 'diverged', 'reason': f'loss is nan {value}', 'scores': {}}
    row = {'first': cell(0.5), 'second': cell(0.6, None, 1), 'difference': cell(-0.1, 0.02)}
    return {
        'model': f'updown {value}', 'split': 'test', 'select': word, 'data_dir': 'd', 'over': ['seed'],
        'grid': {'optim.lr': list(rates), key: [value, 'joint'], 'seed': [0, 1, 2]}, 'config': {'train.steps': value},
        'points': points, 'groups': groups, 'failed': 1,
        'contrasts': [
            {'key': key, 'values': [value, 'joint'], 'rows': [{'overrides': {'optim.lr': 1e-5}, 'scores': {word: row}}]}
        ],
        'best': {'overrides': {'optim.lr': 5e-5, key: value}, 'names': [], 'flags': f'--config.x={value}', **cell(0.7)},
    } | more  # fmt: skip


def write(path, **more):
    sweep.write_page(path, title='rates', document=document(**more))
    return path.read_text(encoding='utf-8')


def words(page):
    return ' '.join(re.sub(r'<[^>]*>', ' ', page.replace('\xa0', ' ')).split())


def test_means_points_contrasts_and_the_best_are_shown(tmp_path):
    page = write(tmp_path / 's.html')
    shown = words(page)
    for wanted in (
        '18 runs', 'scored on test', 'means are taken over seed', '1 have no score', '0.700 ± 0.010 (n 3), on test',
        '--config.x=task', 'optim.lr 1e-05, task only 3 of 3 0.500 ± 0.010 (n 3)', '2 of 3', 'diverged', 'loss is nan',
        'updown task, optim.lr 1e-05 0.500 ± 0.010 (n 3) 0.600 (n 1) -0.100 ± 0.020 (n 3)',
        'S_T answers right on test: task only against joint', 'difference, joint − task only', 'BLEU-4',
    ):  # fmt: skip
        assert wanted in shown, wanted
    assert len(re.findall('<polyline', page)) == 2 and page.count('class="line stroke') == 5
    assert [m for m in re.findall('<tr class="self">.*?</th>', page) if '5e-05, task only' in m]


def test_a_sweep_that_has_just_begun_has_a_page(tmp_path):
    begun = document()
    for point in begun['points']:
        point |= {'status': 'waiting', 'seconds': 0.0, 'steps': 0}
        point.pop('scores')
    groups = [group | {'done': 0, 'scores': {}} for group in begun['groups']]
    page = write(tmp_path / 's.html', points=begun['points'], groups=groups, contrasts=[], best=None, failed=0)
    assert '18 of them are not finished' in page and '<polyline' not in page and 'id="contrasts"' not in page
    only_seeds = document(rates=(1,))
    only_seeds |= {'grid': {'seed': [0, 1]}, 'over': ['seed']}
    assert sweep.plot(only_seeds) is None


def test_the_longest_key_makes_the_axis_and_the_best_lines_are_drawn(tmp_path):
    chart = sweep.plot(document())
    assert chart['axis'] == 'optim.lr' and [text for _, text in chart['x_ticks']] == ['1e-05', '2e-05', '5e-05']
    assert [line['name'] for line in chart['lines']] == ['task only', 'joint']
    assert [len(line['dots']) for line in chart['lines']] == [3, 2]
    many = document()
    many['groups'] = [
        {'overrides': {'optim.lr': lr, 'train.steps': s}, 'scores': {'s_t': cell(s / 10)}}
        for lr in (1e-5, 2e-5)
        for s in range(9)
    ]
    many['grid'] = {'optim.lr': [1e-5, 2e-5], 'train.steps': list(range(9))}
    chart = sweep.plot(many)
    assert chart['axis'] == 'train.steps' and len(chart['lines']) == 2
    many['grid']['optim.lr'] = list(range(20))
    chart = sweep.plot(many | {'groups': [g | {'overrides': g['overrides'] | {'optim.lr': 3}} for g in many['groups']]})
    assert len(chart['lines']) == 6 and '6 of 9' in chart['title'] and chart['lines'][0]['name'] == 'train.steps 3'


def test_sweeps_about_the_same_values_share_a_table_and_others_show_means():
    documents = {'FME': document(), 'e-UG': document(), 'rates': document(contrasts=[])}
    shared, means = sweep.summary(documents)
    assert shared.columns == ['model', 'task only', 'joint', 'difference, joint − task only']
    assert [row[0] for row in shared.rows] == ['FME, optim.lr 1e-05', 'e-UG, optim.lr 1e-05']
    assert means.title.startswith('rates: Means over seed on test') and len(means.rows) == 6


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, [name for name, _ in attrs]))


def test_untrusted_text_stays_text_and_the_policy_forbids_scripts(tmp_path):
    plain = Tags(write(tmp_path / 'a.html', value='harmless')).found
    page = write(tmp_path / 'b.html', value=ATTACK)
    assert Tags(page).found == plain
    assert (
        'default-src &#39;none&#39;' in page
        and 'unsafe' not in page
        and '<script' not in page
        and ' style=' not in page
    )


def test_in_a_browser_nothing_untrusted_runs(browser, tmp_path):
    write(tmp_path / 's.html', value=ATTACK)
    command = [browser, '--headless', '--no-sandbox', '--disable-gpu', '--dump-dom', (tmp_path / 's.html').as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert '<title>rates: sweep</title>' in shown and '<img' not in shown
