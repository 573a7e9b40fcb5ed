"""Mode construct on sources of the built-in world, with an NLI model that never errs in place of a trained one."""

import csv
import json

import pytest
from PIL import Image

from evil_jax import config as config_lib
from evil_jax.construction import pairs
from evil_jax.data import shapes
from evil_jax.data.sources import esnlive
from evil_jax.modes import _nli_scores, construct


class Oracle:
    """Scores by the world's grammar, and counts what it is asked, all as if cut; dies when `left` are scored."""

    digest, stated = 'oracle', pairs.CLASSES

    def __init__(self, classes=pairs.CLASSES, left=10**9):
        self.classes, self.left, self.asked, self.truncated = classes, left, 0, 0
        self.signature = {'model': 'oracle', 'weights': '0'}

    def __call__(self, text_pairs):
        if (left := self.left - self.asked) < len(text_pairs):
            raise KeyboardInterrupt(f'{left} left')
        self.asked += len(text_pairs)
        self.truncated += len(text_pairs)
        return shapes.oracle(text_pairs, self.classes)


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp('sources')
    shapes.write_sources(folder, {'train': 240, 'dev': 60, 'test': 60}, seed=3)
    return folder


@pytest.fixture
def run(sources, tmp_path, monkeypatch):
    """run(model, folder='work', **settings of construct) -> numbers of the mode."""

    def call(model=None, folder='work', **settings):
        config = config_lib.base()
        names = lambda pattern: ','.join(map(str, sorted(sources.glob(pattern))))
        config.construct.update(
            pairs=names('snli_1.0_*.jsonl'), explanations=names('esnli_*.csv'),
            captions=f'{sources}/results_20130124.token',
            splits=f'trainval={sources}/flickr30k_train_val.lst,test={sources}/flickr30k_test.lst',
            dev_images=shapes.dev_images(sources),
        )  # fmt: skip
        config.data.images = str(tmp_path / 'pictures')
        config.construct.update_from_flattened_dict({key.replace('__', '.'): value for key, value in settings.items()})
        if model:
            monkeypatch.setattr(_nli_scores, 'open_model', lambda config: model)
        return construct.run(config, tmp_path / folder)

    (tmp_path / 'pictures').mkdir()
    return call


def files(folder):
    """What a construction leaves that depends neither on time nor on where it was made."""
    data = folder / 'construct/esnlive'
    return {path.name: path.read_bytes() for path in (*data.iterdir(), folder / 'construct/curves.csv')}


def kept(folder, split):
    return {example.id: example for example in esnlive.read(folder / f'construct/esnlive/esnlive_{split}.csv')}


def removed(folder):
    lines = (folder / 'construct/esnlive/removed.jsonl').read_text(encoding='utf-8').splitlines()
    return {row['id']: row for row in map(json.loads, lines)}


def test_every_pair_is_kept_or_removed_and_a_changed_threshold_asks_nothing(run, sources, tmp_path, capsys):
    truth = {row['id']: row for row in map(json.loads, (sources / 'truth.jsonl').read_text().splitlines())}
    numbers = run(first := Oracle())
    work = tmp_path / 'work'
    stays = {split: kept(work, split) for split in pairs.SPLITS}
    gone = removed(work)
    assert {k: s for s, some in stays.items() for k in some} | {k: r['split'] for k, r in gone.items()} == {
        key: row['split'] for key, row in truth.items()
    }
    assert numbers['train merged'] == 240 and numbers['train kept'] == len(stays['train'])
    planted = {key for key, row in truth.items() if row['false_neutral'] and row['split'] == 'train'}
    assert {key for key, row in gone.items() if 'false_neutral' in row['removing']} == planted
    statistics = json.loads((work / 'construct/statistics.json').read_text())
    assert statistics['table1']['train']['instances'] == len(stays['train'])
    assert statistics['nli']['texts'] == 5 * 360
    assert statistics['nli']['truncated'] == statistics['nli']['scored'] < first.asked  # to know its speed asks again
    assert '# Datasheet: e-SNLI-VE from its sources' in (work / 'construct/DATASHEET.md').read_text()
    assert 'Removed ' in (work / 'construct/report.html').read_text()
    assert 'captions with hypotheses, 0 are known from before' in capsys.readouterr().out

    again = run(second := Oracle(), false_neutral__threshold=6.0)
    told = capsys.readouterr().out
    assert 'merged before' in told and 'all are known from before' in told
    assert second.asked == 0
    assert again['train false_neutral'] == 0 < numbers['train false_neutral']


