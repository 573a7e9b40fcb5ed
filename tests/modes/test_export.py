"""Exported models in PyTorch, in a process that has neither evil_jax nor JAX, against what they say here."""

import getpass
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evil_jax import records
from evil_jax.data import tokenizers
from evil_jax.interop import describe, weights
from evil_jax.interop import export as export_lib
from evil_jax.modes import _predictions, decode, export
from evil_jax.training import checkpoint, initial, processes, state

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope='module')
def exports(toy):
    spec = importlib.util.spec_from_file_location('modes_exports', HERE / 'exports.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOME = ('eug', 'eug_vcr', 'rvt', 'pjx', 'fme_vcr')
OTHERS = ('eug_published', 'eug_published_vcr', 'rvt_vcr', 'qa_gpt2', 'pjx_vcr', 'fme', 'answers')


def ask(names, exports, toy, root):
    """{case: (folder, what JAX says)}; the folders also hold what PyTorch says."""
    found = {name: (root / name, exports.make(toy, name, root / name)) for name in names}
    env = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'} | {'HF_HOME': str(root / 'hf')}
    folders = [str(folder) for folder, _ in found.values()]
    done = subprocess.run(
        [sys.executable, HERE / 'export_probe.py', *folders],
        cwd=root,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return found


@pytest.fixture(scope='module')
def said(exports, toy, tmp_path_factory):
    return ask(SOME, exports, toy, tmp_path_factory.mktemp('exports'))


@pytest.fixture(scope='module')
def others_said(exports, toy, tmp_path_factory):
    return ask(OTHERS, exports, toy, tmp_path_factory.mktemp('exports'))


@pytest.mark.parametrize('name', SOME)
def test_pytorch_says_the_same(name, said, exports):
    compare(name, *said[name], exports)


@pytest.mark.acceptance
@pytest.mark.parametrize('name', OTHERS)
def test_pytorch_says_the_same_of_the_others(name, others_said, exports):
    compare(name, *others_said[name], exports)


def compare(name, folder, here, exports):
    there, document = np.load(folder / 'found.npz'), json.loads((folder / 'found.json').read_text())
    for key in (key for key in there if key.startswith('batch.')):
        np.testing.assert_array_equal(there[key], here[key], err_msg=key)
    np.testing.assert_allclose(there['logits'], here['logits'], atol=1e-4)
    if 'original' not in str(exports.CASES[name]):  # its padding depends on the batch
        np.testing.assert_allclose(there['alone'], here['logits'][:1], atol=1e-4)
    assert len({tuple(row) for row in here['logits'].tolist()}) == len(here['logits'])
    explained = document['explained']
    assert [row['index'] for row in explained] == here['index'].tolist()
    probability = here['probability'][np.arange(len(explained)), here['index']]
    np.testing.assert_allclose([row['probability'] for row in explained], probability, atol=1e-5)
    if 'generated' not in here:
        assert not any(row['explanation'] for row in explained)
        return
    np.testing.assert_allclose(there['explanation_logits'][..., : here['explanation_logits'].shape[-1]],
                               here['explanation_logits'], atol=1e-4)  # fmt: skip
    generated = [row[:n].tolist() for row, n in zip(here['generated'], here['length'], strict=True)]
    expl = tokenizers.ExplTokenizer.load(folder / 'expl')
    assert [row['tokens'] for row in explained] == [[t for t in row if t != expl.id('<|e_rtnl|>')] for row in generated]
    assert [row['explanation'] for row in explained] == [expl.decode(row) for row in generated]
    assert len({row['explanation'] for row in explained}) > 1
    words, markers = tokenizers.WordTokenizer.load(folder / 'word'), ('<|b_qn|>', '<|e_rtnl|>', '<|det44|>')
    asked = [example['explanation'] for example in json.loads((folder / 'examples.json').read_text())]
    assert document['words'] == [[words.cls, *words.encode(text), words.sep] for text in asked]
    assert document['pieces'] == [expl.encode(text) for text in asked]
    assert document['markers'] == [expl.id(marker) for marker in markers]
    if 'task_alone' in there:
        np.testing.assert_allclose(there['task_alone'], here['logits'], atol=1e-4)
        np.testing.assert_allclose(there['expl_alone'][..., : expl.size], here['explanation_logits'], atol=1e-4)


@pytest.mark.parametrize('name', ['pjx', 'fme_vcr'])
def test_integers_scalars_and_padding_come_back(name, said, exports, toy, tmp_path):
    """Count sketches of PJ-X, the norm of a weight in FME, and words behind the vocabulary in the decoder of both."""
    folder, config = said[name][0] / 'export', exports.make_config(toy, name).lock()
    decoder, params = decode.load_trained(config, tmp_path, decode.find_checkpoint(tmp_path, f'hf:{folder}'))
    whole = {path for path, x in params.items() if np.issubdtype(x.dtype, np.integer)}
    assert {path.rpartition('/')[2] for path in whole} == ({'hash', 'sign'} if name == 'pjx' else set())
    assert any(path.endswith('/scale') and not x.shape for path, x in params.items()) == (name == 'fme_vcr')
    document = json.loads((folder / 'config.json').read_text())
    rows = document['expl']['rows']
    for path, axis in (('expl/word/embedding', 0), ('expl/out/kernel', 1), ('expl/out/bias', 0)):
        x = np.moveaxis(np.asarray(params[path]), axis, 0)
        assert len(x) > rows and x[rows - 1].any() and not x[rows:].any()
    origin = {key: document[key] for key in ('trained', 'data', 'step')}
    export.pack(tmp_path / 'again', config, decoder.task, jax.device_get(params), origin)
    assert files(tmp_path / 'again') == files(folder)


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(pathlib.Path(folder).rglob('*')) if p.is_file()}


def exported(toy, workdir, **settings):
    config = toy.make_config()
    config.export.update({'checkpoint': 'latest'} | settings)
    export.run(config.lock(), workdir)


def score(metric, value):
    return {'value': value, 'n': 10, 'signature': f'metric:{metric}|predictions:?'}


SCORES = {  # in no order
    'schema': 1,
    'evil': {
        'correct': {'s_t': score('s_t', 0.25), 'bleu4': score('bleu4', 0.125)},
        'all': {'s_t': score('s_t', 0.5)},
    },
    'caption': {'all': {'rouge_l': score('rouge_l', 0.75)}},
}


def scored(toy, toy_run, workdir, checkpoint):
    """A copy of the run with scores of predictions that come from one of its checkpoints."""
    shutil.copytree(toy_run, workdir)
    (workdir / 'predictions.jsonl').write_text('{"id": "q0", "answer": "red"}\n')
    meta = {'split': 'dev', 'examples': 1, 'decode': {'method': 'beam', 'condition': 'gold'}}
    meta['checkpoint'] = _predictions.identity(decode.find_checkpoint(workdir, str(workdir / checkpoint)))
    (workdir / 'predictions.meta.json').write_text(json.dumps(meta))
    text = json.dumps(SCORES).replace('?', records.file_hash(workdir / 'predictions.jsonl'))
    (workdir / 'scores.json').write_text(text)


def test_export_import_export_gives_the_same_bytes(toy, toy_run, tmp_path):
    scored(toy, toy_run, tmp_path / 'run', 'checkpoints/2')
    exported(toy, tmp_path / 'run')
    first = files(tmp_path / 'run/export')
    exported(toy, tmp_path / 'elsewhere', checkpoint=f'hf:{tmp_path}/run/export', dir=str(tmp_path / 'again'))
    assert files(tmp_path / 'again') == first
    assert b'0.5000' in first['README.md']
    assert b'Split dev, 1 examples. Decoded with condition = "gold", method = "beam".' in first['README.md']
    assert 'evil' in json.loads(first['scores.json'])
    for name, content in first.items():
        assert str(tmp_path).encode() not in content, name
        assert getpass.getuser().encode() + b'/' not in content, name
    assert {path.name for path in tmp_path.iterdir()} == {'run', 'again'}  # no temporary folder is left
    again = files(tmp_path / 'again')
    exported(toy, tmp_path / 'run', dir=str(tmp_path / 'again'))  # an export may be replaced
    assert files(tmp_path / 'again') == again


def test_the_parameters_come_back_bit_for_bit(toy, toy_run, tmp_path):
    exported(toy, toy_run, dir=str(tmp_path / 'e'))
    config = toy.make_config()
    here, params = decode.load_trained(config, toy_run, decode.find_checkpoint(toy_run, 'latest'))
    there, found = decode.load_trained(config, tmp_path, decode.find_checkpoint(tmp_path, f'hf:{tmp_path}/e'))
    assert there.task.assets.hashes() == here.task.assets.hashes()
    assert found.keys() == params.keys()
    words = here.task.assets.expl.rows
    for path, x in found.items():
        rows = slice(words if path == 'expl/wte/embedding' else None)
        np.testing.assert_array_equal(np.asarray(x)[rows], np.asarray(params[path])[rows])
        assert not np.asarray(x)[rows.stop or len(x) :].any()


def test_a_run_may_begin_with_an_export(toy, toy_run, tmp_path):
    exported(toy, toy_run, dir=str(tmp_path / 'e'))
    config = toy.make_config()
    config.model.task.init = f'hf:{tmp_path}/e'
    assets = tokenizers.load_assets(toy_run / 'assets')
    turned = tokenizers.Assets(assets.word, assets.expl, assets.answers[::-1])
    _, params = decode.load_trained(toy.make_config(), toy_run, decode.find_checkpoint(toy_run, 'latest'))
    shapes = {path: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) for path, x in params.items()}
    fresh = {path: x * 0 for path, x in params.items()}
    found, [told] = initial.begin(config, fresh, shapes, turned)
    assert 'answer head: 6 of our 6 answers' in told
    bias = 'task/head/answer/bias'
    np.testing.assert_array_equal(found[bias], params[bias][::-1])
    np.testing.assert_array_equal(found['task/pooler/kernel'], params['task/pooler/kernel'])
    assert not np.asarray(found['expl/norm/scale']).any()


