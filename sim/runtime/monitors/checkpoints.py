"""Monitors of checkpoints and restarts: the timing of triggers, the JobManager's promises, and restarts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from sim.invariants import recovery
from sim.invariants.checkpoints import (
    WATCHED,
    TimingOptions,
    checkpoint_timing_errors,
    coordinator_errors,
    excess_triggers_in_backlog,
    restarts_counted_across_leaders,
    too_many_retained,
    without_job_manager,
)
from sim.invariants.recovery import Allowance, Deployed, LocalCopy, Waits
from sim.invariants.state import RestoredState
from sim.invariants.violation import Violation
from sim.model.faults import JobManagerDown, StorageOutage
from sim.model.randomness import quantile_table
from sim.results.journal import Entry, Happening
from sim.runtime.context import Context, TaskSnapshot
from sim.runtime.monitors.files import deletions
from sim.runtime.monitors.monitor import EndOfRun, InvariantMonitor, WatchedRun

# ---- The timing of checkpoints: intervals, pauses and timeouts, also while a source processes a backlog.


class TimingMonitor(InvariantMonitor):
    """Checks that checkpoints are triggered in time and not too often, also while a source processes a backlog."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        context, scenario = self.context, self.context.scenario
        options = scenario.checkpoint
        self.options = TimingOptions(
            options.max_concurrent,
            options.min_pause_ns,
            options.timeout_ns,
            options.tolerable_failed,
            scenario.overheads.trigger_ns,
            options.interval_during_backlog_ns,
        )
        self._begun_ns = self.now_ns
        # source task -> records of its backlog
        self._history = dict(_histories(context)) if self.options.backlog_ns is not None else {}
        # checkpoint -> time of the cut of a source that was still processing its backlog
        self._behind: dict[int, int] = {}

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Record whether a source is still processing its backlog at its cut."""
        if part.position.served < self._history.get(task, 0):
            self._behind[checkpoint] = self.now_ns

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        yield from checkpoint_timing_errors(
            self.context.stats, end.events, self.options, len(self.context.names), self.now_ns, self.formatter
        )
        if self._behind:
            yield from self._backlog_violations(end.events)

    def _backlog_violations(self, events: Sequence[Entry]) -> Iterator[Violation]:
        """Yield the first violation of the interval during backlog.  The checkpoints after each restart are checked separately."""
        attempts: list[tuple[int, list[int]]] = [(self._begun_ns, [])]
        for row in events:
            if row.happening is Happening.JOB_RESTORED:
                attempts.append((row.time_ns, []))
            elif row.happening is Happening.TRIGGERED and not self.context.stats[row.checkpoint].savepoint_format:
                attempts[-1][1].append(row.checkpoint)
        for number, (begun_ns, checkpoints) in enumerate(attempts):
            until_ns = max(
                (self.context.stats[row].trigger_ns for row in checkpoints if row in self._behind), default=-1
            )
            triggered_ns = [self.context.stats[row].trigger_ns for row in checkpoints]
            violation = excess_triggers_in_backlog(begun_ns, triggered_ns, until_ns, self.options, first=number == 0)
            if violation is not None:
                yield violation
                return


def _histories(context: Context) -> Iterator[tuple[int, int]]:
    """Yield (source task, records of its backlog)."""
    for task, subtask in enumerate(context.layout.subtask):
        vertex = context.vertex(task)
        backlog = None if vertex.source is None else vertex.source.backlog
        if backlog is not None and backlog.records and subtask < vertex.emitting:
            total = vertex.total(subtask)
            yield task, backlog.records if total is None else min(backlog.records, total)


# ---- The work of the JobManager: checkpoints that it numbers, completes and retains.


class JobManagerMonitor(InvariantMonitor):
    """Checks, from the journal, that checkpoints are numbered, completed and retained correctly, also without a JobManager."""

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        context, formatter, scenario = self.context, self.formatter, self.context.scenario
        yield from coordinator_errors(context.journal.only(WATCHED), context.stats, formatter)
        # without this fault a JobManager is always running, and reading the whole journal takes long
        if any(isinstance(fault.what, JobManagerDown) for fault in scenario.faults):
            yield from without_job_manager(context.journal, formatter)
            yield from restarts_counted_across_leaders(
                context.journal, scenario.restart.most_restarts, scenario.checkpoint.tolerable_failed, formatter
            )
        completed = (
            number for number, row in context.stats.items() if row.status == "COMPLETED" and not row.savepoint_format
        )
        latest = max(completed, default=context.begun_from)
        too_many = too_many_retained(
            end.coordinator.retained, end.coordinator.num_retained, latest, self.now_ns, formatter
        )
        if too_many is not None:
            yield too_many


# ---- Restarts: tasks that were deployed together, and the records that each had served when it was cancelled.

_MAX_INTERVALS_TO_RESUME = 4
"""Maximum checkpoint intervals until checkpoints resume after a restart.  The first triggers may be refused."""
_SLACK_NS = 100_000_000


class RestartMonitor(InvariantMonitor):
    """Checks restarts: which tasks restart and when, that cancelled tasks do nothing, and that checkpoints resume."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self.deployed = watched.deployed
        self._cancelled: dict[int, list[int]] = {}  # restart -> records served by each task as it began
        self._copies: list[LocalCopy] = []  # local copies of state that restores have read
        self._begun_ns = {self.context.instance: self.now_ns}  # job instance -> its start, latest first

    def continue_from(self, before: Self, checkpoint: int) -> None:
        self._begun_ns |= before._begun_ns

    def restarting(self, restart: int) -> None:
        """Record the records served by each task when a restart begins."""
        self._cancelled[restart] = self._served()

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Check that the tasks of a restart have processed nothing since they were cancelled."""
        restored = self.context.journal.last(Happening.JOB_RESTORED)
        deployed = Deployed(self.now_ns, restored.number, frozenset(tasks))
        self.deployed.append(deployed)
        served, before = self._served(), self._cancelled.pop(restored.number, None)
        moved = {task: served[task] - before[task] for task in deployed.tasks} if before is not None else {}
        at_work = [task for task in deployed.tasks if self.ends.at_work(task)]
        self._report_first(recovery.unstopped_tasks(deployed, at_work, moved, self.formatter))

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Check the use of local copies, and record which copy was read."""
        if self.context.scenario.checkpoint.state.local_recovery:
            self._check_local_copy(checkpoint, task, restored_parts)
        stats = self.context.stats.get(checkpoint)
        if stats is not None and any(piece.copied_from is not None for piece in restored_parts):
            self._copies.append(LocalCopy(self.now_ns, task, stats.trigger_ns))

    def _check_local_copy(self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState]) -> None:
        """Check that a restore does not download state if there is a copy on the disk of its TaskManager."""
        downloaded = [
            piece
            for piece in restored_parts
            if piece.kind == "keyed" and piece.copied_from is None and piece.share == 1
        ]
        host, files = self.context.hosts[task], self.context.storage.files
        for piece in downloaded if len(restored_parts) == len(downloaded) == 1 else ():
            stamp = piece.stamp
            name = None if stamp is None else ("local", stamp.vertex, stamp.subtask, stamp.checkpoint)
            copies = [
                row
                for row in files
                if row.name == name and row.host == host and row.complete and row.deleted_ns is None
            ]
            if stamp is not None and any(self._instance_at(row.created_ns) == stamp.instance for row in copies):
                self._report_first([recovery.unused_local_copy(self.now_ns, checkpoint, task, self.formatter)])

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        context, formatter, events, begun = self.context, self.formatter, end.events, self.context.origin is not None
        yield from recovery.restart_strategy_errors(events, self._strategy(), formatter, begun=begun)
        if (waits := self._waits()) is not None:
            yield from recovery.early_rescales(events, waits, formatter)
        if not self.deployed:
            return
        layout, options = context.layout, context.scenario.restart
        tasks = len(context.tasks)
        region_of = (
            [0] * tasks if options.restarts_all else recovery.pipelined_regions(tasks, layout.writer, layout.reader)
        )
        yield from recovery.partial_region_restarts(
            events, self.deployed, region_of, context.hosts, formatter, begun=begun
        )
        shortest_ns = int(min(quantile_table(options.replacement)))
        yield from recovery.early_deployments(events, self.deployed, context.hosts, shortest_ns, formatter)
        yield from recovery.checkpoints_before_running(events, self.deployed, formatter)
        yield from recovery.restores_from_lost_disks(self._copies, events, context.hosts, formatter)
        if (within_ns := self._resumes_within_ns()) is not None:
            yield from recovery.periodic_checkpoints_not_resumed(
                events, within_ns, self.now_ns, formatter, deletions(context)
            )

    def _report_first(self, violations: Iterable[Violation]) -> None:
        """Report the first violation; later ones are ignored."""
        if not self.found:
            self.found.extend(violations)

    def _instance_at(self, time_ns: int) -> int:
        """Return the job instance that ran at this time.

        Each instance continues the numbers of the checkpoint that it starts from, so checkpoints of two instances may have
        the same number.
        """
        return next((instance for instance, begun_ns in self._begun_ns.items() if begun_ns <= time_ns), 0)

    def _served(self) -> list[int]:
        """Return the records served by each task, from counters that restarts do not reset."""
        return [self.context.plane.counted(task).served for task in self.context.tasks]

    def _strategy(self) -> Allowance:
        """Return the limits of the restart strategy."""
        options = self.context.scenario.restart
        match options.strategy:
            case "none":
                return Allowance(0)
            case "fixed-delay":
                return Allowance(options.attempts, None, options.delay_ns)
            case "failure-rate":
                return Allowance(options.rate, options.rate_interval_ns, options.delay_ns)
            case _:
                # exponential-delay merges failures that occur before the restart; the limits of plug-ins are not known
                return Allowance()

    def _waits(self) -> Waits | None:
        """Return the times for invariant 118, or None if the user rescales the job or the scheduler is not adaptive."""
        scenario = self.context.scenario
        options, interval_ns = scenario.restart, scenario.checkpoint.interval_ns
        if options.scheduler != "adaptive" or scenario.rescale:
            return None
        stable_ns = 0 if options.reactive else options.stabilization_ns
        if scenario.cluster.profile != "2.x" or interval_ns is None:
            return Waits(stable_ns, options.cooldown_ns, deploy_ns=scenario.overheads.deploy_ns)
        checkpoint_ns = options.longest_rescale_delay_ns(interval_ns)
        return Waits(
            stable_ns, options.cooldown_ns, checkpoint_ns, scenario.overheads.deploy_ns, options.rescale_failures
        )

    def _resumes_within_ns(self) -> int | None:
        """Return the time for invariant 105 [ns].

        Return None if a storage outage, a stop, or a backlog without checkpoints may prevent checkpoints.
        """
        scenario = self.context.scenario
        options = scenario.checkpoint
        in_backlog_ns = (
            options.interval_ns if options.interval_during_backlog_ns is None else options.interval_during_backlog_ns
        )
        if not options.interval_ns or not in_backlog_ns or any(row.stop for row in scenario.actions):
            return None
        if any(isinstance(fault.what, StorageOutage) for fault in scenario.faults):
            return None
        period_ns = max(options.interval_ns, in_backlog_ns, options.min_pause_ns)
        return _MAX_INTERVALS_TO_RESUME * period_ns + scenario.overheads.first_trigger_ns + _SLACK_NS
