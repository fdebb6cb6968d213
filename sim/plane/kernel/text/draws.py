"""Numbers out of streams: the restricted twin of ``sim.model.randomness.streams``, quantile tables (W2), digests (G1), an exact product.

Every intermediate value stays below 2**63: the compiled integers wrap, the interpreted ones would not.
"""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.names import MASK31, MASK32


def draw(stride: int, offset: int, k: int) -> int:
    """The k-th uniform 32-bit integer of a stream."""
    x = ((k & MASK32) * stride + offset) & MASK32
    x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    x = ((x >> 16) ^ x) * 0x45D9F3B & MASK32
    return (x >> 16) ^ x


def law(w: PlaneState, table: int, n: int, stride: int, offset: int, k: int) -> int:
    """The k-th value of a quantile table of n entries; one entry is a constant."""
    if n == 1:
        return w.words[table]
    return w.words[table + ((draw(stride, offset, k) * n) >> 32)]


def record_size(w: PlaneState, c: int, table: int, n: int, k: int) -> int:
    """Bytes of the k-th record of a channel, whose stream is read only where sizes are drawn."""
    if n == 1:
        return w.words[table]
    ch = w.channels[c]
    return law(w, table, n, ch.stride, ch.offset, k)


def fold(digest: int, x: int) -> int:
    """One number into a digest (G1)."""
    return (((digest ^ (x & MASK31)) * 48271) + ((x >> 31) & MASK31)) & MASK31


def scaled(a: int, b: int, c: int) -> int:
    """``a * b // c`` for non-negative a, b < 2**61 and 0 < c < 2**61, though a * b may be too large: long division, bit by bit.

    The quotient stops growing beyond 2**31: no caller needs more.
    """
    multiple = a // c
    part = a - multiple * c
    quotient = 0
    rest = 0
    for i in range(61):
        bit = (b >> (60 - i)) & 1
        quotient = quotient * 2
        rest = rest * 2
        if bit == 1:
            quotient += multiple
            rest += part
        while rest >= c:
            rest -= c
            quotient += 1
        if quotient > MASK31:
            quotient = MASK31
    return quotient
