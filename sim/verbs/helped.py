"""What would have helped a real checkpoint: the job is imported from the same answers, and simulated as it is and changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from textwrap import fill
from typing import TYPE_CHECKING, Any

from sim.analysis.number_texts import ms_text
from sim.analysis.section import TextTable
from sim.evidence.what_ifs.factors import sentences
from sim.explain.account import NOTABLE
from sim.explain.text import WIDTH
from sim.explain.what_if import changed
from sim.runtime.run.simulate import simulate
from sim.scenario import loads
from sim.verbs.importing import draft_of, text_of, with_backtest

if TYPE_CHECKING:
    from sim.explain.account import Account
    from sim.model.scenario import Scenario
    from sim.recordings.reading import RecordingSource
    from sim.verbs.listener import Listener

_MOST = 4
"""Changes that are simulated: those that spare most."""


@dataclass(frozen=True, slots=True)
class SimulatedDurations:
    """Durations of completed checkpoints in a simulation, without the first one."""

    change: str  # empty: the job as it is
    count: int
    median_ms: float
    longest_ms: float

    @property
    def cells(self) -> list[str]:
        if not self.count:
            return ["0", "", ""]
        return [str(self.count), ms_text(self.median_ms), ms_text(self.longest_ms)]

    def __str__(self) -> str:
        if not self.count:
            return "no checkpoint completes"
        return f"median {ms_text(self.median_ms)}, longest of {self.count} {ms_text(self.longest_ms)}"


@dataclass(frozen=True, slots=True)
class Helped:
    """The simulations of a job as it is, and with changes that would have helped."""

    as_it_is: SimulatedDurations
    changes: tuple[SimulatedDurations, ...]
    confidence: str  # the factors within which such predictions were right; empty: no history tells

    @property
    def text(self) -> str:
        """The text, 80 columns wide."""
        lines = [f"Simulated, the job as it is: {self.as_it_is}.", *(f"{change.change.capitalize()}: {change}." for change in self.changes)]
        lines.append(self.how_sure)
        return "\n".join(fill(line, WIDTH, subsequent_indent="  ") for line in lines)

    @property
    def how_sure(self) -> str:
        return f"How far these may be off: {self.confidence}." if self.confidence else "No backtest says how far off that may be."

    @property
    def table(self) -> TextTable:
        """A row for the job as it is, and for each change."""
        rows = [[row.change.capitalize() or "As it is", *row.cells] for row in (self.as_it_is, *self.changes)]
        return TextTable("", ["Simulated", "Completed", "Median", "Longest"], rows)

    @property
    def plain(self) -> Mapping[str, Any]:
        return {
            "as_it_is": _plain(self.as_it_is),
            "changes": [{"change": change.change, **_plain(change)} for change in self.changes],
            "confidence": self.confidence,
        }


def helped(source: RecordingSource, accounts: Sequence[Account], listener: Listener) -> Helped:
    """Simulate the job with the changes that its checkpoints call for.  RecordingError: the source gives no scenario."""
    draft, _ = with_backtest(source, draft_of(source), listener)
    study = loads(text_of(draft), "imported")
    scenario = study.scenarios[0]
    changes = _changes(accounts, scenario)
    found = [SimulatedDurations(change, *_simulated(other)) for change, other in changes.items()]
    confidence = "" if study.backtest is None else "; ".join(sentences(study.backtest, changes.values()))
    return Helped(SimulatedDurations("", *_simulated(scenario)), tuple(found), confidence)


def _changes(accounts: Sequence[Account], scenario: Scenario) -> dict[str, Scenario]:
    """The changes to simulate, those that save most of a checkpoint first."""
    names = {vertex.name: vertex for vertex in scenario.job.vertices}
    notable = [(line, NOTABLE * account.path.duration_ns) for account in accounts for line in account.lines]
    lines = [line for line, least_ns in notable if line.what_if is not None and line.duration_ns >= least_ns]
    found: dict[str, Scenario] = {}
    for line in sorted(lines, key=lambda line: -line.duration_ns):
        vertex = names.get(line.place.partition("[")[0])
        other = changed(line.parts[0].kind, scenario, vertex)
        if line.what_if is not None and other is not None and len(found) < _MOST:
            found.setdefault(line.what_if.change, other)
    return found


def _simulated(scenario: Scenario) -> tuple[int, float, float]:
    """(count, median, longest) [ms]."""
    rows = simulate(replace(scenario, run=replace(scenario.run, warmup_ns=0)), check=False).checkpoints
    done = rows[(rows["status"] == "COMPLETED") & (rows["savepointFormat"] == "") & (rows["id"] != 1)]["end_to_end_duration"].tolist()
    return len(done), float(median(done)) if done else 0.0, float(max(done, default=0.0))


def _plain(durations: SimulatedDurations) -> dict[str, Any]:
    return {"checkpoints": durations.count, "median_ns": round(durations.median_ms * 1e6), "longest_ns": round(durations.longest_ms * 1e6)}
