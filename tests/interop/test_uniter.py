"""UNITER's checkpoints, and BERT's, as the encoder of e-UG. The files are random, with the names of the real ones."""

import json
import types

import nets
import numpy as np
import original
import pytest
import torch
import transformers
from flax import nnx

from evil_jax.data import tokenizers
from evil_jax.interop import uniter, weights
from evil_jax.models import uniter as net

WORDS, WIDTH = 150, 32
SIZE = net.Size(layers=2, width=WIDTH, heads=4, hidden=4 * WIDTH, positions=30, std=0.1, word_std=0.1)
ENTRIES = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *(f'w{n}' for n in range(WORDS - 5))]
ASSETS = types.SimpleNamespace(word=tokenizers.WordTokenizer(ENTRIES))


def make(size=SIZE, words=WORDS, **settings):
    return nets.abstract(lambda: net.Uniter(size, words=words, rngs=nnx.Rngs(0), **(settings or {'answers': 3})))


def checkpoint(words=WORDS, types=2, heads=True, seed=3):
    """A state dict of UniterForPretraining, or of its second stage for VCR."""
    everything = original.random_state(
        width=WIDTH, heads=4, layers=2, blocks=0, words=words, positions=30, types=types, answers=3, tokens=9, rows=9,
        seed=seed,
    )  # fmt: skip
    start = 'encoder.model.'
    state = {name.removeprefix(start): x for name, x in everything.items() if name.startswith(start)}
    linear = lambda name, i, o: {f'{name}.weight': torch.randn(o, i), f'{name}.bias': torch.randn(o)}
    norm = lambda name: {f'{name}.weight': torch.randn(WIDTH), f'{name}.bias': torch.randn(WIDTH)}
    if heads:
        state |= {
            'uniter.img_embeddings.mask_embedding.weight': torch.randn(2, 2048),
            **linear('cls.predictions.transform.dense', WIDTH, WIDTH), **norm('cls.predictions.transform.LayerNorm'),
            'cls.predictions.decoder.weight': state['uniter.embeddings.word_embeddings.weight'],
            'cls.predictions.bias': torch.randn(words),
            'feat_regress.weight': state['uniter.img_embeddings.img_linear.weight'],
            'feat_regress.bias': torch.randn(2048), **linear('feat_regress.net.0', WIDTH, WIDTH),
            **norm('feat_regress.net.2'), **linear('region_classifier.net.0', WIDTH, WIDTH),
            **norm('region_classifier.net.2'), **linear('region_classifier.net.3', WIDTH, 1601),
            **linear('itm_output', WIDTH, 2),
        }  # fmt: skip
    return state


def saved(state, tmp_path, name='uniter-base.pt'):
    torch.save(state, tmp_path / name)
    return tmp_path / name


def without_head(shapes):
    return {path for path in shapes if not path.startswith('head')}


@pytest.mark.parametrize('wrap', [lambda name: name, lambda name: f'module.{name}', lambda name: name[7:]])
def test_a_checkpoint_gives_all_but_the_answer_head(tmp_path, wrap):
    state = checkpoint(heads=wrap('uniter.x') != 'x')  # bare names are those of the encoder alone
    model = make()
    found = uniter.load(saved({wrap(n): x for n, x in state.items()}, tmp_path), nets.shapes(model), ASSETS, SIZE)
    assert found.keys() == without_head(nets.shapes(model))
    for path, name in (
        ('text/word/embedding', 'embeddings.word_embeddings.weight'),
        ('image/location_norm/bias', 'img_embeddings.pos_layer_norm.bias'),
    ):
        np.testing.assert_array_equal(found[path], state[f'uniter.{name}'])
    name = 'uniter.encoder.layer.1.attention.self.value.weight'
    np.testing.assert_array_equal(found['layers/1/attention/value/kernel'], state[name].T)


