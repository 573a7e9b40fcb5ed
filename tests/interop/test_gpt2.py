"""GPT-2 and its family: names both ways, vocabularies, config files, and what GPT2LMHeadModel computes of an export."""

import dataclasses
import json
import types

import nets
import numpy as np
import pytest
import torch
import transformers
from flax import nnx

from evil_jax.data import tokenizers
from evil_jax.interop import gpt2, weights
from evil_jax.models import gpt2 as net
from evil_jax.models.context import Context

SIZE = net.Size(layers=2, width=24, heads=4, positions=48, std=0.2)
TEXTS = ['The man waits because the boat is late.', 'Two dogs are on the red boat', 'a man with a red hat']


@pytest.fixture(scope='module')
def assets(tmp_path_factory):
    return types.SimpleNamespace(expl=tokenizers.train_expl(TEXTS, tmp_path_factory.mktemp('bpe'), size=300))


def make(assets, size=SIZE, first_words=False):
    expl = assets.expl
    kinds = (0, 1, 2, 3) if first_words else expl.type_ids
    markers = net.Markers(expl.id('<|b_img|>'), expl.id('<|e_img|>'), expl.id('<|b_rtnl|>'), kinds)
    rows = expl.size if first_words else expl.rows
    return nets.abstract(lambda: net.Gpt2(size, rows=rows, markers=markers, rngs=nnx.Rngs(0)))


def theirs(kind, size=SIZE, rows=300, seed=0, **settings):
    """A model of transformers with random values everywhere, also in biases and norms."""
    torch.manual_seed(seed)
    config = transformers.GPT2Config(**gpt2.hf_config(size, rows) | settings, attn_implementation='eager')
    model = kind(config).eval()
    with torch.no_grad():
        for x in model.parameters():
            x.add_(0.1 * torch.randn(x.shape))
    return model


def plain(assets):
    return len(assets.expl.vocabulary)


def test_a_published_file_with_and_without_prefix_buffers_and_output_layer(assets, tmp_path):
    there = theirs(transformers.GPT2LMHeadModel, rows=plain(assets))
    there.save_pretrained(tmp_path)
    shapes = nets.shapes(make(assets))
    found = gpt2.load(tmp_path, shapes, assets, SIZE)
    assert found.keys() == shapes.keys()
    words = found[gpt2.WTE]
    assert words.shape == (plain(assets), 24) and plain(assets) < assets.expl.size < shapes[gpt2.WTE].shape[0]
    np.testing.assert_array_equal(words, there.transformer.wte.weight.detach())
    fused = there.transformer.h[1].attn.c_attn.weight.detach().numpy()
    np.testing.assert_array_equal(found['layers/1/attention/value/kernel'], fused[:, 48:])
    np.testing.assert_array_equal(found['layers/0/mlp/up/kernel'], there.transformer.h[0].mlp.c_fc.weight.detach())

    state = there.state_dict()
    assert 'lm_head.weight' in state
    bare = {name.removeprefix('transformer.'): x for name, x in state.items() if name != 'lm_head.weight'}
    bare |= {f'h.{n}.attn.bias': torch.ones(1, 1, 48, 48).tril().bool() for n in range(2)}
    bare |= {f'h.{n}.attn.masked_bias': torch.tensor(-1e4) for n in range(2)}
    for number, content in enumerate((state, bare)):
        torch.save(content, tmp_path / f'{number}.bin')
        again = gpt2.load(tmp_path / f'{number}.bin', shapes, assets)
        assert again.keys() == found.keys() and all(again[p].tobytes() == x.tobytes() for p, x in found.items())

    state['lm_head.weight'] = state['lm_head.weight'] + 1
    torch.save(state, tmp_path / 'untied.bin')
    with pytest.raises(ValueError, match=r'1 differing:\n    lm_head\.weight: other values than wte\.weight'):
        gpt2.load(tmp_path / 'untied.bin', shapes, assets)


