"""The mode on files: edited questions go out, anybody's answers come back; without JAX; what is wrong is told."""

import collections
import csv
import json
import os
import pathlib
import subprocess
import sys

import pytest

from evil_jax import config as config_lib
from evil_jax import records
from evil_jax.modes import counterfactual

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLOURS, THINGS = ('red', 'blue', 'green', 'gray'), ('car', 'dog', 'kite', 'train')
QUESTIONS = [
    {'id': f'q{n}', 'image_id': f'p{n // 2}', 'text': f'Is the {COLOURS[n % 4]} {THINGS[n // 4 % 4]} wet?',
     'annotations': ['yes'] * 9 + ['no']}
    for n in range(48)
]  # fmt: skip


def lines(path, rows):
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    return path


@pytest.fixture
def run(tmp_path):
    """`run(**settings)` -> numbers of the mode with the questions in q.jsonl and the work folder `run.out`."""
    lines(tmp_path / 'q.jsonl', QUESTIONS)

    def call(data=None, **settings):
        config = config_lib.base()
        config.data.update(config_lib.DATA_SETS['vqav2'] | (data or {}))
        config.evaluate.bootstrap = 50
        config.counterfactual.update({'questions': str(tmp_path / 'q.jsonl')} | settings)
        return counterfactual.run(config, tmp_path / 'run')

    call.out = tmp_path / 'run' / 'counterfactual'
    return call


def asked(run):
    return [json.loads(line) for line in (run.out / 'asked.jsonl').read_text().splitlines()]


def answered(run, path, say=lambda row: 'no' if '#colour_max' in row['id'] and 'gray' not in row['was'] else 'yes'):
    """Answers of a system that says yes, but no to another colour, unless the colour was grey."""
    was = {row['id']: row['text'] for row in QUESTIONS}
    rows = [row | {'was': was[row['id'].partition('#')[0]]} for row in asked(run)]
    return lines(path, [{'id': row['id'], 'answer': say(row)} for row in rows])


def test_two_files_are_enough_and_jax_is_not_needed(tmp_path):
    lines(tmp_path / 'q.jsonl', QUESTIONS)
    (tmp_path / 'broken').mkdir()
    for name in ('jax', 'flax', 'tensorflow'):
        (tmp_path / 'broken' / f'{name}.py').write_text(f'raise SystemExit("{name} was imported")')
    command = [
        sys.executable, '-m', 'evil_jax.main', '--mode=counterfactual', '--config=counterfactual:vqav2',
        '--workdir=run', '--config.counterfactual.questions=q.jsonl', '--config.evaluate.bootstrap=50',
    ]  # fmt: skip
    env = os.environ | {'PYTHONPATH': f'{tmp_path / "broken"}:{ROOT}'}
    go = lambda *more: subprocess.run(
        [*command, *more], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    first = go()
    assert first.returncode == 0, first.stderr
    assert 'now let your system answer run/counterfactual/asked.jsonl' in first.stdout
    rows = [json.loads(line) for line in (tmp_path / 'run/counterfactual/asked.jsonl').read_text().splitlines()]
    lines(tmp_path / 'a.jsonl', [{'id': row['id'], 'answer': 'yes'} for row in rows])
    second = go('--config.counterfactual.answers=a.jsonl')
    assert second.returncode == 0, second.stderr
    numbers = json.loads((tmp_path / 'run/counterfactual.json').read_text())
    assert numbers['colour_max_common flips'] == 0 and numbers['colour_max_common acc'] == 1
    page = (tmp_path / 'run/counterfactual/report.html').read_text()
    assert 'Content-Security-Policy' in page and 'Counterfactual questions' in page


def test_files_numbers_and_rules(run, tmp_path, capsys):
    assert run() is None
    table = list(csv.DictReader((run.out / 'asked.csv').open()))
    assert [row['id'] for row in table] == [row['id'] for row in asked(run)]
    numbers = run(answers=str(answered(run, tmp_path / 'a.jsonl')), min_questions=8, min_images=4)
    assert numbers['colour_max_common flips'] == pytest.approx(36 / 48)
    assert numbers['colour_min_common flips'] == numbers['sibling flips'] == 0
    document = json.loads((run.out / 'rules.json').read_text())
    assert document['coverage'][5]['family'] == 'colour_max_common' and document['coverage'][5]['share'] == 1
    judged = [json.loads(line) for line in (run.out / 'judged.jsonl').read_text().splitlines()]
    edits = [json.loads(line) for line in (run.out / 'edits.jsonl').read_text().splitlines()]
    assert [row['id'] for row in judged] == [row['id'] for row in edits]
    flips = collections.Counter(row['family'] for row in judged if not row['kept'])
    assert flips.keys() == {'colour_max_common', 'colour_max_uncommon'}
    row = next(row for row in judged if not row['kept'])
    assert (row['answer'], row['answer_star'], row['transition'], row['right']) == ('yes', 'no', 'right->wrong', 1.0)
    assert [r['id'] for r in csv.DictReader((run.out / 'judged.csv').open())] == [r['id'] for r in judged]
    told = capsys.readouterr().out
    assert 'questions that could be edited' in told and 'colour_max_common' in told and 'report: ' in told


def test_answers_may_be_a_table_in_several_files(run, tmp_path):
    run()
    rows = [json.loads(line) for line in answered(run, tmp_path / 'a').read_text().splitlines()]
    for name, part in (('a.csv', rows[::2]), ('b.csv', rows[1::2])):
        with open(tmp_path / name, 'w', newline='') as file:
            writer = csv.DictWriter(file, ['id', 'answer'])
            writer.writeheader()
            writer.writerows(part)
    numbers = run(answers=f'{tmp_path / "a.csv"},{tmp_path / "b.csv"}', answers_format='csv', report=False)
    assert numbers['colour_max_common flips'] == pytest.approx(36 / 48)
    assert not (run.out / 'report.html').exists()


def test_the_same_seed_writes_the_same_files(run):
    run()
    names = ('edits.jsonl', 'asked.jsonl', 'baselines.jsonl', 'coverage.json')
    before = {name: (run.out / name).read_bytes() for name in names}
    (run.out / 'exchange.json').unlink()
    run()
    assert {name: (run.out / name).read_bytes() for name in names} == before


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda rows: rows[:-3], r'no answer to 3 ids: .* allow missing'),
        (lambda rows: [*rows, {'id': 'who', 'answer': 'me'}], r"never asked: 1 id: 'who'.* allow extra"),
        (lambda rows: [*rows, rows[0]], r'answered again: 1 id: .* allow duplicates'),
        (lambda rows: [*rows[:4], {'id': 'x'}], r'a\.jsonl:5: missing field .answer'),
        (lambda rows: [], r'a\.jsonl: holds no predictions'),
    ],
)
def test_wrong_answers_are_told_and_nothing_is_written(run, tmp_path, change, message):
    run()
    path = answered(run, tmp_path / 'a.jsonl')
    lines(path, change([json.loads(line) for line in path.read_text().splitlines()]))
    with pytest.raises(ValueError, match=message):
        run(answers=str(path))
    assert not {'rules.json', 'judged.jsonl', 'judged.csv', 'report.html'} & {p.name for p in run.out.iterdir()}


