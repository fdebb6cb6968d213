"""The reference plane: built from a specification, it runs events and takes verbs; the rules are in the files beside it."""

from __future__ import annotations

from collections import deque
from typing import cast

import numpy as np

from sim.model.randomness import draw, stream
from sim.plane.interface import (
    ANY_NUMBER,
    BARRIERS,
    MAX_SERVED_SAMPLES,
    Marker,
    NoticeKind,
    ThreadState,
    Wait,
    create_layout,
    validate_start_positions,
)
from tests.oracle.agenda import Agenda
from tests.oracle.captures import Captures
from tests.oracle.debloat import BufferSizing
from tests.oracle.late import LateOutputs
from tests.oracle.markers import Markers
from tests.oracle.output import RecordWriter
from tests.oracle.parts import Channel, Gate, Partition, Slice, Task
from tests.oracle.receiving import Receiving
from tests.oracle.restarts import Restarts
from tests.oracle.sending import Sending
from tests.oracle.tables import channel_table, gate_table, partition_table, sums, task_table
from tests.oracle.thread import Thread, waits


class ReferencePlane(Agenda):
    """A data plane that can be read beside ``sim/plane/RULES.md``.  With `identities` records carry (source task, ordinal)."""

    def __init__(self, spec, *, identities=False):
        super().__init__(spec.begin_ns)
        self.spec = spec
        self.identities = identities
        self.output = RecordWriter(self)
        self.sending = Sending(self)
        self.receiving = Receiving(self)
        self.thread = Thread(self)
        self.markers = Markers(self)
        self.captures = Captures(self)
        self.debloat = BufferSizing(self)
        self.restarts = Restarts(self)
        self.late = LateOutputs(self)
        self.layout = create_layout(spec)
        self.build(self.layout)
        self.rank_lines()
        self.start_timers()
        for task in self.all_tasks:  # E2
            self.append_work(task)

    # ------------------------------------------------------------------------------------------------ construction

    def stream(self, *names):
        return stream(self.spec.seed, *names)

    def build(self, plan):
        """N1-N4: tasks, partitions, gates and channels in the order of their numbers."""
        spec = self.spec
        vertices = [spec.vertices[v] for v in plan.vertex]
        self.all_tasks = [self.new_task(t, v, i) for t, (v, i) in enumerate(zip(vertices, plan.subtask, strict=True))]
        self.all_partitions = [
            self.new_partition(self.all_tasks[t], e, len(members)) for t, e, members in plan.partitions
        ]
        self.all_gates = [
            self.new_gate(g, self.all_tasks[t], g - plan.task_gates[t].start, e)
            for g, (t, e, _) in enumerate(plan.gates)
        ]
        for task, partitions, gates in zip(self.all_tasks, plan.task_partitions, plan.task_gates, strict=True):
            task.partitions = [self.all_partitions[p] for p in partitions]
            task.gates = [self.all_gates[g] for g in gates]
        self.all_channels = [
            self.new_channel(
                c,
                plan.edge[c],
                self.all_tasks[plan.writer[c]],
                self.all_tasks[plan.reader[c]],
                self.all_partitions[plan.partition[c]],
                self.all_gates[plan.gate[c]],
                local=plan.local[c],
            )
            for c in range(len(plan.edge))
        ]
        for partition, (_, _, members) in zip(self.all_partitions, plan.partitions, strict=True):
            partition.channels = [self.all_channels[c] for c in members]
        for gate, (_, _, readers) in zip(self.all_gates, plan.gates, strict=True):
            gate.channels = [self.all_channels[c] for c in readers]
        if len(spec.hosts) != len(self.all_tasks):
            raise ValueError(f"{len(spec.hosts)} hosts for {len(self.all_tasks)} tasks")

    def new_task(self, number, vertex, subtask):
        return Task(
            number, vertex, subtask, self.stream("service", vertex.name, subtask), vertex.log(subtask), since=self.now
        )

    def new_partition(self, task, edge, channels):
        spec, row = self.spec, self.spec.edges[edge]
        return Partition(
            task,
            edge,
            row,
            self.stream("route", row.name, task.subtask),
            self.stream("start", row.name, task.subtask),
            channels * spec.exclusive + spec.floating,
            spec.overdraft * task.vertex.uses_overdraft_buffers,
            spec.max_per_channel,
        )

    def new_gate(self, number, task, position, edge):
        start = self.spec.starting_buffer_bytes
        return Gate(number, task, position, edge, self.spec.floating, previous=start, last=start << 32)

    def new_channel(self, number, edge, writer, reader, partition, gate, *, local):
        spec, row = self.spec, self.spec.edges[edge]
        sizes = self.stream("size", row.name, writer.subtask, 0 if partition.shared else reader.subtask)
        channel = Channel(
            number, writer, reader, partition, gate, row, local, sizes, spec.starting_buffer_bytes, spec.exclusive
        )
        if not local:  # R1
            channel.ex_free = channel.credit = channel.required = spec.exclusive
        return channel

    def rank_lines(self):
        """E1: tasks, the reverse line, the forward lines by host, the flush timer, the debloat timer."""
        hosts = sorted(set(self.spec.hosts)) if self.spec.nic is not None else [0]
        self.rank_reverse = len(self.all_tasks)
        self.rank_of_host = {host: self.rank_reverse + 1 + i for i, host in enumerate(hosts)}
        self.rank_flush = self.rank_reverse + 1 + len(hosts)
        self.rank_debloat = self.rank_flush + 1

    def rank_line(self, host):
        return self.rank_of_host[host]

    def start_timers(self):
        """F1, D1: a random phase each, so that tasks do not flush and gates do not measure in step."""
        timeout, debloating = self.spec.buffer_timeout_ns, self.spec.debloating
        for task in self.all_tasks:
            if timeout > 0 and task.partitions:
                u = draw(self.stream("flush", task.vertex.name, task.subtask), 0)
                self.at(self.now + 1 + ((u * timeout) >> 32), self.rank_flush, "flush", task, task.number)
        for gate in self.all_gates:
            if debloating is not None:
                u = draw(self.stream("debloat", self.spec.edges[gate.edge_number].name, gate.task.subtask), 0)
                self.at(
                    self.now + 1 + ((u * debloating.period_ns) >> 32), self.rank_debloat, "debloat", gate, gate.number
                )

    # ------------------------------------------------------------------------------------------------ events (E1, E2)

    def run_work(self, item):
        if isinstance(item, Task):
            self.thread.turn(item)
        else:
            self.sending.send(item)

    def run_event(self, event):
        match event.kind, event.payload:
            case "served", Task() as task:
                task.alarm = None
                self.thread.end_service(task)
            case "fired", Task() as task:
                task.alarm = None
                self.late.end_firing(task)
            case "wake-up", Task() as task:
                task.alarm = None
                self.wake(task)
            case "told", (Channel() as channel, str(kind), int(n)):
                self.sending.be_told(channel, kind, n)
            case "arrive", (Channel() as channel, Slice() | Marker() as element, int(backlog)):
                self.receiving.arrive(channel, element, backlog)
            case "flush", Task() as task:
                if not task.halted:  # P1
                    self.output.flush(task)
                self.at(self.now + self.spec.buffer_timeout_ns, self.rank_flush, "flush", task, task.number)
            case "debloat", Gate() as gate if self.spec.debloating is not None:
                if not gate.task.halted:  # P1
                    self.debloat.run(gate, self.spec.debloating)
                self.at(self.now + self.spec.debloating.period_ns, self.rank_debloat, "debloat", gate, gate.number)
            case unknown:
                raise AssertionError(f"unknown event {unknown}")

    def wake_if_idle_or_soft(self, task):
        if task.state in (ThreadState.IDLE, ThreadState.SOFT):
            self.wake(task)

    # ------------------------------------------------------------------------------------------------ verbs (E4)

    def forward(self, task, marker, edge=None):
        return self.markers.forward(self.all_tasks[task], marker, edge)

    def convert_output(self, task, number):
        return self.markers.convert_output(self.all_tasks[task], number)

    def prioritise(self, task, number):
        self.markers.prioritise(self.all_tasks[task], number)

    def resume(self, task, number=ANY_NUMBER):
        self.markers.resume(self.all_tasks[task], number)

    def settle(self, task, number, series=BARRIERS):
        self.markers.settle(self.all_tasks[task], number, series)

    def capture(self, task, number):
        self.captures.begin(self.all_tasks[task], number)

    def captured(self, task):
        return self.captures.captured(self.all_tasks[task])

    def release_capture(self, task):
        self.captures.release(self.all_tasks[task])

    def interrupt(self, task):
        self.all_tasks[task].interrupted = True
        self.wake_if_idle_or_soft(self.all_tasks[task])

    def interrupt_after_next_element(self, task):
        self.all_tasks[task].behind = waits(self.all_tasks[task]) != Wait.LOCK
        self.interrupt(task)

    def hold(self, task):
        row = self.all_tasks[task]
        if row.in_service or row.emission or row.in_hand or row.halted:
            raise ValueError(f"task {task} cannot be held: it is inside a record or halted ({row.state.name})")
        row.held = True
        self.thread.drop_alarm(row)
        self.thread.enter(row, ThreadState.HELD)

    def release(self, task):
        row = self.all_tasks[task]
        if not row.held:
            raise ValueError(f"task {task} cannot be released: it is not held ({row.state.name})")
        row.held = False
        self.wake(row)

    def scale(self, task, num, den):
        self.all_tasks[task].slow = (num, den)

    def release_late_outputs(self, task, until):
        self.late.release_late_outputs(self.all_tasks[task], until)

    def wait_for_late(self, task):
        self.all_tasks[task].waits_for_late = True
        self.wake_if_idle_or_soft(self.all_tasks[task])

    def report_written(self, task):
        self.all_tasks[task].reports_written = True
        self.wake_if_idle_or_soft(self.all_tasks[task])

    def position(self, task):
        return self.restarts.position(self.all_tasks[task])

    def bare_position(self, task):
        return self.restarts.bare_position(self.all_tasks[task])

    def counted(self, task):
        return self.restarts.counted(self.all_tasks[task])

    def halt(self, tasks):
        for task in tasks:
            self.restarts.halt(self.all_tasks[task])

    def start(self, positions):
        validate_start_positions(self.layout, positions)
        self.restarts.start(positions)

    # ------------------------------------------------------------------------------------------------ tables

    def polled(self, task):
        row = self.all_tasks[task]
        return row.earlier_in + sum(channel.taken for channel in row.channels_in)

    def served(self):
        return np.array([row.served for row in self.all_tasks], np.int64)

    def sample_served(self, first, every, times):
        rows = []
        for at in range(first, first + every * min(times, MAX_SERVED_SAMPLES), every):
            if (notice := self.advance(at)).kind is not NoticeKind.REACHED_TIME:
                break
            rows.append(self.served())
        return np.array(rows, np.int64).reshape(len(rows), len(self.all_tasks)), notice

    def in_flight(self):
        flying = (
            sum(c.records_out for c in row.channels_out) - sum(c.records_in for c in row.channels_in)
            for row in self.all_tasks
        )
        return np.array(list(flying), np.int64)

    def sums(self):
        return sums(self)

    def tasks(self, *columns):
        return task_table(self, columns)

    def channels(self, *columns):
        return channel_table(self, columns)

    def partitions(self):
        return partition_table(self)

    def gates(self):
        return gate_table(self)

    def check(self):
        """Nothing: its tables are compared with those of the kernel, whose rows are checked."""

    def served_records(self, task):
        """The source records a task has served so far, in order; only with `identities`."""
        return self.all_tasks[task].served_records

    def messages(self, kind):
        """What is under way on the lines ("arrive": elements, "told": messages to senders)."""
        return [cast("tuple[Channel, object, int]", event.payload) for event in self.events if event.kind == kind]

    def forget(self, tasks):
        """P3: notices, work and events of the tasks, and all elements on a line for one of their channels."""
        gone = {task.number for task in tasks}
        self.drop_notices(gone)
        self.work = deque(
            item for item in self.work if (item if isinstance(item, Task) else item.reader).number not in gone
        )
        for event in list(self.events):
            match event.kind, event.payload:
                case (("served" | "fired" | "wake-up"), Task() as task) if task.number in gone:
                    self.drop(event)
                case (("arrive" | "told"), (Channel() as channel, _, _)) if channel.reader.number in gone:
                    self.drop(event)
