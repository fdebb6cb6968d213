"""The settings that a search tries: an interval, a barrier mode, and changes proposed by levers.

All barrier modes (`protocols`) are tried at every interval, from the smallest change of a job to the largest.  Modes in
which barriers overtake data are excluded if a sink would lose records.

A candidate is a complete setting, and so a change of the scenario.  If the current value of another key would make its
interval or its barrier mode ineffective, the candidate changes that key, too (`_binding_keys`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.model.checkpoint import BARRIERS, BarrierKind
from sim.model.cluster import was_added_after
from sim.model.schema.flink_keys import since
from sim.model.schema.study import path_of
from sim.model.sinks import SINKS, SinkKind
from sim.model.units import SECOND, format_duration, parse_duration
from sim.protocol.coordinator import effective_interval_ns

if TYPE_CHECKING:
    from sim.model.checkpoint import CheckpointOptions
    from sim.model.scenario import Scenario
    from sim.studies.sweeps.design import Point

INTERVALS_NS = tuple(seconds * SECOND for seconds in (10, 30, 60, 180, 600))
ROUND_INTERVALS_NS = tuple(
    seconds * SECOND for seconds in (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1800, 3600)
)
TIMEOUT_NS = 600 * SECOND
"""Flink's default of execution.checkpointing.timeout.  Trials have no shorter timeout."""

_BARRIERS, DEBLOAT = "checkpoint.barriers", "cluster.network.debloat"
PAUSE, TIMEOUT, TIMERS = "checkpoint.min-pause", "checkpoint.timeout", "checkpoint.interruptible-timers"
BINDING = (PAUSE, "checkpoint.max-concurrent", "checkpoint.interval-during-backlog")
"""Keys whose current values may make the interval or the barriers of a candidate ineffective, so that it changes them."""
PAUSES_PER_INTERVAL = 2
"""A min-pause that would extend the interval is reduced to the interval divided by this.  The rest is for the checkpoint."""


SettingName = tuple[str, str]
"""(interval, barrier mode and levers), e.g. ``("30 s", "unaligned, changelog")``."""


@dataclass(frozen=True, slots=True)
class BarrierSetting:
    """A barrier mode with its options, e.g. debloating, as a change of the scenario."""

    name: str
    point: Point = field(hash=False)
    aligned: bool  # the barrier never overtakes data

    @property
    def barriers(self) -> str:
        """Return the barrier mode without further options."""
        return self.name.partition(", ")[0]


def protocols() -> tuple[BarrierSetting, ...]:
    """Return all barrier modes that a search tries."""
    return tuple(_advised(kind, debloat) for kind in BARRIERS.values() for debloat in kind.advised)


def sinks_of(scenario: Scenario) -> dict[str, SinkKind | None]:
    """Return {sink: its kind}, determined by its connector or its name.  The kind is None if it is unknown.

    Sinks are those of the job, and all others whose connector is that of a sink.
    """
    job = scenario.job
    by_connector = {vertex.name: SINKS[vertex.connector] for vertex in job.vertices if vertex.connector in SINKS}
    return {name: SINKS.get(job.vertex(name).known_connector) for name in job.sinks} | by_connector


def sink_hazards(scenario: Scenario) -> list[str]:
    """Return a sentence per sink that loses records or fails with the barriers or the interval of this scenario."""
    interval_ns = scenario.checkpoint.interval_ns or 0
    sentences = [
        f"'{vertex.name}' keeps each transaction open for {format_duration(interval_ns)} (checkpoint.interval), longer than its "
        f"timeout, {format_duration(timeout_ns)}: its output is lost"
        for vertex in scenario.job.vertices
        if vertex.commit is not None
        and interval_ns > (timeout_ns := vertex.commit.transaction_timeout_ns or interval_ns)
    ]
    if not scenario.checkpoint.barriers.record.overtakes:
        return sentences
    return sentences + [
        f"'{vertex}' writes to {kind.title}, which {kind.verdict} if barriers overtake data ({kind.source}): {kind.why}. "
        f"Instead: {kind.instead}"
        for vertex, kind in sinks_of(scenario).items()
        if kind is not None and kind.verdict
    ]


