"""The checks of one run.  The laws are in `sim.checkers`; this file gives them the records of the run.

A cut is judged in the moment its checkpoint completes, everything else at the end of the run.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from sim.checkers import ends as ends_of_data
from sim.checkers import pace, restarts
from sim.checkers.checkpoints import WATCHED, broken_promises, too_many_retained
from sim.checkers.commits import broken_commits, uncommitted
from sim.checkers.cut import Cut, Cuts
from sim.checkers.files import KeptSnapshot, broken_snapshots
from sim.checkers.garbage import garbage
from sim.checkers.job_manager import beyond_its_knowledge, without_job_manager
from sim.checkers.last_word import after_the_last_word
from sim.checkers.restores import ONCE, Surplus, broken_restores
from sim.checkers.state import Brought
from sim.checkers.story import Teller
from sim.checkers.violation import Violation
from sim.metrics.journal import Happening
from sim.model.faults import JobManagerDown
from sim.plane.seam.layout import Layout
from sim.protocol.coordinator.coordinator import Coordinator
from sim.runtime.committed_output import CommittedOutput
from sim.runtime.contents import Contents, StateSnapshot, TaskSnapshot
from sim.runtime.context import Context
from sim.runtime.ports import Checks, Ends
from sim.runtime.promises.accounts import Accounts
from sim.runtime.promises.end_account import EndAccount
from sim.runtime.promises.pace_account import PaceAccount
from sim.runtime.promises.restart_account import RestartAccount
from sim.state.files import Handle

_TURNS = pace.TURNS | restarts.TURNS | ends_of_data.TURNS
"""The rows of the journal that are rare."""
CONSERVED = "records, credits, buffers, segments and bytes are conserved"


class Checking(Checks):
    """The checks of one run: it collects the violations of what checkpoints promise."""

    def __init__(self, context: Context, contents: Contents, output: CommittedOutput, ends: Ends, *, keep_cuts: bool = False) -> None:
        self.context = context
        self.contents = contents
        self.output = output
        self.ends = ends
        self._exactly_once = context.scenario.checkpoint.barriers.record.exactly_once
        self.keep_cuts = keep_cuts  # of all completed checkpoints
        self.cuts = Cuts(context.layout.writer, context.layout.reader)
        self.teller = Teller(context.journal, context.names)
        self._inputs, self._outputs = _channels(context.layout)
        self.accounts = Accounts(context, contents, ends, self._inputs, self._outputs, self.teller)
        self.pace = PaceAccount(context)
        self.restarts = RestartAccount(context, ends, self.teller)
        self.data_ends = EndAccount(context, self.teller)
        self._found: list[Violation] = []
        self._surpluses: dict[int, Surplus] = {}  # by checkpoint
        self._announced_ns = array("q")  # when sources were told how far they may read

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """A task stands at its cut."""
        self.accounts.cut(checkpoint, task, part)
        self.pace.cut(checkpoint, task, part)
        self.data_ends.cut(checkpoint, task, part)

    def part_kept(self, checkpoint: int, task: int, before: int) -> None:
        """The task takes no part in a checkpoint: the part that it has in one before stands for it."""
        self.accounts.keep(checkpoint, task, before)

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """The state of a task is frozen."""
        self.accounts.state.state_taken(checkpoint, task, snapshot)
        self.accounts.kept.state_taken(checkpoint, task, snapshot)
        self.accounts.stored.state_taken(checkpoint, task, snapshot)
        self.accounts.windows.state_taken(checkpoint, task, snapshot)

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """The metadata of a checkpoint is durable: from now on it may be restored."""
        self._fill(self.cuts.of(checkpoint), checkpoint)
        found = self.cuts.judged(checkpoint, self.context.env.now, self.teller, exactly_once=self._exactly_once)
        if found is not None:
            self._found.append(found)
        if (worst := self.cuts.worst(checkpoint)) is not None:
            twice_bytes, lost_bytes, channel, account = worst
            self._surpluses[checkpoint] = Surplus(twice_bytes, lost_bytes, self.cuts.ends(channel), account)
        self.accounts.completed(checkpoint, retained)
        if not self.keep_cuts:
            self.cuts.forget(lambda number: number <= checkpoint)

    def limits_announced(self) -> None:
        """Sources that keep in step are told how far they may read."""
        self._announced_ns.append(self.context.env.now)

    def restarting(self, restart: int) -> None:
        """The tasks of a restart are cancelled."""
        self.restarts.restarting(restart)

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """These tasks have just been started."""
        restored = next(row for row in reversed(self.context.journal) if row.happening is Happening.JOB_RESTORED)
        tasks = list(tasks)
        self.restarts.restarted(restored, tasks)
        self.data_ends.restarted(tasks)
        self.accounts.restarted(checkpoint, tasks, known=checkpoint in self._surpluses)

    def restored(self, checkpoint: int, task: int, brought: Sequence[Brought], stands_after: int) -> None:
        """A task has got its state, which stands after so many records, and is about to run."""
        self.restarts.restored(checkpoint, task, brought)
        self.accounts.state.restored(checkpoint, task, brought, stands_after)
        self.accounts.kept.restored(checkpoint, task, brought)
        self.accounts.stored.restored(checkpoint, task, brought)
        self.accounts.windows.begun(task)

    def watermark_arrived(self, task: int, channel: int, number: int) -> None:
        """A task processes a watermark of a channel, or a status of it."""
        self.accounts.windows.watermark_arrived(task, channel, number)

    def watermark_sent(self, task: int, number: int) -> None:
        """A task sends a watermark, or a status."""
        self.accounts.windows.watermark_sent(task, number)

    def records_left(self, task: int, until: int) -> None:
        """A watermark lets records leave their windows."""
        self.accounts.windows.left(task, until)

    def window_ended(self, task: int) -> None:
        """A window of processing time ends."""
        self.accounts.windows.window_ended(task)

    def timer_fired(self, task: int, due_ns: int, records: int) -> None:
        """A timer of processing time lets records go."""
        self.accounts.windows.timer_fired(task, due_ns, records)
        self.data_ends.timer_fired(task, due_ns)

    def data_ended(self, task: int, ending: str) -> None:
        """The end of data leaves a task."""
        self.data_ends.data_ended(task, ending)

    def timers_quiet(self, task: int) -> None:
        """The data of a task ends."""
        self.accounts.windows.quiet(task)

    def materialising(self, task: int, number: int) -> None:
        """The backend below the changelog of a task is frozen."""
        self.accounts.kept.materialising(task, number)

    def materialised(self, task: int, number: int, handles: Sequence[Handle]) -> None:
        """The files of a materialisation are durable."""
        self.accounts.kept.materialised(task, number, handles)

    def _fill(self, cut: Cut, checkpoint: int) -> None:
        """From what the checkpoint holds: exactly what would be restored."""
        parts = self.contents.checkpoints.get(checkpoint, {})
        for task, part in parts.items():
            into, out = self._inputs[task], self._outputs[task]
            cut.consumed[into], cut.captured_input[into] = part.position.consumed, part.position.captured
            cut.written[out], cut.captured_output[out] = part.position.written, part.position.overtaken

    def violations(self, coordinator: Coordinator, kept: Iterable[KeptSnapshot], *, finished: bool) -> tuple[Violation, ...]:
        """At the end of the run, in the order of their times.  `kept`: what may be restored then; `finished`: so is the job."""
        context = self.context
        savepoints = {number for number, row in context.stats.items() if row.savepoint_format}
        found = [*self._found, *self.accounts.all_found()]
        turns = list(context.journal.only(_TURNS))
        found.extend(self.pace.found(turns, self.teller))
        found.extend(self.restarts.found(turns))
        found.extend(self.data_ends.at_the_end(turns, self.restarts.deployed, finished=finished))
        found.extend(broken_promises(context.journal.only(WATCHED), context.stats, self.teller))
        if any(isinstance(fault.what, JobManagerDown) for fault in context.scenario.faults):  # else there is one, and a journal is long
            found.extend(without_job_manager(context.journal, self._announced_ns, self.teller))
            tolerable = context.scenario.checkpoint.tolerable_failed
            found.extend(beyond_its_knowledge(context.journal, context.scenario.restart.most_restarts, tolerable, self.teller))
        begun_from = context.begun_from
        covered, counted_from = self.output.covered_before, self.output.counted_from
        found.extend(
            broken_commits(
                context.commits, context.stats, self.teller,
                begun_from=begun_from, covered=covered, counted_from=counted_from, checkpointing=context.periodic,
            )
        )  # fmt: skip
        surpluses = self._surpluses if self._exactly_once else {number: row for number, row in self._surpluses.items() if row.lost_bytes}
        found.extend(broken_restores(turns, surpluses, savepoints, self.teller, begun_from))
        if finished:
            found.extend(self.accounts.at_the_end())
            owed = self._owed()
            found.extend(uncommitted(context.commits, owed, context.env.now, self.teller, covered=covered, counted_from=counted_from))
        numbers = (number for number, row in context.stats.items() if row.status == "COMPLETED" and number not in savepoints)
        latest = max(numbers, default=begun_from)
        too_many = too_many_retained(coordinator.retained, coordinator.num_retained, latest, context.env.now, self.teller)
        found.extend(filter(None, [too_many]))
        found.extend(broken_snapshots(kept, context.env.now))
        found.extend(after_the_last_word(turns, context.stats, self.teller))
        if self.accounts.files.judged():
            files, done = self.accounts.files.there(), _completed(context)
            found.extend(garbage(files, done, coordinator.num_retained, context.env.now, self.teller))
        try:
            context.plane.check()
        except AssertionError as error:
            found.append(Violation(CONSERVED, context.env.now, "the data plane", str(error)))
        return tuple(sorted(found, key=lambda violation: violation.time_ns))

    def repetitions(self) -> tuple[Violation, ...]:
        """What restarts did twice and were allowed to: barriers that count promise to lose nothing, and no more (law 12)."""
        if self._exactly_once:
            return ()
        context = self.context
        savepoints = (number for number, row in context.stats.items() if row.savepoint_format)
        surpluses = {number: row for number, row in self._surpluses.items() if not row.lost_bytes}
        found = broken_restores(context.journal, surpluses, savepoints, self.teller, context.begun_from)
        return tuple(row for row in found if row.law == ONCE)

    def _owed(self) -> dict[int, list[int]]:
        """The records this job has to commit, by writer of a transactional sink and by input channel."""
        commits = {task: self.context.scenario.job.vertices[vertex].commit for task, vertex in enumerate(self.context.layout.vertex)}
        return {task: self._owed_by(task, commit.holds_back) for task, commit in commits.items() if commit is not None}

    def _owed_by(self, task: int, holds_back: int) -> list[int]:
        """All it read.  Stopped without a drain: what it had read at its cut of the savepoint, but for what it holds back.

        A job that goes on from the savepoint finds the rest in it: requests under way are made again, what waits for its commit is emitted
        again.  Their output came behind the cut here and belongs to that job.
        """
        end = self.ends.end(task)
        read: list[int] = self.context.plane.position(task).records_out.tolist()
        if end.drained:
            return read
        if end.stop is not None and (part := self.contents.of(end.stop, task)) is not None:
            read = part.position.records_out.tolist()
        return [max(0, records - holds_back) for records in read]


def _completed(context: Context) -> list[tuple[int, int]]:
    """(number, time) of the completed checkpoints, oldest first; savepoints are none."""
    return sorted(
        (number, row.completed_ns) for number, row in context.stats.items() if row.status == "COMPLETED" and not row.savepoint_format
    )


def _channels(layout: Layout) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(input channels, output channels) of each task, in the order of its position."""
    tasks = range(len(layout.vertex))
    inputs = [np.array([c for g in layout.task_gates[t] for c in layout.gates[g][2]], np.int32) for t in tasks]
    outputs = [np.array([c for p in layout.task_partitions[t] for c in layout.partitions[p][2]], np.int32) for t in tasks]
    return inputs, outputs
