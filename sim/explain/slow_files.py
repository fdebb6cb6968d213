"""Why a file took long: a slow node of a distributed file system, a slow prefix of an object store, or a slow stream of flat storage."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from sim.storage.media.dfs import DistributedFileSystem
from sim.storage.media.flat import FlatStorage
from sim.storage.media.object_store import ObjectStorage
from sim.storage.media.slow_nodes import slowness

if TYPE_CHECKING:
    from sim.model.storage import SlowPlaces
    from sim.runtime.context import Context
    from sim.storage.ledger import StoredFile

_MOST_BLOCKS = 1000


class SlowPlace(NamedTuple):
    """A slow place that a file had to pass."""

    factor: Fraction  # what the bandwidth is divided by
    place: str  # in words: which node, or the stream itself


def slow_file(context: Context, file: StoredFile) -> SlowPlace | None:
    """The slowest place that the bytes of a file had to pass; None: nothing was slower than it should be."""
    if file.disk:
        return None
    medium = context.storage.medium
    physical = file if file.inside is None else context.storage.files[file.inside]
    if isinstance(medium, FlatStorage):
        factor = medium.slowness(physical.name)
        return SlowPlace(Fraction(factor), "the stream was a slow one") if factor > 1 else None
    if isinstance(medium, DistributedFileSystem) and medium.options.slow is not None:
        return _slowest(medium.options.slow, medium.seed, _nodes(medium, physical), "node", physical)
    if isinstance(medium, ObjectStorage) and medium.options.slow is not None:
        return _slowest(medium.options.slow, medium.seed, {medium.prefix(physical.name)}, "prefix", physical)
    return None


def _nodes(dfs: DistributedFileSystem, file: StoredFile) -> set[int]:
    blocks = min(_MOST_BLOCKS, max(1, -(-file.size_bytes // dfs.options.block_bytes)))
    return {node for block in range(blocks) for node in dfs.replicas(file.name, file.host, block)}


def _slowest(slow: SlowPlaces, seed: int, numbers: set[int], title: str, file: StoredFile) -> SlowPlace | None:
    end_ns = file.created_ns if file.durable_ns is None else file.durable_ns
    moments = [file.created_ns + (end_ns - file.created_ns) * i // 8 for i in range(9)]
    slowest: SlowPlace | None = None
    for number in sorted(numbers):
        history = slowness(slow, seed, number)
        factor = max(history.at(moment)[0] for moment in moments)
        if factor > 1 and (slowest is None or factor > slowest.factor):
            slowest = SlowPlace(factor, f"{title} {number} was slow")
    return slowest
