"""--mode=attribute of classifiers of pictures and of texts, of published ones, and of the built-in world."""

import json

import jax.numpy as jnp
import numpy as np
import PIL.Image
import pytest
from flax import nnx

from evil_jax import config as config_lib
from evil_jax.attribution import eraser
from evil_jax.data import load, tokenizers
from evil_jax.data.shapes import masks
from evil_jax.interop import vit as hf_vit
from evil_jax.interop import weights
from evil_jax.models import bert, vit, vlnle
from evil_jax.modes import attribute, build
from evil_jax.training import checkpoint, sharding, state

bert.SIZES['small'] = bert.Size(layers=1, width=16, heads=2, hidden=32, positions=32)
COUNT, WORDS = 3, 10  # examples of a split; positions of a text, two of them markers
TEXTS = (
    'a warm and good film , as good as any film I saw',  # 13 words: the last five are not read
    'a dull film',
    'it is cold and it is dull',
)
EVIDENCE = ([(1, 4), (6, 7)], [(1, 2)], [(2, 3), (6, 7)])
METHODS = ('random', 'rollout')


def make_config(folder, **data):
    config = config_lib.base()
    config.data.update({'dir': str(folder / 'data'), 'manual_dir': str(folder / 'raw')} | data)
    config.model.expl.name = ''
    config.model.update(dtype='float32', dropout=0.0)
    config.evaluate.update(metrics=(), bootstrap=20)
    config.build.page = False
    return config


def draw(path, shape, rng):
    return rng.normal(path.endswith('scale'), 0.1 if len(shape) < 2 else 0.4, shape).astype(np.float32)


def write_run(config, workdir):
    """A checkpoint of random parameters, as training on the built data set leaves it."""
    assets = tokenizers.load_assets(f'{config.data.dir}/assets')
    tokenizers.save_assets(workdir / 'assets', assets)
    checkpoint.write_config(config, workdir)
    net = state.abstract(lambda key: vlnle.build(config, assets, key), config, sharding.make_mesh(config))
    rng = np.random.default_rng(1)
    params = {path: jnp.asarray(draw(path, leaf.shape, rng)) for path, leaf in net.shapes.items()}
    saved = checkpoint.Checkpoints(workdir, keep=1, origin=checkpoint.origin(config, assets))
    saved.save(state.TrainState(jnp.int32(1), params, {'count': jnp.int32(1)}), {})
    saved.wait()
    saved.close()


class Run:
    """A data set and an untrained model of it; calling it runs the mode with settings of `config.attribute`."""

    def __init__(self, config, workdir):
        build.run(config, None)
        write_run(config, workdir)
        self.config, self.workdir, self.folder = config, workdir, workdir / 'attribute'

    def __call__(self, **settings):
        config = self.config.copy_and_resolve_references()
        config.attribute.update({'checkpoint': 'latest', 'batch': 2} | settings)
        return attribute.run(config, self.workdir)

    def arrays(self, name='attributions'):
        with np.load(self.folder / f'{name}.npz') as file:
            return dict(file)

    def document(self, protocol):
        return json.loads((self.folder / protocol / 'faithfulness.json').read_text())


@pytest.fixture(scope='module')
def of_pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp('pictures_attributed')
    (folder / 'raw' / 'images').mkdir(parents=True)
    rng = np.random.default_rng(0)
    for split in ('train', 'dev', 'test'):
        rows = ['picture,label']
        for n in range(COUNT):
            picture = PIL.Image.fromarray(rng.integers(0, 256, (20 + n, 30, 3), np.uint8))
            picture.save(folder / 'raw' / 'images' / f'{split}{n}.png')
            rows.append(f'{split}{n},{n}')
        (folder / 'raw' / f'{split}.csv').write_text('\n'.join(rows) + '\n')
    config = make_config(folder, task='classify', builder='digits', pixels=32)
    config.model.task.update(name='vit', size='tiny')
    return Run(config, folder / 'run')


