"""Our model's answers to edited questions: each as if it were asked alone, each pair once, in the order of the rows."""

import itertools
import json

import pytest

from evil_jax.counterfactual import exchange
from evil_jax.counterfactual.edits import Edit
from evil_jax.data import load, text_lengths, tokenizers
from evil_jax.modes import _answering, _predictions, decode
from evil_jax.records import Example, Prediction

CHUNK = 12


def edit_of(example, family, text):
    return Edit(
        id=f'{example.id}#{family}', example_id=example.id, image_id=example.image_id, family=family,
        original=example.text, text=text, span=(0, len(example.text)), target_span=(0, len(text)), source='', target='',
    )  # fmt: skip


@pytest.fixture(scope='module')
def model_of():
    """`_answering._Model`, of each decoding method compiled once."""
    made, real = {}, _answering._Model

    def make(config, *more):
        model = made.setdefault(config.decode.method, None) or real(config, *more)
        made[config.decode.method], model.cut = model, 0
        return model

    return make


@pytest.fixture
def job(toy, toy_run, model_of, tmp_path, monkeypatch):
    """`run(**decode settings)` -> (what `answer` tells, predictions); `run.asked` are the questions."""
    data = tmp_path / 'data'
    data.mkdir()
    (data / 'x').write_text('x')
    monkeypatch.setattr(load, 'folder', lambda config: data)
    monkeypatch.setattr(load, 'built', lambda config: {'settings': load.settings(config)})
    monkeypatch.setattr(load, 'heeded', lambda config: {})
    monkeypatch.setattr(_answering, 'CHUNK', CHUNK)
    monkeypatch.setattr(_answering, '_Model', model_of)
    examples = toy.make_examples()
    texts = itertools.cycle(toy.TEXTS)
    edits = lambda e: [edit_of(e, family, next(texts)) for family in ('hypernym', 'sibling')]
    beside = lambda e, _: [edit_of(e, family, e.text) for family in ('noop', 'blank', 'repeat')]

    def run(**settings):
        config = toy.make_config(**{'batch': 4} | settings)
        config.counterfactual.checkpoint = 'latest'
        told = _answering.answer(config, toy_run, tmp_path, run.asked, toy.make_reader(), examples, 'test')
        return told, [Prediction.from_json(json.loads(line)) for line in told['path'].read_text().splitlines()]

    run.asked = exchange.write(tmp_path / 'asked', examples, edits, beside)
    return run


def alone(toy, toy_run, rows, **settings):
    """The answers to rows one by one, each in a row of the full length."""
    config = toy.make_config(**settings)
    config.data.regions = 'zero' if rows[0].get('image') == 'blank' else 'detected'
    decoder, params = decode.load_trained(config, toy_run, decode.find_checkpoint(toy_run, 'latest'))
    examples = [Example(id=row['id'], image_id=row['image_id'], text=row['text']) for row in rows]
    return itertools.chain.from_iterable(decoder.predictions(params, examples, toy.make_reader()))


def longer(toy_run, text) -> bool:
    return text_lengths.length('text', text, tokenizers.load_assets(toy_run / 'assets')) > 10


def test_every_row_is_answered_as_if_alone_and_every_pair_once(job, toy, toy_run, monkeypatch):
    monkeypatch.setattr(decode, '_check_config', lambda *_: None)  # the toy run was trained with regions
    told, predictions = job()
    rows = list(job.asked.rows())
    assert [p.id for p in predictions] == [row['id'] for row in rows] and len(rows) == told['asked'] == 60
    chunks = [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]
    different = [{(row['image_id'], row['text'], row.get('image')) for row in chunk} for chunk in chunks]
    assert told['answered'] == sum(map(len, different)) < len(rows)
    assert told['cut'] == sum(longer(toy_run, text) for chunk in different for _, text, _ in chunk) > 0
    said = {p.id: p for p in predictions}
    for group in ([row for row in rows if ('image' in row) == blank] for blank in (False, True)):
        for row, wanted in zip(group, alone(toy, toy_run, group, batch=1), strict=True):
            found = said[row['id']]
            assert (found.answer, found.explanation) == (wanted.answer, wanted.explanation), row
            assert found.answer_scores == pytest.approx(wanted.answer_scores, abs=1e-5)
    blank = [said[f'q{i}#blank'].answer_scores != said[f'q{i}'].answer_scores for i in range(10)]
    assert all(blank)
    for i in range(10):
        assert said[f'q{i}#noop'].answer_scores == said[f'q{i}#repeat'].answer_scores == said[f'q{i}'].answer_scores


def test_a_repeated_question_is_sampled_anew(job):
    _, predictions = job(method='sample', temperature=3.0)
    said = {p.id: p.explanation for p in predictions}
    assert any(said[f'q{i}#repeat'] != said[f'q{i}'] for i in range(10))
    assert all(said[f'q{i}#noop'] == said[f'q{i}'] for i in range(10))


def test_what_was_interrupted_goes_on_at_the_unfinished_chunk(job, tmp_path, monkeypatch):
    append = _predictions.Writer.append
    calls = []

    def limited(self, predictions):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(len(predictions))
        append(self, predictions)

    monkeypatch.setattr(_predictions.Writer, 'append', limited)
    with pytest.raises(KeyboardInterrupt):
        job()
    path = tmp_path / 'predictions.jsonl'
    with open(path, 'a') as file:
        file.write('{"id": "q4", "answ')
    monkeypatch.setattr(_predictions.Writer, 'append', append)
    told, predictions = job()
    rows = list(job.asked.rows())
    assert [p.id for p in predictions] == [row['id'] for row in rows]
    left = rows[2 * CHUNK :]
    assert told['answered'] <= len(left)
    path.unlink()
    assert [p.to_json() for p in job()[1]] == [p.to_json() for p in predictions]
    assert job()[0]['answered'] == 0


def test_answers_to_other_questions_are_refused(job, toy, tmp_path):
    job()
    edits = lambda e: [edit_of(e, 'hypernym', 'the two squares')]
    job.asked = exchange.write(tmp_path / 'asked', toy.make_examples(), edits)
    with pytest.raises(ValueError, match=r'predictions\.jsonl was decoded with other settings:\n.*asked'):
        job()
