"""--mode=attribute on a toy run: what it writes, and that a protocol goes on where it was interrupted."""

import json

import numpy as np
import pytest

from evil_jax.attribution import sanity
from evil_jax.data import load, pictures
from evil_jax.modes import _explainer, _faithfulness, _maps, attribute

BATCH = 4  # the last batch of ten examples is half empty


@pytest.fixture
def explain(toy, toy_run, tmp_path, monkeypatch):
    """`explain(**settings)` runs the mode on a copy's worth of the toy run; its results are below `explain.folder`."""
    monkeypatch.setattr(load, 'load_examples', lambda config, split: toy.make_examples())
    monkeypatch.setattr(load, 'open_inputs', lambda config: toy.make_reader())
    monkeypatch.setattr(load, 'open_store', lambda config: toy.make_reader())
    monkeypatch.setattr(load, 'images', lambda config: pictures.Images(None))
    monkeypatch.setattr(attribute.checkpoint, 'data_hash', lambda config: 'data')
    for name in ('assets', 'best', 'checkpoints', 'config.json'):
        if (toy_run / name).exists():
            (tmp_path / name).symlink_to(toy_run / name)

    more = {}

    def run(**settings):
        config = toy.make_config(**more)
        config.evaluate.bootstrap = 50
        config.attribute.update({'checkpoint': 'latest', 'batch': BATCH} | settings)
        return attribute.run(config, tmp_path)

    run.folder, run.config = tmp_path / 'attribute', lambda decode: more.update(decode)
    return run


def arrays(folder):
    with np.load(folder / 'attributions.npz') as file:
        return dict(file)


def test_a_split_becomes_numbers_and_a_page(explain, capsys):
    assert explain(method='generic') == {'examples': 10}
    found = arrays(explain.folder)
    assert found['id'].tolist() == [f'q{i}' for i in range(10)]
    assert found['kind'].shape == found['text_length'].shape == (10, 1)
    assert found['regions'].shape == (10, 1, 4)  # as many as a row has room for
    assert found['regions_length'][:4, 0].tolist() == [1, 2, 3, 4]
    for name in ('text', 'regions'):
        beyond = np.arange(found[name].shape[-1]) >= found[f'{name}_length'][..., None]
        assert not found[name][beyond].any()
        assert found[name].any()
    assert found['text_tokens'][0, 0, :4].tolist() == ['[CLS]', 'is', 'the', 'circle']
    assert found['boxes'].shape == (10, 4, 4) and found['size'].tolist() == [[120, 100]] * 10
    assert json.loads(str(found['settings']))['method'] == 'generic'
    assert found['gold'][:3].tolist() == ['red', 'blue', '']
    page = (explain.folder / 'attributions.html').read_text()
    assert 'circle' in page and 'q9' in page and 'no picture: set data.images' in page
    assert 'attributions.html' in capsys.readouterr().out


def test_tokens_have_maps_of_their_own(explain):
    explain(target='tokens', page_examples=2)
    found = arrays(explain.folder)
    assert found['kind'][0, 0] == 'answer' and found['kind'][0, 1] == 'token'
    said = (found['kind'] == 'token').sum(1)
    assert len(set(said.tolist())) > 1  # explanations of different lengths
    n = int(said.argmax())
    assert found['index'][n, 1 : 1 + said[n]].tolist() == list(range(said[n]))
    # A token sees those before it, and none behind.
    for k in range(said[n]):
        values = found['explanation'][n, 1 + k]
        assert not values[k + 1 :].any()
        assert values[:k].any() or not k
    assert not np.allclose(found['regions'][n, 1], found['regions'][n, 2])


def test_all_of_an_explanation_and_a_given_answer(explain):
    explain(target='explanation', limit=3)
    assert arrays(explain.folder)['kind'].tolist() == [['answer', 'explanation']] * 3
    explain(target='two', limit=3)
    assert arrays(explain.folder)['target'].tolist() == [['two']] * 3
    explain(target='#3', limit=3)
    assert arrays(explain.folder)['target'].tolist() == [['left side']] * 3
    with pytest.raises(ValueError, match=r"'rde', wanted predicted.* or one of 6 answers \(red, .*Did you mean 'red'"):
        explain(target='rde')


def test_methods_side_by_side(explain):
    explain(methods=('random', 'rollout'), target='least', limit=3)
    assert {p.name for p in explain.folder.glob('*.npz')} == {'attributions-random.npz', 'attributions-rollout.npz'}
    with np.load(explain.folder / 'attributions-rollout.npz') as file:
        answer = file['target'][0, 0]
        assert answer != file['predicted'][0]
    assert f'{answer}, by rollout' in (explain.folder / 'attributions.html').read_text()
    explain(method='random', limit=2)
    assert {p.name for p in explain.folder.glob('*.npz')} == {'attributions.npz'}  # nothing of an earlier run


def test_a_run_that_fails_leaves_what_was_there(explain, monkeypatch):
    explain(method='random', limit=2)
    before = arrays(explain.folder)
    monkeypatch.setattr(_maps, 'write', lambda *_: (_ for _ in ()).throw(OSError('disk full')))
    with pytest.raises(OSError, match='disk full'):
        explain(method='random', limit=3)
    assert arrays(explain.folder)['id'].tolist() == before['id'].tolist()


def test_explanations_of_the_gold_answer_are_explained_as_such(explain):
    explain(target='explanation', limit=6, method='random')
    predicted = arrays(explain.folder)
    explain.config(decode=dict(condition='gold'))
    explain(target='explanation', limit=6, method='random')
    found = arrays(explain.folder)
    known = found['gold'] != ''
    assert (found['target'][known, 0] == found['gold'][known]).all()
    assert (found['target'][~known, 0] == found['predicted'][~known]).all()
    assert (found['target'][:, 0] != predicted['target'][:, 0]).any()
    n = int(np.flatnonzero(known)[0])
    assert found['gold'][n].split()[0] in ''.join(found['answer_tokens'][n, 1])


