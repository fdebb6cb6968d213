"""The catalogue of observed quantities, conditions such as "p99 < 3 s", and price lists of object stores."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from sim.model.frozen import frozen

# ---- Conditions: a comparison and a bound, e.g. ``< 60 s``.  The caller knows the unit of the bound.

_CONDITION = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*")
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


class Condition(NamedTuple):
    """A comparison and a bound."""

    comparison: str  # <=, >=, ==, !=, < or >
    bound: str  # as written

    def __str__(self) -> str:
        return f"{self.comparison} {self.bound}"

    def holds(self, value: float, bound: float) -> bool:
        """Return whether a value, in the unit of the bound, satisfies the condition."""
        return bool(_HOLDS[self.comparison](value, bound))


def parse_condition(text: str) -> Condition | None:
    """Return the condition in a text, or None if it is not one."""
    match = _CONDITION.fullmatch(text)
    return None if match is None else Condition(match[1], match[2])


# ---- Quantities observed of real and simulated jobs.  Names are those of Flink's REST API if it has the quantity.
#
# A record here is all that a new quantity of checkpoints takes: observations, predictions, truth tables, backtests,
# histories, the validity envelope and pages go through this catalogue.  A quantity of whole runs is computed
# besides (`sim.jobs`, and
# `sim.jobs.evidence.prediction` or `predicted_ends`).

Level = Literal["p50", "p90"]
Kind = Literal["duration", "size", "rate"]
Rows = Literal["checkpoint", "subtask", "run"]

NEGLIGIBLE_MS = 60.0
"""Smaller differences of durations are scheduling noise of the recorded machine and count as zero."""


@frozen
class Quantity:
    """A quantity that is observed of jobs."""

    name: str  # in all tables
    unit: str
    title: str  # in words, for pages
    meaning: str
    # one per checkpoint; per vertex and checkpoint, the median of its subtasks; of the run or of samples
    rows: Rows = "run"
    column: str = ""  # of Flink's table of checkpoints or subtasks; empty: the same name
    # spread of repetitions [share], measured; orderings are judged of such quantities only
    repeats: float | None = None
    history: str = ""  # the key in the backtest of an import, which several may share; empty: it is not compared there
    is_judged: bool = True  # of a history: two runs of one job agree on it (docs/truth.md)
    factor: float | None = None  # within which differences are random
    in_envelope: bool = False  # its errors are kept for each feature of a scenario

    @property
    def flink_column(self) -> str:
        return self.column or self.name

    @property
    def noise(self) -> float:
        """Differences below this count as zero."""
        return NEGLIGIBLE_MS if self.unit == "ms" else 0.0

    @property
    def spread(self) -> float:
        """Spread between repeated runs [share].  Quantities without repeated runs have the largest spread of the others."""
        return max(other.repeats or 0.0 for other in QUANTITIES.values()) if self.repeats is None else self.repeats

    @property
    def kind(self) -> Kind:
        return {"ms": "duration", "bytes": "size"}.get(self.unit, "rate")  # type: ignore[return-value]


QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        Quantity(
            "end_to_end_duration",
            "ms",
            "checkpoint duration",
            "trigger -> last acknowledgement, of a completed checkpoint",
            "checkpoint",
            repeats=0.04,
            history="end-to-end",
            in_envelope=True,
        ),
        Quantity(
            "start_delay",
            "ms",
            "start delay",
            "trigger -> first barrier at a subtask",
            "subtask",
            history="start-delay",
            in_envelope=True,
        ),
        Quantity(
            "alignment_duration",
            "ms",
            "alignment",
            "first -> last barrier",
            "subtask",
            history="alignment",
            factor=2.0,
        ),
        Quantity(
            "sync_duration",
            "ms",
            "synchronous part",
            "synchronous phase of the snapshot",
            "subtask",
            history="sync",
        ),
        Quantity(
            "async_duration",
            "ms",
            "asynchronous part",
            "asynchronous phase of the snapshot",
            "subtask",
            history="async",
        ),
        Quantity(
            "persisted_data",
            "bytes",
            "in-flight data stored",
            "in-flight data stored in a completed checkpoint",
            "checkpoint",
            repeats=0.035,
            history="in-flight-persisted",
            in_envelope=True,
        ),
        Quantity(
            "processed_data",
            "bytes",
            "in-flight data processed",
            "read by the subtasks of a completed checkpoint while they aligned",
            "checkpoint",
            history="in-flight-processed",
            is_judged=False,
            factor=2.0,
        ),
        Quantity(
            "checkpointed_size",
            "bytes",
            "written per checkpoint",
            "written for a completed checkpoint, state and in-flight data",
            "checkpoint",
            history="checkpointed",
            in_envelope=True,
        ),
        Quantity(
            "state_size",
            "bytes",
            "size of the checkpoint",
            "all bytes that a completed checkpoint refers to",
            "checkpoint",
            history="full-size",
        ),
        Quantity(
            "alignment_persisted",
            "bytes",
            "in-flight data stored by a vertex",
            "in-flight data stored by a subtask",
            "subtask",
        ),
        Quantity(
            "alignment_processed",
            "bytes",
            "in-flight data processed by a vertex",
            "read by a subtask while it aligned",
            "subtask",
        ),
        Quantity(
            "numRecordsInPerSecond",
            "1/s",
            "records in per second",
            "of a vertex that reads, the sum of its subtasks",
            repeats=0.027,
            history="throughput",
            in_envelope=True,
        ),
        Quantity(
            "numRecordsOutPerSecond",
            "1/s",
            "records out per second",
            "of a source, the sum of its subtasks",
            history="throughput",
        ),
        Quantity("busyTimeMsPerSecond", "ms/s", "busy time", "mean of the subtasks of a vertex"),
        Quantity("idleTimeMsPerSecond", "ms/s", "idle time", "mean of the subtasks of a vertex"),
        Quantity(
            "backPressuredTimeMsPerSecond",
            "ms/s",
            "back-pressured time",
            "mean of the subtasks of a vertex (soft, hard)",
        ),
        Quantity(
            "latency",
            "ms",
            "record latency",
            "a record leaves its source -> a vertex without readers has served it; mean of each second",
            repeats=0.046,
            in_envelope=True,
        ),
        Quantity(
            "outputQueueLength",
            "buffers",
            "output queue length",
            "in result partitions, mean of the subtasks, sample by sample",
        ),
        Quantity(
            "outputQueueSize",
            "bytes",
            "output queue size",
            "in result partitions, mean of the subtasks, sample by sample",
        ),
        Quantity(
            "inputQueueLength", "buffers", "input queue length", "received and not consumed, mean of the subtasks"
        ),
        Quantity("inputQueueSize", "bytes", "input queue size", "received and not consumed, mean of the subtasks"),
        Quantity(
            "completed",
            "count",
            "completed checkpoints",
            "of the run, without savepoints",
            in_envelope=True,
        ),
        Quantity("failed", "count", "failed checkpoints", "that got an id and failed, for any reason"),
        Quantity("expired", "count", "expired checkpoints", "failed because of their timeout"),
        Quantity(
            "savepoint_duration",
            "ms",
            "savepoint duration",
            "trigger -> last acknowledgement (also of one that stops the job)",
        ),
        Quantity(
            "downtime",
            "ms",
            "downtime",
            "failure -> all tasks run again, with their in-flight data restored",
        ),
    )
}
"""The quantities by name, in the order of display."""


def quantities(chosen: Callable[[Quantity], object]) -> Iterator[Quantity]:
    """Return the quantities that satisfy a predicate, in the order of display."""
    return (quantity for quantity in QUANTITIES.values() if chosen(quantity))


def title_of(observed: str, statistic: str = "") -> str:
    """Return a heading: ``title_of("end_to_end_duration", "median") == "checkpoint duration, median"``."""
    return ", ".join(filter(None, [QUANTITIES[observed].title, statistic]))


def of_history() -> dict[str, tuple[Quantity, ...]]:
    """Return the quantities of each key of a backtest."""
    found: dict[str, tuple[Quantity, ...]] = {}
    for quantity in quantities(lambda quantity: quantity.history):
        found[quantity.history] = (*found.get(quantity.history, ()), quantity)
    return found


PLANNED_RESTARTS = ("rescale", "instance")
"""Kinds of restarts (column `kind` of `recoveries`) without a failure: rescaling, and a job started from a snapshot."""


# ---- Price lists of object stores, and the monthly cost of requests and bytes.

HOURS_PER_MONTH = 730
"""365.25 days / 12 [hours]."""
GB = 1e9
USE = (
    "put_requests_per_hour",
    "list_requests_per_hour",
    "get_requests_per_hour",
    "stored_bytes",
    "moved_bytes_per_hour",
)
"""The columns from which a cost is computed."""
COST = "storage_cost_per_month"


@frozen
class Prices:
    """Prices in one currency, by default those of Amazon S3 Standard."""

    put_per_1000: float = 0.005  # PUT, COPY and POST requests
    list_per_1000: float = 0.005
    get_per_1000: float = 0.0004  # GET and all others but DELETE, which is free
    stored_per_gb_month: float = 0.023
    moved_per_gb: float = 0.0  # into the store and out of it
    currency: str = "USD"
    # where the prices are from, and of which day
    source: str = "Amazon S3 Standard, us-east-1, first 50 TB, transfer within the region (guides of 2022, unchecked; --prices has yours)"

    def cost_per_month(self, use: Mapping[str, Any]) -> float:
        """Return the monthly cost of requests and bytes per hour, and of mean stored bytes; nan if a value is unknown."""
        puts, lists, gets, stored, moved = (float(use[column]) for column in USE)
        requests = puts * self.put_per_1000 + lists * self.list_per_1000 + gets * self.get_per_1000
        return (
            HOURS_PER_MONTH * (requests / 1000 + moved / GB * self.moved_per_gb)
            + stored / GB * self.stored_per_gb_month
        )

    def text(self, cost: float) -> str:
        """Return for example ``12.40 USD``."""
        return f"{cost_text(cost)} {self.currency}"


def cost_text(cost: float) -> str:
    """Return an amount: ``12.40``, without cents from 100 on: ``1,240``."""
    return f"{cost:,.0f}" if cost >= 99.5 else f"{cost:.2f}"


S3_STANDARD = Prices()
"""Used if the user gives no price list.

The page of Amazon (aws.amazon.com/s3/pricing) fills its tables by script, so a stored copy of it has no numbers.
Stored bytes are of a table of July 2022, uploads and lists of a guide without a date; reads are from memory.
"""


# ---- The smallest sample of a percentile.
#
# A percentile needs observations beyond it: on average one of n observations is above the quantile q if n >= 1 / (1 - q).
# With fewer observations the estimate is just the maximum (except for the median).


def smallest_sample(q: float) -> int:
    """Return the number of observations that the quantile `q` needs: 100 for 0.99, 1 for median, minimum and maximum."""
    beyond = min(q, 1 - q)
    return 1 if beyond <= 0 or q == 0.5 else math.ceil(round(1 / beyond, 6))
