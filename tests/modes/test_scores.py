"""Scores for anybody's predictions: the published output of NLX-GPT, several systems, formats, ids, ratings, checks."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from evil_jax import config as config_lib
from evil_jax import records
from evil_jax.modes import _scoring, evaluate
from evil_jax.records import Example, Prediction

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHEAP = ('bleu', 'rouge', 'cider')
WORDS = ('the dog runs on grass', 'a man sits on a red chair', 'nothing says who she is', 'two cats sleep in a box')


def configured(**options):
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS['vqax'])
    config.evaluate.update(dict(bootstrap=0, trials=0, metrics=CHEAP, ptb='python') | options)
    return config


def document(folder, name='scores.json'):
    return json.loads((folder / name).read_text(encoding='utf-8'))


def percent(rows, names=('bleu4', 'rouge_l', 'cider')):
    return tuple(round(100 * rows[name]['value'], 1) for name in names)


def released(shared, kind, references, **options):
    """NLX-GPT's output for VQA-X's test split, 'full' or 'exp', and a file of references."""
    data = shared / 'data'
    return configured(
        predictions=str(data / f'generated/nlxgpt_vqaX_p_{kind}_unfiltered.json'),
        predictions_format=f'nlxgpt_{kind}',
        references=str(data / 'vqax' / references),
        **options,
    )


def test_published_output_under_three_protocols(shared, tmp_path):
    """The table in the README."""
    config = released(shared, 'full', 'vqaX_test.json', protocols='nlxgpt,nlxgpt_any,evil')
    evaluate.run(config, tmp_path)
    scores = document(tmp_path)
    assert list(scores) == ['schema', 'nlxgpt', 'nlxgpt_any', 'evil', 'majority']
    for protocol, n, right in (('nlxgpt', 1477, (28.5, 51.5, 110.6)), ('nlxgpt_any', 1635, (27.3, 50.4, 105.1))):
        assert percent(scores[protocol]['all']) == (25.6, 48.7, 97.2)
        assert scores[protocol]['all']['bleu4']['n'] == 1968
        assert percent(scores[protocol]['correct']) == right and scores[protocol]['correct']['bleu4']['n'] == n
        assert f'|protocol:{protocol}|' in scores[protocol]['correct']['cider']['signature']
    assert scores['nlxgpt_any']['all']['accuracy']['value'] == pytest.approx(0.8308, abs=5e-5)
    # With references in their original case, as e-ViL's own code scores them; the answers are still NLX-GPT's file's.
    config.evaluate.references += f',{shared / "data/vqax/scr_test_exp_anno.json"}'
    evaluate.run(config, tmp_path)
    scores = document(tmp_path)
    assert percent(scores['evil']['correct']) == (24.5, 46.9, 83.3)
    assert percent(scores['evil']['all']) == (23.0, 45.3, 77.2)
    assert percent(scores['nlxgpt']['correct']) == (28.5, 51.5, 110.6)
    page = (tmp_path / 'report.html').read_text(encoding='utf-8')
    assert all(f'right answers only, {protocol}' in page for protocol in ('nlxgpt', 'nlxgpt_any', 'evil'))


def test_explanations_alone(shared, tmp_path):
    """NLX-GPT's other file and references without questions: no answers, so no S_T, and nothing over right answers."""
    config = released(shared, 'exp', 'scr_test_exp_anno.json', protocols='nlxgpt,evil')
    evaluate.run(config, tmp_path)
    scores = document(tmp_path)
    assert percent(scores['nlxgpt']['all']) == (25.6, 48.7, 97.2)
    # Neither file says what kind of answers there are; the data set does: all references count.
    assert percent(scores['evil']['all']) == (23.0, 45.3, 77.2)
    assert '|nrefs:3|' in scores['evil']['all']['bleu4']['signature']
    for row in (scores['nlxgpt']['all']['s_t'], scores['nlxgpt']['correct']['bleu4']):
        assert row['reason'] == 'predictions have no answer'
    assert (tmp_path / 'report.html').is_file()


def world(n=12):
    examples = [
        Example(f'q{i}', f'im{i // 2}', f'question {i}?', answers={'yes': 1.0, 'no': 0.3}, explanations=[WORDS[i % 4]])
        for i in range(n)
    ]
    return examples, [Prediction(e.id, 'yes', explanation=e.explanations[0]) for e in examples]


