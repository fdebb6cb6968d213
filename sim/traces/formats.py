"""The formats of text tables, recognised by the names of their columns, and the meaning of their rows.

A format turns a block of rows, all texts, into rows of tables, and reports cells with impossible values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from sim.series.headers import RATES, TIMES, first_of
from sim.series.metrics import Kind, metric_of
from sim.traces.lines import TraceFileError
from sim.traces.parsing import ColumnReader, Format, Parsed, Rule, blank, first_wrong, never, number, time_of, unusable

LATENCIES, LAGS = ("latency_ms",), ("consumer_lag_rec", "lag")
TO_OVERRIDE = "--per '1 s' takes its numbers as they are, --per '5 min' as records in so long"
NOT_OBSERVED = "nothing was observed"


def recognised(columns: Sequence[str]) -> Format | None:
    """The format for the column names in the first line of a file."""
    return next((format_ for format_ in FORMATS if format_.fits(columns)), None)


def rates(
    texts: pd.DataFrame, reader: ColumnReader, *, time: str, rate: str, unit_s: float | None = None, per_s: float | None = None
) -> Parsed:
    """A series of arrived or served records, with latency and lag if there are such columns.  A blank is a missing observation.

    `per_s`: values count so long; None: they are per second.  TraceFileError: by the name of their column they are something else.
    """
    if per_s is None and (metric := metric_of(rate)).kind is Kind.OTHER:
        raise TraceFileError(metric.refusal(rate, f"; {TO_OVERRIDE}"))
    reader.take(rate, "records per second" if per_s in (None, 1) else f"records in {per_s:g} s")
    columns = list(texts.columns)
    t_s, rules = time_of(texts, time, reader, unit_s)
    found = {"rate": rate, "latency_ms": first_of(LATENCIES, columns), "lag": first_of(LAGS, columns)}
    rows = pd.DataFrame({"t_s": t_s})
    for name, column in found.items():
        rows[name] = np.nan if column is None else number(texts[column])
        if column is not None:
            rules += unusable(column, texts[column], rows[name])
    rows["rate"] /= per_s or 1.0
    return Parsed({"rates": rows}, first_wrong(*rules), never(texts.index))


def arrivals(texts: pd.DataFrame, reader: ColumnReader, *, time: str, unit_s: float | None = None) -> Parsed:
    t_s, rules = time_of(texts, time, reader, unit_s)
    return Parsed({"arrivals": pd.DataFrame({"t_s": t_s})}, first_wrong(*rules), never(texts.index))


def speeds(texts: pd.DataFrame, reader: ColumnReader, *, time: str, speed: str, series: str | None, unit_s: float | None = None) -> Parsed:
    t_s, rules = time_of(texts, time, reader, unit_s)
    value, speed_rules = _speed(texts, speed)
    rows = pd.DataFrame({"t_s": t_s, "series": texts[series] if series else None, "speed": value})
    return Parsed({"factors": rows}, first_wrong(*rules, *speed_rules), never(texts.index).mask(blank(texts[speed]), NOT_OBSERVED))


def events(
    texts: pd.DataFrame, reader: ColumnReader, *, time: str, what: str | None = None, lasts: str | None = None, unit_s: float | None = None
) -> Parsed:
    """A failure per row, with its duration in seconds."""
    t_s, rules = time_of(texts, time, reader, unit_s)
    lasts_s = number(texts[lasts]) if lasts else pd.Series(np.nan, index=texts.index)
    if lasts:
        rules += unusable(lasts, texts[lasts], lasts_s)
    rows = pd.DataFrame({"t_s": t_s, "lasts_s": lasts_s, "what": texts[what] if what else "failure"})
    return Parsed({"failures": rows}, first_wrong(*rules), never(texts.index))


def _speed(texts: pd.DataFrame, column: str) -> tuple[pd.Series[float], list[Rule]]:
    speed = number(texts[column])
    return speed, [*unusable(column, texts[column], speed), (f"{column} is 0: no speed", speed == 0)]


def _recognised_rates(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    columns = list(texts.columns)
    return rates(texts, reader, time=first_of(TIMES, columns) or columns[0], rate=first_of(RATES, columns) or columns[1])


def _recognised_arrivals(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    return arrivals(texts, reader, time=first_of(TIMES, list(texts.columns)) or texts.columns[0])


def _task_events(texts: pd.DataFrame, _: ColumnReader) -> Parsed:
    """Google's cluster trace of 2011, in microseconds: submissions are arrivals; evicted, failed and lost tasks are failures."""
    time, event, machine = number(texts.iloc[:, 0]) / 10**6, texts.iloc[:, 5], texts.iloc[:, 4]
    what = event.map(_TASK_FAILURES)
    wrong = first_wrong(
        ("time is no time", time.isna() | time.isin([np.inf, -np.inf])),
        ("time is negative", time < 0),
        ("event type is unknown", ~event.isin(list("012345678"))),
    )
    failures = pd.DataFrame({"t_s": time, "lasts_s": np.nan, "what": what + " on machine " + machine.where(machine != "", "unknown")})
    passed = never(texts.index).mask((event != "0") & what.isna(), "neither the submission of a task nor its failure")
    return Parsed({"arrivals": pd.DataFrame({"t_s": time})[event == "0"], "failures": failures[what.notna()]}, wrong, passed)


