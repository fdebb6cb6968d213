"""Parse trace files: order of times, lines of untrusted files, columns and their units, and the known formats."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from gzip import BadGzipFile, GzipFile
from io import BufferedReader
from typing import BinaryIO, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.model.frozen import frozen
from sim.model.series.columns import (
    DATE,
    EXPECTED_TIMES,
    RATE_COLUMNS,
    TIME_COLUMNS,
    TimeFormat,
    detect_time_format,
    find_column,
)
from sim.model.series.monitoring import Kind, classify_name
from sim.model.text import PrintableError, printable

# ---- Rows that are out of order.

BACK, AHEAD = "time goes back", "time is ahead of the rows after it"


def out_of_order(times: NDArray[np.float64], after: float, *, strictly: bool) -> NDArray[np.str_]:
    """Return the reason why a row is out of order, for each row; "": its time follows that of the rows before it.

    A time that is larger than the next one is ahead if the next one follows the row before: one wrong time does not cost the
    rows after it.  `after`: time of the row before the first.  `strictly`: equal times count as out of order.
    """
    is_out_of_order = np.less_equal if strictly else np.less
    previous, following = np.append(after, times[:-1]), np.append(times[1:], np.inf)
    is_ahead = (times > following) & ~is_out_of_order(following, previous) & ~is_out_of_order(times, previous)
    latest = np.maximum.accumulate(np.append(after, np.where(is_ahead, -np.inf, times)))[:-1]
    return np.select([is_ahead, is_out_of_order(times, latest)], [AHEAD, BACK], "")


# ---- Lines of an untrusted file, read in bounded memory. It may have very long lines, or be a compression bomb.

MAX_LINE_BYTES = 1 << 16
"""Maximum bytes of a line; a row of numbers has a few hundred."""
MAX_EXPANSION, MAX_BYTES_AT_ANY_RATIO = 200, 100 << 20
"""Maximum compression ratio (real tables have 5 to 50, compression bombs 1000), and bytes that are accepted at any ratio."""
PEEK_BYTES = 1 << 16
"""Bytes of a file that can be inspected before it is read."""
_GZIP = b"\x1f\x8b"


class TraceFileError(PrintableError, ValueError):
    """Raised if a file cannot be read any further.  Rows that were read before are valid."""

    exit_code = 3


class TraceLine(NamedTuple):
    """A line of a file, or a row of a table."""

    number: int  # from 1
    text: str
    fault: str = ""  # reason why the line is not usable; `text` may then be its beginning only.  "": it is usable
    cells: Sequence[str] = ()  # of a usable row, which needs no `text`


class TraceContent:
    """The content of a file, decompressed if it is gzip.

    TraceFileError: the file is damaged, or a compression bomb.
    """

    def __init__(self, stream: BinaryIO, stored_bytes: int = 0) -> None:
        buffered = BufferedReader(stream, PEEK_BYTES)  # type: ignore[type-var]  # any file object will do
        self._stream = GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == _GZIP else buffered
        self._left = max(MAX_BYTES_AT_ANY_RATIO, MAX_EXPANSION * stored_bytes)  # bytes that may still be read

    def peek(self) -> bytes:
        """Return the first bytes, which are still to be read."""
        with _unpacking():
            return self._stream.peek(PEEK_BYTES)

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes."""
        with _unpacking():
            return self._stream.read(size)

    def lines(self) -> Iterator[TraceLine]:
        """Yield the lines, without their ends."""
        number = 0
        while data := self._begin_of_line():
            number += 1
            is_cut = len(data) > MAX_LINE_BYTES
            while not data.endswith(b"\n") and (rest := self._begin_of_line()):
                data = data[:MAX_LINE_BYTES] + rest[-1:]
            try:
                text, fault = data.decode("utf-8"), ""
            except UnicodeDecodeError:
                text, fault = data.decode("utf-8", errors="replace"), "is not UTF-8"
            yield TraceLine(number, text.rstrip("\r\n"), "the line is too long" if is_cut else fault)

    def _begin_of_line(self) -> bytes:
        """Return the next line with its end, or its first MAX_LINE_BYTES + 1 bytes."""
        with _unpacking():
            data = self._stream.readline(MAX_LINE_BYTES + 1)
        self._left -= len(data)
        if self._left < 0 and isinstance(self._stream, GzipFile):
            raise TraceFileError(f"expands more than {MAX_EXPANSION} times: not read any further")
        return data