def test_one_question(explain, capsys):
    explain(image='image1', text='how many squares are there ?', method='input_x_gradient')
    assert arrays(explain.folder / 'input')['regions_length'].tolist() == [[2]]
    assert 'answer:' in capsys.readouterr().out
    explain(image='image1', text='red ' * 30)
    assert 'the last 22 words are not read (data.max_text is 10): red red' in capsys.readouterr().out
    with pytest.raises(ValueError, match=r'there is no text: set --config\.attribute\.text'):
        explain(image='image1')
    with pytest.raises(ValueError, match=r'which picture\? Set --config\.attribute\.image'):
        explain(text='left ?')


def test_a_protocol_compares_methods(explain, capsys):
    numbers = explain(evaluate='perturbation', methods=('random', 'generic'), fractions=(0.5, 1.0))
    folder = explain.folder / 'perturbation'
    document = json.loads((folder / 'faithfulness.json').read_text())
    assert document['n'] == 10 and list(document['methods']) == ['random', 'generic']
    metric = document['methods']['generic']['metrics']['auc_positive']
    assert numbers['generic auc_positive'] == metric['value']
    assert metric['ci95'][0] <= metric['value'] <= metric['ci95'][1] and metric['better'] == 'lower'
    curve = document['methods']['generic']['curves']['positive']
    assert [x for x, _ in curve] == [0, 0.5, 1]
    # What is left when all is removed does not depend on the order.
    assert curve[-1] == document['methods']['random']['curves']['negative'][-1]
    assert all((folder / f'faithfulness.{ending}').stat().st_size for ending in ('html', 'csv', 'md', 'tex', 'svg'))
    assert 'generic' in capsys.readouterr().out


def test_an_interrupted_protocol_goes_on(explain, monkeypatch, capsys):
    settings = dict(evaluate='perturbation', methods=('random', 'rollout'), fractions=(0.5, 1.0))
    whole = explain(**settings)
    for path in (explain.folder / 'perturbation').iterdir():
        path.unlink()
    batches, seen = _explainer.Explainer.batches, []

    def cut(self, *args):
        for batch in batches(self, *args):
            seen.append(self.method)
            if seen.count('rollout') == 2:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(_faithfulness, '_EVERY', -1)  # every batch is saved
    with monkeypatch.context() as patch:
        patch.setattr(_explainer.Explainer, 'batches', cut)
        with pytest.raises(KeyboardInterrupt):
            explain(**settings)
    capsys.readouterr()
    assert explain(**settings) == whole
    told = capsys.readouterr().out
    assert 'random (1 of 2): 10 examples are there already' in told
    assert f'rollout (2 of 2): 10 examples, {BATCH} of them are there already' in told
    (explain.folder / 'perturbation/meta.json').rename(explain.folder / 'meta')
    with pytest.raises(ValueError, match=r'has results, but no meta\.json says what of'):
        explain(**settings)
    (explain.folder / 'meta').rename(explain.folder / 'perturbation/meta.json')
    with pytest.raises(ValueError, match=r"results of other settings:\n.*unit: 'region' there, 'token' here"):
        explain(**settings | {'unit': 'token'})


def test_sanity_checks(explain, monkeypatch):
    similarity, seen = sanity.similarity, []
    monkeypatch.setattr(
        sanity, 'similarity', lambda a, b, valid, *top: seen.append(valid) or similarity(a, b, valid, *top)
    )
    found = explain(evaluate='sanity', methods=('raw_attention', 'generic'))
    # All that a model reads but the class token, whose relevance is 0 whatever a map says.
    assert not any(valid[:, 0].any() for valid in seen) and all(valid[:, 1:].any(1).all() for valid in seen)
    assert found['raw_attention class_spearman'] == 1  # attention knows no class
    assert found['generic class_spearman'] < 1
    assert found['generic model_spearman'] < 0.9


@pytest.mark.parametrize(
    'settings, message',
    [
        (dict(method='genric'), "'genric'.*Did you mean 'generic'"),
        (dict(methods=('random', 'rolout'), evaluate='sanity'), "Did you mean 'rollout'"),
        (dict(evaluate='segmentation'), 'needs masks: of ImageNet-Segmentation'),
        (dict(evaluate='rationale'), "needs evidence in words, but example 'q0' has none"),
        (dict(evaluate='perturbation', target='tokens'), "explains answers, but attribute.target is 'tokens'"),
        (dict(evaluate='perturbation', unit='pixel'), "the batch has no 'images'"),
        (dict(evaluate='perturbation', unit='patch'), "the batch has no 'images'"),
        (dict(evaluate='perturbation', removal='fill'), 'fill.*slice, zero, mask'),
        (dict(evaluate='perturbation', fractions=('x',)), r"attribute\.fractions is \('x',\)"),
        (dict(evaluate='perturbation', method='generic'), r'wanted --config\.attribute\.methods='),
        (dict(evaluate='sanity', target='gold'), 'sanity explains the predicted answer'),
        (dict(text='red ?', image='image1', target='gold'), 'of one input nobody says which answer is right'),
        (dict(evaluate='perturbation', text='red ?'), 'names one input: leave one of them out'),
        (dict(rules='attnlrp', method='generic'), "rules 'attnlrp' are not for method 'generic'"),
        (dict(start_layer=7), 'start_layer is 7'),
        (dict(checkpoint='init'), r'model\.task\.init is empty'),
    ],
)
def test_errors(explain, settings, message):
    with pytest.raises(ValueError, match=message):
        explain(**settings)
