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

_PROBE = 300  # pairs of a sample: one shows the order of the labels and the speed, one how much is known
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
      'texts' (captions with hypotheses that were asked for), 'scored' (new ones), 'seconds', 'truncated' (by this
      process).

    Raises:
      ValueError: an order of labels that the pairs contradict, a cache of another model.
    """
    index, count = _together.place()
    start = time.perf_counter()
    total, some = _asked(sources)
    probe = _drawn(pair for pair in sources.merged_pairs() if pair.premise)
    with open_cache(sources.cache_path(model), model) as cache:
        known = len(cache)
        new = total * cache.missing(some) / len(set(some)) if some else 0
        _together.meet()  # whoever counts is not to find what others score
        texts = [(pair.premise, pair.hypothesis) for pair in probe]
        label_order.check(cache.scored(texts, model), [pair.label for pair in probe], model.stated)
        rate = _speed(model, texts) * count if new and texts else 0.0
        if index == 0:
            _tell(total, round(new), rate)
        with _Progress(total, index, count) as progress:
            for texts in _chunks(sources.asked_pairs(), sources.captions, index, count):
                cache.scored(texts, model, functools.partial(progress.batch, len(texts)))
                progress.chunk(len(texts))
        _together.meet()
        scored = len(cache) - known
    return {'texts': total, 'scored': scored, 'seconds': time.perf_counter() - start, 'truncated': model.truncated}


def _asked(sources) -> tuple[int, list[tuple[str, str]]]:
    """(how many captions with hypotheses are asked for, those of some pairs)."""
    total = 0

    def passing():
        nonlocal total
        for pair in sources.asked_pairs():
            total += len(sources.captions.get(pair.image_id, ()))
            yield pair

    drawn = _drawn(passing())
    return total, [(text, pair.hypothesis) for pair in drawn for text in sources.captions.get(pair.image_id, ())]


def _drawn(found: Iterator[pairs_lib.Pair]) -> list[pairs_lib.Pair]:
    """A few hundred pairs, drawn by chance but always the same."""
    drawn, order = [], random.Random(0)
    for number, pair in enumerate(found):
        entry = (order.random(), number, pair)
        heapq.heappush(drawn, entry) if len(drawn) < _PROBE else heapq.heappushpop(drawn, entry)
    return [pair for _, _, pair in sorted(drawn)]


def _speed(model, texts) -> float:
    """Pairs of texts a second, after as many that make the programs."""
    before = model.truncated
    model(texts)
    start = time.perf_counter()
    model(texts)
    seconds, model.truncated = time.perf_counter() - start, before  # what is cut was counted when it was scored
    return len(set(texts)) / seconds


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


def _tell(total: int, new: int, rate: float) -> None:
    """How long it will take; `new` of the texts, as a sample has it, are not known."""
    known = '0' if new == total else f'about {total - new:,}' if new else 'all'
    line = f'nli: {total:,} captions with hypotheses, {known} are known from before'
    print(f'{line}; {rate:,.0f} a second: about {_clock(new / rate)}' if rate else line, flush=True)


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