def test_what_it_computes_is_what_the_oracle_computes(tmp_path):
    """The encoder's output within 1e-4 of PyTorch's, e-UG's answer head on top: the whole way of a checkpoint."""
    state = checkpoint()
    model = make()
    found = uniter.load(saved(state, tmp_path), nets.shapes(model), ASSETS)
    fresh = {path: np.zeros(leaf.shape, np.float32) for path, leaf in nets.shapes(model).items()}
    rng = np.random.default_rng(0)
    features, places = rng.exponential(0.5, (2, 3, 2048)).astype('f'), rng.random((2, 3, 7)).astype('f')
    texts = ['w3 w7 w11', 'w5 w1 w9']
    words = original.WordPiece(ENTRIES)
    theirs = original.Original(
        {f'encoder.model.{name}': x for name, x in state.items()}, words, None, heads=4, text_length=5
    )
    pooled, wanted = theirs.encode(texts, torch.tensor(features), torch.tensor(places))
    rows = [words.row(text, 5)[0] for text in texts]
    batch = {
        'text': np.array(rows), 'text_type': np.zeros((2, 5), int), 'text_length': np.array([5, 5]),
        'features': features, 'locations': places, 'region_length': np.array([3, 3]),
    }  # fmt: skip
    _, context = nnx.jit(lambda m, batch: m(batch))(nets.filled(model, fresh | found), batch)
    np.testing.assert_allclose(context.memory_BSD, wanted, atol=1e-4, rtol=0)
    np.testing.assert_allclose(context.pooled_BD, pooled, atol=1e-4, rtol=0)


@pytest.mark.parametrize('choices', [0, 4])
def test_the_vcr_checkpoint_loses_its_people_and_its_last_types(tmp_path, choices):
    state = checkpoint(WORDS + 81, types=4)
    model = make(choices=choices, types=3) if choices else make()
    found = uniter.load(saved(state, tmp_path, 'uniter-base-vcr_2nd_stage.pt'), nets.shapes(model), ASSETS)
    kinds, words = (state[f'uniter.embeddings.{name}_embeddings.weight'].numpy() for name in ('token_type', 'word'))
    np.testing.assert_array_equal(found['text/type/embedding'], kinds[: 3 if choices else 2])
    np.testing.assert_array_equal(found['text/word/embedding'], words[:WORDS])


def test_a_third_type_begins_as_the_first(tmp_path):
    state = checkpoint()
    found = uniter.load(saved(state, tmp_path), nets.shapes(make(choices=4, types=3)), ASSETS)
    kinds = state['uniter.embeddings.token_type_embeddings.weight'].numpy()
    np.testing.assert_array_equal(found['text/type/embedding'], kinds[[0, 1, 0]])


def test_saved_names_go_back_bit_for_bit_and_are_those_of_the_published_models(tmp_path):
    state = checkpoint()
    for settings in ({'answers': 3}, {'choices': 4, 'types': 2}):
        model = make(**settings)
        params = nets.random(model)
        there = uniter.save(params)
        heads = {name for name in there if not name.startswith('uniter.')}
        assert {name.split('.')[0] for name in heads} == {'logit_fc' if 'answers' in settings else 'vcr_fc'}
        encoder = {name: x for name, x in there.items() if name not in heads}
        wanted = {name: tuple(x.shape) for name, x in checkpoint(heads=False).items() if 'uniter.' in name}
        assert {name: x.shape for name, x in encoder.items()} == wanted
        weights.write(tmp_path / 'x.safetensors', encoder)
        back = uniter.load(tmp_path / 'x.safetensors', nets.shapes(model), ASSETS)
        assert back.keys() == without_head(params)
        assert all(x.tobytes() == params[path].tobytes() for path, x in back.items())
    found = uniter.load(saved(state, tmp_path), nets.shapes(make()), ASSETS)
    again = uniter.save(found)
    assert all(again[name].tobytes() == state[name].numpy().tobytes() for name in again)


