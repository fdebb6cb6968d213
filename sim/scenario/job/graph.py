"""What must hold of the job's graph, read from the plain document so that it is told together with every other mistake."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from sim.scenario.text.problems import Reading

__all__ = ["check_graph", "topological"]


def check_graph(plain: Any, reading: Reading) -> None:
    """Vertices have sources or inputs, inputs exist, no cycles, everything hangs on a source."""
    job = plain.get("job") if isinstance(plain, dict) else None
    if not isinstance(job, dict) or not job:
        return
    inputs: dict[str, list[str]] = {}
    for name, vertex in job.items():
        if not isinstance(vertex, dict):
            inputs[name] = []
            continue
        given = vertex.get("input")
        inputs[name] = list(given) if isinstance(given, dict) else []
        if "source" in vertex and "input" in vertex:
            reading.wrong(("job", name), "has a source and an input: a source reads no other vertex, keep one of them")
        if "source" not in vertex and "input" not in vertex:
            reading.wrong(("job", name), "has neither source: nor input:")
    for name, upstreams in inputs.items():
        for upstream in upstreams:
            if upstream not in job:
                reading.wrong(("job", name, "input", upstream), f"there is no vertex '{upstream}'{reading.did_you_mean(upstream, job)}")
    sources = [name for name, vertex in job.items() if isinstance(vertex, dict) and "source" in vertex]
    if not sources:
        reading.wrong(("job",), "no vertex has a source: nothing would ever flow")
    if (cycle := _cycle(inputs)) is not None:
        reading.wrong(("job", cycle[0]), f"is part of a cycle: {' -> '.join([*cycle, cycle[0]])}")
    elif sources:
        reached = set(sources)
        for name in topological(inputs):
            if any(upstream in reached for upstream in inputs[name]):
                reached.add(name)
        for name in job:
            if name not in reached and inputs[name] and all(upstream in job for upstream in inputs[name]):
                reading.wrong(("job", name), "no source reaches this vertex")


def topological(inputs: dict[str, list[str]]) -> list[str]:
    """Upstream first; otherwise in the order of the file.  Vertices of a cycle and behind it are left out."""
    position = {name: i for i, name in enumerate(inputs)}
    missing = {name: sum(up in position for up in upstreams) for name, upstreams in inputs.items()}
    readers: dict[str, list[str]] = {name: [] for name in inputs}
    for name, upstreams in inputs.items():
        for upstream in upstreams:
            readers.get(upstream, []).append(name)
    names, order = list(inputs), []
    ready = [position[name] for name, count in missing.items() if count == 0]
    while ready:
        name = names[heappop(ready)]
        order.append(name)
        for reader in readers[name]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heappush(ready, position[reader])
    return order


def _cycle(inputs: dict[str, list[str]]) -> list[str] | None:
    """The vertices of one cycle in the direction of the records."""
    ordered = set(topological(inputs))
    stuck = {name: None for name in inputs if name not in ordered}
    if not stuck:
        return None
    trail = {next(iter(stuck)): 0}
    while True:  # upstream of a stuck vertex there is a stuck one: the walk closes
        name = next(up for up in inputs[next(reversed(trail))] if up in stuck)
        if name in trail:
            cycle = list(reversed(list(trail)[trail[name] :]))
            first = cycle.index(min(cycle, key=list(inputs).index))
            return cycle[first:] + cycle[:first]
        trail[name] = len(trail)
