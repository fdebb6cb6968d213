"""What would have helped a real checkpoint: the job is imported from the same answers, and simulated as it is and changed.

Only what a user can change is simulated: barriers, storage, the work of a snapshot.  What a checkpoint would take without a part of its
path is a bound, and stands with its account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.advice.settings import sinks_of
from sim.analysis.number_texts import ms_text
from sim.analysis.section import TextTable
from sim.evidence.what_ifs.changes import kinds_of
from sim.evidence.what_ifs.factors import evidence, factors_of, what_if
from sim.explain.account import NOTABLE
from sim.explain.text import WIDTH
from sim.explain.what_if import changed
from sim.metrics.critical_path import PathKind
from sim.model.catalogs.sinks import SINKS
from sim.runtime.run.simulate import simulate
from sim.scenario import loads
from sim.verbs.importing import draft_of, text_of, with_backtest

if TYPE_CHECKING:
    from sim.explain.account import Account
    from sim.model.backtest import Backtest
    from sim.model.job import Vertex
    from sim.model.scenario import Scenario
    from sim.recordings.reading import RecordingSource
    from sim.verbs.listener import Listener

_MOST = 4
"""Changes that are simulated: those that spare most."""
_ALIKE = 1.05
"""Durations that differ by a smaller factor are alike."""
_RUNS = 3
"""With as many seeds: percentiles of one run of an import are of few checkpoints."""


@dataclass(frozen=True, slots=True)
class SimulatedDurations:
    """Durations of completed checkpoints in simulations, without the first ones [ms]."""

    count: int
    p50_ms: float
    p90_ms: float
    longest_ms: float

    @property
    def cells(self) -> list[str]:
        """Percentiles and the longest."""
        return [ms_text(value) for value in (self.p50_ms, self.p90_ms, self.longest_ms)] if self.count else ["", "", ""]

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "checkpoints": self.count, "p50_ns": round(self.p50_ms * 1e6), "p90_ns": round(self.p90_ms * 1e6),
            "longest_ns": round(self.longest_ms * 1e6),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class SimulatedChange:
    """What a change does, and how sure that is."""

    change: str  # "with unaligned barriers"
    setting: str  # Flink's; empty: no setting of Flink does that
    durations: SimulatedDurations
    factors: tuple[float, float] | None  # within which p50 and p90 of such predictions are; None: no recording tells
    evidence: str  # of which kind of recorded changes the factors are
    caution: str = ""  # before it is set

    def judgement(self, before: SimulatedDurations) -> str:
        """Whether the difference is larger than such predictions are off."""
        if not self.durations.count:
            return "No checkpoint completes."
        if self.factors is None:
            return "How sure that is, is not known: no recording of ours has such a change."
        within = f"nine of ten such predictions are within a factor of {self.factors[0]:.2g} (p50) and {self.factors[1]:.2g} (p90)"
        shorter = [
            old / new if new else np.inf
            for old, new in ((before.p50_ms, self.durations.p50_ms), (before.p90_ms, self.durations.p90_ms))
        ]  # fmt: skip
        larger = [name for name, ratio, factor in zip(("p50", "p90"), shorter, self.factors, strict=True) if ratio > factor]
        if larger:
            return f"Shorter ({' and '.join(larger)}): {within}{self.evidence}."
        verdict = "Perhaps shorter" if max(shorter) > _ALIKE else "Hardly shorter"
        return f"{verdict}: {within}{self.evidence}."


@dataclass(frozen=True, slots=True)
class Helped:
    """The simulations of a job as it is, and with changes that would have helped."""

    recorded: SimulatedDurations  # of the history itself
    as_it_is: SimulatedDurations
    changes: tuple[SimulatedChange, ...]

    @property
    def text(self) -> str:
        """The text, 80 columns wide."""
        return "\n".join(fill(line, WIDTH, subsequent_indent="  ") for line in (self.how_sure, *map(self._line, self.changes)))

    @property
    def how_sure(self) -> str:
        """The job as it is, simulated beside recorded."""
        if not self.as_it_is.count:
            return "Simulated as it is, no checkpoint of the job completes: nothing can be said of changes."
        names = ("p50", "p90", "longest")
        simulated, recorded = (
            ", ".join(f"{name} {value}" for name, value in zip(names, row.cells, strict=True)) for row in (self.as_it_is, self.recorded)
        )
        nothing = "" if self.changes else " Of what takes long, a setting spares nothing."
        return f"Simulated as it is: {simulated} (recorded: {recorded}).{nothing}"

    @property
    def table(self) -> TextTable:
        """A row for what was recorded, for the job as it is, and for each change."""
        rows = [["Recorded", *self.recorded.cells, ""], ["Simulated as it is", *self.as_it_is.cells, ""]]
        rows += [[self._title(row), *row.durations.cells, _sentences(row, self.as_it_is)] for row in self.changes]
        return TextTable("", ["Checkpoints", "p50", "p90", "Longest", "How sure"], rows)

    @property
    def plain(self) -> Mapping[str, Any]:
        return {
            "recorded": self.recorded.plain,
            "as_it_is": self.as_it_is.plain,
            "changes": [
                {
                    "change": row.change, "setting": row.setting, **row.durations.plain, "factors": row.factors,
                    "judgement": row.judgement(self.as_it_is), "caution": row.caution,
                }
                for row in self.changes
            ],
        }  # fmt: skip

    def _line(self, row: SimulatedChange) -> str:
        first, second, longest = row.durations.cells
        before = self.as_it_is.cells
        numbers = f"p50 {first} instead of {before[0]}, p90 {second} instead of {before[1]}, longest {longest} instead of {before[2]}. "
        return f"{self._title(row)}: {numbers if row.durations.count else ''}{_sentences(row, self.as_it_is)}"

    @staticmethod
    def _title(row: SimulatedChange) -> str:
        title = f"{row.change[:1].upper()}{row.change[1:]}"
        return f"{title} ({row.setting})" if row.setting else title


def _sentences(row: SimulatedChange, before: SimulatedDurations) -> str:
    return " ".join(filter(None, [row.judgement(before), row.caution]))


def helped(source: RecordingSource, accounts: Sequence[Account], recorded_ms: Sequence[float], listener: Listener) -> Helped:
    """Simulate the job with the changes that its checkpoints call for.  RecordingError: the source gives no scenario."""
    draft, _ = with_backtest(source, draft_of(source), listener)
    study = loads(text_of(draft), "imported")
    scenario = study.scenarios[0]
    changes = tuple(
        _change(change, scenario, other, study.backtest) for change, other in _changes(accounts, scenario).items()
    )  # fmt: skip
    return Helped(_summed(recorded_ms), _simulated(scenario), changes)


def _change(name: str, scenario: Scenario, other: Scenario, backtest: Backtest | None) -> SimulatedChange:
    kinds = kinds_of(scenario, other)
    factors = None if backtest is None or not all(evidence()[(kind,)].settings for kind in kinds) else factors_of(backtest, kinds)
    few = "" if all(evidence()[(kind,)].is_enough for kind in kinds) else f", told from few jobs with {what_if(kinds)}"
    overtakes = other.checkpoint.barriers.record.overtakes and not scenario.checkpoint.barriers.record.overtakes
    setting = "execution.checkpointing.unaligned.enabled: true" if overtakes else ""
    caution = _before_overtaking(other) if overtakes else ""
    return SimulatedChange(name, setting, _simulated(other), None if factors is None else (factors.p50, factors.p90), few, caution)


def _before_overtaking(scenario: Scenario) -> str:
    """A sink may lose records under unaligned checkpoints, or refuse them."""
    sinks = sinks_of(scenario)
    unknown = [f"'{vertex}'" for vertex, kind in sinks.items() if kind is None]
    known = [f"'{vertex}' writes to {kind.title}, which {kind.verdict} then." for vertex, kind in sinks.items() if kind and kind.verdict]
    loses = " or ".join(kind.title for kind in SINKS.values() if kind.overtaking == "loses")
    questions = [f"Not if {' or '.join(unknown)} writes to {loses}, which lose records then."] if unknown else []
    return " ".join([*known, *questions])


def _faster_storage(scenario: Scenario) -> Scenario | None:
    storage = scenario.storage
    if storage.bytes_per_second is None:
        return None
    faster = replace(storage, bytes_per_second=2 * storage.bytes_per_second, close_ns=storage.close_ns // 2)
    return replace(scenario, storage=faster)


_STORAGE = "with storage that is twice as fast"
_BY_STORAGE = {PathKind.UPLOAD, PathKind.CHANNEL_STATE}


def _changes(accounts: Sequence[Account], scenario: Scenario) -> dict[str, Scenario]:
    """The changes to simulate, those that save most of a checkpoint first."""
    names = {vertex.name: vertex for vertex in scenario.job.vertices}
    notable = [(line, NOTABLE * account.path.duration_ns) for account in accounts for line in account.lines]
    lines = [line for line, least_ns in notable if line.what_if is not None and line.duration_ns >= least_ns]
    found: dict[str, Scenario] = {}
    for line in sorted(lines, key=lambda line: -line.duration_ns):
        vertex = names.get(line.place.partition("[")[0])
        name, other = _for_kind(line.parts[0].kind, line.what_if.change if line.what_if is not None else "", scenario, vertex)
        if other is not None and len(found) < _MOST:
            found.setdefault(name, other)
    return found


def _for_kind(kind: PathKind, change: str, scenario: Scenario, vertex: Vertex | None) -> tuple[str, Scenario | None]:
    if kind in _BY_STORAGE:
        return _STORAGE, _faster_storage(scenario)
    return change, changed(kind, scenario, vertex)


def _simulated(scenario: Scenario) -> SimulatedDurations:
    found: list[float] = []
    for seed in range(scenario.run.seed, scenario.run.seed + _RUNS):
        rows = simulate(replace(scenario, run=replace(scenario.run, warmup_ns=0, seed=seed)), check=False).checkpoints
        done = rows[(rows["status"] == "COMPLETED") & (rows["savepointFormat"] == "") & (rows["id"] != 1)]
        found += done["end_to_end_duration"].tolist()
    return _summed(found)


def _summed(durations_ms: Sequence[float]) -> SimulatedDurations:
    if not durations_ms:
        return SimulatedDurations(0, 0.0, 0.0, 0.0)
    p50, p90 = (float(value) for value in np.quantile(durations_ms, [0.5, 0.9]))
    return SimulatedDurations(len(durations_ms), p50, p90, float(max(durations_ms)))