@pytest.mark.parametrize('first_words', [False, True])
def test_a_saved_model_is_one_of_transformers(assets, tmp_path, first_words):
    """GPT2LMHeadModel(token_type_ids=...) gives our logits; the file goes back bit for bit."""
    expl, model = assets.expl, make(assets, first_words=first_words)
    params = nets.random(model, std=0.3)
    rows = expl.size if first_words else expl.rows
    assert rows < len(params[gpt2.WTE])
    state = gpt2.save(params, rows)
    weights.write(tmp_path / 'model.safetensors', state)
    (tmp_path / 'config.json').write_text(json.dumps(gpt2.hf_config(SIZE, rows, expl.end_of_text)))
    there, info = transformers.GPT2LMHeadModel.from_pretrained(
        tmp_path, output_loading_info=True, attn_implementation='eager'
    )
    assert not any(info.values()), info
    bare = transformers.GPT2Model(there.config)
    bare.load_state_dict({n: torch.from_numpy(x) for n, x in gpt2.save(params, rows, '').items()}, strict=True)

    memory = np.random.default_rng(1).standard_normal((1, 2, 24)).astype(np.float32)
    pieces = [
        [expl.id('<|b_img|>'), 0, 0, expl.id('<|e_img|>')], expl.piece('qn', 'the red boat', 19)[0],
        expl.piece('ans', 'late', 9)[0], expl.piece('rtnl', 'a man waits', 9)[0],
    ]  # fmt: skip
    kinds = model.markers.types
    ids = torch.tensor([[i for piece in pieces for i in piece]])
    types_ = torch.tensor([[kinds[n] for n, piece in enumerate(pieces) for _ in piece]])
    with torch.no_grad():
        seen = there.transformer.wte(ids)
        seen[:, 1:3] = torch.from_numpy(memory)
        wanted = there(inputs_embeds=seen, token_type_ids=types_).logits[0, -len(pieces[3]) :]
    row = lambda piece: (np.array([piece]), np.array([len(piece)]))
    batch = dict(zip(('question', 'question_length'), row(pieces[1])))
    condition = types.SimpleNamespace(**dict(zip(('tokens_BT', 'length_B'), row(pieces[2]))))
    context = Context(memory, np.array([2]), memory[:, 0], {})
    full = nets.filled(model, params)
    logits = np.asarray(nnx.jit(lambda m: m(batch, context, condition, np.array([pieces[3]])))(full))
    np.testing.assert_allclose(logits[0, :, :rows], wanted, atol=1e-4, rtol=0)
    assert (logits[0, :, rows:] == -1e9).all()

    back = gpt2.load(tmp_path, nets.shapes(model), assets, SIZE)
    assert back.pop(gpt2.WTE).tobytes() == params[gpt2.WTE][:rows].tobytes()
    assert all(x.tobytes() == params[path].tobytes() for path, x in back.items()) and len(back) == len(params) - 1


def test_saving_needs_all_its_rows(assets):
    params = nets.random(make(assets))
    with pytest.raises(ValueError, match=r'the word table has 384 rows, wanted at least 400'):
        gpt2.save(params, 400)
    del params['layers/0/attention/key/bias']
    with pytest.raises(ValueError, match=r'transformer\.h\.0\.attn\.c_attn\.bias: is taken for .*wanted 3 parts'):
        gpt2.save(params, 300)


def test_another_member_of_the_family_is_one_message(assets, tmp_path):
    """medium for base: layers, width, heads and positions, vocabulary, and half of it absent."""
    other = dataclasses.replace(SIZE, layers=3, width=40, heads=5, positions=64)
    there = theirs(transformers.GPT2LMHeadModel, other, plain(assets) + 9, activation_function='relu')
    state = {name: x for name, x in there.state_dict().items() if '.mlp.' not in name}
    weights.write(tmp_path / 'model.safetensors', {n: x.numpy() for n, x in state.items() if n != 'lm_head.weight'})
    (tmp_path / 'config.json').write_text(there.config.to_json_string())
    with pytest.raises(ValueError) as error:
        gpt2.load(tmp_path, nets.shapes(make(assets)), assets, SIZE)
    for part in (
        f'{tmp_path} does not fit the model:\n  8 missing:\n    h.*.mlp.c_proj.bias (layers/*/mlp/down/bias), * = 0 ',
        'unexpected:\n    h.2.attn.c_attn.bias', 'config.json: n_layer is 3, wanted 2',
        'config.json: n_embd is 40, wanted 24', 'config.json: n_head is 5, wanted 4',
        'config.json: n_positions is 64, wanted 48', "config.json: activation_function is 'relu', wanted 'gelu_new'",
        f'wte.weight: ({plain(assets) + 9}, 40) as wte/embedding, wanted ({plain(assets)}, 24)',
        'ln_f.bias: (40,) as norm/bias, wanted (24,)',
        f'The vocabularies differ: {plain(assets) + 9} tokens in the file; the data set has {plain(assets)}, '
        f'{assets.expl.size} with its 63 markers, {assets.expl.rows} with type rows.',
    ):  # fmt: skip
        assert part in str(error.value), part


