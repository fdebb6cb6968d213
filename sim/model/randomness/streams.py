"""Randomness as a function: `draw(stream, k)` is the k-th number of a stream, for any caller and in any order.

Nothing is consumed: the same workload for every strategy and engine, and a restored task repeats its draws.
Every product stays below 2**63, so that compiled (wrapping) and interpreted (unbounded) integers agree.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import NamedTuple

import numpy as np

MASK32 = 0xFFFFFFFF


class Stream(NamedTuple):
    """Key of one stream: index k is visited at `k * stride + offset` (mod 2**32)."""

    stride: int  # odd, below 2**31
    offset: int  # below 2**32


def stream(seed: int, *names: str | int) -> Stream:
    """The stream of a named component, e.g. ``stream(seed, "service", "map", 3)``; other components never shift it."""
    key = hashlib.blake2b(repr((int(seed), *names)).encode(), digest_size=8).digest()
    return Stream(int.from_bytes(key[:4], "little") & 0x7FFFFFFF | 1, int.from_bytes(key[4:], "little"))


def mix32(x: int) -> int:
    """A bijection of 32-bit integers whose output bits all depend on all input bits (two multiply-xorshift rounds)."""
    x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    return (x >> 16) ^ x


def draw(key: Stream, k: int) -> int:
    """The k-th uniform 32-bit integer of a stream (k >= 0; repeats after 2**32)."""
    return mix32(((k & MASK32) * key.stride + key.offset) & MASK32)


def draws(key: Stream, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The first `count` numbers of a stream."""
    x = (np.arange(count, dtype=np.int64) * key.stride + key.offset) & MASK32
    for _ in range(2):
        x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    return (x >> 16) ^ x


def chance(share: Fraction, key: Stream, k: int) -> bool:
    """Whether something of this probability happens the k-th time."""
    return draw(key, k) * share.denominator < share.numerator << 32
