"""A watched run -> the events of its timeline: subtasks, asynchronous threads, storage nodes, the coordinator, barriers as arrows.

A window and a limit keep the file small enough for every viewer; what they leave out is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sim.explain.close_up import ObservedInstance
from sim.runtime.context import Context
from sim.timeline.drawing import Drawing, Timeline
from sim.timeline.events import TimelineSlice, counter, named
from sim.timeline.samples import Samples, TimelineSample
from sim.timeline.slices import Stories, asynchronous, barriers, checkpoints, files, snapshots, stories, threads


def timeline(instances: Sequence[ObservedInstance], samples: Samples, limit: int) -> Timeline:
    """`limit`: events at most, names apart; later ones are left out, and the window ends before the first of them."""
    page = Drawing(samples.begin_ns, samples.end_ns)
    for number, (instance, looked) in enumerate(zip(instances, samples.by_instance, strict=True)):
        _draw(page, instance.context, looked, samples.step_ns, f"job {number}: " if len(instances) > 1 else "")
    return page.cut(limit)


def _draw(page: Drawing, context: Context, samples: Sequence[TimelineSample], step_ns: int, prefix: str) -> None:
    found, names = stories(context), [f"{vertex}[{index}]" for vertex, index in context.names]
    page.process(f"{prefix}coordinator", [("checkpoints", checkpoints(context))])
    _draw_vertices(page, context, samples, step_ns, prefix, found)
    work = asynchronous(context, found)
    page.process(f"{prefix}asynchronous threads", [(names[task], work[task]) for task in sorted(work)])
    places = files(context)
    page.process(f"{prefix}storage", [(place, places[place]) for place in sorted(places, key=_in_order)])


def _draw_vertices(page: Drawing, context: Context, samples: Sequence[TimelineSample], step_ns: int, prefix: str, found: Stories) -> None:
    phases, (moments, ways) = snapshots(found), barriers(context, found)
    where: dict[int, tuple[int, dict[tuple[str, int], int]]] = {}
    for v, vertex in enumerate(context.scenario.job.vertices):
        tasks = [task for task, number in enumerate(context.layout.vertex) if number == v]
        tracks: list[tuple[str, Iterable[TimelineSlice]]] = []
        for task in tasks:
            name = f"{vertex.name}[{context.layout.subtask[task]}]"
            tracks.append((f"{name} thread", threads(samples, task, step_ns)))
            tracks.append((f"{name} snapshots", phases.get(task, [])))
            tracks.append((f"{name} barriers", moments.get(task, [])))
        process, slices = page.process(f"{prefix}{vertex.name}", tracks)
        where |= dict.fromkeys(tasks, (process, slices))
        for sample in samples:
            if page.inside(sample.time_ns):
                queues = {"input": int(sample.input_bytes[v]), "output": int(sample.output_bytes[v])}
                page.events.append(counter(process, f"queues of {vertex.name} [bytes]", sample.time_ns, queues))
    page.processes += 1
    page.names += named(page.processes, f"{prefix}all channels", {})
    page.events += [
        counter(page.processes, "in flight [bytes]", sample.time_ns, {"bytes": sample.in_flight_bytes})
        for sample in samples if page.inside(sample.time_ns)
    ]  # fmt: skip
    for checkpoint, writer, left_ns, reader, arrived_ns in ways:
        if page.inside(left_ns) and page.inside(arrived_ns + 1):
            (start, starts), (end, ends) = where[writer], where[reader]
            tail, head = starts.get((f"barrier {checkpoint} leaves", left_ns)), ends.get((f"barrier {checkpoint} arrives", arrived_ns))
            if tail is not None and head is not None:
                page.arrow(f"barrier {checkpoint}", (start, tail, left_ns), (end, head, arrived_ns))


def _in_order(place: str) -> tuple[str, int]:
    """Names in natural order: node 10 behind node 9."""
    stem, _, number = place.rpartition(" ")
    return (stem, int(number)) if number.isdigit() else (place, 0)