@pytest.fixture
def files(tmp_path):
    examples, predictions = world()
    records.write_jsonl(tmp_path / 'references.jsonl', examples)
    records.write_jsonl(tmp_path / 'good.jsonl', predictions)
    for i, p in enumerate(predictions):
        p.explanation = WORDS[(i + i % 3) % 4]
        p.answer = 'no' if i % 4 == 3 else 'yes'
    records.write_jsonl(tmp_path / 'bad.jsonl', predictions)
    return tmp_path


def test_several_systems_in_one_report(files):
    config = configured(
        systems=(f'good={files}/good.jsonl', f'bad=jsonl:{files}/bad.jsonl', f'bad={files}/bad.jsonl'),
        references=f'{files}/references.jsonl',
        bootstrap=50,
        trials=100,
    )
    numbers = evaluate.run(config, files / 'out')
    assert numbers['s_t'] == 1.0, 'of the first system'
    protocols = {p['name']: p['rows'] for p in document(files / 'out', 'comparison.json')['protocols']}
    assert list(protocols) == ['evil', 'coco']
    rows = {(r['system'], r['metric']): r for r in protocols['coco'] if r['subset'] == 'main'}
    assert rows['good', 's_t']['delta'] is None and rows['bad', 's_t']['value'] == pytest.approx(1 - 0.7 / 4)
    assert rows['bad', 's_t']['runs'] == 2 and rows['bad', 's_t']['sd'] == 0
    assert rows['bad', 'rouge_l']['p_bootstrap'] < 0.1 and rows['bad', 'rouge_l']['delta'] < 0
    page = (files / 'out/report.html').read_text(encoding='utf-8')
    assert 'id="comparison"' in page and 'published, protocol' in page and 'RAPPER' in page
    for suffix in ('csv', 'tex', 'md'):
        text = (files / f'out/leaderboard.{suffix}').read_text(encoding='utf-8')
        assert 'good' in text and 'bad' in text


@pytest.mark.parametrize('systems,message', [
    (('good',), "evaluate.systems has 'good', wanted 'label=path' or 'label=format:path'"),
    (('a=nowhere.jsonl',), r'nowhere\.jsonl: there is no such file'),
])  # fmt: skip
def test_wrong_systems(files, systems, message):
    with pytest.raises(ValueError, match=message):
        evaluate.run(configured(systems=systems, references=f'{files}/references.jsonl'), files / 'out')
    assert not (files / 'out').exists()


def test_ids_that_do_not_agree_are_refused_unless_allowed(files):
    lines = (files / 'good.jsonl').read_text().splitlines()
    (files / 'odd.jsonl').write_text('\n'.join([*lines[1:], lines[1], lines[2].replace('q2', 'zz')]) + '\n')
    config = configured(predictions=f'{files}/odd.jsonl', references=f'{files}/references.jsonl')
    with pytest.raises(
        ValueError, match=r"odd\.jsonl: .*'q1'.*no prediction for 1 id: 'q0'; no example for 1 id: 'zz'"
    ):
        evaluate.run(config, files / 'out')
    for allow, message in (
        ('missing,extra', "'q1'"),
        ('missng', "evaluate.allow has 'missng'. Did you mean 'missing'"),
    ):
        config.evaluate.allow = allow
        with pytest.raises(ValueError, match=message):
            evaluate.run(config, files / 'out')
    config.evaluate.allow = 'duplicates,missing,extra'
    evaluate.run(config, files / 'out')
    row = document(files / 'out')['evil']['all']['s_t']
    assert row['n'] == 11 and '|left_out:duplicates=1,missing=1,extra=1' in row['signature']
    assert '|scored:11/12|ids:' in row['signature']


def test_what_another_system_lacks_is_in_every_signature(files):
    lines = (files / 'bad.jsonl').read_text().splitlines(keepends=True)
    (files / 'short.jsonl').write_text(''.join(lines[:7]))
    config = configured(
        predictions=f'{files}/good.jsonl',
        systems=(f'short={files}/short.jsonl',),
        references=f'{files}/references.jsonl',
        allow='missing',
    )
    evaluate.run(config, files / 'out')
    row = document(files / 'out')['evil']['correct']['bleu4']
    assert row['n'] <= 7 and '|scored:7/12|ids:' in row['signature'] and 'left_out' not in row['signature']
    (evil, _) = document(files / 'out', 'comparison.json')['protocols']
    hashes = {
        system: records.file_hash(files / name) for system, name in (('out', 'good.jsonl'), ('short', 'short.jsonl'))
    }
    for system, digest in hashes.items():
        signature = evil['signatures'][system]['bleu4']
        assert f'|predictions:{digest}' in signature and ('|left_out:missing=5' in signature) == (system == 'short')


