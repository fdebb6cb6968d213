"""A lever: one thing that can be changed about a job, the parts of a checkpoint that it shortens, and what has to be known first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sim.sweeps.file.design import Point

if TYPE_CHECKING:
    from sim.advice.settings import Protocol
    from sim.model.scenario import Scenario

QUEUE, ALIGNMENT, PRE_BARRIER, SYNC = "queue", "alignment", "pre-barrier", "sync"
UPLOAD, ASYNC_WORK, CHANNEL_STATE = "upload", "asynchronous work", "channel state"
MESSAGES, HICCUPS = "messages", "hiccups"
EXPIRY, OUTAGE, RESTORE, REPLAY, LOSS = "expiry", "outage", "restore", "replay", "loss"
PARTS: dict[str, str] = {
    QUEUE: "barriers wait behind data",
    ALIGNMENT: "from the first to the last barrier",
    PRE_BARRIER: "work of operators before the barrier",
    SYNC: "synchronous parts",
    UPLOAD: "upload of state",
    ASYNC_WORK: "asynchronous work beside files",
    CHANNEL_STATE: "upload of data in flight",
    MESSAGES: "triggers and acknowledgements on their way",
    HICCUPS: "hiccups that its history shows and no setting explains",
    EXPIRY: "checkpoints expire",
    OUTAGE: "until a lost task manager's slots are replaced",
    RESTORE: "restart and restore",
    REPLAY: "records processed again",
    LOSS: "throughput that checkpoints cost",
}
"""Where the time goes that breaks a limit: part -> what it is."""


FOLDER = "<a folder of the checkpoint storage>"
"""Stands for a value in Flink's configuration that only the user knows."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption of a change that was not measured.  `points`: the assumed value and its bounds, as changes of the scenario."""

    what: str  # "a state access in RocksDB"
    assumed: str
    least: str
    most: str
    least_point: Point = field(hash=False)
    most_point: Point = field(hash=False)
    source: str


@dataclass(frozen=True, slots=True)
class Change:
    """One way to pull a lever; it stands behind the barriers in the name of a setting."""

    lever: Lever
    name: str
    point: Point = field(default_factory=dict, hash=False)
    interval_ns: int | None = None  # another interval; None: as it is
    protocol: Protocol | None = None  # other barriers; None: as they are
    assumption: Assumption | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class Situation:
    """A setting that breaks limits, and the parts that its time is spent on.  Levers look at it."""

    scenario: Scenario  # its undisturbed trial
    plain: Mapping[str, Any]  # the document of the job
    protocol: Protocol
    interval_ns: int
    shares: Mapping[str, float]  # part -> its share of what breaks the limits; they sum to 1, unless nothing is known
    milliseconds: Mapping[str, float]  # part -> what the slowest tenth of the checkpoints spends there
    checkpoint_ms: float = 0.0
    uploaded_bytes: float = 0.0  # by a checkpoint, of all subtasks
    recovery: Mapping[str, float] = field(default_factory=dict)  # part -> ms of a recovery
    is_recovered: bool = True  # within its trial
    breaks: tuple[str, ...] = ()  # limits
    full: str = ""  # the vertex whose busiest subtask has no time left; empty: none


@dataclass(frozen=True, slots=True)
class Lever:
    """A change of a job, and the parts of a checkpoint that it shortens."""

    name: str
    helps: frozenset[str]  # parts that it shortens
    proposes: Callable[[Situation], Iterator[Change]] = field(hash=False)  # nothing: it does not apply to this job
    costs: str
    ask: str = ""  # what has to be known first
    caution: str = ""
    short_ask: str = ""  # the same in seventy characters
    short_caution: str = ""
    source: str = ""
    is_configuration: bool = True  # False: it takes machines, storage, or another version
    flink_keys: Mapping[str, str] = field(default_factory=dict, hash=False)  # keys of Flink that the scenario has no option for

    def share(self, situation: Situation) -> float:
        """The part of what breaks the limits that it can shorten."""
        return sum(situation.shares.get(part, 0.0) for part in self.helps)
