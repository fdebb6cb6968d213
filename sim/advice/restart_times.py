"""Expected restart time by parallelism: what `job.autoscaler.restart.time` of the Flink Kubernetes operator asks for.

The autoscaler reserves capacity for the records that arrive while a job is rescaled: rate x restart time / catch-up duration.
A restart lasts from the end of the old tasks until all new ones run (ScalingTracking).  Here it is a simulated `rescale:` from the
latest checkpoint.  In place, only TaskManagers that are added are new processes.  Redeployed, all of them are, so that each task
starts later by `restart.fresh-start`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isnan, nan
from typing import Any

from sim.advice.questions import unknowns
from sim.advice.report import Report
from sim.advice.settings import make_candidate, todays_setting
from sim.advice.trials import FAILURE, Bench
from sim.advice.uncertainty import RECOVERY_ERROR
from sim.model.schema.text import ScenarioError
from sim.model.text import listed
from sim.model.units import MS
from sim.results.formats import MISSING, TextTable, bytes_text, ms_text
from sim.runtime.simulate import simulate
from sim.studies.sweeps.design import Point

FACTORS = (0.5, 1, 2, 4)
"""Parallelisms, as multiples of today's."""
MAX_SPREAD = 2.0
"""If assumed constants change a restart by a larger factor, they decide it, and its time is unknown."""
OPERATOR_DEFAULT_MS = 300_000.0
"""Default of job.autoscaler.restart.time (AutoScalerOptions)."""
_ASSUMED = re.compile(r"(?:^|\s)#\s*(?:.*; )?((?:assumed|UNKNOWN):.*)$")
_FRESH_START_NS = (800 * MS, 1700 * MS)
"""Range of its default in recordings of ours (`Restart.fresh_start_ns`)."""
_STATE_START = ("300 ms", "900 ms")
"""Range of the assumed restart.state-start in recordings (`sim.jobs.infer.heap`)."""
_SLOWER_READS = 7
"""Factor by which observed heap restores are slower than assumed (`sim.jobs.infer.heap`)."""
_READ_FACTOR = 2
"""Reads of storage without a measured rate: this factor faster or slower than writes.  A convention, not a measurement."""


@dataclass(frozen=True, slots=True)
class RestartTime:
    """The restart with one parallelism.  Times are in ms; NaN: the restart did not end."""

    parallelism: dict[str, int]  # of the vertices that are rescaled
    in_place_ms: float
    redeployed_ms: float
    range_ms: tuple[float, float]  # both ways, with the assumed constants and the error of recorded recoveries
    is_known: bool  # a restart was recorded, or assumed constants do not decide
    state_bytes: float  # that the job restores


def restart_times_report(bench: Bench, recorded_ms: float | None, factors: Sequence[float] = FACTORS) -> Report:
    """Simulate restarts with several parallelisms, multiples of today's.

    `recorded_ms`: duration of the job's last restart, None if it has none.
    """
    scenario = bench.load(bench.common)
    interval_ns, barriers = todays_setting(scenario)
    if interval_ns is None:
        verdict = "Restart times are unknown: the job takes no checkpoints, so it restarts without state."
        return Report(None, None, [verdict], {"restart_times": []}, is_setting=False)
    trial = next(bench.trials(make_candidate(scenario, interval_ns, barriers), (FAILURE,), ahead_s=0.0))
    base = {**trial.point, "faults": []}
    restarts = _Restarts(bench, base, str(trial.point["faults"][0]["at"]))
    times = list(_times(restarts, recorded_ms, factors))
    return Report(None, None, *_describe(times, restarts, recorded_ms), is_setting=False)


class _Restarts:
    """Simulated restarts of the job.  `at`: time of the rescale."""

    def __init__(self, bench: Bench, base: Point, at: str) -> None:
        self.bench, self.base, self.at = bench, base, at
        self.scenario = bench.load(base)
        self.fixed, self.scaled = [], []
        self._runs: dict[str, tuple[float, float]] = {}
        for vertex in self.scenario.job.vertices:
            try:
                bench.load(base | self._rescale({vertex.name: vertex.parallelism}))
                self.scaled.append(vertex)
            except ScenarioError:  # e.g. sources and transactional sinks
                self.fixed.append(vertex.name)
        text = bench.file.read_text(encoding="utf-8")
        self.best, self.worst, self.assumed = self._assumptions(text)
        fresh_ns = self.scenario.restart.fresh_start_ns
        self.fresh_start_ms = fresh_ns / 1e6
        is_default = not re.search(r"^\s+fresh-start:", text, re.MULTILINE)
        self.fresh_ms = [ns / 1e6 for ns in (_FRESH_START_NS if is_default else (fresh_ns, fresh_ns))]
        if is_default:
            self.assumed.append("restart.fresh-start")

    def parallelisms(self, factor: float) -> dict[str, int]:
        return {
            vertex.name: min(max(round(factor * vertex.parallelism), 1), vertex.max_parallelism)
            for vertex in self.scaled
        }

    def run(
        self, parallelism: dict[str, int], *, fresh: bool = False, extra: Point | None = None
    ) -> tuple[float, float]:
        """Return (duration [ms], bytes restored) of a restart.  `fresh`: added TaskManagers are new processes."""
        point = (
            self.base | (extra or {}) | ({} if fresh else {"restart.fresh-start": "0 s"}) | self._rescale(parallelism)
        )
        if (key := str(point)) not in self._runs:
            rows = simulate(self.bench.load(point), check=False).recoveries
            rows = rows[(rows["kind"] == "rescale") & (rows["running"] >= 0)]
            ended = [(float(row["downtime"]), float(row["restored_bytes"])) for row in rows.head(1).to_dict("records")]
            self._runs[key] = ended[0] if ended else (nan, nan)
        return self._runs[key]

    def _rescale(self, parallelism: dict[str, int]) -> Point:
        return {"rescale": [{"at": self.at, "parallelism": parallelism, "from": "checkpoint"}] if parallelism else []}

    def _assumptions(self, text: str) -> tuple[Point, Point, list[str]]:
        """Return the best and the worst values of assumed constants that restarts depend on, and their keys."""
        best, worst = {}, {}
        marked = {unknown.key for unknown in unknowns(text, _ASSUMED)}
        if "restart.state-start" in marked:
            best["restart.state-start"], worst["restart.state-start"] = _STATE_START
        elif "state-start:" not in text and any(vertex.state is not None for vertex in self.scenario.job.vertices):
            worst["restart.state-start"] = _STATE_START[1]
        rate = self.scenario.checkpoint.state.load_bytes_per_second
        if "checkpoint.restore-rate" in marked and rate is not None:
            worst["checkpoint.restore-rate"] = f"{max(rate // _SLOWER_READS, 1)} B/s"
        storage = self.scenario.storage
        writes = storage.bytes_per_second
        if storage.options is None and writes is not None and storage.read_bytes_per_second == writes:
            best["storage.read-bandwidth"] = f"{writes * _READ_FACTOR} B/s"
            worst["storage.read-bandwidth"] = f"{max(writes // _READ_FACTOR, 1)} B/s"
        return best, worst, sorted({*best, *worst})


