"""Checkpoints of the published e-UG code give here what they give there: answers, logits, explanations, losses."""

import dataclasses
import functools
import importlib
import json
import sys

import jax
import numpy as np
import pytest
import torch

from evil_jax import compat, records
from evil_jax import config as config_lib
from evil_jax.data import load, pipeline, tokenizers
from evil_jax.data.features.regions import Regions
from evil_jax.data.sources.esnlive import CLASSES
from evil_jax.interop import eug
from evil_jax.models import gpt2, uniter, vlnle
from evil_jax.modes import decode
from evil_jax.nn import losses
from evil_jax.records import Example
from evil_jax.tasks import base
from evil_jax.training import initial, sharding
from evil_jax.training import state as state_lib

original = importlib.import_module('original')  # beside this file; it needs both

WIDTH, HEADS, MOST = 32, 4, 6
TEXT = {'esnlive': 14, 'vqax': 14, 'vcr': 30}  # word pieces: there too few for a question, here for a choice
uniter.SIZES['original'] = uniter.Size(2, WIDTH, HEADS, 4 * WIDTH, positions=30, std=0.1, word_std=0.1)
gpt2.SIZES['original'] = gpt2.Size(2, WIDTH, HEADS, positions=190, std=0.1)

LONG = 'a man with a red hat and a dog on the left side of the long green boat waits because the other man is late'
TEXTS = [
    'The man is Asleep.', 'Two dogs, one café!', f'Why is {LONG}?', 'What is it?', 'Is the dog on the boat?',
    'a man waits', 'Because the Dog sleeps on the boat.', LONG,
]  # fmt: skip
ANSWERS = ('yes', 'no', 'a red hat', LONG, 'two')
CHOICES = [
    ['<|det1|> is late.', 'He waits', '<|det1|> and <|det2|> sleep', LONG],
    ['Yes', 'No, <|det2|> is.', 'the boat', 'the boat'],
]
SIZE = 640, 480
END = {'esnlive': 2.4, 'vqax': 1.6, 'vcr': 1.6}  # how much likelier than other tokens the last one is
KINDS = {'esnlive': 'vcr_fc', 'vqax': 'vcr_fc', 'vcr': 'logit_fc'}  # data set -> head that it does not use


@dataclasses.dataclass
class Case:
    """A data set of four questions, a checkpoint of the original on disk, and what the original says."""

    kind: str
    examples: list
    pictures: dict
    state: dict
    file: object
    config: object
    theirs: object

    @functools.cached_property
    def answered(self):
        """(logits, visual) of all questions in one batch."""
        places = places_vqax if self.kind == 'vqax' else places_lmdb
        regions = [self.pictures[e.image_id] for e in self.examples]
        seen = [(torch.from_numpy(r.features.astype(np.float32)), places(r)) for r in regions]
        choices = [e.choices for e in self.examples]
        return self.theirs.answer([e.text for e in self.examples], seen, choices)

    def answers(self, indices):
        """Words of answers."""
        names = {'esnlive': CLASSES, 'vqax': ANSWERS, 'vcr': None}[self.kind]
        return [(names or e.choices)[i] for e, i in zip(self.examples, indices)]

    @property
    def logits(self):
        """[questions, answers]: for VCR the log odds of 'true'."""
        logits = self.answered[0]
        return logits[..., 1] - logits[..., 0] if self.kind == 'vcr' else logits

    @property
    def index(self):
        if self.kind == 'vcr':
            return self.answered[0].softmax(-1)[..., 1].argmax(-1).tolist()
        return self.logits.argmax(-1).tolist()

    def loss(self, indices):
        rows = [(e.text, a, e.explanations[0]) for e, a in zip(self.examples, self.answers(indices))]
        return float(self.theirs.loss(rows, self.answered[1]))


def places_lmdb(regions):
    """Relative corners, then height, width (in this order) and area."""
    (w, h), rows = SIZE, []
    for x1, y1, x2, y2 in regions.boxes:
        high, wide = (y2 - y1) / h, (x2 - x1) / w
        rows.append([x1 / w, y1 / h, x2 / w, y2 / h, high, wide, high * wide])
    return torch.tensor(np.array(rows, np.float32))


