"""Decoding with the real model: against full recomputation, other batch sizes and devices; the file and its sidecar."""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

from evil_jax import records
from evil_jax.data import load, pipeline
from evil_jax.modes import _predictions, decode
from evil_jax.records import Prediction

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Few different ones, since each is compiled.
METHODS = {'greedy': {}, 'sample': {'method': 'sample'}, 'beam': {'method': 'beam', 'beams': 3, 'length_penalty': 0.0}}
each_method = pytest.mark.parametrize('method', METHODS)


@pytest.fixture(scope='module')
def loaded(toy, toy_run):
    """Function: decode settings -> (decoder, params); each setting is compiled once."""

    load_trained = decode.load_trained  # tests replace it

    @functools.cache
    def load_with(**settings):
        config = toy.make_config(**settings)
        return load_trained(config, toy_run, decode.find_checkpoint(toy_run, 'latest'))

    return load_with


def predict(toy, loaded, **settings):
    decoder, params = loaded(**settings)
    return [p for rows in decoder.predictions(params, toy.make_examples(), toy.make_reader()) for p in rows]


def whole_batch(toy, decoder):
    encode = pipeline.Encode(decoder.task, toy.make_reader())
    return next(iter(pipeline.eval_batches(toy.make_examples(), encode, batch=10)))


@pytest.fixture(scope='module')
def teacher(toy, loaded):
    """Log probabilities [B, T, V] of every next token by one full pass without a cache, given tokens [B, T]."""
    decoder, params = loaded()
    batch = whole_batch(toy, decoder)
    net = jax_net(toy, decoder)

    @jax.jit
    def run(tokens_BT):
        model = net.merge(params)
        logits_BA, context = model.task(batch)
        condition = decoder.task.condition(batch, decoder.task.predict(logits_BA)[0])
        start_B1 = np.full((10, 1), decoder.task.assets.expl.id('<|b_rtnl|>'), np.int32)
        tokens = jax.numpy.concatenate([start_B1, tokens_BT], axis=1)
        return jax.nn.log_softmax(model.expl(batch, context, condition, tokens))[:, :-1]

    return lambda tokens_BT: np.asarray(run(tokens_BT))


def jax_net(toy, decoder):
    from evil_jax.models import vlnle
    from evil_jax.training import state

    config = toy.make_config()
    return state.abstract(lambda key: vlnle.build(config, decoder.task.assets, key), config, decoder.mesh)


@each_method
def test_cache_equals_full_recomputation(toy, loaded, teacher, method):
    """Ragged prompts, answers and explanations in one batch. Greedy: token for token. All: the score is the sum of the
    full pass's log probabilities, so that every cached step saw the right row and position."""
    decoder, params = loaded(**METHODS[method])
    batch = whole_batch(toy, decoder)
    assert len(set(batch['question_length'])) > 2 and len(set(batch['region_length'])) == 4
    found = jax.device_get(decoder.predict(params, batch))
    assert len(set(found['length'])) > 1 and len(set(found['index'])) > 1
    log_p_BTV = teacher(found['tokens'])
    inside_BT = np.arange(found['tokens'].shape[1]) < found['length'][:, None]
    if method == 'greedy':
        words_BTV = log_p_BTV[..., : decoder.task.assets.expl.size]
        assert (words_BTV.argmax(-1) == found['tokens'])[inside_BT].all()
    chosen_BT = np.take_along_axis(log_p_BTV, found['tokens'][..., None], -1)[..., 0]
    np.testing.assert_allclose((chosen_BT * inside_BT).sum(1), found['score'], atol=1e-4)


def test_one_beam_is_greedy(toy, loaded):
    greedy = predict(toy, loaded)
    assert predict(toy, loaded, method='beam', beams=1) == greedy


def test_more_beams_find_likelier_explanations(toy, loaded):
    batch = whole_batch(toy, loaded()[0])
    scores = {}
    for method in ('greedy', 'beam'):
        decoder, params = loaded(**METHODS[method])
        scores[method] = jax.device_get(decoder.predict(params, batch))['score'].mean()
    assert scores['beam'] > scores['greedy'] + 0.01


@each_method
def test_predictions_do_not_depend_on_the_batch_size(toy, loaded, method):
    same(predict(toy, loaded, **METHODS[method]), predict(toy, loaded, **METHODS[method], batch=4))


