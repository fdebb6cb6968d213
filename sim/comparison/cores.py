"""Whether a run's task threads wanted more cores than their hosts have."""

from __future__ import annotations

from collections import defaultdict

from sim.model.randomness.contention import slowdown
from sim.runtime.run.result import Result
from sim.runtime.setup.lowering import hosts

_LEAST = 0.05
"""A smaller slowdown is not worth a sentence."""
_LEAST_BELOW = 0.25
"""Nor is this one where threads want fewer cores than there are: they collide by chance."""

_COLUMNS = ("vertex", "index", "accumulateBusyTimeMs", "numRecordsIn")


def scarce_cores(result: Result) -> str:
    """How busy the busiest host was, and what that did to records; empty: it had cores enough, or nothing tells how many.

    Empty, too, where the file says that services were measured side by side: they hold what threads waited for cores already, and an
    import writes that of tasks that sleep.
    """
    cluster, scenario = result.scenario.cluster, result.scenario
    tasks, managers = result.tasks, hosts(scenario)
    if cluster.cores is None or cluster.tasks_contend is False or len(tasks) != len(managers) or not result.ended_ns:
        return ""
    numbers = [(vertex, index) for vertex in scenario.job.vertices for index in range(vertex.parallelism)]
    place = {(vertex.name, index): (vertex, manager) for (vertex, index), manager in zip(numbers, managers, strict=True)}
    busy = defaultdict[int, list[float]](list)
    for name, index, busy_ms, records in zip(*(tasks[column] for column in _COLUMNS), strict=True):
        vertex, manager = place[str(name), int(index)]
        worked_ns = busy_ms * 1e6 if vertex.work_ns is None else min(busy_ms * 1e6, records * vertex.work_ns)
        busy[cluster.host(manager)].append(worked_ns / result.ended_ns)
    host = max(busy, key=lambda host: sum(busy[host]))
    slower = slowdown(busy[host], cluster.cores)
    if slower < 1 + (_LEAST if sum(busy[host]) >= cluster.cores else _LEAST_BELOW):
        return ""
    load = f"{sum(busy[host]):.1f} threads of tasks are busy at once on {cluster.cores} {'core' if cluster.cores == 1 else 'cores'}"
    if cluster.tasks_contend:
        return f"{load}, so records take {slower:.2g} times as long as on idle ones; subtasks added there would share these cores"
    return (
        f"{load}, and none of them waits: cluster: services does not say how services were measured. If on idle cores (idle-core), "
        f"throughput is up to {slower:.2g} times lower; if with all tasks at work, or if tasks sleep (side-by-side), it is as here"
    )