@contextmanager
def _unpacking() -> Iterator[None]:
    """Turn the errors of damaged gzip files into TraceFileError."""
    try:
        yield
    except EOFError:
        raise TraceFileError("is truncated: rows after this one are missing") from None
    except (zlib.error, BadGzipFile):
        raise TraceFileError("is damaged: later rows cannot be unpacked, and earlier ones may be garbled") from None


# ---- Conversion of text columns to numbers and times. Errors are collected for each row.

Rule = tuple[str, pd.Series]
"""(message, mask of the rows that it applies to)."""


@frozen
class Parsed:
    """A parsed block of rows.  The index of all its columns and tables is the line number."""

    tables: Mapping[str, pd.DataFrame]  # kind of table -> its rows, including invalid and skipped ones
    wrong: pd.Series[str]  # reason why a row is invalid; "": valid
    passed: pd.Series[str]  # reason why a valid row belongs to no table; "": it belongs to one


@frozen
class Format:
    """A format of text tables."""

    name: str
    fits: Callable[[Sequence[str]], bool]  # returns True if a file with these column names has this format
    parse: Callable[[pd.DataFrame, ColumnReader], Parsed]  # parses a block of rows, whose cells are texts
    ordered: str = ""  # kind of table in which times must not decrease; "": any order is valid


class ColumnReader:
    """Interprets the columns of a file.  Units are detected from its first rows, and then used for all blocks of rows."""

    def __init__(self, zone: str | None = None) -> None:
        self._zone = zone  # time zone of timestamps without one
        self._time_formats = dict[str, TimeFormat]()
        self._meanings = dict[str, str]()

    def time_format(self, texts: pd.Series[str], unit_s: float | None = None) -> TimeFormat:
        """Return the format of a time column: its unit and time zone.  `unit_s`: the unit [s] if the user has chosen it."""
        column = str(texts.name)
        if column not in self._time_formats:
            time_format = detect_time_format(
                column, texts, None if unit_s is None else Fraction(unit_s).limit_denominator(10**9), self._zone
            )
            if time_format.unreadable:
                return time_format  # no time was readable; a later block may have one
            self._time_formats[column] = time_format
        return self._time_formats[column]

    def note_meaning(self, column: str, meaning: str) -> None:
        """Record how a value column is interpreted, for the note on how the file was read."""
        self._meanings[column] = meaning

    def __str__(self) -> str:
        """Return a sentence on the detected units and meanings, or "" if there are none yet."""
        times = [f"times of '{column}' are {time_format}" for column, time_format in self._time_formats.items()]
        return ", ".join(times + [f"'{column}' is taken as {what}" for column, what in self._meanings.items()])


def seconds(texts: pd.Series[str], time_format: TimeFormat) -> pd.Series[float]:
    """Return a column of times in seconds, as `TimeFormat.seconds` does for each cell.  NaN if a cell is not a time."""
    if time_format.unit_s is None:
        return dates(texts) if time_format.zone == "UTC" else _local_dates(texts, time_format)
    numbers = parse_numbers(texts)
    # divide by 1000, which is exact, instead of multiplying by 0.001
    return numbers * float(time_format.unit_s) if time_format.unit_s >= 1 else numbers / round(1 / time_format.unit_s)


def dates(texts: pd.Series[str]) -> pd.Series[float]:
    """Return ISO 8601 dates as epoch seconds; dates without a time zone are UTC.  NaN if a cell is not a date."""
    stripped = texts.str.strip()
    plain = (
        stripped.where(stripped.str.fullmatch(DATE), "")
        .str.replace(",", ".", regex=False)
        .str.replace(r" ?UTC$", "Z", regex=True)
    )
    moments = pd.to_datetime(plain, errors="coerce", utc=True, format="ISO8601").astype("datetime64[ns, UTC]")
    # not a pd.Timedelta, for which pandas 2.3 warns with NumPy 2.5
    nanoseconds = moments.astype("int64").astype(float)
    return (nanoseconds / 1e9).where(moments.notna())


