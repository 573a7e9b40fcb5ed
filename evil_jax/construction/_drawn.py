"""Samples that do not depend on the order in which items pass: the n items with the smallest hashes."""

import hashlib
import heapq
from typing import Any


def rank(seed: int, *texts: str) -> int:
    """A number of 64 bits that looks drawn by chance and is the same wherever and whenever it is asked for."""
    digest = hashlib.blake2b(digest_size=8, key=str(seed).encode())
    for text in texts:
        digest.update(text.encode() + b'\0')
    return int.from_bytes(digest.digest())


class Smallest:
    """The n items of the smallest ranks, n items in memory. No two of them have the same id."""

    def __init__(self, n: int):
        self._n, self._heap = n, []  # the largest rank is first

    def wants(self, rank: int, item_id: str) -> bool:
        """Whether `add` would keep this item now: to be asked for items that cost something to make."""
        return len(self._heap) < self._n or bool(self._n and (-rank, item_id) > self._heap[0][:2])

    def add(self, rank: int, item_id: str, item: Any) -> None:
        if self.wants(rank, item_id):
            put = heapq.heappush if len(self._heap) < self._n else heapq.heapreplace
            put(self._heap, (-rank, item_id, item))

    def items(self) -> list[Any]:
        """By rank, smallest first."""
        return [item for _, _, item in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)]
