"""What short trials must represent of a long-running job: windows of its load, and the size of its growing state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, inf
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sim.model.schema.study import key_of
from sim.model.schema.text import ScenarioError
from sim.model.schema.trace import Trace, TraceError, TraceTable, rates_of_trace, series_of
from sim.model.series.columns import find_rate_column
from sim.model.text import did_you_mean
from sim.model.units import SECOND, format_duration, format_share
from sim.storage.state_backends import Expiry
from sim.studies.plan import baseline
from sim.studies.sweeps.design import Point

if TYPE_CHECKING:
    from sim.model.scenario import Backtest, Scenario
    from sim.model.state import State


# ---- Load from a trace. A trace lasts days, a trial minutes, so each setting is tried in two windows of the trace, the busiest
# and the median one ("worlds"). Limits must hold in both; costs are the mean of both.

WINDOW_NS = 600 * 10**9
"""Length of a window, about as long as a trial runs before its failure."""
WINDOWS = 1000
"""Maximum number of windows of a trace that are compared, about."""
BUSIEST, USUAL = "busiest", "usual"


def load_worlds(
    file: Path, plain: Mapping[str, Any], scenario: Scenario, load_files: Sequence[str]
) -> tuple[Point, dict[str, Point]]:
    """Return (changes of the sources' rates, {name of a world: its change}).

    `plain`: the scenario document.  `load_files`: values of ``--load``, e.g. ``source=file.csv:column``; source and column
    may be omitted if they are unambiguous.

    Raises ScenarioError if a source, a file or a column does not exist.
    """
    try:
        driven = dict(_parse_load(plain, scenario, text) for text in load_files)
        traces = _scenario_traces(plain) | driven
        return driven, _worlds(file.parent, traces)
    except TraceError as error:
        raise ScenarioError.of(error, "") from None


def _parse_load(plain: Mapping[str, Any], scenario: Scenario, text: str) -> tuple[str, dict[str, Any]]:
    """Return (key of the source's rate, the trace as its new value) for a value of ``--load``.  Raises TraceError."""
    sources = [vertex.name for vertex in scenario.job.vertices if vertex.source is not None]
    name, equals, rest = text.partition("=")
    if not equals:
        name, rest = sources[0], text
        if len(sources) > 1:
            raise TraceError(f"--load {text}: which of the sources {', '.join(sources)}? Write {sources[0]}={text}")
    if name not in sources:
        raise TraceError(f"--load {text}: there is no source '{name}'{did_you_mean(name, sources)}")
    path, colon, column = rest.rpartition(":")
    if not colon:
        path, column = rest, ""
    file = Path(path).resolve()
    columns = TraceTable(file).columns
    column = column or find_rate_column(columns) or ""
    if not column:
        raise TraceError(
            f"--load {text}: which column? {file.name} has {', '.join(columns) or 'none'}: write {path}:COLUMN"
        )
    trace: dict[str, Any] = {"trace": str(file), "column": column}
    if _key(plain, name) == "rate-per-subtask":
        trace["scale"] = float(Fraction(1, scenario.job.vertex(name).emitting))
    return f"job.{name}.source.{_key(plain, name)}", trace


def _key(plain: Mapping[str, Any], name: str) -> str:
    """Return the key by which the scenario sets the rate of a source."""
    return "rate-per-subtask" if "rate-per-subtask" in plain["job"][name]["source"] else "rate"


def _scenario_traces(plain: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return {key of a source's rate: trace} of the traces that the scenario itself contains."""
    sources = {name: body["source"] for name, body in plain["job"].items() if "source" in body}
    rates = {
        f"job.{name}.source.{_key(plain, name)}": source.get(_key(plain, name)) for name, source in sources.items()
    }
    return {key: rate for key, rate in rates.items() if isinstance(rate, dict)}


def _worlds(folder: Path, traces: Mapping[str, Mapping[str, Any]]) -> dict[str, Point]:
    """Return the busiest and the median window of the traces as worlds.

    There is a single world without changes if there is no trace, a trace is shorter than two windows, or the scenario
    already says where a trace begins.
    """
    rates = {key: Trace.model_validate(dict(trace)) for key, trace in traces.items()}
    lengths = [series_of(rate, folder).length_ns for rate in rates.values()]
    if not lengths or min(lengths) < 2 * WINDOW_NS or any(rate.from_ is not None for rate in rates.values()):
        return {"": {}}
    step_ns = max(WINDOW_NS // 2, min(lengths) // WINDOWS)
    starts = range(0, min(lengths) - WINDOW_NS + 1, step_ns)
    means = sorted((sum(_mean(rate, folder, start) for rate in rates.values()), start) for start in starts)
    chosen = {BUSIEST: means[-1][1], USUAL: means[len(means) // 2][1]}
    return {name: {f"{key}.from": format_duration(start) for key in rates} for name, start in chosen.items()}


def _mean(trace: Trace, folder: Path, start_ns: int) -> Fraction:
    """Return the mean records/s in one window."""
    window = trace.model_copy(update={"from_": start_ns})
    rates = rates_of_trace(window, folder, until_ns=WINDOW_NS, subtasks=1)
    ends = [rate.start_ns for rate in rates[1:]] + [WINDOW_NS]
    records = (rate.per_second * (end - rate.start_ns) for rate, end in zip(rates, ends, strict=True))
    return sum(records, Fraction()) / WINDOW_NS


# ---- The size of growing state at the horizon, which all trials use.
#
# A trial lasts minutes to hours, but the advised setting must keep the limits until the horizon. So state has its size at
# the horizon during the whole trial, and a record rewrites as many bytes as it adds and rewrites in the job. Short and long
# trials then have the same checkpoints and can be compared. `sim.advice.optimizer` examines other times than the horizon.

AHEAD_NS = 7200 * SECOND
"""Default horizon."""
OBSERVED_NS = 60 * SECOND
"""Length of the run without checkpoints that measures how many records a vertex serves."""


@dataclass(frozen=True, slots=True)
class GrowingState:
    """The state of one vertex that grows or expires, all subtasks together.

    Times count from now: from the end of the history, or from the start of a scenario without one.
    """

    vertex: str
    now_bytes: int  # size at time 0
    per_second: float  # bytes of new keys per second
    ttl_s: float = inf  # time to live of its keys; inf: they never expire
    rewritten_per_second: float = 0.0  # rewritten entries per second
    entry_bytes: int = 1000
    checked_per_second: float = inf  # bytes checked by the heap's cleanup; inf: snapshots contain no expired entries
    written_per_record: Fraction = Fraction(0)  # mean bytes that a record writes, as new keys and rewritten ones
    limit_bytes: float = inf  # size when all keys exist; inf: new keys never run out

    def after(self, seconds: float) -> int:
        """Return the size of a snapshot [bytes] in this many seconds from now.

        The ages of the keys that exist now are taken as uniform up to their time to live.
        """
        live = self._live_after(seconds)
        return live + self._uncleaned_bytes(live, seconds)

    def change(self, seconds: float) -> Point:
        """Return the change of a scenario that fixes the state at its size in this many seconds.

        State then neither grows nor expires, but a record writes as many bytes as before.
        """
        entry_bytes = max(
            self.entry_bytes, -(-self.written_per_record.numerator // self.written_per_record.denominator)
        )
        state = {
            "size": f"{self.after(seconds)} B",
            "growth": "0 B",
            "ttl": "0 s",
            "update": format_share(Fraction(f"{float(self.written_per_record / entry_bytes):.6g}")),
            "value": f"{entry_bytes} B",
        }
        return {key_of(("job", self.vertex, "state", name)): value for name, value in state.items()}

    def _live_after(self, seconds: float) -> int:
        """Return the bytes of keys that have not expired in this many seconds."""
        if self.limit_bytes < inf:  # keys never expire, and new ones become rarer
            left = max(self.limit_bytes - self.now_bytes, 0)
            return round(self.now_bytes + left * (1 - exp(-self.per_second * seconds / self.limit_bytes)))
        if not self.rewritten_per_second or self.ttl_s == inf:
            left = 1 - min(seconds / self.ttl_s, 1.0)
            return round(self.now_bytes * left + self.per_second * min(seconds, self.ttl_s))
        # expiry depends on which keys are rewritten
        expiry = Expiry(round(self.ttl_s * SECOND), self.now_bytes, self.entry_bytes)
        return expiry.advance(
            round(self.per_second * seconds), round(self.rewritten_per_second * seconds), round(seconds * SECOND)
        ).live_bytes

    def _uncleaned_bytes(self, live: int, seconds: float) -> int:
        """Return the mean bytes of expired entries that the heap's cleanup has not removed yet (`sim.storage.state_files`)."""
        expires = live / self.ttl_s
        if not expires or self.checked_per_second == inf:
            return 0
        ahead = 2 * self.checked_per_second - expires
        return round(min(expires * live / ahead if ahead > 0 else inf, expires * seconds))


@dataclass(frozen=True, slots=True)
class Horizon:
    """The time for which the advised setting must keep the limits, and the state that grows until then."""

    ahead_ns: int = AHEAD_NS
    states: tuple[GrowingState, ...] = ()

    @property
    def moved(self) -> list[GrowingState]:
        """Return the states whose size at the horizon is not that of now."""
        return [state for state in self.states if state.after(self.ahead_ns / SECOND) != state.now_bytes]

    def change(self, seconds: float | None = None) -> Point:
        """Return the change of a scenario that fixes growing state at its size in this many seconds; None: at the horizon."""
        ahead_s = self.ahead_ns / SECOND if seconds is None else seconds
        return {key: value for state in self.states for key, value in state.change(ahead_s).items()}


def horizon(scenarios: Sequence[Scenario], backtest: Backtest | None, ahead_ns: int) -> Horizon:
    """Return the horizon with the growing state of a job, measured by a short simulation in each world.

    `scenarios`: the job in all worlds; growth is computed from the mean of the rates.  `ahead_ns`: time until the horizon.
    """
    turning = [
        (vertex.name, vertex.state)
        for vertex in scenarios[0].job.vertices
        if vertex.state is not None and vertex.state.turns_over
    ]
    if not turning:
        return Horizon(ahead_ns)
    rates = [measure_served_rates(scenario) for scenario in scenarios]
    known_s = _history_s(scenarios[0], backtest)
    begun = [_growing_state(name, state, fmean(rate[name] for rate in rates)) for name, state in turning]
    return Horizon(ahead_ns, tuple(replace(state, now_bytes=state.after(known_s)) for state in begun))


def _growing_state(name: str, state: State, records_per_second: float) -> GrowingState:
    """Return the growing state of a vertex that serves this many records/s, from the start of the scenario."""
    ttl = state.ttl
    waits = ttl is not None and not state.kind.keeps_files and not ttl.filters_snapshots
    met = 1 if state.limit_bytes is None else 1 - state.new_share  # share of the records whose key exists already
    return GrowingState(
        name,
        state.bytes,
        state.growth_bytes * records_per_second,
        inf if ttl is None else ttl.after_ns / SECOND,
        float(state.update_share) * records_per_second,
        state.value_bytes,
        ttl.checks * records_per_second * state.value_bytes if ttl is not None and waits else inf,
        state.growth_bytes * state.new_share + state.update_share * met * state.value_bytes,
        inf if state.limit_bytes is None else state.limit_bytes,
    )


def _history_s(scenario: Scenario, backtest: Backtest | None) -> float:
    """Return the time from the start of an imported scenario to the last checkpoint of its history [s]; 0 without history.

    The scenario starts one interval before the first checkpoint, and a backtest does not count the first checkpoint.
    """
    if backtest is None or scenario.checkpoint.interval_ns is None:
        return 0.0
    return (backtest.checkpoints + 1) * scenario.checkpoint.interval_ns / SECOND


def measure_served_rates(scenario: Scenario) -> dict[str, float]:
    """Return {vertex: records/s that it serves, or emits if it is a source}, simulated without checkpoints and faults."""
    from sim.runtime.simulate import simulate

    bare = baseline(replace(scenario, faults=(), run=replace(scenario.run, duration_ns=OBSERVED_NS, warmup_ns=0)))
    records = simulate(bare, check=False).tables["tasks"].groupby("vertex")["numRecordsIn"].sum()
    return {str(vertex): float(count) / (OBSERVED_NS / SECOND) for vertex, count in records.items()}
