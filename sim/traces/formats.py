"""The formats of traces, told apart by the names of their columns, and what a row of each means.

A format turns a block of rows, all texts, into columns of one table; which cells cannot be what they should be is told beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

__all__ = ["FORMATS", "Format", "Parsed", "recognised"]

_TIMES = ("epoch_s", "timestamp", "date", "time", "t", "TIMESTAMP")
_RATES = ("offered_rec_s", "rate", "throughput_rec_s", "messages", "requests", "value")
_LAGS = ("consumer_lag_rec", "lag")


@dataclass(frozen=True, slots=True)
class Parsed:
    rows: pd.DataFrame  # columns of the table; index as the texts'
    wrong: pd.Series[str]  # why a row is none; empty: it is one
    silent: pd.Series[bool]  # nothing was observed: no row, and nothing wrong


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    kind: str  # table, or arrivals
    fits: Callable[[Sequence[str]], bool]
    parse: Callable[[pd.DataFrame], Parsed]
    ordered: bool = True  # time never goes back


def recognised(columns: Sequence[str]) -> Format | None:
    """By the first line of the file."""
    return next((format_ for format_ in FORMATS if format_.fits(columns)), None)


def _first(names: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((name for name in names if name in columns), None)


def _seconds(texts: pd.Series[str]) -> pd.Series[float]:
    """Numbers, or dates; NaN: neither."""
    numbers = pd.to_numeric(texts, errors="coerce")
    if not numbers.isna().all():
        return numbers.astype(float)
    moments = pd.to_datetime(texts, errors="coerce", utc=True, format="ISO8601")
    return (moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)


def _number(texts: pd.Series[str]) -> pd.Series[float]:
    return pd.to_numeric(texts, errors="coerce").astype(float)


def _blank(texts: pd.Series[str]) -> pd.Series[bool]:
    return texts.str.strip() == ""


def _wrong(*rules: tuple[str, pd.Series[bool]]) -> pd.Series[str]:
    """The first rule that a row breaks."""
    told = pd.Series("", index=rules[0][1].index, dtype=object)
    for reason, broken in rules:
        told = told.mask((told == "") & broken, reason)
    return told


def _unusable(name: str, texts: pd.Series[str], values: pd.Series[float]) -> list[tuple[str, pd.Series[bool]]]:
    """Texts that are no finite number from 0 on; blank ones may be."""
    given = ~_blank(texts)
    return [
        (f"{name} is no number", given & values.isna()),
        (f"{name} is not finite", given & _not_finite(values)),
        (f"{name} is negative", given & (values < 0)),
    ]


def _time(texts: pd.DataFrame, column: str) -> tuple[pd.Series[float], list[tuple[str, pd.Series[bool]]]]:
    time = _seconds(texts[column])
    return time, [(f"{column} is no time", _not_finite(time))]


def _not_finite(values: pd.Series[float]) -> pd.Series[bool]:
    return values.isna() | values.isin([np.inf, -np.inf])


def _rates(texts: pd.DataFrame) -> Parsed:
    columns = list(texts.columns)
    time, rules = _time(texts, _first(_TIMES, columns) or columns[0])
    found = {"rate": _first(_RATES, columns), "latency_ms": _first(("latency_ms",), columns), "lag": _first(_LAGS, columns)}
    rows = pd.DataFrame({"t_s": time})
    for name, column in found.items():
        rows[name] = np.nan if column is None else _number(texts[column])
        if column is not None:
            rules += _unusable(column, texts[column], rows[name])
    told = [column for column in found.values() if column is not None]
    silent = pd.concat([_blank(texts[column]) for column in told], axis=1).all(axis=1)
    return Parsed(rows, _wrong(*rules), silent)


def _arrivals(texts: pd.DataFrame) -> Parsed:
    time, rules = _time(texts, _first(_TIMES, list(texts.columns)) or texts.columns[0])
    return Parsed(pd.DataFrame({"t_s": time}), _wrong(*rules), pd.Series(False, index=texts.index))


def _task_events(texts: pd.DataFrame) -> Parsed:
    """Google's cluster trace of 2011: microseconds; event type 0 is a submission."""
    time, event = _number(texts.iloc[:, 0]) / 1e6, texts.iloc[:, 5]
    wrong = _wrong(("time is no time", _not_finite(time)), ("event type is unknown", ~event.isin(list("012345678"))))
    return Parsed(pd.DataFrame({"t_s": time}), wrong, event != "0")


def _speeds(texts: pd.DataFrame) -> Parsed:
    time, rules = _time(texts, "starttime")
    speed = _number(texts["value"])
    rules += _unusable("value", texts["value"], speed)
    rules.append(("value is 0: no speed", speed == 0))
    rows = pd.DataFrame({"t_s": time, "series": texts["VM_id"], "speed": speed})
    return Parsed(rows, _wrong(*rules), _blank(texts["value"]))


def _intervals(texts: pd.DataFrame) -> Parsed:
    """Node intervals of the Failure Trace Archive: event type 0 is down."""
    begin, end = _number(texts["start_epoch_s"]), _number(texts["stop_epoch_s"])
    rules = [("start_epoch_s is no time", begin.isna()), ("stop_epoch_s is no time", end.isna()), ("ends before it begins", end < begin)]
    rows = pd.DataFrame({"t_s": begin, "lasts_s": end - begin, "what": texts["node"]})
    return Parsed(rows, _wrong(*rules), texts["event_type"].str.strip() != "0")


def _kills(texts: pd.DataFrame) -> Parsed:
    time, rules = _time(texts, "kill_epoch_s")
    what = "interval " + texts["chk_interval_ms"] + " ms" if "chk_interval_ms" in texts else "kill"
    return Parsed(pd.DataFrame({"t_s": time, "lasts_s": np.nan, "what": what}), _wrong(*rules), pd.Series(False, index=texts.index))


def _events(texts: pd.DataFrame) -> Parsed:
    time, rules = _time(texts, "epoch_s")
    rows = pd.DataFrame({"t_s": time, "lasts_s": np.nan, "what": texts["event"]})
    return Parsed(rows, _wrong(*rules), pd.Series(False, index=texts.index))


TASK_EVENT_COLUMNS = 13

_INTERVALS = {"node", "event_type", "start_epoch_s", "stop_epoch_s"}

FORMATS = (
    Format("node intervals", "failures", lambda names: set(names) >= _INTERVALS, _intervals, ordered=False),
    Format("kills", "failures", lambda names: "kill_epoch_s" in names, _kills, ordered=False),
    Format("events", "failures", lambda names: {"epoch_s", "event"} <= set(names), _events, ordered=False),
    Format("speeds", "factors", lambda names: {"value", "starttime", "VM_id"} <= set(names), _speeds, ordered=False),
    Format("rates", "rates", lambda names: bool(_first(_TIMES, names) and _first(_RATES, names)), _rates),
    Format("arrivals", "arrivals", lambda names: _first(_TIMES, names) is not None, _arrivals),
    Format("cluster task events", "arrivals", lambda names: len(names) == TASK_EVENT_COLUMNS and names[0].isdigit(), _task_events),
)