def same(left, right):
    assert [p.id for p in left] == [f'q{i}' for i in range(10)]
    for a, b in zip(left, right, strict=True):
        assert (a.id, a.answer, a.explanation_ids) == (b.id, b.answer, b.explanation_ids)
        assert a.answer_scores == pytest.approx(b.answer_scores, abs=1e-5)


@pytest.fixture(scope='module')
def eight_devices(toy_run):
    """{method: predictions} of a process with eight devices in a (2, 2, 2) mesh."""
    script = pathlib.Path(__file__).with_name('toy.py')
    command = [sys.executable, script, toy_run, json.dumps(list(METHODS.values()))]
    found = subprocess.run(command, capture_output=True, text=True, env={**os.environ, 'PYTHONPATH': str(ROOT)})
    assert found.returncode == 0, found.stderr
    lists = [json.loads(line) for line in found.stdout.splitlines() if line.startswith('[')]
    return {name: [Prediction.from_json(row) for row in rows] for name, rows in zip(METHODS, lists, strict=True)}


@each_method
def test_eight_devices_predict_like_one(toy, loaded, eight_devices, method):
    same(predict(toy, loaded, **METHODS[method]), eight_devices[method])


def test_words_of_a_prediction(toy, loaded):
    decoder, params = loaded()
    found = jax.device_get(decoder.predict(params, whole_batch(toy, decoder)))
    for i, prediction in enumerate(predict(toy, loaded)):
        assert prediction.answer == toy.ANSWERS[found['index'][i]]
        assert next(iter(prediction.answer_scores)) == prediction.answer and len(prediction.answer_scores) == 5
        assert sorted(prediction.answer_scores.values(), reverse=True) == list(prediction.answer_scores.values())
        assert prediction.explanation == decoder.task.assets.expl.decode(prediction.explanation_ids)
        assert prediction.answer_index is None and prediction.condition == 'predicted'


def test_gold_condition(toy, loaded):
    """Answers stay the predicted ones; explanations are for the gold answer, where there is one."""
    predicted, gold = predict(toy, loaded), predict(toy, loaded, condition='gold')
    assert [p.answer for p in gold] == [p.answer for p in predicted]
    assert [p.condition for p in gold] == ['predicted' if i % 3 == 2 else 'gold' for i in range(10)]
    changed = [a.explanation_ids != b.explanation_ids for a, b in zip(predicted, gold)]
    assert any(changed) and not any(changed[2::3])


def test_a_model_without_explanations(toy, toy_run, loaded):
    config = toy.make_config()
    config.model.expl.name = ''
    decoder, params = loaded()
    from evil_jax.models import vlnle
    from evil_jax.training import state

    net = state.abstract(lambda key: vlnle.build(config, decoder.task.assets, key), config, decoder.mesh)
    params = {path: x for path, x in params.items() if path.startswith('task/')}
    batches = decode.Decoder(net, decoder.task, config, decoder.mesh).predictions(
        params, toy.make_examples(), toy.make_reader()
    )
    found = [prediction for rows in batches for prediction in rows]
    assert [p.answer for p in found] == [p.answer for p in predict(toy, loaded)]
    assert {(p.explanation, p.explanation_ids) for p in found} == {('', None)}


def test_more_tokens_than_positions_are_refused(toy, loaded):
    decoder, params = loaded(max_tokens=60)
    with pytest.raises(ValueError, match=r'60 new tokens after a prefix of up to 37 need 97 positions, GPT-2 has 96'):
        decoder.predict(params, whole_batch(toy, decoder))


# The file ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def job(toy, toy_run, loaded, tmp_path, monkeypatch):
    """(run a decode into tmp_path/out with settings, the output folder); compiled functions are shared."""
    data, out = tmp_path / 'tfds', tmp_path / 'out'
    data.mkdir()
    (data / 'records').write_text('the examples')
    monkeypatch.setattr(load, 'load_examples', lambda config, split: toy.make_examples())
    monkeypatch.setattr(load, 'open_store', lambda config: toy.make_reader())
    monkeypatch.setattr(load, 'folder', lambda config: data)
    monkeypatch.setattr(load, 'built', lambda config: {'settings': load.settings(config)})
    monkeypatch.setattr(
        decode,
        'load_trained',
        lambda config, workdir, folder: loaded(**({} if config.decode.batch == 10 else {'batch': 4})),
    )

    def run(**settings):
        settings = {'checkpoint': str(toy_run / 'checkpoints' / '2'), 'batch': 4} | settings
        return decode.run(toy.make_config(**settings), out)

    return run, out