def _local_dates(texts: pd.Series[str], time_format: TimeFormat) -> pd.Series[float]:
    """Return local dates as epoch seconds; NaN if a cell is not a date.

    Rows are converted one by one, because in the hour that is repeated at the end of daylight saving time the time of the previous
    row decides which of the two is meant.
    """
    times_s, before_s = list[float](), None
    for text in texts:
        time_s = time_format.seconds(text, before_s)
        before_s = before_s if time_s is None else time_s
        times_s.append(np.nan if time_s is None else float(time_s))
    return pd.Series(times_s, index=texts.index, dtype=float)


def parse_numbers(texts: pd.Series[str]) -> pd.Series[float]:
    """Return texts as numbers; NaN if a text is not a number."""
    return pd.to_numeric(texts, errors="coerce").astype(float)


def no_reasons(index: pd.Index) -> pd.Series[str]:
    """Return an empty reason for each row."""
    return pd.Series("", index=index, dtype=object)


def first_reasons(*rules: Rule) -> pd.Series[str]:
    """Return, for each row, the message of the first rule that applies to it, or ""."""
    reasons = no_reasons(rules[0][1].index)
    for reason, applies in rules:
        reasons = reasons.mask((reasons == "") & applies, reason)
    return reasons


def _number_rules(name: str, texts: pd.Series[str], values: pd.Series[float]) -> list[Rule]:
    """Return the rules for texts that are not finite numbers >= 0.  Blank texts are valid: they are missing values."""
    is_filled = texts.str.strip() != ""
    return [
        (f"{name} is not a number", is_filled & values.isna()),
        (f"{name} is not finite", is_filled & _not_finite(values)),
        (f"{name} is negative", is_filled & (values < 0)),
    ]


def parse_times(
    texts: pd.DataFrame, column: str | None, reader: ColumnReader, unit_s: float | None = None
) -> tuple[pd.Series[float], list[Rule]]:
    """Return (times [s], rules) of a time column.  None: the column with a known name."""
    column = column or find_column(TIME_COLUMNS, list(texts.columns)) or texts.columns[0]
    time_format = reader.time_format(texts[column], unit_s)
    t_s, why = seconds(texts[column], time_format), f"{column} is not a time"
    if time_format.unreadable:
        why += f": expected {EXPECTED_TIMES}, not '{printable(time_format.unreadable[:40])}'"
    return t_s, [(why, _not_finite(t_s))]


def _not_finite(values: pd.Series[float]) -> pd.Series[bool]:
    return values.isna() | values.isin([np.inf, -np.inf])


# ---- Known formats of text tables, recognized by their column names. A format parses a block of text rows into rows of tables, and
# gives a reason for each invalid row.

SCALE_HINT = "--per '1 s' takes its numbers as they are, --per '5 min' as records in so long"


def recognised(columns: Sequence[str]) -> Format | None:
    """Return the first format that fits these column names, or None."""
    return next((format_ for format_ in FORMATS if format_.fits(columns)), None)


def rates(
    texts: pd.DataFrame,
    reader: ColumnReader,
    *,
    time: str | None = None,
    rate: str | None = None,
    unit_s: float | None = None,
    per_s: float | None = None,
) -> Parsed:
    """Parse a time series of rates.  A blank cell is a missing observation.

    `time`, `rate`: names of the columns; None: those with known names.  `unit_s`: unit of numeric times [s]; None: detected.
    `per_s`: values are records in this period [s]; None: records per second.
    Raises TraceFileError if the name of the rate column shows that it is another quantity, and `per_s` is None.
    """
    rate = rate or find_column(RATE_COLUMNS, list(texts.columns)) or texts.columns[1]
    if per_s is None and (metric := classify_name(rate)).kind is Kind.OTHER:
        raise TraceFileError(metric.refusal(rate, f"; {SCALE_HINT}"))
    reader.note_meaning(rate, "records per second" if per_s in (None, 1) else f"records in {per_s:g} s")
    t_s, rules = parse_times(texts, time, reader, unit_s)
    numbers = parse_numbers(texts[rate])
    rows = pd.DataFrame({"t_s": t_s, "rate": numbers / (per_s or 1.0)})
    return _parsed("rates", rows, [*rules, *_number_rules(rate, texts[rate], numbers)])


