"""What is off, and the likely cause, where the history or the scenario shows one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from sim.analysis.number_texts import bytes_text, ms_text

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.backtest import ComparedQuantity
    from sim.model.scenario import Scenario

UNKNOWN = "cause unknown"
GROWTH = 1.1
"""From the first third of the history to the last: less is no growth."""
TAIL = 1.25
"""p90 / p50 of the history beside that of the prediction: less is no tail of its own."""
BURSTS = 3.0
"""p90 / p50 of what is written: so much more comes from merged files."""
PHASES = ("start-delay", "alignment", "sync", "async")


@dataclass(frozen=True, slots=True)
class BacktestEvidence:
    """Evidence of history and scenario about the causes of differences."""

    growth: tuple[float, float] | None = None  # full size [bytes] of the first and last third of the history, if only that grows
    rocksdb: bool = False
    windows: tuple[str, ...] = ()  # vertices with a window in their chain, and none in the scenario
    unbalanced: tuple[str, ...] = ()  # flows that do not add up, a phrase each


def evidence_of(observed: pd.DataFrame, scenario: Scenario, chains: Mapping[str, str], unbalanced: Sequence[str] = ()) -> BacktestEvidence:
    """`chains`: names of the operators of each vertex."""
    rocksdb = any(vertex.state is not None and vertex.state.backend == "rocksdb" for vertex in scenario.job.vertices)
    modelled = {vertex.name for vertex in scenario.job.vertices if vertex.window is not None}
    windows = tuple(name for name, chain in chains.items() if name not in modelled and "window" in f"{name} {chain}".lower())
    grows_too = any(vertex.state is not None and vertex.state.growth_bytes for vertex in scenario.job.vertices)
    return BacktestEvidence(None if grows_too else _growth(observed), rocksdb, windows, tuple(unbalanced))


def with_causes(rows: Sequence[ComparedQuantity], evidence: BacktestEvidence) -> list[ComparedQuantity]:
    """Rows that are off say why."""
    return [replace(row, cause=_cause(row, rows, evidence)) if row.off else row for row in rows]


def _growth(observed: pd.DataFrame) -> tuple[float, float] | None:
    rows = observed[(observed["quantity"] == "state_size") & ~observed["first"]].sort_values("checkpoint")
    sizes = rows["value"].tolist()
    third = len(sizes) // 3
    if not third:
        return None
    before, after = median(sizes[:third]), median(sizes[-third:])
    return (before, after) if after > GROWTH * before else None


def _cause(row: ComparedQuantity, rows: Sequence[ComparedQuantity], evidence: BacktestEvidence) -> str:
    if row.quantity == "throughput":
        return _of_throughput(row, evidence)
    if not row.predicted.count:
        why = f": {'; '.join(evidence.unbalanced)}" if evidence.unbalanced else ""
        return f"no checkpoint completes in the simulation{why}"
    if row.quantity in ("checkpointed", "full-size"):
        return _of_sizes(row, evidence)
    if row.quantity in PHASES or row.quantity == "end-to-end":
        return _of_durations(row, rows, evidence)
    return UNKNOWN


def _of_throughput(row: ComparedQuantity, evidence: BacktestEvidence) -> str:
    if evidence.unbalanced:
        return f"a flow does not balance: {'; '.join(evidence.unbalanced)}"
    if not row.predicted.count or row.predicted.p50 < row.observed.p50 / 2:
        return "the simulated job does not serve what the real one does, cause unknown"
    return UNKNOWN


def _of_sizes(row: ComparedQuantity, evidence: BacktestEvidence) -> str:
    if evidence.growth is not None and not evidence.rocksdb:
        return _grows(evidence.growth)
    if evidence.rocksdb and row.quantity == "full-size" and row.predicted.p50 < row.observed.p50:
        return "RocksDB keeps what was overwritten until it compacts: the files hold more than the state that was assumed"
    if evidence.rocksdb and row.quantity == "checkpointed" and row.observed.p90 > BURSTS * row.observed.p50:
        return "in some checkpoints RocksDB writes files that it has merged: the simulated ones are smaller"
    return UNKNOWN if evidence.growth is None else _grows(evidence.growth)


def _grows(growth: tuple[float, float]) -> str:
    return f"the state grows in the history, from {bytes_text(growth[0])} to {bytes_text(growth[1])}: one size is simulated"


def _of_durations(row: ComparedQuantity, rows: Sequence[ComparedQuantity], evidence: BacktestEvidence) -> str:
    longer = row.predicted.at(row.off[0]) > row.observed.at(row.off[0])
    if longer and row.quantity in ("async", "end-to-end") and evidence.growth is not None:
        return f"{_grows(evidence.growth)}, and earlier checkpoints wrote less"
    if "p50" not in row.off and (tail := _tail(row, evidence)):
        return tail
    if row.quantity == "end-to-end" and (phase := _phase(row, rows)) is not None:
        return f"{phase.quantity} of {phase.vertex}: {_both(phase, row)}"
    return _tail(row, evidence) or UNKNOWN


def _tail(row: ComparedQuantity, evidence: BacktestEvidence) -> str:
    """The cause of a tail.  Empty: the history is spread no wider than the prediction, or what is off is predicted too long."""
    if any(row.predicted.at(level) > row.observed.at(level) for level in row.off):
        return ""
    own, simulated = (side.p90 / side.p50 if side.p50 > 0 else 1.0 for side in (row.observed, row.predicted))
    if own < TAIL * simulated:
        return ""
    fires = f"; {', '.join(evidence.windows)} fires windows, of which the file says nothing" if evidence.windows else ""
    return f"the history has a tail that the model has not: p90 is {own:.1f} times p50, predicted {simulated:.1f} times{fires}"


def _phase(row: ComparedQuantity, rows: Sequence[ComparedQuantity]) -> ComparedQuantity | None:
    """The phase that is off in the same direction by most of what the whole checkpoint is off."""
    level = row.off[0]
    missing = row.observed.at(level) - row.predicted.at(level)
    apart = [
        ((phase.observed.at(level) - phase.predicted.at(level)) / missing, phase)
        for phase in rows
        if phase.quantity in PHASES and level in phase.off and phase.predicted.count
    ]
    share, largest = max(apart, key=lambda pair: pair[0], default=(0.0, None))
    return largest if share > 0.5 else None


def _both(phase: ComparedQuantity, row: ComparedQuantity) -> str:
    level = row.off[0]
    return f"{level} {ms_text(phase.observed.at(level))}, predicted {ms_text(phase.predicted.at(level))}"