def test_the_runs_own_predictions_stay_first(files):
    (files / 'good.jsonl').rename(files / 'predictions.jsonl')
    config = configured(systems=(f'theirs=jsonl:{files}/bad.jsonl',), references=f'{files}/references.jsonl')
    config.evaluate.predictions_format = 'coco'  # of the others: what decode wrote is JSON lines
    assert evaluate.run(config, files)['s_t'] == 1.0
    rows = document(files, 'comparison.json')['protocols'][0]['rows']
    assert list(dict.fromkeys(row['system'] for row in rows)) == [files.name, 'theirs']


def test_a_file_with_some_answers_is_named(files):
    lines = (files / 'good.jsonl').read_text().splitlines(keepends=True)
    (files / 'some.jsonl').write_text(''.join([lines[0].replace('"yes"', 'null', 1), *lines[1:]]))
    config = configured(predictions=f'{files}/some.jsonl', references=f'{files}/references.jsonl')
    with pytest.raises(ValueError, match=r"some\.jsonl: 1 of 12 predictions have no answer: 1 id: 'q0'"):
        evaluate.run(config, files / 'out')


def test_answers_outside_a_closed_set_may_count_as_wrong(tmp_path):
    records.write_jsonl(tmp_path / 'r.jsonl', [Example(i, i, 't', label='neutral', explanations=['a']) for i in 'ab'])
    records.write_jsonl(
        tmp_path / 'p.jsonl', [Prediction('a', 'neutral', explanation='a'), Prediction('b', 'who knows')]
    )
    config = configured(predictions=f'{tmp_path}/p.jsonl', references=f'{tmp_path}/r.jsonl')
    with pytest.raises(ValueError, match=r"'who knows', wanted one of .* \(evaluate.allow=answers"):
        evaluate.run(config, tmp_path / 'out')
    config.evaluate.allow = 'answers'
    assert evaluate.run(config, tmp_path / 'out')['s_t'] == 0.5


@pytest.mark.parametrize('texts', [
    [('', 'a dog')], [('dog', 'dog')], [('a\nb', 'a ||| b')], [('naïve café 犬 🐶', 'naïve café 犬')],
    [('dog', 'dog')] * 3, [('', ''), ('', '')],
], ids=['empty', 'one word', 'newline', 'non-ASCII', 'one-word vocabulary', 'all empty'])  # fmt: skip
def test_odd_texts_have_defined_scores(tmp_path, texts):
    folder = tmp_path / 'a folder, with blanks'
    folder.mkdir()
    examples = [Example(str(i), str(i), 't', label='yes', explanations=[r]) for i, (_, r) in enumerate(texts)]
    records.write_jsonl(folder / 'r.jsonl', examples)
    records.write_jsonl(
        folder / 'p.jsonl', [Prediction(str(i), 'yes', explanation=p) for i, (p, _) in enumerate(texts)]
    )
    config = configured(
        predictions=f'{folder}/p.jsonl', references=f'{folder}/r.jsonl', bootstrap=10, ptb='auto',
        metrics=(*CHEAP, 'meteor', 'chrf'), protocols='evil,coco,nlxgpt',
    )  # fmt: skip
    evaluate.run(config, folder / 'out')
    scores = document(folder / 'out')
    for protocol in ('evil', 'coco', 'nlxgpt'):
        for name in ('bleu1', 'rouge_l', 'cider', 'meteor', 'chrf'):
            row = scores[protocol]['all'][name]
            if any(p for p, _ in texts):
                assert row['value'] is not None and 0 <= row['value'] <= 10, (protocol, name)
            else:
                assert row['reason'] == 'no prediction has an explanation'


def test_what_can_run_here_is_told_without_scoring(tmp_path, capsys):
    (tmp_path / 'evaluate.json').write_text('{"s_t": 0.5}')
    keys = {'check': True, 'corenlp': tmp_path, 'metrics': ('bleu', 'spice', 'bertscore', 'bleurt')}
    arguments = [f'--config.evaluate.{key}={value}' for key, value in keys.items()]
    command = [sys.executable, '-m', 'evil_jax.main', '--mode=evaluate', '--config=score:vqax', f'--workdir={tmp_path}']
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = ' '.join(done.stdout.split())
    assert 'stanford-corenlp-3.6.0' in shown and 'evaluate.bertscore.encoder' in shown and 'evaluate.bleurt' in shown
    assert [p.name for p in tmp_path.iterdir()] == ['evaluate.json'], 'nothing was written'
    assert (tmp_path / 'evaluate.json').read_text() == '{"s_t": 0.5}'


