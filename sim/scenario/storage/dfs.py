"""`dfs:` of `storage:`, a distributed file system, as it is written and as the model has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Discriminator, Tag

from sim.model import storage as model
from sim.model.job import Distribution
from sim.scenario.grammar.distribution import DurationField, law
from sim.scenario.grammar.fields import Axis, ByteRate, Positive, RecordRate, Share, Size, choice
from sim.scenario.grammar.given import given_values, per_second, switch
from sim.scenario.grammar.section import Section
from sim.scenario.job.trace import TraceError
from sim.scenario.storage.page import StoragePage
from sim.scenario.storage.slow_trace import SlowSeries, read_slowness
from sim.scenario.text.problems import DocumentPath, Reading

__all__ = ["DFS", "Dfs", "SlowNodes"]


class SlowNodes(Section):
    """Each node is slow for a share of its time, in episodes: bandwidth divided by the factor."""

    share: Axis[Share]
    """Share of the time that a node is slow."""
    factor: Axis[Positive]
    """Bandwidth of a slow node is divided by this."""
    lasts: Axis[DurationField] | None = None
    """An episode; a duration alone is the mean of an exponential one."""


def _slow_kind(value: object) -> str:
    return "trace" if isinstance(value, SlowSeries) or (isinstance(value, dict) and "trace" in value) else "episodes"


SlowNodesField = Annotated[
    Annotated[SlowNodes, Tag("episodes")] | Annotated[SlowSeries, Tag("trace")],
    Discriminator(_slow_kind),
]


class Dfs(Section):
    """A distributed file system: blocks are written through a pipeline of replicas, the slowest sets the pace."""

    nodes: Axis[Positive]
    """Data nodes."""
    bandwidth: Axis[ByteRate] | None = None
    """Rate of the disk of each node, shared fairly."""
    nic: Axis[ByteRate] | None = None
    """Rate of each node, in and out apart."""
    stream_bandwidth: Axis[ByteRate] | None = None
    """Rate of one open file."""
    replication: Axis[Positive] | None = None
    """Copies of a block."""
    block: Axis[Size] | None = None
    """Size of a block."""
    latency: Axis[DurationField] | None = None
    """Latency of each request to the metadata server, beside waiting."""
    requests: Axis[RecordRate] | None = None
    """Served by the metadata server, one after the other."""
    service: Axis[Annotated[str, choice("constant", "exponential")]] | None = None
    """How long a request keeps the metadata server: always the same, or exponential."""
    local_first: Axis[Annotated[str, choice("on", "off", "true", "false")]] | None = None
    """A node on each task manager's machine gets the first replica."""
    slow: SlowNodesField | None = None
    """Some nodes are slow, for a while."""


def build_dfs(given: Dfs, reading: Reading, folder: Path) -> model.Dfs:
    """Mistakes go to `reading`."""
    here: DocumentPath = ("storage", "dfs")
    if given.block == 0:
        reading.wrong((*here, "block"), "must be more than 0")
    if given.replication is not None and given.replication > given.nodes:
        reading.wrong((*here, "replication"), f"is {given.replication}, but there are {given.nodes} nodes")
    default = model.Dfs(given.nodes)
    if given.bandwidth == 0:
        default = replace(default, bytes_per_second=None)
    return given_values(
        default, bytes_per_second=given.bandwidth or None, nic_bytes_per_second=given.nic or None,
        stream_bytes_per_second=given.stream_bandwidth or None, replication=min(given.replication or default.replication, given.nodes),
        block_bytes=given.block,
        latency=law(given.latency, default.latency, (*here, "latency"), reading),
        requests_per_second=per_second(given.requests, (*here, "requests"), reading), service=given.service,
        local_first=switch(given.local_first), slow=_slow_nodes(given.slow, (*here, "slow"), reading, folder),
    )  # fmt: skip


def _slow_nodes(given: SlowNodes | SlowSeries | None, here: DocumentPath, reading: Reading, folder: Path) -> model.SlowNodes | None:
    if given is None:
        return None
    if isinstance(given, SlowSeries):
        try:
            return model.SlowNodes(trace=read_slowness(given, folder))
        except TraceError as error:
            reading.wrong((*here, "trace"), str(error))
            return None
    lasts = law(given.lasts, model.SlowNodes().lasts, (*here, "lasts"), reading)
    if isinstance(given.lasts, int):
        lasts = Distribution(given.lasts, "exponential")
    if lasts.mean == 0:
        reading.wrong((*here, "lasts"), "must be more than 0")
    return model.SlowNodes(given.share, given.factor, lasts)


DFS = StoragePage("dfs", Dfs, build_dfs, {"bandwidth": "bandwidth", "file-latency": "latency", "slow": "slow"})
