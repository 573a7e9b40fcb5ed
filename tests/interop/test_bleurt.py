"""BLEURT from text to score against PyTorch twins, from folders in the form of google-research/bleurt and Hugging Face.

No published checkpoint can be had here: weights are random, and the folders are written by `checkpoints`.
"""

import json
import re
import sys

import checkpoints
import numpy as np
import pytest
import torch
import transformers

from evil_jax.interop import bleurt, bleurt_text
from evil_jax.metrics import resources

MOST = 32
CLOSE = 5e-6  # 1e-4 would not tell the two GELUs apart in nets as small as these
WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *'abcdefghijklmnopqrstuvwxyz.,!?|[]\'"', 'the', 'dog', 'runs',
         'because', '##s', '##ing', '##a', '##b', '##e', 'is', 'red', 'sep', 'cafe', '狗']  # fmt: skip
TEXTS = [
    'The dog runs because the dog is red.',
    'the DOG sings!',
    '',
    ' \n\t ',
    'a ||| b\nc',
    'Café 狗 [SEP] [CLS] naïve \u200b x\x00y',
    'x' * 150 + ' ' + 'aabbee' * 25 + ' dog',
    'dog ' * 14,
    'the ' * 15,
    'is ' * 40,
    'red ' * 100,
    'unknown 🙂 words ǰ',
]
PAIRS = [(r, c) for i, r in enumerate(TEXTS) for j, c in enumerate(TEXTS) if (i + 2 * j) % 3 == 0]
REFERENCES, CANDIDATES = [r for r, _ in PAIRS], [c for _, c in PAIRS]
SIZES = {'hidden_size': 24, 'num_hidden_layers': 2, 'num_attention_heads': 4, 'intermediate_size': 40,
         'max_position_embeddings': 40, 'type_vocab_size': 2}  # fmt: skip


def randomised(model):
    torch.manual_seed(0)
    with torch.no_grad():
        for x in model.parameters():
            x.add_(0.15 * torch.randn(x.shape))
    return model.eval()


def bert_twin(act='gelu_new', like=None):
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_act=act, num_labels=1, attn_implementation='eager', **SIZES
    )
    model = randomised(transformers.BertForSequenceClassification(config))
    if like is not None:
        model.load_state_dict(like.state_dict())
    return model


def tensors(model):
    return {name: x.detach().numpy() for name, x in model.named_parameters()}


def twin_scores(model, rows):
    """Scores of rows [(ids, types)]; those of one length together, without padding."""
    found = np.zeros(len(rows))
    lengths = np.array([len(ids) for ids, _ in rows])
    for length in set(lengths.tolist()):
        some = np.flatnonzero(lengths == length)
        ids, types = (torch.tensor([rows[n][k] for n in some]) for k in (0, 1))
        with torch.no_grad():
            found[some] = model(input_ids=ids, token_type_ids=types).logits[:, 0].numpy()
    return found


def put_words(folder):
    (folder / 'vocab.txt').write_text(''.join(word + '\n' for word in WORDS))


@pytest.fixture(scope='module')
def bert_model():
    return bert_twin()


@pytest.fixture(scope='module')
def bert_folder(tmp_path_factory, bert_model):
    folder = tmp_path_factory.mktemp('a blank') / 'bleurt-toy'
    checkpoints.bleurt_folder(
        folder, tensors(bert_model), {'vocab_size': len(WORDS), 'hidden_act': 'gelu', **SIZES},
        vocab_file='vocab.txt', do_lower_case=True, max_seq_length=MOST,
    )  # fmt: skip
    put_words(folder)
    return folder


@pytest.fixture(scope='module')
def bert_rows(bert_folder):
    """Ids and types by transformers' tokeniser in Python, which cuts as BERT's own code does."""
    cutter = transformers.BertTokenizerLegacy(str(bert_folder / 'vocab.txt'), do_lower_case=True)
    special = dict.fromkeys(['[SEP]', '[CLS]'], ' [ sep ] ')  # in a text these are no tokens to BLEURT
    special['[CLS]'] = ' [ cls ] '
    rows = []
    for pair in PAIRS:
        r, c = (x.replace('[SEP]', special['[SEP]']).replace('[CLS]', special['[CLS]']) for x in pair)
        row = cutter(r, c, truncation='longest_first', max_length=MOST, return_token_type_ids=True)
        rows.append((row['input_ids'], row['token_type_ids']))
    return rows


@pytest.fixture(scope='module')
def bert_regress(bert_folder):
    return bleurt.open_bleurt(bert_folder, batch=16)