def test_scores_of_other_predictions_stay_out(toy, toy_run, tmp_path, capsys):
    scored(toy, toy_run, tmp_path / 'run', 'checkpoints/2')
    with open(tmp_path / 'run/predictions.jsonl', 'a') as file:  # decoded again, not scored yet
        file.write('{"id": "q1", "answer": "red"}\n')
    exported(toy, tmp_path / 'run')
    assert 'not about this checkpoint' in capsys.readouterr().out
    assert not (tmp_path / 'run/export/scores.json').exists()
    assert 'Split' not in (tmp_path / 'run/export/README.md').read_text()


def test_what_is_decoded_is_exported_where_nothing_else_is_said(toy, toy_run, tmp_path):
    step = lambda name: json.loads((tmp_path / name / 'config.json').read_text())['step']
    config = toy.make_config()
    config.decode.checkpoint = str(toy_run / 'checkpoints/1')
    # Of a run without a best checkpoint 'best' is the latest.
    for name, settings in (('a', {}), ('b', {'checkpoint': 'latest'}), ('c', {'checkpoint': 'best'})):
        config.export.update({'dir': str(tmp_path / name)} | settings)
        export.run(config.lock(), toy_run)
    assert (step('a'), step('b'), step('c')) == (1, 2, 2)
    config.unlock()
    config.export.update(checkpoint='', task_checkpoint=str(toy_run / 'checkpoints/1'), dir=str(tmp_path / 'd'))
    export.run(config.lock(), toy_run)
    assert step('d') == 1
    config.unlock()
    config.decode.task_checkpoint = str(tmp_path / 'nowhere')
    config.export.update(checkpoint='', task_checkpoint='', dir=str(tmp_path / 'e'))
    with pytest.raises(ValueError, match=r'task_checkpoint: no complete checkpoint in .*nowhere'):
        export.run(config.lock(), toy_run)


