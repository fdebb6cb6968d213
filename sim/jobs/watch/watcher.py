"""The watcher of a job: look by look, its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf, isnan
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import TypeAdapter, ValidationError

from sim.jobs.watch.forecast import (
    LOWER,
    RETURN,
    TAIL,
    UPPER,
    Circumstances,
    Forecast,
    Line,
    Surprise,
)
from sim.jobs.watch.look import (
    JobObservation,
    MeasuredLook,
    SeenCheckpoint,
    causes,
    changes,
    has_new_counters,
    measured,
    over,
    times_text,
)
from sim.jobs.watch.memory import MemoryFileError, row_of
from sim.jobs.watch.reasons import explained
from sim.model.units import format_duration
from sim.results.formats import apart_text, bytes_text, ms_text, per_second_text

if TYPE_CHECKING:
    from sim.model.schema.study import ScenarioFile


# ---- Events: what a watch says, each with its time and its kind, and how times are written.

Kind = Literal[
    "forecast",
    "left",
    "within",
    "away",
    "answers",
    "strange",
    "changed",
    "restarted",
    "failed",
    "state",
    "load",
    "limit",
    "missed",
]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Something that is worth a line."""

    time_ms: int  # by our clock
    kind: Kind
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)  # its numbers, for machines

    @property
    def line(self) -> str:
        return f"{stamp(self.time_ms)}  {self.text}"

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "time": f"{moment(self.time_ms).isoformat(timespec='seconds')}",
            "kind": self.kind,
            "text": self.text,
            **self.data,
        }


def moment(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1e3, UTC)


def stamp(ms: float) -> str:
    """``2026-11-23 14:03:20``; UTC."""
    return f"{moment(ms):%Y-%m-%d %H:%M:%S}"


def clock_text(ms: float, now_ms: float) -> str:
    """``14:03:20`` of today, else with the date."""
    same_day = moment(ms).date() == moment(now_ms).date()
    return f"{moment(ms):%H:%M:%S}" if same_day else stamp(ms)


# ---- The course of a watch: all that is to be known to go on after a restart, as values that JSON can hold.

MAX_SEEN_CHECKPOINTS = 2000
"""Numbers of checkpoints that are known to be seen: more than Flink lists."""


