"""One question at the terminal: what is printed and returned, where regions come from, and the errors."""

import io
import sys

import pytest

from evil_jax.data import features, load
from evil_jax.modes import decode, predict


@pytest.fixture(scope='module')
def compiled(toy, toy_run):
    """{condition: (decoder, params)}, so that each is compiled once."""
    found = {}

    def load_trained(config, workdir, folder, load_trained=decode.load_trained):
        if config.decode.condition not in found:
            found[config.decode.condition] = load_trained(config, workdir, folder)
        return found[config.decode.condition]

    return load_trained


@pytest.fixture
def ask(toy, toy_run, compiled, monkeypatch):
    """Function: predict settings -> what `run` returns."""
    monkeypatch.setattr(decode, 'load_trained', compiled)
    monkeypatch.setattr(load, 'open_store', lambda config: toy.make_reader())

    def run(workdir=toy_run, **settings):
        config = toy.make_config()
        config.predict.update({'question': toy.TEXTS[0], 'checkpoint': 'latest'} | settings)
        return predict.run(config.lock(), workdir)

    return run


def test_prints_answer_and_explanation(ask, toy, toy_run, compiled, capsys):
    numbers = ask(image_id='image1')
    text = capsys.readouterr().out
    decoder, params = compiled(toy.make_config(), toy_run, None)
    example = toy.make_examples(1)[0]
    example.image_id = 'image1'
    wanted = next(decoder.predictions(params, [example], toy.make_reader()))[0]
    assert numbers['probability'] == pytest.approx(wanted.answer_scores[wanted.answer], abs=1e-5)
    assert numbers['explanation_tokens'] >= len(wanted.explanation_ids) and numbers['explanation_score'] < 0
    for part in (toy.TEXTS[0], 'image1', 'because', *wanted.answer_scores):
        assert part in text
    assert f'{wanted.answer_scores[wanted.answer]:.1%}' in text


def test_a_model_that_chooses_is_refused(toy, toy_run):
    config = toy.make_config()
    config.data.choices = 4
    with pytest.raises(ValueError, match=r'takes one of 4 choices of an example \(data.choices\): use --mode=decode'):
        predict.run(config.lock(), toy_run)


def test_another_answer_may_be_explained(ask, capsys):
    plain = ask(image_id='image1')
    given = ask(image_id='image1', answer='two')
    assert 'why two' in capsys.readouterr().out
    assert given['probability'] == pytest.approx(plain['probability'])
    assert given['explanation_score'] != plain['explanation_score']


def test_a_model_that_only_answers_says_so(ask, capsys, monkeypatch):
    prediction = decode.Decoder.prediction
    without = lambda self, example, found: prediction(self, example, {k: x for k, x in found.items() if k != 'tokens'})
    monkeypatch.setattr(decode.Decoder, 'prediction', without)
    assert ask(image_id='image1', answer='two').keys() == {'probability'}
    assert 'The model only answers: it cannot explain two' in ' '.join(capsys.readouterr().out.split())
    ask(image_id='image1')
    assert 'only answers' not in capsys.readouterr().out


def test_a_features_file_of_one_image_needs_no_id(ask, toy, monkeypatch):
    one = toy.Reader(image2=toy.make_reader()['image2'])
    monkeypatch.setattr(features, 'open_features', {'one.tsv': one, 'all.tsv': toy.make_reader()}.get)
    assert ask(features='one.tsv') == ask(image_id='image2') == ask(features='all.tsv', image_id='image2')
    with pytest.raises(ValueError, match=r'all\.tsv holds 4 images.*image0, image1, image2, image3'):
        ask(features='all.tsv')


def test_brackets_are_text(ask, capsys):
    ask(image_id='image0', question='is [/] the [bold]circle[/bold] red ?')
    assert '[/] the [bold]circle[/bold]' in capsys.readouterr().out


def test_a_long_question_is_cut_and_said_so(ask, capsys):
    ask(image_id='image0', question='red ' * 30)
    assert 'cut to 10 word pieces' in capsys.readouterr().out


@pytest.mark.parametrize(
    'settings, message',
    [
        (dict(image_id='photo.jpg'), r"picture 'photo\.jpg', but this model reads region.*with --config\.build\.backb"),
        (dict(features='a/photo.PNG'), r"picture 'a/photo\.PNG'.*predict\.features"),
        (dict(), r'which picture\?'),
        (dict(image_id='image9'), "no regions of image 'image9'"),
        (dict(image_id='image0', question=' '), r'no question: set --config\.predict\.question'),
        (dict(image_id='image0', answer='purple'), "'purple' is not one of the 6 answers"),
    ],
)
def test_errors(ask, settings, message, monkeypatch):
    monkeypatch.setattr(sys, 'stdin', io.StringIO('never read'))
    with pytest.raises(ValueError, match=message):
        ask(**settings)


def test_without_a_checkpoint_it_says_to_train(ask, tmp_path):
    with pytest.raises(ValueError, match='Train first: --mode=train'):
        ask(tmp_path, image_id='image0')


def test_asks_at_a_terminal(ask, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, 'stdin', Terminal('how many squares ?\n'))
    assert ask(image_id='image0', question='')['probability'] > 0
    assert 'how many squares ?' in capsys.readouterr().out
