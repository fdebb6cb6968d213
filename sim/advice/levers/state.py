"""Levers about keyed state: RocksDB, increments, the changelog, local copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sim.advice.levers.lever import ASYNC_WORK, FOLDER, RESTORE, SYNC, UPLOAD, Assumption, Change, Lever, Situation
from sim.model.catalogs.backends import BACKENDS
from sim.model.job import Distribution, Vertex
from sim.scenario.overrides import key_of
from sim.sweeps.file.design import Point

_DOCS = "nightlies.apache.org/flink/flink-docs-stable/docs/ops/state"
ACCESS_NS, LEAST_ACCESS_NS, MOST_ACCESS_NS = 10_000, 3_000, 100_000
"""What a record costs more in RocksDB than on the heap.

Assumed: one read (145 per ms) and one append (315 per ms) of flink-benchmarks#27 and #48, where the heap does 2,400 and 3,024.  Bounds:
an append alone, and a read from a disk.  Flink's documentation says: on average an order of magnitude slower than memory.
"""
MORE_THREADS = 16
CLAIM = "execution.state-recovery.claim-mode"


def _rocksdb(situation: Situation) -> Iterator[Change]:
    vertices = [vertex for vertex in situation.scenario.job.vertices if _is_on_heap(vertex)]
    if not vertices:
        return
    state: Point = {key_of(("job", vertex.name, "state", "backend")): "rocksdb" for vertex in vertices}
    point = {**state, "checkpoint.incremental": True, **_slower(situation, vertices, ACCESS_NS)}
    assumption = Assumption(
        "a record's access to RocksDB", "+10 us", "+3 us", "+100 us", _slower(situation, vertices, LEAST_ACCESS_NS),
        _slower(situation, vertices, MOST_ACCESS_NS), "dataArtisans/flink-benchmarks#27, #48",
    )  # fmt: skip
    yield Change(ROCKSDB, "RocksDB incremental", point, assumption=assumption)


def _is_on_heap(vertex: Vertex) -> bool:
    return vertex.state is not None and not BACKENDS[vertex.state.backend].keeps_files


def _slower(situation: Situation, vertices: list[Vertex], more_ns: int) -> Point:
    """Each record of these vertices takes longer."""
    point: Point = {}
    for vertex in vertices:
        point[key_of(("job", vertex.name, "service"))] = _written(_longer(vertex.service, more_ns))
        written = situation.plain["job"].get(vertex.name, {}).get("input") or {}
        for name, inlet in zip(written, vertex.inputs, strict=False):
            if isinstance(written[name], dict) and "service" in written[name]:
                point[key_of(("job", vertex.name, "input", name, "service"))] = _written(_longer(inlet.service, more_ns))
    return point


def _longer(law: Distribution, more_ns: int) -> Distribution:
    return replace(law, mean=law.mean + more_ns)


def _written(law: Distribution) -> Any:
    mean = f"{law.mean} ns"
    if law.kind == "constant":
        return mean
    return {law.kind: mean} if law.kind in ("exponential", "uniform") else {law.kind: {"mean": mean, "cv": law.cv}}


def _incremental(situation: Situation) -> Iterator[Change]:
    kept = any(vertex.state is not None and BACKENDS[vertex.state.backend].keeps_files for vertex in situation.scenario.job.vertices)
    if kept and not situation.scenario.checkpoint.state.incremental:
        yield Change(INCREMENTAL, "incremental", {"checkpoint.incremental": True})


def _changelog(situation: Situation) -> Iterator[Change]:
    vertices = [vertex for vertex in situation.scenario.job.vertices if vertex.state is not None and vertex.state.changelog is None]
    if vertices:
        yield Change(CHANGELOG, "changelog", {key_of(("job", vertex.name, "state", "changelog")): "on" for vertex in vertices})


def _local_recovery(situation: Situation) -> Iterator[Change]:
    has_state = any(vertex.state is not None for vertex in situation.scenario.job.vertices)
    if has_state and not situation.scenario.checkpoint.state.local_recovery:
        yield Change(LOCAL_RECOVERY, "local recovery", {"checkpoint.local-recovery": True})


def _transfer_threads(situation: Situation) -> Iterator[Change]:
    kept = any(vertex.state is not None and BACKENDS[vertex.state.backend].keeps_files for vertex in situation.scenario.job.vertices)
    if kept and situation.scenario.checkpoint.state.transfer_threads < MORE_THREADS:
        yield Change(TRANSFER_THREADS, f"{MORE_THREADS} transfer threads", {"checkpoint.transfer-threads": MORE_THREADS})


ROCKSDB = Lever(
    "RocksDB incremental", frozenset({UPLOAD, ASYNC_WORK}), _rocksdb,
    costs="each record reads and writes serialised state; local disks and managed memory; a savepoint and a restart",
    ask="does each TaskManager have local disk for its state, and managed memory for caches and write buffers?",
    short_ask="local disks for its state, and managed memory?",
    short_caution="only a canonical savepoint moves state to another backend",
    caution="only a canonical savepoint moves state to another backend: no checkpoint does",
    source=f"{_DOCS}/state_backends",
)  # fmt: skip
INCREMENTAL = Lever(
    "incremental", frozenset({UPLOAD}), _incremental, costs="more files in storage; a restore reads more of them",
    caution="'Checkpointed Data Size' shows the increment from then on", source=f"{_DOCS}/state_backends#incremental-checkpoints",
)  # fmt: skip
CHANGELOG = Lever(
    "changelog", frozenset({UPLOAD, ASYNC_WORK, SYNC}), _changelog,
    costs="every change of state is written a second time; a restore replays the log; on the heap state still has to fit into memory",
    short_ask="which folder of the checkpoint storage takes the log?",
    ask="which folder of the checkpoint storage takes the log (state.changelog.dstl.dfs.base-path)?",
    short_caution="restore with claim mode CLAIM: in NO_CLAIM the job restarts forever",
    caution="restore with claim mode CLAIM: in NO_CLAIM the first checkpoint has to be full, which the changelog refuses, and the job "
    "restarts without end. Flink 2.3 did so in an experiment. A claimed checkpoint belongs to the job; keep a savepoint to go back. "
    "Storage and folder of the log are read from the TaskManagers' own configuration, never from a job's: without them there, each "
    "checkpoint carries the whole log in memory",
    source=f"{_DOCS}/state_backends#enabling-changelog",
    flink_keys={"state.changelog.dstl.dfs.base-path": FOLDER, CLAIM: "CLAIM"},
)  # fmt: skip
LOCAL_RECOVERY = Lever(
    "local recovery", frozenset({RESTORE}), _local_recovery, costs="a second copy of state on the disk of each TaskManager",
    ask="does each TaskManager keep its disk and its slots when a task fails?",
    short_ask="do TaskManagers keep disk and slots when a task fails?",
    short_caution="a lost TaskManager loses its local copy",
    caution="a lost TaskManager loses its copy: then state is read from storage as before", source=f"{_DOCS}/large_state_tuning",
)  # fmt: skip
TRANSFER_THREADS = Lever(
    "transfer threads", frozenset({UPLOAD, RESTORE}), _transfer_threads, costs="more requests to storage at a time",
    source="state.backend.rocksdb.checkpoint.transfer.thread.num",
)  # fmt: skip