def allowed_protocols(scenario: Scenario) -> tuple[BarrierSetting, ...]:
    """Return all barrier modes that the sinks of the job allow, and that its version of Flink has."""
    return tuple(
        protocol for protocol in _allowed_by_sinks(scenario) if not options_missing_in_release(scenario, protocol.point)
    )


def later_protocols(scenario: Scenario) -> dict[str, str]:
    """Return {barrier mode, or debloating: the release that brought it} of those that the job's version of Flink lacks."""
    return {
        {DEBLOAT: "debloating", TIMERS: "interruptible timers"}.get(option, protocol.barriers): release
        for protocol in _allowed_by_sinks(scenario)
        for option, release in options_missing_in_release(scenario, protocol.point).items()
    }


def options_missing_in_release(scenario: Scenario, point: Point) -> dict[str, str]:
    """Return {option: the release that brought it} of changes that the job's version of Flink lacks."""
    version = scenario.cluster.release
    return {key: release for key, value in point.items() if (release := since(path_of(key), value, version))}


def _allowed_by_sinks(scenario: Scenario) -> list[BarrierSetting]:
    forbidden = any(kind is not None and kind.verdict for kind in sinks_of(scenario).values())
    windows = [vertex.window for vertex in scenario.job.vertices if vertex.window is not None]
    # unaligned barriers wait for all that windows fire, unless the timers of SQL let them pass (FLIP-443)
    is_held = any(window.time == "event" and window.api == "sql" for window in windows)
    passing = [
        replace(protocol, name=f"{protocol.name}, interruptible timers", point={**protocol.point, TIMERS: True})
        for protocol in protocols()
        if protocol.name == "unaligned" and is_held and not scenario.checkpoint.interruptible_timers
    ]
    return [protocol for protocol in (*protocols(), *passing) if protocol.aligned or not forbidden]


def _advised(kind: BarrierKind, debloat: str) -> BarrierSetting:
    name = f"{kind.name} {kind.advised_deadline}" if kind.has_deadline else kind.name
    value: Any = {kind.name: kind.advised_deadline} if kind.has_deadline else kind.name
    return BarrierSetting(
        f"{name}, debloating" if debloat == "on" else name,
        {_BARRIERS: value, DEBLOAT: debloat},
        aligned=not kind.overtakes,
    )


@dataclass(frozen=True, slots=True)
class Change:
    """A concrete change proposed by a lever; its name is appended to the protocol in the name of a setting."""

    lever: Lever
    name: str
    point: Point = field(default_factory=dict, hash=False)
    protocol: BarrierSetting | None = None  # another barrier mode; None: unchanged
    assumption: str = ""  # a value that it assumes, and the range that was measured elsewhere


class RareCheckpoints(NamedTuple):
    """Checkpoints of which more than one in a hundred takes `ms` or longer, though a trial may show none."""

    ms: float  # inf: they expire
    why: str
    vertex: str = ""  # the vertex whose windows fire; "": files are slow
    restarts_per_s: float = 0.0  # restarts of the job by those that expire


@dataclass(frozen=True, slots=True)
class Situation:
    """A setting that has run, with the parts on which its time is spent.  Levers propose changes for it."""

    scenario: Scenario  # scenario of its undisturbed trial
    plain: Mapping[str, Any]  # scenario document of the job
    protocol: BarrierSetting
    interval_ns: int
    shares: Mapping[str, float]  # part -> share of the time that exceeds limits; they sum to 1, or to 0 if unknown
    milliseconds: Mapping[str, float]  # part -> time [ms] that it takes in the slowest tenth of checkpoints
    checkpoint_ms: float = 0.0
    uploaded_bytes: float = 0.0  # of the median checkpoint, all subtasks
    recovery: Mapping[str, float] = field(default_factory=dict)  # part -> time [ms] that it takes in the recovery
    is_lost_silently: bool = False  # trials lose a TaskManager that falls silent
    is_recovered: bool = True  # False: trials ended before the job had caught up, and its recovery is unknown
    is_unlimited: bool = False  # a source always has more records, so that the job never catches up
    visible: Mapping[str, float] = field(default_factory=dict)  # part -> time [ms] until output is visible
    loss: float = 0.0  # of throughput, as a share
    breaks: tuple[str, ...] = ()  # exceeded limits
    checkpoint_limit_ms: float | None = None  # the limit on checkpoints, if there is one
    recovery_limit_ms: float | None = None  # the same of recovery
    rare: RareCheckpoints | None = None  # checkpoints that trials may not show
    recorded_ms: float = 0.0  # longest checkpoint of the job's history [ms], of today's setting
    full: str = ""  # vertex with a subtask that is fully busy; "": there is none
    hot: str = ""  # that subtask if it is far busier than the others of its vertex, as by a hot key
    busiest: str = ""  # sentence on a vertex that is too busy to catch up fast; "": there is none


