"""Causes of slow checkpoints to plant in a real job, and the words that name each: written down before any of them was run.

Other jobs, loads, sizes and speeds than those of `tests/data/planted`, on which `ckptsim explain` was mended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Thread
from time import sleep, time
from typing import TYPE_CHECKING

from benchmarks.flink.job import PacedJob

if TYPE_CHECKING:
    from benchmarks.flink.standalone import Standalone

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Facts:
    """What was planted: the moments between which it was [epoch ms], and names that patterns may use."""

    begun_ms: float
    ended_ms: float
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """What `ckptsim explain` is asked, and what names the cause in its answer."""

    about: str  # history, first, during (the slowest or failed one meanwhile), after (the one that follows)
    pattern: str  # of the answer on one line; {names} of the facts


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause: how it is planted, and what names it.  All questions answered: named; one of several: half."""

    name: str
    planted: str
    plant: Callable[[Standalone, str], Facts]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A cluster and a job, in which causes are planted one after the other."""

    job: PacedJob
    causes: tuple[Cause, ...]
    options: dict[str, str]
    task_managers: int = 2
    slots: int = 1
    heap: str = "384m"
    settled: int = 12
    """Checkpoints that end before the first cause is planted."""


def _where(flink: Standalone, job: str, vertex: str, index: int = 0) -> int:
    """The TaskManager of a subtask."""
    return int(
        next(place for (name, at), place in flink.places(job).items() if vertex in name and at == index).rpartition(
            "-"
        )[2]
    )


def _since_start(_flink: Standalone, _job: str) -> Facts:
    return Facts(0, 0)


def _for(
    seconds: float, fault: Callable[[Standalone, int, float], None], vertex: str, index: int
) -> Callable[[Standalone, str], Facts]:
    """Plant a fault at the TaskManager of a subtask for so long."""

    def plant(flink: Standalone, job: str) -> Facts:
        at = _where(flink, job, vertex, index)
        begun_ms = 1e3 * time()
        fault(flink, at, seconds)
        return Facts(begun_ms, 1e3 * time(), {"tm": f"tm-{at}", "other": f"tm-{1 - at}"})

    return plant


def _with(**faults: object) -> Callable[[Standalone, int, float], None]:
    def fault(flink: Standalone, at: int, seconds: float) -> None:
        flink.plant(at, **faults)
        sleep(seconds)
        flink.plant(at)

    return fault


def _pause(flink: Standalone, at: int, seconds: float) -> None:
    flink.pause(at, seconds)


def _kill(flink: Standalone, at: int, seconds: float) -> None:
    flink.kill(at)
    sleep(seconds)


def _storms(flink: Standalone, at: int, seconds: float) -> None:
    """Three of them, with time to recover in between."""
    for _ in range(3):
        flink.plant(at, hoard=0.85)
        sleep(seconds)
        flink.plant(at)
        sleep(2 * seconds)


def _savepoint(flink: Standalone, job: str) -> Facts:
    for at in range(len(flink.task_managers)):
        flink.plant(at, savepoints=2 * MB)
    begun_ms = 1e3 * time()
    order = Thread(target=flink.savepoint, args=(job,))
    order.start()
    order.join()
    ended_ms = 1e3 * time()
    for at in range(len(flink.task_managers)):
        flink.plant(at)
    sleep(8)  # the checkpoint that waited ends
    return Facts(begun_ms, ended_ms)


_COLD = Cause(
    "cold",
    "the first 7 s of the job, whose source has no limit so long",
    _since_start,
    (
        Question("history", "they are earlier in the history"),
        Question("first", "It is the job's first: code is not compiled yet"),
    ),
)
_SAVEPOINT = Cause(
    "savepoint",
    "a canonical savepoint to a folder with 2 MB/s per file; checkpoints have 40",
    _savepoint,
    (
        Question("during", "a savepoint has a folder and a format of its own"),
        Question("after", r"Savepoint \d+ had taken [\d.]+ s until .* before it was triggered"),
    ),
)
_PAUSED = Cause(
    "paused",
    "SIGSTOP for 5 s to the TaskManager of join[1]",
    _for(5, _pause, "join", 1),
    (Question("during", "nothing of task manager {tm} moved for [2-6]"),),
)
_RECOVERY = Cause(
    "recovery",
    "SIGKILL to the TaskManager of join[0], with a spare one",
    _for(45, _kill, "join", 0),
    (Question("after", r"Tasks of the job had failed [\d.]+ s before it was triggered"),),
)
_DISK = Cause(
    "disk",
    "files of one TaskManager with 4 MB/s for 15 s, those of the other with 40",
    _for(15, _with(bandwidth=4 * MB), "map", 0),
    (Question("during", "from task manager {other}: not all of the storage is slow, but the disk or network of {tm}"),),
)
_EXPIRED = Cause(
    "expired",
    "files of one TaskManager with 0.7 MB/s for 22 s, and a timeout of 10 s",
    _for(22, _with(bandwidth=700_000), "map", 1),
    (
        Question(
            "during", r"map\S*\[1\] waits for a file \(upload\): its snapshot had begun, and was not acknowledged"
        ),
        Question("during", r"(it was through [\d.]+ m?s later|it was aborted after) .*MB"),
    ),
)
_DECLINED = Cause(
    "declined",
    'every write of one TaskManager fails ("No space left on device")',
    _for(6, _with(full="true"), "map", 0),
    (
        Question("during", r"map\S*\[0\].*its asynchronous part failed, and it declined the checkpoint"),
        Question("during", "the exception is in the log of task manager {tm}"),
    ),
)


_HOT = Cause(
    "hot",
    "a source without a limit; 55 % of the records go to one of four subtasks of the sink",
    _since_start,
    (
        Question(
            "history",
            r"sink\S*\[\d\],? (which )?is busy (9\d|100) % of its time, and reads (5\d|6\d|7\d) % of the records",
        ),
    ),
)
_SINK = Cause(
    "sink",
    "a sink that takes 5 ms per record, behind a join whose sources have no limit",
    _since_start,
    (Question("history", r"sink\S*\[\d\],? (which )?is busy (9\d|100) % of its time"),),
)
_CHANNEL = Cause(
    "channel",
    "unaligned, a full job of parallelism 6 with little state, files with 1.5 MB/s",
    _since_start,
    (
        Question("during", r"in-flight data are written to the file of channel state"),
        Question("during", r"with those of its task manager, tm-\d, .*: [\d.]+ [kM]B/s"),
    ),
)
_STORM = Cause(
    "storm",
    "three times for 5 s 85 % of the heap of one TaskManager are alive, and more is allocated",
    _for(5, _storms, "map", 0),
    (Question("history", r"Garbage collection: {tm} has spent [\d.]+ m?s in \d+ collections, \d+ of them full"),),
)
_WINDOW = Cause(
    "window",
    "timers of 400 keys fire together every 11 s, and take 2 ms each; no plan names them",
    _since_start,
    (Question("history", r"two ends of windows of firing|in which the state of firing rises and falls"),),
)
_TIMERS = Cause(
    "timers",
    "the same every 13 s, and 7 ms each",
    _since_start,
    (Question("history", r"two ends of windows of firing|in which the state of firing rises and falls"),),
)

_EVERY = {"execution.checkpointing.timeout": "10 s", "fs.paced.close-ms": "10", "fs.paced.bandwidth": str(40 * MB)}

RUNS = (
    Run(
        PacedJob(
            shape="join",
            rate=0,
            then=900,
            at=7,
            rate2=200,
            record=300,
            map=300,
            map2=900,
            sink=400,
            state=24 * MB,
            value=2000,
        ),
        (_COLD, _SAVEPOINT, _PAUSED, _RECOVERY),
        {**_EVERY, "execution.checkpointing.interval": "3 s", "execution.checkpointing.timeout": "60 s"},
        task_managers=3,
    ),
    Run(
        PacedJob(shape="chain", rate=1500, record=200, map=250, sink=300, state=36 * MB, value=3000),
        (_DISK, _EXPIRED, _DECLINED),
        {
            **_EVERY,
            "execution.checkpointing.interval": "2500 ms",
            "execution.checkpointing.tolerable-failed-checkpoints": "50",
        },
        settled=16,
    ),
    Run(
        PacedJob(shape="shuffle", parallelism=4, rate=0, record=400, map=100, sink=1500, hot=0.55),
        (_HOT,),
        {**_EVERY, "execution.checkpointing.interval": "4 s", "execution.checkpointing.timeout": "5 min"},
        slots=2,
    ),
    Run(
        PacedJob(shape="join", rate=0, rate2=0, record=300, map=150, map2=150, sink=5000, state=2 * MB),
        (_SINK,),
        {**_EVERY, "execution.checkpointing.interval": "5 s", "execution.checkpointing.timeout": "5 min"},
        settled=9,
    ),
    Run(
        PacedJob(shape="shuffle", parallelism=6, rate=0, record=900, map=200, sink=2000),
        (_CHANNEL,),
        {
            **_EVERY,
            "execution.checkpointing.interval": "3 s",
            "execution.checkpointing.unaligned.enabled": "true",
            "fs.paced.bandwidth": str(round(1.5 * MB)),
            "execution.checkpointing.timeout": "2 min",
        },
        task_managers=3,
        slots=2,
    ),
    Run(
        PacedJob(shape="shuffle", rate=700, record=300, map=400, sink=400, state=10 * MB, value=1000),
        (_STORM,),
        {**_EVERY, "execution.checkpointing.interval": "2 s", "execution.checkpointing.timeout": "60 s"},
        heap="160m",
    ),
    Run(
        PacedJob(shape="window", rate=800, record=300, map=200, sink=200, window=11_000, keys=400, fire=2000),
        (_WINDOW,),
        {**_EVERY, "execution.checkpointing.interval": "2 s"},
        settled=36,
    ),
    Run(
        PacedJob(shape="window", rate=800, record=300, map=200, sink=200, window=13_000, keys=400, fire=7000),
        (_TIMERS,),
        {**_EVERY, "execution.checkpointing.interval": "2 s"},
        settled=48,
    ),
)
