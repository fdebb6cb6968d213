"""The draws of ``sim.model.randomness`` as endless iterators, computed in blocks: how a SimPy model would consume them.

A baseline that computed one hash per record in Python would be slow for a reason that has nothing to do with SimPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

import numpy as np

from sim.model.randomness import MASK32, Stream

__all__ = ["choices", "values"]

FIRST_BLOCK, LARGEST_BLOCK = 256, 8192


def blocks(stream: Stream) -> Iterator[np.ndarray]:
    """Uniform 32-bit integers of a stream in order, in blocks that grow while more are wanted."""
    k, n = 0, FIRST_BLOCK
    while True:
        x = (np.arange(k, k + n, dtype=np.uint64) & MASK32) * np.uint64(stream.stride) + np.uint64(
            stream.offset
        ) & MASK32
        for _ in range(2):
            x = ((x >> 16) ^ x) * np.uint64(0x45D9F3B) & MASK32
        yield (x >> 16) ^ x
        k, n = k + n, min(2 * n, LARGEST_BLOCK)


def values(table: tuple[int, ...], stream: Stream) -> Iterator[int]:
    """The values of an integer quantile table in the order of the stream (rule W2); one entry is a constant."""
    if len(table) == 1:
        return repeat(table[0])
    entries = np.array(table, np.int64)
    return chain.from_iterable(entries[(u * np.uint64(len(table)) >> 32)].tolist() for u in blocks(stream))


def choices(n: int, stream: Stream) -> Iterator[int]:
    """Uniform choices out of range(n) (rule O5, hash without weights)."""
    return chain.from_iterable((u * np.uint64(n) >> 32).tolist() for u in blocks(stream))
