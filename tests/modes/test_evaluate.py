import json
import re
import subprocess
import sys

import PIL.Image
import pytest

from evil_jax import config as config_lib
from evil_jax import records
from evil_jax.data.features import RegionReader
from evil_jax.modes import _cards, _scoring, evaluate
from evil_jax.records import Example, Prediction
from evil_jax.tasks import _fields

WORDS = ('the dog runs on grass', 'a man sits on a red chair', 'nothing says who she is', 'two cats sleep in a box')


def entailment(n=12):
    classes = ('contradiction', 'neutral', 'entailment')
    return [
        Example(f'e{i}', f'im{i // 2}', f'hypothesis {i}', label=classes[i % 3], explanations=[WORDS[i % 4]])
        for i in range(n)
    ]


def right(examples):
    return [Prediction(e.id, _fields.gold_answer(e), explanation=(e.explanations or [''])[0]) for e in examples]


@pytest.fixture
def config():
    config = config_lib.base()
    config.evaluate.bootstrap = 20
    config.data.dir = '/nowhere'
    return config


@pytest.fixture
def files(tmp_path, config):
    """Writes predictions and examples to a work folder and scores them."""

    def run(predictions, examples):
        records.write_jsonl(tmp_path / 'predictions.jsonl', predictions)
        records.write_jsonl(tmp_path / 'examples.jsonl', examples)
        config.evaluate.references = str(tmp_path / 'examples.jsonl')
        return evaluate.run(config, tmp_path)

    return run


def scores_of(folder):
    return json.loads((folder / 'scores.json').read_text())


def test_files_alone_are_enough(files, tmp_path, capsys):
    examples = entailment()
    predictions = right(examples)
    predictions[0].answer = predictions[1].answer = predictions[2].answer = 'entailment'  # e2 is one
    numbers = files(predictions, examples)
    assert numbers['s_t'] == pytest.approx(10 / 12) == numbers['accuracy']
    assert numbers['bleu4'] == pytest.approx(1) and numbers['s_e_fast'] > 1
    assert numbers['s_o_fast'] == pytest.approx(numbers['s_t'] * numbers['s_e_fast'])
    assert 's_e_true' not in numbers, 'only the built-in world knows'

    document = scores_of(tmp_path)
    assert document['schema'] == 1
    row = document['evil']['all']['s_t']
    assert set(row) == {'value', 'n', 'signature', 'ci95'} and row['n'] == 12
    assert row['ci95'][0] <= row['value'] <= row['ci95'][1]
    assert f'predictions:{records.file_hash(tmp_path / "predictions.jsonl")}' in row['signature']
    assert document['evil']['class=contradiction']['s_t']['value'] == 0.75
    assert document['evil']['all']['s_e_true']['value'] is None and document['evil']['all']['s_e_true']['reason']
    assert document['majority']['all']['s_t']['value'] is None
    assert 'training split' in document['majority']['all']['s_t']['reason']

    printed = capsys.readouterr().out
    assert '0.833' in printed and 'class=neutral' in printed and str(tmp_path / 'report.html') in printed
    page = (tmp_path / 'report.html').read_text()
    assert '0.833' in page and 'hypothesis 11' in page and 'majority answer' in page


def test_soft_scores_and_choices(files):
    examples = [
        Example('q0', 'i0', 'what?', answers={'cat': 1.0, 'kitten': 0.3}, explanations=['it has ears']),
        Example('q1', 'i1', 'where?', answers={'home': 0.6}, explanations=['there is a sofa']),
    ]
    numbers = files([Prediction('q0', 'kitten', explanation='ears'), Prediction('q1', 'outside')], examples)
    assert numbers['s_t'] == pytest.approx(0.15) and numbers['vqa_soft'] == pytest.approx(0.15)
    examples = [Example(f'c{i}', 'i', 'why?', choices=['a b', 'c d'], label=i) for i in range(2)]
    assert files([Prediction('c0', 'a b'), Prediction('c1', 'a b')], examples)['s_t'] == 0.5


