"""Infer the windows of each vertex from the job plan, the periodic drops of its state size, and its counters.

The plan names the window assigner and its sizes.  The state size drops at each window end, which shows the phase of the
windows, and also reveals timers that the plan does not contain.  The counters show records and busy time per window end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, linear_regression, median
from typing import Literal

import numpy as np

from sim.jobs.infer.cores import WatchedJob, typical_checkpoints
from sim.jobs.infer.draft import Draft, Section, duration_3_digits, format_whole_ms
from sim.jobs.infer.file_history import acknowledged_by, own_bytes
from sim.jobs.infer.state import backend_of
from sim.jobs.source.rest_job import Flows, Numbers, RestJob, RestVertex, Series
from sim.model.scenario import Overheads
from sim.model.units import MS, UnitError, format_duration, format_number, format_size, parse_flink_duration

# ---- Windows in Flink's plan.  The description of a window operator contains the window assigner and its sizes:
#
# DataStream: `Window(TumblingEventTimeWindows(7000), EventTimeTrigger, ...)`, in ms.
# SQL: `window=[HOP(time_col=[t], size=[10 s], slide=[2 s])]`.


WindowKind = Literal["tumbling", "sliding", "session"]


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """A window of a vertex, from the plan or, if the plan has none, inferred from the state size."""

    kind: WindowKind
    size_ns: int  # the gap, for a session window
    every_ns: int  # time from one window end to the next: the slide, or the size
    time: Literal["event", "processing", ""]  # "" if the plan does not say
    api: Literal["sql", "datastream"]
    is_local: bool  # LocalWindowAggregate: has no state, and emits its rows before each barrier
    phrase: str  # the matched part of the plan; "" if the window was inferred from state sizes

    @property
    def copies_per_record(self) -> int:
        """Copies of a record in the state: the WindowOperator has one in each of its windows, slices of SQL have one in all."""
        return self._overlapping if self.api == "datastream" else 1

    def bytes_left_at_end(self, tooth: SawTooth) -> float:
        """Return the bytes right after a window end that windows which go on would hold, if records came at the mean rate."""
        # In the mean, copies are those of windows half through.
        ends = (self._overlapping - 1) * (0.5 if self.copies_per_record > 1 else 1.0)
        return ends * tooth.growth

    @property
    def _overlapping(self) -> int:
        return -(-self.size_ns // self.every_ns)


_DATASTREAM_WINDOW = re.compile(
    r"(?P<name>(?P<kind>Tumbling|Sliding)(?P<time>Event|Processing)TimeWindows|(?P<time2>Event|Processing)TimeSessionWindows)"
    r"\((?P<first>\d+)(?:, *(?P<second>\d+))?\)"
)
_SQL_WINDOW = re.compile(
    r"(?P<stage>Local|Global|)WindowAggregate\(.*?window=\[(?P<kind>TUMBLE|HOP|CUMULATE|SESSION)\((?P<sizes>.*?\])\)",
    re.DOTALL,
)
_SQL_SIZES = re.compile(r"\b(max_size|size|slide|step|gap)=\[([^\]]*)\]")


def planned_window(description: str) -> PlannedWindow | None:
    """Return the first window in the description of an operator chain, or None if there is none."""
    if match := _DATASTREAM_WINDOW.search(description):
        return _parse_datastream_window(match)
    if match := _SQL_WINDOW.search(description):
        return _parse_sql_window(match)
    return None


def uses_event_time(descriptions: Iterable[str]) -> bool:
    """Return whether any operator of an SQL job generates watermarks, which means that its windows use event time."""
    return any("WatermarkAssigner(" in text or "watermark=[" in text for text in descriptions)


def _parse_datastream_window(match: re.Match[str]) -> PlannedWindow | None:
    """Return the window of a DataStream operator, or None if its size is 0."""
    size_ns = int(match["first"]) * MS
    if size_ns == 0:
        return None
    kind: WindowKind = "tumbling" if match["kind"] else "session"
    every_ns = size_ns
    if match["kind"] == "Sliding":
        kind, every_ns = "sliding", int(match["second"] or 0) * MS or size_ns
    time: Literal["event", "processing"] = "event" if (match["time"] or match["time2"]) == "Event" else "processing"
    return PlannedWindow(kind, size_ns, every_ns, time, "datastream", is_local=False, phrase=match[0])


def _parse_sql_window(match: re.Match[str]) -> PlannedWindow | None:
    """Return the window of an SQL operator, or None if its sizes cannot be parsed.  A CUMULATE window counts as sliding."""
    sizes: dict[str, int] = {}
    written = _SQL_SIZES.findall(match["sizes"])
    for name, text in written:
        try:
            sizes[name] = parse_flink_duration(text)
        except UnitError:
            return None
    size = sizes.get("size") or sizes.get("max_size") or sizes.get("gap") or 0
    every = sizes.get("slide") or sizes.get("step") or size
    if size == 0:
        return None
    kinds: dict[str, WindowKind] = {"TUMBLE": "tumbling", "SESSION": "session"}
    kind = kinds.get(match["kind"], "sliding" if every < size else "tumbling")
    phrase = f"{match['stage']}WindowAggregate, {match['kind']}({', '.join(' '.join(pair) for pair in written)})"
    return PlannedWindow(kind, size, every, "", "sql", match["stage"] == "Local", phrase)


# ---- Rayleigh test, by permutation: do durations depend on the phase within a period?

_PHASE_RESAMPLES = 20_000
_SEED = 1


def phase_concentration_p_value(phases: Sequence[float], durations_ms: Sequence[float]) -> float:
    """Return the p-value of the weighted Rayleigh test: are long durations concentrated at one phase?

    The statistic is the length of the weighted sum of unit vectors at the phases.  The weight is the duration minus the
    shortest duration.  The null distribution comes from random permutations of the durations.  `phases` are in [0, 1).
    """
    durations = np.array(durations_ms, dtype=float)
    if not durations.size:
        return 1.0
    weights = durations - durations.min()
    vectors = np.exp(2j * np.pi * np.array(phases))
    if not weights.any() or np.ptp(np.abs(vectors - vectors[0])) < 1e-9:
        return 1.0
    permuted = np.random.default_rng(_SEED).permuted(np.tile(weights, (_PHASE_RESAMPLES, 1)), axis=1)
    is_as_large = np.abs(permuted @ vectors) >= abs(weights @ vectors) - 1e-9
    return float((1 + is_as_large.sum()) / (1 + _PHASE_RESAMPLES))


# ---- Saw-tooth state size: a window clears its state when it fires, so the size drops at each window end.
#
# Between two window ends the size may rise along any non-decreasing curve: records of known keys add no state, so the
# growth slows down.  Therefore isotonic regression (the best non-decreasing curve by least squares) is fitted to the
# sizes, by their phase within the period.

MIN_R2 = 0.9
"""Minimum R2 (share of the variance that is explained) to accept a saw tooth."""
MIN_SIZES_FOR_SAW_TOOTH = 6
"""Minimum number of different sizes.  A non-decreasing curve fits almost any smaller sample."""


@dataclass(frozen=True, slots=True)
class SawTooth:
    """A size that drops to a floor once per period, and rises in between."""

    period_ms: float
    high_ms: float  # time of the last size before a drop [epoch ms]
    low_ms: float  # time of the first size after that drop
    floor: float  # size right after a drop [bytes]
    per_second: float  # mean growth after a drop [bytes/s]
    r2: float  # share of the variance explained

    @property
    def growth(self) -> float:
        """Bytes from one drop to the next."""
        return self.per_second * self.period_ms / 1000

    def window_end_ms(self, slack_ms: float = 0) -> float:
        """Return the time of the window end [epoch ms], which is between `high_ms` and `low_ms`.

        It is a multiple of the period since the epoch if there is one between them (+- `slack_ms`), otherwise the midpoint.
        """
        aligned_ms = -(-(self.high_ms - slack_ms) // self.period_ms) * self.period_ms
        return aligned_ms if aligned_ms <= self.low_ms + slack_ms else (self.high_ms + self.low_ms) / 2


def fit_saw_tooth(points: Sequence[tuple[float, float]], periods_ms: Iterable[float]) -> SawTooth | None:
    """Fit a saw tooth to points (time [epoch ms], size [bytes]), with the best of `periods_ms`.

    Returns None if there are too few different sizes, if R2 is too low, or if the size does not rise after a drop.
    """
    if len(points) < MIN_SIZES_FOR_SAW_TOOTH or len({size for _, size in points}) < MIN_SIZES_FOR_SAW_TOOTH:
        return None
    times, sizes = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    fits = (_fit_period(times, sizes, period) for period in periods_ms)
    best = max(fits, key=lambda tooth: tooth.r2, default=None)
    if best is None or best.r2 < MIN_R2:
        return None
    floor, slope = _fit_line((times - best.window_end_ms()) % best.period_ms, sizes)
    return replace(best, floor=floor, per_second=slope * 1000) if slope > 0 else None


def _fit_period(times: Numbers, sizes: Numbers, period_ms: float) -> SawTooth:
    """Return the best saw tooth of this period.  Its floor and growth are not set (0)."""
    from scipy.optimize import isotonic_regression

    phases = times % period_ms
    order = np.argsort(phases, kind="stable")
    ordered, total = sizes[order], float(((sizes - sizes.mean()) ** 2).sum())
    best = 0.0, 0
    for first in range(len(order)):  # index of the first size after the drop; among equally good ones, the smallest
        rotated = np.roll(ordered, -first)
        residual = float(((rotated - isotonic_regression(rotated).x) ** 2).sum())
        best = max(best, (1 - residual / total, -first))
    r2, first = best[0], -best[1]
    high, low = float(phases[order[first - 1]]), float(phases[order[first]])
    begin = float(times[0]) // period_ms * period_ms
    return SawTooth(period_ms, begin + high, begin + low + (period_ms if low <= high else 0.0), 0.0, 0.0, r2)


def _fit_line(since_drop: Numbers, sizes: Numbers) -> tuple[float, float]:
    """Return (floor [bytes], slope [bytes/ms]) by least squares.

    If the floor is negative, it is set to 0, and the slope is fitted again.
    """
    slope, floor = linear_regression(since_drop, sizes)
    return (floor, slope) if floor >= 0 else (0.0, linear_regression(since_drop, sizes, proportional=True).slope)


# ---- Idle timeouts of silent subtasks.


def infer_idleness(draft: Draft, job: RestJob) -> None:
    """Ask for the idle timeout of sources with silent subtasks, if the job has event-time windows.

    Flink's REST API does not report idleness.  If windows fire although a subtask is silent, it must be marked idle.
    """
    vertices = draft.document["job"]
    windows = [name for name, values in vertices.items() if values.get("window", {}).get("time") == "event"]
    timeout, why = "0 s", "never, because no window fires."
    if any(job.flows[name].total("records_out") > 0 for name in windows):
        timeout, why = "1 s", "1 s, because windows fire although some of its subtasks are silent."
    question = "After how long is a subtask without records idle (withIdleness, table.exec.source.idle-timeout)?"
    for name, values in vertices.items():
        if windows and "silent" in values.get("source", {}):
            draft.vertex(name).ask("source.watermark.idle-timeout", timeout, question, why)


# ---- Busy time per input record and per record that a window end emits.

_FIRING_STANDARD_ERRORS = 3.0  # minimum busy time per output record / its standard error
MIN_STEPS = 4  # minimum number of differences between samples of a counter


def split_busy_time(sampled: Series) -> tuple[float, float] | None:
    """Return the busy time of the task thread [ms] per input record and per output record.

    They are fitted by non-negative least squares (NNLS) to the samples of all subtasks, and scaled to the total busy time.
    Returns None if the two cannot be separated: there are too few samples, the counters are collinear, or the time per
    output record is not significant.
    """
    from scipy.optimize import nnls

    counters = ("numRecordsIn", "numRecordsOut", "accumulateBusyTimeMs")
    if not sampled.values.keys() >= set(counters):
        return None
    # between samples, of all subtasks
    read, written, busy = (np.diff(sampled.values[name], axis=0).ravel() for name in counters)
    records = np.column_stack([read, written])
    if len(busy) < MIN_STEPS or np.isnan([read, written, busy]).any() or np.linalg.matrix_rank(records) < 2:
        return None
    unconstrained = np.linalg.lstsq(records, busy, rcond=None)[0]
    variance = float(((busy - records @ unconstrained) ** 2).sum()) / (len(busy) - 2)
    standard_error = math.sqrt(variance * float(np.linalg.inv(records.T @ records)[1, 1]))
    times = nnls(records, busy)[0]
    if unconstrained[1] <= _FIRING_STANDARD_ERRORS * standard_error or times[1] <= 0:
        return None
    scale = float(busy.sum() / (records @ times).sum())
    return float(times[0]) * scale, float(times[1]) * scale


# ---- Infer the `window:` section of each vertex that has a window in the plan, or a saw-tooth state size.
#
# kind, sizes, time   from the description of the operator in the plan; otherwise from the saw tooth of its state size, and
#                     the user is asked
# phase               time of the drops of the state size, relative to the checkpoint triggers
# state-per-record    growth of the state size / records in
# fan-out             records out / records in since the start: samples do not cover a whole number of windows
# service, fire       least squares: busy time = records in x service + records out x fire

MIN_FLOOR_SHARE = (
    0.1  # minimum floor / height of the saw tooth; a lower floor is data that arrived while the window fired
)
MIN_R2_WITHOUT_PLAN = 0.97  # minimum R2 of a saw tooth if the plan contains no window, without a Rayleigh test
MAX_P_VALUE = 0.01  # of the Rayleigh test
MAX_PERIOD_S = 120  # longest period that is tried if the plan contains no window
MIN_PERIOD_S = 2  # shortest period
MIN_WINDOW_ENDS = 3  # minimum number of window ends in the history
MIN_BUSY_SHARE = 0.05  # minimum busy share of a vertex to ask how its busy time is split
WINDOW_ENDS_PER_RUN = 12  # window ends in a run, unless it would be longer than MAX_RUN_NS
MAX_RUN_NS = 3600 * 10**9
WATERMARK_SLACK_MS = 250.0  # assumed lag of the watermark behind the clock
MIN_SERVICE_NS = 1000  # minimum service time per input record, if output records take all of the busy time


_VertexWindow = tuple[PlannedWindow, SawTooth | None]
"""The window of a vertex, and the saw tooth of its state size if it has one."""


def infer_windows(draft: Draft, job: RestJob) -> None:
    """Set the `window:` section of each vertex that has a window, and its values that depend on the window."""
    event_time = uses_event_time(vertex.description for vertex in job.vertices)
    for vertex in job.vertices:
        if (vertex_window := _find_window(job, vertex)) is None:
            continue
        section, flow, (window, tooth) = draft.vertex(vertex.name), job.flows[vertex.name], vertex_window
        if not vertex.inputs and window.is_local:
            _put_window(section, job, vertex_window, event_time=event_time)
            section.put("window.stage", "local")
            continue
        if not vertex.inputs or section.values.keys() & {"async-io", "commit"}:
            other = "its vertex also has asynchronous I/O or a committer"
            why = other if vertex.inputs else "it is chained to a source"
            draft.not_modelled.append(f"the window of '{vertex.name}' ({window.phrase}): {why}")
            continue
        _put_window(section, job, vertex_window, event_time=event_time)
        if tooth is not None and flow.per_second("records_in") > 0:
            _put_state_per_record(section, window, tooth, flow)
            if job.readers(vertex.name):
                _put_fan_out(section, job.flows_since_start(vertex))
        _put_service_times(section, job.series[vertex.name], flow)


def longest_run_ns(job: RestJob) -> int:
    """Return the length of a run [ns] with enough window ends to meet checkpoints at all phases, or 0 without windows."""
    windows = filter(None, (_find_window(job, vertex) for vertex in job.vertices))
    periods = [window.every_ns for window, _ in windows]
    return min(WINDOW_ENDS_PER_RUN * max(periods, default=0), MAX_RUN_NS)


def _find_window(job: RestJob, vertex: RestVertex) -> _VertexWindow | None:
    """Return the window of a vertex, or None if it has none.  Without a window in the plan, look for periodic timers."""
    # The files of RocksDB also shrink with compactions, so only state on the heap shows window ends.
    planned, on_heap = planned_window(vertex.description), backend_of(job) == "hashmap"
    if planned is not None:
        sizes = _sizes(job, vertex) if on_heap and planned.kind != "session" else []
        tooth = fit_saw_tooth(sizes, [planned.every_ns / MS])
        if tooth is not None and planned.bytes_left_at_end(tooth) - tooth.floor > MIN_FLOOR_SHARE * tooth.growth:
            tooth = None  # its windows overlap, and hold less than such a growth: two phases fit any curve
        return planned, tooth
    tooth = find_periodic_timers(job, vertex) if on_heap else None
    if tooth is None:
        return None
    every_ns = round(tooth.period_ms) * MS
    return PlannedWindow("tumbling", every_ns, every_ns, "", "datastream", is_local=False, phrase=""), tooth


def find_periodic_timers(job: WatchedJob, vertex: RestVertex) -> SawTooth | None:
    """Find timers of a keyed function that fire together and clear its state on the heap.  Return None if there are none.

    If R2 is moderate, for example because a checkpoint was taken while timers fired, checkpoint durations must have the
    same period (Rayleigh test).  Sizes that rarely fall are rejected, even if a period fits: if checkpoints are slightly
    more than one period apart, any rising size resembles a saw tooth.
    """
    sizes = _sizes(job, vertex) if any(edge.ship == "HASH" for edge in vertex.inputs) else []
    if sum(after < before for (_, before), (_, after) in pairwise(sizes)) < MIN_WINDOW_ENDS - 1:
        return None
    tooth = fit_saw_tooth(sizes, [1000.0 * seconds for seconds in range(MIN_PERIOD_S, MAX_PERIOD_S + 1)])
    if tooth is None or sizes[-1][0] - sizes[0][0] < MIN_WINDOW_ENDS * tooth.period_ms:
        return None
    if tooth.r2 >= MIN_R2_WITHOUT_PLAN:
        return tooth
    points = typical_checkpoints(job)
    phases = [point.trigger_timestamp % tooth.period_ms / tooth.period_ms for point in points]
    p_value = phase_concentration_p_value(phases, [point.end_to_end_duration for point in points])
    return tooth if p_value < MAX_P_VALUE else None


def _sizes(job: WatchedJob, vertex: RestVertex) -> list[tuple[float, float]]:
    """Return (mean time at which sources took their snapshot [epoch ms], state bytes of the vertex) per usual checkpoint.

    The trigger time would be too early, because a source receives the trigger RPC with a delay.
    """
    sizes, sources = [], [source.name for source in job.vertices if not source.inputs]
    for point in typical_checkpoints(job):
        acknowledged = acknowledged_by(point, vertex.name)
        if len(acknowledged) == vertex.parallelism:
            tasks = [point.tasks[source] for source in sources if source in point.tasks]
            delays = [max(subtask.start_delay, 0) for source in tasks for subtask in source.subtasks]
            snapshot_ms = point.trigger_timestamp + (fmean(delays) if delays else 0.0)
            sizes.append((snapshot_ms, float(sum(own_bytes(subtask) for subtask in acknowledged))))
    return sizes


def _put_window(section: Section, job: RestJob, vertex_window: _VertexWindow, *, event_time: bool) -> None:
    """Set kind, sizes, time, API and phase of a window."""
    window, tooth = vertex_window
    size = format_duration(window.size_ns)
    if window.phrase:
        section.put(f"window.{window.kind}", size, f"{window.phrase} in the plan")
    else:
        r2 = tooth.r2 if tooth else 0.0
        assumed = (
            f"windows of {size}: a saw tooth with this period explains {r2:.0%} of the variance of its state size."
        )
        section.ask("window.tumbling", size, "Which of its timers fire together, and how often?", assumed)
    if window.kind == "sliding":
        section.put("window.every", format_duration(window.every_ns))
    if window.time or window.phrase:
        watermarks = f"{'an' if event_time else 'no'} operator of the plan generates watermarks"
        section.put(
            "window.time", window.time or ("event" if event_time else "processing"), "" if window.time else watermarks
        )
    else:
        question = "Are its timers event-time or processing-time timers?"
        section.ask("window.time", "processing", question, "processing time.")
    if window.api == "datastream":
        section.put("window.api", "datastream")
    if window.kind != "session":
        _put_phase(section, job, vertex_window)


def _put_phase(section: Section, job: RestJob, vertex_window: _VertexWindow) -> None:
    """Set the phase of the window, so that window ends have the same offset from checkpoint triggers in a run as in the job."""
    (window, tooth), grid_ms, phase_ms = vertex_window, _trigger_grid_ms(job), 0.0
    if (
        grid_ms is not None
    ):  # without a saw tooth, windows are assumed to end at multiples of the period since the epoch
        # In a run with the profile of Flink 2.x, the first trigger comes after a pause.
        first_ms = Overheads().first_trigger_ns / MS + (job.checkpoint_config.min_pause or 0)
        phase_ms = (tooth.window_end_ms(WATERMARK_SLACK_MS) if tooth else 0.0) - grid_ms + first_ms
    phase = format_whole_ms(round(phase_ms % (window.every_ns / MS)) % round(window.every_ns / MS))
    if tooth is not None and grid_ms is not None:
        origin = f"its state size drops then: a saw tooth explains {tooth.r2:.0%} of the variance"
        section.put("window.phase", phase, origin)
    else:
        question = "At what offset from the checkpoint triggers do its windows end?"
        assumed = "windows end at multiples of their size since the epoch; its state size does not show it."
        section.ask("window.phase", phase, question, assumed)


def _trigger_grid_ms(job: RestJob) -> float | None:
    """Return the nominal time of a periodic trigger [epoch ms]: one interval before the first usual checkpoint.

    The median over all triggers removes their jitter.  Returns None without an interval or without checkpoints.
    """
    every_ms = job.checkpoint_config.interval
    triggers = [point.trigger_timestamp for point in typical_checkpoints(job)]
    if not triggers or every_ms <= 0:
        return None
    offset = median((trigger - triggers[0] + every_ms / 2) % every_ms - every_ms / 2 for trigger in triggers)
    return triggers[0] + offset - every_ms


def _put_state_per_record(section: Section, window: PlannedWindow, tooth: SawTooth, flow: Flows) -> None:
    """Set `state-per-record` of the window, from the growth of the saw tooth.

    What no window holds of its floor is the state of the vertex outside its window.  If it is small, that state is removed.
    """
    per_second, state = flow.per_second("records_in"), section.values.get("state", {})
    origin = f"{tooth.per_second:,.0f} bytes/s between two window ends / {per_second:,.1f} records/s"
    outside = tooth.floor - window.bytes_left_at_end(tooth)
    section.put(
        "window.state-per-record", format_size(round(tooth.per_second / per_second / window.copies_per_record)), origin
    )
    section.drop("state.growth")
    section.drop("state.ttl")
    if outside > MIN_FLOOR_SHARE * tooth.growth:
        section.put("state.size", format_size(round(outside)), "state size right after a window end")
    elif state.keys() <= {"size", "growth", "backend"}:
        section.drop("state")


def _put_fan_out(section: Section, since_start: Flows) -> None:
    """Set the fan-out from the totals, because samples do not cover a whole number of windows."""
    read, written = since_start.total("records_in"), since_start.total("records_out")
    if read > 0 and written > 0:
        origin = f"{written:,.0f} records out / {read:,.0f} in, {since_start.source}"
        section.put("fan-out", format_number(Fraction(f"{written / read:.4g}")), origin)


def _put_service_times(section: Section, sampled: Series, flow: Flows) -> None:
    """Set the service time per input record, and the time per record that a firing window emits.

    If the counters do not separate them, ask for the latter.
    """
    if (split := split_busy_time(sampled)) is not None:
        per_record_ms, per_output_ms = split
        origin = "least squares: busy time over records in and records out"
        section.put("service", duration_3_digits(max(per_record_ms * MS, MIN_SERVICE_NS)), origin)
        section.put("window.fire", duration_3_digits(per_output_ms * MS), origin)
    elif flow.share("busy_ms") > MIN_BUSY_SHARE and flow.total("records_out") > 0:
        at_most = duration_3_digits(flow.total("busy_ms") / flow.total("records_out") * MS)
        question = "How long does its thread work per record that it emits when a window fires?"
        why = f"0, so that `service` has all of the busy time. It is between 0 and {at_most}: the counters do not tell."
        section.ask("window.fire", "0 s", question, why)
