"""Parsing of trace files: lines, columns, units, the known formats, and the order of time."""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import BinaryIO, NamedTuple

import numpy as np
import pandas as pd

from sim.model.series.tables import DATE, EXPECTED, RATES, TIMES, Clock, Kind, clock_of, first_of, metric_of
from sim.model.text import PrintableError, printable

# ---- Rows whose times go back. As few as possible are dropped, so that a single wrong row does not affect those after it.

BACK, AHEAD = "time goes back", "time is ahead of the rows after it"


def out_of_order(times: Sequence[float], after: float, *, strictly: bool) -> dict[int, str]:
    """Return {position: reason} of the fewest rows to drop so that times increase from `after` on.

    The remaining rows are the longest increasing subsequence, found by patience sorting in O(n log n).  `strictly`: equal
    times are not allowed.
    """
    place = bisect_left if strictly else bisect_right
    # last times of the best subsequences by length; predecessor of each row
    ends, positions, before = list[float](), list[int](), list[int]()
    for i, time in enumerate(times):
        if time < after or (strictly and time == after):
            before.append(-2)  # not part of any subsequence
            continue
        at = place(ends, time)
        before.append(positions[at - 1] if at else -1)
        if at == len(ends):
            ends.append(time)
            positions.append(i)
        elif time < ends[at]:  # of equal times the first
            ends[at], positions[at] = time, i
    kept = set[int]()
    i = positions[-1] if positions else -1
    while i >= 0:
        kept.add(i)
        i = before[i]
    reasons, latest = dict[int, str](), after
    for i, time in enumerate(times):
        if i in kept:
            latest = time
        else:
            reasons[i] = BACK if time < latest or (strictly and time == latest) else AHEAD
    return reasons


# ---- Lines of an untrusted file, which may have long lines or be compressed several times, in bounded memory.

BLOCK = 1 << 20
MAX_LINE = 1 << 16
"""Maximum bytes of a line; rows of numbers have hundreds."""
MAX_EXPANSION, HARMLESS = 200, 100 << 20
"""Maximum compression ratio: real tables have 5 to 50, bombs 1000.  Content up to 100 MB is always accepted."""
GZIP = b"\x1f\x8b"


class TraceFileError(PrintableError, ValueError):
    """Raised if reading cannot continue.  Rows before are valid."""

    exit_code = 3


class TraceLine(NamedTuple):
    """A line of a file."""

    number: int  # from 1
    text: str
    fault: str = ""  # reason why it is not a row; then `text` is its beginning


def lines(stream: BinaryIO) -> Iterator[TraceLine]:
    """Yield lines without line ends.  TraceFileError: the file is damaged or a compression bomb."""
    number, kept, skipping = 0, b"", False
    for block in unpacked(stream):
        *ended, rest = (kept + block).split(b"\n")
        for line in ended:
            number += 1
            yield _line(number, line, cut=skipping)
            skipping = False
        if len(rest) > MAX_LINE:  # keep the beginning only
            rest, skipping = rest[:MAX_LINE], True
        kept = rest
    if kept:
        yield _line(number + 1, kept, cut=skipping)


def _line(number: int, data: bytes, *, cut: bool) -> TraceLine:
    if cut or len(data) > MAX_LINE:
        return TraceLine(number, data[:MAX_LINE].decode("utf-8", errors="replace"), "the line is too long")
    try:
        return TraceLine(number, data.decode("utf-8").rstrip("\r"))
    except UnicodeDecodeError:
        return TraceLine(number, data.decode("utf-8", errors="replace").rstrip("\r"), "is not UTF-8")


