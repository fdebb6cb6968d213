"""The `faults:`, `restart:` and `rescale:` sections as they are written: what goes wrong, and what the job does about it.

Defaults live in the model: a key that is not given is None here.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag, create_model

from sim import units
from sim.model import faults
from sim.model.randomness.fault_times import FAULT_KINDS
from sim.scenario.grammar.fields import Axis, Duration, Leaf, Number, Parallelism, Positive, choice
from sim.scenario.grammar.options import Options
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Texts
from sim.scenario.grammar.together import OneOf, OnlyWith

ANY_TASK = "random-task"
ANY_TASK_MANAGER = "task-manager"


def _subtask(value: object) -> tuple[str, int | None]:
    """'enrich[3]' -> ("enrich", 3); 'enrich' -> ("enrich", None)."""
    match = re.fullmatch(r"([^\[\]]+?)\s*(?:\[\s*([0-9]{1,9})\s*\])?", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"'{value}' names no task: write a vertex, or a subtask as 'vertex[3]'")
    return match[1], None if match[2] is None else int(match[2])


def _down_for(value: object) -> int:
    match = re.fullmatch(r"down-for\s+(\S.*)", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"expected 'down-for 30 s', not '{value}'")
    return units.parse_duration(match[1])


def _host(value: object) -> int:
    if value == "random":
        return -1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"expected the number of a task manager, counted from 0, or random, not '{value}'")
    return value


def _cell(value: object) -> str | int | float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        raise ValueError(f"expected a text or a number of the trace, not {'a list' if isinstance(value, list) else value}")  # noqa: TRY004
    return float(value) if isinstance(value, Decimal) else value


SubtaskName = Annotated[tuple[str, int | None], Leaf(_subtask, {"type": "string", "examples": ["enrich[3]", "enrich", ANY_TASK]})]
DownFor = Annotated[int, Leaf(_down_for, {"type": "string", "pattern": "^down-for .+$", "examples": ["down-for 30 s"]})]
Host = Annotated[int, Leaf(_host, {"anyOf": [{"type": "integer", "minimum": 0}, {"enum": ["random"]}]})]

Cell = Annotated[str | int | float, Leaf(_cell, {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}]})]


class FaultSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Duration
    """Between two faults."""
    cv: Number
    """Standard deviation over the mean."""


class FaultWeibull(Section):
    """Mean and shape: below 1 faults come in bursts, above 1 they come of age."""

    mean: Duration
    """Between two faults."""
    shape: Number
    """Below 1: faults come in bursts."""


class FaultTimes(Section):
    """Exactly one law, by its name."""

    HINTS: ClassVar[Texts] = {"constant": "write the value alone, without a mapping"}


_WRITTEN: dict[str, Any] = {"": Duration, "shape": FaultWeibull, "cv": FaultSpread}
_LAWS: dict[str, Any] = {
    kind.name: (_WRITTEN[kind.parameter] | None, Field(None, description=kind.sentence)) for kind in FAULT_KINDS.values()
}
Every = create_model("Every", __base__=FaultTimes, __doc__="Time from one fault to the next; exactly one.", __module__=__name__, **_LAWS)


class Fault(Section):
    """One of kill, task-manager, job-manager, storage, network, slow, commit; and one of at, every, trace."""

    ONE_OF: ClassVar = (
        OneOf(dict.fromkeys(("kill", "task-manager", "job-manager", "storage", "network", "slow", "commit"), "")),
        OneOf({"lasts": "", "lasts-column": ""}, is_needed=False),
        OneOf({"at": "", "from": ""}, is_needed=False),
    )
    ONLY_WITH: ClassVar = (
        OnlyWith(("factor",), ("slow",)),
        OnlyWith(("lasts", "lasts-column"), ("storage", "network", "slow", "commit"), "other faults have no duration of their own"),
        OnlyWith(("silent", "orderly"), ("task-manager",)),
        OnlyWith(("column", "lasts-column", "between", "unit", "where", "from"), ("trace",)),
    )

    kill: SubtaskName | None = None
    """An exception in 'vertex[3]', in all of 'vertex', in a random-task; or the loss of a random task-manager."""
    task_manager: Host | None = None
    """A task manager whose process ends: a number, or random."""
    job_manager: DownFor | None = None
    """'down-for 30 s': no coordinator for so long, then a new one restarts the job."""
    storage: Annotated[str, choice("outage")] | None = None
    """Nothing written or read makes progress."""
    network: Host | None = None
    """A task manager is cut off from all others: a number, or random."""
    slow: SubtaskName | None = None
    """Services of 'vertex[1]', or of all of 'vertex', take `factor` times as long."""
    commit: str | None = None
    """A transactional sink whose commits fail while it lasts; without lasts the next one.  commit: {retries, gives-up} say what follows."""
    factor: Positive | None = None
    """Service times are multiplied by this."""
    lasts: Duration | None = None
    """How long it goes on."""
    silent: Annotated[str, choice("true", "false")] | None = None
    """task-manager: it is missed when its heartbeats time out; default: its process is killed, and its peers notice at once."""
    orderly: Annotated[str, choice("true", "false")] | None = None
    """task-manager: it ends in an orderly way (SIGTERM), and JobMaster and ResourceManager are told; default: false."""
    at: Duration | None = None
    """When; of a trace: when the first one happens."""
    every: Annotated[Annotated[Duration, Tag("text")] | Annotated[Every, Tag("map")], MAP_OR_TEXT] | None = None  # type: ignore[valid-type]
    """Again and again, so long after the one before: a duration, or a law of it."""
    trace: str | None = Field(None, min_length=1)
    """CSV or Parquet file of times, relative to the scenario."""
    column: str | None = None
    """Column of the trace: times (seconds or ISO 8601), counted from the earliest one."""
    between: Annotated[str, choice("true", "false")] | None = None
    """The column holds the times from one fault to the next; default: false."""
    unit: Duration | None = None
    """Unit of the numbers in the column; default: 1 s."""
    from_: Duration | None = Field(None, alias="from")
    """How far into the trace the run begins, counted from its earliest fault, in time of the run (see unit); default: see at."""
    where: dict[str, Cell] | None = None
    """Rows to take: column -> value."""
    lasts_column: str | None = None
    """Column of the trace: how long each one lasts, in the same unit."""


class Restart(Options, of=(faults.Restart,)):
    """restart-strategy.*, jobmanager.execution.failover-strategy, heartbeat.*, task.cancellation.*"""


class Rescale(Section):
    """The job is restarted with another parallelism."""

    at: Duration
    """Moment of the run."""
    parallelism: dict[str, Parallelism] = Field(min_length=1)
    """Vertex -> its new parallelism."""
    from_: Axis[Annotated[str, choice("checkpoint", "savepoint")]] | None = None
    """The latest completed checkpoint (default), or a savepoint taken for it; one that fails is requested again after 10 s."""


def _one_or_several(value: object) -> str:
    return "several" if isinstance(value, list) else "one"


RescaleField = Annotated[
    Annotated[Rescale, Tag("one")] | Annotated[list[Rescale], Field(min_length=1), Tag("several")],
    Discriminator(_one_or_several),
]