def places_vqax(regions):
    """Pixels, y before x."""
    rows = [[y1, x1, y2, x2, x2 - x1, y2 - y1, (x2 - x1) * (y2 - y1)] for x1, y1, x2, y2 in regions.boxes]
    return torch.tensor(np.array(rows, np.float32))


class Reader(dict):
    """Regions by image id, as `open_features` gives them."""

    def provenance(self):
        return {'sha256': 'f' * 64}


def make_examples(kind):
    examples = []
    for n in range(4):
        example = Example(
            id=f'q{n}', image_id=f'picture{n % 3}', text=TEXTS[n], explanations=[TEXTS[(n + 5) % len(TEXTS)]]
        )
        if kind == 'esnlive':
            example.label = CLASSES[n % 3]
        elif kind == 'vqax':
            example.answers = {ANSWERS[n]: 1.0}
        else:
            example.choices, example.label, example.objects = CHOICES[n % 2], n, ['person', 'dog']
            # The longest leave no room for a choice: e-UG loses it.
            example.text = TEXTS[n].replace('man', '<|det1|>')
        examples.append(example)
    return examples


def make_pictures(kind):
    """Different numbers of regions, but for VQA-X, where every picture has the same."""
    rng = np.random.default_rng(0)
    pictures = Reader()
    for n, count in enumerate((4, 4, 4) if kind == 'vqax' else (2, MOST, 3)):
        corner, side = rng.random((count, 2)) * 200, 20 + rng.random((count, 2)) * 200
        pictures[f'picture{n}'] = Regions(
            features=rng.exponential(0.5, (count, 2048)).astype(np.float16),
            boxes=np.concatenate([corner, corner + side], axis=1).astype(np.float32),
            size=SIZE,
            conf=np.full(count, 0.5, np.float32),
            classes=np.zeros(count, np.int32),
        )
    return pictures


def make_config(kind, folder, compat='original'):
    config = config_lib.base()
    config.data.update(config_lib.DATA_SETS[kind])
    config.data.update(dir=str(folder), max_text=TEXT[kind], max_regions=MOST, tags='det', tag_regions=False)
    config.model.task.size = config.model.expl.size = 'original'
    config.model.update(dtype='float32', dropout=0.0)
    config.compat, config.decode.batch = compat, 4
    return config


def make_case(kind, folder):
    answers = {'esnlive': CLASSES, 'vqax': ANSWERS, 'vcr': ()}[kind]
    cased = tokenizers.train_word([*TEXTS, *CHOICES[0], *CHOICES[1]], folder / 'cased', lowercase=False)
    word = tokenizers.WordTokenizer(cased.vocabulary, lowercase=True)  # quirk 5
    expl = tokenizers.train_expl(TEXTS, folder / 'bpe', size=330)
    tokenizers.save_assets(folder / 'assets', tokenizers.Assets(word, expl, answers))
    bpe = original.Bpe(folder / 'bpe')
    state = original.random_state(
        width=WIDTH, heads=HEADS, layers=2, blocks=2, words=len(cased), positions=30, types=3 if kind == 'vcr' else 2,
        answers=len(answers) or 4, tokens=bpe.size, rows=190, seed=3,
    )  # fmt: skip
    state[f'{original.GPT2}.wpe.weight'] *= 2  # not the same word over and over
    state[f'{original.GPT2}.wte.weight'][bpe.ids['<|e_rtnl|>']] *= END[kind]  # some explanations come to an end
    torch.save(state, folder / 'LAST.pth')
    theirs = original.Original(
        state, original.WordPiece(cased.vocabulary), bpe, heads=HEADS, text_length=TEXT[kind], vcr=kind == 'vcr'
    )
    config = make_config(kind, folder)
    return Case(kind, make_examples(kind), make_pictures(kind), state, folder / 'LAST.pth', config, theirs)


