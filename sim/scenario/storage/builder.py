"""The `storage:` section -> the model, and every check that needs values."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path as FilePath
from typing import TypeVar

from sim.model.job import Distribution
from sim.model.storage import Dfs, Disk, FileMerging, ObjectStore, Retry, SlowNodes, Storage
from sim.scenario.distribution.builder import law
from sim.scenario.job.trace import TraceError
from sim.scenario.storage import document as doc
from sim.scenario.storage.slow_trace import read_slowness
from sim.scenario.text.problems import Path, Reading

__all__ = ["build_storage"]

T = TypeVar("T")
_HERE = "storage"
_FLAT = {"bandwidth": "bandwidth", "read-bandwidth": "", "file-latency": "latency", "slow": "slow"}
"""Keys of flat storage -> what a dfs has instead."""


def build_storage(given: doc.Storage, reading: Reading, folder: FilePath) -> Storage:
    """Mistakes go to `reading`."""
    slow = given.slow
    _check_kind(given, reading)
    return _given(
        Storage(),
        bytes_per_second=given.bandwidth or None, read_bytes_per_second=given.read_bandwidth or None,
        close_ns=given.file_latency, metadata_ns=given.metadata_latency, inline_threshold_bytes=given.inline_threshold,
        slow_probability=None if slow is None else float(slow.share), slow_factor=None if slow is None else slow.factor,
        nic_bytes_per_second=given.nic or None,
        dfs=None if given.dfs is None else _dfs(given.dfs, reading, folder),
        object_store=None if given.object_store is None else _object_store(given.object_store, reading),
        disk=None if given.disk is None else Disk(given.disk.bandwidth or None, given.disk.space),
        retry=_retry(given.retry or doc.Retry(), reading),
        merging=_merging(given, reading),
    )  # fmt: skip


def _check_kind(given: doc.Storage, reading: Reading) -> None:
    if given.dfs is not None and given.object_store is not None:
        reading.wrong((_HERE, "object-store"), "storage is a dfs already: write one of the two")
    kind = "dfs" if given.dfs is not None else "object-store" if given.object_store is not None else None
    for key, instead in _FLAT.items():
        if kind is not None and getattr(given, key.replace("-", "_")) is not None:
            has = f": write {kind}: {{{instead}: ...}}" if instead and (kind, instead) != ("object-store", "slow") else ""
            reading.wrong((_HERE, key), f"is a key of flat storage, which has no {kind}{has}")
    if kind is None and given.nic is not None:
        reading.wrong((_HERE, "nic"), "has no effect: the streams of flat storage share nothing; write dfs: or object-store:")


def _dfs(given: doc.Dfs, reading: Reading, folder: FilePath) -> Dfs:
    here: Path = (_HERE, "dfs")
    if given.block == 0:
        reading.wrong((*here, "block"), "must be more than 0")
    if given.replication is not None and given.replication > given.nodes:
        reading.wrong((*here, "replication"), f"is {given.replication}, but there are {given.nodes} nodes")
    default = Dfs(given.nodes)
    if given.bandwidth == 0:
        default = replace(default, bytes_per_second=None)
    return _given(
        default, bytes_per_second=given.bandwidth or None, nic_bytes_per_second=given.nic or None,
        stream_bytes_per_second=given.stream_bandwidth or None, replication=min(given.replication or default.replication, given.nodes),
        block_bytes=given.block,
        latency=law(given.latency, default.latency, (*here, "latency"), reading),
        requests_per_second=_per_second(given.requests, (*here, "requests"), reading), service=given.service,
        local_first=_switch(given.local_first), slow=_slow_nodes(given.slow, (*here, "slow"), reading, folder),
    )  # fmt: skip


def _slow_nodes(given: doc.SlowNodes | doc.SlowSeries | None, here: Path, reading: Reading, folder: FilePath) -> SlowNodes | None:
    if given is None:
        return None
    if isinstance(given, doc.SlowSeries):
        try:
            return SlowNodes(trace=read_slowness(given, folder))
        except TraceError as error:
            reading.wrong((*here, "trace"), str(error))
            return None
    lasts = law(given.lasts, SlowNodes().lasts, (*here, "lasts"), reading)
    if isinstance(given.lasts, int):
        lasts = Distribution(given.lasts, "exponential")
    if lasts.mean == 0:
        reading.wrong((*here, "lasts"), "must be more than 0")
    return SlowNodes(given.share, given.factor, lasts)


def _object_store(given: doc.ObjectStore, reading: Reading) -> ObjectStore:
    here: Path = (_HERE, "object-store")
    if given.part == 0:
        reading.wrong((*here, "part"), "must be more than 0")
    default = ObjectStore() if given.bandwidth != 0 else ObjectStore(None)
    return _given(
        default, bytes_per_second=given.bandwidth or None, part_bytes=given.part, parallel_parts=given.parallel_parts,
        latency=law(given.latency, default.latency, (*here, "latency"), reading), prefixes=given.prefixes, client=given.client,
        requests_per_second=_per_second(given.requests, (*here, "requests"), reading),
    )  # fmt: skip


def _retry(given: doc.Retry, reading: Reading) -> Retry:
    if given.timeout == 0:
        reading.wrong((_HERE, "retry", "timeout"), "of 0 fails every attempt: write at least '1 ms'")
    return _given(Retry(), attempts=given.attempts, backoff_ns=given.backoff, most_backoff_ns=given.max_backoff, timeout_ns=given.timeout)


def _merging(given: doc.Storage, reading: Reading) -> FileMerging | None:
    merging, here = given.file_merging, (_HERE, "file-merging")
    if merging is None or isinstance(merging, str):
        options = FileMerging() if merging in ("on", "true") else None
    else:
        if merging.max_file_size == 0:
            reading.wrong((*here, "max-file-size"), "must be more than 0")
        options = _given(
            FileMerging(), max_file_bytes=merging.max_file_size, across=_switch(merging.across_checkpoints),
            max_space_amplification=merging.max_space_amplification,
        )  # fmt: skip
    if options is not None and given.object_store is not None:
        reading.wrong(here, "needs files that can be appended to: an object store has none")
    return options


def _per_second(given: Fraction | str | None, here: Path, reading: Reading) -> int | None:
    if given is None or isinstance(given, str):
        return None
    if given < 1:
        reading.wrong(here, "must be at least 1/s")
    return round(given)


def _switch(given: str | None) -> bool | None:
    return None if given is None else given in ("on", "true")


def _given(default: T, **values: object) -> T:
    """The default with every value that was written."""
    return replace(default, **{key: value for key, value in values.items() if value is not None})  # type: ignore[type-var]
