"""The metrics of explanations that a config asks for, as functions of texts; what each needs, and whether it is here.

Metrics are strings in, scores out, and never import JAX. Those that need an encoder get it from here, opened when the
first text is to be scored, so that JAX is imported only where somebody named an encoder.
"""

import functools
from collections.abc import Callable, Sequence

from evil_jax import lookup
from evil_jax.metrics import base, ptb, resources

Scorer = Callable[[base.Predictions, base.References], base.Table]
FAST = ('bleu', 'rouge', 'cider', 'chrf')  # no program, no index, no encoder: for scoring while training
_NO_ENCODER = (
    'needs an encoder: name the folder of a BERT, DistilBERT or RoBERTa in evaluate.bertscore.encoder (the paper used '
    'distilbert-base-uncased, evaluate.bertscore.layer=5)'
)
_NO_BLEURT = 'needs a checkpoint: name its folder, for example BLEURT-20-D12, in evaluate.bleurt'
_TRY = ({'1': 'a dog runs on the beach', '2': 'two dogs'}, {'1': ['the dog is running'], '2': ['two dogs']})


def scorers(config, names: Sequence[str] | None = None) -> dict[str, Scorer]:
    """The metrics of `evaluate.metrics` (or `names`), by name. One that cannot run raises `resources.Unavailable`.

    A metric that is asked for the same texts again, as it is by two protocols that leave texts alone, answers from
    memory.
    """
    names = config.evaluate.metrics if names is None else names
    return {name: _Remembered(_scorer(config.evaluate, name)) for name in names}


def tokenise(config) -> Callable[[list[str]], tuple[list[str], str]]:
    """Texts to (words joined by blanks, name of the tokeniser), as `evaluate.ptb` says."""
    options = config.evaluate
    return functools.partial(ptb.tokenise, backend=options.ptb, folder=options.pycocoevalcap, java=options.java)


def check(config, files: int) -> None:
    """Raises ValueError, before anything is scored, for settings that do not go with so many files of predictions."""
    options = config.evaluate
    if files > 1 and 'spice' in options.metrics and options.spice_tuples:
        lookup.module('metrics', 'spice').check_several(options.spice_tuples)


def preflight(config) -> list[tuple[str, str, str]]:
    """(metric, 'can run' or 'cannot run', how, or what is lacking), offline; most are tried on two pairs of texts."""
    options = config.evaluate
    spice = functools.partial(
        lookup.module('metrics', 'spice').check,
        tuples=options.spice_tuples, folder=options.pycocoevalcap, corenlp=options.corenlp, java=options.java,
    )  # fmt: skip
    tried = {'words (ptb)': lambda: tokenise(config)(['a dog'])[1]}
    for name, scorer in scorers(config).items():
        # Of SPICE the parser would be loaded, which takes half a minute, and tuples are those of certain texts.
        try_it = lambda scorer=scorer: next(iter(scorer(*_TRY).signatures.values()))
        tried[name] = spice if name == 'spice' else try_it
    rows = []
    for name, how in tried.items():
        try:
            rows.append((name, 'can run', how()))
        except resources.Unavailable as error:
            rows.append((name, 'cannot run', str(error)))
    return rows


def _scorer(options, name) -> Scorer:
    table = lookup.module('metrics', name).table
    shared = {'folder': options.pycocoevalcap, 'java': options.java}
    if name == 'meteor':
        return functools.partial(table, backend=options.meteor, **shared)
    if name == 'spice':
        return functools.partial(table, tuples=options.spice_tuples, corenlp=options.corenlp, **shared)
    if name == 'bertscore':
        return _needing(options.bertscore.encoder, _NO_ENCODER, functools.partial(_bertscore, options.bertscore, table))
    if name == 'bleurt':
        return _needing(options.bleurt, _NO_BLEURT, functools.partial(_bleurt, options.bleurt, table))
    return table


def _needing(folder, lacking, scorer) -> Scorer:
    """The scorer, or where no folder is named what is lacking: JAX is not imported to tell that."""

    def unavailable(predictions, references):
        raise resources.Unavailable(lacking)

    return scorer if folder else unavailable


class _Remembered:
    """A scorer that keeps its last table. `TOKENISED` metrics see other texts under each protocol: two are kept."""

    def __init__(self, scorer):
        self.scorer, self.kept = scorer, []

    def __call__(self, predictions: base.Predictions, references: base.References) -> base.Table:
        for texts, table in self.kept:
            if texts == (predictions, references):
                return table
        table = self.scorer(predictions, references)
        self.kept = [*self.kept[-1:], ((predictions, references), table)]
        return table


def _bertscore(options, table, predictions, references):
    from evil_jax.interop import encoder  # JAX, of which other metrics have no need

    embed = encoder.open_encoder(options.encoder, options.layer)
    return table(predictions, references, embed=embed, idf=options.idf, baseline=options.baseline or None)


def _bleurt(folder, table, predictions, references):
    from evil_jax.interop import bleurt

    return table(predictions, references, regress=bleurt.open_bleurt(folder))
