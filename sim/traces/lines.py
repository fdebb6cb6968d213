"""The lines of an untrusted file, of any length and packed any number of times, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from sim.foreign import Readable

BLOCK = 1 << 20
MOST_LINE = 1 << 16
"""Bytes; rows of numbers have hundreds."""
MOST_EXPANSION, HARMLESS = 200, 100 << 20
"""gzip gains a factor of 5 to 50 on real tables and 1000 on bombs; up to 100 MB are accepted in any case."""
GZIP = b"\x1f\x8b"


class TraceFileError(Readable, ValueError):
    """Reading cannot continue; the rows before are good.  One line."""


class TraceLine(NamedTuple):
    """A line of a file."""

    number: int  # from 1
    text: str
    fault: str = ""  # reason why it is no row: then `text` is its beginning


def lines(stream: BinaryIO) -> Iterator[TraceLine]:
    """Lines without their ends.  TraceFileError: damaged, or a bomb."""
    number, kept, skipping = 0, b"", False
    for block in unpacked(stream):
        *ended, rest = (kept + block).split(b"\n")
        for line in ended:
            number += 1
            yield _line(number, line, cut=skipping)
            skipping = False
        if len(rest) > MOST_LINE:  # keep the beginning only
            rest, skipping = rest[:MOST_LINE], True
        kept = rest
    if kept:
        yield _line(number + 1, kept, cut=skipping)


def _line(number: int, data: bytes, *, cut: bool) -> TraceLine:
    if cut or len(data) > MOST_LINE:
        return TraceLine(number, data[:MOST_LINE].decode("utf-8", errors="replace"), "the line is too long")
    try:
        return TraceLine(number, data.decode("utf-8").rstrip("\r"))
    except UnicodeDecodeError:
        return TraceLine(number, data.decode("utf-8", errors="replace").rstrip("\r"), "is not UTF-8")


def unpacked(stream: BinaryIO) -> Iterator[bytes]:
    """The unpacked content, block by block.  TraceFileError: damaged, or a bomb."""
    first = stream.read(BLOCK)
    if first[: len(GZIP)] == GZIP:
        yield from _unpacked(first, stream)
        return
    while first:
        yield first
        first = stream.read(BLOCK)


def _unpacked(data: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """Unpack gzip, member after member."""
    read = expanded = 0
    unpack, within = zlib.decompressobj(wbits=31), False
    while data:
        read += len(data)
        while data:
            try:
                block = unpack.decompress(data, BLOCK)
            except zlib.error:
                raise TraceFileError("is damaged: later rows cannot be unpacked, and earlier ones may be garbled") from None
            expanded += len(block)
            if expanded > HARMLESS and expanded > MOST_EXPANSION * read:
                raise TraceFileError(f"expands more than {MOST_EXPANSION} times: not read any further")
            yield block
            data, within = unpack.unconsumed_tail, not unpack.eof
            if unpack.eof:
                data, unpack = unpack.unused_data, zlib.decompressobj(wbits=31)
        data = stream.read(BLOCK)
    if within:
        raise TraceFileError("is truncated: rows after this one are missing")
