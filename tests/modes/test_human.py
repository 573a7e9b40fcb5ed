"""The mode from predictions to human.json: as a user does it, with raters at the server; what is wrong is told."""

import collections
import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import PIL.Image
import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'human'))
from served_study import Rater

from evil_jax import config as config_lib
from evil_jax.human import ratings
from evil_jax.human.study import GOLD, Study
from evil_jax.modes import human

ROOT = pathlib.Path(__file__).resolve().parents[2]
OFAX = ROOT.parent / 'shared' / 'data' / 'human_eval' / 'ofax_large_esnlive.csv'
RELATIONS = ('entailment', 'neutral', 'contradiction')
SAID = {GOLD: '3', 'poor': '0'}  # what everybody rates: yes, no
WORDS = {'3': ('yes', '3'), '2': ('w_yes', '3'), '0': ('no', '1')}


def lines(path, rows):
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    return str(path)


@pytest.fixture
def run(tmp_path):
    """`run(step, **settings)` -> what the mode returns, of 24 statements and two systems that are right on 20."""
    (tmp_path / 'pictures').mkdir()
    examples = []
    for n in range(24):
        PIL.Image.new('RGB', (8, 6), (10 * n, 9, 9)).save(tmp_path / 'pictures' / f'{n}.png')
        about = {'id': f'e{n}', 'image_id': str(n), 'text': f'statement {n}', 'label': RELATIONS[n % 3]}
        examples.append(about | {'explanations': [f'the gold reason of picture {n}']})
    for system in ('good', 'poor'):
        said = [
            {'id': e['id'], 'answer': e['label'] if n < 20 else RELATIONS[(n + 1) % 3], 'explanation': f'{system} {n}'}
            for n, e in enumerate(examples)
        ]
        lines(tmp_path / f'{system}.jsonl', said)

    def call(step, folder='run', data=None, **settings):
        config = config_lib.base()
        config.data.update(config_lib.DATA_SETS['esnlive'] | {'images': str(tmp_path / 'pictures')} | (data or {}))
        config.evaluate.update(
            references=str(tmp_path / 'references.jsonl'), bootstrap=50, metrics=('rouge',), protocols='evil',
            systems=(f'good={tmp_path / "good.jsonl"}', f'poor={tmp_path / "poor.jsonl"}'),
        )  # fmt: skip
        config.human.update({'step': step, 'limit': 12, 'page_items': 6, 'raters': 2} | settings)
        return human.run(config, tmp_path / folder)

    lines(tmp_path / 'references.jsonl', examples)
    call.out = tmp_path / 'run' / 'human'
    return call


def fields(study, page, good):
    """A page as a careful rater fills it in, to whom the good system is worth `good`."""
    filled = {}
    for k, item in enumerate(study.of(page), 1):
        filled[f'c{k}'] = [str(item.gold)]
        for number, shown in enumerate(item.explanations, 1):
            word, tick = WORDS[good if shown.system == 'good' else SAID.get(shown.system, '0')]
            filled |= {f'{k}-e{number}': [word], f'{k}-f{number}': [tick]}
    return filled


def serve(folder):
    """(process, port) of the binary with step=serve, where nothing may import JAX."""
    broken = folder / 'broken'
    broken.mkdir()
    for name in ('jax', 'flax', 'tensorflow'):
        (broken / f'{name}.py').write_text(f'raise SystemExit("{name} was imported")')
    command = [
        sys.executable, '-m', 'evil_jax.main', '--mode=human', '--config=human:esnlive', '--workdir=run',
        '--config.human.step=serve', '--config.human.port=0',
    ]  # fmt: skip
    env = os.environ | {'PYTHONPATH': f'{broken}:{ROOT}'}
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if found := re.search(r'127\.0\.0\.1:(\d+)/', line):
            return process, int(found[1])
    raise AssertionError(f'no server: {process.wait()}')


