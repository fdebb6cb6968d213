"""The account of the ends of tasks: whose data has ended, and how; compared with snapshots, timers and what the user asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sim.checkers import ends
from sim.checkers.last_word import after_the_last_word
from sim.checkers.violation import Violation
from sim.metrics.journal import Happening
from sim.model.faults import StorageOutage
from sim.runtime.accounts.account import EndOfRun, RunAccount, WatchedRun
from sim.runtime.accounts.deletions import deletions
from sim.runtime.contents import TaskSnapshot

_SOON_NS = 100_000_000
"""A final checkpoint may have to wait for a call, and for the lock of another one; deletions under way are known."""


class EndAccount(RunAccount):
    """Knows whose data has ended, and how."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self._ended: dict[int, str] = {}  # task -> how
        self._closed: set[int] = set()  # tasks restored as finished

    def data_ended(self, task: int, ending: str) -> None:
        self._ended[task] = ending

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        for task in tasks:
            part = self.contents.of(checkpoint, task)
            self._ended.pop(task, None)
            self._closed.discard(task)
            if part is not None and part.finished:
                self._closed.add(task)

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        if self._ended.get(task) == "drain" and not part.finished:
            self.tell_first([ends.unknown_end(checkpoint, task, "its data has ended", self.now_ns, self.teller)])
        elif task in self._closed and not part.finished:
            self.tell_first([ends.unknown_end(checkpoint, task, "it was restored as finished", self.now_ns, self.teller)])

    def timer_fired(self, task: int, due_ns: int, records: int) -> None:
        if task in self._ended:
            self.tell_first([ends.late_timer(task, self.now_ns, due_ns, self.teller)])

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        context, teller, turns, deployed = self.context, self.teller, end.turns, self.watched.deployed
        requests = {action.stop or "" for action in context.scenario.actions if action.stop is not None}
        if len(requests) <= 1 and "savepoint-then-finish" not in requests:
            stopped = self._stopped() if end.finished else frozenset()
            yield from ends.otherwise_than_asked(turns, context.stats, next(iter(requests), ""), stopped, teller)
        yield from ends.counted_as_finished(turns, deployed, self._kept, teller)
        lost = any(isinstance(fault.what, StorageOutage) for fault in context.scenario.faults)
        if context.periodic and context.scenario.checkpoint.finish == "flink" and not requests and not lost:
            within_ns = context.scenario.overheads.acknowledge_ns + context.scenario.overheads.trigger_ns + _SOON_NS
            yield from ends.never_final(turns, len(context.names), within_ns, self.now_ns, deployed, teller, deletions(context))
        yield from after_the_last_word(turns, context.stats, teller)

    def _stopped(self) -> frozenset[int]:
        """Sources that have not come to the end of their records."""
        layout, vertices, served = self.context.layout, self.context.scenario.job.vertices, self.context.plane.served()
        totals = (vertices[vertex].total(subtask) for vertex, subtask in zip(layout.vertex, layout.subtask, strict=True))
        return frozenset(
            task for task, total in enumerate(totals) if not layout.task_gates[task] and (total is None or int(served[task]) < total)
        )

    def _kept(self, checkpoint: int) -> int:
        return sum(row.checkpoint == checkpoint for row in self.context.journal.only({Happening.PART_KEPT}))