def test_a_file_with_the_markers(assets, tmp_path):
    for rows in (assets.expl.size, assets.expl.rows):
        theirs(transformers.GPT2LMHeadModel, rows=rows).save_pretrained(tmp_path)
        assert len(gpt2.load(tmp_path, nets.shapes(make(assets)), assets, SIZE)[gpt2.WTE]) == rows


def folder(assets, tmp_path, tokens='transformers'):
    """A folder of weights with a tokenizer."""
    theirs(transformers.GPT2LMHeadModel, rows=plain(assets)).save_pretrained(tmp_path)
    if tokens == 'openai':
        tokens = assets.expl.save(tmp_path)
        for old, new in (('vocab.json', 'encoder.json'), ('merges.txt', 'vocab.bpe')):
            (tmp_path / old).rename(tmp_path / new)
    elif tokens == 'transformers':
        assets.expl.save(tmp_path / 'raw')
        transformers.GPT2Tokenizer.from_pretrained(tmp_path / 'raw').save_pretrained(tmp_path)
        assert (tmp_path / 'tokenizer.json').is_file() and not (tmp_path / 'vocab.json').exists()
    else:
        assets.expl.save(tmp_path)
    return tmp_path


@pytest.mark.parametrize('tokens', ['transformers', 'files', 'openai'])
def test_the_tokens_of_a_folder_have_to_be_ours(assets, tmp_path, tokens):
    path, shapes = folder(assets, tmp_path, tokens), nets.shapes(make(assets))
    assert gpt2.load(path, shapes, assets, SIZE)
    longer = tokenizers.train_expl([*TEXTS, 'zebra zebra zebra crossing'] * 3, tmp_path / 'other', size=plain(assets))
    assert len(longer.vocabulary) == plain(assets)
    with pytest.raises(
        ValueError, match=r'1 differing:\n    .*: its tokens are 300, those of the data set \(data\.expl'
    ):
        gpt2.load(path, shapes, types.SimpleNamespace(expl=longer), SIZE)
    swapped = (*assets.expl.merges[:-2], assets.expl.merges[-1], assets.expl.merges[-2])
    other = tokenizers.ExplTokenizer(assets.expl.vocabulary, swapped)
    with pytest.raises(ValueError, match=r'the same tokens as in data\.expl_vocab, but other merges'):
        gpt2.load(path, shapes, types.SimpleNamespace(expl=other), SIZE)


def test_markers_may_be_among_the_tokens_of_a_folder(assets, tmp_path):
    path, shapes, expl = folder(assets, tmp_path), nets.shapes(make(assets)), assets.expl
    content = json.loads((path / 'tokenizer.json').read_text())
    add = lambda token, n: content['added_tokens'].append(content['added_tokens'][0] | {'content': token, 'id': n})
    for token in tokenizers.SPECIALS:
        add(token, expl.id(token))
    add('<type 0>', expl.type_ids[0])
    (path / 'tokenizer.json').write_text(json.dumps(content))
    assert gpt2.load(path, shapes, assets, SIZE)
    add('<|b_qn|>', expl.id('<|b_qn|>') + 1)
    (path / 'tokenizer.json').write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"1 differ: '<\|b_qn\|>' is "):
        gpt2.load(path, shapes, assets, SIZE)
    for content in ('{}', '{"model": {"type": "WordPiece", "vocab": {}}}', '{"model": {"vocab": {"a": "b"}}}', '['):
        (path / 'tokenizer.json').write_text(content)
        with pytest.raises(ValueError, match=r'tokenizer\.json: '):
            gpt2.load(path, shapes, assets, SIZE)
    assets.expl.save(path)
    (path / 'merges.txt').unlink()
    with pytest.raises(ValueError, match=r'vocab\.json has no merges\.txt beside it'):
        gpt2.load(path, shapes, assets, SIZE)