@pytest.fixture(scope='module', autouse=True)
def one_thread():
    """Threads that wait for each other take longer than these small nets."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope='module')
def cases(tmp_path_factory):
    return functools.cache(lambda kind: make_case(kind, tmp_path_factory.mktemp(kind)))


def make_net(config):
    assets = tokenizers.load_assets(f'{config.data.dir}/assets')
    mesh = sharding.make_mesh(config)
    return assets, state_lib.abstract(lambda key: vlnle.build(config, assets, key), config, mesh)


def outputs(case, quirks, gold=False):
    """Ours: (logits, loss of the explanations with the predicted answers, or with the gold ones)."""
    config = make_config(case.kind, case.config.data.dir, quirks)
    assets, net = make_net(config)
    params, task = initial.original(case.file, net.shapes, assets), base.make_task(config, assets)
    encode = pipeline.Encode(task, case.pictures)
    batch = next(iter(pipeline.eval_batches(case.examples, encode, batch=4)))

    @functools.partial(jax.jit, compiler_options={'xla_backend_optimization_level': 0})  # compiling takes longest
    def run(params):
        model, tokens = net.merge(params), batch['explanation']
        logits, context = model.task(batch)
        condition = task.condition(batch, batch['gold'] if gold else task.predict(logits)[0])
        found = model.expl(batch, context, condition, tokens)
        total, count = losses.token_cross_entropy(found, tokens, batch['explanation_length'])
        return logits, total / count

    return run(params)


@pytest.mark.parametrize('kind', KINDS)
def test_answers_and_losses_are_those_of_the_published_code(cases, kind):
    """Logits within 1e-4, losses within 1e-5: with predicted answers; for VQA, where one is long, with gold ones."""
    case, gold = cases(kind), kind == 'vqax'
    logits, loss = outputs(case, 'original', gold)
    np.testing.assert_allclose(logits, case.logits, atol=1e-4, rtol=1e-5)
    assert float(loss) == pytest.approx(case.loss(range(4) if gold else case.index), rel=1e-5)


@pytest.mark.parametrize('kind', KINDS)
def test_predictions_are_those_of_the_published_code(cases, kind):
    """Equal answers, tokens and texts, by the functions of --mode=decode."""
    case = cases(kind)
    file = decode.find_checkpoint('nowhere', f'eug:{case.file}')
    decoder, params = decode.load_trained(case.config, 'nowhere', file)
    found = [p for rows in decoder.predictions(params, case.examples, case.pictures) for p in rows]
    assert [p.answer for p in found] == case.answers(case.index)
    lengths = set()
    for example, prediction, seen in zip(case.examples, found, case.answered[1]):
        tokens, text = case.theirs.generate(example.text, prediction.answer, seen)
        assert (prediction.explanation_ids, prediction.explanation) == (tokens, text)
        lengths.add(len(tokens))
    assert 51 in lengths and len(lengths) > 1, lengths  # both kinds of end are tried


@pytest.mark.parametrize('kind, quirk', [*(('esnlive', q) for q in (1, 2, 3, 4, 6)), ('vqax', 6), ('vcr', 3)])
def test_each_quirk_matters(cases, kind, quirk):
    case = cases(kind)
    logits, loss = outputs(case, ','.join(str(n) for n in compat.QUIRKS if n != quirk))
    moved = np.abs(logits - np.asarray(case.logits)).max()
    assert moved > 1e-2 if quirk in (3, 6) else moved < 1e-4
    assert abs(float(loss) - case.loss(case.index)) > 1e-3


# The table -----------------------------------------------------------------------------------------------------------


def test_every_name_of_the_file_is_known(cases):
    """Each parameter is taken from the name that the table gives, and no other."""
    case = cases('vcr')
    assets, net = make_net(case.config)
    found = eug.load(case.file, net.shapes, assets.expl.size)
    assert found.keys() == net.shapes.keys()
    numbers = np.concatenate([x.ravel() for x in found.values()])
    wanted = [x.numpy() for n, x in case.state.items() if x.ndim and not n.startswith(('logit_fc', 'decoder.model.lm'))]
    wanted = np.concatenate([x.ravel() for x in wanted if x.dtype == np.float32])
    assert np.count_nonzero(numbers) == len(wanted)
    np.testing.assert_array_equal(np.sort(numbers[numbers != 0]), np.sort(wanted))
    words = assets.expl.size
    np.testing.assert_array_equal(found[eug.WTE][:words], case.state[f'{original.GPT2}.wte.weight'])
    assert not found[eug.WTE][words:].any()


def test_a_model_that_only_answers_takes_no_decoder(cases):
    case = cases('esnlive')
    config = make_config('esnlive', case.config.data.dir)
    config.model.expl.name = ''
    assets, net = make_net(config)
    assert eug.load(case.file, net.shapes, assets.expl.size).keys() == net.shapes.keys()


def changed(case, tmp_path, change):
    state = dict(case.state)
    change(state)
    torch.save(state, tmp_path / 'changed.pth')
    return tmp_path / 'changed.pth'


def test_files_of_several_gpus_and_other_types(cases, tmp_path):
    case = cases('esnlive')
    assets, net = make_net(case.config)
    want = eug.load(case.file, net.shapes, assets.expl.size)
    torch.save(
        {f'module.{n}': x.double() if x.is_floating_point() else x for n, x in case.state.items()}, tmp_path / 'x'
    )
    found = eug.load(tmp_path / 'x', net.shapes, assets.expl.size)
    assert {x.dtype for x in found.values()} == {np.dtype(np.float32)}
    for path, x in found.items():
        np.testing.assert_array_equal(x, want[path])


def test_all_faults_are_told_at_once(cases, tmp_path):
    case = cases('esnlive')
    assets, net = make_net(case.config)

    def damage(state):
        del state['encoder.model.uniter.pooler.dense.bias'], state['decoder.model.transformer.h.1.ln_2.weight']
        state['encoder.model.uniter.encoder.layer.2.output.dense.bias'] = torch.zeros(WIDTH)
        state['logit_fc.3.weight'] = torch.zeros(4, 2 * WIDTH)
        state['logit_fc.3.bias'] = torch.zeros(4)
        state['decoder.model.transformer.h.0.attn.c_attn.weight'] = torch.zeros(WIDTH, 2 * WIDTH)
        state['logit_fc.0.bias'] = torch.full((2 * WIDTH,), torch.nan)
        state['decoder.model.lm_head.weight'] = state['decoder.model.lm_head.weight'] + 1

    with pytest.raises(ValueError) as error:
        eug.load(changed(case, tmp_path, damage), net.shapes, assets.expl.size)
    for part in (
        '/changed.pth does not fit the model:\n  2 missing:\n',
        '    encoder.model.uniter.pooler.dense.bias (task/pooler/bias)\n',
        '    decoder.model.transformer.h.1.ln_2.weight (expl/layers/1/mlp_norm/scale)\n',
        '  1 unexpected:\n    encoder.model.uniter.encoder.layer.2.output.dense.bias\n',
        '  7 differing:\n',
        'logit_fc.3.weight: (64, 4) as task/head/answer/kernel, wanted (64, 3)',
        'logit_fc.0.bias: holds NaN',
        'c_attn.weight: (32, 64) as expl/layers/0/attention/query/kernel, wanted (32, 32)',
        'lm_head.weight: other values than decoder.model.transformer.wte.weight',
        '4 answers in the file, 3 in the data set',
    ):
        assert part in str(error.value), part


def test_other_vocabularies_are_one_clear_error(cases, tmp_path):
    case = cases('esnlive')
    assets, net = make_net(case.config)
    texts = f'{original.UNITER}.embeddings.word_embeddings.weight', f'{original.GPT2}.wte.weight'

    def longer(state):
        for name, rows in zip(texts, (28_996, 50_320)):
            state[name] = torch.zeros(rows, WIDTH)
        state['decoder.model.lm_head.weight'] = state[texts[1]]

    with pytest.raises(ValueError) as error:
        eug.load(changed(case, tmp_path, longer), net.shapes, assets.expl.size)
    words, tokens = len(assets.word), assets.expl.size
    assert '2 differing' in str(error.value)
    assert (
        f'The vocabularies differ: 28996 word pieces in the file, {words} in the data set; 50320 explanation tokens in '
        f'the file, {tokens} in the data set. Build the data set with those of e-UG: data.word_vocab'
    ) in str(error.value)


def test_a_vocabulary_that_only_fits_with_its_padding_is_refused(cases, tmp_path):
    """Our word table is longer than e-UG's: a file with one word more would fit into it."""
    case = cases('esnlive')
    assets, net = make_net(case.config)

    def longer(state):
        table = state[f'{original.GPT2}.wte.weight']
        state[f'{original.GPT2}.wte.weight'] = state['decoder.model.lm_head.weight'] = torch.cat([table, table[:1]])

    with pytest.raises(ValueError, match=f'{assets.expl.size + 1} explanation tokens in the file'):
        eug.load(changed(case, tmp_path, longer), net.shapes, assets.expl.size)