def test_another_checkpoint_is_one_message(tmp_path):
    """Other word pieces, a layer more, half of another, an array of another shape, NaN, and what nobody knows."""
    state = checkpoint(WORDS + 80)
    for name in [name for name in state if '.layer.0.output.' in name]:
        del state[name]
    state['uniter.encoder.layer.2.output.dense.bias'] = torch.zeros(WIDTH)
    state['uniter.img_embeddings.pos_linear.weight'] = torch.zeros(WIDTH, 6)
    state['uniter.pooler.dense.bias'] = torch.full((WIDTH,), torch.nan)
    state['vqa_output.0.weight'] = torch.zeros(2, 2)
    with pytest.raises(ValueError) as error:
        uniter.load(saved(state, tmp_path), nets.shapes(make()), ASSETS)
    for part in (
        '/uniter-base.pt does not fit the model:\n  4 missing:\n', '.layer.0.output.LayerNorm.bias (layers/0/mlp',
        '  2 unexpected:\n    encoder.layer.2.output.dense.bias\n    vqa_output.0.weight\n', '  3 differing:\n',
        'img_embeddings.pos_linear.weight: (6, 32) as image/location/kernel, wanted (7, 32)',
        'pooler.dense.bias: holds NaN', 'embeddings.word_embeddings.weight: (230, 32) as text/word/embedding, wanted',
        'The vocabularies differ: 230 word pieces in the file, 150 in the data set.', '(of UNITER: bert-base-cased',
    ):  # fmt: skip
        assert part in str(error.value), part


def test_as_many_words_as_bert_base_cased_has_but_others(tmp_path):
    """A file shows only how many there are; the special ones betray another vocabulary."""
    size = net.Size(layers=1, width=4, heads=1, hidden=4, positions=4, std=0.1, word_std=0.1)
    shapes = nets.shapes(make(size, words=28_996))
    state = uniter.save({path: np.zeros(x.shape, np.float32) for path, x in shapes.items() if path[:4] != 'head'})
    path = saved({name: torch.tensor(x) for name, x in state.items()}, tmp_path)
    entries = [f'w{n}' for n in range(28_996)]
    for special, place in (('[PAD]', 0), ('[UNK]', 100), ('[CLS]', 101), ('[SEP]', 102)):
        entries[place] = special
    assets = lambda: types.SimpleNamespace(word=tokenizers.WordTokenizer(entries))
    assert uniter.load(path, shapes, assets())
    entries[1], entries[100] = entries[100], entries[1]
    with pytest.raises(
        ValueError, match=r"1 differing:\n    ids of special word pieces are .*'unk': 1, .* in bert-base"
    ):
        uniter.load(path, shapes, assets())


def test_it_may_start_from_bert_as_e_ug_did(tmp_path):
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, intermediate_size=4 * WIDTH,
        max_position_embeddings=30,
    )  # fmt: skip
    there = transformers.BertForPreTraining(config)
    there.save_pretrained(tmp_path)
    ASSETS.word.save(tmp_path)
    for model, kinds in ((make(), [0, 1]), (make(choices=4, types=3), [0, 1, 0])):
        found = uniter.load(tmp_path, nets.shapes(model), ASSETS, SIZE)
        fresh = {path.split('/')[0] for path in nets.shapes(model).keys() - found.keys()}
        assert fresh == {'image', 'head_vcr' if model.choices else 'head'}
        kind = there.bert.embeddings.token_type_embeddings.weight.detach().numpy()
        np.testing.assert_array_equal(found['text/type/embedding'], kind[kinds])
    heads = net.Size(layers=2, width=WIDTH, heads=8, hidden=4 * WIDTH, positions=30, std=0.1, word_std=0.1)
    with pytest.raises(ValueError, match=r'1 differing:\n    config\.json: num_attention_heads is 4, wanted 8'):
        uniter.load(tmp_path, nets.shapes(make(heads)), ASSETS, heads)
    document = json.loads((tmp_path / 'config.json').read_text())
    (tmp_path / 'config.json').write_text(json.dumps(document | {'layer_norm_eps': 1e-5}))
    with pytest.raises(ValueError, match=r'1 differing:\n    config\.json: layer_norm_eps is 1e-05, wanted 1e-12'):
        uniter.load(tmp_path, nets.shapes(make()), ASSETS, SIZE)