def vcr(n=4):
    """Questions about tagged people; two choices of the first one read the same."""
    choices = ['<|det1|> waves', '<|det1|> waves', '<|det12|> sits', 'nobody']
    objects = ['person'] * 11 + ['dog']
    extra = {'boxes': [[i, i, i + 9, i + 9] for i in range(12)], 'size': [40, 30]}
    why = ['<|det1|> is near <|det12|> .']
    return [
        Example(f'v{i}', f'm{i}', 'why is <|det2|> here?', choices=choices, label=i, objects=objects, extra=extra,
                explanations=why)
        for i in range(n)
    ]  # fmt: skip


def chosen(examples, index):
    return [
        Prediction(e.id, e.choices[index(e)], answer_index=index(e), explanation='1 is near 12 .') for e in examples
    ]


def test_repeated_choices_are_told_apart_by_their_index(files, tmp_path):
    examples = vcr()
    assert files(chosen(examples, lambda e: e.label), examples)['s_t'] == 1
    assert files(chosen(examples, lambda e: 1 if e.label == 0 else 0), examples)['s_t'] == 0
    # Without an index the words decide: here they name two choices.
    predictions = [Prediction(e.id, '<|det1|> waves') for e in examples]
    assert files(predictions, examples)['s_t'] == 0.5
    predictions = chosen(examples, lambda e: e.label)
    for index, message in ((2, "choice 2, its answer_index, is '<|det12|> sits'"), (9, 'answer_index is 9')):
        predictions[0].answer_index = index
        with pytest.raises(ValueError, match=r"predictions\.jsonl: 'v0': .*" + message.replace('|', r'\|')):
            files(predictions, examples)


def test_choices_and_tags_read_well_in_the_report(files, tmp_path):
    examples = vcr()
    numbers = files(chosen(examples, lambda e: 3), examples)
    assert numbers['s_t'] == 0.25 and numbers['bleu4'] == pytest.approx(1)
    assert '|det:all|' in scores_of(tmp_path)['evil']['correct']['bleu4']['signature']
    page = (tmp_path / 'report.html').read_text()
    assert '>majority position<' in page and '>majority answer<' not in page
    assert '[person 1] is near [dog 12]' in page and 'why is [person 2] here?' in page
    assert 'det12' not in page.replace('\\u003c|det', '')
    data = json.loads(page.split('id="data">')[1].split('</script>')[0])
    row = next(r for r in data['examples'] if r['id'] == 'v2')
    assert row['choices'][2] == {'text': '[dog 12] sits', 'gold': True, 'predicted': False}
    assert row['choices'][3] == {'text': 'nobody', 'gold': False, 'predicted': True}
    assert row['classes'][11] == 'dog 12' and row['size'] == [40, 30] and len(row['boxes']) == 12


def test_majority_of_choices_is_a_position(config):
    examples = vcr()
    examples[3].choices = examples[3].choices[:2]
    examples[3].label = 1
    training = [Example(f't{i}', 'i', '', choices=list('abcd'), label=label) for i, label in enumerate([2, 0, 2])]
    task = _fields.FieldTask(examples)
    like = _scoring.score_predictions(right(examples), examples, task, config)
    scores, which = evaluate.majority_scores(training, examples, task, config, like)
    assert scores['all']['s_t'].per_example == {'v0': 0, 'v1': 0, 'v2': 1, 'v3': 1}
    assert which == 'always choice 3 (most often right in training)'
    scores, _ = evaluate.majority_scores([], examples, task, config, like)
    assert scores['all']['s_t'].value is None