def unpacked(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the decompressed content in blocks.  TraceFileError: the file is damaged or a compression bomb."""
    first = stream.read(BLOCK)
    if first[: len(GZIP)] == GZIP:
        yield from _unpacked(first, stream)
        return
    while first:
        yield first
        first = stream.read(BLOCK)


def _unpacked(data: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """Decompress gzip, which may have several members."""
    read = expanded = 0
    unpack, within = zlib.decompressobj(wbits=31), False
    while data:
        read += len(data)
        while data:
            try:
                block = unpack.decompress(data, BLOCK)
            except zlib.error:
                raise TraceFileError(
                    "is damaged: later rows cannot be unpacked, and earlier ones may be garbled"
                ) from None
            expanded += len(block)
            if expanded > HARMLESS and expanded > MAX_EXPANSION * read:
                raise TraceFileError(f"expands more than {MAX_EXPANSION} times: not read any further")
            yield block
            data, within = unpack.unconsumed_tail, not unpack.eof
            if unpack.eof:
                data, unpack = unpack.unused_data, zlib.decompressobj(wbits=31)
        data = stream.read(BLOCK)
    if within:
        raise TraceFileError("is truncated: rows after this one are missing")


# ---- Conversion of text columns to numbers and times, with errors by row.

Rule = tuple[str, pd.Series]
"""(reason, rows that break it)"""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed block of rows, indexed by line."""

    tables: Mapping[str, pd.DataFrame]  # kind -> its rows, wrong and skipped ones included
    wrong: pd.Series[str]  # reason why a row is invalid; "": valid
    passed: pd.Series[str]  # reason why a valid row belongs to no table; "": it belongs to one


@dataclass(frozen=True, slots=True)
class Format:
    """A format of text tables."""

    name: str
    fits: Callable[[Sequence[str]], bool]  # (column names in the first line) -> True if it is this format
    parse: Callable[[pd.DataFrame, ColumnReader], Parsed]
    ordered: str = ""  # kind of table in which times must not decrease


class ColumnReader:
    """Reader of a file's columns.  Units are detected from the first rows, and used for all blocks."""

    def __init__(self, zone: str | None = None) -> None:
        self._zone = zone  # time zone of timestamps without one
        self._clocks = dict[str, Clock]()
        self._meanings = dict[str, str]()

    def clock(self, texts: pd.Series[str], unit_s: float | None = None) -> Clock:
        """Return the clock (unit and zone) of a time column."""
        column = str(texts.name)
        if column not in self._clocks:
            clock = clock_of(
                column, texts, None if unit_s is None else Fraction(unit_s).limit_denominator(10**9), self._zone
            )
            if clock.unread:
                return clock  # a later block may tell
            self._clocks[column] = clock
        return self._clocks[column]

    def take(self, column: str, as_what: str) -> None:
        """Record how a value column is interpreted."""
        self._meanings[column] = as_what

    def __str__(self) -> str:
        """Return a sentence on detected units and meanings, or ""."""
        times = [f"times of '{column}' are {clock}" for column, clock in self._clocks.items()]
        return ", ".join(times + [f"'{column}' is taken as {what}" for column, what in self._meanings.items()])


def seconds(texts: pd.Series[str], clock: Clock) -> pd.Series[float]:
    """Return a column of times in seconds, like `Clock.seconds` of each cell; NaN: not a time."""
    if clock.unit_s is None:
        return dates(texts) if clock.zone == "UTC" else _local_dates(texts, clock)
    numbers = number(texts)
    # divide by 1000, which is exact, instead of multiplying by 0.001
    return numbers * float(clock.unit_s) if clock.unit_s >= 1 else numbers / round(1 / clock.unit_s)


def dates(texts: pd.Series[str]) -> pd.Series[float]:
    """Return ISO 8601 dates (default: UTC) as epoch seconds; NaN: not a date."""
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


def _local_dates(texts: pd.Series[str], clock: Clock) -> pd.Series[float]:
    """Convert rows one by one: an hour repeated at the end of DST is resolved by the previous row."""
    found, before = list[float](), None
    for text in texts:
        at = clock.seconds(text, before)
        before = before if at is None else at
        found.append(np.nan if at is None else float(at))
    return pd.Series(found, index=texts.index, dtype=float)


def number(texts: pd.Series[str]) -> pd.Series[float]:
    return pd.to_numeric(texts, errors="coerce").astype(float)


def blank(texts: pd.Series[str]) -> pd.Series[bool]:
    return texts.str.strip() == ""


def never(index: pd.Index) -> pd.Series[str]:
    return pd.Series("", index=index, dtype=object)


def first_wrong(*rules: Rule) -> pd.Series[str]:
    """Return the first rule that each row breaks, or ""."""
    reasons = never(rules[0][1].index)
    for reason, broken in rules:
        reasons = reasons.mask((reasons == "") & broken, reason)
    return reasons


def unusable(name: str, texts: pd.Series[str], values: pd.Series[float]) -> list[Rule]:
    """Yield rules for texts that are not finite numbers >= 0; blank texts are allowed."""
    filled = ~blank(texts)
    return [
        (f"{name} is not a number", filled & values.isna()),
        (f"{name} is not finite", filled & _not_finite(values)),
        (f"{name} is negative", filled & (values < 0)),
    ]


def time_of(
    texts: pd.DataFrame, column: str, reader: ColumnReader, unit_s: float | None = None
) -> tuple[pd.Series[float], list[Rule]]:
    clock = reader.clock(texts[column], unit_s)
    time = seconds(texts[column], clock)
    why = (
        f"{column} is not a time: expected {EXPECTED}, not '{printable(clock.unread[:40])}'"
        if clock.unread
        else f"{column} is not a time"
    )
    return time, [(why, _not_finite(time))]


def _not_finite(values: pd.Series[float]) -> pd.Series[bool]:
    return values.isna() | values.isin([np.inf, -np.inf])


# ---- Known formats of text tables, detected by column names. A format converts a block of text rows to rows of tables, and
# reports invalid cells.

LATENCIES, LAGS = ("latency_ms",), ("consumer_lag_rec", "lag")
SCALE_HINT = "--per '1 s' takes its numbers as they are, --per '5 min' as records in so long"
NOT_OBSERVED = "nothing was observed"


def recognised(columns: Sequence[str]) -> Format | None:
    """Return the format for these column names, or None."""
    return next((format_ for format_ in FORMATS if format_.fits(columns)), None)


def rates(
    texts: pd.DataFrame,
    reader: ColumnReader,
    *,
    time: str,
    rate: str,
    unit_s: float | None = None,
    per_s: float | None = None,
) -> Parsed:
    """A series of arrived or served records, with latency and lag if there are such columns.  A blank is a missing observation.

    `per_s`: values count so long; None: they are per second.  TraceFileError: by the name of their column they are something else.
    """
    if per_s is None and (metric := metric_of(rate)).kind is Kind.OTHER:
        raise TraceFileError(metric.refusal(rate, f"; {SCALE_HINT}"))
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


def speeds(
    texts: pd.DataFrame, reader: ColumnReader, *, time: str, speed: str, series: str | None, unit_s: float | None = None
) -> Parsed:
    t_s, rules = time_of(texts, time, reader, unit_s)
    value, speed_rules = _speed(texts, speed)
    rows = pd.DataFrame({"t_s": t_s, "series": texts[series] if series else None, "speed": value})
    return Parsed(
        {"factors": rows}, first_wrong(*rules, *speed_rules), never(texts.index).mask(blank(texts[speed]), NOT_OBSERVED)
    )


def events(
    texts: pd.DataFrame,
    reader: ColumnReader,
    *,
    time: str,
    what: str | None = None,
    lasts: str | None = None,
    unit_s: float | None = None,
) -> Parsed:
    """Parse a failure per row, with its duration in seconds."""
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
    return rates(
        texts, reader, time=first_of(TIMES, columns) or columns[0], rate=first_of(RATES, columns) or columns[1]
    )


def _recognised_arrivals(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    return arrivals(texts, reader, time=first_of(TIMES, list(texts.columns)) or texts.columns[0])


def _task_events(texts: pd.DataFrame, _: ColumnReader) -> Parsed:
    """Parse Google's cluster trace of 2011 [us]: submissions are arrivals; evicted, failed and lost tasks are failures."""
    time, event, machine = number(texts.iloc[:, 0]) / 10**6, texts.iloc[:, 5], texts.iloc[:, 4]
    what = event.map(_TASK_FAILURES)
    wrong = first_wrong(
        ("time is not a time", time.isna() | time.isin([np.inf, -np.inf])),
        ("time is negative", time < 0),
        ("event type is unknown", ~event.isin(list("012345678"))),
    )
    failures = pd.DataFrame(
        {"t_s": time, "lasts_s": np.nan, "what": what + " on machine " + machine.where(machine != "", "unknown")}
    )
    passed = never(texts.index).mask((event != "0") & what.isna(), "neither the submission of a task nor its failure")
    return Parsed(
        {"arrivals": pd.DataFrame({"t_s": time})[event == "0"], "failures": failures[what.notna()]}, wrong, passed
    )


def _azure(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    return speeds(texts, reader, time="starttime", speed="value", series="VM_id")


def _object_store(texts: pd.DataFrame, _: ColumnReader) -> Parsed:
    """Parse benchmark summaries without times; the median of an operation is its usual speed."""
    speed, rules = _speed(texts, "throughput_mb_s")
    series = (
        texts["store"]
        + " "
        + texts["operation"]
        + " of "
        + texts["object_mb"]
        + " MB, "
        + texts["clients"]
        + " clients"
    )
    rows = pd.DataFrame({"t_s": np.nan, "series": series, "speed": speed, "usual_of": series})
    return Parsed(
        {"factors": rows}, first_wrong(*rules), never(texts.index).mask(blank(texts["throughput_mb_s"]), NOT_OBSERVED)
    )


def _intervals(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Parse node intervals of the Failure Trace Archive, in which event type 0 means down."""
    begin, rules = time_of(texts, "start_epoch_s", reader)
    end, end_rules = time_of(texts, "stop_epoch_s", reader)
    event = texts["event_type"].str.strip()
    rules += [*end_rules, ("ends before it begins", end < begin), ("event type is unknown", ~event.isin(["0", "1"]))]
    rows = pd.DataFrame({"t_s": begin, "lasts_s": end - begin, "what": texts["node"]})
    return Parsed({"failures": rows}, first_wrong(*rules), never(texts.index).mask(event == "1", "the node is up"))


def _kills(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Parse kills in several runs with different checkpoint intervals; the files of a run are named chk<ms>."""
    parsed = events(texts, reader, time="kill_epoch_s")
    rows = parsed.tables["failures"].assign(what="kill")
    if "chk_interval_ms" in texts:
        rows["run"] = "chk" + texts["chk_interval_ms"].str.strip()
    return Parsed({"failures": rows}, parsed.wrong, parsed.passed)


def _injected(texts: pd.DataFrame, reader: ColumnReader) -> Parsed:
    """Parse events of an experiment; planned ones, such as a rescale, are not failures."""
    parsed = events(texts, reader, time="epoch_s", what="event")
    return Parsed(
        parsed.tables,
        parsed.wrong,
        parsed.passed.mask(texts["event"].str.strip() == "rescale", "a rescale is no failure"),
    )


def _workers(texts: pd.DataFrame, _: ColumnReader) -> Parsed:
    """Parse kills of a worker under several engines, with the seconds without output."""
    is_failure = texts["metric"] == "failure_at_s"
    t_s = number(texts["value"].where(is_failure, "0"))
    rows = pd.DataFrame(
        {"t_s": t_s, "lasts_s": np.nan, "what": "worker killed: " + texts["engine"] + " " + texts["semantics"]}
    )
    passed = never(texts.index).mask(~is_failure, "no time of a failure")
    return Parsed({"failures": rows}, first_wrong(("value is not a time", t_s.isna())), passed)


TASK_EVENT_COLUMNS = 13
_TASK_FAILURES = {"2": "evicted", "3": "failed", "6": "lost"}

_INTERVALS = {"node", "event_type", "start_epoch_s", "stop_epoch_s"}
_OBJECT_STORE = {"store", "operation", "object_mb", "clients", "throughput_mb_s"}
_TOKENS = {"contexttokens", "generatedtokens"}
"""Further columns in traces of requests to language models."""


def _is_arrivals(names: Sequence[str]) -> bool:
    """Return True if there is a time column, and no other column that could be a series."""
    time = first_of(TIMES, names)
    return time is not None and {name.lower() for name in names} - {time.lower()} <= _TOKENS


FORMATS = (
    Format("node-intervals", lambda names: set(names) >= _INTERVALS, _intervals),
    Format("kills", lambda names: "kill_epoch_s" in names, _kills),
    Format("events", lambda names: {"epoch_s", "event"} <= set(names), _injected),
    Format("worker-failures", lambda names: {"engine", "semantics", "metric", "value"} <= set(names), _workers),
    Format("speeds", lambda names: {"value", "starttime", "VM_id"} <= set(names), _azure),
    Format("object-store", lambda names: set(names) >= _OBJECT_STORE, _object_store),
    Format(
        "rates",
        lambda names: bool(first_of(TIMES, names) and first_of(RATES, names)),
        _recognised_rates,
        ordered="rates",
    ),
    Format("arrivals", _is_arrivals, _recognised_arrivals, ordered="arrivals"),
    Format(
        "task-events",
        lambda names: len(names) == TASK_EVENT_COLUMNS and names[0].isdigit(),
        _task_events,
        ordered="arrivals",
    ),
)