def test_parameters_that_e_ug_has_not(cases):
    case = cases('esnlive')
    assets, net = make_net(case.config)
    shapes = {**net.shapes, 'task/gate/kernel': net.shapes['task/pooler/kernel']}
    with pytest.raises(ValueError, match='task/gate/kernel: e-UG has nothing that corresponds'):
        eug.load(case.file, shapes, assets.expl.size)


# Files ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'content', [b'', b'no pickle', b'PK\x03\x04' + bytes(40), b'\x80\x02}q\x00.', b'\x80\x02K\x01.']
)
def test_files_of_another_kind(tmp_path, content):
    path = tmp_path / 'LAST.pth'
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r'LAST\.pth: '):
        eug.read(path)


def test_what_is_no_state_dict(cases, tmp_path):
    case = cases('esnlive')
    path = tmp_path / 'LAST.pth'
    path.write_bytes(case.file.read_bytes()[:-1000])
    with pytest.raises(ValueError, match=r'LAST\.pth: not a state dict of PyTorch'):
        eug.read(path)
    torch.save({'epoch': 3, 'state_dict': case.state}, path)
    with pytest.raises(ValueError, match=r"LAST\.pth: entry 'epoch' is a int, wanted a state dict"):
        eug.read(path)
    torch.save([torch.zeros(1)], path)
    with pytest.raises(ValueError, match=r'LAST\.pth: holds list of 1 entries, wanted a state dict'):
        eug.read(path)

    class Code:
        def __reduce__(self):
            return print, ('executed',)

    torch.save({'a': Code()}, path)
    with pytest.raises(ValueError, match=r'LAST\.pth: not a state dict of PyTorch'):
        eug.read(path)


