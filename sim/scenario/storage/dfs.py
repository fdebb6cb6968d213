"""`dfs:` of `storage:`, a distributed file system, as it is written and as the model has it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Discriminator, Tag

from sim.model import storage as model
from sim.model.job import Distribution
from sim.scenario.grammar.distribution import law
from sim.scenario.grammar.fields import Axis, Positive, Share
from sim.scenario.grammar.options import Options, built
from sim.scenario.job.trace import TraceError
from sim.scenario.storage.page import StoragePage
from sim.scenario.storage.slow_trace import SlowSeries, read_slowness
from sim.scenario.text.problems import DocumentPath, Reading


class SlowNodes(Options, of=(model.SlowNodes,)):
    """Each node is slow for a share of its time, in episodes: bandwidth divided by the factor."""

    share: Axis[Share]
    factor: Axis[Positive]


def _slow_kind(value: object) -> str:
    return "trace" if isinstance(value, SlowSeries) or (isinstance(value, dict) and "trace" in value) else "episodes"


SlowNodesField = Annotated[
    Annotated[SlowNodes, Tag("episodes")] | Annotated[SlowSeries, Tag("trace")],
    Discriminator(_slow_kind),
]


class Dfs(Options, of=(model.Dfs,)):
    """A distributed file system: blocks are written through a pipeline of replicas, the slowest sets the pace."""

    slow: SlowNodesField | None = None


def build_dfs(given: Dfs, reading: Reading, folder: Path) -> model.Dfs:
    """Mistakes go to `reading`."""
    here: DocumentPath = ("storage", "dfs")
    default = model.Dfs(given.nodes).replication
    if given.replication is not None and given.replication > given.nodes:
        reading.wrong((*here, "replication"), f"is {given.replication}, but there are {given.nodes} nodes")
    return built(
        model.Dfs,
        given,
        here,
        reading,
        replication=min(given.replication or default, given.nodes),
        slow=_slow_nodes(given.slow, (*here, "slow"), reading, folder),
    )


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