def test_a_pair_of_two_runs_says_so(toy, toy_run, tmp_path):
    """M_E of one run, and the same M_T as another run holds it."""
    config = toy.make_config()
    decoder, params = decode.load_trained(config, toy_run, decode.find_checkpoint(toy_run, 'latest'))
    config.optim.lr, hashes = 0.5, decoder.task.assets.hashes()
    origin = {'config': checkpoint.plain(config), 'assets': hashes, 'data': 'of the other'}
    saved = checkpoint.Checkpoints(tmp_path / 'other', keep=1, origin=origin)
    saved.save(state.TrainState(jnp.int32(7), params, {'count': jnp.int32(7)}), {})
    saved.wait()
    saved.close()
    other, read = str(tmp_path / 'other'), lambda name: json.loads((tmp_path / name / 'config.json').read_text())
    scored(toy, toy_run, tmp_path / 'run', 'checkpoints/2')
    exported(toy, tmp_path / 'run', task_checkpoint=other, dir=str(tmp_path / 'pair'))
    found = read('pair')
    assert (found['step'], found['data'], found['trained']['optim.lr']) == (2, 'none', 2e-5)
    told = found['task_run']
    assert (told['step'], told['data'], told['trained']['optim.lr']) == (7, 'of the other', 0.5)
    assert told['trained'].keys() == found['trained'].keys()
    card = (tmp_path / 'pair/README.md').read_text()
    assert 'optim.lr = 0.5' in card.partition('comes from another run:')[2]
    exported(toy, tmp_path / 'w', checkpoint=f'hf:{tmp_path}/pair', dir=str(tmp_path / 'again'))
    assert files(tmp_path / 'again') == files(tmp_path / 'pair')
    # Of an export's M_E with another M_T the scores are not known.
    exported(toy, tmp_path / 'run', dir=str(tmp_path / 'alone'))
    assert 'task_run' not in read('alone') and 'another run' not in (tmp_path / 'alone/README.md').read_text()
    exported(toy, tmp_path / 'w', checkpoint=f'hf:{tmp_path}/alone', task_checkpoint=other, dir=str(tmp_path / 'mixed'))
    assert files(tmp_path / 'mixed') == files(tmp_path / 'pair')
    exported(toy, tmp_path / 'run', task_checkpoint=f'hf:{tmp_path}/pair', dir=str(tmp_path / 'of'))
    assert read('of')['task_run'] == told


