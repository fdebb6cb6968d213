"""Invariants of recovery: restarts, restored checkpoints, and rescaling."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sim.invariants.files import end_of_deletions_ns
from sim.invariants.violation import (
    BEGIN_AND_END,
    CUTS,
    JournalFormatter,
    Violation,
    count_is,
    milliseconds,
    number_of,
    time_text,
)
from sim.results.journal import Entry, Happening

# ---- Restarts: which regions, how often, after which delay, and on which TaskManagers (laws 100 to 106).
#
# The runtime reports the tasks of each restart. The journal contains the failures. The first violation is reported.

REGIONS = "a restart includes all tasks of the failed regions, and no others"
ATTEMPTS = "a job restarts at most as often as its strategy allows, and not before its delay"
STOPPED_FIRST = (
    "a task is redeployed only after its previous attempt has stopped, and a cancelled task processes nothing"
)
SLOT_THERE = "tasks are deployed only on task managers that exist"
RUNNING = "no checkpoint begins while a required task is not running"
RESUMES = "periodic checkpoints resume when all tasks run again"
COPY_THERE = "local copies are used if and only if they exist: on the task manager that wrote them, unless it was lost"

EVENT_KINDS = frozenset(
    {
        Happening.TRIGGERED,
        Happening.REFUSED,
        Happening.TASK_FAILED,
        Happening.TASK_MANAGER_LOST,
        Happening.JOB_MANAGER_LOST,
        Happening.JOB_MANAGER_ELECTED,
        Happening.DEPLOYMENT_FAILED,
        Happening.JOB_FAILED,
        Happening.RESCALED,
        Happening.JOB_RESTARTING,
        Happening.JOB_RESTORED,
        Happening.TASK_RUNS,
        Happening.JOB_RECOVERED,
        Happening.JOB_FINISHED,
        Happening.GIVEN_UP,
    }
)
"""Kinds of journal rows that these invariants read."""
_CONCERNS_ALL = frozenset({Happening.JOB_MANAGER_LOST, Happening.RESCALED})


class Deployed(NamedTuple):
    """The tasks that a restart deploys."""

    time_ns: int
    restart: int  # its number; -1 or 0 if the evidence is not about a restart
    tasks: frozenset[int]


class Allowance(NamedTuple):
    """The limits of the restart strategy."""

    most: int | None = None  # maximum number of restarts; None if unlimited
    within_ns: int | None = None  # interval in which `most` applies; None means since the election of the JobManager
    delay_ns: int = 0  # minimum delay of a restart


class LocalCopy(NamedTuple):
    """The read of a local copy of state by a restored task."""

    time_ns: int  # time of the read
    task: int
    written_ns: int  # earliest time at which the copy can have been written


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


def partial_region_restarts(
    events: Iterable[Entry],
    deployed: Sequence[Deployed],
    region_of: Sequence[int],
    hosts: Sequence[int],
    formatter: JournalFormatter,
    *,
    begun: bool,
) -> Iterator[Violation]:
    """Check that a restart deploys all tasks of the failed regions, and no others.

    `region_of`: see `pipelined_regions`.  `hosts`: TaskManager of each task.  `begun`: the job starts from a snapshot, so
    that its first deployment counts as a restart of all tasks.
    """
    members: dict[int, set[int]] = {}
    for task, region in enumerate(region_of):
        members.setdefault(region, set()).add(task)
    failed, coming = set(members) if begun else set(), iter(deployed)
    for row in events:
        if row.happening is Happening.JOB_RESTORED:
            restored = next(coming)
            regions = {region_of[task] for task in restored.tasks}
            if spared := sorted(regions - failed):
                fact = f"it takes {formatter.task(spared[0])} along, and no task failed that exchanges data with it"
                yield _violation(REGIONS, restored, fact, formatter)
                return
            if left := sorted(set().union(*(members[region] for region in regions)) - restored.tasks):
                yield _violation(
                    REGIONS,
                    restored,
                    f"it leaves {formatter.task(left[0])} alone, which exchanges data with a task of it",
                    formatter,
                )
                return
        elif row.happening in _CONCERNS_ALL or (row.happening is Happening.JOB_FAILED and row.task < 0):
            failed |= set(members)
        elif row.happening in (Happening.TASK_FAILED, Happening.JOB_FAILED):
            failed.add(region_of[row.task])
        elif row.happening in (Happening.TASK_MANAGER_LOST, Happening.DEPLOYMENT_FAILED):
            failed |= {region_of[task] for task, host in enumerate(hosts) if host == row.number}


def restart_strategy_errors(
    events: Iterable[Entry], strategy: Allowance, formatter: JournalFormatter, *, begun: bool
) -> Iterator[Violation]:
    """Check the number of restarts and their delays.

    The restart by a newly elected JobManager does not count, and neither does the start from a snapshot (`begun`).
    """
    is_uncounted, counted_ns = begun, list[int]()
    begun_ns: dict[int, int] = {}
    for row in events:
        if row.happening is Happening.JOB_MANAGER_ELECTED:
            is_uncounted, counted_ns = True, []
        elif row.happening is Happening.JOB_RESTARTING:
            if is_uncounted:
                is_uncounted = False
                continue
            begun_ns[row.number] = row.time_ns
            counted_ns.append(row.time_ns)
            recent = [
                at_ns for at_ns in counted_ns if strategy.within_ns is None or row.time_ns - at_ns <= strategy.within_ns
            ]
            if strategy.most is not None and len(recent) > strategy.most:
                fact = f"it is the restart number {len(recent)}, the strategy allows {strategy.most}"
                yield _violation(ATTEMPTS, Deployed(row.time_ns, row.number, frozenset()), fact, formatter)
                return
        elif row.happening is Happening.JOB_RESTORED and row.number in begun_ns:
            after_ns = row.time_ns - begun_ns[row.number]
            if after_ns < strategy.delay_ns:
                fact = f"its tasks are deployed {milliseconds(after_ns)} later, the delay is {milliseconds(strategy.delay_ns)}"
                yield _violation(ATTEMPTS, Deployed(row.time_ns, row.number, frozenset()), fact, formatter)
                return


def unstopped_tasks(
    restored: Deployed, at_work: Collection[int], moved: Mapping[int, int], formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check that the previous attempts of deployed tasks have stopped.

    `at_work`: deployed tasks whose previous thread is still running.  `moved`: task -> number of records that it processed
    after it was cancelled.
    """
    for task in sorted(at_work):
        yield _violation(
            STOPPED_FIRST,
            restored,
            f"{formatter.task(task)} is deployed while the thread of its attempt before is at work",
            formatter,
        )
        return
    for task, records in moved.items():
        if records:
            fact = f"{formatter.task(task)} served {number_of(records, 'record')} after it was cancelled"
            yield _violation(STOPPED_FIRST, restored, fact, formatter)
            return


