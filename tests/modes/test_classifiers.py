"""Plain classifiers go the whole way: build, train, decode, evaluate and predict, of pictures and of texts."""

import csv
import json

import numpy as np
import PIL.Image
import pytest
import torch
import transformers
from flax import nnx

from evil_jax import config as config_lib
from evil_jax import records
from evil_jax.data import load, tokenizers, words
from evil_jax.interop import bert as hf_bert
from evil_jax.interop import classifier, weights
from evil_jax.interop import vit as hf_vit
from evil_jax.models import bert, vit
from evil_jax.modes import _untrained, build, decode, evaluate, export, predict, train
from evil_jax.records import Prediction
from evil_jax.training import sharding

bert.SIZES['classes'] = bert.Size(layers=1, width=16, heads=2, hidden=32, positions=128)
GOOD, BAD = 'a good film and it is warm', 'a dull film and it is cold'


def write_digits(folder, count=12):
    """Pictures of other sizes and kinds than the real ones, in the files that the data set has."""
    (folder / 'images').mkdir(parents=True)
    rng = np.random.default_rng(0)
    kinds = ('L', 'RGB', 'RGBA', 'P')
    for split in ('train', 'dev', 'test'):
        with open(folder / f'{split}.csv', 'w', newline='') as file:
            rows = csv.writer(file)
            rows.writerow(('picture', 'label'))
            for n in range(count):
                image = PIL.Image.fromarray(rng.integers(0, 256, (8 + n, 9, 3), np.uint8)).convert(kinds[n % 4])
                image.save(folder / 'images' / f'{split}{n}.png')
                rows.writerow((f'{split}{n}', n % 10))
    return folder


def write_reviews(folder):
    """Twelve reviews a split."""
    (folder / 'docs').mkdir(parents=True)
    for split in ('train', 'val', 'test'):
        rows = []
        for n in range(12):
            name, text = f'{split}{n}', GOOD if n % 2 else BAD
            (folder / 'docs' / name).write_text(text + '\n')
            rows.append({'annotation_id': name, 'query': '?', 'query_type': None, 'docids': [name],
                         'classification': 'POS' if n % 2 else 'NEG', 'evidences': []})  # fmt: skip
        (folder / f'{split}.jsonl').write_text('\n'.join(map(json.dumps, rows)))
    return folder


def make_config(folder, raw, builder, model, **data):
    config = config_lib.base()
    config.data.update(task='classify', builder=builder, dir=str(folder), manual_dir=str(raw), **data)
    config.model.task.update(name=model, size='tiny')
    config.model.expl.name = ''
    config.model.dtype = 'float32'
    if model == 'bert':
        config.model.task.size = 'classes'
    config.evaluate.update(metrics=(), bootstrap=20)
    config.optim.lr = 1e-3
    config.train.update(steps=2, batch=4, log_every=1, eval_every=2, eval_examples=6, save_every=2, select='s_t')
    config.decode.batch = 6
    return config


@pytest.fixture(scope='module')
def of_pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp('pictures')
    config = make_config(folder / 'data', write_digits(folder / 'raw'), 'digits', 'vit', pixels=32, shift=1)
    build.run(config, None)
    return config


@pytest.fixture(scope='module')
def of_texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp('texts')
    config = make_config(folder / 'data', write_reviews(folder / 'raw'), 'eraser', 'bert', max_text=8)
    build.run(config, None)
    return config


def go(config, workdir):
    """Trains, decodes and scores; (metrics of training, predictions, scores)."""
    trained = train.run(config, workdir)
    decode.run(config, workdir)
    predictions = records.read_jsonl(workdir / 'predictions.jsonl', Prediction)
    return trained, predictions, evaluate.run(config, workdir)


def test_pictures(of_pictures, tmp_path, capsys):
    trained, predictions, scores = go(of_pictures, tmp_path)
    assert trained['step'] == 2 and trained['expl_loss'] == 0 and 1.5 < trained['loss'] < 4
    assert [p.id for p in predictions] == [f'test{n}' for n in range(12)]
    right = sum(p.answer == str(n % 10) for n, p in enumerate(predictions))
    assert scores['s_t'] == pytest.approx(right / 12)
    assert all(p.explanation == '' and len(p.answer_scores) == 5 for p in predictions)
    # One picture is told by its id or as a file, whatever folder it lies in.
    for name, value in (('image_id', 'test3'), ('features', f'{of_pictures.data.manual_dir}/images/test3.png')):
        config = of_pictures.copy_and_resolve_references()
        config.predict[name] = value
        numbers = predict.run(config, tmp_path)
        assert numbers == {'probability': pytest.approx(max(predictions[3].answer_scores.values()), abs=1e-4)}
    assert 'question' not in capsys.readouterr().out
    with pytest.raises(ValueError, match="name is 'vit', which --mode=export cannot write yet"):
        export.run(of_pictures, tmp_path)
    for name, hint in (('test99', "no picture 'test99'"), ('', r'which picture\? Set --config.predict.image_id')):
        config.predict.update(features='', image_id=name)
        with pytest.raises(ValueError, match=hint):
            predict.run(config, tmp_path)