def test_settings_of_an_answering_half_are_those_of_its_run(toy, toy_run, tmp_path):
    exported(toy, toy_run, dir=str(tmp_path / 'e'))
    document = json.loads((tmp_path / 'e/config.json').read_text())
    before = export_lib.read(tmp_path / 'e').trained
    of_task = {'trained': document['trained'] | {'model.task.gate': 'relu', 'optim.lr': 0.5}}
    (tmp_path / 'e/config.json').write_text(json.dumps(document | {'task_run': of_task}))
    assert export_lib.read(tmp_path / 'e').trained == before | {'model.task.gate': 'relu'}
    for broken in (3, {}, {'trained': 3}):
        (tmp_path / 'e/config.json').write_text(json.dumps(document | {'task_run': broken}))
        with pytest.raises(ValueError, match=r'config\.json: task_run is .*, wanted what --mode=export writes'):
            export_lib.read(tmp_path / 'e')


def test_what_would_stop_it_in_the_end_stops_it_at_the_start(toy, tmp_path, monkeypatch):
    config = toy.make_config()
    export.check_files(config, tmp_path / 'run', ['train'])
    (tmp_path / 'run/export').mkdir(parents=True)
    export.check_files(config, tmp_path / 'run', ['train'])
    (tmp_path / 'run/export/thesis.txt').write_text('...')
    with pytest.raises(ValueError, match='export is not empty and no export of evil_jax'):
        export.check_files(config, tmp_path / 'run', ['train'])
    monkeypatch.setattr(processes, 'count', lambda: 2)
    config.export.dir = str(tmp_path / 'e')
    with pytest.raises(ValueError, match='the work of one process'):
        export.check_files(config, tmp_path / 'run', ['train'])


def test_scores_of_another_checkpoint_stay_out(toy, toy_run, tmp_path, capsys):
    scored(toy, toy_run, tmp_path / 'run', 'checkpoints/1')
    exported(toy, tmp_path / 'run')
    assert 'not about this checkpoint' in capsys.readouterr().out
    assert 'no scores of this checkpoint' in (tmp_path / 'run/export/README.md').read_text()
    assert not (tmp_path / 'run/export/scores.json').exists()


