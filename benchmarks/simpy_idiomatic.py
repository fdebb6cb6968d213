"""The baseline: the plane's rules for the benchmark workloads as a SimPy user would write them.

A process per task and per flush timer; a ``Store`` of ready channels in front of each task; an event for a task that
waits for output.  (A ``Container`` of segments knows neither overdraft nor a limit per channel, and costs a third of
the speed.)  What travels is a timeout with a callback.  Written independently of ``sim.plane``, which it shares only
the numbers of the specification and the draws with.  Ties fall in the order of insertion, as in all SimPy models, so
equal instants may resolve differently from the plane; what is served does not.

Left out because the workloads do not use it: local channels, several gates or outputs per task, NIC, debloating.
"""

from __future__ import annotations

from collections import deque

import simpy

from benchmarks.draws import choices, values
from benchmarks.simpy_parts import Barrier, Channel, Gate, Output, Process
from benchmarks.workloads import Outcome, Snapshot, Workload
from sim.model.randomness import draw, stream
from sim.plane.interface import PlaneSpec, Ship

__all__ = ["IdiomaticModel", "check_supported"]


def check_supported(spec: PlaneSpec) -> None:
    """Refuse what the baselines leave out."""
    tasks = sum(vertex.parallelism for vertex in spec.vertices)
    chained = [(edge.upstream, edge.downstream) for edge in spec.edges] == [
        (i, i + 1) for i in range(len(spec.vertices) - 1)
    ]
    hashed = all(edge.ship == Ship.HASH and not edge.weights and edge.fan_out == (1, 1) for edge in spec.edges)
    source = spec.vertices[0].source
    rated = source is not None and len(source.segments) <= 1
    plain = spec.nic is None and spec.debloating is None and spec.starting_buffer_bytes == spec.segment_bytes
    if not (chained and hashed and rated and plain and len(set(spec.hosts)) == tasks and spec.buffer_timeout_ns != 0):
        raise ValueError("the baselines know chains of all-to-all stages on hosts of their own only")


class Task:
    """One subtask; its process is its thread."""

    def __init__(self, model: IdiomaticModel, number: int, vertex: int, subtask: int) -> None:
        env, spec, row = model.env, model.spec, model.spec.vertices[vertex]
        last = vertex == len(spec.vertices) - 1
        fan_out = 0 if last else spec.vertices[vertex + 1].parallelism
        self.env, self.model, self.number, self.row = env, model, number, row
        self.gate = Gate(spec.floating)
        self.ready = simpy.Store(env)
        self.output = Output(spec, fan_out)
        self.inputs: list[Channel] = []
        self.overtaking: deque[tuple[Channel, Barrier]] = deque()
        self.waiting: simpy.Event | None = None  # for output, or (nothing left to read) for a trigger
        self.inside_record = False  # ... and nothing but a segment helps
        self.sleeping = False
        self.served = self.hops = 0
        self.service = values(row.service[0], stream(spec.seed, "service", row.name, subtask))
        self.routes = (
            iter(()) if last else choices(fan_out, stream(spec.seed, "route", spec.edges[vertex].name, subtask))
        )
        self.requested: Barrier | None = None  # a source's trigger
        self.barriers: dict[int, int] = {}  # number -> barriers processed
        self.first: tuple[int, int] = (0, 0)  # instant, bytes overtaken in the output
        self.process = env.process(self.work_as_source() if row.source is not None else self.work())
        if not last and spec.buffer_timeout_ns > 0:
            u = draw(stream(spec.seed, "flush", row.name, subtask), 0)
            env.process(self.flush(1 + (u * spec.buffer_timeout_ns >> 32), spec.buffer_timeout_ns))

    def wake(self) -> None:
        """Something happened that a waiting thread should look at."""
        if self.waiting is not None:
            self.waiting.succeed()
            self.waiting = None
        elif self.sleeping:
            self.process.interrupt()
            self.sleeping = False
        elif self.ready.get_queue:
            self.ready.put(None)

    def wait(self) -> simpy.Event:
        self.waiting = self.env.event()
        return self.waiting

    def flush(self, first_ns: int, period_ns: int) -> Process:
        yield self.env.timeout(first_ns)
        while True:
            for channel in self.output.channels:
                channel.flush()
            yield self.env.timeout(period_ns)

    def forward(self, barrier: Barrier) -> int:
        return sum(channel.forward(barrier) for channel in self.output.channels)

    def work_as_source(self) -> Process:
        source = self.row.source
        segment = source.segments[0] if source.segments else None
        output = self.output
        while True:
            if self.requested is not None:
                self.forward(self.requested)
                self.requested = None
            if not output.available or self.served == source.total:
                yield self.wait()
                continue
            if segment is not None:
                due = segment.start_ns + self.served * segment.per_ns // segment.records
                if due > self.env.now:
                    self.sleeping = True
                    try:
                        yield self.env.timeout(due - self.env.now)
                    except simpy.Interrupt:
                        continue
                    self.sleeping = False
            yield self.env.timeout(max(1, next(self.service)))
            self.served += 1
            yield from output.channels[next(self.routes)].write(output)

    def work(self) -> Process:
        output = self.output
        reading: Channel | None = None
        floating = pinned = False
        while True:
            while self.overtaking:
                self.process_barrier(*self.overtaking.popleft())
            if not output.available:
                yield self.wait()
                continue
            if reading is None:
                channel = yield self.ready.get()
                if channel is None:  # woken by an overtaking barrier
                    continue
                element = channel.received.popleft()
                if channel.received:
                    self.ready.put(channel)
                if isinstance(element, Barrier):
                    self.process_barrier(channel, element)
                    continue
                reading = channel
                reading.taken, floating = element
                pinned = reading.pinned > 0
                reading.pinned -= pinned
                self.hops += 1
            if reading.next_end > reading.taken:
                self.recycle(reading, floating, pinned)
                reading = None
                continue
            reading.consumed = reading.next_end
            reading.next_end += next(reading.sizes_in)
            if reading.consumed == reading.taken:
                self.recycle(reading, floating, pinned)
                reading = None
            yield self.env.timeout(max(1, next(self.service)))
            self.served += 1
            if output.channels:
                yield from output.channels[next(self.routes)].write(output)

    def recycle(self, channel: Channel, floating: bool, pinned: bool) -> None:
        if pinned:
            channel.owed.append(floating)
        else:
            channel.recycle(floating)

    def process_barrier(self, channel: Channel, barrier: Barrier) -> None:
        """Aligned: forward the last one and let the input go on.  Unaligned: forward the first one, capture until the last."""
        channel.held_back = not barrier.overtakes
        count = self.barriers.get(barrier.number, 0) + 1
        self.barriers[barrier.number] = count
        if count == 1:
            overtaken = 0
            if barrier.overtakes:
                overtaken = self.forward(barrier)
                for inlet in self.inputs:
                    inlet.capture(barrier.number)
            self.first = (self.env.now, overtaken)
        if count < len(self.inputs):
            return
        del self.barriers[barrier.number]
        captured = 0
        if barrier.overtakes:
            captured = sum(inlet.captured for inlet in self.inputs)
            for inlet in self.inputs:
                inlet.release_capture()
        else:
            self.forward(barrier)
            for inlet in self.inputs:
                if inlet.held_back:
                    inlet.held_back = False
                    inlet.notify_sender(resume=True)
        self.model.completed(
            Snapshot(barrier.number, self.number, self.first[0], self.env.now, captured, self.first[1])
        )


