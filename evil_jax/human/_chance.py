"""Chance that depends on a seed and on names alone: not on the order of files, nor on what else is drawn."""

import hashlib
import random
from collections.abc import Iterable


def rng(seed: int, *what: str) -> random.Random:
    """A generator of its own for each thing that is drawn."""
    return random.Random(_digest(seed, *what))


def order(seed: int, ids: Iterable[str]) -> list[str]:
    """Ids shuffled. Leaving some out changes nothing in the order of the others."""
    return sorted(ids, key=lambda name: (_digest(seed, 'order', name), name))


def opaque(seed: int, digits: int, *what: str) -> str:
    """Hex digits that tell nothing of the names they stand for."""
    return _digest(seed, *what)[:digits]


def _digest(seed, *what) -> str:
    # Lengths before the names: ('a', 'bc') and ('ab', 'c') are not the same.
    return hashlib.sha256(''.join(f'{len(name)}:{name}' for name in (str(seed), *what)).encode()).hexdigest()
