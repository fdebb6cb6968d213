"""Watch a job: compare each observation with the forecast and the one before, and return events and rows to store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isnan
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from sim.jobs.infer.options import NEVER_MS
from sim.jobs.source.job_log import clock
from sim.jobs.watch.forecast import (
    DEPARTURES,
    LOWER,
    RETURN,
    TAIL,
    Circumstances,
    Forecast,
    ForecastBound,
    ForecastEvidence,
    reasons,
)
from sim.jobs.watch.memory import MemoryFileError, checkpoint_row, to_utc
from sim.jobs.watch.observation import (
    Activity,
    JobObservation,
    SeenCheckpoint,
    changes,
    has_new_counters,
    mean_circumstances,
    measure,
)
from sim.model.units import format_duration
from sim.results.formats import apart_text, ms_text

# ---- Events, and the format of times.


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """An event, which is printed as one line."""

    time_ms: int  # of the local clock
    # forecast, left, within, away, answers, invalid, changed, restarted, failed, limit or missed
    kind: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)  # numbers of the text, for JSON

    @property
    def line(self) -> str:
        """The event as a line of text."""
        return f"{clock(self.time_ms)}  {self.text}"

    @property
    def facts(self) -> dict[str, Any]:
        """The event as values for JSON."""
        return {
            "time": to_utc(self.time_ms).isoformat(timespec="seconds"),
            "kind": self.kind,
            "text": self.text,
            **self.data,
        }


def clock_text(ms: int, now_ms: int) -> str:
    """Format a time in UTC, without the date if it is the same day as `now_ms`."""
    text = clock(ms)
    return text[-8:] if text[:10] == clock(now_ms)[:10] else text


# ---- The state of a watch: everything that is needed to resume it.  It is stored as JSON.

MAX_SEEN_CHECKPOINTS = 2000
"""Maximum ids of known checkpoints that are stored.  It is more than Flink lists."""


@dataclass(slots=True)
class WatchState:
    """The state of a watch, which `watch.json` stores."""

    observation: JobObservation | None = None  # the latest one, without its checkpoints
    counted: JobObservation | None = None  # the latest one with new counters
    seen: list[int] = field(default_factory=list)  # ids of known checkpoints
    recent: list[SeenCheckpoint] = field(default_factory=list)  # latest checkpoints, oldest first
    activities: list[Activity] = field(default_factory=list)  # the latest ones, oldest first
    forecast: Forecast | None = None
    evidence: dict[str, ForecastEvidence] = field(default_factory=dict)  # by name of the bound
    left_ms: int | None = None  # time at which checkpoints left the forecast; None if they are within it
    left_by: str = ""  # name of the bound that they are beyond
    settings_since_ms: int = 0  # checkpoints triggered before ran with other settings, and are not compared
    settling: int = 0  # number of checkpoints after a restart that are still to be skipped
    away_ms: int | None = None  # time at which the JobManager became unreachable; None if it answers
    failed: int = 0  # number of periodic checkpoints that failed since the last completed one
    completed_ms: int | None = None  # trigger time of the last completed checkpoint
    is_over: bool = False  # whether the last report was that checkpoints exceed the limit
    counts: Counter[str] = field(default_factory=Counter)  # "polls answered", "checkpoints within", ...
    invalid: str = ""  # last reported error in the answers; "" while they are valid

    @property
    def is_reachable(self) -> bool:
        """Whether the JobManager answers, and as Flink does."""
        return self.away_ms is None and not self.invalid

    def add_evidence(self, bound: ForecastBound, at_ms: int, *, beyond: bool) -> ForecastEvidence:
        """Add a checkpoint to the evidence for a bound, and return it."""
        evidence = self.evidence.get(bound.name, ForecastEvidence()).after(bound, at_ms, beyond=beyond)
        self.evidence[bound.name] = evidence
        return evidence

    def reset_evidence(self) -> None:
        """Reset the evidence, because checkpoints are within the forecast again, or it is another one."""
        self.evidence = {}
        self.left_ms, self.left_by = None, ""


_ADAPTER = TypeAdapter(WatchState)


def state_to_json(state: WatchState) -> dict[str, Any]:
    return dict(_ADAPTER.dump_python(state, mode="json"))


def parse_state(state: Mapping[str, Any], place: object) -> WatchState:
    """Parse the content of `watch.json`.  Raises `MemoryFileError` if it is invalid."""
    try:
        return _ADAPTER.validate_python(state)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise MemoryFileError(f"{place}: '{where}' is invalid: remove the file to start a new watch") from None


# ---- The watcher: a state machine that turns observations into events and rows, without I/O and without a clock.

SKIPPED_AFTER_RESTART = 3
"""Number of checkpoints after a restart that are not compared with the forecast, because the job catches up."""
MAX_RECENT_ROWS = 200
"""Maximum checkpoints, and maximum activities, in memory."""
RECENT_CHECKPOINTS = 20
"""Number of latest checkpoints whose percentiles are shown."""
MIN_FORECAST_CHECKPOINTS = 6
"""Minimum completed checkpoints, without the first, for a forecast."""
SHOWN_ACTIVITIES = 3
"""Number of latest activities whose mean load is shown."""
_RECOVERED_SHARE = 0.8
"""Maximum p90 / limit at which checkpoints count as within the limit again (hysteresis)."""


@dataclass
class Watcher:
    """The watcher of one job."""

    state: WatchState
    limit_ms: float | None = None  # limit of the p90; if None, the checkpoint interval

    # ------------------------------------------------------------------------------------------ observations

    def on_failed_poll(self, now_ms: int, why: str, *, is_slow: bool = False) -> list[WatchEvent]:
        """Process a poll without an answer.  `is_slow` means that some answers arrived, but not all in time."""
        self.state.counts["polls unanswered"] += 1
        if self.state.away_ms is not None:
            return []
        self.state.away_ms = now_ms
        return [
            WatchEvent(
                now_ms,
                "away",
                f"the JobManager {'answers too slowly' if is_slow else 'is unreachable'}: {why}; watching continues",
            )
        ]

    def on_invalid_response(self, now_ms: int, why: str) -> list[WatchEvent]:
        """Process a poll with invalid answers."""
        self.state.counts["polls invalid"] += 1
        if self.state.invalid and self.state.away_ms is None:
            return []
        events = [
            *self._report_answers(now_ms),
            WatchEvent(now_ms, "invalid", f"unexpected response: {why}; watching continues"),
        ]
        self.state.invalid = why
        return events

    def process_observation(
        self, observation: JobObservation, now_ms: int
    ) -> tuple[list[WatchEvent], list[dict[str, Any]]]:
        """Process an observation.  Return events, and a row for each checkpoint to store (`sim.jobs.watch.memory`)."""
        state = self.state
        state.counts["polls answered"] += 1
        observation = observation if state.observation is None else observation.after(state.observation)
        events = [*self._report_answers(now_ms), *self._report_changes(observation, now_ms)]
        state.observation = replace(observation, checkpoints=())
        self._measure(state.observation)
        events += self._report_missed(observation, now_ms)
        rows: list[dict[str, Any]] = []
        for point in observation.checkpoints:
            verdict, news = self._judge(point, now_ms)
            forecast = state.forecast
            rows.append(
                checkpoint_row(point, verdict, None if forecast is None else (forecast.p50_ms, forecast.p90_ms))
            )
            state.counts[f"checkpoints {verdict}"] += 1
            events += news
        new = [checkpoint.checkpoint for checkpoint in observation.checkpoints]
        state.seen = [*state.seen, *new][-MAX_SEEN_CHECKPOINTS:]
        if observation.checkpoints:
            events += self._report_limit(now_ms)
        return events, rows

    def _measure(self, observation: JobObservation) -> None:
        """Add the activity since the last observation with new counters.  Do nothing if this one has none."""
        before = self.state.counted
        if before is not None and not has_new_counters(before, observation):
            return
        self.state.counted = observation
        activity = None if before is None else measure(before, observation)
        if activity is not None:
            self.state.activities = [*self.state.activities, activity][-MAX_RECENT_ROWS:]
            self._catch_up()

    def _catch_up(self) -> None:
        """Correct the usual load of a new forecast after the next poll: Flink's counters were not up to date before."""
        forecast, activities = self.state.forecast, self.state.activities
        if forecast is None or sum(activity.time_ms > forecast.made_ms for activity in activities) != 1:
            return
        usual = mean_circumstances(activities[-RECENT_CHECKPOINTS - 1 :], [])
        self.state.forecast = replace(forecast, usual=replace(forecast.usual, load=usual.load))

    def _report_missed(self, observation: JobObservation, now_ms: int) -> Iterator[WatchEvent]:
        """Report checkpoints that ended between two polls and are no longer listed.  Only the first time is reported."""
        listed, oldest = observation.listed
        missed = oldest - max(self.state.seen, default=0) - 1
        if not self.state.seen or missed <= 0:
            return
        if "missed" not in self.state.counts:
            subject = f"{missed} checkpoint{'' if missed == 1 else 's'}"
            text = f"{subject} ended unseen: Flink lists {listed}; poll more often, or raise web.checkpoints.history"
            yield WatchEvent(now_ms, "missed", text, {"missed": missed, "listed": listed})
        self.state.counts["missed"] += missed

    def _report_answers(self, now_ms: int) -> Iterator[WatchEvent]:
        """Report that the JobManager answers again, or that its answers are valid again."""
        if self.state.away_ms is not None:
            passed = format_duration(max(now_ms - self.state.away_ms, 0) // 1000 * 10**9)
            yield WatchEvent(now_ms, "answers", f"the JobManager answers again, after {passed}")
            self.state.away_ms = None
        elif self.state.invalid:
            yield WatchEvent(now_ms, "answers", "the answers make sense again")
        self.state.invalid = ""

    def _report_changes(self, observation: JobObservation, now_ms: int) -> Iterator[WatchEvent]:
        """Report changes of the job.  If they affect the forecast, drop it and everything that was observed so far."""
        before = self.state.observation
        if before is None:
            return
        job_changes = [*changes(before, observation)]
        for change in job_changes:
            yield WatchEvent(
                now_ms, "restarted" if change.kind == "restart" else "changed", change.text, {"change": change.kind}
            )
        if any(change.kind == "restart" for change in job_changes):
            self.state.counts["restarts"] += 1
            self.state.settling = SKIPPED_AFTER_RESTART
        if observation.job != before.job:
            self.state.seen = []
        if any(change.is_other_job for change in job_changes):
            was = (
                "the forecast was of the job before that; a new one"
                if self.state.forecast is not None
                else "a forecast"
            )
            self.state.forecast, self.state.is_over = None, False
            self.state.reset_evidence()
            self.state.failed, self.state.completed_ms = 0, None
            self.state.settings_since_ms = observation.time_ms
            self.state.recent, self.state.activities = [], []
            yield WatchEvent(now_ms, "forecast", f"{was} is made of its next {MIN_FORECAST_CHECKPOINTS} checkpoints")

    # ------------------------------------------------------------------------------------------ the forecast

    @property
    def wants_forecast(self) -> bool:
        """Whether there is no forecast, but enough checkpoints for one."""
        return self.state.forecast is None and sum(map(_is_usual, self.state.recent)) >= MIN_FORECAST_CHECKPOINTS

    def use_forecast(self, forecast: Forecast, now_ms: int) -> list[WatchEvent]:
        """Use this forecast from now on."""
        self.state.reset_evidence()
        self.state.forecast = forecast
        data = {"p50_ms": forecast.p50_ms, "p90_ms": forecast.p90_ms, "factors": list(forecast.factors)}
        return [WatchEvent(now_ms, "forecast", f"forecast: {forecast}, told by {forecast.history} checkpoints", data)]

    @property
    def usual(self) -> Circumstances:
        """The current circumstances of the job: load, utilization and state, over the latest polls and checkpoints."""
        return mean_circumstances(self.state.activities[-RECENT_CHECKPOINTS:], self.state.recent[-RECENT_CHECKPOINTS:])

    # ------------------------------------------------------------------------------------------ checkpoints

    def _judge(self, point: SeenCheckpoint, now_ms: int) -> tuple[str, list[WatchEvent]]:
        """Compare a checkpoint with the forecast.  Return a verdict, which is stored, and events."""
        forecast = self.state.forecast
        if point.trigger_ms < self.state.settings_since_ms:
            return "of other settings", []
        self.state.recent = [*self.state.recent, point][-MAX_RECENT_ROWS:]
        failed = list(self._report_failure(point, now_ms))
        if point.is_savepoint or point.checkpoint == 1:
            return "savepoint" if point.is_savepoint else "first", failed
        if self.state.settling:
            self.state.settling -= 1
            return "after a restart", failed
        if forecast is None or point.trigger_ms < forecast.made_ms:
            return "without forecast", failed
        if point.status == "FAILED":
            if "checkpoint expired" in point.failure.lower():
                failed += self._add_evidence(forecast, replace(point, duration_ms=inf), now_ms)
            return "failed", failed
        verdict = "beyond" if point.duration_ms > forecast.limits_ms[TAIL.name] else "within"
        return verdict, [*failed, *self._add_evidence(forecast, point, now_ms)]

    def _report_failure(self, point: SeenCheckpoint, now_ms: int) -> Iterator[WatchEvent]:
        """Report a failed checkpoint, and at the next completed one how many failed in a row.

        Of consecutive failures, only the first, second, fourth, eighth and so on are reported.
        """
        state, is_periodic = self.state, not point.is_savepoint
        if point.status == "COMPLETED" and is_periodic:
            if state.failed > 1:
                text = f"checkpoints complete again, after {state.failed} failed in a row"
                yield WatchEvent(now_ms, "failed", text, {"failed_in_a_row": state.failed})
            state.failed, state.completed_ms = 0, point.trigger_ms
        if point.status != "FAILED":
            return
        state.failed += is_periodic
        why = f": {point.failure}" if point.failure else ""
        after = f" after {ms_text(point.duration_ms)}" if point.duration_ms >= 0 else ""
        data = {"checkpoint": point.checkpoint}
        if point.is_savepoint or state.failed == 1:
            kind = "savepoint" if point.is_savepoint else "checkpoint"
            yield WatchEvent(now_ms, "failed", f"{kind} {point.checkpoint} failed{after}{why}", data)
        elif state.failed.bit_count() == 1:
            last = "" if state.completed_ms is None else f" since the one of {clock_text(state.completed_ms, now_ms)}"
            tolerated = self._checkpoint_settings.get("tolerable_failed_checkpoints")
            tolerated = "" if tolerated is None else f" ({tolerated} are tolerated)"
            text = f"no checkpoint completes{last}: {state.failed} in a row failed{tolerated}, {point.checkpoint} the last{after}{why}"
            yield WatchEvent(now_ms, "failed", text, data | {"failed_in_a_row": state.failed})

    def _add_evidence(self, forecast: Forecast, point: SeenCheckpoint, now_ms: int) -> list[WatchEvent]:
        """Add a checkpoint to the evidence.  Return an event if checkpoints have left the forecast, or are within it again."""
        state, ms, at_ms = self.state, point.duration_ms, point.trigger_ms
        is_beyond = {
            name: ms < limit_ms if name == LOWER.name else ms > limit_ms
            for name, limit_ms in forecast.limits_ms.items()
        }
        if state.left_ms is not None:
            back = state.add_evidence(RETURN, at_ms, beyond=not is_beyond[state.left_by])
            return self._report_return(point, back, now_ms) if back.is_sure else []
        evidence = [(bound, state.add_evidence(bound, at_ms, beyond=is_beyond[bound.name])) for bound in DEPARTURES]
        sure = [(bound, bound_evidence) for bound, bound_evidence in evidence if bound_evidence.is_sure]
        return [self._report_departure(forecast, *sure[0], now_ms)] if sure else []

    def _report_departure(
        self, forecast: Forecast, line: ForecastBound, evidence: ForecastEvidence, now_ms: int
    ) -> WatchEvent:
        """Report that checkpoints have left the forecast, with the likely reason."""
        state = self.state
        state.left_ms, state.left_by, state.evidence = evidence.since_ms, line.name, {}
        since, now = self._circumstances_since(evidence.since_ms)
        p50, p90 = percentiles(since)
        side = "shorter" if line is LOWER else "longer"
        begun = clock_text(evidence.since_ms, now_ms)
        differences, why = reasons(forecast.usual, now, -1 if p50 < forecast.p50_ms else 1)
        text = (
            f"checkpoints leave the forecast: since {begun}, {evidence.beyond} of {evidence.count} are {side} than "
            f"{ms_text(forecast.limits_ms[line.name])} ({forecast}); now {percentiles_text(since)}. {why}"
        )
        data = {
            "since_ms": evidence.since_ms,
            "p50_ms": p50,
            "p90_ms": p90,
            "why": {"causes": [*map(asdict, differences)]},
        }
        return WatchEvent(now_ms, "left", text, data)

    def _report_return(self, point: SeenCheckpoint, back: ForecastEvidence, now_ms: int) -> list[WatchEvent]:
        """Report that checkpoints are within the forecast again."""
        passed_ms = max(back.since_ms - (self.state.left_ms or point.trigger_ms), 0)
        self.state.reset_evidence()
        text = (
            f"checkpoints are within the forecast again since {clock_text(back.since_ms, now_ms)}, "
            f"after {format_duration(passed_ms // 1000 * 10**9)}"
        )
        return [WatchEvent(now_ms, "within", text)]

    def _circumstances_since(self, since_ms: int) -> tuple[list[SeenCheckpoint], Circumstances]:
        """Return the checkpoints since a change, and the circumstances of the job since then.

        An activity that began before the change contains both the old and the new load.
        """
        checkpoints = [point for point in self.state.recent if point.trigger_ms >= since_ms]
        activities = self.state.activities
        later = [activity for activity in activities if activity.time_ms - 1e3 * activity.seconds >= since_ms]
        return checkpoints, mean_circumstances(later or activities[-1:], checkpoints)

    # ------------------------------------------------------------------------------------------ the limit

    @property
    def limit(self) -> float | None:
        """The limit of the p90 [ms]: the option `--limit`, otherwise the checkpoint interval."""
        interval_ms = float(self._checkpoint_settings.get("interval", 0))
        return self.limit_ms or (interval_ms if 0 < interval_ms < NEVER_MS else None)

    @property
    def _checkpoint_settings(self) -> Mapping[str, str]:
        return {} if self.state.observation is None else self.state.observation.settings.get("checkpoints", {})

    def _report_limit(self, now_ms: int) -> Iterator[WatchEvent]:
        """Report that the p90 exceeds the limit, or is within it again."""
        completed = [point for point in self.state.recent if _is_usual(point)][-RECENT_CHECKPOINTS:]
        if self.limit is None or len(completed) < MIN_FORECAST_CHECKPOINTS:
            return
        p90 = percentiles(completed)[1]
        is_over = p90 > self.limit * (_RECOVERED_SHARE if self.state.is_over else 1)
        if self.state.is_over != is_over:
            self.state.is_over = is_over
            side = f"longer than {ms_text(self.limit)}" if is_over else f"within {ms_text(self.limit)} again"
            text = f"checkpoints are {side}: p90 of the last {len(completed)} is {apart_text(p90, self.limit, ms_text)}"
            yield WatchEvent(now_ms, "limit", text, {"p90_ms": p90, "limit_ms": self.limit, "is_over": is_over})


def percentiles(points: Sequence[SeenCheckpoint]) -> tuple[float, float]:
    """Return p50 and p90 of the durations of completed checkpoints without savepoints [ms], or NaN if there are none."""
    durations = [point.duration_ms for point in points if point.status == "COMPLETED" and not point.is_savepoint]
    if not durations:
        return float("nan"), float("nan")
    p50, p90 = np.quantile(durations, [0.5, 0.9])
    return float(p50), float(p90)


def percentiles_text(points: Sequence[SeenCheckpoint]) -> str:
    """Return the percentiles as text, for example ``p50 100 ms, p90 200 ms``."""
    p50, p90 = percentiles(points)
    return "none completes" if isnan(p50) else f"p50 {ms_text(p50)}, p90 {ms_text(p90)}"


def _is_usual(point: SeenCheckpoint) -> bool:
    return point.status == "COMPLETED" and not point.is_savepoint and point.checkpoint != 1
