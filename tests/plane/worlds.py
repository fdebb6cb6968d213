"""Generated worlds and a tiny control plane to drive them: the same world and script give the same steps on every engine.

``worlds()`` draws small specifications, so that every limit is met.  ``scripts()`` draws the events.  ``drive()`` executes a script on a
plane and returns the observations after every advance.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from sim.model.cluster import Debloating
from sim.plane.interface import (
    BARRIERS,
    EdgeSpec,
    Marker,
    NoticeKind,
    OutputDelay,
    PlaneSpec,
    RateSegment,
    Ship,
    SourceSpec,
    Trait,
    VertexSpec,
    Wait,
    create_layout,
)
from sim.plane.kernel import KernelPlane

CHATTER, ENDS = 1, 2
"""Series beside the barriers: markers nobody waits for, and ends of channels."""

SHAPES = {
    "pipe": (2, ((0, 1),)),
    "chain": (3, ((0, 1), (1, 2))),
    "long chain": (4, ((0, 1), (1, 2), (2, 3))),
    "fork": (3, ((0, 1), (0, 2))),
    "join": (3, ((0, 2), (1, 2))),
    "twice": (2, ((0, 1), (0, 1))),
    "thrice": (2, ((0, 1), (0, 1), (0, 1))),
    "diamond": (4, ((0, 1), (0, 2), (1, 3), (2, 3))),
    "join and on": (4, ((0, 2), (1, 2), (2, 3))),
}
EXAMPLES = settings.default.max_examples // 3
"""Worlds of each shape: 8 of them now, thousands at night, as the profile has it."""
ALL_TO_ALL = (Ship.HASH, Ship.REBALANCE, Ship.BROADCAST, Ship.GLOBAL, Ship.RESCALE)


# ---------------------------------------------------------------------------------------------------- worlds


def laws(low, high):
    """A constant, or a table of a few values."""
    return st.lists(st.integers(low, high), min_size=1, max_size=4).map(tuple)


@st.composite
def sources(draw, *, bounded):
    total = draw(st.integers(0, 12)) if bounded or draw(st.booleans()) else -1
    first = RateSegment(
        0, draw(st.sampled_from((0, 0, 40))), draw(st.integers(1, 3)), draw(st.sampled_from((1, 50, 200)))
    )
    later = RateSegment(draw(st.integers(1, 6)), draw(st.integers(0, 800)), 1, draw(st.integers(1, 300)))
    waits = draw(st.sampled_from((Wait.MAILBOX, Wait.MAILBOX, Wait.POLL, Wait.LOCK, Wait.LOCK)))
    wins = draw(st.sampled_from((0, 1, 3, 4)))
    segments = draw(st.sampled_from(((), (first,), (first, later))))
    return SourceSpec(segments, total, draw(st.sampled_from((0, 0, 0, 1, 2))), waits, wins << 30)


@st.composite
def edges(draw, up, down, parallelism, segment):
    ships = [*ALL_TO_ALL, Ship.FORWARD] if parallelism[up] == parallelism[down] else ALL_TO_ALL
    ship = draw(st.sampled_from(ships))
    readers = laws(0, parallelism[down] - 1)
    return EdgeSpec(
        f"{up}-{down}",
        up,
        down,
        ship,
        record_bytes=draw(laws(1, draw(st.sampled_from((8, segment, 3 * segment))))),
        weights=draw(st.one_of(st.just(()), readers)) if ship == Ship.HASH else (),
        fan_out=draw(st.sampled_from(((1, 1), (1, 1), (0, 1), (1, 2), (2, 3), (3, 1)))),
    )


debloatings = st.builds(
    Debloating,
    period_ns=st.integers(60, 700),
    target_ns=st.sampled_from((1, 100, 2000)),
    samples=st.integers(1, 5),
    threshold_percent=st.sampled_from((0, 25, 60)),
    min_bytes=st.sampled_from((1, 16)),
)


lagging = st.one_of(
    st.none(),
    st.none(),
    st.builds(OutputDelay, times=laws(0, 400), capacity=st.integers(1, 4)).filter(lambda lag: lag.times),
    st.just(OutputDelay()),
    st.builds(OutputDelay, firing_ns=st.sampled_from((0, 30)), yields=st.booleans()),
    st.builds(
        OutputDelay,
        firing_ns=st.integers(0, 60),
        outputs=st.sampled_from(((1, 1), (1, 2), (0, 1), (3, 2))),
        yields=st.booleans(),
    ),
)


@st.composite
def worlds(draw, shape="", *, live=False):
    """Specifications of any shape or a given one.  Live worlds end: sources are bounded, and open buffers alone never exhaust a pool."""
    count, pairs = SHAPES[shape or draw(st.sampled_from(sorted(SHAPES)))]
    parallelism = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    segment = draw(st.sampled_from((1, 64, 100, 512)))
    fed = [sum(down == v for _, down in pairs) for v in range(count)]
    services = [tuple(draw(laws(0, 90)) for _ in range(max(1, gates))) for gates in fed]
    fed_by = [None if gates else draw(sources(bounded=live)) for gates in fed]
    joined = [gates > 1 and draw(st.booleans()) for gates in fed]
    inputs = [
        draw(st.sampled_from(((), (2, 1), (1, 2)))) if joins and gates == 3 else ()
        for gates, joins in zip(fed, joined, strict=True)
    ]
    lags = [draw(lagging) if gates else None for gates in fed]
    return PlaneSpec(
        tuple(
            VertexSpec(f"v{v}", parallelism[v], services[v], fed_by[v], joined[v], lags[v], inputs[v])
            for v in range(count)
        ),
        tuple(draw(edges(up, down, parallelism, segment)) for up, down in pairs),
        hosts=tuple(draw(st.lists(st.integers(0, 2), min_size=sum(parallelism), max_size=sum(parallelism)))),
        seed=draw(st.integers(0, 3)),
        latency_ns=draw(st.sampled_from((0, 0, 1, 60, 300))),
        nic=draw(st.sampled_from((None, None, (1, 1), (7, 3), (100, 1)))),
        segment_bytes=segment,
        starting_buffer_bytes=draw(st.sampled_from((segment, max(1, segment // 2), min(9, segment)))),
        exclusive=draw(st.integers(1, 3)),
        floating=draw(st.integers(int(live), 4)),
        max_per_channel=draw(st.integers(1 + live, 4)),
        overdraft=draw(st.integers(0, 3)),
        stretching=draw(st.booleans()),
        opens_at_once=draw(st.booleans()),
        buffer_timeout_ns=draw(st.sampled_from((-1, 0, 35, 400))),
        debloating=draw(st.one_of(st.none(), debloatings)),
        digests=True,
        max_traverse=draw(st.sampled_from((0, 0, 2, 4))),
    )


# ---------------------------------------------------------------------------------------------------- scripts


@dataclass(frozen=True)
class Trigger:
    """A number sent through the job: every source forwards it at its next safe point."""

    at: int
    traits: Trait
    series: int = BARRIERS
    patience_ns: int = -1  # announced and ordinary: converted so long after it was seen waiting; -1: never
    work_ns: int = 0  # a task is held so long when its part is due
    write_ns: int = 100  # captured data is released so long after the capture
    capture_first: bool = False  # before the forward, or after it


@dataclass(frozen=True)
class Script:
    step_ns: int  # the plane is advanced in steps of at most this
    until: int
    triggers: tuple[Trigger, ...] = ()
    naps: tuple[tuple[int, int, int], ...] = ()  # (at, task modulo tasks, length): held from the next safe point on
    slow: tuple[tuple[int, int, int, int], ...] = ()  # (at, task modulo tasks, num, den)
    release_late_outputs: tuple[
        tuple[int, int, int], ...
    ] = ()  # (at, task modulo tasks, how many of the records served stay late)
    waits: tuple[tuple[int, int], ...] = ()  # (at, task modulo tasks): it waits for its late outputs
    written: tuple[tuple[int, int], ...] = ()  # (at, task modulo tasks): it reports what was let go


TRAITS = [Trait(i) for i in range(8)]  # every combination without FINAL, which sources send when they are exhausted

triggers = st.builds(
    Trigger,
    at=st.integers(0, 1500),
    traits=st.sampled_from(TRAITS),
    series=st.sampled_from((BARRIERS, BARRIERS, BARRIERS, CHATTER)),
    patience_ns=st.sampled_from((-1, 0, 30, 200)),
    work_ns=st.sampled_from((0, 0, 25, 150)),
    write_ns=st.sampled_from((0, 80, 500)),
    capture_first=st.booleans(),
)


@st.composite
def scripts(draw):
    return Script(
        draw(st.sampled_from((37, 250, 1000))),
        2000,
        tuple(sorted(draw(st.lists(triggers, max_size=4)), key=lambda t: t.at)),
        tuple(draw(st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 11), st.integers(1, 400)), max_size=3))),
        tuple(
            draw(
                st.lists(
                    st.tuples(st.integers(0, 1500), st.integers(0, 11), st.integers(1, 6), st.integers(1, 3)),
                    max_size=2,
                )
            )
        ),
        tuple(draw(st.lists(st.tuples(st.integers(0, 1800), st.integers(0, 11), st.integers(0, 2)), max_size=6))),
        tuple(draw(st.lists(st.tuples(st.integers(0, 1800), st.integers(0, 11)), max_size=3))),
        tuple(draw(st.lists(st.tuples(st.integers(0, 1800), st.integers(0, 11)), max_size=3))),
    )


# ---------------------------------------------------------------------------------------------------- the driver

Step = tuple[Any, ...]
"""What was seen: ("notice", notice, tables) after an advance, (verb, task, number, answer) after a verb that answers."""


@dataclass
class Driver:
    """A control plane without any protocol to speak of: it only sees to it that every verb is used and nothing waits for ever."""

    plane: KernelPlane
    spec: PlaneSpec
    script: Script
    steps: list[Step] = field(default_factory=list)
    after: Callable[[], None] = lambda: None  # called after every advance
    calls: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)  # (time, order, what)
    order: int = 0
    mail: dict[int, list[Callable[[], None]]] = field(default_factory=dict)  # by task: what is due at its safe point
    working: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)  # tasks that have sent their ends
    # (task, series, number) -> gates complete
    delivered: dict[tuple[int, int, int], set[int]] = field(default_factory=dict)
    begun: set[tuple[int, int, int]] = field(default_factory=set)
    attempt: Counter[int] = field(default_factory=Counter)  # by task: how often it was started anew

    def __post_init__(self):
        plan = create_layout(self.spec)
        self.outputs = [[plan.partitions[p][1] for p in partitions] for partitions in plan.task_partitions]
        self.gates = [len(gates) for gates in plan.task_gates]
        self.sources = [t for t, gates in enumerate(self.gates) if not gates]
        self.tasks = range(len(self.gates))
        for number, trigger in enumerate(self.script.triggers, start=1):
            self.call(trigger.at, lambda number=number: self.trigger(number))
        for at, task, length in self.script.naps:
            self.call(at, lambda task=task, length=length: self.nap(task % len(self.tasks), length))
        for at, task, num, den in self.script.slow:
            self.call(at, lambda task=task, num=num, den=den: self.plane.scale(task % len(self.tasks), num, den))

        for at, task, kept in self.script.release_late_outputs:
            self.call(at, lambda task=task, kept=kept: self.release_late_outputs(task % len(self.tasks), kept))

        for at, task in self.script.waits:
            self.call(at, lambda task=task: self.plane.wait_for_late(task % len(self.tasks)))
        for at, task in self.script.written:
            self.call(at, lambda task=task: self.plane.report_written(task % len(self.tasks)))

    def release_late_outputs(self, task, kept):
        self.plane.release_late_outputs(task, self.plane.position(task).served - kept)

    def call(self, at, what):
        self.order += 1
        heapq.heappush(self.calls, (at, self.order, what))

    def later(self, delay, what):
        self.call(self.plane.now + delay, what)

    # -------------------------------------------------------------------------------------------- the loop

    def run(self, until, step_ns):
        """Control events at a time come before data events at that time (E3)."""
        while self.plane.now < until:
            while self.calls and self.calls[0][0] <= self.plane.now:
                heapq.heappop(self.calls)[2]()
            target = min(until, (self.plane.now // step_ns + 1) * step_ns, *(at for at, _, _ in self.calls[:1]))
            while (notice := self.advance(target)).kind != NoticeKind.REACHED_TIME:
                self.on(notice)
                if self.calls and self.calls[0][0] < target:
                    target = max(self.calls[0][0], self.plane.now)

    def advance(self, target):
        notice = self.plane.advance(target)
        self.steps.append(("notice", notice, self.tables()))
        self.after()
        return notice

    def tables(self):
        plane = self.plane
        counted = [
            (served, read.tolist(), written.tolist()) for served, read, written in map(plane.counted, self.tasks)
        ]
        tables = (plane.tasks(), plane.channels(), plane.partitions(), plane.gates())
        assert plane.served().tolist() == tables[0]["served"].tolist()
        ends = ((plane.layout.writer, "records_out"), (plane.layout.reader, "records_in"))
        written, read = (np.bincount(tasks, tables[1][name], len(tables[0])) for tasks, name in ends)
        assert plane.in_flight().tolist() == (written - read).tolist()
        return (*(table.tolist() for table in tables), counted, plane.sums().tolist())

    def on(self, notice):
        match notice.kind:
            case NoticeKind.INTERRUPTED:
                for what in self.mail.pop(notice.task, []):
                    what()
            case NoticeKind.EXHAUSTED:
                self.end(notice.task)
            case NoticeKind.ANNOUNCED:
                self.lose_patience(notice.task, notice.number)
            case NoticeKind.ARRIVED if notice.series == ENDS:
                self.on_end(notice)
            case NoticeKind.ARRIVED:
                self.on_arrived(notice)

    # -------------------------------------------------------------------------------------------- safe points, holding

    def at_safe_point(self, task, what, *, behind=False):
        self.mail.setdefault(task, []).append(what)
        (self.plane.interrupt_after_next_element if behind else self.plane.interrupt)(task)

    def nap(self, task, length):
        """Every other one begins behind an element."""
        self.at_safe_point(task, lambda: self.hold(task, length), behind=length % 2 == 1)

    def hold(self, task, length):
        if length > 0 and task not in self.working:
            self.working.add(task)
            self.plane.hold(task)
            self.later(length, lambda: self.release(task))

    def release(self, task):
        self.working.remove(task)
        self.plane.release(task)

    # -------------------------------------------------------------------------------------------- numbers

    def trigger(self, number):
        for source in self.sources:
            self.at_safe_point(source, lambda t=source: self.begin(t, number))

    def marker(self, number, traits=None):
        trigger = self.script.triggers[number - 1]
        return Marker(number, trigger.traits if traits is None else traits, trigger.series)

    def begin(self, task, number, *, overtake=False):
        """The task's own part of a number: forward, capture if the marker overtakes, work for a while."""
        trigger = self.script.triggers[number - 1]
        if task in self.ended or (task, trigger.series, number) in self.begun:
            return
        self.begun.add((task, trigger.series, number))
        marker = self.marker(number, (trigger.traits | Trait.PRIORITY) & ~Trait.BLOCKING if overtake else None)
        captures = bool(marker.traits & Trait.PRIORITY) and trigger.series == BARRIERS
        if captures:
            self.plane.prioritise(task, number)
        if captures and trigger.capture_first:
            self.plane.capture(task, number)
        # even numbers go edge by edge
        for edge in self.outputs[task] if number % 2 == 0 and self.outputs[task] else [None]:
            self.log("forward", task, number, self.plane.forward(task, marker, edge))
        if captures and not trigger.capture_first:
            self.plane.capture(task, number)
        if captures:
            self.log("captured", task, number, self.plane.captured(task))
        self.later(trigger.write_ns, lambda: self.written(task, number))
        self.hold(task, trigger.work_ns)

    def written(self, task, number):
        self.log("captured", task, number, self.plane.captured(task))
        self.plane.release_capture(task)

    def log(self, *step):
        self.steps.append(step)

    def on_arrived(self, notice):
        """Overtaking numbers begin with the first marker, the others with the last one of all gates."""
        trigger = self.script.triggers[notice.number - 1]
        key = (notice.task, notice.series, notice.number)
        gates = self.delivered.setdefault(key, set())
        if notice.last:
            gates.add(notice.gate)
        if trigger.traits & Trait.PRIORITY:
            self.begin(notice.task, notice.number)
        if len(gates | self.ended_gates(notice.task)) == self.gates[notice.task]:
            self.complete(*key)

    def ended_gates(self, task):
        return self.delivered.get((task, ENDS, 1), set())

    def complete(self, task, series, number):
        self.begin(task, number)
        self.plane.settle(task, number, series)
        self.later(self.script.triggers[number - 1].work_ns, lambda: self.plane.resume(task))

    def lose_patience(self, task, number):
        """A waiting barrier overtakes after a while: here, and in the output of whoever has forwarded it."""
        trigger = self.script.triggers[number - 1]
        if trigger.patience_ns >= 0 and trigger.series == BARRIERS:
            self.later(trigger.patience_ns, lambda: self.convert(task, number))

    def convert(self, task, number):
        self.plane.prioritise(task, number)
        self.log("captured", task, number, self.plane.captured(task))
        for writer in self.tasks:
            if (writer, BARRIERS, number) in self.begun:
                self.log("convert", writer, number, self.plane.convert_output(writer, number))
        if task not in self.ended:
            self.at_safe_point(task, lambda: self.begin(task, number, overtake=True))

    # -------------------------------------------------------------------------------------------- ends

    def end(self, task):
        """When all its outputs are written: at a safe point, as the last of them may be stuck in its record."""
        if task in self.ended:
            return
        if self.plane.position(task).late:
            self.plane.release_late_outputs(task, self.plane.position(task).served)
            attempt = self.attempt[task]
            self.later(
                30, lambda: None if attempt != self.attempt[task] else self.at_safe_point(task, lambda: self.end(task))
            )
            return
        self.ended.add(task)
        self.log("forward", task, 1, self.plane.forward(task, Marker(1, Trait.FINAL, ENDS)))

    def on_end(self, notice):
        """A task ends when all its gates have; what waited for the gate only waits no more."""
        if notice.last:
            self.delivered.setdefault((notice.task, ENDS, 1), set()).add(notice.gate)
            for task, series, number in list(self.delivered):
                if task == notice.task and series != ENDS:
                    if len(self.delivered[task, series, number] | self.ended_gates(task)) == self.gates[task]:
                        self.complete(task, series, number)
            if len(self.ended_gates(notice.task)) == self.gates[notice.task] and notice.task not in self.ended:
                self.end(notice.task)

    def wind_down(self):
        """Let everything go until nothing moves any more: records of a source that no edge carries move as well."""
        still, before = 0, None
        while still < 3:
            last, before = before, (self.tables()[1], list(self.plane.served()))
            still = still + 1 if before == last else 0
            for task in self.tasks:
                self.plane.resume(task)
                self.plane.release_capture(task)
                self.release_late_outputs(task, 0)
            self.run(self.plane.now + 1500, 1500)


def drive(
    plane,
    spec,
    script,
    *,
    after=lambda: None,
    to_the_end=False,
):
    """Execute the script; with `to_the_end` go on until nothing moves (bounded worlds)."""
    driver = Driver(plane, spec, script, after=after)
    driver.run(script.until, script.step_ns)
    if to_the_end:
        driver.wind_down()
    return driver.steps
