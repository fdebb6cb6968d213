"""Mean size of the records that each node of a recorded job passes on, if it reads records of several sizes.

Operators pass records on, so the sizes mix as the inputs do.  The configuration tells each input's share: a source with
a rate brings that rate, any other as much as the operator's time allows.  Slower operators further downstream are
ignored.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from benchmarks.lab.config import Configuration, Node
from sim.model.job import Shipping


class _Flow(NamedTuple):
    """The records that a node passes on, and their mean size."""

    per_second: float  # over all subtasks; infinite: as many as the reader accepts
    mean_bytes: float


def mean_bytes(config: Configuration) -> dict[str, float]:
    """Node -> bytes, without what the wire adds behind a source."""
    flows: dict[str, _Flow] = {}
    for node in config.nodes:
        if node.kind == "source":
            flows[node.id] = _Flow(node.rate * node.parallelism or math.inf, node.record_bytes)
        else:
            flows[node.id] = _mixed(
                node, [_arriving(node, flows[edge.upstream], edge.shipping) for edge in node.inputs]
            )
    return {name: flow.mean_bytes for name, flow in flows.items()}


def _arriving(node: Node, flow: _Flow, way: Shipping) -> _Flow:
    return flow._replace(per_second=flow.per_second * (node.parallelism if way.copies else 1))


def _mixed(node: Node, inputs: list[_Flow]) -> _Flow:
    """The output of a node: its inputs, weighted by their served shares."""
    served = _served(node, inputs)
    total = sum(served)
    if not total:
        return _Flow(0, sum(flow.mean_bytes for flow in inputs) / len(inputs))
    mean = sum(rate * flow.mean_bytes for rate, flow in zip(served, inputs, strict=True)) / total
    return _Flow(total * node.selectivity, mean)


def _served(node: Node, inputs: list[_Flow]) -> list[float]:
    """Records/s of each input: a join reads its inputs record by record in turn, a union buffer by buffer."""
    costs = _seconds(node, len(inputs))
    rated = sum(flow.per_second * cost for flow, cost in zip(inputs, costs, strict=True) if flow.per_second < math.inf)
    scale = min(1.0, node.parallelism / rated) if rated else 1.0
    shares = [1.0 if node.kind == "join" else 1 / flow.mean_bytes for flow in inputs]
    open_ended = sum(
        share * cost for flow, share, cost in zip(inputs, shares, costs, strict=True) if flow.per_second == math.inf
    )
    left = max(0.0, node.parallelism - rated)
    return [
        flow.per_second * scale if flow.per_second < math.inf else left * share / open_ended
        for flow, share in zip(inputs, shares, strict=True)
    ]


def _seconds(node: Node, inputs: int) -> list[float]:
    """Service time per record of each input; a free record counts as a microsecond."""
    own = node.service_us
    if node.kind == "asyncwait":
        own = max(own, node.latency_ms * 1000 / node.capacity)
    second = own if node.kind != "join" or node.service_us2 is None else node.service_us2
    return [max(own if i == 0 else second, 1.0) / 10**6 for i in range(inputs)]