def test_from_predictions_over_raters_to_human_json(run, tmp_path, capsys):
    run('sample')
    study = Study.open(run.out)
    assert study.systems == ('good', 'poor') and study.s_t == {'good': 20 / 24, 'poor': 20 / 24}
    assert all((run.out / 'images' / item.image).is_file() for item in study.items.values())
    places = 2 * len(study.pages)
    assert f'{places} pages to pay, 1 each: {1.2 * places:.2f} with' in capsys.readouterr().out
    before = (run.out / 'study.json').read_bytes()
    run('sample')
    assert 'the study is there already' in capsys.readouterr().out
    with pytest.raises(ValueError, match=r'another study \(limit.*another --workdir'):
        run('sample', limit=10)
    with pytest.raises(ValueError, match=r'another study \(raters\)'):
        run('sample', raters=5)
    (tmp_path / 'intro').write_bytes(b'\xff')
    with pytest.raises(ValueError, match='intro: wanted text in UTF-8'):
        run('serve', intro=str(tmp_path / 'intro'))
    other = tmp_path / 'other.csv'
    other.write_text('item,system,rater,rating\nx,good,r,yes\n')
    with pytest.raises(ValueError, match=r'other.csv: nothing of what .*study.json asks is rated there'):
        run('score', ratings=str(other))
    assert (run.out / 'study.json').read_bytes() == before
    with pytest.raises(ValueError, match='no server has collected ratings here'):
        run('score')

    process, port = serve(tmp_path)
    try:
        pages = {page.id: page for page in study.pages}
        done = collections.Counter()
        while done.total() < 2 * len(pages):
            rater = Rater(port)
            rater.begin()
            assert rater.open(), 'nobody gets a page, and some wait for raters'
            while name := rater.page:
                assert rater.send('submit', fields(study, pages[name], '23'[done[name]]))[0] == 200
                done[name] += 1
                rater.open()
        assert done == dict.fromkeys(pages, 2)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0

    numbers = run('score', model='kayser2021_lmm')
    assert numbers['esnlive good s_e_human'] == pytest.approx(5 / 6) and numbers['esnlive poor s_e_human'] == 0
    assert numbers['esnlive gt s_e_human'] == 1 and numbers['esnlive good s_o_human'] == pytest.approx(25 / 36)
    document = json.loads((run.out / 'results.json').read_text())
    known = sum(study.items[name].trusted for page in study.pages for name in page.items)
    assert document['scores']['counts']['left_out'] == {'trusted item': 2 * 2 * known}
    assert {row['system'] for row in document['scores']['scores']} == {'good', 'poor', GOLD}
    assert document['automatic']['esnlive'].keys() == {'good', 'poor'}
    page = (run.out / 'report.html').read_text()
    assert 'good' in page and 'statement' in page and 'data:image/' in page
    with open(run.out / 'ratings.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    assert {row['rater'][0] for row in rows} == {'r'} and {row['system'] for row in rows} >= {'good', 'poor', GOLD}
    counted = ratings.read(run.out / 'ratings.csv')  # as evaluate.ratings reads it
    assert len(counted) == document['scores']['counts']['counted']


def test_other_ways_to_ask_need_the_address_of_the_pictures(run, capsys):
    run('sample')
    with pytest.raises(ValueError, match=r'human\.image_url'):
        run('export', to='label_studio')
    run('export', to='mturk', image_url='https://pictures.example/')
    shown = capsys.readouterr().out
    assert 'human.step=score' in shown
    batches = sorted((run.out / 'mturk').glob('*.csv'))
    assert batches and all(str(path) in shown for path in batches)
    with open(batches[0], newline='') as file:
        assert 'https://pictures.example/' in next(csv.DictReader(file))['impath_1']


def test_ratings_of_others_are_scored_and_tell_how_many_people_it_takes(run, capsys):
    if not OFAX.is_file():
        pytest.skip(f'{OFAX} is not here')
    numbers = run('score', 'other', ratings=str(OFAX), model='kayser2021_lmm')
    assert numbers.keys() == {'esnlive ofax s_e_human', 'esnlive gt s_e_human'}
    (ours,) = [
        row for row in json.loads((run.out.parents[1] / 'other/human/results.json').read_text())['scores']['scores']
        if row['system'] == 'ofax'
    ]  # fmt: skip
    assert (ours['ratings'], round(ours['s_e_ratings'], 4)) == (1104, 0.8572)

    def needed(folder, **settings):
        assert run('power', folder, **settings) is None, 'the numbers of score stay'
        assert 'power 0.8' in capsys.readouterr().out
        plan = json.loads((run.out.parents[1] / folder / 'human/power.json').read_text())
        return {row['raters']: row['items'] for row in plan['needed']}

    here = needed('other', ratings=str(OFAX), difference=0.1)
    assert here[1] > here[3] > 2
    assert needed('empty', difference=0.05)[3] > needed('empty', difference=0.1)[3]


def test_bad_input_is_one_message(run, tmp_path):
    with pytest.raises(ValueError, match=r'there is no study \(--config.human.step=sample'):
        run('serve')
    with pytest.raises(ValueError, match="Did you mean 'clmm'"):
        run('score', model='clm')
    with pytest.raises(ValueError, match=r'nothing\.csv: there is no such file'):
        run('score', ratings='nothing.csv')
    (tmp_path / 'empty.csv').write_text('')
    with pytest.raises(ValueError, match=r'empty\.csv'):
        run('score', ratings=str(tmp_path / 'empty.csv'))
    with pytest.raises(ValueError, match=r'trusted\.jsonl'):
        run('sample', trusted=str(tmp_path / 'trusted.jsonl'))
    lines(tmp_path / 'good.jsonl', [{'id': f'e{n}', 'answer': 'neutral', 'explanation': 'x'} for n in range(24)])
    lines(tmp_path / 'poor.jsonl', [{'id': f'e{n}', 'answer': 'neutral', 'explanation': 'x'} for n in range(23)])
    with pytest.raises(ValueError, match='missing'):
        run('sample')
    assert not list((tmp_path / 'run').glob('human/*'))
