"""The event loop of state machines, the speed of tasks, and jobs with another parallelism."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Generic, TypeVar

from sim.model.job import Job, Vertex
from sim.model.scenario import Scenario

if TYPE_CHECKING:
    from sim.plane.kernel import KernelPlane

# ---- The event loop of a host.  An event caused by a command is dispatched after all commands of the current event.

M = TypeVar("M")  # state machine
E = TypeVar("E")  # event
C = TypeVar("C")  # command


def _ignore(_: object) -> None:
    """Ignore an event that arrives after the end."""


class HostLoop(Generic[M, E, C]):
    """Passes events to a state machine, and executes the commands that it returns.

    `transition` returns the machine after an event, and its commands.  `execute` executes a command.  `on_late_event` gets
    the events that arrive after the end.
    """

    __slots__ = ("_events", "_execute", "_on_late_event", "_transition", "is_over", "machine")

    def __init__(
        self,
        machine: M,
        transition: Callable[[M, E], tuple[M, Sequence[C]]],
        execute: Callable[[C], None],
        on_late_event: Callable[[E], None] = _ignore,
    ) -> None:
        self.machine = machine
        self.is_over = False  # set by the host at its end; then no more commands are executed
        self._transition = transition
        self._execute = execute
        self._on_late_event = on_late_event
        # The event that is being dispatched, then those that wait.  This is a list, because each task has several loops, and an
        # empty deque allocates 64 slots.
        self._events: list[E] = []

    @property
    def busy(self) -> bool:
        """Whether an event is being dispatched."""
        return bool(self._events)

    def dispatch(self, event: E) -> None:
        """Dispatch an event, or queue it if another one is being dispatched."""
        if self.is_over:
            self._on_late_event(event)
            return
        events = self._events
        events.append(event)
        if len(events) > 1:
            return
        while events and not self.is_over:
            self.machine, commands = self._transition(self.machine, events[0])
            for command in commands:
                if self.is_over:
                    break
                self._execute(command)
            del events[0]


# ---- The speed of tasks.  A task is slowed down by the product of the factors of all causes.

_MAX_RATIO_TERM = 1 << 20
"""Maximum numerator and denominator of the product (`KernelPlane.scale`)."""
_MAX_DENOMINATOR = 1 << 10


class Speed:
    """The factors by which tasks are slowed down, by task and cause."""

    def __init__(self, plane: KernelPlane) -> None:
        self.plane = plane
        self._factors: dict[int, dict[str, Fraction]] = {}

    def factor(self, task: int, cause: str) -> Fraction:
        """Return the factor of a cause."""
        return self._factors.get(task, {}).get(cause, Fraction(1))

    def set_factor(self, task: int, cause: str, factor: Fraction) -> None:
        """Set the factor by which a cause multiplies service times, from the next record on.  1 removes the cause."""
        factors = self._factors.setdefault(task, {})
        factors[cause] = factor
        product = Fraction(1)
        for cause_factor in factors.values():
            product *= cause_factor
        product = (
            product.limit_denominator(max(1, min(_MAX_DENOMINATOR, int(_MAX_RATIO_TERM / product))))
            if product < _MAX_RATIO_TERM
            else Fraction(_MAX_RATIO_TERM)
        )
        self.plane.scale(task, product.numerator, product.denominator)


# ---- A job with another parallelism, or on fewer TaskManagers.
#
# With fewer TaskManagers, the parallelism of a vertex is limited by the number of slots (SlotSharingSlotAllocator).
# Sources keep their parallelism, because each subtask reads its own partition.


def with_parallelism(job: Job, parallelism: Mapping[str, int]) -> Job:
    """Return the job with another parallelism of these vertices.

    As in Flink, a forward edge between vertices of different parallelism becomes rebalance.
    """
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


def without_task_managers(
    scenario: Scenario, task_managers: Sequence[int], missing: Collection[int]
) -> Scenario | None:
    """Return the scenario without the `missing` TaskManagers, or None if a vertex has no slot or cannot be rescaled.

    `task_managers`: the TaskManager of each task.
    """
    if not missing:
        return scenario
    managers, shared = iter(task_managers), scenario.cluster.placement != "isolated"
    remaining_tasks = {
        v.name: sum(next(managers) not in missing for _ in range(v.parallelism)) for v in scenario.job.vertices
    }
    max_remaining = max(remaining_tasks.values())
    slots = {
        v.name: min(v.parallelism, max_remaining if shared else remaining_tasks[v.name]) for v in scenario.job.vertices
    }
    reduced = {
        v.name: slots[v.name] for v in scenario.job.vertices if slots[v.name] < v.parallelism and v.source is None
    }
    if not min(slots.values()) or any(not can_be_redistributed(v) for v in scenario.job.vertices if v.name in reduced):
        return None
    job = with_parallelism(scenario.job, reduced)
    remaining_managers = len(set(task_managers) - set(missing))
    max_parallelism = max(vertex.parallelism for vertex in job.vertices)
    return replace(
        scenario,
        job=job,
        cluster=replace(
            scenario.cluster, slots=max(scenario.cluster.slots or 1, -(-max_parallelism // remaining_managers))
        ),
    )


def can_be_redistributed(vertex: Vertex) -> bool:
    """Return whether the state of a vertex can be redistributed to another parallelism."""
    return (
        vertex.commit is None and not vertex.committer_of and (vertex.window is None or vertex.window.time == "event")
    )
