"""What must hold of the job's graph, read from the plain document so that it is told together with every other mistake."""

from __future__ import annotations

from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Any

from sim.scenario.job.document import upstream_of
from sim.scenario.text.problems import DocumentPath, Reading


def check_graph(plain: Any, reading: Reading) -> None:
    """Vertices have sources or inputs, inputs exist, no cycles, everything hangs on a source."""
    job = plain.get("job") if isinstance(plain, dict) else None
    if not isinstance(job, dict) or not job:
        return
    inputs: dict[str, list[str]] = {}
    named: dict[tuple[str, str], DocumentPath] = {}  # (upstream, vertex) -> where it stands
    for name, vertex in job.items():
        if not isinstance(vertex, dict):
            inputs[name] = []
            continue
        given = vertex.get("input")
        inputs[name] = []
        for key, details in given.items() if isinstance(given, dict) else ():
            upstream = upstream_of(key, details)
            inputs[name].append(upstream)
            here: DocumentPath = ("job", name, "input", key)
            named.setdefault((upstream, name), here if upstream == key else (*here, "from"))
            if upstream != key and key in job:
                reading.wrong(here, f"reads '{upstream}', but has the name of another vertex: choose another name")
    for name, upstreams in inputs.items():
        for upstream in upstreams:
            if upstream not in job:
                reading.wrong(named[upstream, name], f"there is no vertex '{upstream}'{reading.did_you_mean(upstream, job)}")
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
    sorter, names = _sorter(inputs), list(inputs)
    position = {name: i for i, name in enumerate(names)}
    with suppress(CycleError):
        sorter.prepare()
    order: list[str] = []
    ready: list[int] = []
    while True:
        for name in sorter.get_ready():
            heappush(ready, position[name])
        if not ready:
            return order
        order.append(names[heappop(ready)])
        sorter.done(order[-1])


def _sorter(inputs: dict[str, list[str]]) -> TopologicalSorter[str]:
    return TopologicalSorter({name: [upstream for upstream in upstreams if upstream in inputs] for name, upstreams in inputs.items()})


def _cycle(inputs: dict[str, list[str]]) -> list[str] | None:
    """The vertices of one cycle in the direction of the records, the first of the file first."""
    try:
        _sorter(inputs).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][1:]
        first = cycle.index(min(cycle, key=list(inputs).index))
        return cycle[first:] + cycle[:first]
    return None
