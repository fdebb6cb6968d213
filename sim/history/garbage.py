"""What the JVMs of a job have spent in garbage collection, from Flink's answer about each TaskManager (its `garbageCollectors`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sim.analysis.number_texts import ms_text, share_text
from sim.foreign import one_line
from sim.recordings.source.rest.answers import GarbageCollector

_NOTABLE = 0.05
"""Less of the time is usual for a JVM."""
_FULL_MS = 1000
"""Full collections stop all threads; from so much in all on they are told, however long the job has run."""
_LISTED = 3
_ALL = "All"  # Flink's sum of the others
_CONCURRENT = ("Cycles", "Concurrent")  # names of collectors whose times are no pauses (ZGC, Shenandoah, G1)
_FULL = ("Old", "MarkSweep")


class Garbage(NamedTuple):
    """The collections of one JVM since it began."""

    collections: int
    ms: int
    full: int
    full_ms: int


def garbage_of(collectors: Iterable[GarbageCollector]) -> Garbage:
    """The collections that stop the threads."""
    stopping = [collector for collector in collectors if collector.name != _ALL and not any(word in collector.name for word in _CONCURRENT)]
    full = [collector for collector in stopping if any(word in collector.name for word in _FULL)]
    counts = ((max(collector.count, 0), max(collector.time, 0)) for collector in stopping)
    collections, ms = (sum(column) for column in zip(*counts, strict=True)) if stopping else (0, 0)
    return Garbage(collections, ms, sum(max(collector.count, 0) for collector in full), sum(max(collector.time, 0) for collector in full))


def is_much(garbage: Garbage, age_ms: int) -> bool:
    """`age_ms`: of the job; 0: not known."""
    return garbage.full_ms >= _FULL_MS or (age_ms > 0 and garbage.ms > _NOTABLE * age_ms)


def garbage_text(found: Mapping[str, Garbage], age_ms: int) -> str:
    """A sentence about the JVMs that collect much; empty: none does, or Flink was not asked."""
    listed = sorted((name for name, garbage in found.items() if is_much(garbage, age_ms)), key=lambda name: -found[name].ms)
    if not listed:
        return ""
    texts = "; ".join(_of_one(name, found[name], age_ms) for name in listed[:_LISTED])
    unlisted = f"; and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return f"Garbage collection: {texts}{unlisted}. Threads stand still meanwhile; Flink's answers do not say when that was."


def _of_one(name: str, garbage: Garbage, age_ms: int) -> str:
    full = f", {garbage.full} of them full ({ms_text(garbage.full_ms)})" if garbage.full else ""
    share = f", {share_text(min(garbage.ms / age_ms, 1.0))} of the time that the job has run" if age_ms > 0 else ""
    return f"{one_line(name, 40)} has spent {ms_text(garbage.ms)} in {garbage.collections} collections{full}{share}"
