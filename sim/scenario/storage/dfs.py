"""`dfs:` of `storage:`, a distributed file system, as it is written and as the model has it."""

from __future__ import annotations

from pathlib import Path

from sim.model import storage as model
from sim.scenario.grammar.options import Options, built
from sim.scenario.storage.page import StoragePage
from sim.scenario.storage.slow_places import SlowPlacesField, build_slow
from sim.scenario.text.problems import DocumentPath, Reading


class Dfs(Options, of=(model.Dfs,)):
    """A distributed file system: blocks are written through a pipeline of replicas, the slowest sets the pace."""

    slow: SlowPlacesField | None = None


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
        slow=build_slow(given.slow, (*here, "slow"), reading, folder),
    )


DFS = StoragePage("dfs", Dfs, build_dfs, {"bandwidth": "bandwidth", "file-latency": "latency", "slow": "slow"})
