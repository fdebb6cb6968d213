"""The account of the ends of tasks: whose data has ended, and how; compared with snapshots, timers and what the user asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sim.checkers import ends
from sim.checkers.restarts import Deployed
from sim.checkers.story import Teller
from sim.checkers.violation import Violation
from sim.metrics.journal import Entry, Happening
from sim.model.faults import StorageOutage
from sim.runtime.contents import TaskSnapshot
from sim.runtime.context import Context

_SOON_NS = 200_000_000
"""A final checkpoint may have to wait for files that are deleted."""


class EndAccount:
    """The account of one job instance."""

    def __init__(self, context: Context, teller: Teller) -> None:
        self.context = context
        self.teller = teller
        self.found: list[Violation] = []
        self._ended: dict[int, str] = {}  # task -> how
        self._laws: set[str] = set()  # told

    def data_ended(self, task: int, ending: str) -> None:
        """The end of data leaves a task."""
        self._ended[task] = ending

    def restarted(self, tasks: Iterable[int]) -> None:
        """These tasks are deployed anew."""
        for task in tasks:
            self._ended.pop(task, None)

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """A task stands at its cut."""
        if self._ended.get(task) == "drain" and not part.finished:
            self._tell(ends.unknown_end(checkpoint, task, int(self.context.env.now), self.teller))

    def timer_fired(self, task: int, due_ns: int) -> None:
        """A timer of processing time lets records go."""
        if task in self._ended:
            self._tell(ends.late_timer(task, int(self.context.env.now), due_ns, self.teller))

    def at_the_end(self, turns: Sequence[Entry], deployed: Sequence[Deployed], *, finished: bool) -> Iterator[Violation]:
        """At the end of the run; `turns`: the rare rows of the journal."""
        context, teller = self.context, self.teller
        yield from self.found
        requests = {action.stop or "" for action in context.scenario.actions if action.stop is not None}
        if len(requests) <= 1 and "savepoint-then-finish" not in requests:
            stopped = self._stopped() if finished else frozenset()
            yield from ends.otherwise_than_asked(turns, context.stats, next(iter(requests), ""), stopped, teller)
        yield from ends.counted_as_finished(turns, deployed, self._kept, teller)
        lost = any(isinstance(fault.what, StorageOutage) for fault in context.scenario.faults)
        if context.periodic and context.scenario.checkpoint.finish == "flink" and not requests and not lost:
            within_ns = context.scenario.overheads.acknowledge_ns + context.scenario.overheads.trigger_ns + _SOON_NS
            yield from ends.never_final(turns, len(context.names), within_ns, int(context.env.now), deployed, teller)

    def _stopped(self) -> frozenset[int]:
        """Sources that have not come to the end of their records."""
        layout, vertices, served = self.context.layout, self.context.scenario.job.vertices, self.context.plane.served()
        totals = (vertices[vertex].total(subtask) for vertex, subtask in zip(layout.vertex, layout.subtask, strict=True))
        return frozenset(
            task for task, total in enumerate(totals) if not layout.task_gates[task] and (total is None or int(served[task]) < total)
        )

    def _kept(self, checkpoint: int) -> int:
        return sum(row.checkpoint == checkpoint for row in self.context.journal.only({Happening.PART_KEPT}))

    def _tell(self, found: Violation) -> None:
        """The first time of each law."""
        if found.law not in self._laws:
            self._laws.add(found.law)
            self.found.append(found)