def early_deployments(
    events: Iterable[Entry],
    deployed: Sequence[Deployed],
    hosts: Sequence[int],
    shortest_ns: int,
    formatter: JournalFormatter,
) -> Iterator[Violation]:
    """Check that no task is deployed on a lost TaskManager.

    `hosts`: TaskManager of each task.  `shortest_ns`: minimum time until a lost TaskManager is replaced.
    """
    lost_ns: dict[int, int] = {}
    coming = iter(deployed)
    for row in events:
        if row.happening is Happening.TASK_MANAGER_LOST:
            lost_ns[row.number] = row.time_ns
        elif row.happening is Happening.JOB_RESTORED:
            restored = next(coming)
            for task in sorted(restored.tasks):
                there_ns = lost_ns.get(hosts[task], -(1 << 62)) + shortest_ns
                if restored.time_ns < there_ns:
                    fact = f"{formatter.task(task)} is deployed on task manager {hosts[task]}, which can be there from {time_text(there_ns)} on"
                    yield _violation(SLOT_THERE, restored, fact, formatter)
                    return


def checkpoints_before_running(
    events: Iterable[Entry], deployed: Sequence[Deployed], formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check that no checkpoint is triggered while tasks initialize or have failed."""
    down: set[int] = set()
    coming, latest = iter(deployed), Deployed(0, 0, frozenset())
    for row in events:
        if row.happening is Happening.JOB_RESTORED:
            latest = next(coming)
            down |= latest.tasks
        elif row.happening is Happening.TASK_FAILED:
            down.add(row.task)
        elif row.happening is Happening.TASK_RUNS:
            down.discard(row.task)
        elif row.happening is Happening.TRIGGERED and down:
            fact = f"checkpoint {row.checkpoint} begins, and {formatter.task(min(down))} does not run"
            yield _violation(RUNNING, latest._replace(time_ns=row.time_ns), fact, formatter)
            return


def periodic_checkpoints_not_resumed(
    events: Iterable[Entry],
    within_ns: int,
    now_ns: int,
    formatter: JournalFormatter,
    deletions: Sequence[tuple[int, int]] = (),
) -> Iterator[Violation]:
    """Check that a checkpoint is triggered or refused within `within_ns` after all tasks run again.

    `now_ns`: end of the run.  `deletions`: deletions of files, which delay the trigger (see `cleaned_up`).
    """
    recovered: Entry | None = None
    for row in (*events, Entry(now_ns, Happening.TRIGGERED)):
        if recovered is not None and row.time_ns - end_of_deletions_ns(recovered.time_ns, deletions) > within_ns:
            fact = f"all tasks run, and no checkpoint begins for {milliseconds(row.time_ns - recovered.time_ns)}"
            yield _violation(RESUMES, Deployed(recovered.time_ns, -1, frozenset()), fact, formatter)
            return
        if row.happening is Happening.JOB_RECOVERED:
            recovered = row
        elif row.happening in EVENT_KINDS and row.happening not in (Happening.TASK_RUNS, Happening.JOB_RESTORED):
            recovered = None


def restores_from_lost_disks(
    copies: Iterable[LocalCopy], events: Iterable[Entry], hosts: Sequence[int], formatter: JournalFormatter
) -> Iterator[Violation]:
    """Check that no local copy is read that was written before its TaskManager was lost with its disk."""
    losses = [row for row in events if row.happening is Happening.TASK_MANAGER_LOST]
    for copy in copies:
        for row in losses:
            if row.number == hosts[copy.task] and copy.written_ns <= row.time_ns <= copy.time_ns:
                fact = f"{formatter.task(copy.task)} reads a local copy on task manager {row.number}, lost at {time_text(row.time_ns)} with its disk"
                yield _violation(COPY_THERE, Deployed(copy.time_ns, -1, frozenset()), fact, formatter)
                return


def unused_local_copy(time_ns: int, checkpoint: int, task: int, formatter: JournalFormatter) -> Violation:
    """Return the violation of a restore that reads from storage although there is a local copy."""
    fact = f"{formatter.task(task)} reads the state of checkpoint {checkpoint} from storage, and its copy is on its own disk"
    return _violation(COPY_THERE, Deployed(time_ns, -1, frozenset()), fact, formatter)


def _violation(law: str, restored: Deployed, fact: str, formatter: JournalFormatter) -> Violation:
    """Return a violation with the last failures, restarts and checkpoints as its evidence."""
    matters: Callable[[Entry], bool] = lambda row: (  # noqa: E731
        row.time_ns <= restored.time_ns
        and row.happening in EVENT_KINDS
        and row.happening not in (Happening.TASK_RUNS, Happening.REFUSED)
    )
    where = f"restart {restored.restart}" if restored.restart > 0 else "the job"
    return Violation(law, restored.time_ns, where, fact, formatter.story(matters)[-8:])


# ---- A restart uses the latest completed checkpoint, and no record is processed twice or skipped.
#
# Law 24, and the second half of laws 8 and 12: an inconsistent cut does harm only when its checkpoint is restored.

LATEST = "a restart restores the latest completed checkpoint"
ONCE = "every record takes effect on state once, whatever fails"

_FAILURES = frozenset(
    {
        Happening.TASK_FAILED,
        Happening.TASK_MANAGER_LOST,
        Happening.JOB_MANAGER_LOST,
        Happening.JOB_RESTARTING,
        Happening.JOB_RESTORED,
    }
)


class Surplus(NamedTuple):
    """The effect of restoring a completed checkpoint whose cut is inconsistent."""

    twice_bytes: int  # bytes that are read again although restored state contains them
    lost_bytes: int  # bytes that are not read again although restored state does not contain them
    channel: tuple[int, int]  # (writer, reader) of the channel with the largest error
    account: str  # byte counts of that channel, for the evidence
    twice_records: int = 0  # records of mean size that twice_bytes contain; 0: unknown


def restore_errors(
    journal: Sequence[Entry],
    surpluses: Mapping[int, Surplus],
    savepoints: Iterable[int],
    formatter: JournalFormatter,
    begun_from: int = 0,
) -> Iterator[Violation]:
    """Check that each restart restores the latest completed checkpoint, and that its cut is consistent.

    `surpluses`: checkpoint -> errors of its cut.  `savepoints`: ids of savepoints, which a restart does not use.
    `begun_from`: id of the snapshot that the job started from, or 0.
    """
    aside, latest = frozenset(savepoints), begun_from
    for row in journal:
        if row.happening is Happening.COMPLETED and row.checkpoint not in aside:
            latest = max(latest, row.checkpoint)
        elif row.happening is Happening.JOB_RESTORED:
            if max(row.checkpoint, 0) != latest:
                fact = f"checkpoint {row.checkpoint} is restored, the latest completed one is {latest}"
                story = story_of_restore(row, {row.checkpoint, latest}, (), formatter)
                yield Violation(LATEST, row.time_ns, f"restart {row.number}", fact, story)
            if (surplus := surpluses.get(row.checkpoint)) is not None:
                yield _repeated(row, surplus, formatter)


def _repeated(row: Entry, surplus: Surplus, formatter: JournalFormatter) -> Violation:
    """Return the violation of a restore of an inconsistent cut."""
    twice = count_is(surplus.twice_bytes, "byte")
    if surplus.twice_records:
        verb = "is" if surplus.twice_records == 1 else "are"
        twice = f"{number_of(surplus.twice_records, 'record')} ({number_of(surplus.twice_bytes, 'byte')}) {verb}"
    facts = [f"{twice} processed twice"] * (surplus.twice_bytes > 0)
    facts += [f"{count_is(surplus.lost_bytes, 'byte')} never processed"] * (surplus.lost_bytes > 0)
    writer, reader = (formatter.task(task) for task in surplus.channel)
    story = (
        *story_of_restore(row, {row.checkpoint}, surplus.channel, formatter),
        f"{writer} -> {reader}: {surplus.account}",
    )
    return Violation(
        ONCE, row.time_ns, f"restart {row.number} from checkpoint {row.checkpoint}", " and ".join(facts), story
    )


def story_of_restore(
    restored: Entry, checkpoints: set[int], tasks: Sequence[int], formatter: JournalFormatter
) -> tuple[str, ...]:
    """Return the evidence on a restart: rows of the checkpoints, and the failures since the restart before it."""
    restores = (
        row.time_ns
        for row in formatter.journal
        if row.happening is Happening.JOB_RESTORED and row.time_ns < restored.time_ns
    )
    before = max(restores, default=-1)

    def matters(row: Entry) -> bool:
        if row.happening in _FAILURES:
            return before < row.time_ns <= restored.time_ns
        if row.checkpoint not in checkpoints or row.time_ns > restored.time_ns:
            return False
        return row.happening in BEGIN_AND_END or (row.task in tasks and row.happening in CUTS)

    return formatter.story(matters)


# ---- The adaptive scheduler: how long a job waits for slots, and when it is rescaled (law 118).

STABLE_SLOTS = "an adaptive job goes on with other slots when these are stable; a running one after its cooldown, with a checkpoint"

ELASTICITY_EVENT_KINDS = frozenset(
    {
        Happening.JOB_RESTARTING,
        Happening.JOB_RESTORED,
        Happening.COMPLETED,
        Happening.ABORTED,
        Happening.RESCALED,
        Happening.TASK_MANAGER_LOST,
    }
)
"""Kinds of journal rows that this invariant reads."""


class Waits(NamedTuple):
    """The minimum waiting times of the adaptive scheduler."""

    stable_ns: int  # time for which a job waits for missing slots
    cooldown_ns: int  # time for which a job runs before it is rescaled
    checkpoint_ns: int | None = (
        None  # time for which it then waits for a completed checkpoint; None if it does not wait
    )
    deploy_ns: int = 0  # duration of its deployment, which counts as running
    failures: int = 2  # failed checkpoints that count as a completed one


def early_rescales(events: Iterable[Entry], waits: Waits, formatter: JournalFormatter) -> Iterator[Violation]:
    """Check that a job instance is not rescaled too early.  Report the first violation.  `events`: its journal rows."""
    since, runs, completed_ns, failed = 0, True, -1, 0
    for row in events:
        after_ns = row.time_ns - since
        if row.happening is Happening.COMPLETED:
            completed_ns, failed = row.time_ns, 0
        elif row.happening is Happening.ABORTED:
            failed += 1
            completed_ns = row.time_ns if failed >= waits.failures else completed_ns
        elif row.happening in (Happening.JOB_RESTARTING, Happening.JOB_RESTORED):
            runs, failed = row.happening is Happening.JOB_RESTORED, 0
            since = row.time_ns - (waits.deploy_ns if runs else 0)
        elif row.happening is Happening.RESCALED:
            fact = None
            if not runs and after_ns < waits.stable_ns:
                fact = f"it goes on without all slots after {milliseconds(after_ns)}, they are stable after {milliseconds(waits.stable_ns)}"
            elif runs and after_ns < waits.cooldown_ns:
                fact = f"it is rescaled after {milliseconds(after_ns)}, its cooldown takes {milliseconds(waits.cooldown_ns)}"
            elif runs and waits.checkpoint_ns is not None and completed_ns < row.time_ns:
                without_ns = waits.cooldown_ns + waits.checkpoint_ns
                if after_ns < without_ns:
                    fact = f"it is rescaled without a checkpoint after {milliseconds(after_ns)}, it waits {milliseconds(without_ns)} for one"
            if fact is not None:
                story = formatter.story(
                    lambda entry: entry.time_ns <= row.time_ns and entry.happening in ELASTICITY_EVENT_KINDS  # noqa: B023
                )[-8:]
                yield Violation(STABLE_SLOTS, row.time_ns, "the job", fact, story)
                return