@dataclass(frozen=True, slots=True)
class Lever:
    """A kind of change of a job, and the parts that it shortens."""

    name: str
    helps: tuple[str, ...] = ()  # parts that it may shorten
    # yields nothing if it does not apply
    proposes: Callable[[Situation], Iterator[Change]] = field(default=lambda _: iter(()), hash=False)
    costs: str = field(kw_only=True)
    ask: str = ""  # question to answer before it is used
    caution: str = ""
    short_ask: str = ""  # `ask` in at most 70 characters
    short_caution: str = ""
    source: str = ""
    is_configuration: bool = True  # False: needs machines, storage, or another version
    # Flink keys for which scenarios have no option
    flink_keys: Mapping[str, str] = field(default_factory=dict, hash=False)
    since: str = ""  # the first release that has it, where no option of scenarios says so

    def later_than(self, scenario: Scenario, change: Change) -> str:
        """Return the release that brought a change of this lever, or "" if the job's version of Flink has all of it."""
        if was_added_after(self.since, scenario.cluster.release):
            return self.since
        return next(iter(options_missing_in_release(scenario, change.point).values()), "")

    def share(self, situation: Situation) -> float:
        """Return the share of the exceeding time that the lever may shorten."""
        return sum(situation.shares.get(part, 0.0) for part in self.helps)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting to try: interval, barrier mode, and changes proposed by levers."""

    interval: str
    protocol: str  # the barrier mode and the levers
    point: Point = field(hash=False)  # all changes from the current setting
    barriers: BarrierSetting = field(hash=False)
    changes: tuple[Change, ...] = field(default=(), hash=False)

    @property
    def name(self) -> SettingName:
        return self.interval, self.protocol

    @property
    def interval_ns(self) -> int:
        return parse_duration(self.interval)

    @property
    def binding_keys(self) -> Point:
        """Return the keys that change only because their current values would make the setting ineffective."""
        wanted = {*self.barriers.point, *(key for change in self.changes for key in change.point)}
        return {key: value for key, value in self.point.items() if key in BINDING and key not in wanted}

    @property
    def has_longer_timeout(self) -> bool:
        """Return True if the timeout changes only because today's is shorter than that of trials."""
        return TIMEOUT in self.point and not any(TIMEOUT in change.point for change in self.changes)


def todays_setting(scenario: Scenario) -> tuple[int | None, BarrierSetting]:
    """Return (current interval [ns], or None if the job takes no checkpoints; current barrier mode)."""
    barriers, debloat = scenario.checkpoint.barriers, scenario.cluster.network.debloat is not None
    name = f"{barriers}, debloating" if debloat else str(barriers)
    alike = [protocol for protocol in protocols() if protocol.name == name]
    unlisted = BarrierSetting(name, {}, aligned=not barriers.record.overtakes)
    return scenario.checkpoint.interval_ns, alike[0] if alike else unlisted


def intervals(scenario: Scenario, *, recovery_ms: float | None, visible_ms: float | None) -> list[int]:
    """Return the intervals to try [ns], ascending: a grid, the current interval, and the longest that each limit may allow."""
    today_ns, _ = todays_setting(scenario)
    lengths_ns = {*INTERVALS_NS, *([today_ns] if today_ns else [])}
    for bound_ms in (recovery_ms, visible_ms):
        # at worst a whole interval of work is lost or waited for; half the limit leaves time for everything else
        if bound_ms is not None:
            fitting = [interval_ns for interval_ns in ROUND_INTERVALS_NS if interval_ns <= bound_ms * 1e6 / 2]
            lengths_ns |= {fitting[-1]} if fitting else set()
    return sorted(lengths_ns)


