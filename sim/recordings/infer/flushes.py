"""What snapshots of RocksDB cost beside their bytes: the synchronous part, and the wait for a disk on which files are being merged.

The flush that makes one file too many starts a compaction, whose result is in the next checkpoint.  The snapshot that flushed shares its
disk with it, so it takes longer than others: in its synchronous part, its asynchronous one, or both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from statistics import median
from typing import NamedTuple

from sim.model.state import Lsm
from sim.quantities.observed import NEGLIGIBLE_MS
from sim.recordings.infer.draft import Draft
from sim.recordings.infer.file_history import Files, acknowledged, files_of, history
from sim.recordings.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.units import format_byte_rate, format_duration, format_share, parse_share

_FEWEST = 3
"""Fewer snapshots beside a compaction tell nothing about it."""


class _Snapshot(NamedTuple):
    """A snapshot of one subtask, and the compactions that it starts and stores."""

    checkpoint: int
    sync_ms: int
    async_ms: int
    merged_bytes: float  # by the compaction that it starts; 0: none
    brings_merged: bool  # whether it writes what a compaction left


def infer_flushes(draft: Draft, vertex: str, points: Sequence[RecordedCheckpoint], found: Iterable[tuple[int, Files]]) -> None:
    """Set `state: {lsm: {freeze, flush, wait}}`, which another backend does not inherit.

    `found`: what files tell of subtasks, by their index.
    """
    found = list(found)
    by_subtask = acknowledged(points, vertex)
    snapshots = [snapshot for index, files in found for snapshot in _snapshots(by_subtask[index], files)]
    quiet = [snapshot for snapshot in snapshots if not snapshot.merged_bytes]
    if not quiet:
        return
    sync_ms, flushed = median(snapshot.sync_ms for snapshot in quiet), median(files.increment_bytes for _, files in found)
    flush_ms = flushed / Lsm().flush_bytes_per_second * 1000
    origin = f"median of {len(quiet)} synchronous phases: {sync_ms:g} ms"
    if sync_ms >= flush_ms:
        rest_ms = round(sync_ms - flush_ms)
        draft.put("state.lsm.freeze", format_duration(rest_ms * 10**6), f"{origin}, less the flush of {flushed:,.0f} bytes", job=vertex)
    else:
        rate = format_byte_rate(max(round(flushed / max(sync_ms, 1) * 1000), 1))
        draft.put("state.lsm.flush", rate, f"{flushed:,.0f} bytes / {origin}", job=vertex)
        draft.put("state.lsm.freeze", "0 s", job=vertex)
    plain = [snapshot.async_ms for snapshot in quiet if not snapshot.brings_merged]
    delayed = [snapshot for snapshot in snapshots if snapshot.merged_bytes and not snapshot.brings_merged]
    if not plain or len(delayed) < _FEWEST:
        return
    usual_ms = sync_ms + median(plain)
    longer_ms = [snapshot.sync_ms + snapshot.async_ms - usual_ms for snapshot in delayed]
    if median(longer_ms) <= NEGLIGIBLE_MS:
        return
    per_ms = Lsm().compaction_bytes_per_second / 1000
    shares = [ms * per_ms / snapshot.merged_bytes for ms, snapshot in zip(longer_ms, delayed, strict=True)]
    share = Fraction(round(100 * min(median(shares), 1.0)), 100)
    draft.put("state.lsm.wait", format_share(share), (
        f"{len(delayed)} snapshots that start a compaction take {median(longer_ms):,.0f} ms longer than others (median)"
    ), job=vertex)  # fmt: skip


def explained_ms(draft: Draft, points: Sequence[RecordedCheckpoint], vertex: str) -> dict[tuple[int, int], float]:
    """(checkpoint, subtask) -> what the file that is being written makes its snapshot wait for a compaction."""
    share = draft.document["job"][vertex].get("state", {}).get("lsm", {}).get("wait")
    if share is None:
        return {}
    ms_per_byte = float(parse_share(share)) * 1000 / Lsm().compaction_bytes_per_second
    return {
        (snapshot.checkpoint, index): snapshot.merged_bytes * ms_per_byte
        for index, own in acknowledged(points, vertex).items()
        if (files := files_of(history(own))) is not None
        for snapshot in _snapshots(own, files)
        if snapshot.merged_bytes and not snapshot.brings_merged
    }


def _snapshots(own: Iterable[tuple[RecordedCheckpoint, RecordedSubtask]], files: Files) -> Iterator[_Snapshot]:
    falls = {point.checkpoint for point in files.falls}
    known = [(point, subtask) for point, subtask in own if min(subtask.checkpoint.sync, subtask.checkpoint.async_) >= 0]
    after = [point.id in falls for point, _ in known[1:]]
    for (point, subtask), starts in zip(known, [*after, False], strict=True):
        level_0, below = Lsm().level0_files * files.increment_bytes, Lsm().base_bytes
        merged = min(float(max(subtask.state_size, 0)), level_0 + below) if starts else 0.0
        yield _Snapshot(point.id, subtask.checkpoint.sync, subtask.checkpoint.async_, merged, point.id in falls)