@pytest.fixture(scope='module')
def of_texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp('texts_attributed')
    (folder / 'raw' / 'docs').mkdir(parents=True)
    for split in ('train', 'val', 'test'):
        rows = []
        for n, (text, spans) in enumerate(zip(TEXTS, EVIDENCE)):
            name, tokens = f'{split}{n}', text.split()
            (folder / 'raw' / 'docs' / name).write_text(text + '\n')
            groups = [
                [{'docid': name, 'text': ' '.join(tokens[a:b]), 'start_token': a, 'end_token': b}] for a, b in spans
            ]
            rows.append({'annotation_id': name, 'query': '?', 'query_type': None, 'docids': [name],
                         'classification': 'NEG' if n else 'POS', 'evidences': groups})  # fmt: skip
        (folder / 'raw' / f'{split}.jsonl').write_text('\n'.join(map(json.dumps, rows)))
    config = make_config(folder, task='classify', builder='eraser', max_text=WORDS)
    config.model.task.update(name='bert', size='small')
    return Run(config, folder / 'run')


@pytest.fixture(scope='module')
def of_the_world(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp('world_attributed')
    config = make_config(folder)
    config.data.update(config_lib.DATA_SETS['shapes_ve'])
    config.data.update(dir=str(folder / 'data'), manual_dir='', world_train=12, world_dev=4, world_test=4, max_text=20)
    config.model.task.size = 'toy'
    assert toy  # defines the size
    return Run(config, folder / 'run')


def overlay(path):
    with PIL.Image.open(path) as image:
        return np.asarray(image)


def test_pictures_become_numbers_a_page_and_overlays(of_pictures, capsys):
    settings = dict(method='input_x_gradient', target='#4')
    assert of_pictures(page_examples=2, **settings) == {'examples': COUNT}
    found = of_pictures.arrays()
    assert found['id'].tolist() == found['image_id'].tolist() == ['test0', 'test1', 'test2']
    assert found['gold'].tolist() == ['0', '1', '2']
    assert found['patches'].shape == (COUNT, 1, 16) and (found['patches_length'] == 16).all()
    assert (found['target'] == '4').all() and len(np.unique(found['patches'].round(6), axis=0)) == COUNT
    assert not {'boxes', 'regions', 'text', 'patches_tokens'} & found.keys()
    drawn = sorted((of_pictures.folder / 'overlays').iterdir())
    assert [path.name for path in drawn] == ['0000-test0.png', '0001-test1.png']  # as many as the page shows
    assert min(overlay(drawn[0]).shape[:2]) >= 200 and overlay(drawn[0]).std() > 0
    page = (of_pictures.folder / 'attributions.html').read_text()
    assert 'test1' in page and 'test2' not in page and 'data:image/' in page
    capsys.readouterr()
    of_pictures(image=f'{of_pictures.config.data.manual_dir}/images/test1.png', **settings)  # alone
    alone = of_pictures.arrays('input/attributions')
    assert alone['id'].tolist() == ['test1.png'] and alone['gold'].tolist() == ['']
    np.testing.assert_allclose(alone['patches'][0], found['patches'][1], rtol=1e-4, atol=1e-5)
    assert f'answer: {alone["predicted"][0]} ({alone["probability"][0]:.1%})' in capsys.readouterr().out
    assert len(list((of_pictures.folder / 'input' / 'overlays').iterdir())) == 1


@pytest.mark.parametrize(
    ('kind', 'settings', 'message'),
    [
        ('pictures', dict(target='#99'), r"target is '#99', wanted .*10 answers .*#0 to #9\)"),
        ('pictures', dict(image='test0', text='red ?'), 'reads a picture and no text'),
        ('pictures', dict(evaluate='rationale'), "needs evidence in words, but example 'test0' has none"),
        ('pictures', dict(target='tokens'), "target is 'tokens', but this model only answers"),
        ('texts', dict(target='#2'), r"target is '#2', wanted .*2 answers \(NEG, POS\) .*#0 to #1\)"),
        ('texts', dict(image='test0', text='good'), 'this model reads texts only'),
        ('texts', dict(evaluate='segmentation'), 'needs masks'),
        ('texts', dict(evaluate='rationale', top=(1, 1.5), methods=METHODS), r'attribute\.top has 1\.5, wanted'),
    ],
)
def test_what_does_not_go(kind, settings, message, request):
    run = request.getfixturevalue(f'of_{kind}')
    with pytest.raises(ValueError, match=message):
        run(**settings)


def check_curves(document, unit):
    assert document['settings']['unit'] == unit
    for one in document['methods'].values():
        for direction in ('positive', 'negative'):
            assert [x for x, _ in one['curves'][direction]] == [0, 0.5]
        assert one['curves']['positive'][0] == one['curves']['negative'][0]  # nothing is removed yet


def test_pixels_are_taken_away(of_pictures):
    numbers = of_pictures(evaluate='perturbation', methods=METHODS, fractions=(0.5,), target='gold')
    document = of_pictures.document('perturbation')
    check_curves(document, 'pixel')
    assert list(document['methods']) == list(METHODS)
    assert document['settings']['removal'] == 'fill' and document['n'] == COUNT
    assert 0 <= numbers['rollout auc_positive'] <= 1 and 'rollout comprehensiveness' not in numbers


def test_texts_become_numbers_and_a_page(of_texts):
    of_texts(method='input_x_gradient')
    found = of_texts.arrays()
    assert found['text_length'].tolist() == [[WORDS], [5], [9]]
    assert found['text_tokens'][1, 0, :5].tolist() == ['[CLS]', 'a', 'dull', 'film', '[SEP]']
    assert not found['text'][1, 0, 5:].any() and found['text'][1, 0, :5].all()
    assert found['gold'].tolist() == ['POS', 'NEG', 'NEG'] and not (of_texts.folder / 'overlays').exists()
    page = (of_texts.folder / 'attributions.html').read_text()
    assert 'saw' in page and 'no picture' not in page
    of_texts(method='input_x_gradient', text=TEXTS[2])
    alone = of_texts.arrays('input/attributions')
    np.testing.assert_allclose(alone['text'][0, 0], found['text'][2, 0, :9], rtol=1e-4, atol=1e-5)


def test_tokens_are_taken_away(of_texts):
    numbers = of_texts(evaluate='perturbation', methods=('rollout',), fractions=(0.5,))
    check_curves(of_texts.document('perturbation'), 'token')
    assert {'rollout comprehensiveness', 'rollout sufficiency', 'rollout violation'} <= numbers.keys()


def test_words_that_people_marked(of_texts):
    of_texts(evaluate='rationale', methods=METHODS, top=(1, 0.5))
    folder, document = of_texts.folder / 'rationale', of_texts.document('rationale')
    assert [x for x, _ in document['methods']['rollout']['curves']['token-F1']] == [
        1,
        pytest.approx(np.mean([-(-len(text.split()) // 2) for text in TEXTS])),  # how many words a half is
    ]
    for method in METHODS:
        whole = {}
        for top in (1, 0.5):
            results = eraser.read(folder / f'{method}.top{top}.jsonl')
            assert [result.id for result in results] == ['test0', 'test1', 'test2']
            for text, gold, result in zip(TEXTS, EVIDENCE, results):
                (rationale,) = result.rationales
                words = len(text.split())
                picked = {w for start, end in rationale.spans for w in range(start, end)}
                assert rationale.docid == result.id and len(rationale.scores) == words
                assert len(picked) == (1 if top == 1 else -(-words // 2))
                assert max(picked) < WORDS - 2 and not any(rationale.scores[WORDS - 2 :])  # what is not read
                assert min(rationale.scores[w] for w in picked) >= max(
                    (rationale.scores[w] for w in set(range(min(words, WORDS - 2))) - picked), default=0
                )
                marked = {w for start, end in gold for w in range(start, end)}
                both = len(picked & marked)
                whole.setdefault(top, []).append(2 * both / (len(picked) + len(marked)))
        points = [y for _, y in document['methods'][method]['curves']['token-F1']]
        assert points == [pytest.approx(np.mean(f1)) for f1 in whole.values()]


def test_things_that_decide_an_answer_of_the_world(of_the_world):
    numbers = of_the_world(evaluate='segmentation', methods=METHODS)
    document = of_the_world.document('segmentation')
    assert document['settings']['masks'] == 'of the decisive things' and document['n'] == 4
    metrics = document['methods']['rollout']['metrics']
    assert 0 < numbers['rollout pixel_accuracy'] < 1
    examples = load.load_examples(of_the_world.config, 'test')
    decisive = [masks.mask(e.extra['scene'], e.extra['objects']).any() for e in examples]
    assert metrics['ap_per_image']['n'] == sum(decisive)
    assert numbers['random ap_per_image'] != numbers['rollout ap_per_image']


def test_words_that_decide_an_answer_of_the_world(of_the_world):
    of_the_world(evaluate='rationale', methods=METHODS)
    document = of_the_world.document('rationale')
    assert document['settings']['evidence'] == 'words that decide the answer'
    assert document['settings']['words picked'] == '1, 2, 3'
    results = eraser.read(of_the_world.folder / 'rationale' / 'rollout.top2.jsonl')
    for example, result in zip(load.load_examples(of_the_world.config, 'test'), results, strict=True):
        (rationale,) = result.rationales
        assert (result.id, rationale.docid) == (example.id, example.image_id)
        assert sum(end - start for start, end in rationale.spans) == 2
        assert len(rationale.scores) == len(example.text.split())


def publish(folder, labels):
    """A ViT in Hugging Face's form; `labels`: id2label, or None."""
    size, rng = vit.SIZES['tiny'], np.random.default_rng(3)
    net = nnx.eval_shape(lambda: vit.Vit(size, answers=3, rngs=nnx.Rngs(3)))
    params = {path: draw(path, x.shape, rng) for path, x in sharding.flatten(nnx.state(net)).items()}
    weights.write(folder / 'model.safetensors', hf_vit.save(params))
    settings = hf_vit.hf_config(size, 3)
    del settings['id2label']
    (folder / 'config.json').write_text(json.dumps(settings | ({'id2label': labels} if labels else {})))


def published(folder, image):
    config = make_config(folder, task='classify', builder='imagenet', pixels=32)
    config.model.task.update(name='vit', size='tiny', init=f'hf:{folder}')
    config.attribute.update(checkpoint='init', image=str(image), method='rollout', target='tabby cat')
    return config


def test_a_published_classifier_needs_no_data_set(tmp_path, capsys):
    image = tmp_path / 'cat.png'
    PIL.Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 24, 3), np.uint8)).save(image)
    publish(tmp_path, {'2': 'newt', '0': 'tabby cat', '1': 'dog'})
    assert attribute.run(published(tmp_path, image), tmp_path / 'run') == {'examples': 1}
    with np.load(tmp_path / 'run/attribute/input/attributions.npz') as file:
        assert (file['target'].item(), file['index'].item(), file['id'].item()) == ('tabby cat', 0, 'cat.png')
        assert file['patches'].shape == (1, 1, 16)
        assert file['patches'].all()  # the class token, which is 0 in a rollout, is none of them
        predicted = file['predicted'].item()
    assert predicted in ('tabby cat', 'dog', 'newt') and f'answer: {predicted}' in capsys.readouterr().out
    assert (tmp_path / 'run/attribute/input/overlays/0000-cat.png.png').stat().st_size
    publish(tmp_path, None)
    with pytest.raises(ValueError, match=r'which classes\? .*assets does not exist .*config\.json has no id2label'):
        attribute.run(published(tmp_path, image), tmp_path / 'run')
