"""The same model tuned by hand: an event only where a task sleeps, integers and deques for everything else.

A closed buffer is its end offset, an open one only the offset at which it is full; a received buffer is
``offset << 1 | floating``; the common path of a record touches no function of ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import simpy

from benchmarks.draws import choices, values
from benchmarks.simpy_idiomatic import check_supported
from benchmarks.simpy_lean_state import ASLEEP, BUSY, HARD, IDLE, SOFT, Channel, Task
from benchmarks.simpy_parts import Barrier, Process
from benchmarks.workloads import Outcome, Snapshot, Workload
from sim.model.randomness import draw, stream

__all__ = ["LeanModel"]


class LeanModel:
    """A workload, built and run once."""

    def __init__(self, work: Workload) -> None:
        check_supported(work.spec)
        spec = self.spec = work.spec
        self.work = work
        self.env = env = simpy.Environment(initial_time=0)
        self.snapshots: list[Snapshot] = []
        self.latency, self.segment, self.exclusive = spec.latency_ns, spec.segment_bytes, spec.exclusive
        self.most = spec.max_per_channel
        self.overdraft = -spec.overdraft
        self.tasks: list[Task] = []
        stages: list[list[Task]] = []
        for v, vertex in enumerate(spec.vertices):
            fan = 0 if v == len(spec.vertices) - 1 else spec.vertices[v + 1].parallelism
            segments = fan * spec.exclusive + spec.floating if fan else 1  # a sink always has room
            stages.append([Task(len(self.tasks) + i, spec.floating, segments) for i in range(vertex.parallelism)])
            self.tasks += stages[-1]
            for i, task in enumerate(stages[-1]):
                service = values(vertex.service[0], stream(spec.seed, "service", vertex.name, i))
                routes = choices(fan, stream(spec.seed, "route", spec.edges[v].name, i)) if fan else iter(())
                env.process(self.read(task, service, routes) if v else self.produce(task, service, routes))
                if fan and spec.buffer_timeout_ns > 0:
                    u = draw(stream(spec.seed, "flush", vertex.name, i), 0)
                    env.process(self.flush(task, 1 + (u * spec.buffer_timeout_ns >> 32)))
        for edge, writers, readers in zip(spec.edges, stages, stages[1:], strict=False):
            for i, writer in enumerate(writers):
                for j, reader in enumerate(readers):
                    key = stream(spec.seed, "size", edge.name, i, j)
                    channel = Channel(
                        writer, reader, spec.exclusive, (values(edge.record_bytes, key), values(edge.record_bytes, key))
                    )
                    writer.channels.append(channel)
                    reader.inputs.append(channel)
        self.sources, self.others = stages[0], len(self.tasks) - len(stages[0])
        self.missing = 0
        if work.interval_ns:
            env.process(self.coordinate())

    def run(self) -> Outcome:
        """Simulate to the end of the workload."""
        self.env.run(until=self.work.until_ns)
        bytes_in = [sum(channel.taken for channel in task.inputs) for task in self.tasks]
        bytes_out = [sum(channel.written for channel in task.channels) for task in self.tasks]
        return Outcome(
            [task.served for task in self.tasks],
            bytes_in,
            bytes_out,
            [task.hops for task in self.tasks],
            self.snapshots,
        )

    # ------------------------------------------------------------------------------------------------ processes

    def coordinate(self) -> Process:
        number = 0
        while True:
            yield self.env.timeout(self.work.interval_ns)
            if self.missing == 0:
                number += 1
                self.missing = self.others
                for task in self.sources:
                    barrier = Barrier(number, self.work.unaligned)
                    if task.why in (BUSY, HARD):
                        task.requested = barrier
                    else:
                        self.forward(task, barrier)

    def flush(self, task: Task, phase: int) -> Process:
        env, period, send = self.env, self.spec.buffer_timeout_ns, self.send
        yield env.timeout(phase)
        while True:
            for c in task.channels:
                if c.written > c.sent:
                    c.flush = True
                    if c.credit:
                        send(c)
            yield env.timeout(period)

    def produce(self, me: Task, service: Iterator[int], routes: Iterator[int]) -> Process:
        env, channels, spill, Timeout, Event = (
            self.env,
            me.channels,
            self.spill,
            simpy.events.Timeout,
            simpy.events.Event,
        )
        source = self.spec.vertices[0].source
        assert source is not None
        total = source.total
        begin, num, den = (
            (source.segments[0].start_ns, source.segments[0].records, source.segments[0].per_ns)
            if source.segments
            else (0, 1, 0)
        )
        while me.served != total:
            if me.requested is not None:
                self.forward(me, me.requested)
                me.requested = None
            if me.free <= 0 or me.crowded:
                me.why = SOFT
                me.event = event = Event(env)
                yield event
                me.why = BUSY
                continue
            wait = begin + me.served * den // num - env.now
            if wait > 0:
                me.why = ASLEEP
                yield Timeout(env, wait)
                me.why = BUSY
            yield Timeout(env, next(service) or 1)
            me.served += 1
            c = channels[next(routes)]
            rest = next(c.sizes_out)
            if c.written + rest < c.full_at:
                c.written += rest
            else:
                while rest := spill(c, rest):
                    me.why = HARD
                    me.event = event = Event(env)
                    yield event
                    me.why = BUSY
        if me.requested is not None:
            self.forward(me, me.requested)
        me.why = IDLE

    def read(self, me: Task, service: Iterator[int], routes: Iterator[int]) -> Process:
        env, channels, ready, overtaking = self.env, me.channels, me.ready, me.overtaking
        spill, recycle, Timeout, Event = self.spill, self.recycle, simpy.events.Timeout, simpy.events.Event
        while True:
            while overtaking:
                self.meet(me, *overtaking.popleft())
            if me.free <= 0 or me.crowded:
                me.why = SOFT
                me.event = event = Event(env)
                yield event
                me.why = BUSY
                continue
            if not ready:
                me.why = IDLE
                me.event = event = Event(env)
                yield event
                me.why = BUSY
                continue
            c = ready.popleft()
            element = c.received.popleft()
            if c.received:
                ready.append(c)
            if type(element) is not int:
                self.meet(me, c, element)
                continue
            me.hops += 1
            taken = c.taken = element >> 1
            pinned = c.pinned > 0
            if pinned:
                c.pinned -= 1
            while c.next_end <= taken:  # the whole records of this buffer
                c.consumed = end = c.next_end
                c.next_end = end + next(c.sizes_in)
                if end == taken:
                    if pinned:
                        c.owed.append(bool(element & 1))
                    else:
                        recycle(c, element & 1)
                yield Timeout(env, next(service) or 1)
                me.served += 1
                if channels:
                    o = channels[next(routes)]
                    rest = next(o.sizes_out)
                    if o.written + rest < o.full_at:
                        o.written += rest
                    else:
                        while rest := spill(o, rest):
                            me.why = HARD
                            me.event = event = Event(env)
                            yield event
                            me.why = BUSY
                while overtaking or ((me.free <= 0 or me.crowded) and channels):
                    if overtaking:
                        self.meet(me, *overtaking.popleft())
                    else:
                        me.why = SOFT
                        me.event = event = Event(env)
                        yield event
                        me.why = BUSY
            if c.consumed != taken:
                if pinned:
                    c.owed.append(bool(element & 1))
                else:
                    recycle(c, element & 1)

    # ------------------------------------------------------------------------------------------------ the sender's end

    def spill(self, c: Channel, rest: int) -> int:
        """Write over the edge of a buffer; returns what no segment was left for."""
        writer = c.writer
        while rest:
            if not c.full_at:
                if writer.free <= self.overdraft:
                    return rest
                writer.free -= 1
                c.count += 1
                if c.count == self.most:
                    writer.crowded += 1
                c.full_at = c.written + self.segment
            n = min(rest, c.full_at - c.written)
            c.written += n
            rest -= n
            if c.written == c.full_at:
                c.full_at = 0
                c.queue.append(c.written)
                c.backlog += 1
                if c.credit and not c.blocked:
                    self.send(c)
        return 0

    def give_back(self, c: Channel) -> None:
        writer = c.writer
        if c.count == self.most:
            writer.crowded -= 1
        c.count -= 1
        writer.free += 1
        event = writer.event
        if event is not None and (
            writer.why == HARD or (writer.why == SOFT and writer.free > 0 and not writer.crowded)
        ):
            writer.event = None
            event.succeed()

    def forward(self, task: Task, barrier: Barrier) -> int:
        """Returns the bytes overtaken."""
        overtaken = 0
        for c in task.channels:
            if c.full_at:
                c.full_at = 0
                if c.sent == c.written:
                    self.give_back(c)
                else:
                    c.queue.append(c.written)
                    c.backlog += 1
            if barrier.overtakes:
                overtaken += c.written - c.sent
                c.queue.appendleft(barrier)
            else:
                c.queue.append(barrier)
            self.send(c)
        return overtaken

    def send(self, c: Channel) -> None:
        """Whatever may leave the sender's queue leaves it."""
        queue = c.queue
        while not c.blocked:
            element: int | Barrier
            if queue:
                element = queue[0]
                if type(element) is int:
                    if not c.credit:
                        return
                    c.credit -= 1
                    c.backlog -= 1
                    c.sent = element
                    self.give_back(c)
                else:
                    c.blocked = not element.overtakes
                queue.popleft()
                if not queue and not c.full_at:
                    c.flush = False
            elif c.flush and c.full_at and c.credit and c.written > c.sent:
                c.credit -= 1
                c.sent = element = c.written
                c.flush = False
            else:
                return
            backlog = 0 if c.blocked else c.backlog + (c.flush and c.full_at > 0)
            if self.latency:
                simpy.Timeout(self.env, self.latency, (c, element, backlog)).callbacks.append(self.landed)
            else:
                self.arrive(c, element, backlog)

    def landed(self, event: simpy.Event) -> None:
        self.arrive(*event.value)

    def notify_sender(self, c: Channel, credit: int, resume: bool) -> None:
        if self.latency:
            simpy.Timeout(self.env, self.latency, (c, credit, resume)).callbacks.append(self.on_credit)
            return
        c.credit += credit
        if resume:
            c.blocked = False
        if c.queue or c.flush:
            self.send(c)

    def on_credit(self, event: simpy.Event) -> None:
        c, credit, resume = event.value
        c.credit += credit
        if resume:
            c.blocked = False
        if c.queue or c.flush:
            self.send(c)

    # ------------------------------------------------------------------------------------------------ the receiver's end

    def arrive(self, c: Channel, element: int | Barrier, backlog: int) -> None:
        reader = c.reader
        wakes = reader.why == IDLE
        if type(element) is int:
            c.arrived = element
            if c.fl_free:
                c.fl_free -= 1
                element = element << 1 | 1
            else:
                c.ex_free -= 1
                element <<= 1
            if c.capturing:
                c.pinned += 1
        else:
            c.barrier, c.barrier_at = element.number, c.arrived
            if c.capturing:
                c.capturing = False
                c.captured = c.arrived - c.captured_from
        if type(element) is not int and element.overtakes:
            reader.overtaking.append((c, element))
            wakes = wakes or reader.why == SOFT
        else:
            c.received.append(element)
            if len(c.received) == 1:
                reader.ready.append(c)
        if wakes and reader.event is not None:
            event, reader.event = reader.event, None
            event.succeed()
        required = c.required = backlog + self.exclusive
        missing = required - c.ex_free - c.fl_free
        if missing > 0 and not c.waiting:
            gained = min(missing, reader.idle)
            if gained:
                reader.idle -= gained
                c.fl_free += gained
            if gained < missing:
                reader.listeners.append(c)
                c.waiting = True
            if gained:
                self.notify_sender(c, gained, False)

    def recycle(self, c: Channel, floating: int) -> None:
        if not floating:
            c.ex_free += 1
            if not c.fl_free or c.ex_free + c.fl_free <= c.required:
                self.notify_sender(c, 1, False)
                return
            c.fl_free -= 1
        gate = c.reader
        while gate.listeners:
            d = gate.listeners.popleft()
            missing = d.required - d.ex_free - d.fl_free
            d.waiting = missing > 1
            if missing > 0:
                d.fl_free += 1
                self.notify_sender(d, 1, False)
                if d.waiting:
                    gate.listeners.append(d)
                return
        gate.idle += 1

    # ------------------------------------------------------------------------------------------------ barriers

    def meet(self, me: Task, channel: Channel, barrier: Barrier) -> None:
        """Aligned: forward the last one and let the input go on.  Unaligned: forward the first one, capture until the last."""
        number, now = barrier.number, self.env.now
        channel.held_back = not barrier.overtakes
        count = me.barriers[number] = me.barriers.get(number, 0) + 1
        if count == 1:
            overtaken = 0
            if barrier.overtakes:
                overtaken = self.forward(me, barrier)
                for c in me.inputs:
                    c.capturing, c.captured_from = c.barrier != number, c.consumed
                    c.captured = 0 if c.capturing else c.barrier_at - c.consumed
                    behind = c.arrived if c.capturing else c.barrier_at
                    c.pinned = sum(type(element) is int and element >> 1 <= behind for element in c.received)
            me.first = (now, overtaken)
        if count < len(me.inputs):
            return
        captured = 0
        if barrier.overtakes:
            for c in me.inputs:
                captured += c.captured
                owed, c.owed, c.pinned = sorted(c.owed), [], 0
                for floating in owed:
                    self.recycle(c, floating)
        else:
            self.forward(me, barrier)
            for c in me.inputs:
                if c.held_back:
                    c.held_back = False
                    self.notify_sender(c, 0, True)
        self.snapshots.append(Snapshot(number, me.number, me.first[0], now, captured, me.first[1]))
        self.missing -= 1
