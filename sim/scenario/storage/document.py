"""The `storage:` section as it is written: flat, a distributed file system or an object store, and local disks.

Defaults live in the model: a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Discriminator, Field, Tag

from sim.scenario.grammar.fields import Axis, ByteRate, Duration, Number, Positive, RecordRate, Share, Size, choice
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Words
from sim.scenario.job.document import DurationField

__all__ = ["Dfs", "Disk", "FileMerging", "ObjectStore", "Retry", "Slow", "SlowNodes", "SlowSeries", "Storage"]

Switch = Annotated[str, choice("on", "off", "true", "false")]


class Slow(Section):
    """A share of the files is slow: bandwidth divided, latency multiplied by the factor."""

    HINTS: ClassVar[Words] = {"lasts": "only nodes are slow for a while: write it in dfs: {slow: ...}"}

    share: Axis[Share]
    factor: Axis[Positive]


class SlowNodes(Section):
    """Each node is slow for a share of its time, in episodes: bandwidth divided by the factor."""

    share: Axis[Share]
    factor: Axis[Positive]
    lasts: Axis[DurationField] | None = None
    """An episode; a duration alone is the mean of an exponential one."""


class SlowSeries(Section):
    """Measured speeds from a CSV file (also .csv.gz), relative to the scenario; the median through time is a usual node."""

    trace: str = Field(min_length=1)
    column: str
    """Speed, in any unit."""
    time: str | None = None
    """Column of the time stamps, seconds or ISO 8601; default: the first column."""
    machine: str | None = None
    """Column that tells machines apart, each a series of its own."""
    from_: Axis[Duration] | None = Field(None, alias="from")
    """How far into the trace the run begins: nodes are its machines in turn, all at that moment.  Default: each node is one of them, from a
    moment of its own on."""


def _slow_kind(value: object) -> str:
    return "trace" if isinstance(value, SlowSeries) or (isinstance(value, dict) and "trace" in value) else "episodes"


SlowNodesField = Annotated[
    Annotated[SlowNodes, Tag("episodes")] | Annotated[SlowSeries, Tag("trace")], Discriminator(_slow_kind),
]


class Dfs(Section):
    """A distributed file system: blocks are written through a pipeline of replicas, the slowest sets the pace."""

    nodes: Axis[Positive]
    bandwidth: Axis[ByteRate] | None = None
    """Of the disk of each node, shared fairly."""
    nic: Axis[ByteRate] | None = None
    """Of each node, in and out apart."""
    stream_bandwidth: Axis[ByteRate] | None = None
    """Of one open file."""
    replication: Axis[Positive] | None = None
    block: Axis[Size] | None = None
    latency: Axis[DurationField] | None = None
    """Of each request to the metadata server, beside waiting."""
    requests: Axis[RecordRate] | None = None
    """Served by the metadata server, one after the other."""
    service: Axis[Annotated[str, choice("constant", "exponential")]] | None = None
    """How long a request keeps the metadata server: always the same, or exponential."""
    local_first: Axis[Switch] | None = None
    """A node on each task manager's machine gets the first replica."""
    slow: SlowNodesField | None = None


class ObjectStore(Section):
    """S3 and its kin: an object is there when it is closed, large ones go in parts, requests are limited."""

    bandwidth: Axis[ByteRate] | None = None
    """Of one request."""
    latency: Axis[DurationField] | None = None
    """Of one request, beside its bytes."""
    part: Axis[Size] | None = None
    """Files larger than this go in parts (s3.upload.min.part.size)."""
    parallel_parts: Axis[Positive] | None = None
    """Of one file (s3.upload.max.concurrent.uploads)."""
    requests: Axis[RecordRate] | None = None
    """Per prefix; more are turned away and retried."""
    client: Axis[Annotated[str, choice("hadoop", "presto")]] | None = None
    """presto asks whether a file is there before it writes a new one (two requests) or deletes one (one request)."""
    prefixes: Axis[Positive] | None = None
    """Files are spread over so many (s3.entropy.key)."""


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
    timeout: Axis[Duration] | None = None
    """Of one attempt at a request, block or part; default: it waits for ever."""


class FileMerging(Section):
    """execution.checkpointing.file-merging.*: small files of a checkpoint share a physical one."""

    max_file_size: Axis[Size] | None = None
    across_checkpoints: Axis[Switch] | None = None
    max_space_amplification: Axis[Number] | None = None
    """Below 1: no limit."""


class Storage(Section):
    """Checkpoint storage: every open file is one stream, unless dfs or object-store says otherwise."""

    HINTS: ClassVar[Words] = {
        "slow-share": "write slow: {share: 2 %, factor: 20}", "nodes": "nodes stand in dfs: {nodes: 50}",
        "s3": "write object-store: {}", "hdfs": "write dfs: {nodes: 50}", "replication": "replication stands in dfs:",
    }

    bandwidth: Axis[ByteRate] | None = None
    """Writing, per open file."""
    read_bandwidth: Axis[ByteRate] | None = None
    """Reading, per open file."""
    file_latency: Axis[Duration] | None = None
    """Added to each file."""
    slow: Slow | None = None
    metadata_latency: Axis[Duration] | None = None
    """Of the _metadata file the coordinator writes."""
    inline_threshold: Axis[Size] | None = None
    """Smaller state travels in the acknowledgement, no file."""
    nic: Axis[ByteRate] | None = None
    """Of each task manager towards storage, in and out apart; all its streams share it.  Not for flat storage."""
    dfs: Dfs | None = None
    object_store: ObjectStore | None = None
    disk: Disk | None = None
    retry: Retry | None = None
    file_merging: Axis[Annotated[Annotated[Switch, Tag("text")] | Annotated[FileMerging, Tag("map")], MAP_OR_TEXT]] | None = None