def test_metrics_against_people(shared, tmp_path, capsys):
    data = shared / 'data/human_eval'
    config = configured(
        ratings=f'{data}/ofax_large_esnlive.csv,{data}/ofax_large_vqax.csv', ratings_format='ofax', protocols='coco'
    )
    numbers = evaluate.run(config, tmp_path)
    part = document(tmp_path, 'correlation.json')
    rows = {(r['metric'], r['dataset']): r for r in part['correlation']}
    assert {d for _, d in rows} >= {'all'} and len({d for _, d in rows}) == 3
    assert numbers['rho_rouge_l'] == rows['rouge_l', 'all']['rho']
    assert "Spearman's rho with human ratings" in capsys.readouterr().out
    # Ratings of a system under evaluation, without texts.
    examples, predictions = world()
    records.write_jsonl(tmp_path / 'r.jsonl', examples)
    for i, p in enumerate(predictions):
        p.explanation = WORDS[(i + i % 3) % 4]
    records.write_jsonl(tmp_path / 'p.jsonl', predictions)
    rated = [f'{p.id},{"yes" if i % 3 == 0 else "weak_no" if i % 3 == 1 else "no"}' for i, p in enumerate(predictions)]
    (tmp_path / 'ratings.csv').write_text('\n'.join(['id,rating', *rated]) + '\n')
    config = configured(
        predictions=f'{tmp_path}/p.jsonl', references=f'{tmp_path}/r.jsonl', ratings=f'{tmp_path}/ratings.csv'
    )
    evaluate.run(config, tmp_path / 'own')
    rows = {r['metric']: r for r in document(tmp_path / 'own', 'correlation.json')['correlation']}
    assert rows['rouge_l']['n'] == 12 and rows['rouge_l']['rho'] > 0.6


def test_protocols_are_checked_before_anything_is_read(tmp_path):
    for value, message in (
        ('evl', "the protocol is 'evl'. Did you mean 'evil'"),
        ('coco,coco', 'wanted different names'),
    ):
        config = configured(protocols=value)
        with pytest.raises(ValueError, match=message):
            evaluate.check_files(config, tmp_path, [])
    assert _scoring.protocols(configured(protocols='nlxgpt, evil')) == ['nlxgpt', 'evil']
    original = configured()
    assert _scoring.protocols(original) == ['evil', 'coco']
    original.compat = 'original'
    assert _scoring.protocols(original) == ['evil']
    original.evaluate.protocols = 'coco'
    assert _scoring.protocols(original) == ['coco'], 'who names one gets it'


def test_a_whole_newcomer_needs_ids_and_texts_only(tmp_path):
    (tmp_path / 'p.jsonl').write_text('{"id": "1", "answer": null, "explanation": "a dog"}\n')
    (tmp_path / 'r.jsonl').write_text('{"id": "1", "explanations": ["a dog"]}\n')
    config = configured(predictions=f'{tmp_path}/p.jsonl', references=f'{tmp_path}/r.jsonl', bootstrap=20)
    evaluate.run(config, tmp_path / 'out')
    scores = document(tmp_path / 'out')['evil']['all']
    assert scores['rouge_l']['value'] == 1 and scores['s_t']['reason'] == 'predictions have no answer'
    shutil.rmtree(tmp_path / 'out')


@pytest.fixture
def ratings(files):
    """Ratings of the system 'bad' by likeness: each wanted by a test of its own."""
    predictions = records.read_jsonl(files / 'bad.jsonl', Prediction)
    examples = {e.id: e for e in records.read_jsonl(files / 'references.jsonl', Example)}
    said = {p.id: 'yes' if p.explanation == examples[p.id].explanations[0] else 'no' for p in predictions}

    def write(system='bad', more=()):
        rows = [f'{i},{system},{word}' for i, word in said.items()]
        (files / 'ratings.csv').write_text('\n'.join(['id,system,rating', *rows, *more]) + '\n')
        return str(files / 'ratings.csv')

    return write


@pytest.mark.parametrize('order', [('bad', 'good'), ('good', 'bad')])
def test_ratings_are_of_the_system_that_they_name(files, ratings, order):
    systems = tuple(f'{name}={files}/{name}.jsonl' for name in order)
    config = configured(systems=systems, references=f'{files}/references.jsonl', ratings=ratings(), metrics=('rouge',))
    evaluate.run(config, files / 'out')
    (row,) = document(files / 'out', 'correlation.json')['correlation']
    assert row['n'] == 12 and row['rho'] == pytest.approx(0.75**0.5), 'of `good` all explanations are alike'


