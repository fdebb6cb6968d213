"""Is a backtest right about other settings?  Each recorded run is imported alone, and predicts the runs of its job under other barriers.

`python -m benchmarks.backtest_verdicts [--write]`.  A verdict names factors, within which p50 and p90 of whole checkpoints under other
settings are predicted.  It is right if both lie within.  Differences below the noise of a machine count as none.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pandas as pd

from benchmarks.advice_kept import durations, siblings
from benchmarks.blind import FOLDER, PAGE, simulated
from benchmarks.envelope_build import replaced
from sim.analysis.number_texts import ms_text
from sim.backtest.imports import with_backtest
from sim.model.backtest import OtherSettings
from sim.recordings import infer, observed, read_any, read_saved
from sim.scenario import loads, write
from sim.validation.run_names import run_name
from sim.validation.truth import NEGLIGIBLE_MS

__all__ = ["Verdict", "factor", "main", "table", "verdicts_of"]

BEGIN, END = "<!-- verdicts: written by `python -m benchmarks.backtest_verdicts --write` -->", "<!-- /verdicts -->"
SEEDS = (101, 102, 103)
HEADER = ["imported", "predicted", "p50, recorded and predicted", "p90, recorded and predicted", "said to be within", "off by", "verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the import of one run says of another one, and what became of it; of p50 and p90 each."""

    imported: str
    other: str
    recorded_ms: tuple[float, float]
    predicted_ms: tuple[float, float]
    within: tuple[float, float]  # factors

    @property
    def factors(self) -> tuple[float, float]:
        p50, p90 = (factor(there, here) for there, here in zip(self.recorded_ms, self.predicted_ms, strict=True))
        return p50, p90

    @property
    def is_right(self) -> bool:
        return all(off <= claim for off, claim in zip(self.factors, self.within, strict=True))

    def row(self) -> list[str]:
        pairs = [f"{ms_text(there)}, {ms_text(here)}" for there, here in zip(self.recorded_ms, self.predicted_ms, strict=True)]
        claims, off = (", ".join(f"{value:.2g}" for value in values) for values in (self.within, self.factors))
        return [self.imported, self.other, *pairs, claims, off, "right" if self.is_right else "WRONG"]


def factor(there: float, here: float) -> float:
    """By how much two durations [ms] differ; 1 below the noise of a machine."""
    return 1.0 if abs(there - here) < NEGLIGIBLE_MS else max(there, here) / max(min(there, here), 1.0)


def table(found: Sequence[Verdict]) -> str:
    """Markdown: a row per pair of runs, and how many are right."""
    rows = [f"| {' | '.join(verdict.row())} |" for verdict in found]
    right = sum(verdict.is_right for verdict in found)
    narrow = [verdict for verdict in found if max(verdict.within) < 2]
    kept = f"{sum(verdict.is_right for verdict in narrow)} of the {len(narrow)} that name factors below 2"
    head = [f"| {' | '.join(HEADER)} |", f"|{' --- |' * len(HEADER)}"]
    all_of_them = f"{right} of {len(found)} verdicts ({right / len(found):.0%}) are right about the other run"
    return "\n".join([*head, *rows, "", f"{all_of_them}, {kept}."])


def verdicts_of(name: str) -> Iterator[Verdict]:
    """About every run of the same job under other barriers."""
    source = read_saved(FOLDER / f"{name}.zip")
    imported, _ = with_backtest(source, infer(source))
    study = loads(write(imported.document, imported.question, imported.comments), name=name)
    imported_scenario, claim = study.scenarios[0], study.backtest and study.backtest.other_settings
    for other in siblings(name) if isinstance(claim, OtherSettings) else []:
        there, length_ms = _recorded(other)
        scenario = replace(imported_scenario, checkpoint=replace(imported_scenario.checkpoint, barriers=run_name(other).barriers))
        here = durations(pd.concat(simulated(scenario, SEEDS, length_ms), ignore_index=True))
        yield Verdict(name, other, _quantiles(there), _quantiles(here), (claim.p50, claim.p90))


def _quantiles(values: pd.Series[float]) -> tuple[float, float]:
    return float(values.quantile(0.5)), float(values.quantile(0.9))


@cache
def _recorded(name: str) -> tuple[pd.Series[float], int]:
    """(durations, length of the run [ms])."""
    job = read_any(FOLDER / f"{name}.zip")
    return durations(observed(job)), job.ended_ms - job.started_ms


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backtest_verdicts", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/truth.md")
    chosen = parser.parse_args(arguments)
    names = [path.stem for path in FOLDER.glob("*.zip") if run_name(path.stem).kind != "interruptible"]
    text = table([verdict for name in sorted(names) for verdict in verdicts_of(name)])
    print(text)
    if chosen.write:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), f"{BEGIN}\n{text}\n{END}"), encoding="utf-8")


if __name__ == "__main__":
    main()
