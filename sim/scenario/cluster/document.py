"""`cluster:` as it is written: the options of the model, and what is no single value there."""

from __future__ import annotations

from typing import Annotated

from pydantic import Tag

from sim.model import cluster
from sim.scenario.grammar.fields import Axis, OnOff, choice
from sim.scenario.grammar.options import Options
from sim.scenario.grammar.section import MAP_OR_TEXT

__all__ = ["Cluster", "Debloat", "Network"]


class Debloat(Options, of=(cluster.Debloating,)):
    """taskmanager.network.memory.buffer-debloat.*"""


class Network(Options, of=(cluster.NetworkMemory,)):
    """Buffers as Flink counts them.  Every pool has as many as it may ask for: a task manager's network memory is not modelled."""

    debloat: Axis[Annotated[Annotated[OnOff, Tag("text")] | Annotated[Debloat, Tag("map")], MAP_OR_TEXT]] | None = None


class Cluster(Options, of=(cluster.Cluster,)):
    """Where the job runs."""

    services: Axis[Annotated[str, choice("side-by-side", "idle-core")]] | None = None
    network: Network | None = None