def interrupt_after(monkeypatch, batches):
    """Stops the run before it writes batch number `batches`."""
    append, count = _predictions.Writer.append, iter(range(99))

    def limited(self, predictions):
        if next(count) >= batches:
            raise KeyboardInterrupt
        append(self, predictions)

    monkeypatch.setattr(_predictions.Writer, 'append', limited)
    return lambda: monkeypatch.setattr(_predictions.Writer, 'append', append)


def test_run_writes_predictions_and_sidecar(job, toy, loaded):
    run, out = job
    numbers = run()
    assert numbers['examples'] == numbers['decoded'] == 10 and numbers['examples_per_second'] > 0
    assert records.read_jsonl(out / 'predictions.jsonl', Prediction) == predict(toy, loaded, batch=4)
    meta = json.loads((out / 'predictions.meta.json').read_text())
    assert meta['split'] == 'test' and meta['examples'] == 10 and meta['decode']['method'] == 'greedy'
    assert meta['checkpoint']['step'] == 2 and len(meta['checkpoint']['sha256']) == 16
    assert meta['data']['features'] == 'f' * 16 and meta['config']['model.task.size'] == 'toy'
    assert meta['data'].keys() == {'examples', 'features'}, 'VQA v2 is read in one way only'


def test_a_finished_file_is_left_alone(job, monkeypatch):
    run, out = job
    run()
    stamp = lambda: [getattr((out / 'predictions.jsonl').stat(), f'st_{name}') for name in ('ino', 'size', 'mtime_ns')]
    before = stamp()
    monkeypatch.setattr(decode, 'load_trained', None)
    assert run() == {'examples': 10.0, 'decoded': 0.0}
    assert stamp() == before, 'read, and not written'