class IdiomaticModel:
    """A workload, built and run once."""

    def __init__(self, work: Workload) -> None:
        check_supported(work.spec)
        self.work, self.spec = work, work.spec
        self.env = simpy.Environment(initial_time=0)
        self.snapshots: list[Snapshot] = []
        stages = [[(v, i) for i in range(vertex.parallelism)] for v, vertex in enumerate(self.spec.vertices)]
        numbers = iter(range(len(self.spec.hosts)))
        self.stages = [[Task(self, next(numbers), v, i) for v, i in stage] for stage in stages]
        for edge, writers, readers in zip(self.spec.edges, self.stages, self.stages[1:], strict=False):
            for i, writer in enumerate(writers):
                for j, reader in enumerate(readers):
                    key = stream(self.spec.seed, "size", edge.name, i, j)
                    sizes = values(edge.record_bytes, key), values(edge.record_bytes, key)
                    channel = Channel(self.env, self.spec, writer, reader, sizes)
                    writer.output.channels.append(channel)
                    reader.inputs.append(channel)
        if work.interval_ns:
            self.env.process(self.coordinate())

    @property
    def tasks(self) -> list[Task]:
        return [task for stage in self.stages for task in stage]

    def coordinate(self) -> Process:
        """A checkpoint at each multiple of the interval, unless one is under way."""
        self.number = self.missing = 0
        while True:
            yield self.env.timeout(self.work.interval_ns)
            if self.missing == 0:
                self.number += 1
                self.missing = sum(map(len, self.stages[1:]))
                for source in self.stages[0]:
                    source.requested = Barrier(self.number, self.work.unaligned)
                    source.wake()

    def completed(self, snapshot: Snapshot) -> None:
        """A task has its last barrier."""
        self.snapshots.append(snapshot)
        self.missing -= 1

    def run(self) -> Outcome:
        """Simulate to the end of the workload."""
        self.env.run(until=self.work.until_ns)
        tasks = self.tasks
        bytes_in = [sum(channel.taken for channel in task.inputs) for task in tasks]
        bytes_out = [sum(channel.written for channel in task.output.channels) for task in tasks]
        return Outcome(
            [task.served for task in tasks], bytes_in, bytes_out, [task.hops for task in tasks], self.snapshots
        )