def test_bert_from_text_to_score(bert_regress, bert_model, bert_rows):
    """Ids equal transformers', scores those of the twin: ragged, cut and empty texts, in rows of several sizes."""
    regress = bert_regress
    found = regress(REFERENCES, CANDIDATES)
    assert found.dtype == np.float32 and found.shape == (len(PAIRS),)
    cut = regress.cutter.cut(TEXTS)
    for (r, c), (ids, types) in zip(PAIRS, bert_rows):
        if 'x' * 150 in r + c:  # a word that BERT's code spells and that library's does not
            continue
        assert regress.cutter.pair(cut[TEXTS.index(r)], cut[TEXTS.index(c)], MOST) == (ids, types), (r, c)
    ours = [regress.cutter.pair(cut[TEXTS.index(r)], cut[TEXTS.index(c)], MOST) for r, c in PAIRS]
    wanted = twin_scores(bert_model, ours)
    print('largest difference', np.abs(found - wanted).max(), 'spread', np.ptp(wanted))
    np.testing.assert_allclose(found, wanted, atol=CLOSE, rtol=0)
    assert np.ptp(wanted) > 0.1  # something to tell apart


def test_the_graph_tells_which_gelu(bert_regress, bert_model, tmp_path):
    """TensorFlow's 'gelu' is the one by tanh, unless the graph has Erf. The two can be told apart."""
    folder = checkpoints.bleurt_folder(
        tmp_path / 'erf', tensors(bert_model), {'vocab_size': len(WORDS), 'hidden_act': 'gelu', **SIZES}, erf=True,
        packed=False, vocab_file='vocab.txt', do_lower_case=True, max_seq_length=MOST,
    )  # fmt: skip
    put_words(folder)
    by_erf, by_tanh = bleurt.open_bleurt(folder, batch=16), bert_regress
    rows = [by_erf.cutter.pair(*by_erf.cutter.cut(pair), MOST) for pair in PAIRS[:9]]
    found = by_erf(REFERENCES[:9], CANDIDATES[:9])
    np.testing.assert_allclose(found, twin_scores(bert_twin('gelu', bert_model), rows), atol=CLOSE, rtol=0)
    assert np.abs(found - by_tanh(REFERENCES[:9], CANDIDATES[:9])).max() > 4 * CLOSE
    assert by_erf.name != by_tanh.name


def test_the_word_that_is_longer_than_a_library_spells(bert_regress):
    cut = bert_regress.cutter.cut
    assert cut(['x' * 150]) == [[1]] == cut(['a' * 201])  # '##x' is no entry
    assert cut(['a' * 200]) == [[WORDS.index('a')] + [WORDS.index('##a')] * 199]


def test_kept_is_the_loop():
    """Against the procedure that BLEURT states: one token at a time, of the longer text, of the candidate in a tie."""
    for most in (0, 1, 2, 5, 6, 29):
        for r in range(40):
            for c in range(40):
                kept = [r, c]
                while sum(kept) > most:
                    kept[0 if kept[0] > kept[1] else 1] -= 1
                assert bleurt_text.kept(r, c, most) == tuple(kept)


def test_batches_and_repetitions_change_nothing(bert_regress, monkeypatch):
    regress, run, calls = bert_regress, bert_regress._run, []
    monkeypatch.setattr(regress, '_run', lambda params, ids, *rest: calls.append(ids.shape) or run(params, ids, *rest))
    whole = regress(REFERENCES[:30], CANDIDATES[:30])
    np.testing.assert_allclose(regress(REFERENCES[5:6], CANDIDATES[5:6]), whole[5:6], atol=1e-6)
    calls.clear()
    repeated = regress(['a dog'] * 1000 + ['red'], ['the dog'] * 1000 + [''])
    assert sum(shape[0] for shape in calls) == 2 and len(set(repeated[:1000].tolist())) == 1
    order = np.random.default_rng(0).permutation(30)
    again = regress([REFERENCES[i] for i in order], [CANDIDATES[i] for i in order])
    np.testing.assert_array_equal(again, whole[order])
    assert regress([], []).shape == (0,)
    with pytest.raises(ValueError, match='2 references for 1 candidates'):
        regress(['a', 'b'], ['c'])
    np.testing.assert_array_equal(regress(['a \ud800 dog'], ['']), regress(['a \ufffd dog'], ['']))


