"""Infer the windows of a vertex from the job plan, the periodicity of its state size, and its counters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, median
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from sim.jobs.infer.cores import WatchedJob, usual_checkpoints
from sim.jobs.infer.draft import Draft, duration_text
from sim.jobs.infer.file_history import own_bytes
from sim.jobs.infer.flows import Flows, series
from sim.jobs.infer.state import backend_of
from sim.jobs.source.rest_job import RestJob, RestVertex, Series
from sim.model.scenario import Overheads
from sim.model.units import MS, UnitError, format_duration, format_number, format_size, parse_flink_duration

# ---- Windows in Flink's plan: the description of the operator contains the window assigner and its sizes.
#
# DataStream: `Window(TumblingEventTimeWindows(7000), EventTimeTrigger, ...)`, in ms.
# SQL: `window=[HOP(time_col=[t], size=[10 s], slide=[2 s])]`.


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """A window in the plan.  `size_ns`: of a session, its gap; `every_ns`: the slide, from one window end to the next."""

    kind: Literal["tumbling", "sliding", "session"]
    size_ns: int
    every_ns: int
    time: Literal["event", "processing", ""]  # empty: the plan does not say
    api: Literal["sql", "datastream"]
    is_local: bool  # the first stage of two: it keeps no state, and its rows leave before each barrier
    phrase: str  # of the plan


_DATASTREAM = re.compile(
    r"(?P<name>(?P<kind>Tumbling|Sliding)(?P<time>Event|Processing)TimeWindows|(?P<time2>Event|Processing)TimeSessionWindows)"
    r"\((?P<first>\d+)(?:, *(?P<second>\d+))?\)"
)
_SQL = re.compile(
    r"(?P<stage>Local|Global|)WindowAggregate\(.*?window=\[(?P<kind>TUMBLE|HOP|CUMULATE|SESSION)\((?P<what>.*?\])\)",
    re.DOTALL,
)
_SIZES = re.compile(r"\b(max_size|size|slide|step|gap)=\[([^\]]*)\]")


def planned_window(description: str) -> PlannedWindow | None:
    """Return the first window of a chain.  Returns None if its description contains no window."""
    if found := _DATASTREAM.search(description):
        return _of_datastream(found)
    if found := _SQL.search(description):
        return _of_sql(found)
    return None


def uses_event_time(descriptions: Iterable[str]) -> bool:
    """Return whether any operator of an SQL job generates watermarks."""
    return any("WatermarkAssigner(" in text or "watermark=[" in text for text in descriptions)


def _of_datastream(found: re.Match[str]) -> PlannedWindow | None:
    first = int(found["first"]) * MS
    second = int(found["second"] or 0) * MS
    time: Literal["event", "processing"] = "event" if (found["time"] or found["time2"]) == "Event" else "processing"
    if first == 0:
        return None
    if found["kind"] == "Sliding":
        return PlannedWindow("sliding", first, second or first, time, "datastream", is_local=False, phrase=found[0])
    return PlannedWindow(
        "tumbling" if found["kind"] else "session", first, first, time, "datastream", is_local=False, phrase=found[0]
    )


def _of_sql(found: re.Match[str]) -> PlannedWindow | None:
    sizes: dict[str, int] = {}
    for name, text in _SIZES.findall(found["what"]):
        try:
            sizes[name] = parse_flink_duration(text)
        except UnitError:
            return None
    size = sizes.get("size") or sizes.get("max_size") or sizes.get("gap") or 0
    every = sizes.get("slide") or sizes.get("step") or size
    if size == 0:
        return None
    kinds: dict[str, Literal["tumbling", "sliding", "session"]] = {"TUMBLE": "tumbling", "SESSION": "session"}
    kind = kinds.get(found["kind"], "sliding" if every < size else "tumbling")
    phrase = f"{found['stage']}WindowAggregate, {found['kind']}({', '.join(f'{name} {text}' for name, text in _SIZES.findall(found['what']))})"
    return PlannedWindow(kind, size, every, "", "sql", found["stage"] == "Local", phrase)


# ---- Rayleigh test (by permutation): do durations depend on the phase of a period?

_RHYTHM_RESAMPLES = 20_000
_SEED = 1


def gathering(turns: Sequence[float], durations_ms: Sequence[float]) -> float:
    """Return the p-value of the weighted Rayleigh test for concentration of durations at one phase.

    The statistic is the length of the mean of unit vectors at the phases, weighted by duration minus the shortest
    duration; its null distribution comes from random permutations of the durations.  `turns`: phases in [0, 1).
    """
    took = np.array(durations_ms, dtype=float)
    if not took.size:
        return 1.0
    weights = took - took.min()
    vectors = np.exp(2j * np.pi * np.array(turns))
    if not weights.any() or np.ptp(np.abs(vectors - vectors[0])) < 1e-9:
        return 1.0
    dealt = np.random.default_rng(_SEED).permuted(np.tile(weights, (_RHYTHM_RESAMPLES, 1)), axis=1)
    as_much = np.abs(dealt @ vectors) >= abs(weights @ vectors) - 1e-9
    return float((1 + as_much.sum()) / (1 + _RHYTHM_RESAMPLES))


# ---- Saw-tooth state size: a window clears its state when it fires.
#
# Within a period sizes may rise along any curve: records of known keys add nothing, so growth can slow down.
# So isotonic regression (the best non-decreasing curve by least squares) is fitted within a period.

EXPLAINED = 0.9
"""Minimum R2 (share of the variance explained) to accept a saw tooth."""
MIN_SIZES_FOR_SAW_TOOTH = 6
"""Any such curve fits fewer sizes."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SawTooth:
    """A saw tooth: the size falls at one moment between `high_ms` and `low_ms`, and every period before and after.

    Then it rises from `floor` by `per_second`.
    """

    period_ms: float
    high_ms: float
    low_ms: float
    floor: float
    per_second: float
    explained: float

    def falls_ms(self, slack_ms: float = 0) -> float:
        """Return the window end: aligned to the epoch if such a time is within the bracket (+- slack), otherwise its midpoint."""
        at_ms = -(-(self.high_ms - slack_ms) // self.period_ms) * self.period_ms
        return at_ms if at_ms <= self.low_ms + slack_ms else (self.high_ms + self.low_ms) / 2


def fitted(points: Sequence[tuple[float, float]], periods_ms: Iterable[float]) -> SawTooth | None:
    """Fit a saw tooth to (time [ms], size), with the best of the periods.  Returns None if R2 is too low."""
    if len(points) < MIN_SIZES_FOR_SAW_TOOTH or len({size for _, size in points}) < MIN_SIZES_FOR_SAW_TOOTH:
        return None
    times, sizes = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    best = max((_with_period(times, sizes, period) for period in periods_ms), key=lambda found: found[0], default=None)
    if best is None or best[0] < EXPLAINED:
        return None
    explained, period_ms, high_ms, low_ms = best
    tooth = SawTooth(period_ms, high_ms, low_ms, 0.0, 0.0, explained)
    floor, slope = _line((times - tooth.falls_ms()) % period_ms, sizes)
    return SawTooth(period_ms, high_ms, low_ms, floor, slope * 1000, explained) if slope > 0 else None


def _with_period(times: Numbers, sizes: Numbers, period_ms: float) -> tuple[float, float, float, float]:
    """Return (R2, period, last time before a fall, first time after it)."""
    from scipy.optimize import isotonic_regression

    phases = times % period_ms
    order = np.argsort(phases, kind="stable")
    ordered, total = sizes[order], float(((sizes - sizes.mean()) ** 2).sum())
    best = 0.0, 0
    for first in range(len(order)):
        turned = np.roll(ordered, -first)
        left = float(((turned - isotonic_regression(turned).x) ** 2).sum())
        best = max(best, (1 - left / total, -first))
    explained, first = best[0], -best[1]
    high, low = float(phases[order[first - 1]]), float(phases[order[first]])
    begin = float(times[0]) // period_ms * period_ms
    return explained, period_ms, begin + high, begin + low + (period_ms if low <= high else 0.0)


def _line(since: Numbers, sizes: Numbers) -> tuple[float, float]:
    """Return (floor, slope) by least squares; a negative floor is clipped to 0."""
    away = since - since.mean()
    slope = float(away @ (sizes - sizes.mean())) / max(float(away @ away), 1e-9)
    floor = float(sizes.mean()) - slope * float(since.mean())
    return (floor, slope) if floor >= 0 else (0.0, float(since @ sizes) / max(float(since @ since), 1e-9))


# ---- Subtasks of a source that emit nothing while others do: their partitions are silent, or there are fewer partitions than subtasks.

MIN_RECORDS_OF_OTHERS = 20  # minimum mean records per other subtask to call a subtask silent


def infer_silent(draft: Draft, vertex: str, flow: Flows) -> Flows:
    """Set the number of silent subtasks.  Returns the flows of the others, which are what the source does."""
    emitted = [own.records_out for own in flow.subtasks]
    silent = [i for i, records in enumerate(emitted) if records == 0]
    others = len(emitted) - len(silent)
    if not silent or not others or any(map(math.isnan, emitted)) or math.fsum(emitted) < MIN_RECORDS_OF_OTHERS * others:
        return flow
    which = f"subtask{'s' if len(silent) > 1 else ''} {', '.join(map(str, silent))} emitted nothing while others did"
    draft.put("source.silent", len(silent), f"{which} (they are the last ones here): {flow.source}", job=vertex)
    return replace(flow, subtasks=tuple(own for own in flow.subtasks if own.records_out > 0))


def infer_idleness(draft: Draft, flows: Mapping[str, Flows]) -> None:
    """Flink's REST API does not say whether a silent subtask is idle.  If windows fire anyway, it is."""
    windows = [
        name for name, vertex in draft.document["job"].items() if vertex.get("window", {}).get("time") == "event"
    ]
    ends = any(flows[name].total("records_out") > 0 for name in windows)
    question = "After how long is a subtask without records idle (withIdleness, table.exec.source.idle-timeout)?"
    for name, vertex in draft.document["job"].items():
        if windows and "silent" in vertex.get("source", {}):
            why = (
                "1 s, because windows end although some of its subtasks are silent."
                if ends
                else "never, because no window ends."
            )
            draft.ask("source.watermark.idle-timeout", "1 s" if ends else "0 s", question, why, job=name)


# ---- Effect of a window end on the counters of its vertex: records emitted together, and busy time per record.

_SHIFTS = 40  # moments tried for the ends, within one period
_FIRING_STANDARD_ERRORS = 3.0  # a smaller time per output is not significantly above 0
MIN_STEPS = 4
UNEVEN = 0.1  # of a window's output: a larger root mean square residual means partial windows


@dataclass(frozen=True, slots=True)
class BusySplit:
    """The busy time [ms] of the task thread, split between records that it reads and records that leave."""

    per_record: float
    per_output: float


def outputs_per_end(sampled: Series, falls_ms: float, period_ms: float) -> tuple[float, int] | None:
    """Return (records emitted per window end, ends seen).  Returns None if steps of the counter are not multiples of one number."""
    samples = [
        (time_ms, math.fsum(values))
        for time_ms, values in sampled.get("numRecordsOut", ())
        if not any(map(math.isnan, values))
    ]
    steps = [after - before for (_, before), (_, after) in pairwise(samples)]
    if not steps or min(steps) < 0 or not sum(steps):
        return None
    best: tuple[float, float, int] | None = None
    for shift in range(_SHIFTS):
        begin = falls_ms + shift * period_ms / _SHIFTS
        seen = [math.floor((time_ms - begin) / period_ms) for time_ms, _ in samples]
        ends = [after - before for before, after in pairwise(seen)]
        if not sum(ends):
            continue
        per_end = sum(steps) / sum(ends)
        off = sum((step - number * per_end) ** 2 for step, number in zip(steps, ends, strict=True))
        if best is None or off < best[0]:
            best = off, per_end, sum(ends)
    if best is None or best[0] > len(steps) * (UNEVEN * best[1]) ** 2:
        return None
    return best[1:]


def split_of_busy_time(sampled: Series) -> BusySplit | None:
    """Split busy time by non-negative least squares (NNLS) over all steps of all subtasks, scaled to the total busy time.

    Returns None if the two are not identifiable: collinear counters, or a time per output that is not significant.
    """
    from scipy.optimize import nnls

    columns = [_steps(sampled, name) for name in ("numRecordsIn", "numRecordsOut", "accumulateBusyTimeMs")]
    if len(columns[2]) < MIN_STEPS or len({len(column) for column in columns}) > 1:
        return None
    read, left, busy = (np.array(column) for column in columns)
    work = np.column_stack([read, left])
    if np.isnan(work).any() or np.isnan(busy).any() or np.linalg.matrix_rank(work) < 2:
        return None
    free = np.linalg.lstsq(work, busy, rcond=None)[0]
    variance = float(((busy - work @ free) ** 2).sum()) / (len(busy) - 2)
    error = math.sqrt(variance * float(np.linalg.inv(work.T @ work)[1, 1]))
    times = nnls(work, busy)[0]
    if free[1] <= _FIRING_STANDARD_ERRORS * error or times[1] <= 0:
        return None
    scale = float(busy.sum() / (work @ times).sum())
    return BusySplit(float(times[0]) * scale, float(times[1]) * scale)


def _steps(sampled: Mapping[str, Sequence[tuple[int, list[float]]]], name: str) -> list[float]:
    """The growth of a counter between two samples, subtask by subtask."""
    values = [column for _, column in sampled.get(name, ())]
    return [now - then for before, after in pairwise(values) for then, now in zip(before, after, strict=False)]


# ---- Unknown period: a max statistic over all frequencies, with a p-value corrected for multiple testing.

FloatArray = NDArray[np.float64]

_PERIOD_RESAMPLES = 4_000
_MIN_PERIODS = 4
"""Minimum periods observed."""
_MIN_SIZES_FOR_PERIOD = 16
_PERIOD_REFINEMENT = 20


class UnknownRhythm(NamedTuple):
    """The period at which durations are most concentrated at one phase."""

    period_ms: float
    p: float  # p-value, corrected for all periods tried
    others_ms: tuple[float, ...]  # shorter periods that look the same at the times of the checkpoints


def unknown_rhythm(times_ms: Sequence[float], durations_ms: Sequence[float]) -> UnknownRhythm | None:
    """Find the period of durations.  `times_ms`: trigger times.  Returns None if there are too few, or all are equal.

    At each frequency the squared length of the mean vector, weighted by duration minus the shortest, is divided by its
    mean over permutations (Lomb's periodogram).  The p-value is that of the maximum over all frequencies (Westfall and
    Young 1993).
    """
    times, took = np.array(times_ms, dtype=float), np.array(durations_ms, dtype=float)
    if len(times) < _MIN_SIZES_FOR_PERIOD:
        return None
    weights, apart, span = took - took.min(), float(median(np.diff(np.sort(times)))), float(np.ptp(times))
    if not weights.any() or apart <= 0 or span < 2 * _MIN_PERIODS * apart:
        return None
    # Neighbouring frequencies are half a resolution apart; above the Nyquist frequency (one period per two checkpoints) they alias.
    frequencies = np.arange(_MIN_PERIODS / span, 0.5 / apart, 0.5 / span)
    dealt = np.random.default_rng(_SEED).permuted(np.tile(weights, (_PERIOD_RESAMPLES, 1)), axis=1)
    by_chance = _powers(dealt, times - times.min(), frequencies)
    usual = by_chance.mean(axis=0)
    seen = _powers(weights[None], times - times.min(), frequencies)[0] / usual
    as_much = (by_chance / usual).max(axis=1) >= seen.max() - 1e-9
    finer = frequencies[int(seen.argmax())] + np.linspace(-0.5, 0.5, 2 * _PERIOD_REFINEMENT + 1) / span
    best = float(finer[_powers(weights[None], times - times.min(), finer)[0].argmax()])
    others = tuple(1 / (1 / apart + sign * best) for sign in (-1, 1))
    return UnknownRhythm(1 / best, float((1 + as_much.sum()) / (1 + _PERIOD_RESAMPLES)), others)


def _powers(weights: FloatArray, times: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Return the power, a row per row of weights, a column per frequency."""
    angles = 2 * np.pi * np.outer(times, frequencies)
    return np.square(weights @ np.cos(angles)) + np.square(weights @ np.sin(angles))


# ---- The `window:` of each vertex that the plan says has one, or whose state rises and falls as windows make it.
#
# =================
# ============================================================================================================ kind,
# sizes, time  the description of the operator in the plan; without one: a saw tooth through the sizes of its state, and
# a question
# phase              where the state size falls, relative to the checkpoint triggers
# state-per-record   the slope of the sizes / records in
# fan-out            records out per end / records in between two ends: a short sample covers a fractional number of windows
# service, fire      busy time of a step of the counters = records in x service + records out x fire
# =================
# ============================================================================================================

MAX_TROUGH_SHARE = 0.1  # of the height of the tooth: a lower floor is data that arrived while the window fired
UNPLANNED = 0.97  # if the plan names no window
MAX_P_VALUE = 0.01  # of the Rayleigh test
LONGEST_S = 120
SHORTEST_S = 2
MIN_WINDOW_ENDS = 3  # minimum window ends in the history
MIN_BUSY_SHARE = 0.05  # below this busy share the split of busy time does not matter
RUN_ENDS = 12  # window ends in a run
MAX_RUN_NS = 3600 * 10**9
SLACK_MS = 250.0  # by which a watermark may be late
SHORTEST_NS = 1000  # service time per record if the outputs take all of the busy time


class _Found(NamedTuple):
    """A window of a vertex.  `tooth`: the saw tooth of its state, if there is one."""

    window: PlannedWindow
    tooth: SawTooth | None


def infer_windows(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `window:` of every vertex that has one, and the values derived from it."""
    event_time = uses_event_time(vertex.description for vertex in job.vertices)
    for vertex in job.vertices:
        found = _found(job, vertex)
        if found is None:
            continue
        section = draft.document["job"][vertex.name]
        if not vertex.inputs and found.window.is_local:
            _window(draft, job, vertex, found, event_time=event_time)
            draft.put("window.stage", "local", job=vertex.name)
            continue
        if not vertex.inputs or "async-io" in section or "commit" in section:
            why = (
                "it stands in the chain of a source"
                if not vertex.inputs
                else "its vertex also makes requests, or commits"
            )
            draft.not_modelled.append(f"the window of '{vertex.name}' ({found.window.phrase}): {why}")
            continue
        _window(draft, job, vertex, found, event_time=event_time)
        _state_per_record(draft, vertex, found, flowed[vertex.name])
        _outputs(draft, job, vertex, found, flowed[vertex.name])
        _work(draft, job, vertex, flowed[vertex.name])


def longest_run_ns(job: RestJob) -> int:
    """Return the run length that covers windows at all phases of the checkpoints."""
    periods = [found.window.every_ns for vertex in job.vertices if (found := _found(job, vertex)) is not None]
    return min(RUN_ENDS * max(periods, default=0), MAX_RUN_NS)


def _found(job: RestJob, vertex: RestVertex) -> _Found | None:
    # RocksDB files grow and shrink with compaction, so only heap state is used
    planned, on_heap = planned_window(vertex.description), backend_of(job) == "hashmap"
    if planned is not None:
        sizes = _sizes(job, vertex) if on_heap and planned.kind != "session" else []
        return _Found(planned, fitted(sizes, [planned.every_ns / MS]))
    tooth = timers_of(job, vertex) if on_heap else None
    if tooth is None:
        return None
    every_ns = round(tooth.period_ms) * MS
    return _Found(PlannedWindow("tumbling", every_ns, every_ns, "", "datastream", is_local=False, phrase=""), tooth)


def timers_of(job: WatchedJob, vertex: RestVertex) -> SawTooth | None:
    """Find timers of a keyed function that fire together and clear its heap state.  Returns None if its sizes do not show them.

    A checkpoint taken while they fire is off the curve.  Then long checkpoints must have the same period as well
    (Rayleigh test).  Sizes that only rise are not accepted, whatever period fits them: checkpoints a little more than a
    period apart rise along each tooth.
    """
    sizes = _sizes(job, vertex) if any(edge.ship == "HASH" for edge in vertex.inputs) else []
    if sum(after < before for (_, before), (_, after) in pairwise(sizes)) < MIN_WINDOW_ENDS - 1:
        return None
    tooth = fitted(sizes, [1000.0 * seconds for seconds in range(SHORTEST_S, LONGEST_S + 1)])
    if tooth is None or sizes[-1][0] - sizes[0][0] < MIN_WINDOW_ENDS * tooth.period_ms:
        return None
    if tooth.explained >= UNPLANNED:
        return tooth
    points = usual_checkpoints(job)
    turns = [point.trigger_timestamp % tooth.period_ms / tooth.period_ms for point in points]
    return tooth if gathering(turns, [point.end_to_end_duration for point in points]) < MAX_P_VALUE else None


def _sizes(job: WatchedJob, vertex: RestVertex) -> list[tuple[float, float]]:
    """(time up to which records were read [epoch ms], bytes) of each usual checkpoint: barriers queue behind records."""
    sizes, sources = [], [source.name for source in job.vertices if not source.inputs]
    for point in usual_checkpoints(job):
        task = point.tasks.get(vertex.name)
        done = [subtask for subtask in task.subtasks if subtask.status == "completed"] if task else []
        if done and len(done) == vertex.parallelism:
            tasks = [point.tasks[source] for source in sources if source in point.tasks]
            delays = [max(subtask.start_delay, 0) for source in tasks for subtask in source.subtasks]
            cut_ms = point.trigger_timestamp + (fmean(delays) if delays else 0.0)
            sizes.append((cut_ms, float(sum(own_bytes(subtask) for subtask in done))))
    return sizes


def _window(draft: Draft, job: RestJob, vertex: RestVertex, found: _Found, *, event_time: bool) -> None:
    """Set kind, sizes, time, api and phase."""
    window, size = found.window, format_duration(found.window.size_ns)
    if window.phrase:
        draft.put(f"window.{window.kind}", size, f"{window.phrase} in the plan", job=vertex.name)
    else:
        explained = found.tooth.explained if found.tooth else 0.0
        assumed = f"windows of {size}: its state rises and falls so, which explains {explained:.0%} of the variance of its sizes."
        draft.ask(
            "window.tumbling", size, "Which of its timers fire together, and how often?", assumed, job=vertex.name
        )
    if window.kind == "sliding":
        draft.put("window.every", format_duration(window.every_ns), job=vertex.name)
    if window.time or window.phrase:
        draft.put("window.time", window.time or ("event" if event_time else "processing"), job=vertex.name)
    else:
        draft.ask("window.time", "processing", "Whose time are its timers of?", "the clock's.", job=vertex.name)
    if window.api == "datastream":
        draft.put("window.api", "datastream", job=vertex.name)
    if window.kind != "session":
        _phase(draft, job, vertex, found)


def _phase(draft: Draft, job: RestJob, vertex: RestVertex, found: _Found) -> None:
    """Set the offset of window ends from checkpoints, so that a run has the same offset as the job."""
    every_ms = found.window.every_ns / MS
    grid_ms = _grid_ms(job)
    if found.tooth is not None and grid_ms is not None:
        phase_ms = (found.tooth.falls_ms(SLACK_MS) - grid_ms + _first_trigger_ms(job)) % every_ms
        origin = f"the sizes of its state fall then: a saw tooth explains {found.tooth.explained:.0%} of their variance"
        draft.put("window.phase", format_duration(round(phase_ms) % round(every_ms) * MS), origin, job=vertex.name)
        return
    phase_ms = 0.0 if grid_ms is None else (_first_trigger_ms(job) - grid_ms) % every_ms
    question = "When do its windows end, beside its checkpoints?"
    assumed = "at whole multiples of their size by the clock; the sizes of its state do not show it."
    draft.ask(
        "window.phase", format_duration(round(phase_ms) % round(every_ms) * MS), question, assumed, job=vertex.name
    )


def _grid_ms(job: RestJob) -> float | None:
    """A point of the grid on which the job triggers its checkpoints, one interval before its first usual one.  Returns None if there is no grid."""
    every_ms = job.checkpoint_config.interval if job.checkpoint_config else 0
    triggers = [point.trigger_timestamp for point in usual_checkpoints(job)]
    if not triggers or every_ms <= 0:
        return None
    off = median((trigger - triggers[0] + every_ms / 2) % every_ms - every_ms / 2 for trigger in triggers)
    return triggers[0] + off - every_ms


def _first_trigger_ms(job: RestJob) -> float:
    """When a run triggers first (2.x profile)."""
    pause_ms = job.checkpoint_config.min_pause if job.checkpoint_config else 0
    return Overheads().first_trigger_ns / MS + (pause_ms or 0)


def _state_per_record(draft: Draft, vertex: RestVertex, found: _Found, flow: Flows) -> None:
    """Set window state per record; the saw-tooth floor is the vertex's remaining state."""
    per_second = flow.per_second("records_in")
    if found.tooth is None or not per_second > 0:
        return
    tooth, state = found.tooth, draft.document["job"][vertex.name].get("state", {})
    per_record = round(tooth.per_second / per_second)
    origin = f"{tooth.per_second:,.0f} bytes/s between two ends / {per_second:,.1f} records/s"
    draft.put("window.state-per-record", format_size(per_record), origin, job=vertex.name)
    height = tooth.per_second * tooth.period_ms / 1000
    draft.drop("state.growth", job=vertex.name)
    draft.drop("state.ttl", job=vertex.name)
    if tooth.floor > MAX_TROUGH_SHARE * height:
        draft.put(
            "state.size",
            format_size(round(tooth.floor)),
            "what is left of its state at the end of a window",
            job=vertex.name,
        )
    elif state.keys() <= {"size", "growth", "backend"}:
        draft.drop("state", job=vertex.name)


def _outputs(draft: Draft, job: RestJob, vertex: RestVertex, found: _Found, flow: Flows) -> None:
    """Set the fan-out by whole windows."""
    counted = (
        outputs_per_end(series(job, vertex), found.tooth.falls_ms(SLACK_MS), found.tooth.period_ms)
        if found.tooth
        else None
    )
    per_second = flow.per_second("records_in")
    if counted is None or not per_second > 0 or not job.readers(vertex.name):
        return
    (per_end, ends), arrived = counted, per_second * found.window.every_ns / 10**9
    origin = f"{per_end:,.0f} records out at each of {ends} ends / {arrived:,.0f} in between two"
    draft.put("fan-out", format_number(Fraction(f"{per_end / arrived:.4g}")), origin, job=vertex.name)


def _work(draft: Draft, job: RestJob, vertex: RestVertex, flow: Flows) -> None:
    """Set service time per input record and per output record."""
    busy = flow.share("busy_ms")
    split = split_of_busy_time(series(job, vertex))
    if split is not None:
        origin = "busy time by least squares over records in and out"
        per_record = split.per_record if split.per_record * MS > SHORTEST_NS else SHORTEST_NS / MS
        draft.put("service", duration_text(per_record * MS), origin, job=vertex.name)
        draft.put("window.fire", duration_text(split.per_output * MS), origin, job=vertex.name)
    elif busy > MIN_BUSY_SHARE and flow.total("records_out") > 0:
        most = duration_text(flow.total("busy_ms") / flow.total("records_out") * MS)
        question = "How long does its thread work for each record that leaves at the end of a window?"
        why = (
            f"none: its service has all of the busy time; between 0 and {most}, its counters do not tell the two apart."
        )
        draft.ask("window.fire", "0 s", question, why, job=vertex.name)
