"""Recovery: restarts, restored checkpoints, rescaling."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sim.invariants.files import cleaned_up
from sim.invariants.violation import (
    BEGIN_AND_END,
    CUTS,
    JournalFormatter,
    Violation,
    count_is,
    lasting,
    number_of,
    time_text,
)
from sim.results.journal import Entry, Happening

# ---- What restarts: the regions that failed, as often and as late as the strategy says, on machines that are there.  Laws 100 to 106.
#
# The tasks of a restart are told by the runtime; who failed, when and why stands in the journal.

REGIONS = "a restart takes along the tasks that exchange data with one that has failed: all of them, and no others"
ATTEMPTS = "a job restarts as often as its strategy allows, and no sooner than its delay"
STOPPED_FIRST = "a task is deployed anew when the attempt before has stopped, and it does nothing once it is cancelled"
SLOT_THERE = "tasks are deployed on task managers that are there"
RUNNING = "no checkpoint begins while a task that it needs does not run"
RESUMES = "periodic checkpoints go on when all tasks run again"
COPY_THERE = "a local copy is read where it is there: on the machine that wrote it, which has not been lost since"

TURNS = frozenset(
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
"""The rows of the journal that these laws read."""
_CONCERNS_ALL = frozenset({Happening.JOB_MANAGER_LOST, Happening.RESCALED})


class Deployed(NamedTuple):
    """Tasks that were deployed together."""

    time_ns: int
    restart: int
    tasks: frozenset[int]


class Allowance(NamedTuple):
    """What the restart strategy allows; None: any number."""

    most: int | None = None  # restarts ...
    within_ns: int | None = None  # ... of those in so long a time; None: of all that a JobManager has seen
    delay_ns: int = 0


class LocalCopy(NamedTuple):
    """A local copy that was read."""

    time_ns: int
    task: int
    written_ns: int  # no sooner than


def pipelined_regions(tasks: int, writers: Sequence[int], readers: Sequence[int]) -> list[int]:
    """The least task with which each exchanges data, over any number of others."""
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
    turns: Iterable[Entry],
    deployed: Sequence[Deployed],
    region_of: Sequence[int],
    hosts: Sequence[int],
    teller: JournalFormatter,
    *,
    begun: bool,
) -> Iterator[Violation]:
    """`begun`: the job begins from a snapshot, with a restart of all."""
    members: dict[int, set[int]] = {}
    for task, region in enumerate(region_of):
        members.setdefault(region, set()).add(task)
    failed, coming = set(members) if begun else set(), iter(deployed)
    for row in turns:
        if row.happening is Happening.JOB_RESTORED:
            restored = next(coming)
            regions = {region_of[task] for task in restored.tasks}
            if spared := sorted(regions - failed):
                fact = f"it takes {teller.task(spared[0])} along, and no task failed that exchanges data with it"
                yield _violation(REGIONS, restored, fact, teller)
                return
            if left := sorted(set().union(*(members[region] for region in regions)) - restored.tasks):
                yield _violation(
                    REGIONS,
                    restored,
                    f"it leaves {teller.task(left[0])} alone, which exchanges data with a task of it",
                    teller,
                )
                return
        elif row.happening in _CONCERNS_ALL or (row.happening is Happening.JOB_FAILED and row.task < 0):
            failed |= set(members)
        elif row.happening in (Happening.TASK_FAILED, Happening.JOB_FAILED):
            failed.add(region_of[row.task])
        elif row.happening in (Happening.TASK_MANAGER_LOST, Happening.DEPLOYMENT_FAILED):
            failed |= {region_of[task] for task, host in enumerate(hosts) if host == row.number}


def beyond_the_strategy(
    turns: Iterable[Entry], strategy: Allowance, teller: JournalFormatter, *, begun: bool
) -> Iterator[Violation]:
    """A JobManager that takes over restarts all tasks on its own account, and has seen no failure."""
    own, counted_ns = begun, list[int]()
    begun_ns: dict[int, int] = {}
    for row in turns:
        if row.happening is Happening.JOB_MANAGER_ELECTED:
            own, counted_ns = True, []
        elif row.happening is Happening.JOB_RESTARTING:
            if own:
                own = False
                continue
            begun_ns[row.number] = row.time_ns
            counted_ns.append(row.time_ns)
            recent = [
                at_ns for at_ns in counted_ns if strategy.within_ns is None or row.time_ns - at_ns <= strategy.within_ns
            ]
            if strategy.most is not None and len(recent) > strategy.most:
                fact = f"it is the restart number {len(recent)}, the strategy allows {strategy.most}"
                yield _violation(ATTEMPTS, Deployed(row.time_ns, row.number, frozenset()), fact, teller)
                return
        elif row.happening is Happening.JOB_RESTORED and row.number in begun_ns:
            after_ns = row.time_ns - begun_ns[row.number]
            if after_ns < strategy.delay_ns:
                fact = f"its tasks are deployed {lasting(after_ns)} later, the delay is {lasting(strategy.delay_ns)}"
                yield _violation(ATTEMPTS, Deployed(row.time_ns, row.number, frozenset()), fact, teller)
                return


def still_there(
    restored: Deployed, at_work: Collection[int], moved: Mapping[int, int], teller: JournalFormatter
) -> Iterator[Violation]:
    """When tasks are deployed.  `at_work`: those whose former thread is; `moved`: records served by each since they were cancelled."""
    for task in sorted(at_work):
        yield _violation(
            STOPPED_FIRST,
            restored,
            f"{teller.task(task)} is deployed while the thread of its attempt before is at work",
            teller,
        )
        return
    for task, records in moved.items():
        if records:
            fact = f"{teller.task(task)} served {number_of(records, 'record')} after it was cancelled"
            yield _violation(STOPPED_FIRST, restored, fact, teller)
            return


def redeployed_too_early(
    turns: Iterable[Entry],
    deployed: Sequence[Deployed],
    hosts: Sequence[int],
    shortest_ns: int,
    teller: JournalFormatter,
) -> Iterator[Violation]:
    """`shortest_ns`: from the loss of a task manager until there is another, at the least."""
    lost_ns: dict[int, int] = {}
    coming = iter(deployed)
    for row in turns:
        if row.happening is Happening.TASK_MANAGER_LOST:
            lost_ns[row.number] = row.time_ns
        elif row.happening is Happening.JOB_RESTORED:
            restored = next(coming)
            for task in sorted(restored.tasks):
                there_ns = lost_ns.get(hosts[task], -(1 << 62)) + shortest_ns
                if restored.time_ns < there_ns:
                    fact = f"{teller.task(task)} is deployed on task manager {hosts[task]}, which can be there from {time_text(there_ns)} on"
                    yield _violation(SLOT_THERE, restored, fact, teller)
                    return


def checkpoints_before_running(
    turns: Iterable[Entry], deployed: Sequence[Deployed], teller: JournalFormatter
) -> Iterator[Violation]:
    """Checkpoints that begin while tasks initialize, or have failed."""
    down: set[int] = set()
    coming, latest = iter(deployed), Deployed(0, 0, frozenset())
    for row in turns:
        if row.happening is Happening.JOB_RESTORED:
            latest = next(coming)
            down |= latest.tasks
        elif row.happening is Happening.TASK_FAILED:
            down.add(row.task)
        elif row.happening is Happening.TASK_RUNS:
            down.discard(row.task)
        elif row.happening is Happening.TRIGGERED and down:
            fact = f"checkpoint {row.checkpoint} begins, and {teller.task(min(down))} does not run"
            yield _violation(RUNNING, latest._replace(time_ns=row.time_ns), fact, teller)
            return


def periodic_checkpoints_not_resumed(
    turns: Iterable[Entry],
    within_ns: int,
    now_ns: int,
    teller: JournalFormatter,
    deletions: Sequence[tuple[int, int]] = (),
) -> Iterator[Violation]:
    """`within_ns`: from the moment all tasks run to a checkpoint that begins or is refused.  Ends of tasks put none off.

    `deletions`: see `cleaned_up`; those under way then come first.
    """
    recovered: Entry | None = None
    for row in (*turns, Entry(now_ns, Happening.TRIGGERED)):
        if recovered is not None and row.time_ns - cleaned_up(recovered.time_ns, deletions) > within_ns:
            fact = f"all tasks run, and no checkpoint begins for {lasting(row.time_ns - recovered.time_ns)}"
            yield _violation(RESUMES, Deployed(recovered.time_ns, -1, frozenset()), fact, teller)
            return
        if row.happening is Happening.JOB_RECOVERED:
            recovered = row
        elif row.happening in TURNS and row.happening not in (Happening.TASK_RUNS, Happening.JOB_RESTORED):
            recovered = None


def restores_from_lost_disks(
    copies: Iterable[LocalCopy], turns: Iterable[Entry], hosts: Sequence[int], teller: JournalFormatter
) -> Iterator[Violation]:
    losses = [row for row in turns if row.happening is Happening.TASK_MANAGER_LOST]
    for copy in copies:
        for row in losses:
            if row.number == hosts[copy.task] and copy.written_ns <= row.time_ns <= copy.time_ns:
                fact = f"{teller.task(copy.task)} reads a local copy on task manager {row.number}, lost at {time_text(row.time_ns)} with its disk"
                yield _violation(COPY_THERE, Deployed(copy.time_ns, -1, frozenset()), fact, teller)
                return


def unused_local_copy(time_ns: int, checkpoint: int, task: int, teller: JournalFormatter) -> Violation:
    fact = (
        f"{teller.task(task)} reads the state of checkpoint {checkpoint} from storage, and its copy is on its own disk"
    )
    return _violation(COPY_THERE, Deployed(time_ns, -1, frozenset()), fact, teller)


def _violation(law: str, restored: Deployed, fact: str, teller: JournalFormatter) -> Violation:
    matters: Callable[[Entry], bool] = lambda row: (  # noqa: E731
        row.time_ns <= restored.time_ns
        and row.happening in TURNS
        and row.happening not in (Happening.TASK_RUNS, Happening.REFUSED)
    )
    where = f"restart {restored.restart}" if restored.restart > 0 else "the job"
    return Violation(law, restored.time_ns, where, fact, teller.story(matters)[-8:])


# ---- After a failure: a restart goes back to the latest completed checkpoint, and no record is processed twice or left out.
#
# Law 24 and the second half of 8 and 12: what a cut held twice or not at all becomes an effect when it is restored.

LATEST = "a restart goes back to the latest completed checkpoint"
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
    """The effect of restoring a completed checkpoint whose cut is not exact."""

    twice_bytes: int  # read again by tasks whose state has them already
    lost_bytes: int  # never read again by tasks whose state has them not
    channel: tuple[int, int]  # (writer, reader) of the worst one
    account: str


def broken_restores(
    journal: Sequence[Entry],
    surpluses: Mapping[int, Surplus],
    savepoints: Iterable[int],
    teller: JournalFormatter,
    begun_from: int = 0,
) -> Iterator[Violation]:
    """`surpluses`: by checkpoint; `savepoints` are no candidates; `begun_from`: the snapshot a job instance began from (0: none)."""
    aside, latest = frozenset(savepoints), begun_from
    for row in journal:
        if row.happening is Happening.COMPLETED and row.checkpoint not in aside:
            latest = max(latest, row.checkpoint)
        elif row.happening is Happening.JOB_RESTORED:
            if max(row.checkpoint, 0) != latest:
                fact = f"checkpoint {row.checkpoint} is restored, the latest completed one is {latest}"
                story = story_of_restore(row, {row.checkpoint, latest}, (), teller)
                yield Violation(LATEST, row.time_ns, f"restart {row.number}", fact, story)
            if (surplus := surpluses.get(row.checkpoint)) is not None:
                yield _repeated(row, surplus, teller)


def _repeated(row: Entry, surplus: Surplus, teller: JournalFormatter) -> Violation:
    facts = [f"{count_is(surplus.twice_bytes, 'byte')} processed twice"] * (surplus.twice_bytes > 0)
    facts += [f"{count_is(surplus.lost_bytes, 'byte')} never processed"] * (surplus.lost_bytes > 0)
    writer, reader = (teller.task(task) for task in surplus.channel)
    story = (
        *story_of_restore(row, {row.checkpoint}, surplus.channel, teller),
        f"{writer} -> {reader}: {surplus.account}",
    )
    return Violation(
        ONCE, row.time_ns, f"restart {row.number} from checkpoint {row.checkpoint}", " and ".join(facts), story
    )


def story_of_restore(
    restored: Entry, checkpoints: set[int], tasks: Sequence[int], teller: JournalFormatter
) -> tuple[str, ...]:
    """How the checkpoints came about, then the failure and the restart that follows it."""
    restores = (
        row.time_ns
        for row in teller.journal
        if row.happening is Happening.JOB_RESTORED and row.time_ns < restored.time_ns
    )
    before = max(restores, default=-1)

    def matters(row: Entry) -> bool:
        if row.happening in _FAILURES:
            return before < row.time_ns <= restored.time_ns
        if row.checkpoint not in checkpoints or row.time_ns > restored.time_ns:
            return False
        return row.happening in BEGIN_AND_END or (row.task in tasks and row.happening in CUTS)

    return teller.story(matters)


# ---- The adaptive scheduler: how long a job waits for slots, and when it is rescaled.  Law 118.
#
# Judged by what the journal says of failures, deployments, completed checkpoints and the end of a job instance.

STABLE_SLOTS = "an adaptive job goes on with other slots when these are stable; a running one after its cooldown, with a checkpoint"

ELASTICITY_TURNS = frozenset(
    {
        Happening.JOB_RESTARTING,
        Happening.JOB_RESTORED,
        Happening.COMPLETED,
        Happening.RESCALED,
        Happening.TASK_MANAGER_LOST,
    }
)
"""The rows of the journal that the law reads."""


class Waits(NamedTuple):
    """The times that a scheduler keeps."""

    stable_ns: int  # that a job waits without all of its slots
    cooldown_ns: int  # that a job runs before it is rescaled
    checkpoint_ns: int | None = None  # that it waits for a completed checkpoint then; None: it needs none
    deploy_ns: int = 0  # that its deployment takes: it counts as running from the beginning of that


def rescaled_too_soon(turns: Iterable[Entry], waits: Waits, teller: JournalFormatter) -> Iterator[Violation]:
    """`turns`: the rows of one job instance."""
    since, runs, completed_ns = 0, True, -1
    for row in turns:
        after_ns = row.time_ns - since
        if row.happening is Happening.COMPLETED:
            completed_ns = row.time_ns
        elif row.happening in (Happening.JOB_RESTARTING, Happening.JOB_RESTORED):
            runs = row.happening is Happening.JOB_RESTORED
            since = row.time_ns - (waits.deploy_ns if runs else 0)
        elif row.happening is Happening.RESCALED:
            fact = None
            if not runs and after_ns < waits.stable_ns:
                fact = f"it goes on without all slots after {lasting(after_ns)}, they are stable after {lasting(waits.stable_ns)}"
            elif runs and after_ns < waits.cooldown_ns:
                fact = f"it is rescaled after {lasting(after_ns)}, its cooldown takes {lasting(waits.cooldown_ns)}"
            elif runs and waits.checkpoint_ns is not None and completed_ns < row.time_ns:
                without_ns = waits.cooldown_ns + waits.checkpoint_ns
                if after_ns < without_ns:
                    fact = f"it is rescaled without a checkpoint after {lasting(after_ns)}, it waits {lasting(without_ns)} for one"
            if fact is not None:
                story = teller.story(
                    lambda entry: entry.time_ns <= row.time_ns and entry.happening in ELASTICITY_TURNS  # noqa: B023
                )[-8:]
                yield Violation(STABLE_SLOTS, row.time_ns, "the job", fact, story)
                return