def events(
    texts: pd.DataFrame,
    reader: ColumnReader,
    *,
    kind: str,
    time: str | None = None,
    unit_s: float | None = None,
) -> Parsed:
    """Parse an event per row.  `kind`: ``arrivals`` or ``failures``; arrivals are counted per second later (`sim.studies.traces.reading`)."""
    t_s, rules = parse_times(texts, time, reader, unit_s)
    return _parsed(kind, pd.DataFrame({"t_s": t_s}), rules)


def _parsed(table: str, rows: pd.DataFrame, rules: Sequence[Rule], passed: Rule | None = None) -> Parsed:
    """Return rows of one table.  `rules`: of invalid rows.  `passed`: rule of the rows that belong to no table."""
    reasons = no_reasons(rows.index) if passed is None else first_reasons(passed)
    return Parsed({table: rows}, first_reasons(*rules), reasons)


def _task_events(texts: pd.DataFrame, _: ColumnReader) -> Parsed:
    """Parse task events of Google's cluster trace of 2011, which has times in µs and no header.

    Submitted tasks are arrivals.  Evicted, failed and lost tasks are failures.
    """
    time, event = parse_numbers(texts.iloc[:, 0]) / 10**6, texts.iloc[:, 5]
    wrong = first_reasons(
        ("time is not a time", _not_finite(time)),
        ("time is negative", time < 0),
        ("event type is unknown", ~event.isin(list("012345678"))),
    )
    rows, has_failed = pd.DataFrame({"t_s": time}), event.isin(_FAILED)
    passed = first_reasons(("neither the submission of a task nor its failure", (event != "0") & ~has_failed))
    return Parsed({"arrivals": rows[event == "0"], "failures": rows[has_failed]}, wrong, passed)


def _node_intervals(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Parse intervals of nodes of the Failure Trace Archive; event type 0: the node is down, 1: it is up."""
    begin, rules = parse_times(texts, "start_epoch_s", reader)
    end, end_rules = parse_times(texts, "stop_epoch_s", reader)
    event = texts["event_type"].str.strip()
    rules += [*end_rules, ("ends before it begins", end < begin), ("event type is unknown", ~event.isin(["0", "1"]))]
    return _parsed("failures", pd.DataFrame({"t_s": begin}), rules, passed=("the node is up", event == "1"))


def _kills(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Parse kills in several runs with different checkpoint intervals.

    The trace files of a run have names that end in ``chk<interval in ms>``, which is the column `run`.
    """
    parsed = events(texts, reader, kind="failures", time="kill_epoch_s")
    if "chk_interval_ms" not in texts:
        return parsed
    rows = parsed.tables["failures"].assign(run="chk" + texts["chk_interval_ms"].str.strip())
    return replace(parsed, tables={"failures": rows})


def _injected(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Parse events of an experiment as failures, except rescales, which are planned."""
    parsed = events(texts, reader, kind="failures", time="epoch_s")
    return replace(parsed, passed=first_reasons(("a rescale is no failure", texts["event"].str.strip() == "rescale")))


TASK_EVENT_COLUMNS = 13
_FAILED = ("2", "3", "6")
"""Task events: evicted, failed, lost."""

_INTERVAL_COLUMNS = {"node", "event_type", "start_epoch_s", "stop_epoch_s"}
_TOKEN_COLUMNS = {"contexttokens", "generatedtokens"}
"""Further columns that traces of requests to language models have."""


def _is_arrivals(names: Sequence[str]) -> bool:
    """Return True if there is a time column and no other column, except numbers of tokens."""
    time = find_column(TIME_COLUMNS, names)
    return time is not None and {name.lower() for name in names} - {time.lower()} <= _TOKEN_COLUMNS


FORMATS = (
    Format("node-intervals", lambda names: set(names) >= _INTERVAL_COLUMNS, _node_intervals),
    Format("kills", lambda names: "kill_epoch_s" in names, _kills),
    Format("events", lambda names: {"epoch_s", "event"} <= set(names), _injected),
    Format(
        "rates",
        lambda names: bool(find_column(TIME_COLUMNS, names) and find_column(RATE_COLUMNS, names)),
        rates,
        ordered="rates",
    ),
    Format("arrivals", _is_arrivals, partial(events, kind="arrivals"), ordered="arrivals"),
    Format(
        "task-events",
        lambda names: len(names) == TASK_EVENT_COLUMNS and names[0].isdigit(),
        _task_events,
        ordered="arrivals",
    ),
)