@pytest.fixture(scope='module')
def pieces(tmp_path_factory):
    """A model of SentencePiece as RemBERT's is: [CLS] and [SEP] are pieces, padding has id 0."""
    import sentencepiece

    path = tmp_path_factory.mktemp('pieces')
    r = np.random.default_rng(0)
    words = ['the', 'dog', 'cat', 'runs', 'because', 'red', 'it', 'is', 'hungry', 'Café', 'blue', 'sings', 'sleeping']
    lines = [' '.join(r.choice(words, 8)) + '.' for _ in range(200)]
    (path / 'texts').write_text('\n'.join(lines))
    sentencepiece.SentencePieceTrainer.train(
        input=str(path / 'texts'), model_prefix=str(path / 'sent_piece'), vocab_size=70, pad_id=0, unk_id=1, bos_id=-1,
        eos_id=-1, control_symbols='[CLS],[SEP],[MASK]', character_coverage=1.0, minloglevel=2,
        hard_vocab_limit=False,
    )  # fmt: skip
    return path / 'sent_piece.model'


@pytest.fixture(scope='module')
def rembert_model(pieces):
    config = transformers.RemBertConfig(
        vocab_size=80, input_embedding_size=16, hidden_act='gelu_new', num_labels=1, attn_implementation='eager',
        classifier_dropout_prob=0.0, **SIZES,
    )  # fmt: skip
    return randomised(transformers.RemBertForSequenceClassification(config))


@pytest.fixture(scope='module')
def rembert_folder(tmp_path_factory, rembert_model, pieces):
    """As BLEURT-20: vocab_file and do_lower_case are null."""
    folder = tmp_path_factory.mktemp('BLEURT') / 'BLEURT-20-toy'
    checkpoints.bleurt_folder(
        folder, tensors(rembert_model), {'vocab_size': 80, 'hidden_act': 'gelu', 'embedding_size': 16, **SIZES},
        vocab_file=None, do_lower_case=None, sp_model='sent_piece', dynamic_seq_length=True, max_seq_length=MOST,
    )  # fmt: skip
    (folder / 'sent_piece.model').write_bytes(pieces.read_bytes())
    return folder


