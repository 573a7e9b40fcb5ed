"""Token vectors of local folders equal the hidden states of transformers; what does not fit is refused in words."""

import json
import pathlib

import encoder_folders as folders
import numpy as np
import pytest
import torch
import transformers

from evil_jax.interop import _text_folder, encoder, weights
from evil_jax.metrics import resources

MAKE = {'bert': folders.bert, 'distilbert': folders.distilbert, 'roberta': folders.roberta}


@pytest.fixture(scope='module', params=MAKE)
def made(request, tmp_path_factory):
    """(folder, transformers' model, its tokeniser)."""
    folder = tmp_path_factory.mktemp(request.param)
    model = MAKE[request.param](folder)
    return folder, model, transformers.AutoTokenizer.from_pretrained(folder, use_fast=False)


def wanted(model, tokenizer, text, layer):
    ids = tokenizer.encode(text.strip(), truncation=True, max_length=tokenizer.model_max_length)
    with torch.no_grad():
        states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    return states[layer][0].numpy(), ids


@pytest.mark.parametrize('layer', range(folders.LAYERS + 1))
def test_every_layer_is_a_hidden_state_of_transformers(made, layer):
    folder, model, tokenizer = made
    embed = encoder.open_encoder(folder, layer)
    found = embed(folders.TEXTS)
    assert len(found) == len(folders.TEXTS)
    for text, (vectors, ids) in zip(folders.TEXTS, found):
        states, wanted_ids = wanted(model, tokenizer, text, layer)
        assert ids.tolist() == wanted_ids, text
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, states, atol=1e-5, rtol=0, err_msg=text)
        assert embed.special == (ids[0], ids[-1])
    assert embed.truncated == 1
    assert embed([]) == []


def test_a_saved_tokenizer_json_gives_the_same(made, tmp_path):
    folder, model, tokenizer = made
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / 'tokenizer.json').is_file() and not (tmp_path / 'vocab.txt').exists()
    ours, theirs = (encoder.open_encoder(path, 2)(folders.TEXTS) for path in (tmp_path, folder))
    for (vectors, ids), (others, other_ids) in zip(ours, theirs):
        assert ids.tolist() == other_ids.tolist()
        np.testing.assert_array_equal(vectors, others)


def test_vectors_depend_on_neither_order_nor_company(made):
    embed = encoder.open_encoder(made[0], 2)
    together = embed(folders.TEXTS)
    for text, (vectors, _) in zip(folders.TEXTS, together):
        np.testing.assert_allclose(embed([text])[0][0], vectors, atol=2e-6)
    first, second = embed(['the dog', 'the dog'])
    assert first[0] is second[0]  # equal texts are embedded once


def test_roberta_has_a_blank_before_every_text_unless_told_otherwise(tmp_path):
    folders.roberta(tmp_path, prefix=False)
    with_blank = encoder.open_encoder(tmp_path, 1)
    without = encoder.open_encoder(tmp_path, 1, prefix_space=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert with_blank(['the dog'])[0][1].tolist() == tokenizer.encode(' the dog')
    assert without(['the dog'])[0][1].tolist() == tokenizer.encode('the dog') != tokenizer.encode(' the dog')
    assert with_blank(['  '])[0][1].tolist() == tokenizer.encode('')
    assert with_blank.signature['tok'] == 'bpe(bytes)+blank' and without.signature['tok'] == 'bpe(bytes)'


def test_case_is_what_the_config_says_before_what_tokenizer_json_does(tmp_path):
    model = folders.distilbert(tmp_path)
    transformers.AutoTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path)
    lower = encoder.open_encoder(tmp_path, 0)(['The DOG'])[0][1].tolist()
    folders.edit(tmp_path, 'tokenizer_config.json', do_lower_case=False)
    embed = encoder.open_encoder(tmp_path, 0)
    assert embed(['The DOG'])[0][1].tolist() == [2, 1, 1, 3] != lower
    assert embed.signature['tok'] == 'wordpiece(mixed)'
    assert model is not None


def test_what_is_not_needed_need_not_be_there_and_is_not_looked_at(tmp_path):
    folders.bert(tmp_path, kind=transformers.BertForSequenceClassification)
    whole = encoder.open_encoder(tmp_path, 1)(['a dog'])[0][0]
    path = tmp_path / 'model.safetensors'
    there = weights.read(path)
    assert any(name.startswith('bert.encoder.layer.2.') for name in there) and 'classifier.weight' in there
    kept = {n: x for n, x in there.items() if '.layer.0.' in n or 'embeddings' in n} | {'other.head': np.ones(3)}
    torch.save({name: torch.from_numpy(np.array(x)) for name, x in kept.items()}, tmp_path / 'pytorch_model.bin')
    path.unlink()
    np.testing.assert_array_equal(encoder.open_encoder(tmp_path, 1)(['a dog'])[0][0], whole)
    with pytest.raises(ValueError, match='missing') as error:
        encoder.open_encoder(tmp_path, 2)
    assert 'encoder.layer.1.' in str(error.value) and 'pooler' not in str(error.value)