def test_without_pytorch_it_says_what_to_install(cases, monkeypatch):
    monkeypatch.setitem(sys.modules, 'torch', None)
    with pytest.raises(ValueError, match=r'LAST\.pth: reading it needs PyTorch: pip install "evil_jax\[torch\]"'):
        eug.read(cases('esnlive').file)


def test_a_file_that_is_not_there(tmp_path):
    assert eug.named('best') is eug.named(str(tmp_path)) is None
    with pytest.raises(ValueError, match=r'eug:.*LAST\.pth is no file; wanted a checkpoint of the published e-UG code'):
        decode.find_checkpoint(tmp_path, f'eug:{tmp_path}/LAST.pth')


# Modes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', ['esnlive', 'vcr'])
def test_settings_that_it_was_not_trained_with_are_refused(cases, kind):
    config = make_config(kind, cases(kind).config.data.dir)
    eug.check(config)
    config.compat, config.data.tags, config.data.tag_regions = '1,2,3,4,6,7,8', 'names', True
    with pytest.raises(ValueError) as error:
        decode.load_trained(config, 'nowhere', cases(kind).file)
    for part, there in {
        'quirk 5: ': True, 'quirk 3: ': False, 'quirk 17: ': False, "wanted 'original'": True,
        "data.tags is 'names', wanted 'det'": kind == 'vcr', 'tag_regions is True, wanted False': kind == 'vcr',
    }.items():  # fmt: skip
        assert (part in str(error.value)) == there, part