def test_texts(of_texts, tmp_path, capsys):
    trained, predictions, scores = go(of_texts, tmp_path)
    assert trained['step'] == 2 and trained['expl_loss'] == 0
    assert {p.answer for p in predictions} <= {'NEG', 'POS'} and 0 <= scores['s_t'] <= 1
    capsys.readouterr()
    config = of_texts.copy_and_resolve_references()
    config.predict.question = GOOD + ' for whoever likes films'
    assert 0.5 <= predict.run(config, tmp_path)['probability'] <= 1
    out = capsys.readouterr().out.replace('\n', ' ')
    assert 'The text is cut to 8 word pieces (data.max_text): its last 5 words are not read.' in out


def test_pairs_of_texts(tmp_path, capsys):
    """The exported model is one that open_classifier and transformers read, and says what it said here."""
    world = dict(world_train=40, world_dev=8, world_test=30)
    config = make_config(tmp_path / 'data', '', 'shapes_nli', 'bert', max_text=34, **world)
    build.run(config, None)
    _, predictions, scores = go(config, tmp_path / 'run')
    assert 0 <= scores['s_t'] <= 1
    export.run(config, tmp_path / 'run')
    folder, classes = tmp_path / 'run/export/task', ('contradiction', 'neutral', 'entailment')
    texts = [words.halves(example.text) for example in load.load_examples(config, 'test')]
    said = classifier.open_classifier(folder)(texts)
    ours = np.array([[prediction.answer_scores[name] for name in classes] for prediction in predictions])
    np.testing.assert_allclose(said, ours, atol=1e-4)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    batch = transformers.AutoTokenizer.from_pretrained(folder)(
        [list(pair) for pair in texts], padding=True, return_tensors='pt'
    )
    order = [theirs.config.label2id[name] for name in classes]
    with torch.no_grad():
        np.testing.assert_allclose(said, theirs(**batch).logits.softmax(-1)[:, order], atol=1e-4)

    capsys.readouterr()
    config.predict.question = words.joined('There is a star. ' * 9, 'The star is red.')
    assert predict.run(config, tmp_path / 'run')['probability'] > 1 / 3
    # Of 45 and 5 word pieces there is room for 26 and 5, besides three markers.
    told = ' '.join(capsys.readouterr().out.split())
    assert 'data.max_text): 15 words at the ends of its two texts are not read' in told
    config.predict.question = 'The star is red.'
    with pytest.raises(ValueError, match=r"wanted a pair of texts as 'premise \[SEP\] hypothesis'"):
        predict.run(config, tmp_path / 'run')


def test_what_a_build_of_pictures_holds(of_pictures, capsys):
    root = load.folder(of_pictures).parents[2]
    numbers = build.run(of_pictures, None)
    assert (numbers['examples_train'], numbers['answers'], numbers['majority_test']) == (12, 10, pytest.approx(1 / 6))
    assert sorted(p.name for p in root.iterdir()) == ['assets', 'build.html', 'build.json', 'tfds']
    assert tokenizers.load_assets(root / 'assets').answers == tuple('0123456789')
    out = capsys.readouterr().out
    assert '10 classes, 36 pictures' in out and 'explanations' not in out
    page = (root / 'build.html').read_text().split('</style>')[1]
    assert 'Every example has a picture.' in page and 'Regions' not in page and 'region features' not in page
    assert load.open_inputs(of_pictures)['train1'].shape == (9, 9, 3)
    # Other pictures are another data set.
    folder = load.images(of_pictures).path
    extra = PIL.Image.new('L', (3, 3))
    extra.save(folder / 'one_more.png')
    with pytest.raises(ValueError, match=r'was built from other files: pictures\.'):
        build.run(of_pictures, None)
    (folder / 'one_more.png').unlink()
    assert build.run(of_pictures, None) == numbers


