"""The configuration of a recorded run, as the recorder writes it.

Field names are the recorder's in snake case (`serviceUs` is `service_us`), with units.  Unknown keys stay in
`model_extra`, so that the importer can name them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from sim.jobs.source.recorded_job import RecordedVertex, has_readers
from sim.model.job import SHIPPING, Shipping

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False, le=1e15)]
Count = Annotated[int, Field(ge=0, le=10**15)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Section(BaseModel):
    """A section of the recorder's configuration."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)


class NodeInput(_Section):
    """An input of a node."""

    upstream: Name = Field(alias="from")
    exchange: Literal["keyby", "rebalance", "rescale", "broadcast", "forward"] = "keyby"

    @property
    def shipping(self) -> Shipping:
        """Return the ship strategy of the edge."""
        return SHIPPING["hash" if self.exchange == "keyby" else self.exchange]


class Node(_Section):
    """A vertex of the recorded job.  Nothing is chained."""

    id: Name
    kind: Literal["source", "join", "asyncwait", "op"] = "op"
    parallelism: Annotated[int, Field(ge=1, le=32768)] = 1
    inputs: tuple[NodeInput, ...] = ()

    # sources
    rate: Amount = 0  # records/s and subtask; 0: unlimited
    total: Count | None = None  # records per subtask, then end of input
    record_bytes: Count = 100  # on the wire between operators; 8 more on the hop that leaves the source

    out_weights: tuple[Amount, ...] | None = None  # share of each subtask of the first keyed consumer
    service_us: Amount = 0
    service_us2: Amount | None = Field(default=None, alias="serviceUs2")  # second input of a join
    service_jitter: Share = 0  # 0: constant, 1: exponential
    selectivity: Amount = 1

    state_keys: Count = 0  # over all subtasks
    state_value_bytes: Count = 0
    state_update_prob: Share = 0

    prepare_ms: Amount = 0  # task thread, before the barrier is forwarded
    snapshot_ms: Amount = 0  # task thread, after it
    async_ms: Amount = 0
    snap_prob: Share = 1  # probability that a snapshot pays the three above
    commit: Literal["none", "independent", "cascade"] = "none"
    commit_ms: Amount = 0
    latency_ms: Amount = 100  # asyncwait: of each request
    capacity: Annotated[int, Field(ge=1, le=10**6)] = 100  # asyncwait: greatest number of requests at a time
    ordered: bool = False  # all requests take equally long, so both orders are the same
    fail_at_ms: Amount = 0  # since submission; 0: never
    fail_subtask: Count = 0

    @property
    def commits(self) -> bool:
        """Whether it commits output when a checkpoint completes."""
        return self.commit != "none"

    @property
    def is_even(self) -> bool:
        """Whether every subtask of its readers gets the same share."""
        return not self.out_weights or len(set(self.out_weights)) == 1


class DelayedFileSystem(_Section):
    """Checkpoint storage with artificial delays, per open file."""

    bytes_per_sec: Amount = 0  # 0: unlimited
    read_bytes_per_sec: Amount = 0
    create_ms: Amount = 0
    close_ms: Amount = 0
    metadata_close_ms: Amount = 0
    slow_prob: Share = 0
    slow_factor: Annotated[float, Field(ge=1, le=1e9)] = 1


def check_graph(vertices: Iterable[RecordedVertex]) -> None:
    """Raise `ValueError` if two vertices have the same name, or if an upstream vertex is not defined before its readers."""
    known: set[str] = set()
    for vertex in vertices:
        if vertex.id in known:
            raise ValueError(f"duplicate node '{vertex.id}'")
        for edge in vertex.inputs:
            if edge.upstream not in known:
                raise ValueError(f"node '{vertex.id}' reads '{edge.upstream}', which is not defined before it")
        known.add(vertex.id)


class Configuration(BaseModel):
    """The configuration of a recorded run (`config`)."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Name
    family: str = ""
    duration_s: Annotated[float, Field(gt=0, le=1e7)]
    placement: Literal["isolated", "single", "spread"] = "isolated"
    flink: dict[str, str | int | float | bool] = Field(default_factory=dict)
    fs: DelayedFileSystem = DelayedFileSystem()
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)]
    actions: tuple[dict[str, object], ...] = ()  # requests made during the run: stop, savepoint, ...

    @model_validator(mode="after")
    def _is_a_graph(self) -> Self:
        """Nodes stand in topological order: each reads earlier ones."""
        for node in self.nodes:
            if (node.kind == "source") != (not node.inputs):
                raise ValueError(f"node '{node.id}': a source has no inputs, every other node has")
        check_graph(self.nodes)
        return self

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.id == name)

    def is_read(self, name: str) -> bool:
        """Whether any node reads this one; the others are sinks."""
        return has_readers(self.nodes, name)

    def emitted_bytes(self) -> dict[str, frozenset[int]]:
        """Sizes of the records that each node may emit: operators pass on what they read."""
        sizes: dict[str, frozenset[int]] = {}
        for node in self.nodes:
            read = frozenset[int]().union(*(sizes[edge.upstream] for edge in node.inputs))
            sizes[node.id] = read or frozenset({node.record_bytes})
        return sizes