def test_rembert_from_text_to_score(rembert_folder, rembert_model, pieces):
    """The whole path with SentencePiece, ids as the loop of BLEURT's own code makes them."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    special = [model.piece_to_id(piece) for piece in ('[CLS]', '[SEP]')]
    rows = []
    for pair in PAIRS:
        r, c = ([model.piece_to_id(piece) for piece in model.encode_as_pieces(text)] for text in pair)
        while len(r) + len(c) > MOST - 3:
            (r if len(r) > len(c) else c).pop()
        rows.append(([special[0], *r, special[1], *c, special[1]], [0] * (len(r) + 2) + [1] * (len(c) + 1)))
    regress = bleurt.open_bleurt(rembert_folder, batch=16)
    cut = regress.cutter.cut(TEXTS)
    found = regress(REFERENCES, CANDIDATES)
    for (r, c), row in zip(PAIRS, rows):
        assert regress.cutter.pair(cut[TEXTS.index(r)], cut[TEXTS.index(c)], MOST) == row, (r, c)
    wanted = twin_scores(rembert_model, rows)
    print('largest difference', np.abs(found - wanted).max(), 'spread', np.ptp(wanted))
    np.testing.assert_allclose(found, wanted, atol=CLOSE, rtol=0)
    assert np.ptp(wanted) > 0.1
    assert re.fullmatch(r'toy\([0-9a-f]{12},max=32,gelu_tanh,sentencepiece\)', regress.name)
    np.testing.assert_array_equal(regress(['\ud800'], ['']), regress(['\ufffd'], ['']))


@pytest.mark.parametrize('kind', ['bert', 'rembert', 'bleurt'])
def test_hugging_face_folders(tmp_path, kind, bert_model, rembert_model, rembert_folder, pieces):
    """As save_pretrained writes them and as bleurt-pytorch names them; there 'gelu' is the one by erf."""
    model = bert_twin('gelu') if kind == 'bert' else rembert_model
    model.save_pretrained(tmp_path)
    path = tmp_path / 'config.json'
    config = json.loads(path.read_text())
    if kind == 'bleurt':
        from safetensors import numpy as safetensors

        arrays = {
            name.replace('rembert.', 'bleurt.').replace('embedding_hidden_mapping_in', 'embedding_projection'): x
            for name, x in tensors(model).items()
        }
        arrays['bleurt.embeddings.position_ids'] = np.arange(40)[None]
        safetensors.save_file(arrays, tmp_path / 'model.safetensors')
        config = {**SIZES, 'model_type': 'bleurt', 'vocab_size': 80, 'embedding_size': 16, 'hidden_act': 'gelu_new'}
        path.write_text(json.dumps(config))
    if kind == 'bert':
        (tmp_path / 'vocab.txt').write_text(''.join(word + '\n' for word in WORDS))
        transformers.BertTokenizer(str(tmp_path / 'vocab.txt'), model_max_length=MOST).save_pretrained(tmp_path)
        (tmp_path / 'vocab.txt').unlink()  # version 5 of transformers writes tokenizer.json alone
    else:
        (tmp_path / ('spm.model' if kind == 'bleurt' else 'sentencepiece.model')).write_bytes(pieces.read_bytes())
        (tmp_path / 'tokenizer_config.json').write_text(json.dumps({'model_max_length': MOST}))
    regress = bleurt.open_bleurt(tmp_path)
    assert regress.most == MOST
    rows = [regress.cutter.pair(*regress.cutter.cut(pair), MOST) for pair in PAIRS[:24]]
    found = regress(REFERENCES[:24], CANDIDATES[:24])
    np.testing.assert_allclose(found, twin_scores(model, rows), atol=CLOSE, rtol=0)
    if kind != 'bert':  # the same model, tokeniser and cut: the same hash, whatever file it is in
        assert regress.name.split('(')[1] == bleurt.open_bleurt(rembert_folder).name.split('(')[1]


def test_what_does_not_fit_is_told_at_once(tmp_path, bert_model):
    arrays = tensors(bert_model)
    broken = dict(arrays)
    broken['bert.encoder.layer.0.output.strange.weight'] = broken.pop('bert.encoder.layer.0.output.dense.weight')
    broken['classifier.weight'] = np.zeros((3, 24), np.float32)
    broken['bert.pooler.dense.bias'] = np.full(24, np.nan, np.float32)
    config = {'vocab_size': len(WORDS), 'hidden_act': 'gelu', **SIZES}
    folder = checkpoints.bleurt_folder(
        tmp_path / 'x', broken, config, vocab_file='vocab.txt', do_lower_case=True, max_seq_length=MOST
    )
    with pytest.raises(ValueError, match=r'vocab.txt does not exist'):
        bleurt.open_bleurt(folder)
    put_words(folder)
    with pytest.raises(ValueError, match='does not fit the model') as error:
        bleurt.open_bleurt(folder)
    for part in (str(folder), 'bert/encoder/layer_0/output/dense/kernel (encoder/layers/0/mlp/down/kernel)',
                 'bert/encoder/layer_0/output/strange/kernel', 'dense/kernel: (24, 3) as head/kernel, wanted (24, 1)',
                 'bert/pooler/dense/bias: holds NaN'):  # fmt: skip
        assert part in str(error.value), part
    wrong = {**config, 'hidden_act': 'swish', 'num_attention_heads': 5, 'vocab_size': 9, 'hidden_size': 'x',
             'position_embedding_type': 'relative_key', 'num_hidden_layers': 5000}  # fmt: skip
    (folder / 'bert_config.json').write_text(json.dumps(wrong))
    with pytest.raises(ValueError, match=r'bert_config.json: ') as error:
        bleurt.open_bleurt(folder)
    for part in ("hidden_size is 'x'", "hidden_act is 'swish'", 'vocab_size is 9', 'relative_key', 'no multiple of 5',
                 'num_hidden_layers is 5000'):  # fmt: skip
        assert part in str(error.value), part
    checkpoints.bleurt_folder(folder, arrays, config, vocab_file='vocab.txt', do_lower_case=True)
    data = folder / 'variables' / 'variables.data-00000-of-00001'
    data.write_bytes(data.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r'data-00000-of-00001: .* it was cut off'):
        bleurt.open_bleurt(folder)
    for key, value, message in [
        ('max_seq_length', 41, 'pairs may have 41 tokens'),
        ('max_seq_length', 'many', "pairs may have 'many' tokens"),
        ('do_lower_case', None, 'do_lower_case is None'),
        ('vocab_file', None, 'neither vocab_file nor sp_model'),
        ('vocab_file', 3, 'vocab_file is 3, wanted text'),
        ('vocab_file', '../vocab.txt', r"bleurt_config\.json: '\.\./vocab\.txt' is no name of a file in its folder"),
        ('vocab_file', str(folder / 'vocab.txt'), 'is no name of a file in its folder'),
        ('bert_config_file', '../x/bert_config.json', 'is no name of a file in its folder'),
    ]:
        checkpoints.bleurt_folder(
            folder, arrays, config, **{'vocab_file': 'vocab.txt', 'do_lower_case': True, key: value}
        )
        with pytest.raises(ValueError, match=message):
            bleurt.open_bleurt(folder)


def test_what_is_missing_makes_the_metric_unavailable(tmp_path, monkeypatch, rembert_folder):
    for path in ('', tmp_path / 'nowhere'):
        with pytest.raises(resources.Unavailable, match='needs a BLEURT checkpoint on this machine'):
            bleurt.open_bleurt(path)
    with pytest.raises(ValueError, match=r'has neither bleurt_config\.json'):
        bleurt.open_bleurt(tmp_path)
    (tmp_path / 'config.json').write_text('{"model_type": "gpt2"}')
    with pytest.raises(ValueError, match="model_type is 'gpt2', wanted bert, rembert or bleurt"):
        bleurt.open_bleurt(tmp_path)
    monkeypatch.setitem(sys.modules, 'sentencepiece', None)
    with pytest.raises(resources.Unavailable, match=r'needs sentencepiece: pip install'):
        bleurt.open_bleurt(rembert_folder)


def test_models_of_sentencepiece_that_are_none(tmp_path):
    (tmp_path / 'x.model').write_bytes(b'no such thing')
    with pytest.raises(ValueError, match=r'x.model: not a model of SentencePiece'):
        bleurt_text.sentence_pieces(tmp_path / 'x.model')
    with pytest.raises(ValueError, match=r'y.model does not exist'):
        bleurt_text.sentence_pieces(tmp_path / 'y.model')


def test_names_of_the_original():
    """Those that the index of bleurt/test_checkpoint lists, and BLEURT-20's one more layer."""
    found = {theirs for _, theirs, _ in bleurt.tensorflow(bleurt.TABLE)}
    for name in ('bert/embeddings/word_embeddings', 'bert/embeddings/LayerNorm/gamma', 'bert/pooler/dense/kernel',
                 r'bert/encoder/layer_\1/attention/self/\2/kernel', r'bert/encoder/layer_\1/output/LayerNorm/beta',
                 'bert/encoder/embedding_hidden_mapping_in/kernel', 'dense/kernel', 'dense/bias'):  # fmt: skip
        assert name in found