def test_what_is_allowed_is_left_out_and_told(run, tmp_path, capsys):
    run()
    path = answered(run, tmp_path / 'a.jsonl')
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lines(path, [*rows[:-3], {'id': 'who', 'answer': 'me'}])
    run(answers=str(path), allow='missing,extra')
    assert 'left out as counterfactual.allow says: missing:3,extra:1' in capsys.readouterr().out


def test_answers_that_differ_without_an_edit_are_told(run, tmp_path, capsys):
    run()
    steady = lambda row: 'no' if '#sibling' in row['id'] else 'yes'
    run(answers=str(answered(run, tmp_path / 'a.jsonl', steady)), report=False)
    assert 'another answer' not in capsys.readouterr().out
    noisy = lambda row: 'no' if row['id'] in ('q3#noop', 'q4#noop', 'q3#repeat') else 'yes'
    run(answers=str(answered(run, tmp_path / 'a.jsonl', noisy)), report=False)
    told = capsys.readouterr().out
    assert 'the same question has another answer: 2 of 48 (noop), 1 of 48 (repeat). So many flips are noise' in told


@pytest.mark.parametrize(
    ('texts', 'message'),
    [
        (['', '  '], r'q\.jsonl: none of its 2 records has a question'),
        (['What is it?', 'Is it?', 'Do they?'], r'none of 3 questions can be edited: only function words$'),
        (['¿De qué color es el perro?'] * 20, r'none of 20 questions can be edited: not English$'),
        (['Is the dog wet? ' * 2000], r'none of 1 questions can be edited: too long$'),
    ],
)
def test_questions_without_an_edit(run, tmp_path, texts, message):
    rows = [QUESTIONS[0] | {'id': str(n), 'text': text} for n, text in enumerate(texts)]
    lines(tmp_path / 'q.jsonl', rows)
    with pytest.raises(ValueError, match=message):
        run()
    assert not (run.out / 'asked.jsonl').exists()


def test_a_malformed_line_is_named(run, tmp_path):
    with open(tmp_path / 'q.jsonl', 'a') as file:
        file.write('{"id": \n')
    with pytest.raises(ValueError, match=r'q\.jsonl:49'):
        run()


