"""The event loop of protocol hosts, the speed of tasks, and jobs with another parallelism."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Generic, TypeVar

from sim.model.job import Job, Vertex
from sim.model.scenario import Scenario
from sim.plane.interface import DataPlane
from sim.protocol.machine import EventLog

# ---- The event loop of a host.  An event caused by a command is dispatched after all commands of the current event.

M = TypeVar("M")
E = TypeVar("E")
C = TypeVar("C")


def _ignore(_: object) -> None:
    """Ignore an event that arrives after the end."""


class HostLoop(Generic[M, E, C]):
    """The event loop of a host: it passes events to a state machine and executes its commands.  `late` gets events after the end."""

    __slots__ = ("_carry_out", "_events", "_late", "_log", "_on", "machine", "over")

    def __init__(
        self,
        machine: M,
        on: Callable[[M, E], tuple[M, Sequence[C]]],
        carry_out: Callable[[C], None],
        late: Callable[[E], None] = _ignore,
    ) -> None:
        self.machine = machine
        self.over = False  # set by the host at the end; then no command is executed any more
        self._on = on
        self._carry_out = carry_out
        self._late = late
        self._log = EventLog()
        # The first event is being dispatched.  A list, because an empty deque allocates 64 slots and each task has several loops.
        self._events: list[E] = []

    @property
    def busy(self) -> bool:
        """Whether an event is being dispatched."""
        return bool(self._events)

    def dispatch(self, event: E) -> None:
        """Dispatch an event, or queue it if another one is being dispatched."""
        if self.over:
            self._late(event)
            return
        events = self._events
        events.append(event)
        if len(events) > 1:
            return
        while events and not self.over:
            self.machine, commands = self._log.step(self._on, self.machine, events[0])
            for command in commands:
                if self.over:
                    break
                self._carry_out(command)
            del events[0]


# ---- The speed of tasks: the product of all factors that slow one down.

_MAX_RATIO_TERM = 1 << 20
"""Maximum numerator and denominator of a factor (`DataPlane.scale`)."""


class Speed:
    """The factors by which tasks are slowed down, by task and cause."""

    def __init__(self, plane: DataPlane) -> None:
        self.plane = plane
        self._factors: dict[int, dict[str, Fraction]] = {}

    def slow(self, task: int, cause: str, factor: Fraction) -> None:
        """Multiply the service time by `factor`, from the next record on.  It replaces the factor of the same cause; 1 removes it."""
        factors = self._factors.setdefault(task, {})
        factors[cause] = factor
        product = Fraction(1)
        for cause_factor in factors.values():
            product *= cause_factor
        product = (
            product.limit_denominator(max(1, min(1 << 10, int(_MAX_RATIO_TERM / product))))
            if product < _MAX_RATIO_TERM
            else Fraction(_MAX_RATIO_TERM)
        )
        self.plane.scale(task, product.numerator, product.denominator)


# ---- A job with another parallelism, or on fewer TaskManagers.
#
# With fewer TaskManagers, the parallelism of a vertex is limited by the number of slots (SlotSharingSlotAllocator).
# Sources keep their parallelism, because each subtask reads its own partition.


def with_parallelism(job: Job, parallelism: Mapping[str, int]) -> Job:
    """Return the job with another parallelism of these vertices.  As in Flink, forward edges between unequal ones become rebalance."""
    vertices = {
        vertex.name: replace(vertex, parallelism=parallelism.get(vertex.name, vertex.parallelism))
        for vertex in job.vertices
    }
    for name, vertex in vertices.items():
        inputs = tuple(
            replace(inlet, ship="rebalance")
            if inlet.shipping.one_to_one and vertices[inlet.upstream].parallelism != vertex.parallelism
            else inlet
            for inlet in vertex.inputs
        )
        vertices[name] = replace(vertex, inputs=inputs)
    return Job(tuple(vertices.values()))


def without_task_managers(scenario: Scenario, hosts: Sequence[int], missing: Collection[int]) -> Scenario | None:
    """Return the scenario without the `missing` task managers, or None if a vertex has no slot or cannot be rescaled.

    `hosts`: the task manager of each task.
    """
    if not missing:
        return scenario
    task_managers, shared = iter(hosts), scenario.cluster.placement != "isolated"
    remaining_tasks = {
        v.name: sum(next(task_managers) not in missing for _ in range(v.parallelism)) for v in scenario.job.vertices
    }
    widest_left = max(remaining_tasks.values())
    slots = {
        v.name: min(v.parallelism, widest_left if shared else remaining_tasks[v.name]) for v in scenario.job.vertices
    }
    fewer = {v.name: slots[v.name] for v in scenario.job.vertices if slots[v.name] < v.parallelism and v.source is None}
    if not min(slots.values()) or any(not _is_dealt_out(v) for v in scenario.job.vertices if v.name in fewer):
        return None
    job = with_parallelism(scenario.job, fewer)
    managers = len(set(hosts) - set(missing))
    widest = max(vertex.parallelism for vertex in job.vertices)
    return replace(
        scenario,
        job=job,
        cluster=replace(scenario.cluster, slots=max(scenario.cluster.slots or 1, -(-widest // managers))),
    )


def _is_dealt_out(vertex: Vertex) -> bool:
    """Return whether the state of a vertex can be redistributed when it is rescaled."""
    return (
        vertex.commit is None and not vertex.committer_of and (vertex.window is None or vertex.window.time == "event")
    )