def soft_world():
    examples = [
        Example(f'q{i}', f'i{i}', 'what?', answers={'cat': 1.0, 'kitten': 0.3}, explanations=[f'{w}.'])
        for i, w in enumerate(WORDS)
    ]
    return [
        Prediction(e.id, 'kitten' if e.id == 'q0' else 'cat', explanation=w) for e, w in zip(examples, WORDS)
    ], examples


@pytest.mark.parametrize('quirks,rule,n,words', [
    ('fixed', 'top', 3, True), ('original', '', 4, False), ('14', 'nonzero', 4, True), ('17', '', 3, False),
])  # fmt: skip
def test_quirk_14_and_quirk_17_in_scores_json(files, tmp_path, config, quirks, rule, n, words):
    config.compat = quirks
    files(*soft_world())
    document = scores_of(tmp_path)
    assert list(document) == ['schema', 'evil', *(['coco'] if words else []), 'majority']
    row = document['evil']['correct']['bleu4']
    # The protocol `evil` is the published one, whatever quirks were asked for.
    assert '|correct:nonzero|' in row['signature'] and row['n'] == 4 and '|tok:none(blanks)|' in row['signature']
    assert document['evil']['all']['accuracy']['value'] == 1
    page = (tmp_path / 'report.html').read_text()
    assert ('right answers only, coco' in page) == words
    if words:
        assert row['value'] < 0.9
        row = document['coco']['correct']['bleu4']
        assert row['value'] == pytest.approx(1) and row['n'] == n
        assert '|tok:ptb' in row['signature'] and f'|correct:{rule}|' in row['signature']
        assert document['coco']['all']['accuracy']['value'] == n / 4
        assert {'s_t', 's_e_fast', 's_o_fast', 'chrf'} <= document['coco']['all'].keys()


@pytest.mark.parametrize('quirks,value', [('fixed', 1.0), ('12', 0.8)])
def test_quirk_12_tags_of_references(files, tmp_path, config, quirks, value):
    config.compat = quirks
    examples = vcr()
    files(chosen(examples, lambda e: e.label), examples)
    row = scores_of(tmp_path)['evil']['all']['bleu1']
    assert row['value'] == pytest.approx(value) and f'|det:{"all" if value == 1 else "0-9"}|' in row['signature']


def test_scores_on_words_of_other_systems_stand_beside(files, tmp_path, config, capsys):
    files(*soft_world())
    (tmp_path / 'scores.json').rename(tmp_path / 'other.json')
    config.evaluate.compare = (f'other={tmp_path}/other.json',)
    capsys.readouterr()
    files(*soft_world())
    table = [[cell.strip(' │┃') for cell in re.split('[│┃]', line)] for line in capsys.readouterr().out.splitlines()]
    # Own under evil and coco, the other under evil and coco; the majority has nothing to show.
    cells = next(row for row in table if row[1:2] == ['bleu4'])[2:6]
    assert cells[1].startswith('1.000') and cells[3] == cells[1] and cells[2] == cells[0]
    # A file of the published way has none.
    document = scores_of(tmp_path)
    del document['coco']
    (tmp_path / 'other.json').write_text(json.dumps(document))
    files(*soft_world())
    document['coco'] = {'all': 1}
    (tmp_path / 'other.json').write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"other\.json: wanted .* under 'coco'"):
        files(*soft_world())


def test_no_explanations_leave_a_reason(files, tmp_path):
    files([Prediction(e.id, 'neutral') for e in entailment()], entailment())
    row = scores_of(tmp_path)['evil']['all']['s_e_fast']
    assert row['value'] is None and 'no prediction has an explanation' in row['reason']


def test_other_systems_stand_beside(files, tmp_path, config, capsys):
    files(right(entailment()), entailment())
    (tmp_path / 'scores.json').rename(tmp_path / 'other.json')
    config.evaluate.compare = (f'text [only]={tmp_path}/other.json',)
    predictions = right(entailment())
    for p in predictions[:6]:
        p.answer = 'neutral'
    files(predictions, entailment())
    assert 'text [only]' in capsys.readouterr().out
    page = (tmp_path / 'report.html').read_text()
    assert 'text [only]' in page and '0.667' in page and '1.000' in page