@dataclass(slots=True)
class WatchState:
    """The course of a watch so far."""

    look: JobObservation | None = None  # the last one
    counted: JobObservation | None = None  # the last one with new counters
    seen: list[int] = field(default_factory=list)  # checkpoints of the job
    forecast: Forecast | None = None
    tail: Surprise = field(default_factory=Surprise)
    upper: Surprise = field(default_factory=Surprise)
    lower: Surprise = field(default_factory=Surprise)
    back: Surprise = field(default_factory=Surprise)
    left_ms: int | None = None  # since when checkpoints are outside of the forecast
    left_by: str = ""  # the line by which they left
    left_by_itself: bool = False  # neither load nor state had changed
    held_from_ms: int = 0  # checkpoints that were triggered earlier are of a job with other settings
    settling: int = 0  # checkpoints after a restart that are not held to the forecast
    away_ms: int | None = None  # since when the JobManager gives no answer
    sizes: dict[str, float] = field(default_factory=dict)  # vertex -> bytes when it was last told
    loads: dict[str, float] = field(default_factory=dict)  # source -> records per second when its load was last told
    is_over: bool = False  # whether checkpoints are longer than the limit, as it was told
    counts: dict[str, int] = field(default_factory=dict)  # "looks answered", "checkpoints within", ...
    strange: str = ""  # what is wrong with the answers, as it was told
    implausible: list[str] = field(default_factory=list)  # checkpoints that were left out, as they were told

    def count(self, what: str, by: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + by

    def see(self, numbers: list[int]) -> None:
        self.seen = [*self.seen, *numbers][-MAX_SEEN_CHECKPOINTS:]

    def judge_again(self) -> None:
        """Checkpoints are within the forecast again."""
        self.tail = self.upper = self.lower = self.back = Surprise()
        self.left_ms, self.left_by, self.left_by_itself = None, "", False

    def begin_again(self) -> None:
        """Judge from the beginning: the forecast is another one, or none."""
        self.judge_again()
        self.sizes, self.loads, self.is_over = {}, {}, False


_ADAPTER = TypeAdapter(WatchState)


def plain(course: WatchState) -> dict[str, Any]:
    return dict(_ADAPTER.dump_python(course, mode="json"))


def course_of(state: Mapping[str, Any], place: object) -> WatchState:
    """MemoryFileError: it is no course."""
    try:
        return _ADAPTER.validate_python(state)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise MemoryFileError(f"{place}: '{where}' is not what watch wrote: remove the file to begin anew") from None


# ---- The watcher: looks go in, events and rows come out.  It asks nothing, keeps nothing, and has no clock.

SETTLING = 3
"""Checkpoints after a restart that are not held to the forecast: the job catches up."""
MAX_RECENT = 300
"""Checkpoints and looks that are held in memory."""
RECENT_CHECKPOINTS = 20
"""Checkpoints whose percentiles are shown."""
MIN_FORECAST_CHECKPOINTS = 6
"""Completed checkpoints of a job, without the first, from which a forecast is made."""
LASTING, _OTHER_LOAD = 3, 1.4
"""A load is told of that differs by such a factor at so many looks one after the other; the load of so many is shown."""
_MIN_SHARE = 0.02
"""State of a vertex with a smaller share of all is not told of."""
_RECOVERED_SHARE = 0.8
"""Checkpoints are within a limit again from this share of it on."""
MAX_LINES = 12
"""Events of one look; of more their number is said."""


@dataclass
class Watcher:
    """The watcher of one job."""

    course: WatchState
    limit_ms: float | None = None  # for p90; None: the interval of the checkpoints
    recent: list[SeenCheckpoint] = field(default_factory=list)
    rows: list[MeasuredLook] = field(default_factory=list)
    study: ScenarioFile | None = None  # what the forecast was simulated with

    # ------------------------------------------------------------------------------------------ looks

    def away(self, now_ms: int, why: str, *, is_slow: bool = False) -> list[WatchEvent]:
        """The JobManager gave no answer.  `is_slow`: it did, but not all of them in time."""
        self.course.count("looks unanswered")
        if self.course.away_ms is not None:
            return []
        self.course.away_ms = now_ms
        return [
            WatchEvent(
                now_ms,
                "away",
                f"the JobManager {'answers too slowly' if is_slow else 'is unreachable'}: {why}; watching continues",
            )
        ]

    def strange(self, now_ms: int, why: str) -> list[WatchEvent]:
        """The answers made no sense."""
        self.course.count("looks strange")
        if self.course.strange and self.course.away_ms is None:
            return []
        events = [
            *self._answers(now_ms),
            WatchEvent(now_ms, "strange", f"unexpected response: {why}; watching continues"),
        ]
        self.course.strange = why
        return events

    def looked(self, look: JobObservation, now_ms: int) -> tuple[list[WatchEvent], list[dict[str, Any]]]:
        """Events, and rows for `sim.jobs.watch.memory`."""
        self.course.count("looks answered")
        look = look if self.course.look is None else look.after(self.course.look)
        events = [*self._answers(now_ms), *self._changed(look, now_ms)]
        self.course.look = replace(look, checkpoints=(), implausible=())
        self._measure(self.course.look)
        events += [*self._load(now_ms), *self._missed(look, now_ms), *self._left_out(look, now_ms)]
        kept: list[dict[str, Any]] = []
        for point in look.checkpoints:
            verdict, news = self._judged(point, now_ms)
            forecast = self.course.forecast
            kept.append(row_of(point, verdict, None if forecast is None else (forecast.p50_ms, forecast.p90_ms)))
            self.course.count(f"checkpoints {verdict}")
            events += news
        self.course.see([point.number for point in look.checkpoints])
        if look.checkpoints:
            events += [*self._state(now_ms), *self._limit(now_ms)]
        if len(events) > MAX_LINES:
            events = [
                *events[:MAX_LINES],
                WatchEvent(now_ms, "strange", f"and {len(events) - MAX_LINES} more at this look"),
            ]
        return events, kept

    def _measure(self, look: JobObservation) -> None:
        """A look without new counters measures nothing; the next one with them measures the time since the last."""
        before = self.course.counted
        if before is not None and not has_new_counters(before, look):
            return
        self.course.counted = look
        if before is not None and (row := measured(before, look)) is not None:
            self.rows = [*self.rows, row][-MAX_RECENT:]
            self._catch_up()

    def _catch_up(self) -> None:
        """Flink's counters are late: what the job did until the forecast was made is known at the look after it only."""
        forecast = self.course.forecast
        if forecast is None or len(later := [row for row in self.rows if row.time_ms > forecast.made_ms]) != 1:
            return
        usual = over([*[row for row in self.rows if row.time_ms <= forecast.made_ms][-RECENT_CHECKPOINTS:], *later], [])
        self.course.forecast = replace(forecast, usual=replace(forecast.usual, load=usual.load))

    def _missed(self, look: JobObservation, now_ms: int) -> Iterator[WatchEvent]:
        """Flink lists its latest checkpoints only."""
        listed, oldest = look.listed
        missed = oldest - max(self.course.seen, default=0) - 1
        if not self.course.seen or missed <= 0:
            return
        if "missed" not in self.course.counts:
            what = f"{missed} checkpoint{'' if missed == 1 else 's'}"
            text = f"{what} ended unseen: Flink lists {listed}; look more often, or raise web.checkpoints.history"
            yield WatchEvent(now_ms, "missed", text, {"missed": missed, "listed": listed})
        self.course.count("missed", missed)

    def _left_out(self, look: JobObservation, now_ms: int) -> Iterator[WatchEvent]:
        """Checkpoints whose numbers make no sense, each reported once."""
        new = [why for why in look.implausible if why not in self.course.implausible]
        yield from (WatchEvent(now_ms, "strange", f"{why}; it is left out") for why in new)
        self.course.implausible = [*self.course.implausible, *new][-MAX_LINES:]

    def _answers(self, now_ms: int) -> Iterator[WatchEvent]:
        if self.course.away_ms is not None:
            passed = format_duration(max(now_ms - self.course.away_ms, 0) // 1000 * 10**9)
            yield WatchEvent(now_ms, "answers", f"the JobManager answers again, after {passed}")
            self.course.away_ms = None
        elif self.course.strange:
            yield WatchEvent(now_ms, "answers", "the answers make sense again")
        self.course.strange = ""

    def _changed(self, look: JobObservation, now_ms: int) -> Iterator[WatchEvent]:
        before = self.course.look
        if before is None:
            return
        found = changes(before, look)
        for change in found:
            yield WatchEvent(
                now_ms, "restarted" if change.kind == "restart" else "changed", change.text, {"change": change.kind}
            )
        if any(change.kind == "restart" for change in found):
            self.course.count("restarts")
            self.course.settling = SETTLING
        if look.job != before.job:
            self.course.seen = []
        if any(change.is_other_job for change in found):
            was = (
                "the forecast was of the job before that; a new one"
                if self.course.forecast is not None
                else "a forecast"
            )
            self.course.forecast, self.study = None, None
            self.course.begin_again()
            self.course.held_from_ms = look.time_ms
            self.recent, self.rows = [], []
            yield WatchEvent(now_ms, "forecast", f"{was} is made of its next {MIN_FORECAST_CHECKPOINTS} checkpoints")

    # ------------------------------------------------------------------------------------------ the forecast

    @property
    def wants_forecast(self) -> bool:
        """Whether a forecast is missing, and there are checkpoints to make it of."""
        return self.course.forecast is None and sum(map(_counts, self.recent)) >= MIN_FORECAST_CHECKPOINTS

    def begin(self, forecast: Forecast, study: ScenarioFile, now_ms: int) -> list[WatchEvent]:
        """Hold checkpoints to this forecast from now on."""
        self.course.begin_again()
        self.course.forecast, self.study = forecast, study
        data = {"p50_ms": forecast.p50_ms, "p90_ms": forecast.p90_ms, "factors": list(forecast.factors)}
        return [WatchEvent(now_ms, "forecast", f"forecast: {forecast}, told by {forecast.history} checkpoints", data)]

    @property
    def usual(self) -> Circumstances:
        """What the job does at present."""
        return over(self.rows[-RECENT_CHECKPOINTS:], self.recent[-RECENT_CHECKPOINTS:])

    # ------------------------------------------------------------------------------------------ checkpoints

    def _judged(self, point: SeenCheckpoint, now_ms: int) -> tuple[str, list[WatchEvent]]:
        """What a checkpoint shows of the forecast: a word, and events."""
        forecast = self.course.forecast
        if point.trigger_ms < self.course.held_from_ms:
            return "of other settings", []
        self.recent = [*self.recent, point][-MAX_RECENT:]
        failed = list(_failed(point, now_ms))
        if point.is_savepoint or point.number == 1:
            return "savepoint" if point.is_savepoint else "first", failed
        if self.course.settling:
            self.course.settling -= 1
            return "after a restart", failed
        if forecast is None or point.trigger_ms < forecast.made_ms:
            return "without forecast", failed
        if point.status == "FAILED":
            return "failed", [
                *failed,
                *(self._weighed(forecast, replace(point, duration_ms=inf), now_ms) if _is_expired(point) else []),
            ]
        verdict = "beyond" if point.duration_ms > forecast.longest_p90_ms else "within"
        return verdict, self._weighed(forecast, point, now_ms)

    def _weighed(self, forecast: Forecast, point: SeenCheckpoint, now_ms: int) -> list[WatchEvent]:
        course, ms = self.course, point.duration_ms
        sides = {
            TAIL.name: ms > forecast.longest_p90_ms,
            UPPER.name: ms > forecast.longest_p50_ms,
            LOWER.name: ms < forecast.shortest_p50_ms,
        }
        if course.left_ms is not None:
            course.back = course.back.after(RETURN, point.trigger_ms, beyond=not sides[course.left_by])
            return self._within(point, now_ms) if course.back.is_sure else []
        course.tail = course.tail.after(TAIL, point.trigger_ms, beyond=sides[TAIL.name])
        course.upper = course.upper.after(UPPER, point.trigger_ms, beyond=sides[UPPER.name])
        course.lower = course.lower.after(LOWER, point.trigger_ms, beyond=sides[LOWER.name])
        sure = [
            (line, found)
            for line, found in ((TAIL, course.tail), (UPPER, course.upper), (LOWER, course.lower))
            if found.is_sure
        ]
        return [self._left(forecast, *sure[0], now_ms)] if sure else []

    def _left(self, forecast: Forecast, line: Line, found: Surprise, now_ms: int) -> WatchEvent:
        course = self.course
        course.left_ms, course.left_by, course.back = found.since_ms, line.name, Surprise()
        limits = {
            TAIL.name: forecast.longest_p90_ms,
            UPPER.name: forecast.longest_p50_ms,
            LOWER.name: forecast.shortest_p50_ms,
        }
        since = self._between(found.since_ms)
        p50, p90 = percentiles(since)
        side = "shorter" if line is LOWER else "longer"
        begun = clock_text(found.since_ms, now_ms)
        # a look that began before is of both loads
        now = over(
            [row for row in self.rows if row.time_ms - 1e3 * row.seconds >= found.since_ms] or self.rows[-1:], since
        )
        why = explained(forecast, now, (p50, p90), self.study)
        course.left_by_itself = why.is_unchanged
        text = (
            f"checkpoints leave the forecast: since {begun}, {found.beyond} of {found.count} are {side} than "
            f"{ms_text(limits[line.name])} ({forecast}); now {percentiles_text(since)}. {why.text}"
        )
        return WatchEvent(
            now_ms, "left", text, {"since_ms": found.since_ms, "p50_ms": p50, "p90_ms": p90, "why": why.plain}
        )

    def _within(self, point: SeenCheckpoint, now_ms: int) -> list[WatchEvent]:
        since_ms, begun_ms = self.course.left_ms or point.trigger_ms, self.course.back.since_ms
        learned = self._wandered(since_ms, begun_ms) if self.course.left_by_itself else ""
        self.course.judge_again()
        passed = format_duration(max(begun_ms - since_ms, 0) // 1000 * 10**9)
        text = (
            f"checkpoints are within the forecast again since {clock_text(begun_ms, now_ms)}, after {passed}{learned}"
        )
        return [WatchEvent(now_ms, "within", text)]

    def _wandered(self, since_ms: int, until_ms: int) -> str:
        """Load and state were as before: the forecast allows for what checkpoints took meanwhile, and says so."""
        forecast, since = self.course.forecast, self._between(since_ms)
        now = over([row for row in self.rows if row.time_ms - 1e3 * row.seconds >= since_ms], since)
        if forecast is None or any(cause.kind in ("load", "state") for cause in causes(forecast.usual, now)):
            return ""
        wider = forecast.wandered(*percentiles(self._between(since_ms, until_ms)))
        if wider is None or wider == forecast:
            return ""
        self.course.forecast = wider
        return f"; load and state had not changed, so the forecast allows for that from now on: {wider}"

    def _between(self, since_ms: int, until_ms: float = inf) -> list[SeenCheckpoint]:
        return [point for point in self.recent if since_ms <= point.trigger_ms < until_ms]

    # ------------------------------------------------------------------------------------------ state and limit

    @property
    def limit(self) -> float | None:
        """The limit of p90 [ms]."""
        if self.limit_ms is not None or self.study is None:
            return self.limit_ms
        interval_ns = self.study.scenarios[0].checkpoint.interval_ns
        return None if interval_ns is None else interval_ns / 1e6

    def _state(self, now_ms: int) -> Iterator[WatchEvent]:
        """State that doubled or halved since it was last told."""
        done = [point for point in self.recent if _counts(point) and point.state][-3:]
        least = _MIN_SHARE * max((sum(point.state.values()) for point in done), default=0)
        for vertex in dict.fromkeys(name for point in done for name, size in point.state.items() if size >= least):
            size = float(median(point.state.get(vertex, 0) for point in done))
            before = self.course.sizes.setdefault(vertex, size)
            if len(done) < 3 or not size or not before:
                self.course.sizes[vertex] = size
            elif not 0.5 < size / before < 2:
                self.course.sizes[vertex] = size
                text = f"state of '{vertex}' {times_text(size / before)} ({bytes_text(before)} -> {bytes_text(size)})"
                yield WatchEvent(now_ms, "state", text, {"vertex": vertex, "bytes": size, "before": before})

    def _load(self, now_ms: int) -> Iterator[WatchEvent]:
        """Load that is another one for several looks, beside what it was when it was last told; without a forecast, at the first looks."""
        rows, forecast = self.rows[-LASTING:], self.course.forecast
        if len(rows) < LASTING:
            return
        usual = over(self.rows[:LASTING], []) if forecast is None else forecast.usual
        for vertex in rows[-1].load:
            rates = [row.load[vertex] for row in rows if vertex in row.load]
            before = self.course.loads.setdefault(vertex, usual.load.get(vertex, rates[0]))
            if len(rates) < LASTING:
                continue
            if min(rates) > _OTHER_LOAD * before or max(rates) * _OTHER_LOAD < before:
                rate = over(rows[1:], []).load[vertex]  # the first may be of both loads
                self.course.loads[vertex] = rate
                factor = rate / before if before else inf
                text = f"load of '{vertex}' {times_text(factor)} ({per_second_text(before)} -> {per_second_text(rate)})"
                yield WatchEvent(
                    now_ms,
                    "load",
                    f"{text}{self._of_load(rows)}",
                    {"vertex": vertex, "per_second": rate, "before": before},
                )

    def _of_load(self, rows: Sequence[MeasuredLook]) -> str:
        """What another load does to checkpoints that had left the forecast before: their event named other causes, or none."""
        forecast = self.course.forecast
        if forecast is None or self.course.left_ms is None or not self.course.left_by_itself:
            return ""
        self.course.left_by_itself = False
        since = self._between(rows[0].time_ms - round(1e3 * rows[0].seconds))
        observed = percentiles(since)
        why = explained(forecast, over(rows, since), observed, self.study)
        return f"; checkpoints had left the forecast before; now {percentiles_text(since)}. {why.simulated}".rstrip()

    def _limit(self, now_ms: int) -> Iterator[WatchEvent]:
        done = [point for point in self.recent if _counts(point)][-RECENT_CHECKPOINTS:]
        if self.limit is None or len(done) < MIN_FORECAST_CHECKPOINTS:
            return
        p90 = percentiles(done)[1]
        is_over = p90 > self.limit * (_RECOVERED_SHARE if self.course.is_over else 1)
        if self.course.is_over != is_over:
            self.course.is_over = is_over
            side = f"longer than {ms_text(self.limit)}" if is_over else f"within {ms_text(self.limit)} again"
            text = f"checkpoints are {side}: p90 of the last {len(done)} is {apart_text(p90, self.limit, ms_text)}"
            yield WatchEvent(now_ms, "limit", text, {"p90_ms": p90, "limit_ms": self.limit, "is_over": is_over})


def percentiles(points: Sequence[SeenCheckpoint]) -> tuple[float, float]:
    """p50 and p90 of completed ones [ms]; NaN: there are none."""
    durations = [point.duration_ms for point in points if point.status == "COMPLETED" and not point.is_savepoint]
    if not durations:
        return float("nan"), float("nan")
    p50, p90 = np.quantile(durations, [0.5, 0.9])
    return float(p50), float(p90)


def percentiles_text(points: Sequence[SeenCheckpoint]) -> str:
    """``p50 100 ms, p90 200 ms``"""
    p50, p90 = percentiles(points)
    return "none completes" if isnan(p50) else f"p50 {ms_text(p50)}, p90 {ms_text(p90)}"


def _counts(point: SeenCheckpoint) -> bool:
    return point.status == "COMPLETED" and not point.is_savepoint and point.number != 1


def _is_expired(point: SeenCheckpoint) -> bool:
    return "expired" in point.failure.lower()


def _failed(point: SeenCheckpoint, now_ms: int) -> Iterator[WatchEvent]:
    if point.status == "FAILED":
        what = "savepoint" if point.is_savepoint else "checkpoint"
        why = f": {point.failure}" if point.failure else ""
        after = f" after {ms_text(point.duration_ms)}" if point.duration_ms >= 0 else ""
        yield WatchEvent(now_ms, "failed", f"{what} {point.number} failed{after}{why}", {"checkpoint": point.number})
