"""What the NLI model says of every caption and hypothesis that a filter asks about, into a cache: the slow part.

Several processes share the work, each with its part of the pairs, and the cache. What was scored before, by whatever
settings of the filters, is not scored again.
"""

import functools
import heapq
import random
import sys
import time
from collections.abc import Iterator

import tqdm

from evil_jax.construction import cleaning, label_order, scores
from evil_jax.construction import pairs as pairs_lib
from evil_jax.modes import _together

_PROBE = 300  # pairs that show the order of the labels, and then the speed
_EVERY = 60  # seconds between lines of progress in a log


def open_model(config):
    """The classifier of `construct.nli.model` on this process's devices, over which a batch is split.

    Raises:
      ValueError: no folder, or as `classifier.open_classifier`.
    """
    options = config.construct.nli
    if not options.model:
        raise ValueError(
            'construct.filters has filters that ask an NLI model: set construct.nli.model to the Hugging Face folder '
            'of a RoBERTa, BERT or DistilBERT that tells entailment, neutral and contradiction, or leave them out '
            "(--config=esnlive_construction:quick, or --config.construct.filters=\"('keywords', 'similarity')\")"
        )
    # Imported here: the other filters need no JAX.
    import jax

    from evil_jax.interop import classifier
    from evil_jax.training import sharding

    if _together.place()[1] > 1:  # each process has pairs of its own
        local = jax.local_devices()
        mesh, specs = jax.make_mesh((len(local),), ('data',), (jax.sharding.AxisType.Auto,), devices=local), None
    else:
        mesh = sharding.make_mesh(config)
        specs = lambda shapes: sharding.param_specs(shapes, config.sharding, mesh)
    return classifier.open_classifier(options.model, dtype=options.dtype, tokens=options.tokens, mesh=mesh, specs=specs)


def open_cache(path, model) -> scores.Cache:
    """What a model said; wherever its folder is."""
    return scores.Cache(path, {key: value for key, value in model.signature.items() if key != 'model'})


def fill(model, sources) -> dict:
    """Scores what is missing and tells how long that takes.

    Args:
      model: of `open_model`.
      sources: opened `_construction_sources.Sources`.

    Returns:
      'texts' (captions with hypotheses that were asked for), 'scored' (now, by this process), 'seconds', 'truncated'.

    Raises:
      ValueError: an order of labels that the pairs contradict, a cache of another model.
    """
    index, count = _together.place()
    start = time.perf_counter()
    total = sum(len(sources.captions.get(pair.image_id, ())) for pair in sources.asked_pairs())
    probe = _drawn(sources.merged_pairs())
    with open_cache(sources.cache_path(model), model) as cache:
        known = len(cache)
        rate = _probe(cache, model, probe) * count
        if index == 0:
            _tell(total, known, rate)
        with _Progress(total, index, count) as progress:
            for texts in _chunks(sources.asked_pairs(), sources.captions, index, count):
                cache.scored(texts, model, functools.partial(progress.batch, len(texts)))
                progress.chunk(len(texts))
        scored = len(cache) - known
    _together.meet()
    return {'texts': total, 'scored': scored, 'seconds': time.perf_counter() - start, 'truncated': model.truncated}


def _drawn(all_pairs: Iterator[pairs_lib.Pair]) -> list[pairs_lib.Pair]:
    """Pairs with a premise, drawn by chance but always the same."""
    drawn, order = [], random.Random(0)
    for number, pair in enumerate(all_pairs):
        if pair.premise:
            entry = (order.random(), number, pair)
            heapq.heappush(drawn, entry) if len(drawn) < _PROBE else heapq.heappushpop(drawn, entry)
    return [pair for _, _, pair in sorted(drawn)]


def _probe(cache: scores.Cache, model, probe) -> float:
    """Pairs of texts a second, of a few hundred after as many that make the programs; checks the order of labels."""
    texts = [(pair.premise, pair.hypothesis) for pair in probe]
    if not texts:
        return 0.0
    label_order.check(cache.scored(texts, model), [pair.label for pair in probe], model.stated)
    model(texts)  # makes the programs where all of these were known
    start = time.perf_counter()
    model(texts)
    return len(set(texts)) / (time.perf_counter() - start)


class _Progress:
    """A bar at a terminal, a line a minute in a log; of several processes by the first, as if all were as far."""

    def __init__(self, total: int, index: int, count: int):
        self._total, self._count, self._lines = total, count, index == 0 and not sys.stderr.isatty()
        self._bar = tqdm.tqdm(total=total, unit='texts', desc='nli', disable=index > 0 or not sys.stderr.isatty())
        self._before, self._clock = 0, time.perf_counter()

    def __enter__(self) -> '_Progress':
        return self

    def __exit__(self, *error) -> None:
        self._bar.close()

    def batch(self, texts: int, done: int, of: int) -> None:
        """Of a chunk's texts `of` were not known, and `done` of these are scored."""
        self._show(self._before + self._count * (texts - of + done))

    def chunk(self, texts: int) -> None:
        """A chunk of so many texts is done."""
        self._before += self._count * texts
        self._show(self._before)

    def _show(self, texts):
        now = min(texts, self._total)
        self._bar.update(now - self._bar.n)
        if self._lines and time.perf_counter() - self._clock > _EVERY:
            self._clock = time.perf_counter()
            print(f'nli: {now:,} of {self._total:,} texts', flush=True)


def _tell(total: int, known: int, rate: float) -> None:
    """How long it will take, if all that is known is asked for."""
    line = f'nli: {total:,} captions with hypotheses, {known:,} are known from before'
    left = max(0, total - known)
    print(f'{line}; {rate:,.0f} a second: about {_clock(left / rate)}' if rate else line, flush=True)


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f'{seconds:.0f} s'
    return f'{minutes // 60} h {minutes % 60:02} min' if minutes >= 60 else f'{minutes} min'


def _chunks(needed: Iterator[pairs_lib.Pair], captions, index: int, count: int) -> Iterator[list[tuple[str, str]]]:
    """Texts of every `count`-th thousand pairs, from the `index`-th on, cleaning.CHUNK or a little more at a time."""
    texts = []
    for number, pair in enumerate(needed):
        if number // 1_000 % count == index:
            texts += [(caption, pair.hypothesis) for caption in captions.get(pair.image_id, ())]
        if len(texts) >= cleaning.CHUNK:
            yield texts
            texts = []
    if texts:
        yield texts