def test_nothing_is_written_over_or_by_half(toy, toy_run, tmp_path, monkeypatch):
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine/thesis.txt').write_text('...')
    (tmp_path / 'file').write_text('...')
    for name in ('mine', 'file'):
        with pytest.raises(
            ValueError, match=f'{name} is not empty and no export of evil_jax: choose another export.dir'
        ):
            exported(toy, toy_run, dir=str(tmp_path / name))
    exported(toy, toy_run, dir=str(tmp_path / 'e'))
    before = files(tmp_path / 'e')

    def fail(*_):
        raise OSError('disk full')

    monkeypatch.setattr(weights, 'write', fail)
    with pytest.raises(OSError, match='disk full'):
        exported(toy, toy_run, dir=str(tmp_path / 'e'))
    assert files(tmp_path / 'e') == before
    assert {path.name for path in tmp_path.iterdir()} == {'mine', 'file', 'e'}


def test_what_people_put_beside_an_export_is_neither_lost_nor_replaced(toy, toy_run, tmp_path):
    again = lambda: exported(toy, toy_run, dir=str(tmp_path / 'e'))
    (tmp_path / 'e/.git').mkdir(parents=True)  # of a hub, before anything is in it
    (tmp_path / 'e/.git/HEAD').write_text('ref')
    again()
    (tmp_path / 'e/.gitattributes').write_text('lfs')
    again()
    assert (tmp_path / 'e/.git/HEAD').read_text() == 'ref'
    assert (tmp_path / 'e/.gitattributes').read_text() == 'lfs'
    (tmp_path / 'e/notes.txt').write_text('...')
    (tmp_path / 'e/task/mine').mkdir()
    with open(tmp_path / 'e/LICENSE.md', 'a') as file:
        file.write('Terms of COCO')
    before = files(tmp_path / 'e')
    with pytest.raises(
        ValueError, match=r'not so: LICENSE\.md, notes\.txt, task/mine\. Choose another export\.dir, or'
    ):
        again()
    assert files(tmp_path / 'e') == before


def test_what_people_changed_in_an_export_is_not_replaced(toy, toy_run, tmp_path):
    again = lambda: exported(toy, toy_run, dir=str(tmp_path / 'e'))
    again()
    first = files(tmp_path / 'e')
    edit = lambda name, key, value: (tmp_path / 'e' / name).write_text(
        json.dumps(json.loads(first[name]) | {key: value}, indent=1, ensure_ascii=False, sort_keys=True) + '\n'
    )
    changes = {
        'modeling_evil.py': lambda name: (tmp_path / 'e' / name).write_bytes(first[name] + b'# faster\n'),
        'my_evil.py': lambda name: (tmp_path / 'e' / name).write_text('...'),
        'config.json': lambda name: edit(name, 'probability', float('nan')),
        'task/tokenizer_config.json': lambda name: edit(name, 'model_max_length', 512),
        'expl/merges.txt': lambda name: (tmp_path / 'e' / name).write_bytes(first[name] + b'a b\n'),
        'model.safetensors': lambda name: (tmp_path / 'e' / name).write_bytes(first[name][:-1] + b'\0'),
        'scores.json': lambda name: (tmp_path / 'e' / name).symlink_to('nowhere'),
    }
    for name, change in changes.items():
        change(name)
        with pytest.raises(ValueError, match=rf'not so: {re.escape(name)}\. Choose another export\.dir, or move'):
            again()
        (tmp_path / 'e' / name).unlink()
        if name in first:
            (tmp_path / 'e' / name).write_bytes(first[name])
    again()
    assert files(tmp_path / 'e') == first


def test_what_a_killed_export_left_is_cleared_away(toy, toy_run, tmp_path):
    exported(toy, toy_run, dir=str(tmp_path / 'e'))
    (tmp_path / '.e.abcd1234/new/.git').mkdir(parents=True)
    (tmp_path / 'e').rename(tmp_path / '.e.abcd1234/old')  # killed between two renames
    (tmp_path / '.e.0000aaaa/new').mkdir(parents=True)
    for mine in ('.e.mine', '.e.bcde2345', '.f.abcd1234'):
        (tmp_path / mine / 'thesis').mkdir(parents=True)
    exported(toy, toy_run, dir=str(tmp_path / 'e'))
    assert {path.name for path in tmp_path.iterdir()} == {'e', '.e.mine', '.e.bcde2345', '.f.abcd1234'}
    assert (tmp_path / 'e/.git').is_dir()


