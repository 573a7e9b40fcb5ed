"""Tiny Hugging Face folders with random weights, as transformers writes them."""

import json

import tokenizers
import torch
import transformers
from tokenizers import models, pre_tokenizers, trainers

WORDS = [
    *'abcde',
    *['the', 'dog', 'cat', 'runs', 'because', 'sits', 'is', 'are', 'two', 'red', '##s', '##ing', 'un', '##do'],
    *".,'é狗!?",
]
LAYERS = 3
TEXTS = [
    'the dog runs', 'The DOGs are running, because two cats sit.', 'a', '', '   ', ' a  cat ', "it's a\nred dog\t!",
    'the 狗 is réd é', 'undo the [SEP] dog [MASK]', 'a b c d e ' * 30, '|||', 'dog dog dog', 'the cat </s>',
]  # fmt: skip


def _random(model, folder):
    torch.manual_seed(1)
    with torch.no_grad():
        for x in model.parameters():
            x.add_(0.2 * torch.randn(x.shape))
    model.eval().save_pretrained(folder)
    return model


def words(folder, *, lower=True, longest=40):
    """vocab.txt and tokenizer_config.json."""
    entries = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *WORDS]
    (folder / 'vocab.txt').write_text('\n'.join(entries) + '\n', encoding='utf-8')
    stated = {'do_lower_case': lower, 'model_max_length': longest, 'tokenizer_class': 'BertTokenizer'}
    (folder / 'tokenizer_config.json').write_text(json.dumps(stated))


def distilbert(folder, kind=transformers.DistilBertModel, settings=(), **tokens):
    """DistilBERT, with whatever head `kind` has; the model."""
    config = transformers.DistilBertConfig(
        vocab_size=40, dim=24, n_layers=LAYERS, n_heads=4, hidden_dim=40, max_position_embeddings=40,
        **dict(settings),
    )  # fmt: skip
    words(folder, **tokens)
    return _random(kind(config), folder)


def bert(folder, kind=transformers.BertModel, **settings):
    """BERT, with whatever head `kind` has; the model."""
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=24, num_hidden_layers=LAYERS, num_attention_heads=4, intermediate_size=40,
        max_position_embeddings=48, layer_norm_eps=1e-6, **settings,
    )  # fmt: skip
    words(folder)
    return _random(kind(config), folder)


def roberta(folder, kind=transformers.RobertaModel, *, prefix=True, **settings):
    """RoBERTa with vocab.json and merges.txt; the model. `prefix`: add_prefix_space of the tokeniser."""
    special = ['<s>', '<pad>', '</s>', '<unk>', '<mask>']
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=alphabet, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(['the dog runs because two cats are red'] * 9, trainer)
    found = json.loads(tokenizer.to_str())['model']
    (folder / 'vocab.json').write_text(json.dumps(found['vocab']), encoding='utf-8')
    merges = '\n'.join(' '.join(pair) for pair in found['merges'])
    (folder / 'merges.txt').write_text(f'#version: 0.2\n{merges}\n', encoding='utf-8')
    stated = {'tokenizer_class': 'RobertaTokenizer', 'model_max_length': 62, 'add_prefix_space': prefix}
    (folder / 'tokenizer_config.json').write_text(json.dumps(stated))
    config = transformers.RobertaConfig(
        vocab_size=len(found['vocab']), hidden_size=24, num_hidden_layers=LAYERS, num_attention_heads=4,
        intermediate_size=40, max_position_embeddings=64, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5,
        **settings,
    )  # fmt: skip
    return _random(kind(config), folder)


def edit(folder, name='config.json', **changes):
    """Changes entries of a JSON file; None takes one out."""
    there = json.loads((folder / name).read_text()) | changes
    (folder / name).write_text(json.dumps({key: value for key, value in there.items() if value is not None}))