def neighbouring_intervals(interval_ns: int) -> tuple[list[int], list[int]]:
    """Return the shorter and the longer round intervals [ns], the nearest first."""
    shorter = [other_ns for other_ns in reversed(ROUND_INTERVALS_NS) if other_ns < interval_ns]
    return shorter, [other_ns for other_ns in ROUND_INTERVALS_NS if other_ns > interval_ns]


def make_candidate(
    scenario: Scenario, interval_ns: int, barriers: BarrierSetting, changes: tuple[Change, ...] = ()
) -> Candidate:
    """Return the candidate with this interval, barrier mode and these changes.

    Its `point` contains only the differences from the current setting, so that of the current setting is empty.
    """
    today_ns, todays = todays_setting(scenario)
    interval, protocol = format_duration(interval_ns), ", ".join([barriers.name, *(change.name for change in changes)])
    if (interval_ns, protocol) == (today_ns, todays.name):
        return Candidate(interval, protocol, {}, barriers)
    point: Point = {} if interval_ns == today_ns else {"checkpoint.interval": interval}
    wanted = dict(barriers.point)
    for change in changes:
        wanted |= change.point
    is_debloating = scenario.cluster.network.debloat is not None
    for key, value in wanted.items():
        if key == DEBLOAT and isinstance(value, str) and (value == "on") == is_debloating:
            continue  # unchanged, with the user's own target
        if key != _BARRIERS or barriers.barriers != todays.barriers:
            point[key] = value
    point = _binding_keys(scenario.checkpoint, interval_ns, aligned=barriers.aligned) | point
    return Candidate(interval, protocol, point, barriers, changes)


def _binding_keys(today: CheckpointOptions, interval_ns: int, *, aligned: bool) -> Point:
    """Return changes of keys whose values would make the interval or the barriers ineffective."""
    change: Point = {}
    is_shorter = today.interval_ns is None or interval_ns < today.interval_ns
    if today.min_pause_ns >= interval_ns or (is_shorter and today.min_pause_ns * PAUSES_PER_INTERVAL > interval_ns):
        pause_ns = interval_ns // PAUSES_PER_INTERVAL
        change[PAUSE] = format_duration(pause_ns - (pause_ns % SECOND if pause_ns > SECOND else 0))
    if today.timeout_ns < TIMEOUT_NS:
        change[TIMEOUT] = format_duration(TIMEOUT_NS)
    if not aligned and today.max_concurrent > 1:
        change["checkpoint.max-concurrent"] = 1  # Flink runs unaligned checkpoints one at a time
    if today.interval_during_backlog_ns and today.interval_during_backlog_ns < interval_ns:
        change["checkpoint.interval-during-backlog"] = format_duration(interval_ns)  # Flink refuses a shorter one
    return change


def writes_changes(scenario: Scenario, vertex: str) -> bool:
    """Return True if checkpoints write only the changes of a vertex's state: by the changelog, or incrementally."""
    state = scenario.job.vertex(vertex).state
    return state is not None and (
        state.changelog is not None or (scenario.checkpoint.state.incremental and state.kind.keeps_files)
    )


def checkpoint_period_ns(options: CheckpointOptions, duration_ns: float = 0.0) -> float:
    """Return the effective interval [ns], from one trigger to the next, if a checkpoint takes `duration_ns`.

    It is the configured interval, unless min-pause is longer, or checkpoints take so long that the maximum number of
    concurrent checkpoints delays the next one.
    """
    min_ns = effective_interval_ns(options.interval_ns or 0, options.min_pause_ns)
    if options.max_concurrent == 1 or options.min_pause_ns:  # with a min-pause, Flink runs one checkpoint at a time
        return max(min_ns, duration_ns + options.min_pause_ns)
    return max(min_ns, duration_ns / options.max_concurrent)


def with_files_after_barrier(scenario: Scenario, base: BarrierSetting) -> BarrierSetting | None:
    """Return `base` with files written after the barrier (FLINK-37375), or None if no operator writes before it."""
    works = any(vertex.flush is not None or vertex.snapshot.pre_barrier_ns > 0 for vertex in scenario.job.vertices)
    if not works or scenario.checkpoint.operator_io != "pre-barrier":
        return None
    name = f"{base.name}, operator files behind the barrier (FLINK-37375)"
    return BarrierSetting(name, {**base.point, "checkpoint.operator-io": "async"}, base.aligned)