def test_a_target_that_cannot_be_written_is_named(toy, toy_run, tmp_path, monkeypatch):
    (tmp_path / 'file').write_text('...')
    with pytest.raises(ValueError, match=r'file/e: .*file is a file: choose another export\.dir'):
        exported(toy, toy_run, dir=str(tmp_path / 'file/e'))

    def refuse(*_, **__):
        raise PermissionError(13, 'Permission denied', str(tmp_path / '.e.abcd1234'))

    monkeypatch.setattr(tempfile, 'mkdtemp', refuse)
    with pytest.raises(ValueError, match=r'/e: nothing can be written there: Permission denied$'):
        exported(toy, toy_run, dir=str(tmp_path / 'e'))
    monkeypatch.setattr(os, 'access', lambda *_: False)
    with pytest.raises(ValueError, match=rf'/e: no right to write in {tmp_path}: choose another'):
        exported(toy, toy_run, dir=str(tmp_path / 'e'))
    assert [path.name for path in tmp_path.iterdir()] == ['file']


def test_what_is_wrong_with_an_export_is_told(toy, toy_run, tmp_path):
    exported(toy, toy_run, dir=str(tmp_path / 'e'))
    load = lambda config: decode.load_trained(config, tmp_path, decode.find_checkpoint(tmp_path, f'hf:{tmp_path}/e'))
    config = toy.make_config()
    config.data.max_text = 11
    with pytest.raises(ValueError, match=r'e was trained with other settings:\n  data.max_text: 10 there, 11 here'):
        load(config)
    document = json.loads((tmp_path / 'e/config.json').read_text())
    arrays = weights.read(tmp_path / 'e')
    weights.write(tmp_path / 'e/model.safetensors', {n: x for n, x in arrays.items() if n != 'task.pooler.bias'} | {
        'expl.norm.bias': np.zeros(3, np.float32)})  # fmt: skip
    with pytest.raises(ValueError, match='does not fit') as told:
        load(toy.make_config())
    assert 'task.pooler.bias (task/pooler/bias)' in str(told.value)
    assert 'expl.norm.bias: (3,) as expl/norm/bias, wanted (32,)' in str(told.value)
    (tmp_path / 'e/config.json').write_text(json.dumps(document | {'answers': ['red', 'red']}))
    with pytest.raises(ValueError, match=r'config.json: answers are .*, wanted distinct texts'):
        load(toy.make_config())
    (tmp_path / 'e/config.json').write_text(json.dumps(document | {'trained': 3}))
    with pytest.raises(ValueError, match=r'config.json: trained is 3, wanted what --mode=export writes'):
        load(toy.make_config())
    with pytest.raises(ValueError, match='does not exist; wanted the folder of a Hugging Face model'):
        exported(toy, toy_run, checkpoint='hf:nowhere', dir=str(tmp_path / 'f'))
    (tmp_path / 'bert').mkdir()
    (tmp_path / 'bert/config.json').write_text('{"model_type": "bert"}')
    with pytest.raises(
        ValueError, match=r'^hf:.*/bert: there is no config\.json of --mode=export; wanted .* an export$'
    ):
        exported(toy, toy_run, checkpoint=f'hf:{tmp_path}/bert', dir=str(tmp_path / 'f'))


def test_a_model_without_a_pytorch_class_is_refused(toy, toy_run):
    config, assets = toy.make_config(), tokenizers.load_assets(toy_run / 'assets')
    config.model.task.name = 'another'
    task = types.SimpleNamespace(choices=4, size=toy.uniter.SIZES['toy'])
    with pytest.raises(ValueError, match=r"config\.model\.task\.name is 'another', which --mode=export cannot write"):
        describe.describe(config, types.SimpleNamespace(task=task, expl=None), {}, assets)
