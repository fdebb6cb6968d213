"""Invariants of recovery: which regions restart, how often, after which delay, on which TaskManagers, and rescaling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from sim.model.faults import JobManagerDown, StorageOutage, TaskManagerLost
from sim.model.randomness import quantile_table
from sim.results.journal import Entry, EventType
from sim.results.violations import OF_JOB, milliseconds, number_of, time_text
from sim.runtime.context import RestoredState
from sim.runtime.invariants.files import deletions, end_of_deletions_ns
from sim.runtime.invariants.invariant import Invariant

# Invariants 100 to 106, and 118.  The hosts report the tasks of each restart.  The journal contains the failures.

REGIONS = "a restart includes all tasks of the failed regions, and no others"
ATTEMPTS = "a job restarts at most as often as its strategy allows, and not before its delay"
STOPPED_FIRST = (
    "a task is redeployed only after its previous attempt has stopped, and a cancelled task processes nothing"
)
SLOT_THERE = "tasks are deployed only on task managers that exist"
RUNNING = "no checkpoint begins while a required task is not running"
RESUMES = "periodic checkpoints resume when all tasks run again"
COPY_THERE = "local copies are used if and only if they exist: on the task manager that wrote them, unless it was lost"
DETECTED = "the loss of a task manager is detected by heartbeats or connections, neither sooner nor later"
PROMPT = "tasks are deployed when their delay is over and slots are there, and an adaptive job is rescaled when slots are back"
STABLE_SLOTS = "an adaptive job goes on with other slots when these are stable; a running one after its cooldown, with a checkpoint"

_MAX_INTERVALS_TO_RESUME = 4
"""Maximum checkpoint intervals until checkpoints resume after a restart.  The first triggers may be refused."""
_SLACK_NS = 100_000_000


class Restarts(Invariant):
    """Checks restarts: which tasks restart and when, that cancelled tasks do nothing, and that checkpoints resume.

    Only the first violation of each invariant is reported.
    """

    def start(self) -> None:
        self._cancelled: dict[int, list[int]] = {}  # restart -> records served by each task as it began
        # local copies of state that restores have read: (time of the read, task, earliest time of writing)
        self._copies: list[tuple[int, int, int]] = []
        self._begun_ns = {self.context.instance: self.now_ns}  # job instance -> its start, latest first
        self._stopped_ns: dict[int, int] = {}  # restart -> when all of its tasks have stopped
        self._losses_ns: list[int] = []  # losses of TaskManagers under earlier job instances
        self._largest_job = len(self.context.names)  # maximum number of tasks of all instances

    def continue_from(self, before: Self, checkpoint: int) -> None:
        self._begun_ns |= before._begun_ns
        lost = before.context.journal.only({EventType.TASK_MANAGER_LOST})
        self._losses_ns = [*before._losses_ns, *(row.time_ns for row in lost)]
        self._largest_job = max(self._largest_job, before._largest_job)

    def restarting(self, restart: int) -> None:
        """Record the records served by each task when a restart begins."""
        self._cancelled[restart] = self._served()

    def cancelled(self, restart: int) -> None:
        self._stopped_ns[restart] = self.now_ns

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Check that the previous attempts of restarted tasks have stopped, and processed nothing since they were cancelled."""
        restored = self.context.journal.last(EventType.JOB_RESTORED)
        self.run.deployed[restored.number] = frozenset(tasks)
        served, before = self._served(), self._cancelled.pop(restored.number, None)
        for task in tasks:
            name = self.formatter.task(task)
            if self.ends.at_work(task):
                self._report(
                    STOPPED_FIRST, f"{name} is deployed while the thread of its attempt before is at work", restored
                )
            elif before is not None and served[task] != before[task]:
                records = number_of(served[task] - before[task], "record")
                self._report(STOPPED_FIRST, f"{name} served {records} after it was cancelled", restored)

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Check the use of local copies, and record which copy was read."""
        if self.context.scenario.checkpoint.state.local_recovery:
            self._check_local_copy(checkpoint, task, restored_parts)
        stats = self.stats.get(checkpoint)
        if stats is not None and any(piece.copied_from is not None for piece in restored_parts):
            self._copies.append((self.now_ns, task, stats.trigger_ns))

    def _check_local_copy(self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState]) -> None:
        """Check that a restore does not download state if there is a copy on the disk of its TaskManager."""
        if len(restored_parts) != 1:
            return
        piece, stamp = restored_parts[0], restored_parts[0].stamp
        if stamp is None or piece.kind != "keyed" or piece.copied_from is not None or piece.share != 1:
            return
        name, host = ("local", stamp.vertex, stamp.subtask, stamp.checkpoint), self.context.hosts[task]
        for row in self.context.storage.files:
            if row.name == name and row.host == host and row.complete and row.deleted_ns is None:
                # each instance continues the numbers of its checkpoint, so checkpoints of two may have the same number
                begun = (number for number, begun_ns in self._begun_ns.items() if begun_ns <= row.created_ns)
                if next(begun, 0) == stamp.instance:
                    fact = f"{self.formatter.task(task)} reads the state of checkpoint {checkpoint} from storage, and its copy is on its own disk"
                    self._report(COPY_THERE, fact)

    def at_the_end(self) -> None:
        self._check_strategy()
        self._check_rescales()
        self._check_detection()
        if not any(isinstance(fault.what, JobManagerDown) for fault in self.context.scenario.faults):
            self._check_prompt()
        if self.run.deployed:
            self._check_regions()
            self._check_task_managers()
            self._check_running()
            self._check_lost_disks()
            if (within_ns := self._resumes_within_ns()) is not None:
                self._check_resumed(within_ns)

    def _check_regions(self) -> None:
        """Check that a restart deploys all tasks of the failed regions, and no others.

        The first deployment of a job that starts from a snapshot counts as a restart of all tasks.
        """
        context, name = self.context, self.formatter.task
        layout, tasks = context.layout, frozenset(context.tasks)
        regions = [0] * len(tasks)
        if not context.scenario.restart.restarts_all:
            regions = pipelined_regions(len(tasks), layout.writer, layout.reader)
        failed_ns = dict.fromkeys(tasks, -1) if context.origin is not None else {}  # task -> its latest failure
        begun_ns: dict[int, int] = {}  # restart -> when its tasks are cancelled
        for row in self.run.events:
            now_failed: Iterable[int] = ()
            match row.event_type:
                case EventType.JOB_RESTARTING:
                    begun_ns[row.number] = row.time_ns
                case EventType.JOB_RESTORED:
                    deployed = self.run.deployed[row.number]
                    affected = {regions[task] for task in failed_ns}
                    own = {regions[task] for task in deployed}
                    if along := [task for task in sorted(deployed) if regions[task] not in affected]:
                        fact = f"it takes {name(along[0])} along, and no task failed that exchanges data with it"
                        self._report(REGIONS, fact, row)
                    elif left := [task for task in sorted(tasks - deployed) if regions[task] in own]:
                        fact = f"it leaves {name(left[0])} alone, which exchanges data with a task of it"
                        self._report(REGIONS, fact, row)
                    for task in deployed:
                        if failed_ns.get(task, row.time_ns) <= begun_ns.get(row.number, -1):
                            del failed_ns[task]
                case EventType.TASK_FAILED | EventType.JOB_FAILED if row.task >= 0:
                    now_failed = [row.task]
                case EventType.JOB_MANAGER_LOST | EventType.RESCALED | EventType.JOB_FAILED:
                    now_failed = tasks
                case EventType.TASK_MANAGER_LOST | EventType.DEPLOYMENT_FAILED:
                    now_failed = [task for task, host in enumerate(context.hosts) if host == row.number]
            failed_ns |= dict.fromkeys(now_failed, row.time_ns)

    def _check_strategy(self) -> None:
        """Check the number of restarts and their delays.

        The restart by a newly elected JobManager does not count, and neither does the start from a snapshot.
        """
        options, is_uncounted = self.context.scenario.restart, self.context.origin is not None
        # exponential-delay merges failures that occur before the restart; the limits of plug-ins are not known
        if options.strategy not in ("none", "fixed-delay", "failure-rate"):
            return
        within_ns = options.rate_interval_ns if options.strategy == "failure-rate" else self.now_ns
        counted_ns, begun_ns = list[int](), dict[int, int]()
        for row in self.run.events:
            if row.event_type is EventType.JOB_MANAGER_ELECTED:
                is_uncounted, counted_ns = True, []
            elif row.event_type is EventType.JOB_RESTARTING and is_uncounted:
                is_uncounted = False
            elif row.event_type is EventType.JOB_RESTARTING:
                begun_ns[row.number] = row.time_ns
                counted_ns.append(row.time_ns)
                recent = sum(row.time_ns - at_ns <= within_ns for at_ns in counted_ns)
                if options.max_restarts is not None and recent > options.max_restarts:
                    fact = f"it is the restart number {recent}, the strategy allows {options.max_restarts}"
                    self._report(ATTEMPTS, fact, row)
            elif row.event_type is EventType.JOB_RESTORED and row.number in begun_ns:
                if (after_ns := row.time_ns - begun_ns[row.number]) < options.delay_ns:
                    delay = milliseconds(options.delay_ns)
                    fact = f"its tasks are deployed {milliseconds(after_ns)} later, the delay is {delay}"
                    self._report(ATTEMPTS, fact, row)

    def _check_detection(self) -> None:
        """Check when the JobManager detects the loss of a TaskManager while all tasks run."""
        scenario, hosts = self.context.scenario, self.context.hosts
        earliest_ns = latest_ns = 0
        lost: Entry | None = None
        finished, runs = set[int](), True
        for row in (*self.run.events, Entry(self.now_ns, EventType.JOB_RECOVERED)):
            if lost is not None and row.time_ns > lost.time_ns + latest_ns + scenario.overheads.fail_ns:
                fact = f"task manager {lost.number} is lost, and no restart begins for {milliseconds(row.time_ns - lost.time_ns)}"
                self._report(DETECTED, fact, lost)
                return
            match row.event_type:
                case EventType.TASK_MANAGER_LOST if runs and lost is None:
                    on_it = {task for task, host in enumerate(hosts) if host == row.number}
                    lost = row if on_it - finished else None
                    earliest_ns, latest_ns = self._detection_ns(row.time_ns)
                case EventType.JOB_RESTARTING if lost is not None and row.detail == f"task manager {lost.number} lost":
                    if (after_ns := row.time_ns - lost.time_ns) < earliest_ns:
                        self._report(DETECTED, f"its loss is detected after {milliseconds(after_ns)}", lost)
                case EventType.TASK_FINISHED:
                    finished.add(row.task)
                case EventType.JOB_RESTORED:
                    finished -= self.run.deployed[row.number]
            if row.event_type in OF_JOB and row.event_type is not EventType.TASK_MANAGER_LOST:
                lost, runs = None, row.event_type is EventType.JOB_RECOVERED

    def _detection_ns(self, lost_ns: int) -> tuple[int, int]:
        """Return the minimum and maximum time until a loss at `lost_ns` is detected.

        If several faults may have caused it, or none of known time, they are those of any kind.
        """
        options, faults = self.context.scenario.restart, self.context.scenario.faults
        timeout_ns = options.heartbeat_timeout_ns
        interval_ns = min(options.heartbeat_interval_ns, timeout_ns)
        struck = [fault.what for fault in faults if fault.when.every is None and lost_ns in fault.when.at_ns]
        if len(struck) != 1 or not isinstance(struck[0], TaskManagerLost):
            return 0, timeout_ns
        if struck[0].orderly:
            return 0, 0
        if struck[0].silent:
            return timeout_ns - interval_ns, timeout_ns
        return 0, min(timeout_ns, (options.heartbeat_failures or timeout_ns) * interval_ns)

    def _check_prompt(self) -> None:
        """Check that nothing waits for longer than it has to: restarts for slots, an adaptive job for a rescale."""
        scenario, losses_ns = self.context.scenario, list(self._losses_ns)
        options, interval_ns = scenario.restart, scenario.checkpoint.interval_ns
        is_adaptive, returned_ns = options.scheduler == "adaptive", 0  # when all slots are back
        absent_ns = options.heartbeat_timeout_ns + max(quantile_table(options.replacement))
        waits_ns = _SLACK_NS + scenario.overheads.restart_ns + scenario.overheads.deploy_ns + options.slot_check_ns
        rescale_ns = options.cooldown_ns + options.rescale_stabilization_ns + _SLACK_NS
        if scenario.cluster.profile == "2.x" and interval_ns is not None:
            rescale_ns += options.longest_rescale_delay_ns(interval_ns)
        due: tuple[int, str, Entry] | None = None
        for row in (*self.run.events, Entry(self.now_ns, EventType.JOB_RECOVERED)):
            if due is not None and row.time_ns > due[0]:
                self._report(PROMPT, f"{due[1]} for {milliseconds(row.time_ns - due[2].time_ns)}", due[2])
                return
            if row.event_type not in OF_JOB:
                continue
            if row.event_type is EventType.TASK_MANAGER_LOST:
                returned_ns = row.time_ns + absent_ns
            returned_ns = max([returned_ns, *(at_ns + absent_ns for at_ns in losses_ns)])
            due = None
            if row.event_type is EventType.JOB_RESTARTING and row.number in self._stopped_ns and not is_adaptive:
                if options.strategy in ("fixed-delay", "failure-rate"):
                    ready_ns = max(row.time_ns + options.delay_ns, self._stopped_ns[row.number])
                    due = max(ready_ns, returned_ns) + waits_ns, "no task is deployed", row
            elif row.event_type is EventType.JOB_RECOVERED and is_adaptive and not scenario.rescale:
                if len(self.context.names) < self._largest_job:
                    due = max(row.time_ns, returned_ns) + rescale_ns, "slots are back, and the job is not rescaled", row

    def _check_task_managers(self) -> None:
        """Check that no task is deployed on a lost TaskManager before it can have been replaced."""
        hosts, shortest_ns = self.context.hosts, int(min(quantile_table(self.context.scenario.restart.replacement)))
        replaced_ns: dict[int, int] = {}  # lost TaskManager -> earliest time of its replacement
        for row in self.run.events:
            if row.event_type is EventType.TASK_MANAGER_LOST:
                replaced_ns[row.number] = row.time_ns + shortest_ns
            elif row.event_type is EventType.JOB_RESTORED:
                for task in sorted(self.run.deployed[row.number]):
                    if row.time_ns < (at_ns := replaced_ns.get(hosts[task], 0)):
                        fact = f"{self.formatter.task(task)} is deployed on task manager {hosts[task]}, which can be there from {time_text(at_ns)} on"
                        self._report(SLOT_THERE, fact, row)

    def _check_running(self) -> None:
        """Check that no checkpoint is triggered while tasks initialize or have failed."""
        down: set[int] = set()
        latest = 0
        for row in self.run.events:
            if row.event_type is EventType.JOB_RESTORED:
                latest = row.number
                down |= self.run.deployed[latest]
            elif row.event_type is EventType.TASK_FAILED:
                down.add(row.task)
            elif row.event_type is EventType.TASK_RUNS:
                down.discard(row.task)
            elif row.event_type is EventType.TRIGGERED and down:
                fact = f"checkpoint {row.checkpoint} begins, and {self.formatter.task(min(down))} does not run"
                self._report(RUNNING, fact, row._replace(number=latest))

    def _check_lost_disks(self) -> None:
        """Check that no local copy is read that was written before its TaskManager was lost with its disk."""
        losses = [row for row in self.run.events if row.event_type is EventType.TASK_MANAGER_LOST]
        for read_ns, task, written_ns in self._copies:
            for row in losses:
                if row.number == self.context.hosts[task] and written_ns <= row.time_ns <= read_ns:
                    copy = f"a local copy on task manager {row.number}, lost at {time_text(row.time_ns)} with its disk"
                    fact = f"{self.formatter.task(task)} reads {copy}"
                    self._report(COPY_THERE, fact, Entry(read_ns, EventType.TASK_RESTORED))

    def _resumes_within_ns(self) -> int | None:
        """Return the maximum time until checkpoints resume [ns].

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
        period_ns = max(*scenario.intervals_ns, in_backlog_ns, options.min_pause_ns)
        return _MAX_INTERVALS_TO_RESUME * period_ns + scenario.overheads.first_trigger_ns + _SLACK_NS

    def _check_resumed(self, within_ns: int) -> None:
        """Check that a checkpoint is triggered or refused within `within_ns` after all tasks run again."""
        recovered: Entry | None = None
        deleted = deletions(self.context)
        for row in (*self.run.events, Entry(self.now_ns, EventType.TRIGGERED)):
            if recovered is not None and row.time_ns - end_of_deletions_ns(recovered.time_ns, deleted) > within_ns:
                fact = f"all tasks run, and no checkpoint begins for {milliseconds(row.time_ns - recovered.time_ns)}"
                self._report(RESUMES, fact, recovered)
                return
            if row.event_type is EventType.JOB_RECOVERED:
                recovered = row
            elif row.event_type in OF_JOB or row.event_type in (EventType.TRIGGERED, EventType.REFUSED):
                recovered = None

    def _check_rescales(self) -> None:
        """Check that an adaptive job is not rescaled too early, unless the user rescales it.

        A job waits for missing slots until those that it has are stable.  A running one, which includes its deployment,
        waits for its cooldown, and then for a checkpoint: a completed one, or too many that failed.
        """
        scenario = self.context.scenario
        options, interval_ns, deploy_ns = (
            scenario.restart,
            scenario.checkpoint.interval_ns,
            scenario.overheads.deploy_ns,
        )
        if options.scheduler != "adaptive" or scenario.rescale:
            return
        stable_ns = 0 if options.reactive else options.stabilization_ns
        cooldown_ns = without_ns = options.cooldown_ns
        if scenario.cluster.profile == "2.x" and interval_ns is not None:
            without_ns += options.longest_rescale_delay_ns(interval_ns)
        since, runs, completed_ns, failed = 0, True, -1, 0
        for row in self.run.events:
            after_ns = row.time_ns - since
            if row.event_type is EventType.COMPLETED:
                completed_ns, failed = row.time_ns, 0
            elif row.event_type is EventType.ABORTED:
                failed += 1
                completed_ns = row.time_ns if failed >= options.rescale_failures else completed_ns
            elif row.event_type in (EventType.JOB_RESTARTING, EventType.JOB_RESTORED):
                runs, failed = row.event_type is EventType.JOB_RESTORED, 0
                since = row.time_ns - (deploy_ns if runs else 0)
            elif row.event_type is EventType.RESCALED:
                after, fact = milliseconds(after_ns), None
                if not runs and after_ns < stable_ns:
                    fact = (
                        f"it goes on without all slots after {after}, they are stable after {milliseconds(stable_ns)}"
                    )
                elif runs and after_ns < cooldown_ns:
                    fact = f"it is rescaled after {after}, its cooldown takes {milliseconds(cooldown_ns)}"
                elif runs and completed_ns < row.time_ns and after_ns < without_ns:
                    fact = f"it is rescaled without a checkpoint after {after}, it waits {milliseconds(without_ns)} for one"
                if fact is not None:
                    self._report(STABLE_SLOTS, fact, row)

    def _report(self, invariant: str, fact: str, row: Entry | None = None) -> None:
        """Report the first violation of an invariant.  `row`: the restart, or what happened at this time; None for now."""
        where = f"restart {row.number}" if row is not None and row.number > 0 else "the job"
        time_ns = None if row is None else row.time_ns
        self.report(
            invariant,
            fact,
            where=where,
            time_ns=time_ns,
            once=True,
            checkpoints=[] if row is None else [row.checkpoint],
        )

    def _served(self) -> list[int]:
        """Return the records served by each task, from counters that restarts do not reset."""
        return [self.context.plane.counted(task).served for task in self.context.tasks]


def pipelined_regions(tasks: int, writers: Sequence[int], readers: Sequence[int]) -> list[int]:
    """Return, for each task, the smallest task of its pipelined region (a connected component of the graph).

    `writers`, `readers`: upstream and downstream task of each channel.
    """
    least, ends = np.arange(tasks), (np.asarray(writers, np.int64), np.asarray(readers, np.int64))
    while True:
        lower = least.copy()
        both = np.minimum(least[ends[0]], least[ends[1]])
        for end in ends:
            np.minimum.at(lower, end, both)
        if (lower == least).all():
            return least.tolist()
        least = lower