@pytest.mark.acceptance
@pytest.mark.parametrize('kind', ['BERT 12 x 768', 'RemBERT 32 x 96'])
def test_depths_of_the_published(tmp_path, kind, pieces, measured):
    """Errors do not add up over as many layers as bleurt-base and BLEURT-20 have."""
    layers, width = map(int, kind.split(' ', 1)[1].split(' x '))
    sizes = SIZES | {'hidden_size': width, 'num_hidden_layers': layers, 'num_attention_heads': 12,
                     'intermediate_size': 4 * width}  # fmt: skip
    common = {'hidden_act': 'gelu_new', 'num_labels': 1, 'attn_implementation': 'eager', **sizes}
    if kind.startswith('BERT'):
        words, more = len(WORDS), {'vocab_file': 'vocab.txt', 'do_lower_case': True}
        net = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=words, **common))
    else:
        words, more = 80, {'vocab_file': None, 'sp_model': 'sent_piece'}
        net = transformers.RemBertForSequenceClassification(
            transformers.RemBertConfig(vocab_size=words, input_embedding_size=16, **common)
        )
    torch.manual_seed(0)
    with torch.no_grad():
        for x in net.parameters():
            x.add_(0.02 * torch.randn(x.shape))
    folder = tmp_path / 'deep'
    config = {'vocab_size': words, **sizes, 'hidden_act': 'gelu'}
    checkpoints.bleurt_folder(folder, tensors(net.eval()), config, packed=False, max_seq_length=MOST, **more)
    put_words(folder)
    (folder / 'sent_piece.model').write_bytes(pieces.read_bytes())
    regress = bleurt.open_bleurt(folder)
    rows = [regress.cutter.pair(*regress.cutter.cut(pair), MOST) for pair in PAIRS]
    found, wanted = regress(REFERENCES, CANDIDATES), twin_scores(net, rows)
    measured(
        f'BLEURT, {kind}, from text to score: largest difference from PyTorch', '<=', 1e-4, np.abs(found - wanted).max()
    )
    measured(f'BLEURT, {kind}: spread of the scores', '>=', 0.01, np.ptp(wanted))