def _times(restarts: _Restarts, recorded_ms: float | None, factors: Sequence[float]) -> Iterator[RestartTime]:
    """Yield the restart times, by parallelism."""
    fresh_ms = restarts.fresh_start_ms
    today_ms = restarts.run(restarts.parallelisms(1))[0] + fresh_ms
    off = 1.0 if recorded_ms is None else recorded_ms / today_ms
    seen: list[dict[str, int]] = []
    for factor in factors if restarts.scaled else (1,):
        if (parallelism := restarts.parallelisms(factor)) in seen:
            continue
        seen.append(parallelism)
        typical_ms, state_bytes = restarts.run(parallelism)
        in_place_ms = typical_ms if factor <= 1 else restarts.run(parallelism, fresh=True)[0]
        min_ms, max_ms = (restarts.run(parallelism, extra=extra)[0] for extra in (restarts.best, restarts.worst))
        spread = (max_ms + restarts.fresh_ms[1]) / (min_ms + restarts.fresh_ms[0])
        max_ms = max((max_ms + restarts.fresh_ms[1]) * (1 + RECOVERY_ERROR), (typical_ms + fresh_ms) * off)
        yield RestartTime(
            parallelism,
            in_place_ms,
            typical_ms + fresh_ms,
            (min(min_ms, typical_ms * off), max_ms),
            recorded_ms is not None or spread <= MAX_SPREAD,
            state_bytes,
        )


def _describe(
    times: list[RestartTime], restarts: _Restarts, recorded_ms: float | None
) -> tuple[list[str | TextTable], dict[str, Any]]:
    """Return the texts and the table, and the JSON data."""
    largest_ms = max(time.range_ms[1] for time in times)
    known = all(time.is_known for time in times) and not isnan(largest_ms)
    value = f"{-(-largest_ms // 1000):.0f} s" if known else ""
    if known:
        verdict = f"job.autoscaler.restart.time: {value} covers every restart below (the operator's default is {ms_text(OPERATOR_DEFAULT_MS)})."
    else:
        verdict = (
            "job.autoscaler.restart.time is unknown: no restart of all tasks is recorded, and assumed constants decide "
            f"({listed(restarts.assumed)}). Restart the job once and import it again."
        )
    rows = [
        [
            listed(sorted({str(count) for count in time.parallelism.values()}, key=int)) or "as today",
            *(
                [ms_text(time.in_place_ms), ms_text(time.redeployed_ms)]
                if time.is_known and not isnan(time.in_place_ms)
                else ["unknown", "unknown"]
            ),
            " to ".join(map(ms_text, time.range_ms)) if not isnan(time.in_place_ms) else MISSING,
            bytes_text(time.state_bytes) if not isnan(time.state_bytes) else MISSING,
        ]
        for time in times
    ]
    header = ["parallelism", "in place", "redeployed", "range", "state read"]
    parts: list[str | TextTable] = [verdict, TextTable("Restart time by parallelism", header, rows)]
    parts.append(
        "From the end of the old tasks until all new ones run, from a checkpoint late in an interval. In place: only added TaskManagers are "
        f"new processes. Redeployed: all are. The range covers both, assumed constants, and {100 * RECOVERY_ERROR:.0f} % more, as "
        "published recoveries were longer. Not included: pods and JobManagers that start, savepoints, the restart delay after a failure."
    )
    if recorded_ms is not None:
        today_ms = next(time.redeployed_ms for time in times if time.parallelism == restarts.parallelisms(1))
        parts.append(
            f"Its last recorded restart took {ms_text(recorded_ms)}, {ms_text(today_ms)} simulated (redeployed)."
        )
    if restarts.assumed and known:
        parts.append(f"Assumed: {listed(restarts.assumed)}.")
    if restarts.fixed:
        parts.append(f"Their parallelism stays, since rescaling them is not modelled: {listed(restarts.fixed)}.")
    data: dict[str, Any] = {
        "restart_times": [
            asdict(time) | ({} if time.is_known else {"in_place_ms": nan, "redeployed_ms": nan}) for time in times
        ],
        "recorded_ms": recorded_ms,
        "assumed": restarts.assumed,
        "not_rescaled": restarts.fixed,
        "configuration": f"job.autoscaler.restart.time: {value}" if known else "",
    }
    return parts, data