def test_ratings_of_something_else_are_told_before_anything_is_scored(files, ratings):
    both = dict(systems=(f'a={files}/good.jsonl', f'b={files}/bad.jsonl'), references=f'{files}/references.jsonl')
    for system, message in (
        ('c', "the ratings are of 'c', and the systems under evaluation are 'a', 'b'"),
        ('', 'a system that no column names'),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate.run(configured(**both, ratings=ratings(system)), files / 'out')
    twice = dict(both, systems=(f'a={files}/good.jsonl', f'a={files}/bad.jsonl', f'b={files}/bad.jsonl'))
    with pytest.raises(ValueError, match="'a' has several runs"):
        evaluate.run(configured(**twice, ratings=ratings('a')), files / 'out')
    (files / 'ratings.csv').write_text('id,rating\n')
    with pytest.raises(ValueError, match='no ratings in it'):
        evaluate.run(configured(**both, ratings=f'{files}/ratings.csv'), files / 'out')
    assert not (files / 'out').exists()


def test_ratings_of_unknown_examples_are_refused_unless_allowed(files, ratings):
    path = ratings(more=['zz,bad,yes'])
    one = dict(systems=(f'bad={files}/bad.jsonl',), references=f'{files}/references.jsonl', ratings=path)
    with pytest.raises(ValueError, match=r"no prediction of 'bad' for 1 id: 'zz' of 13 rated.*allow extra"):
        evaluate.run(configured(**one), files / 'out')
    evaluate.run(configured(**one, allow='extra'), files / 'out')
    assert {r['n'] for r in document(files / 'out', 'correlation.json')['correlation']} == {12}


def test_tuples_by_id_are_of_one_file_of_predictions(files):
    rows = [{'id': f'q{i}', 'candidate': [['dog']], 'references': [['dog']]} for i in range(12)]
    (files / 'tuples.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows))
    config = configured(
        systems=(f'a={files}/good.jsonl', f'b={files}/bad.jsonl'), references=f'{files}/references.jsonl',
        metrics=('spice',), spice_tuples=f'{files}/tuples.jsonl',
    )  # fmt: skip
    with pytest.raises(ValueError, match=r'tuples\.jsonl: its tuples are by id.*there are several: give them by text'):
        evaluate.run(config, files / 'out')
    config.evaluate.systems = config.evaluate.systems[:1]
    assert evaluate.run(config, files / 'out')['spice'] == 1.0


def test_what_an_earlier_comparison_left_goes(files):
    config = configured(
        systems=(f'a={files}/good.jsonl', f'b={files}/bad.jsonl'), references=f'{files}/references.jsonl'
    )  # fmt: skip
    evaluate.run(config, files / 'out')
    assert (files / 'out/leaderboard.tex').is_file()
    config.data.builder, config.evaluate.systems = 'vqav2', (f'a={files}/good.jsonl',)  # without published numbers
    evaluate.run(config, files / 'out')
    assert sorted(p.name for p in (files / 'out').iterdir()) == ['report.html', 'scores.json']


def test_a_choice_may_be_given_by_its_number_alone(tmp_path):
    choices = ['she smiles', 'she cries', 'she sleeps', 'she runs']
    examples = [Example(i, i, 't', choices=choices, label=1, explanations=['a']) for i in 'ab']
    records.write_jsonl(tmp_path / 'r.jsonl', examples)
    lines = [{'id': i, 'answer': None, 'answer_index': n, 'explanation': 'a'} for i, n in (('a', 1), ('b', 2))]
    (tmp_path / 'p.jsonl').write_text(''.join(json.dumps(line) + '\n' for line in lines))
    config = configured(predictions=f'{tmp_path}/p.jsonl', references=f'{tmp_path}/r.jsonl')
    config.data.update(config_lib.DATA_SETS['vcr'])
    assert evaluate.run(config, tmp_path / 'out')['s_t'] == 0.5


def test_reasons_name_no_folder_of_this_machine(files):
    config = configured(
        predictions=f'{files}/good.jsonl', references=f'{files}/references.jsonl', metrics=('rouge', 'spice')
    )  # fmt: skip
    evaluate.run(config, files / 'out')
    reason = document(files / 'out')['evil']['all']['spice']['reason']
    assert 'CoreNLP' in reason and '/site-packages' not in reason
