"""Flink's keys about state backends: what they say about each vertex with state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sim.model.catalogs.backends import BACKENDS

__all__ = ["CHANGELOG", "LOCAL_BACKUP", "LOCAL_RECOVERY", "LOCAL_RESTORE", "STATE_KEYS", "TTL", "state_values"]

CHANGELOG = "state.changelog.enabled"
LOCAL_BACKUP = "execution.checkpointing.local-backup.enabled"
LOCAL_RESTORE = "execution.state-recovery.from-local"
TTL = "table.exec.state.ttl"  # of the operators of a SQL job
LOCAL_RECOVERY = "state.backend.local-recovery"  # the old option, which is both

_ROCKSDB = {
    "state.backend.rocksdb.writebuffer.size": "memtable",
    "state.backend.rocksdb.memory.fixed-per-slot": "managed-memory",
    "state.backend.rocksdb.compaction.level.max-size-level-base": "base",
    "state.backend.rocksdb.compaction.level.target-file-size-base": "table",
}
_CHANGELOG = {
    "state.changelog.periodic-materialize.interval": "materialize",
    "state.changelog.dstl.dfs.preemptive-persist-threshold": "threshold",
    "state.changelog.dstl.dfs.batch.persist-delay": "batch-delay",
    "state.changelog.dstl.dfs.batch.persist-size-threshold": "batch-size",
    "state.changelog.dstl.dfs.upload.num-threads": "upload-threads",
    "state.changelog.dstl.dfs.upload.timeout": "upload-timeout",
    "state.changelog.dstl.dfs.upload.max-attempts": "upload-attempts",
}
STATE_KEYS: dict[str, str] = {
    CHANGELOG: "boolean",
    TTL: "duration",
    **dict.fromkeys(_ROCKSDB, "size"),
    "state.changelog.periodic-materialize.interval": "duration",
    "state.changelog.dstl.dfs.preemptive-persist-threshold": "size",
    "state.changelog.dstl.dfs.batch.persist-delay": "duration",
    "state.changelog.dstl.dfs.batch.persist-size-threshold": "size",
    "state.changelog.dstl.dfs.upload.num-threads": "integer",
    "state.changelog.dstl.dfs.upload.timeout": "duration",
    "state.changelog.dstl.dfs.upload.max-attempts": "integer",
}
"""Key -> how Flink writes it."""


def state_values(state: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """(place inside `state:`, value, key) of every key that says something about a vertex with this state.

    A time to live is about state that records write to: any other would only vanish.
    """
    backend = state.get("backend")
    if isinstance(backend, str) and backend in BACKENDS and "lsm" in BACKENDS[backend].sections:
        yield from ((("lsm", name), given[key], key) for key, name in _ROCKSDB.items() if key in given)
    if TTL in given and ("growth" in state or "update" in state):
        yield ("ttl",), given[TTL], TTL
    if given.get(CHANGELOG):
        details = [key for key in _CHANGELOG if key in given]
        yield from ((("changelog", _CHANGELOG[key]), given[key], key) for key in details)
        if not details:
            yield ("changelog",), "on", CHANGELOG
