"""The account of what only a JobManager does: checkpoints that it numbers, completes and retains, and what it tells sources."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from sim.checkers.checkpoints import WATCHED, broken_promises, too_many_retained
from sim.checkers.job_manager import beyond_its_knowledge, without_job_manager
from sim.checkers.violation import Violation
from sim.model.faults import JobManagerDown
from sim.runtime.accounts.account import EndOfRun, RunAccount, WatchedRun


class JobManagerAccount(RunAccount):
    """Knows when sources were told how far they may read; everything else stands in the journal."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self._announced_ns = array("q")

    def limits_announced(self, leader: int, group: str, drift_ns: int, limit_ns: int) -> None:
        self._announced_ns.append(self.now_ns)

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        context, teller, scenario = self.context, self.teller, self.context.scenario
        yield from broken_promises(context.journal.only(WATCHED), context.stats, teller)
        if any(isinstance(fault.what, JobManagerDown) for fault in scenario.faults):  # else there is one, and a journal is long
            yield from without_job_manager(context.journal, self._announced_ns, teller)
            yield from beyond_its_knowledge(context.journal, scenario.restart.most_restarts, scenario.checkpoint.tolerable_failed, teller)
        completed = (number for number, row in context.stats.items() if row.status == "COMPLETED" and not row.savepoint_format)
        latest = max(completed, default=context.begun_from)
        too_many = too_many_retained(end.coordinator.retained, end.coordinator.num_retained, latest, self.now_ns, teller)
        if too_many is not None:
            yield too_many
