"""Scenes and the examples asked about them, balanced, in any number."""

import collections
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from evil_jax.data.shapes import language_vcr, language_ve, language_vqa
from evil_jax.data.shapes.explanations import explain
from evil_jax.data.shapes.queries import Query, Verdict, judge
from evil_jax.data.shapes.scene import Scene, key, make_scene

# A scene belongs to the split in whose range its key falls, so that no two splits share a scene, whatever the counts.
_KEY_RANGES = {'train': range(8), 'dev': range(8, 9), 'test': range(9, 10)}
_PER_SCENE = (4, 7)  # examples of a scene: from, below


class Item(NamedTuple):
    """One example before it is written."""

    number: int  # within its scene
    query: Query
    verdict: Verdict
    text: str
    explanations: list[str]
    words: list[int]
    choices: tuple[str, ...] = ()  # of the form shapes_vcr
    label: int | None = None  # the right choice
    denied: tuple[str, ...] = ()  # false explanations


def generate(form: str, split: str, count: int, seed) -> Iterator[tuple[Scene, list[Item], np.random.Generator]]:
    """Scenes with their examples, `count` examples in all; the generator of a scene serves whatever follows from it.

    Kinds and labels are balanced: each example takes what is furthest behind its share among what the scene offers.
    """
    shares = _shares(form)
    made, done = collections.Counter(), 0
    for scene, rng in scenes(split, seed):
        if done >= count:
            return
        items = _items(form, scene, min(int(rng.integers(*_PER_SCENE)), count - done), shares, made, rng)
        if items:
            done += len(items)
            yield scene, items, rng


def scenes(split: str, seed) -> Iterator[tuple[Scene, np.random.Generator]]:
    """Scenes of a split without end, each with a generator of its own for whatever follows from it."""
    for number in itertools.count():
        rng = np.random.default_rng([*seed, number])
        scene = make_scene(rng)
        while key(scene) % 10 not in _KEY_RANGES[split]:
            scene = make_scene(rng)
        yield scene, rng


def _shares(form) -> dict[tuple, float]:
    if form != 'shapes_ve':
        return _LANGUAGES[form].SHARES
    labels = language_ve.LABELS
    return {(kind, label): share / len(labels) for kind, share in language_ve.SHARES.items() for label in labels}


def _items(form, scene, wanted, shares, made, rng) -> list[Item]:
    items, asked = [], set()
    buckets = list(shares)
    while len(items) < wanted:
        total = made.total() + 1
        noise = rng.random(len(buckets))
        order = sorted(
            range(len(buckets)), key=lambda i: made[buckets[i]] - shares[buckets[i]] * total + 0.5 * noise[i]
        )
        for bucket in (buckets[i] for i in order):
            query = _LANGUAGES[form].sample(scene, *bucket, rng)
            if query is not None and query not in asked:
                break
        else:
            return items  # the scene offers no more
        asked.add(query)
        made[bucket] += 1
        items.append(_ITEMS[form](len(items), scene, query, judge(scene, query), rng))
    return items


def _explained(number, scene, query, verdict, text, rng):
    words = language_ve.decisive_words(text, query, verdict.missing)
    return Item(number, query, verdict, text, explain(scene, query, verdict, rng), words)


def _statement(number, scene, query, verdict, rng):
    return _explained(number, scene, query, verdict, language_ve.phrase(query, rng), rng)


def _question(number, scene, query, verdict, rng):
    return _explained(number, scene, query, verdict, language_vqa.phrase(query), rng)


def _choice(number, scene, query, verdict, rng):
    text = language_vcr.phrase(query)
    choices, label = language_vcr.choices(scene, query, verdict, rng)
    reason, denied = language_vcr.rationales(scene, query, verdict, rng)
    words = language_vcr.decisive_words(text)
    return Item(number, query, verdict, text, [reason], words, tuple(choices), label, tuple(denied))


_LANGUAGES = {'shapes_ve': language_ve, 'shapes_vqa': language_vqa, 'shapes_vcr': language_vcr}
_ITEMS = {'shapes_ve': _statement, 'shapes_vqa': _question, 'shapes_vcr': _choice}
