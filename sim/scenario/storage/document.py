"""The `storage:` section as it is written: flat, a distributed file system or an object store, and local disks."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Tag

from sim.model import storage
from sim.scenario.grammar.fields import Axis, OnOff, Positive, Share
from sim.scenario.grammar.options import Options
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Texts
from sim.scenario.storage.dfs import Dfs
from sim.scenario.storage.object_store import ObjectStore
from sim.scenario.storage.slow_places import SlowPlacesField


class Slow(Section):
    """A share of the files is slow: bandwidth divided, latency multiplied by the factor."""

    HINTS: ClassVar[Texts] = {"lasts": "nodes, prefixes and disks are slow for a while: write it in slow: of dfs:, object-store: or disk:"}

    share: Axis[Share]
    """Share of the files that are slow."""
    factor: Axis[Positive]
    """Bandwidth of a slow file is divided by this, latency multiplied."""


class Disk(Options, of=(storage.Disk,)):
    """The local disk of each task manager."""

    slow: SlowPlacesField | None = None


class Retry(Options, of=(storage.Retry,)):
    """How long a client of storage insists."""


class FileMerging(Options, of=(storage.FileMerging,)):
    """execution.checkpointing.file-merging.*: small files of a checkpoint share a physical one."""


class Storage(Options, of=(storage.Storage,)):
    """Checkpoint storage: every open file is one stream, unless dfs or object-store says otherwise."""

    HINTS: ClassVar[Texts] = {
        "slow-share": "write slow: {share: 2 %, factor: 20}",
        "nodes": "nodes stand in dfs: {nodes: 50}",
        "s3": "write object-store: {}",
        "hdfs": "write dfs: {nodes: 50}",
        "replication": "replication stands in dfs:",
    }

    slow: Slow | None = None
    dfs: Dfs | None = None
    object_store: ObjectStore | None = None
    disk: Disk | None = None
    retry: Retry | None = None
    file_merging: Axis[Annotated[Annotated[OnOff, Tag("text")] | Annotated[FileMerging, Tag("map")], MAP_OR_TEXT]] | None = None
