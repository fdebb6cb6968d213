"""Descriptions of result columns and result tables.  Each column of a result is declared next to the field that holds its value.

Everything else is derived from them: column types in Parquet and CSV, printed tables, rows and comparisons of sweeps,
reports, and the output of `ckptsim schema --results`.

    Summary.sync_ms: float = result_column("synchronous part, ...", Population.COMPLETED, lambda run: ..., heading="sync")
        name, type                   meaning                 rows that count       value                printed as
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, fields, replace
from enum import StrEnum
from functools import cache
from typing import Any, Literal, NamedTuple, get_type_hints

import pandas as pd

from sim.model import units
from sim.model.frozen import frozen
from sim.model.quantities import cost_text, smallest_sample
from sim.model.units import MS
from sim.results.estimates import Duration
from sim.results.formats import MISSING, apart_text, bytes_text, change_text, count_text, ms_text, per_second_text
from sim.results.journal import PackedRows

# ---- Units. The suffix of a column's name is its unit, which determines how values are parsed and printed.


class Unit(NamedTuple):
    """A unit of result columns."""

    ending: str  # suffix of column names
    symbol: str  # "" for numbers, shares and texts
    parse: Callable[[object], float]  # text of the user -> number in this unit
    text: Callable[[float], str]  # number in this unit -> rounded text
    scales: tuple[tuple[str, float], ...]  # (suffix, size) of units for axis labels, in ascending order


def _share(text: object) -> float:
    """Parse a share, which may be negative."""
    plain = str(text).strip()
    return -float(units.parse_share(plain[1:])) if plain.startswith("-") else float(units.parse_share(plain))


_TIMES = ((" ms", 1.0), (" s", 1e3), (" min", 6e4), (" h", 3.6e6))
_SIZES = ((" B", 1.0), (" kB", 1e3), (" MB", 1e6), (" GB", 1e9), (" TB", 1e12))
_RATES = (("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9))
_ROUNDING_ERROR = 5e-7
"""Shares below this are rounding errors and printed as 0 %."""
UNITS = (
    Unit("_ms", "ms", lambda text: units.parse_duration(text) / 1e6, ms_text, _TIMES),
    Unit(
        "_bytes_per_second",
        "bytes/s",
        lambda text: float(units.parse_byte_rate(text)),
        lambda value: f"{bytes_text(value)}/s",
        tuple((f"{ending}/s", size) for ending, size in _SIZES),
    ),
    Unit("_per_second", "records/s", lambda text: float(units.parse_rate(text) or math.inf), per_second_text, _RATES),
    Unit(
        "_s",
        "s",
        lambda text: units.parse_duration(text) / 1e9,
        lambda value: ms_text(1e3 * value),
        tuple((ending, ms / 1e3) for ending, ms in _TIMES),
    ),
    Unit(
        "_bytes_per_hour",
        "bytes/h",
        lambda text: float(units.parse_size(text)),
        lambda value: f"{bytes_text(value)}/h",
        tuple((f"{ending}/h", size) for ending, size in _SIZES),
    ),
    Unit(
        "_per_hour",
        "per hour",
        lambda text: float(units.parse_number(text)),
        lambda value: f"{count_text(value)}/h",
        (("/h", 1.0), ("k/h", 1e3), ("M/h", 1e6)),
    ),
    Unit("_per_month", "per month", lambda text: float(units.parse_number(text)), cost_text, ((" a month", 1.0),)),
    Unit("_bytes", "bytes", lambda text: float(units.parse_size(text)), bytes_text, _SIZES),
    Unit(
        "_share",
        "",
        _share,
        lambda value: f"{100 * value:.3g} %" if value >= _ROUNDING_ERROR else "0 %",
        ((" %", 0.01),),
    ),
    Unit("_change", "", _share, change_text, ((" %", 0.01),)),
)
_NUMBER = Unit("", "", lambda text: float(units.parse_number(text)), count_text, (("", 1.0), ("k", 1e3), ("M", 1e6)))


def text(column: str, value: float) -> str:
    """Format a value of a column, with a sign if it is negative.  NaN and infinity are "-"."""
    if math.isnan(value) or math.isinf(value):
        return "-"
    unit = unit_of(column)
    if value >= 0 or unit.ending == "_change":
        return unit.text(value)
    return magnitude if (magnitude := unit.text(-value)) == unit.text(0.0) else f"-{magnitude}"  # zero has no sign


def spread_text(column: str, half_width: float) -> str:
    """Return `` ± 400 ms``, or "" for an infinite half width."""
    return f" ± {text(column, half_width).lstrip('+±')}" if math.isfinite(half_width) else ""


def text_unlike(column: str, value: float, bound: float) -> str:
    """Format a value with enough digits to differ from a bound: ``text_unlike("downtime_ms", 1041, 1000) == "1.04 s"``."""
    scale = {"ms": 1.0, "s": 1e3}.get(unit_of(column).symbol)
    return text(column, value) if scale is None else apart_text(scale * value, scale * bound, ms_text)


def unit_of_ticks(column: str, most: float) -> tuple[str, float]:
    """Return (suffix, size) of the unit for an axis up to `most`: ``unit_of_ticks("downtime_ms", 90_000) == (" s", 1000.0)``."""
    scales = unit_of(column).scales
    return next(((ending, size) for ending, size in reversed(scales) if most >= 2 * size), scales[0])


def unit_of(column: str) -> Unit:
    """Return the unit of a column by the suffix of its name."""
    return next((unit for unit in UNITS if column.endswith(unit.ending)), _NUMBER)


def units_of(columns: Iterable[str]) -> dict[str, str]:
    """Return {column: symbol of its unit} for columns with a unit."""
    return {column: symbol for column in columns if (symbol := unit_of(column).symbol)}


_ENDINGS = {"duration": ("_ms", 1e6), "size": ("_bytes", 1.0), "rate": ("_per_second", 1.0), "share": ("_share", 1.0)}
_ENDINGS |= {"byte rate": ("_bytes_per_second", 1.0), "number": ("", 1.0)}


def numbers_of(key: str, values: Iterable[str]) -> tuple[str, dict[str, float]] | None:
    """Return (column, {text: number}) of a key's values: ``("checkpoint.interval_ms", {"16 s": 16000.0})``.

    Returns None if they are not quantities of one kind.  Without a unit the column is the key.
    """
    numbers, endings = {}, set()
    for value in values:
        try:
            kind, number = units.parse_quantity(value)
        except units.UnitError:
            return None
        ending, scale = _ENDINGS[kind]
        endings.add(ending)
        numbers[value] = math.inf if number is None else float(number) / scale
    return (key + endings.pop(), numbers) if len(endings) == 1 else None


# ---- Populations: the rows that a statistic is computed from.
#
# Each numeric column has a population. Therefore a planned rescale never affects the cost of failures, and a savepoint
# never affects the percentiles of checkpoints. `tests/results/analysis/strategies/test_populations.py` checks every column.


class Population(StrEnum):
    """The rows that a statistic is computed from.  The values are shown to users."""

    CHECKPOINTS = "periodic and final checkpoints triggered after the warm-up, without first uploads and savepoints"
    COMPLETED = (
        "completed periodic and final checkpoints triggered after the warm-up, without first uploads and savepoints"
    )
    FIRST_UPLOADS = "first uploads"
    FAILURES = "restarts caused by a failure"
    PLANNED = "planned restarts: rescales, and jobs that start from a snapshot"
    RESTARTS = "all restarts"
    COMMITS = "commits whose checkpoint was triggered after the warm-up"
    AFTER_WARMUP = "the run after the warm-up"
    RUN = "the whole run"


# ---- Result columns.


@frozen
class ResultColumn:
    """A column in the results of a run, a strategy or a cell of a sweep."""

    meaning: str
    population: Population | None = None
    # Returns the value. Its argument, the source, depends on the dataclass of the field. A `Duration` may be a lower bound.
    compute: Callable[[Any], Any] | None = None
    title: str = ""  # text on axes and pages; if "", comparisons of two sides leave the column out
    heading: str = ""  # heading in printed tables; if "", the column is not printed
    after: str = ""  # column after which it is printed; if "", it is printed after the previous field
    # row of a printed table -> text; None for the value with its unit
    cell: Callable[[Any], str] | None = None
    text: Callable[[float], str] | None = None  # value -> text in printed tables; None for the text of the unit
    is_optional: bool = False  # not printed if it is missing or 0 for all strategies
    printed_with: str = ""  # if not "", it is printed only if this other column is not 0 in some row
    vertices: str = ""  # attribute of `StrategyRow` with the vertices that the heading contains
    quantile: float | None = None  # None if it is not a percentile
    counted_by: str = ""  # column with its sample size
    worse: Literal["more", "less", "neither"] = "more"  # direction in which a value is worse
    # the value is a lower bound until this has happened ("... within the run"); "" if it is always final
    ends: str = ""
    follows: str = ""  # other column: if that is a lower bound, this one is one, too
    # column with the number of measured events; if that is 0, there is nothing to measure
    of: Literal["restarts", "failures", "planned_restarts", "commits", "first_uploads", ""] = ""
    name: str = ""
    type: type = float

    @property
    def unit(self) -> str:
        """Return the symbol of its unit, or ""."""
        return unit_of(self.name).symbol

    @property
    def counts(self) -> str:
        """Return the noun for its sample, e.g. "checkpoints"."""
        return "checkpoints" if self.counted_by == "completed" else self.counted_by

    @property
    def smallest_sample(self) -> int:
        """Return the minimum sample size of a percentile, or 1 for other columns."""
        return 1 if self.quantile is None else smallest_sample(self.quantile)

    @property
    def description(self) -> str:
        """Return meaning and population."""
        return "; of ".join(filter(None, (self.meaning, self.population)))

    def has_sample(self, row: Mapping[str, Any]) -> bool:
        """Return True if its sample in this row is large enough."""
        return not self.counted_by or row[self.counted_by] >= self.smallest_sample

    def value_text(self, row: Mapping[str, Any]) -> str:
        """Return the value in a row as text with its unit, or MISSING if the sample is too small."""
        if not self.has_sample(row):
            return MISSING
        text = self.text or (unit_of(self.name).text if self.type is float else str)
        return text(row[self.name])

    def says_nothing(self, text: str) -> bool:
        """Return True if an optional column has no value, or 0, in a cell with this text."""
        return self.is_optional and text in (MISSING, unit_of(self.name).text(0.0))


def result_column(
    meaning: str, population: Population | None = None, compute: Callable[[Any], Any] | None = None, **options: Any
) -> Any:
    """Return a dataclass field that has a `ResultColumn` as metadata.  `options`: other fields of the column."""
    return field(metadata={"column": ResultColumn(meaning, population, compute, **options)})


@cache
def columns_of(kind: type, prefix: str = "", meaning: str = "", **changes: Any) -> dict[str, ResultColumn]:
    """Return {name: column} of a dataclass of results, in the order of its fields.

    `prefix`: prepended to names.  `meaning`: prepended to meanings.  `changes`: fields of the columns to replace.
    """
    hints, found = get_type_hints(kind), {}
    for item in fields(kind):
        if (column := item.metadata.get("column")) is not None:
            name = prefix + item.name
            described = {"name": name, "type": hints[item.name], "meaning": meaning + column.meaning}
            found[name] = replace(column, **described, **changes)
    return found


def compute_columns(kind: type, source: Any) -> tuple[dict[str, Any], list[str]]:
    """Compute the columns of a dataclass from `source`.

    Returns ({name: value}, names of the columns whose value is a lower bound).
    """
    values = {name: column.compute(source) for name, column in columns_of(kind).items() if column.compute is not None}
    bounds = [name for name, value in values.items() if isinstance(value, Duration) and value.is_bound]
    return {name: value.value if isinstance(value, Duration) else value for name, value in values.items()}, bounds


def in_printing_order(columns: Iterable[ResultColumn]) -> list[ResultColumn]:
    """Return the columns with a heading, in the order in which they are printed."""
    printed = [column for column in columns if column.heading]
    found = [column for column in printed if not column.after]
    for column in (column for column in printed if column.after):
        found.insert(1 + [before.name for before in found].index(column.after), column)
    return found


# ---- Columns of the result tables: name, unit, meaning.

# ---- The result tables. Documentation and column order are derived from these definitions.
#
# A column that Flink's REST API has, too, has the same name, unit and meaning. In the tables that correspond to its answers
# (`checkpoints`, `subtasks`, `tasks`, `series`) the names of other columns start with `x_`.
# If a run consists of several job instances, the tables `checkpoints` to `recoveries` and `path` have an additional column
# `x_job`: the number of the instance, from 0. Each instance counts its checkpoints separately.

Row = dict[str, Any]
"""Column -> value of a row."""


class Column(NamedTuple):
    """A column of a result table."""

    name: str
    unit: str
    meaning: str
    value: Callable[[Row], Any] | None = None  # computes it from the row's other columns; None: it is measured


CHECKPOINTS = (
    Column("id", "", "checkpoint id"),
    Column("status", "", "IN_PROGRESS, COMPLETED or FAILED"),
    Column(
        "checkpoint_type",
        "",
        "CHECKPOINT (UNALIGNED_CHECKPOINT if any subtask persisted in-flight data), SAVEPOINT or SYNC_SAVEPOINT",
    ),
    Column("trigger_timestamp", "ms", "when the coordinator decided to trigger, since the start of the run"),
    Column("latest_ack_timestamp", "ms", "last acknowledgement so far; -1: none"),
    Column(
        "end_to_end_duration", "ms", "last acknowledgement - trigger (failed: failure - trigger); without _metadata"
    ),
    Column("checkpointed_size", "bytes", "written for this checkpoint: state and in-flight data"),
    Column("state_size", "bytes", "full size referenced"),
    Column("processed_data", "bytes", "polled by aligning subtasks"),
    Column("persisted_data", "bytes", "in-flight data stored"),
    Column("alignment_buffered", "bytes", "always 0, as in Flink"),
    Column("num_subtasks", "", "subtasks that must acknowledge"),
    Column("num_acknowledged_subtasks", "", ""),
    Column("failure_message", "", "Flink's CheckpointFailureReason; empty unless FAILED"),
    Column("x_finalization", "ms", "last acknowledgement -> completed (_metadata durable)"),
    Column("savepointFormat", "", "CANONICAL or NATIVE; empty: not a savepoint"),
    Column(
        "x_standstill",
        "",
        "tasks that waited for each other when the checkpoint expired or the run ended, so that it hung; empty: none",
    ),
)
SUBTASKS = (
    Column("id", "", "checkpoint id"),
    Column("vertex", "", ""),
    Column("index", "", "subtask index"),
    Column("status", "", "completed or pending_or_failed"),
    Column("ack_timestamp", "ms", "acknowledgement at the coordinator; -1: none"),
    Column("end_to_end_duration", "ms", "acknowledgement - trigger; -1: none"),
    Column("start_delay", "ms", "trigger -> first barrier processed (sources: trigger call executed)"),
    Column("alignment_duration", "ms", "first -> last barrier processed"),
    Column("alignment_processed", "bytes", "polled while aligning"),
    Column("alignment_persisted", "bytes", "input and output channel state of this subtask"),
    Column("sync_duration", "ms", "snapshotState on the task thread"),
    Column("async_duration", "ms", "end of sync -> all parts durable"),
    Column("checkpointed_size", "bytes", "written by this subtask for this checkpoint"),
    Column("state_size", "bytes", ""),
    Column("unaligned_checkpoint", "bool", "alignment_persisted > 0"),
    Column("aborted", "bool", ""),
    Column("x_pre_barrier", "ms", "prepareSnapshotPreBarrier, which Flink does not report"),
    Column("x_async_queue", "ms", "part of async_duration spent waiting for the task's one asynchronous thread"),
    Column("x_hidden", "ms", "end_to_end_duration minus the durations that Flink reports, overlaps counted once"),
    Column("x_captured_input", "bytes", "part of alignment_persisted from input queues of receivers"),
    Column("x_captured_output", "bytes", "part of alignment_persisted from output queues of senders"),
)
TASKS = (
    Column("vertex", "", ""),
    Column("index", "", "subtask index"),
    Column(
        "numRecordsIn",
        "records",
        "records served (a source: emitted), over all attempts; records served again count again",
    ),
    Column("numRecordsOut", "records", "copies written to all outputs"),
    Column("numBytesIn", "bytes", "bytes taken from the input gates"),
    Column("numBytesOut", "bytes", "bytes written to the outputs"),
    Column("numBuffersIn", "buffers", "data buffers taken"),
    Column("numBuffersOut", "buffers", "data buffers sent"),
    Column("accumulateBusyTimeMs", "ms", "serving records or taking a snapshot"),
    Column("accumulateIdleTimeMs", "ms", ""),
    Column("x_softBackPressuredTimeMs", "ms", "between records, output not available"),
    Column("x_hardBackPressuredTimeMs", "ms", "inside a record, waiting for a buffer"),
    Column(
        "x_finalCheckpoint",
        "",
        "first checkpoint after the end of its data (StreamTask#finalCheckpointMinId); -1: none",
    ),
    Column(
        "x_coreSlowdown",
        "",
        "how many times as long its work takes as on idle cores: mean over the run; 1 without `cluster.services: idle-core`",
    ),
    Column(
        "x_materialized",
        "bytes",
        "that materializations of its changelog write in an hour, which no checkpoint counts; -1: none",
    ),
)
SERIES = (
    Column("time", "s", "end of the sampling interval"),
    Column("vertex", "", ""),
    Column("numRecordsInPerSecond", "records/s", "sum over subtasks, over the interval"),
    Column("numBytesOutPerSecond", "bytes/s", "sum over subtasks, over the interval"),
    Column("busy", "share", "mean over subtasks of the interval"),
    Column("idle", "share", ""),
    Column("backPressured", "share", "soft and hard"),
    Column("inputQueueSize", "bytes", "received and not yet taken, sum over subtasks"),
    Column("outputQueueSize", "bytes", "written and not yet sent, sum over subtasks"),
    Column(
        "inputQueueLength",
        "buffers",
        "received and not yet taken, sum over subtasks; local channels: the sender's queue, as in Flink",
    ),
    Column("outputQueueLength", "buffers", "started and not yet sent, sum over subtasks"),
    Column(
        "backlog",
        "records",
        "sources: due and not yet emitted, sum over subtasks; 0 for other vertices and for unlimited sources",
    ),
    Column("lag", "s", "sources: time since the oldest record of the backlog was due, maximum over subtasks"),
    Column(
        "x_latency",
        "ms",
        "vertices without readers: a record left its source -> served, mean over the interval; -1: none was served",
    ),
)
COMMITS = (
    Column("checkpoint", "", "checkpoint whose completion triggered the commit; 0: the task ended without one"),
    Column("commit_timestamp", "ms", "end of the commit, when its output becomes visible; since the start of the run"),
    Column("vertex", "", "of the committer"),
    Column("index", "", "subtask index of the committer"),
    Column("epochs", "", "checkpoints whose output is committed: more than 1 after aborts or a lost notification"),
    Column("records", "records", "read by the writers for this output"),
    Column("bytes", "bytes", "in files, or read by the writers if they write none"),
    Column("files", "", ""),
    Column(
        "commit_latency",
        "ms",
        "trigger of the checkpoint -> visible; -1: nothing became visible, or there is no checkpoint",
    ),
    Column("visible_latency", "ms", "oldest of its transactions opened -> visible; -1: nothing became visible"),
    Column("again", "bool", "requested again after a restore, when all of its output was visible already"),
    Column("lost_records", "records", "of transactions that were open for longer than their timeout"),
    Column("missing_files", "", "committed files that are missing or incomplete"),
)
RECOVERIES = (
    Column("restart", "", "number of the restart"),
    Column(
        "kind",
        "",
        "task, task-manager, job-manager, checkpoints (more failed ones than tolerated), rescale or instance (a new job)",
    ),
    Column("cause", "", "the failed task or host, or the reason"),
    Column("failed", "ms", "time of the failure, since the start of the run; lost JobManager: when the tasks stopped"),
    Column("detected", "ms", "when the job went to RESTARTING"),
    Column(
        "cancelled",
        "ms",
        "when all old tasks had ended; -1 here and below: not yet, or a later failure restarted the tasks again",
    ),
    Column(
        "delayed", "ms", "when the delay of the restart strategy was over, which begins when the failure is detected"
    ),
    Column("deployed", "ms", "when the tasks had slots and were deployed, after the restart delay: download begins"),
    Column(
        "lag_at_start",
        "ms",
        "time since the oldest record that a restarted source emits next was due, when tasks start",
    ),
    Column("first_record", "ms", "first record served by a restarted task, recovered records included"),
    Column("running", "ms", "when all restarted tasks ran"),
    Column(
        "caught_up",
        "ms",
        "when no more records waited, in the logs of sources and between tasks, than usual before the failure; if the job "
        "is rescaled or starts from a snapshot: when no records waited in the logs",
    ),
    Column("downtime", "ms", "failure -> all restarted tasks run"),
    Column("tasks", "", "number of restarted tasks"),
    Column("vertices", "", "names of the vertices of the restarted tasks; empty: all tasks restart"),
    Column(
        "deployments",
        "",
        "attempts to deploy; all but the last had slots on a task manager whose loss was not detected yet",
    ),
    Column("restored_checkpoint", "", "id; 0: from the beginning"),
    Column("restored_bytes", "bytes", "state downloaded, without state on local disks"),
    Column("recovered_bytes", "bytes", "in-flight data read back"),
    Column(
        "replayed_records",
        "records",
        "emitted again: position of the sources when they stopped minus restored position",
    ),
    Column("served_again", "records", "the same of the vertices without readers; a global committer reads no records"),
)
FILES = (
    Column("owner", "", "job instance that wrote it, from 0"),
    Column("checkpoint", "", "snapshot it was written for"),
    Column("path", "", ""),
    Column("size", "bytes", ""),
    Column("scope", "", "exclusive (its checkpoint's directory), shared (the job's) or savepoint (its savepoint's)"),
    Column("physical", "", "number of the physical file that contains it (file merging); -1: it is one itself"),
    Column("job", "", "newest job instance that referenced it"),
    Column("created_by", "", "first checkpoint of that instance that referenced it"),
    Column("last_used", "", "last checkpoint of that instance that referenced it"),
    Column("deleted", "ms", "-1: not deleted"),
    Column("needed_by", "", "job/id of the snapshots retained at the end that reference it, and are lost with it"),
)
SNAPSHOTS = (
    Column("job", "", "job instance that took it, from 0"),
    Column("id", "", "checkpoint id"),
    Column("type", "", "checkpoint, full (reuses nothing), canonical or native (savepoints)"),
    Column("directory", "", "of its metadata"),
    Column("files_total", "", "files that its metadata references"),
    Column("bytes_total", "bytes", "size of these files"),
    Column("files_outside_chk_dir", "", "files in other directories than the snapshot's"),
    Column("files_outside_job_dir", "", "files in the directories of other jobs"),
    Column("owners", "", "job instances that wrote one of the files"),
    Column("chain_length", "", "number of owners that are older than the snapshot's job"),
    Column("absolute_paths", "", "files that its metadata references by an absolute path"),
    Column("self_contained", "bool", "all files are in the snapshot's directory"),
    Column("relocatable_own_dir", "bool", "restorable from a copy of the snapshot's directory alone"),
    Column("relocatable_job_dir", "", "... of its job's directory alone: yes or no; n/a for savepoints"),
    Column("relocatable_root", "bool", "... of the whole checkpoint directory of all jobs"),
    Column("restorable", "bool", "no referenced file is missing"),
    Column("would_break", "", "job/id of snapshots that are lost if this one is deleted with all files it references"),
    Column("would_break_job", "", "job/id of snapshots of other jobs that are lost if its job's directory is deleted"),
)
RESTORES = (
    Column("job", "", "job instance that started from a snapshot"),
    Column("claim", "", "claim, no-claim or legacy"),
    Column("restored_job", "", "instance that took the snapshot"),
    Column("restored_id", "", "its checkpoint id"),
    Column("restored_type", "", ""),
    Column("begun", "ms", "start of the instance"),
    Column("first_id", "", "first completed checkpoint of the instance; -1: none"),
    Column("first_type", "", ""),
    Column("first_checkpointed_size", "bytes", "written for that checkpoint"),
    Column("first_duration", "ms", "end_to_end_duration of that checkpoint"),
    Column(
        "bytes_reuploaded_first_full",
        "bytes",
        "written again because no file of the restored snapshot may be reused; 0 if files may be reused",
    ),
    Column("first_full_duration", "ms", "-1: the first checkpoint was not a full one"),
    Column(
        "time_until_old_snapshot_deletable",
        "ms",
        "begun -> no retained checkpoint of this instance needs the restored snapshot; -1: never",
    ),
    Column(
        "deletable",
        "bool",
        "at the end: the user may delete the restored snapshot without losing a newer one",
    ),
)
REQUESTS = (
    Column(
        "time",
        "s",
        "start of a second in which the object store answered a request; other kinds of storage have no rows",
    ),
    Column("put", "", "PUT and POST requests: small files, and start, parts and completion of multipart uploads"),
    Column("list", "", "LIST requests"),
    Column("get", "", "GET and HEAD requests"),
    Column("delete", "", "DELETE requests"),
    Column("refused", "", "answered with 503, as the store takes no more per second and prefix"),
    Column("written", "bytes", "in these requests"),
    Column("read", "bytes", "in these requests"),
    Column("stored", "bytes", "held at the end of the second"),
)
PATH = (
    Column("id", "", "checkpoint id; one row per part of its critical path, in order"),
    Column("part", "", "what the time is spent on"),
    Column("vertex", "", "where it is spent; empty: the coordinator"),
    Column("index", "", "subtask index; -1: the coordinator"),
    Column("upstream", "", "the subtask whose barrier is awaited; empty: no barrier"),
    Column("begin", "ns", "since the trigger"),
    Column("duration", "ns", "the parts before the last acknowledgement sum to end_to_end_duration"),
    Column("file", "", "the file that is awaited; empty: no file"),
    Column("acknowledged", "bool", "after the last acknowledgement: finalisation, notification and commit"),
)
TABLES: dict[str, tuple[Column, ...]] = {
    "checkpoints": CHECKPOINTS,
    "subtasks": SUBTASKS,
    "tasks": TASKS,
    "series": SERIES,
    "commits": COMMITS,
    "recoveries": RECOVERIES,
    "files": FILES,
    "snapshots": SNAPSHOTS,
    "restores": RESTORES,
    "path": PATH,
    "requests": REQUESTS,
}


# ---- Building tables.


def frame(table: str, rows: Iterable[Row], only: Collection[str] | None = None) -> pd.DataFrame:
    """Return rows as a table with the columns of the schema, in its order.

    Each row has all columns except computed ones.  `only`: columns to include; None: all.
    """
    columns = [column for column in TABLES[table] if only is None or column.name in only]
    packed = PackedRows([column.name for column in columns])
    for row in rows:
        packed.add(tuple(row[column.name] if column.value is None else column.value(row) for column in columns))
    return packed.frame()


def ms(ns: int) -> float:
    """Convert a time to ms.  -1, which means "did not happen", stays -1."""
    return -1.0 if ns < 0 else ns / MS


def span_ms(begin_ns: int, end_ns: int) -> float:
    """Return the difference of two times in ms, or -1 if the end is -1."""
    return -1.0 if end_ns < 0 else (end_ns - begin_ns) / MS


def task_name(name: tuple[str, int]) -> Row:
    """Return the columns that identify a subtask, from (vertex, index)."""
    return {"vertex": name[0], "index": name[1]}