def test_a_name_of_the_used_part_that_has_no_row_is_refused(tmp_path):
    folders.bert(tmp_path)
    path = tmp_path / 'model.safetensors'
    weights.write(path, weights.read(path) | {'encoder.layer.0.adapter.weight': np.ones(3, np.float32)})
    with pytest.raises(ValueError, match=r'unexpected(.|\n)*encoder.layer.0.adapter.weight'):
        encoder.open_encoder(tmp_path, 1)


def test_the_signature_tells_models_apart(tmp_path):
    for name in ('one', 'two', 'models--some--body/snapshots/a1b2'):
        (tmp_path / name).mkdir(parents=True)
        folders.distilbert(tmp_path / name)
    assert encoder.open_encoder(tmp_path / name, 1).signature['model'] == 'some/body'
    path = tmp_path / 'two' / 'model.safetensors'
    there = weights.read(path)
    weights.write(path, there | {'embeddings.LayerNorm.bias': there['embeddings.LayerNorm.bias'] + 1})
    one, two = (encoder.open_encoder(tmp_path / name, 1).signature for name in ('one', 'two'))
    assert (one['model'], one['layer'], one['arch'], one['tok']) == ('one', '1', 'distilbert', 'wordpiece(lower)')
    assert len(one['weights']) == 12 and one['weights'] != two['weights']


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'hidden_act': 'relu'}, "hidden_act is 'relu', wanted 'gelu'"),
        ({'position_embedding_type': 'relative_key'}, 'position_embedding_type'),
        ({'is_decoder': True}, 'is_decoder'),
        ({'num_attention_heads': 5}, 'not a multiple of 5 heads'),
        ({'hidden_size': 48}, 'wanted'),
        ({'vocab_size': 'many'}, "vocab_size is 'many'"),
        ({'vocab_size': 8}, 'tokeniser has 31 entries, the model 8 words'),
        ({'layer_norm_eps': 'small'}, 'layer_norm_eps'),
        ({'model_type': 'gpt2'}, "of a 'gpt2', wanted one of bert, distilbert, roberta"),
        ({'model_type': None, 'architectures': ['T5Model']}, 't5model'),
        ({'num_hidden_layers': 1}, 'it has 1 layers, wanted layer 2 of 0 ... 1'),
    ],
)
def test_another_configuration_is_refused(tmp_path, changes, message):
    folders.bert(tmp_path)
    folders.edit(tmp_path, **changes)
    with pytest.raises(ValueError, match='(?s)' + message.replace('...', r'\.\.\.')):
        encoder.open_encoder(tmp_path, 2)


def test_a_config_of_the_first_years_says_its_kind_by_its_architecture(tmp_path):
    folders.bert(tmp_path)
    folders.edit(tmp_path, model_type=None, architectures=['BertForMaskedLM'])
    assert encoder.open_encoder(tmp_path, 1).signature['arch'] == 'bert'


def test_what_is_missing_makes_the_metric_unavailable(tmp_path):
    with pytest.raises(resources.Unavailable, match=r'evaluate\.bertscore\.encoder'):
        encoder.open_encoder('')
    with pytest.raises(resources.Unavailable, match='nowhere'):
        encoder.open_encoder(tmp_path / 'nowhere')
    folders.bert(tmp_path)
    for name in ('model.safetensors', 'vocab.txt', 'config.json'):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        with pytest.raises(resources.Unavailable, match=pathlib.Path(name).stem):
            encoder.open_encoder(tmp_path, 1)
        (tmp_path / name).write_bytes(content)
    assert encoder.open_encoder(tmp_path, 1)


def test_files_of_another_kind_are_refused_by_name(tmp_path):
    folders.bert(tmp_path)
    (tmp_path / 'tokenizer.json').write_text('{}')
    with pytest.raises(ValueError, match=r'tokenizer\.json: not a tokeniser'):
        encoder.open_encoder(tmp_path, 1)
    (tmp_path / 'tokenizer.json').unlink()
    (tmp_path / 'added_tokens.json').write_text(json.dumps({'zebra': 77}))
    with pytest.raises(ValueError, match=r"added_tokens\.json: 'zebra' is 77"):
        encoder.open_encoder(tmp_path, 1)
    (tmp_path / 'added_tokens.json').write_text(json.dumps({'zebra': 31}))
    assert encoder.open_encoder(tmp_path, 1)(['a zebra'])[0][1].tolist() == [2, 5, 31, 3]


def test_batches_hold_every_text_once_and_about_as_many_tokens():
    lengths = np.random.default_rng(0).integers(2, 90, 1_000)
    seen = []
    for rows, size, count in _text_folder.batches(lengths, 1_536, 512):
        assert len(rows) <= count and lengths[rows].max() <= size <= 1.2 * lengths[rows].max() + 4
        assert size * count <= 1_536
        seen += rows
    assert sorted(seen) == list(range(1_000))
    shapes = {(size, count) for _, size, count in _text_folder.batches(lengths, 1_536, 512)}
    assert len(shapes) <= 16
    assert list(_text_folder.batches([700, 3], 512, 512)) == [([0], 700, 1), ([1], 4, 128)]