def test_the_mode_runs_without_training(cases, tmp_path, monkeypatch):
    """Predictions say which file they are from, and another file does not go on with them."""
    case = cases('esnlive')
    data = tmp_path / 'tfds'
    data.mkdir()
    (data / 'records').write_text('the examples')
    monkeypatch.setattr(load, 'load_examples', lambda config, split: case.examples)
    monkeypatch.setattr(load, 'open_store', lambda config: case.pictures)
    monkeypatch.setattr(load, 'folder', lambda config: data)
    monkeypatch.setattr(load, 'built', lambda config: {'settings': load.settings(config), 'sources': {}})
    config = make_config('esnlive', case.config.data.dir)
    config.model.expl.name = ''  # compiles faster
    config.decode.checkpoint = f'eug:{case.file}'
    numbers = decode.run(config, tmp_path / 'out')
    assert numbers['decoded'] == 4
    found = records.read_jsonl(tmp_path / 'out' / 'predictions.jsonl', records.Prediction)
    assert [p.answer for p in found] == case.answers(case.index)
    meta = json.loads((tmp_path / 'out' / 'predictions.meta.json').read_text())
    assert meta['checkpoint'] == {'file': 'LAST.pth', 'sha256': records.file_hash(case.file)}
    assert meta['config']['compat'] == 'original'
    config.decode.checkpoint = f'eug:{changed(case, tmp_path, lambda state: state.update(x=torch.zeros(1)))}'
    with pytest.raises(ValueError, match=r"checkpoint.file: 'LAST.pth' there, 'changed.pth' here"):
        decode.run(config, tmp_path / 'out')


@pytest.mark.parametrize('quirks', ['fixed', 'original'])
def test_training_starts_from_it(cases, quirks):
    """In any mode; rows of the word table that are no words of e-UG's keep their fresh values."""
    case = cases('esnlive')
    config = make_config('esnlive', case.config.data.dir, quirks)
    assets, net = make_net(config)
    place = lambda shape: jax.device_put(np.full(shape.shape, 7, np.float32), shape.sharding)
    fresh = {path: place(shape) for path, shape in net.shapes.items()}
    config.train.init = f'eug:{case.file}'
    found, (told,) = initial.begin(config, fresh, net.shapes, assets)
    assert told == f'initial parameters from {case.file}, of the published e-UG code'
    words = assets.expl.size
    for path, x in eug.load(case.file, net.shapes, words).items():
        kept = words if path == eug.WTE else None
        np.testing.assert_array_equal(found[path][:kept], x[:kept])
        assert found[path].sharding == fresh[path].sharding
    assert len(found[eug.WTE]) > words and (np.asarray(found[eug.WTE][words:]) == 7).all()


def test_another_order_of_vqa_answers_is_noticed(cases, shared, tmp_path, caplog):
    """A file does not say which answers it knows; with as many as e-UG's they ought to be e-UG's, in its order."""
    from evil_jax.data import answers

    case = cases('esnlive')
    lists = [answers.read(shared / 'data' / 'vocab' / f) for f in ('trainval_label2ans.json', 'uniter_ans2label.json')]

    def head(state):
        state['logit_fc.3.weight'], state['logit_fc.3.bias'] = torch.zeros(3129, 2 * WIDTH), torch.zeros(3129)

    file = changed(case, tmp_path, head)
    config = make_config('vqax', case.config.data.dir)
    for names, warns in zip(lists, (False, True)):
        assets = dataclasses.replace(make_net(case.config)[0], answers=names)
        build = lambda key, assets=assets: vlnle.build(config, assets, key)
        net = state_lib.abstract(build, config, sharding.make_mesh(config))
        caplog.clear()
        initial.original(file, net.shapes, assets)
        assert ('does not say which answers' in caplog.text) == warns