def test_what_a_build_of_texts_holds(of_texts, capsys):
    root = load.folder(of_texts).parents[2]
    numbers = build.run(of_texts, None)
    assert sorted(p.name for p in root.iterdir()) == ['assets', 'build.html', 'build.json', 'tfds']
    assert load.open_inputs(of_texts) is None
    assert numbers['mean_text'] == 9 and numbers['long_text'] == 36
    out = capsys.readouterr().out
    assert '36 of 36 text texts (100.0 %) have more and get cut' in out and 'pictures' not in out
    assert 'good' in tokenizers.load_assets(root / 'assets').word.vocabulary
    page = (root / 'build.html').read_text().split('</style>')[1]
    assert GOOD in page and 'no picture' not in page and 'Because' not in page


@pytest.mark.parametrize(
    ('damage', 'hint'),
    [
        (
            lambda raw: (raw / 'images' / 'dev3.png').unlink(),
            r'1 examples are about 1 pictures that are not there: dev3',
        ),
        (lambda raw: (raw / 'images' / 'train0.png').write_bytes(b'\x89PNG'), r'train0\.png: not a readable picture'),
        (
            lambda raw: (raw / 'test.csv').write_text('picture,label\ntest0,ten\n'),
            r"test\.csv:2: found \['test0', 'ten'\]",
        ),
        (lambda raw: (raw / 'test.csv').write_text('picture,label\n'), 'the test split is empty'),
        (lambda raw: (raw / 'images').rename(raw / 'pictures'), 'no pictures: .*raw has no folder of them'),
    ],
    ids=['absent', 'damaged', 'label', 'empty', 'folder'],
)
def test_bad_pictures_and_labels_are_told_before_anything_is_written(tmp_path, damage, hint):
    raw = write_digits(tmp_path / 'raw', 4)
    damage(raw)
    with pytest.raises(ValueError, match=hint):
        build.run(make_config(tmp_path / 'data', raw, 'digits', 'vit', pixels=32), None)
    assert not (tmp_path / 'data' / 'build.json').exists()


def test_pictures_that_are_not_there_may_be_left_out(tmp_path):
    raw = write_digits(tmp_path / 'raw', 4)
    (raw / 'images' / 'dev3.png').unlink()
    config = make_config(tmp_path / 'data', raw, 'digits', 'vit', pixels=32, missing_features='drop')
    numbers = build.run(config, None)
    assert (numbers['examples_dev'], numbers['missing_dev'], numbers['examples_train']) == (3, 1, 4)


@pytest.mark.acceptance
def test_real_reviews(shared, tmp_path):
    """Three of ERASER's, in every split."""
    sample = shared / 'data/attribution/eraser_movies_sample'
    (tmp_path / 'raw').mkdir()
    (tmp_path / 'raw' / 'docs').symlink_to(sample / 'docs')
    rows = (sample / 'sample.jsonl').read_text()
    for split in ('train', 'val', 'test'):  # an id belongs to one split
        named = rows.replace('"annotation_id": "', f'"annotation_id": "{split} ')
        (tmp_path / 'raw' / f'{split}.jsonl').write_text(named)
    config = make_config(tmp_path / 'data', tmp_path / 'raw', 'eraser', 'bert', max_text=128)
    config.train.update(batch=3, eval_every=0)
    numbers = build.run(config, None)
    assert (numbers['examples_test'], numbers['long_text'], numbers['unanswered_train']) == (3, 9, 0)
    _, predictions, scores = go(config, tmp_path / 'run')
    assert [p.id for p in predictions] == [f'test negR_{n}.txt' for n in ('000', '003', '805')]
    assert scores['s_t'] == pytest.approx(sum(p.answer == 'NEG' for p in predictions) / 3)


@pytest.mark.parametrize('kind', ['pictures', 'texts'])
def test_published_classifiers_serve_untrained(kind, request, tmp_path):
    """Hugging Face's folder, with the classes in another order."""
    config = request.getfixturevalue(f'of_{kind}').copy_and_resolve_references()
    names, model = (hf_vit, vit) if kind == 'pictures' else (hf_bert, bert)
    config.model.task.init = f'hf:{tmp_path}'
    assets = tokenizers.load_assets(load.folder(config).parents[2] / 'assets')
    drawn = nnx.state(model.build_task(config, assets, rngs=nnx.Rngs(3)))
    params = {path: np.array(x) for path, x in sharding.flatten(drawn).items()}
    labels = assets.answers[::-1]
    weights.write(tmp_path / 'model.safetensors', names.save(params))
    (tmp_path / 'config.json').write_text(json.dumps({'id2label': dict(enumerate(labels))}))
    _, found = _untrained.load(config)
    head = next(path for path in params if path.endswith('answer/bias')).removesuffix('bias')
    for path, x in params.items():
        wanted = x[..., ::-1] if path.startswith(head) else x
        np.testing.assert_array_equal(found[f'task/{path}'], wanted, err_msg=path)