def test_an_interrupted_run_goes_on_where_it_was(run, tmp_path):
    whole = Oracle()
    run(whole, 'whole')
    with pytest.raises(KeyboardInterrupt):
        run(Oracle(left=1_500), 'broken', nli__cache=str(tmp_path / 'cache.sqlite'))
    assert not (tmp_path / 'broken/construct/esnlive').exists()
    run(rest := Oracle(), 'broken', nli__cache=str(tmp_path / 'cache.sqlite'))
    assert rest.asked < whole.asked
    assert files(tmp_path / 'broken') == files(tmp_path / 'whole')


def test_a_wrong_order_of_labels_is_found_before_the_work(run, tmp_path):
    model = Oracle(classes=('entailment', 'neutral', 'contradiction'))
    with pytest.raises(ValueError, match=r'id2label should be .*"0": "entailment".*"2": "contradiction"'):
        run(model)
    assert model.asked <= 300 and not (tmp_path / 'work/construct/esnlive').exists()


def test_pairs_checked_by_hand_and_labels_of_people(run, sources, tmp_path, capsys):
    truth = {row['id']: row for row in map(json.loads, (sources / 'truth.jsonl').read_text().splitlines())}
    assert run(step='annotate', sample=90) is None
    blank = tmp_path / 'work/construct/annotate.csv'
    with open(blank, encoding='utf-8', newline='') as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 90 and rows[0]['captions'].count('\n') == 4 and not rows[0]['label']
    checked = tmp_path / 'checked.csv'
    with open(checked, 'w', encoding='utf-8', newline='') as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(row | {'label': truth[row['pairID']]['label']} for row in rows)

    with pytest.raises(ValueError, match=r'pictures: has none of the pictures, such as '):
        run(step='relabel', annotated=str(checked))
    image = next(row['id'] for row in truth.values() if row['by_premise'] == 'neutral' and row['split'] == 'dev')
    Image.new('RGB', (9, 9)).save(tmp_path / 'pictures' / f'{image.partition(".")[0]}.png')
    assert run(step='relabel', annotated=str(checked)) is None
    study = json.loads((tmp_path / 'work/human/study.json').read_text())
    asked = {item['example'] for item in study['items']}
    neutral = {k: row for k, row in truth.items() if row['by_premise'] == 'neutral' and row['split'] != 'train'}
    assert neutral.keys() <= asked and study['raters'] == 3
    labels = tmp_path / 'labels.csv'
    lines = [
        f'{key},{rater},{row["label"]},people say so' for key, row in neutral.items() for rater in ('r1', 'r2', 'r3')
    ]
    undecided, *_ = neutral
    lines[:3] = [f'{undecided},r{n},{label},so' for n, label in enumerate(pairs.CLASSES)]
    labels.write_text('\n'.join(['item,rater,label,explanation', *lines]) + '\n')
    capsys.readouterr()
    run(Oracle(), annotated=str(checked), relabelled=str(labels))
    assert 'get another label and 1 none (no majority); 0 more' in capsys.readouterr().out
    labels.write_text('item,label\nelsewhere,neutral\n')
    merged = tmp_path / 'work/construct/merged.jsonl'
    with pytest.raises(ValueError, match=r'merged.jsonl: is in .*construct, which this run writes anew'):
        run(pairs=str(merged), filters=('keywords',))
    with pytest.raises(ValueError, match=r"relabelled: .*none of its pairs is in construct.pairs, 1 id: 'elsewhere'"):
        run(relabelled=str(labels), filters=('keywords',))
    statistics = json.loads((tmp_path / 'work/construct/statistics.json').read_text())
    found = {each['name']: each for each in statistics['filters']}['false_neutral']['checked']['wrong_label']
    looked = [row for row in map(truth.get, (row['pairID'] for row in rows)) if row['split'] == 'train']
    wrong = [row for row in looked if row['by_premise'] == 'neutral' != row['label']]
    planted = [row for row in wrong if row['false_neutral']]  # of the others one caption knows
    assert planted and found['precision'][0] == 1.0
    assert found['recall'][0] == len(planted) / len(wrong)
    assert statistics['relabelled']['no_majority'] == 1
    assert removed(tmp_path / 'work')[undecided]['reason'] == 'no_majority'
    stays = kept(tmp_path / 'work', 'dev') | kept(tmp_path / 'work', 'test')
    assert all(stays[key].label == row['label'] for key, row in neutral.items() if key in stays)
    changed = [key for key, row in neutral.items() if key in stays and row['label'] != 'neutral']
    assert changed and all(stays[key].explanations == ['people say so'] for key in changed)


def test_what_is_missing_is_told(run):
    with pytest.raises(ValueError, match=r'construct\.nli\.model.*quick'):
        run()
    with pytest.raises(ValueError, match=r'construct\.pairs is empty'):
        run(pairs='')
    with pytest.raises(ValueError, match=r'construct\.captions is empty, .*: false_neutral, uncertainty ask'):
        run(Oracle(), captions='')
