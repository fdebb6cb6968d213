"""A job with another parallelism than it is written with, or on fewer task managers.

On fewer it has as many subtasks as there are slots (SlotSharingSlotAllocator).  Sources keep theirs, each of
which reads its own part of the log: the task managers that are left share them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sim.model.job import Job, Vertex
from sim.model.scenario import Scenario


def with_parallelism(job: Job, parallelism: Mapping[str, int]) -> Job:
    """The job with another parallelism of these vertices; forward between unequal ones becomes rebalance, as in Flink."""
    vertices = {vertex.name: replace(vertex, parallelism=parallelism.get(vertex.name, vertex.parallelism)) for vertex in job.vertices}
    for name, vertex in vertices.items():
        inputs = tuple(
            replace(inlet, ship="rebalance")
            if inlet.shipping.one_to_one and vertices[inlet.upstream].parallelism != vertex.parallelism
            else inlet
            for inlet in vertex.inputs
        )
        vertices[name] = replace(vertex, inputs=inputs)
    return Job(tuple(vertices.values()))


def on_fewer(scenario: Scenario, hosts: Sequence[int], missing: Collection[int]) -> Scenario | None:
    """The scenario without these of its task managers.  None: a vertex has no slot, or cannot be rescaled.

    `hosts`: the task manager of each task.
    """
    if not missing:
        return scenario
    here, shared = iter(hosts), scenario.cluster.placement != "isolated"
    left = {v.name: sum(next(here) not in missing for _ in range(v.parallelism)) for v in scenario.job.vertices}
    most = max(left.values())
    slots = {v.name: min(v.parallelism, most if shared else left[v.name]) for v in scenario.job.vertices}
    fewer = {v.name: slots[v.name] for v in scenario.job.vertices if slots[v.name] < v.parallelism and v.source is None}
    if not min(slots.values()) or any(not _is_dealt_out(v) for v in scenario.job.vertices if v.name in fewer):
        return None
    job = with_parallelism(scenario.job, fewer)
    managers = len(set(hosts) - set(missing))
    widest = max(vertex.parallelism for vertex in job.vertices)
    return replace(scenario, job=job, cluster=replace(scenario.cluster, slots=max(scenario.cluster.slots or 1, -(-widest // managers))))


def _is_dealt_out(vertex: Vertex) -> bool:
    """What its subtasks hold can be dealt out to others."""
    return vertex.commit is None and not vertex.committer_of and (vertex.window is None or vertex.window.time == "event")
