"""Ways of checkpointing, sound and known to be wrong, and what may go wrong meanwhile: the rows and columns of the table of verdicts.

One small bounded job with a transactional sink; everybody meets the same workload and the same faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from sim.model.checkpoint import Barriers
from sim.model.faults import JobManagerDown, Kill, Restart, StorageOutage, TaskManagerLost
from sim.model.job import Distribution, Input, Job, Vertex
from sim.model.scenario import Action, Scenario
from sim.model.sinks import Commit, Flush
from tests.laws.small_jobs import MS, SECOND, chain, fault_at, scenario, with_options

Change = Callable[[Scenario], Scenario]


@dataclass(frozen=True, slots=True)
class Strategy:
    name: str
    sound: bool
    change: Change
    why: str = ""  # what is wrong with it


def options(**changes):
    return lambda base: with_options(base, **changes)


def barriers(kind, timeout_ms=0):
    return options(barriers=Barriers(kind, timeout_ms * MS))  # type: ignore[arg-type]


def commits(**changes):
    """Other terms for the sink's transactions."""

    def change(base):
        vertices = (
            v if v.commit is None else replace(v, commit=replace(v.commit, **changes)) for v in base.job.vertices
        )  # type: ignore[arg-type]
        return replace(base, job=Job(tuple(vertices)))

    return change


def one_committer(base):
    """A task of its own behind all writers commits."""
    job = commits(committer="global")(base).job
    inlet = Input("sink", "global", service=Distribution(10_000), record_bytes=Distribution(50))
    return replace(base, job=Job((*job.vertices, Vertex("committer", inputs=(inlet,), committer_of="sink"))))


def upload(policy):
    """The sink's files are uploaded behind the barrier (FLINK-37375); what an abort does to them."""
    return options(operator_io="async", abort_policy=policy)


def stop(how):
    """The job is stopped with a savepoint in mid-run, and its sources would have gone on."""
    return lambda base: replace(base, actions=(Action(1700 * MS, stop=how),))  # type: ignore[arg-type]


def both(*changes):
    def change(base):
        for change in changes:
            base = change(base)
        return base

    return change


STRATEGIES = (
    Strategy("aligned", sound=True, change=barriers("aligned")),
    Strategy("unaligned", sound=True, change=barriers("unaligned")),
    Strategy("aligned with a timeout of 60 ms", sound=True, change=barriers("aligned-timeout", 60)),
    Strategy("one committer for all writers", sound=True, change=one_committer),
    Strategy("upload behind the barrier, survives aborts", sound=True, change=upload("survive")),
    Strategy("upload behind the barrier, repeated after aborts", sound=True, change=upload("reupload")),
    Strategy("half of the notifications are lost", sound=True, change=options(lost_notifications=Fraction(1, 2))),
    Strategy("every task waits for its own last checkpoint", sound=True, change=options(finish="naive")),
    Strategy("stop with savepoint, drain", sound=True, change=stop("drain")),
    Strategy("stop with savepoint, no drain", sound=True, change=stop("no-drain")),
    Strategy(
        "at least once", sound=False, change=barriers("at-least-once"), why="what overtook a barrier is processed again"
    ),
    Strategy(
        "upload dropped on abort",
        sound=False,
        change=upload("drop"),
        why="the next checkpoint commits files that are gone",
    ),
    Strategy(
        "commit at finish",
        sound=False,
        change=options(finish="commit-at-finish"),
        why="a failure after it writes the tail again",
    ),
    Strategy("discard at finish", sound=False, change=options(finish="discard"), why="the tail is never committed"),
    Strategy(
        "no checkpoints after tasks finish",
        sound=False,
        change=options(finish="off"),
        why="the tail is never committed",
    ),
    Strategy(
        "transactions expire",
        sound=False,
        change=commits(transaction_timeout_ns=900 * MS),
        why="they do not outlive a restart",
    ),
)


def struck(*faults):
    return lambda base: replace(base, faults=faults)


FAULTS = {
    "nothing": lambda base: base,
    "a task fails": struck(fault_at(Kill("stage0", 0), 900, 1500)),
    "a sink fails": struck(fault_at(Kill("sink", 1), 777, 1490, 2140)),
    "a sink fails when the other has ended": struck(fault_at(Kill("sink", 1), 3142)),
    "a task manager is lost": struck(fault_at(TaskManagerLost(2), 1230)),
    "the JobManager is lost": struck(fault_at(JobManagerDown(150 * MS), 1100)),
    "storage stands still, checkpoints expire": both(
        struck(fault_at(StorageOutage(400 * MS), 640, 1810)), options(timeout_ns=250 * MS)
    ),
}


def quick_restarts(base):
    """Failures cost tens of milliseconds, so that a run of seconds sees several."""
    restart = Restart(
        "fixed-delay",
        delay_ns=30 * MS,
        heartbeat_timeout_ns=200 * MS,
        heartbeat_interval_ns=40 * MS,
        connection_reset_ns=20 * MS,
        replacement=Distribution(20 * MS),
    )
    return replace(
        base, restart=restart, overheads=replace(base.overheads, fail_ns=5 * MS, restart_ns=2 * MS, deploy_ns=5 * MS)
    )


def base():
    """300 records per source, about three seconds of work, checkpoints every 450 ms; the sink writes files and commits them."""
    vertices = chain(2, sink_ns=8 * MS, rate=150).vertices
    vertices = tuple(replace(v, source=replace(v.source, total=350)) if v.source is not None else v for v in vertices)
    sink = replace(vertices[-1], commit=Commit(time_ns=MS), flush=Flush(bytes=20_000, files=2))
    world = scenario(Job((*vertices[:-1], sink)), interval_ms=450)
    return quick_restarts(replace(world, name="verdict", run=replace(world.run, duration_ns=20 * SECOND)))
