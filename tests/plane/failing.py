"""Generated failures: tasks halted and started anew at random moments, at positions that fit together or do not.

``Failing`` is the tiny control plane of `worlds` that also loses tasks; ``drive_failing`` executes a script with failures.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from sim.plane import build
from sim.plane.interface import Layout, NoticeKind, Position, Trait, channels_in, channels_out, create_layout
from tests.oracle import oracle
from tests.plane.worlds import Driver, Script, Trigger, scripts


@dataclass(frozen=True)
class Fault:
    at: int
    tasks: tuple[int, ...]  # halted, modulo tasks
    down_ns: int  # later, their regions start
    old_ns: int  # at the positions of so long before the failure; -1: at the beginning
    # quarters of what was written that are recovered input and, of the rest, output; None: as captured
    share: tuple[int, int] | None
    stagger_ns: int  # between two releases


@dataclass(frozen=True)
class FailingScript(Script):
    faults: tuple[Fault, ...] = ()


faults = st.builds(
    Fault,
    at=st.integers(0, 1500),
    tasks=st.lists(st.integers(0, 11), min_size=1, max_size=4).map(tuple),
    down_ns=st.sampled_from((0, 0, 1, 40, 300)),
    old_ns=st.sampled_from((-1, 0, 0, 100, 500)),
    share=st.one_of(st.none(), st.tuples(st.integers(0, 4), st.integers(0, 4))),
    stagger_ns=st.sampled_from((0, 0, 25)),
)


def failing_scripts():
    """Any script, and up to three failures."""
    failures = st.lists(faults, min_size=1, max_size=3).map(tuple)
    return st.builds(lambda script, faults: FailingScript(**vars(script), faults=faults), scripts(), failures)


def region(plan, tasks):
    """The tasks and all that are connected with them by channels."""
    while (
        neighbours := {t for pair in zip(plan.writer, plan.reader, strict=True) if tasks & set(pair) for t in pair}
        - tasks
    ):
        tasks = tasks | neighbours
    return sorted(tasks)


def zero(plan, task):
    """The beginning."""
    inputs, outputs = ([0] * len(channels(plan, task)) for channels in (channels_in, channels_out))
    return Position(0, *(np.array(column, np.int64) for column in (inputs, inputs, inputs, outputs, outputs, outputs)))


@dataclass
class Failing(Driver):
    script: FailingScript
    plan: Layout = field(init=False)
    halted: set[int] = field(default_factory=set)

    def __post_init__(self):
        super().__post_init__()
        self.plan = create_layout(self.spec)
        for fault in self.script.faults:
            self.schedule(fault)

    def schedule(self, fault):
        noted = {}
        if fault.old_ns >= 0:
            self.call(max(0, fault.at - fault.old_ns), lambda: self.note(noted))
        self.call(fault.at, lambda: self.halt({t % len(self.tasks) for t in fault.tasks}))
        self.call(fault.at + fault.down_ns, lambda: self.restore(fault, noted))

    def note(self, positions):
        for task in self.tasks:
            positions[task] = self.plane.position(task)
            here = positions[task]
            self.log("position", task, here.served, here.late, *(column.tolist() for column in here[1:7]))

    def halt(self, tasks):
        self.plane.halt(tasks)
        self.halted |= tasks
        self.after()

    def restore(self, fault, noted):
        tasks = region(self.plan, {t % len(self.tasks) for t in fault.tasks})
        self.start(self.sound({t: noted.get(t) or zero(self.plan, t) for t in tasks}, fault.share), fault.stagger_ns)

    def sound(self, positions, share):
        """No more in flight than was written."""
        positions = {t: Position(p.served, *(column.copy() for column in p[1:7]), p.late) for t, p in positions.items()}
        for t, position in positions.items():
            for place, c in enumerate(channels_out(self.plan, t)):
                reader = self.plan.reader[c]
                at = channels_in(self.plan, reader).index(c)
                captured, written = positions[reader].captured, int(position.written[place])
                captured_bytes = (int(captured[at]), int(position.overtaken[place]))
                if share is not None:
                    captured_bytes = (written * share[0] // 4, (written - written * share[0] // 4) * share[1] // 4)
                captured[at] = min(
                    max(0, captured_bytes[0]), written
                )  # a capture after its marker and what followed it were read is negative
                position.overtaken[place] = min(captured_bytes[1], written - captured[at])
        return positions

    def start(self, positions, stagger_ns=0):
        """The driver forgets what it knew of the tasks, too."""
        self.plane.start(positions)
        self.halted -= positions.keys()
        self.ended -= positions.keys()
        self.working |= positions.keys()
        self.delivered = {key: gates for key, gates in self.delivered.items() if key[0] not in positions}
        self.begun = {key for key in self.begun if key[0] not in positions}
        for i, task in enumerate(positions):
            self.attempt[task] += 1
            self.mail.pop(task, None)
            self.release_later(task, i * stagger_ns)
        self.after()

    # -------------------------------------------------------------------------------------------- holding

    def hold(self, task, length):
        if length > 0 and task not in self.working and task not in self.halted:
            self.working.add(task)
            self.plane.hold(task)
            self.release_later(task, length)

    def release_later(self, task, delay):
        attempt = self.attempt[task]
        self.later(delay, lambda: self.release_attempt(task, attempt))

    def release_attempt(self, task, attempt):
        if attempt == self.attempt[task] and task in self.working:
            self.working.remove(task)
            if task not in self.halted:
                self.plane.release(task)

    def on(self, notice):
        assert notice.task not in self.halted, "a halted task reports nothing"
        super().on(notice)


@dataclass
class Recovering(Failing):
    """Notes the cuts its markers make, one at a time, aligned (BLOCKING) or overtaking (PRIORITY); restores the whole job at the latest."""

    cuts: dict[int, dict[int, Position]] = field(default_factory=dict)  # by number, then task
    complete_tasks: dict[int, set[int]] = field(default_factory=dict)  # tasks whose part is complete
    restored: list[int] = field(default_factory=list)  # numbers; 0: the beginning
    recovered: Counter[int] = field(default_factory=Counter)  # by task, since the last start
    under_way: int = 0  # the number of a cut that is not whole

    def trigger(self, number):
        if self.under_way == 0 or self.is_complete(self.under_way):
            self.under_way = number
            super().trigger(number)

    def is_complete(self, number):
        return len(self.cuts.get(number, {})) == len(self.tasks) == len(self.complete_tasks[number])

    def begin(self, task, number, *, overtake=False):
        before = len(self.begun)
        super().begin(task, number, overtake=overtake)
        if len(self.begun) > before:
            position = self.plane.position(task)
            if not self.script.triggers[number - 1].traits & Trait.PRIORITY:
                position = position._replace(captured=0 * position.captured, overtaken=0 * position.overtaken)
            self.cuts.setdefault(number, {})[task] = position
            self.complete_tasks.setdefault(number, {task} if task in self.sources else set())

    def complete(self, task, series, number):
        super().complete(task, series, number)
        if task in self.cuts.get(number, {}) and self.script.triggers[number - 1].traits & Trait.PRIORITY:
            captured = self.plane.position(task).captured
            self.cuts[number][task] = self.cuts[number][task]._replace(captured=captured)
        self.complete_tasks.setdefault(number, set()).add(task)

    def restore(self, fault, noted):
        usable = [number for number in self.cuts if self.is_complete(number)]
        self.restored.append(max(usable, default=0))
        positions = self.cuts[self.restored[-1]] if usable else {t: zero(self.plan, t) for t in self.tasks}
        self.cuts = {number: self.cuts[number] for number in usable}
        self.under_way = 0
        self.recovered.clear()
        self.start(positions, fault.stagger_ns)

    def on(self, notice):
        self.recovered[notice.task] += notice.kind == NoticeKind.RECOVERED
        super().on(notice)


def cutting_scripts():
    """Aligned and overtaking cuts while there is something to cut, and failures."""
    cuts = st.builds(
        Trigger,
        at=st.integers(0, 300),
        traits=st.sampled_from((Trait.PRIORITY, Trait.PRIORITY, Trait.BLOCKING)),
        work_ns=st.sampled_from((0, 25)),
        write_ns=st.sampled_from((0, 80, 500)),
        capture_first=st.booleans(),
    )
    few_cuts = st.lists(cuts, min_size=1, max_size=3).map(lambda cuts: tuple(sorted(cuts, key=lambda cut: cut.at)))
    late = st.builds(replace, faults, at=st.integers(100, 1800))
    failures = st.lists(late, min_size=1, max_size=3).map(tuple)
    slow = st.lists(st.tuples(st.just(0), st.integers(0, 11), st.integers(2, 6), st.just(1)), max_size=4).map(tuple)
    return st.builds(
        lambda *parts: FailingScript(250, 2000, parts[0], slow=parts[1], faults=parts[2]), few_cuts, slow, failures
    )


def drive_failing(plane, spec, script, *, after=lambda: None):
    """Execute the script; returns what was seen."""
    driver = Failing(plane, spec, script, after=after)
    driver.run(script.until, script.step_ns)
    return driver.steps


def recover(plane, spec, script, *, after=lambda: None):
    """Execute a script with cuts and go on until nothing moves (bounded worlds)."""
    driver = Recovering(plane, spec, script, after=after)
    driver.run(script.until, script.step_ns)
    driver.wind_down()
    return driver


def parting(spec, script, engine):
    """The first step in which an engine leaves the reference, to be read; empty: none."""
    expected, actual = (drive_failing(build(spec, name), spec, script) for name in (oracle, engine))
    for i, (left, right) in enumerate(zip(expected, actual, strict=False)):
        if left != right:
            lines = [f"{engine} parts at step {i}", f"  after {expected[i - 1][:2]}"]
            for a, b in zip(left, right, strict=True):
                if isinstance(a, tuple) and isinstance(a[0], list):
                    for name, rows, others in zip(
                        ("tasks", "channels", "partitions", "gates", "counted", "sums"), a, b, strict=True
                    ):
                        pairs = enumerate(zip(rows, others, strict=True))
                        lines += [f"  {name}[{n}]: {row} and {other}" for n, (row, other) in pairs if row != other]
                elif a != b:
                    lines.append(f"  {a} and {b}")
            return "\n".join(lines)
    return ""