@pytest.mark.parametrize('change,message', [
    (lambda p: p[:-2], r"predictions\.jsonl: no prediction for 2 ids: 'e10', 'e11'"),
    (lambda p: p + [Prediction('other', 'neutral')], r"predictions\.jsonl: no example for 1 id: 'other'"),
    (lambda p: p + p[:1], r"predictions\.jsonl: 1 prediction repeats 1 id: 'e0'"),
    (lambda p: [Prediction('e0', 'maybe'), *p[1:]], r"predictions\.jsonl: the answer of 'e0' is 'maybe', wanted"),
    (lambda p: [], r'predictions\.jsonl: holds no predictions'),
])  # fmt: skip
def test_wrong_predictions_are_told_and_nothing_is_written(files, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        files(change(right(entailment())), entailment())
    assert sorted(p.name for p in tmp_path.iterdir()) == ['examples.jsonl', 'predictions.jsonl']


@pytest.mark.parametrize('line,message', [
    ('{"id": "e0", "answer": ', r'predictions\.jsonl:2: '),
    ('{"id": "e0"}', r"predictions\.jsonl:2: missing field 'answer'"),
    ('{"id": "e0", "answer": "x", "expl": ""}', r"predictions\.jsonl:2: unknown field 'expl'"),
    ('[1]', r'predictions\.jsonl:2 is \[1\], wanted object'),
])  # fmt: skip
def test_wrong_lines_are_told(tmp_path, config, line, message):
    records.write_jsonl(tmp_path / 'examples.jsonl', entailment())
    (tmp_path / 'predictions.jsonl').write_text('{"id": "e1", "answer": "neutral"}\n' + line + '\n')
    config.evaluate.references = str(tmp_path / 'examples.jsonl')
    with pytest.raises(ValueError, match=message):
        evaluate.run(config, tmp_path)


@pytest.mark.parametrize('example,message', [
    (Example('e0', 'i', 't', label=1), "example 'e0' has label 1 and no choices"),
    (Example('e0', 'i', 't', label=2, choices=['neutral']), "example 'e0' has label 2 and 1 choices"),
])  # fmt: skip
def test_examples_that_cannot_be_judged(files, example, message):
    with pytest.raises(ValueError, match=message):
        files([Prediction('e0', 'neutral')], [example])


def test_missing_files(tmp_path, config):
    with pytest.raises(ValueError, match=r'predictions\.jsonl: there is no such file; run --mode=decode first'):
        evaluate.run(config, tmp_path)


@pytest.mark.parametrize('entry,content,message', [
    ('nolabel', None, "evaluate.compare has 'nolabel', wanted 'label=path"),
    ('x={}', None, 'there is no such file'),
    ('x={}', '{', 'not JSON'),
    ('x={}', '{"schema": 2, "evil": {}}', "wanted an object with 'schema': 1"),
    ('x={}', '{"schema": 1, "evil": {"all": {"s_t": {"value": "high"}}}}', 'number or null'),
])  # fmt: skip
def test_wrong_other_scores_are_told_before_any_work(tmp_path, config, entry, content, message):
    path = tmp_path / 'scores.json'
    if content is not None:
        path.write_text(content)
    config.evaluate.compare = (entry.format(path),)
    with pytest.raises(ValueError, match=message):
        evaluate.run(config, tmp_path)


def test_majority_is_the_most_frequent_training_answer(config):
    examples = entailment()
    training = [Example(f't{i}', 'i', '', label=label) for i, label in enumerate(['neutral', 'entailment', 'neutral'])]
    task = _fields.FieldTask(examples)
    like = _scoring.score_predictions(right(examples), examples, task, config)
    scores, which = evaluate.majority_scores(training, examples, task, config, like)
    scores = scores['all']
    assert which == 'most frequent training answer'
    assert scores['s_t'].value == pytest.approx(1 / 3) and scores['s_t'].ci95
    assert scores['s_e_fast'].value is None and 'without explanations' in scores['s_e_fast'].reason
    soft = [Example('s', 'i', '', answers={'cat': 0.3, 'dog': 1.0})]
    assert _fields.gold_answer(soft[0]) == 'dog'
    nothing = evaluate.majority_scores([Example('n', 'i', '')], examples, task, config, like)[0]['all']
    assert 'no gold answers' in nothing['s_t'].reason


def test_scoring_while_training_needs_no_intervals(config):
    examples = entailment()
    scores = _scoring.score_predictions(right(examples), examples, _fields.FieldTask(examples), config)
    assert scores['all']['s_t'].ci95 is None
    assert evaluate.main_scores(scores)['s_t'] == 1.0


def test_pictures_and_curves_reach_the_report(files, tmp_path, config):
    (tmp_path / 'images').mkdir()
    for i in range(3):
        PIL.Image.new('RGB', (32, 24), 'red').save(tmp_path / 'images' / f'im{i}.png')
    config.data.images = str(tmp_path / 'images')
    config.evaluate.report_examples = 12
    (tmp_path / 'metrics.jsonl').write_text('{"step": 1, "split": "train", "loss": 2.5}\n')
    meta = {'schema': 1, 'examples': 12, 'checkpoint': {'step': 7, 'sha256': 'abc'}, 'config': {'secret': 1}}
    (tmp_path / 'predictions.meta.json').write_text(json.dumps(meta))
    files(right(entailment()), entailment())
    page = (tmp_path / 'report.html').read_text()
    assert page.count('data:image/webp') == 3 and 'train loss' in page
    assert 'step 7, sha256 abc' in page and 'examples.jsonl' in page and 'secret' not in page
    config.evaluate.report_examples = 5
    files(right(entailment()), entailment())
    assert '5 of the 12 scored examples' in (tmp_path / 'report.html').read_text()
    (tmp_path / 'metrics.jsonl').write_text('{"step": 1}\nnonsense\n')
    with pytest.raises(ValueError, match=r'metrics\.jsonl:2: not JSON'):
        files(right(entailment()), entailment())


def test_an_ambiguous_picture_costs_its_card_only(files, tmp_path, config):
    (tmp_path / 'images').mkdir()
    for part in ('train', 'val'):
        PIL.Image.new('RGB', (8, 8)).save(tmp_path / 'images' / f'COCO_{part}2014_000000000007.png')
    config.data.images = str(tmp_path / 'images')
    examples = entailment()
    examples[0].image_id = '7'
    files(right(examples), examples)
    page = (tmp_path / 'report.html').read_text()
    assert "'7' could be COCO_train2014_000000000007.png or COCO_val2014_000000000007.png" in page
    assert page.count('no picture file for this example') == 11


def test_a_picture_whose_regions_are_ambiguous_has_no_boxes():
    class Reader(RegionReader):
        path, _index = 'a.tsv', {'COCO_train2014_000000000007': 0, 'COCO_val2014_000000000007': 1}

        def _read(self, image_id, position):
            return image_id

    assert _cards.find(Reader(), '7') is None and _cards.find(Reader(), '8') is None
    assert _cards.find(Reader(), 'COCO_val2014_7') == 'COCO_val2014_000000000007'


def test_groups_are_printed_with_counts_and_their_average(files, tmp_path, capsys):
    examples = entailment(12) + [Example('more', 'im', 'h', label='neutral', explanations=[WORDS[0]])]
    predictions = right(examples)
    predictions[0].answer = 'neutral'  # of four contradictions
    files(predictions, examples)
    rows = [line.split('│')[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith('│')]
    rows = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in rows if len(cells) == 6}
    assert rows['class=contradiction'][:3] == ['4', '3', '0.750'] and rows['class=contradiction'][3].startswith('0.750')
    assert rows['all'][:3] == ['13', '12', '0.923']
    assert rows['macro'][:4] == ['', '', '0.917', '0.917'], 'the average of the classes, not of the examples'
    assert 'average of the groups' in (tmp_path / 'report.html').read_text()


def test_files_to_compare_with_are_checked_before_the_run(tmp_path, config):
    config.evaluate.compare = (f'own={tmp_path}/scores.json',)
    with pytest.raises(ValueError, match='there is no such file'):
        evaluate.check_files(config, tmp_path, ['build', 'train', 'decode'])
    evaluate.check_files(config, tmp_path, ['decode', 'evaluate'])
    config.evaluate.compare = (f'other={tmp_path}/other/scores.json',)
    with pytest.raises(ValueError, match='there is no such file'):
        evaluate.check_files(config, tmp_path, ['decode', 'evaluate'])


def test_report_can_be_left_out(files, tmp_path, config):
    config.evaluate.report = False
    files(right(entailment()), entailment())
    assert not (tmp_path / 'report.html').exists()


def test_jax_is_never_imported(tmp_path):
    records.write_jsonl(tmp_path / 'predictions.jsonl', right(entailment()))
    records.write_jsonl(tmp_path / 'examples.jsonl', entailment())
    program = (
        'import sys\n'
        'for name in ("jax", "jaxlib", "flax"): sys.modules[name] = None\n'
        'from evil_jax import config\n'
        'from evil_jax.modes import evaluate\n'
        'c = config.base()\n'
        f'c.evaluate.references = {str(tmp_path / "examples.jsonl")!r}\n'
        f'print(evaluate.run(c, {str(tmp_path)!r})["s_t"])\n'
        'assert not {"tensorflow", "torch", "grain", "orbax"} & sys.modules.keys()\n'
    )
    result = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == '1.0'


def test_the_built_world_is_scored_with_its_baseline_pictures_and_truth(tmp_path):
    """Through the real build, small: gold predictions are right and their explanations true."""
    from evil_jax.data import load
    from evil_jax.modes import build

    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS['shapes_ve'])
    config.data.update(dir=str(tmp_path / 'data'), world_train=30, world_dev=12, world_test=12)
    config.evaluate.bootstrap = 20
    workdir = tmp_path / 'run'
    build.run(config, workdir)
    examples = list(load.load_examples(config, 'test'))
    records.write_jsonl(workdir / 'predictions.jsonl', right(examples))
    numbers = evaluate.run(config, workdir)
    assert numbers['s_t'] == 1 and numbers['s_e_true'] == 1 and numbers['s_o_true'] == 1
    majority = scores_of(workdir)['majority']['all']
    assert 0.1 < majority['s_t']['value'] < 0.7 and majority['s_e_true']['value'] is None
    mark = f'|labels:gold|predictions:{records.file_hash(workdir / "predictions.jsonl")}'
    assert scores_of(workdir)['evil']['all']['s_t']['signature'].endswith(mark)
    assert '|labels:gold|predictions:' in majority['s_t']['signature']
    page = (workdir / 'report.html').read_text()
    assert 'data:image/webp' in page and '"boxes":[[' in page and '"true":true' in page
    assert any(f'"{name}"' in page for name in ('red circle', 'crate', 'blue square', 'pink star', 'green circle'))

    swapped = right(examples)
    for prediction in swapped:
        prediction.explanation = 'the moon is made of cheese'
    records.write_jsonl(workdir / 'predictions.jsonl', swapped)
    assert evaluate.run(config, workdir)['s_e_true'] == 0

    config.decode.limit = 6
    records.write_jsonl(workdir / 'predictions.jsonl', right(examples[:6]))
    evaluate.run(config, workdir)
    assert scores_of(workdir)['evil']['all']['s_t']['n'] == 6