@pytest.mark.parametrize('torn', ['', '{"id": "q8", "ans'])
def test_an_interrupted_run_goes_on(job, monkeypatch, torn):
    """Also with another batch size, and after a kill in the middle of a line."""
    run, out = job
    run()
    wanted = (out / 'predictions.jsonl').read_bytes()
    for path in out.iterdir():
        path.unlink()
    restore = interrupt_after(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        run()
    restore()
    assert (out / 'predictions.jsonl').read_bytes().count(b'\n') == 8
    with open(out / 'predictions.jsonl', 'a') as file:
        file.write(torn)
    assert run(batch=10)['decoded'] == 2
    rows = [
        [json.loads(line) for line in text.splitlines()] for text in (wanted, (out / 'predictions.jsonl').read_bytes())
    ]
    for there, here in zip(*rows, strict=True):
        scores = there.pop('answer_scores'), here.pop('answer_scores')
        assert here == there and scores[0] == pytest.approx(scores[1], abs=1e-5)


def test_stopped_before_the_first_line(job, monkeypatch):
    """Then nothing is at stake, and other settings are fine."""
    run, out = job
    restore = interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        run()
    restore()
    (out / 'predictions.jsonl').write_bytes(b'')
    assert run(limit=5)['decoded'] == 5
    assert json.loads((out / 'predictions.meta.json').read_text())['examples'] == 5


def test_other_settings_checkpoint_or_data_are_refused(job, toy_run):
    run, out = job
    run(limit=6)
    before = (out / 'predictions.jsonl').read_bytes()
    with pytest.raises(ValueError, match=r"decode.method: 'greedy' there, 'beam' here") as error:
        run(limit=6, method='beam', checkpoint=str(toy_run / 'checkpoints' / '1'))
    assert 'checkpoint.step: 2 there, 1 here' in str(error.value) and 'checkpoint.sha256' in str(error.value)
    assert 'decode.beams' not in str(error.value) and 'another --workdir' in str(error.value)
    with pytest.raises(ValueError, match='examples: 6 there, 10 here'):
        run()
    (load.folder(None) / 'records').write_text('other examples')
    with pytest.raises(ValueError, match=r'data\.examples: '):
        run(limit=6)
    assert (out / 'predictions.jsonl').read_bytes() == before


def test_predictions_of_unknown_origin_are_refused(job):
    run, out = job
    out.mkdir()
    (out / 'predictions.jsonl').write_text('{"id": "q0", "answer": "yes"}\n')
    with pytest.raises(ValueError, match=r'has no predictions\.meta\.json'):
        run()


def test_a_damaged_line_is_named(job):
    run, out = job
    run()
    lines = (out / 'predictions.jsonl').read_text().splitlines(keepends=True)
    lines[3] = lines[3][:20] + '\n'
    (out / 'predictions.jsonl').write_text(''.join(lines))
    with pytest.raises(ValueError, match=r'predictions.jsonl:4: '):
        run()


def test_one_decode_at_a_time(job, monkeypatch):
    """A second one, while the first writes, is refused and leaves no trace in the file."""
    run, out = job
    append = _predictions.Writer.append

    def interrupted(self, predictions):
        with pytest.raises(ValueError, match=r'out: another --mode=decode works in this folder right now'):
            run()
        append(self, predictions)

    monkeypatch.setattr(_predictions.Writer, 'append', interrupted)
    run()
    assert [p.id for p in records.read_jsonl(out / 'predictions.jsonl', Prediction)] == [f'q{i}' for i in range(10)]
    assert sorted(path.name for path in out.iterdir()) == ['predictions.jsonl', 'predictions.meta.json']


# The checkpoint ------------------------------------------------------------------------------------------------------


def test_without_a_checkpoint_it_says_to_train(toy, tmp_path):
    with pytest.raises(ValueError, match=r'no complete checkpoint in .*Train first: --mode=train'):
        decode.run(toy.make_config(), tmp_path)


def test_a_checkpoint_of_other_settings_is_refused(toy, toy_run):
    config = toy.make_config()
    config.data.max_regions = 7
    config.data.regions = 'zero'
    with pytest.raises(ValueError, match=r"data.max_regions: 4 there, 7 here\n.*data.regions: 'detected' there"):
        decode.load_trained(config, toy_run, decode.find_checkpoint(toy_run, 'latest'))


def test_a_moved_checkpoint_is_checked_by_what_it_says(toy, toy_run, tmp_path):
    """Without its work folder: settings and vocabularies are those of its meta, not whatever lies around."""
    moved, other = tmp_path / 'kept' / 'mine', tmp_path / 'other'
    shutil.copytree(toy_run / 'checkpoints' / '2', moved)
    shutil.copytree(toy_run / 'assets', other / 'assets')
    config = toy.make_config()
    assert decode.load_trained(config, toy_run, moved)[0].task.answers == toy.ANSWERS
    (other / 'assets' / 'answers.json').write_text(json.dumps(toy.ANSWERS[::-1]))
    with pytest.raises(ValueError, match=r'that .*mine was trained with(.|\n)*other/assets: others \(answers'):
        decode.load_trained(config, other, moved)
    config.data.max_regions = 7
    with pytest.raises(ValueError, match=r'data.max_regions: 4 there, 7 here'):
        decode.load_trained(config, toy_run, moved)


def test_where_the_batch_decides_it_is_named_and_whole_batches_are_done_again(job, toy, toy_run, monkeypatch):
    """Quirk 3: the largest picture of a batch decides how much padding the others see."""
    run, out = job
    path, sidecar = out / 'predictions.jsonl', out / 'predictions.meta.json'
    run()
    assert 'batch' not in json.loads(sidecar.read_text())['decode']
    shutil.rmtree(out)
    monkeypatch.setattr(decode, '_check_config', lambda *_: None)  # the toy run was trained without the quirk
    config = toy.make_config(checkpoint=str(toy_run / 'checkpoints' / '2'), batch=4)
    config.compat = '3'
    decode.run(config, out)
    meta, lines = json.loads(sidecar.read_text()), path.read_bytes().splitlines(keepends=True)
    assert meta['decode']['batch'] == 4
    for kept, done in ((10, 10), (9, 8), (7, 4), (3, 0)):
        path.write_bytes(b''.join(lines[:kept]))
        assert _predictions.Writer(out, meta).done == done
        assert not done or path.read_bytes() == b''.join(lines[:done])
