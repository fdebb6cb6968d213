"""The `storage:` section as it is written: flat, a distributed file system or an object store, and local disks.

Defaults live in the model: a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Tag

from sim.scenario.grammar.fields import Axis, ByteRate, Duration, Number, Positive, Share, Size, choice
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Texts
from sim.scenario.storage.dfs import Dfs
from sim.scenario.storage.object_store import ObjectStore

__all__ = ["Disk", "FileMerging", "Retry", "Slow", "Storage"]

Switch = Annotated[str, choice("on", "off", "true", "false")]


class Slow(Section):
    """A share of the files is slow: bandwidth divided, latency multiplied by the factor."""

    HINTS: ClassVar[Texts] = {"lasts": "only nodes are slow for a while: write it in dfs: {slow: ...}"}

    share: Axis[Share]
    """Share of the files that are slow."""
    factor: Axis[Positive]
    """Bandwidth of a slow file is divided by this, latency multiplied."""


class Disk(Section):
    """The local disk of each task manager."""

    bandwidth: Axis[ByteRate] | None = None
    """Shared by all that read and write."""
    space: Axis[Size] | None = None
    """Full is a failure."""


class Retry(Section):
    """How long a client of storage insists."""

    attempts: Axis[Positive] | None = None
    """The first one included."""
    backoff: Axis[Duration] | None = None
    """Before the second attempt; doubles."""
    max_backoff: Axis[Duration] | None = None
    """Longest wait between two attempts."""
    timeout: Axis[Duration] | None = None
    """Longest attempt at a request, block or part; default: it waits for ever."""


class FileMerging(Section):
    """execution.checkpointing.file-merging.*: small files of a checkpoint share a physical one."""

    max_file_size: Axis[Size] | None = None
    """A physical file is not longer."""
    across_checkpoints: Axis[Switch] | None = None
    """Files of several checkpoints share a physical one."""
    max_space_amplification: Axis[Number] | None = None
    """Below 1: no limit."""


class Storage(Section):
    """Checkpoint storage: every open file is one stream, unless dfs or object-store says otherwise."""

    HINTS: ClassVar[Texts] = {
        "slow-share": "write slow: {share: 2 %, factor: 20}",
        "nodes": "nodes stand in dfs: {nodes: 50}",
        "s3": "write object-store: {}",
        "hdfs": "write dfs: {nodes: 50}",
        "replication": "replication stands in dfs:",
    }

    bandwidth: Axis[ByteRate] | None = None
    """Writing, per open file."""
    read_bandwidth: Axis[ByteRate] | None = None
    """Reading, per open file."""
    file_latency: Axis[Duration] | None = None
    """Added to each file."""
    slow: Slow | None = None
    """Some files are slow, by chance."""
    metadata_latency: Axis[Duration] | None = None
    """Latency of the _metadata file the coordinator writes."""
    inline_threshold: Axis[Size] | None = None
    """Smaller state travels in the acknowledgement, no file."""
    nic: Axis[ByteRate] | None = None
    """Rate of each task manager towards storage, in and out apart; all its streams share it.  Not for flat storage."""
    dfs: Dfs | None = None
    """A distributed file system instead of flat storage."""
    object_store: ObjectStore | None = None
    """An object store instead of flat storage."""
    disk: Disk | None = None
    """The local disk of a task manager."""
    retry: Retry | None = None
    """How long a client insists."""
    file_merging: Axis[Annotated[Annotated[Switch, Tag("text")] | Annotated[FileMerging, Tag("map")], MAP_OR_TEXT]] | None = None
    """Small files of a checkpoint share a physical one."""