def test_without_wordnet_it_says_where_it_looked_and_what_to_install(run, tmp_path, monkeypatch):
    (tmp_path / 'nothing').mkdir()
    monkeypatch.setenv('EVIL_JAX_WORDNET_DIR', str(tmp_path / 'nothing'))
    with pytest.raises(ValueError, match=r'(?s)nothing: no WordNet there.*pip install .evil_jax\[counterfactual'):
        run()
    with pytest.raises(ValueError, match='nowhere'):
        run(wordnet=str(tmp_path / 'nowhere'))


def test_rules_that_nothing_makes_are_refused_before_anything_is_written(run):
    with pytest.raises(ValueError, match=r'tau is 1\.0, wanted a number between 0 and 1'):
        run(tau=1.0)
    assert not (run.out / 'asked.jsonl').exists()


def test_too_little_coverage_is_refused_before_anything_is_written(run):
    with pytest.raises(ValueError, match=r'synonym_verb edits 0 of 48 questions .*wanted 50\.0%'):
        run(min_coverage=0.5)
    assert not (run.out / 'asked.jsonl').exists()
    run()
    with pytest.raises(ValueError, match=r'synonym_verb edits 0 of 48 questions .*wanted 50\.0%'):
        run(min_coverage=0.5)  # of edits that are there, too


def test_edits_that_answers_belong_to_are_not_written_over(run, tmp_path):
    run()
    path = answered(run, tmp_path / 'a.jsonl')
    before = (run.out / 'asked.jsonl').read_bytes()
    with pytest.raises(ValueError, match=r"edits of other questions or settings.*families: .*now \['sibling'\]"):
        run(answers=str(path), families=('sibling',))
    assert (run.out / 'asked.jsonl').read_bytes() == before
    run(families=('sibling',))  # without answers nobody is in the way
    assert (run.out / 'asked.jsonl').read_bytes() != before
    run(families=('sibling',), answers=str(answered(run, tmp_path / 'a.jsonl')))
    results = {path.name: path.read_bytes() for path in run.out.iterdir()}
    for more in ({}, {'limit': 5}):
        with pytest.raises(ValueError, match='to which answers belong'):
            run(**more)
    assert {path.name: path.read_bytes() for path in run.out.iterdir()} == results


def test_what_a_killed_run_left_half_written_goes(run):
    run()
    (run.out / '.edits.jsonl.k7_2wq9x').write_text('half')
    run()
    assert not list(run.out.glob('.*'))


@pytest.mark.parametrize('content', ['', '{"table"', 'null', '{"table": []}'])
def test_a_coverage_that_was_changed_is_named(run, content):
    run()
    (run.out / 'coverage.json').write_text(content)
    with pytest.raises(ValueError, match=r'coverage\.json'):
        run()
    (run.out / 'coverage.json').unlink()
    assert run() is None


def test_what_is_missing_is_told_before_the_work(run, tmp_path):
    with pytest.raises(ValueError, match=r'counterfactual.questions names no file, and .* no data set in data/vqav2'):
        run(questions='')
    with pytest.raises(ValueError, match="nowhere', which is not a folder"):
        run(data={'images': str(tmp_path / 'nowhere')})
    (tmp_path / 'graphs.json').write_text('[{"image_id": 7, "objects": []}]')
    with pytest.raises(ValueError, match=r"graphs\.json: has none of the 24 pictures of the questions: .*'p0'"):
        run(scene_graphs=str(tmp_path / 'graphs.json'))
    assert not list(run.out.iterdir())


def test_one_run_at_a_time(run):
    run.out.mkdir(parents=True)
    with records.locked(run.out / '.lock', 'taken'), pytest.raises(ValueError, match='another run works here'):
        run()


def test_scene_graphs_say_what_is_right(run, tmp_path):
    thing = lambda number, name, *attributes: {
        'object_id': number, 'names': [name], 'synsets': [f'{name}.n.01'], 'attributes': list(attributes),
        'x': 0, 'y': 0, 'w': 5, 'h': 5,
    }  # fmt: skip
    graphs = [
        {
            'image_id': n,
            'objects': [thing(10 * n, 'car', 'red'), thing(10 * n + 1, 'dog', 'black')],
            'relationships': [],
        }
        for n in range(4)
    ]
    (tmp_path / 'graphs.json').write_text(json.dumps(graphs))
    rows = [
        {'id': str(n), 'image_id': str(n), 'text': 'What color is the car?', 'answers': {'red': 1.0}} for n in range(4)
    ]
    lines(tmp_path / 'q.jsonl', rows)
    settings = dict(scene_graphs=str(tmp_path / 'graphs.json'), siblings=(('car', 'dog'),), families=('sibling',))
    run(**settings)
    edits = [json.loads(line) for line in (run.out / 'edits.jsonl').read_text().splitlines()]
    assert {(e['text'], e['expectation'], *e['expected']) for e in edits} == {
        ('What color is the dog?', 'CHANGE', 'black')
    }