def _azure(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    return speeds(texts, reader, time="starttime", speed="value", series="VM_id")


def _object_store(texts: pd.DataFrame, _: ColumnReader) -> Parsed:
    """Summaries of a benchmark, without times; the median of an operation counts as usual."""
    speed, rules = _speed(texts, "throughput_mb_s")
    series = texts["store"] + " " + texts["operation"] + " of " + texts["object_mb"] + " MB, " + texts["clients"] + " clients"
    rows = pd.DataFrame({"t_s": np.nan, "series": series, "speed": speed, "usual_of": series})
    return Parsed({"factors": rows}, first_wrong(*rules), never(texts.index).mask(blank(texts["throughput_mb_s"]), NOT_OBSERVED))


def _intervals(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Node intervals of the Failure Trace Archive: event type 0 is down."""
    begin, rules = time_of(texts, "start_epoch_s", reader)
    end, end_rules = time_of(texts, "stop_epoch_s", reader)
    event = texts["event_type"].str.strip()
    rules += [*end_rules, ("ends before it begins", end < begin), ("event type is unknown", ~event.isin(["0", "1"]))]
    rows = pd.DataFrame({"t_s": begin, "lasts_s": end - begin, "what": texts["node"]})
    return Parsed({"failures": rows}, first_wrong(*rules), never(texts.index).mask(event == "1", "the node is up"))


def _kills(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Kills in several runs with different intervals: the files of a run are named chk<ms>."""
    parsed = events(texts, reader, time="kill_epoch_s")
    rows = parsed.tables["failures"].assign(what="kill")
    if "chk_interval_ms" in texts:
        rows["run"] = "chk" + texts["chk_interval_ms"].str.strip()
    return Parsed({"failures": rows}, parsed.wrong, parsed.passed)


def _injected(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Events of an experiment: what an operator wants, as a rescale, stops a job and is no failure."""
    parsed = events(texts, reader, time="epoch_s", what="event")
    return Parsed(parsed.tables, parsed.wrong, parsed.passed.mask(texts["event"].str.strip() == "rescale", "a rescale is no failure"))


def _workers(texts: pd.DataFrame, _: ColumnReader) -> Parsed:
    """A killed worker under several engines: seconds of the run without output."""
    is_failure = texts["metric"] == "failure_at_s"
    t_s = number(texts["value"].where(is_failure, "0"))
    rows = pd.DataFrame({"t_s": t_s, "lasts_s": np.nan, "what": "worker killed: " + texts["engine"] + " " + texts["semantics"]})
    passed = never(texts.index).mask(~is_failure, "no time of a failure")
    return Parsed({"failures": rows}, first_wrong(("value is no time", t_s.isna())), passed)


def _log_lines(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Lines of logs, as numbers."""
    time, rules = time_of(texts, "trigger_epoch_ms", reader, 1e-3)
    rows = pd.DataFrame({"t_s": time, "type": "CHECKPOINT", "status": "COMPLETED"})
    for name, column in (("id", "checkpoint_id"), ("end_to_end_duration_ms", "duration_ms"), ("checkpointed_size", "size_bytes")):
        rows[name] = number(texts[column])
        rules += unusable(column, texts[column], rows[name])
    untimed = blank(texts["trigger_epoch_ms"])
    rules[0] = (rules[0][0], rules[0][1] & ~untimed)
    return Parsed({"checkpoints": rows}, first_wrong(*rules), never(texts.index).mask(blank(texts["duration_ms"]), NOT_OBSERVED))


def _savepoints(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    time, rules = time_of(texts, "save_start_local", reader)
    rows = pd.DataFrame({"t_s": time, "type": "SAVEPOINT", "status": "COMPLETED", "end_to_end_duration_ms": number(texts["save_ms"])})
    rules += unusable("save_ms", texts["save_ms"], rows["end_to_end_duration_ms"])
    return Parsed({"checkpoints": rows}, first_wrong(*rules), never(texts.index))


TASK_EVENT_COLUMNS = 13
_TASK_FAILURES = {"2": "evicted", "3": "failed", "6": "lost"}

_INTERVALS = {"node", "event_type", "start_epoch_s", "stop_epoch_s"}
_OBJECT_STORE = {"store", "operation", "object_mb", "clients", "throughput_mb_s"}
_LOG_LINES = {"checkpoint_id", "trigger_epoch_ms", "size_bytes", "duration_ms"}
_TOKENS = {"contexttokens", "generatedtokens"}
"""Columns next to arrivals of requests to a language model."""


def _is_arrivals(names: Sequence[str]) -> bool:
    """Whether there are times, and no other column that could be a series."""
    time = first_of(TIMES, names)
    return time is not None and {name.lower() for name in names} - {time.lower()} <= _TOKENS


FORMATS = (
    Format("node-intervals", lambda names: set(names) >= _INTERVALS, _intervals),
    Format("kills", lambda names: "kill_epoch_s" in names, _kills),
    Format("events", lambda names: {"epoch_s", "event"} <= set(names), _injected),
    Format("worker-failures", lambda names: {"engine", "semantics", "metric", "value"} <= set(names), _workers),
    Format("speeds", lambda names: {"value", "starttime", "VM_id"} <= set(names), _azure),
    Format("object-store", lambda names: set(names) >= _OBJECT_STORE, _object_store),
    Format("log-lines", lambda names: set(names) >= _LOG_LINES, _log_lines),
    Format("savepoints", lambda names: {"save_start_local", "save_ms"} <= set(names), _savepoints),
    Format("rates", lambda names: bool(first_of(TIMES, names) and first_of(RATES, names)), _recognised_rates, ordered="rates"),
    Format("arrivals", _is_arrivals, _recognised_arrivals, ordered="arrivals"),
    Format("task-events", lambda names: len(names) == TASK_EVENT_COLUMNS and names[0].isdigit(), _task_events, ordered="arrivals"),
)
