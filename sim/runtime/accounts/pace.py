"""The account of the coordinator's pace: which checkpoints began while a source read a backlog, and the options they are held to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.checkers.pace import Pace, out_of_step, too_often
from sim.checkers.violation import Violation
from sim.metrics.journal import Entry, Happening
from sim.runtime.accounts.account import EndOfRun, RunAccount, WatchedRun
from sim.runtime.contents import TaskSnapshot
from sim.runtime.context import Context


class PaceAccount(RunAccount):
    """Knows which checkpoints began while a source read a backlog."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        context, scenario = self.context, self.context.scenario
        options = scenario.checkpoint
        self.pace = Pace(
            options.max_concurrent, options.min_pause_ns, options.timeout_ns, options.tolerable_failed, scenario.overheads.trigger_ns,
            options.interval_during_backlog_ns,
        )  # fmt: skip
        self._begun_ns = self.now_ns
        self._history = dict(_histories(context)) if self.pace.backlog_ns is not None else {}  # source task -> records of its backlog
        self._behind: dict[int, int] = {}  # checkpoint -> when such a source was at its cut, behind still

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        if part.position.served < self._history.get(task, 0):
            self._behind[checkpoint] = self.now_ns

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        yield from out_of_step(self.context.stats, end.turns, self.pace, len(self.context.names), self.now_ns, self.teller)
        if self._behind:
            yield from self._in_backlog(end.turns)

    def _in_backlog(self, turns: Sequence[Entry]) -> Iterator[Violation]:
        """From one restart to the next: what a source has read it does not read again."""
        attempts: list[tuple[int, list[int]]] = [(self._begun_ns, [])]
        for row in turns:
            if row.happening is Happening.JOB_RESTORED:
                attempts.append((row.time_ns, []))
            elif row.happening is Happening.TRIGGERED and not self.context.stats[row.checkpoint].savepoint_format:
                attempts[-1][1].append(row.checkpoint)
        for number, (begun_ns, checkpoints) in enumerate(attempts):
            until_ns = max((self.context.stats[row].trigger_ns for row in checkpoints if row in self._behind), default=-1)
            triggered_ns = [self.context.stats[row].trigger_ns for row in checkpoints]
            found = too_often(begun_ns, triggered_ns, until_ns, self.pace, first=number == 0)
            if found is not None:
                yield found
                return


def _histories(context: Context) -> Iterator[tuple[int, int]]:
    """(source task, records that it reads as a backlog)"""
    vertices = context.scenario.job.vertices
    for task, (vertex, subtask) in enumerate(zip(context.layout.vertex, context.layout.subtask, strict=True)):
        source = vertices[vertex].source
        if source is not None and source.backlog is not None and source.backlog.records and subtask < vertices[vertex].emitting:
            total = vertices[vertex].total(subtask)
            yield task, source.backlog.records if total is None else min(source.backlog.records, total)
