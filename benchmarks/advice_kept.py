"""Does a longer run of what is advised keep the limit it was advised for?  Does the recording of that setting, where there is one?

`python -m benchmarks.advice_kept [NAME...]`: every recording of tests/data/users-jobs is asked about with a limit on p99, a quarter above
the 90 % quantile of its own history.  The advised setting then runs anew, with seeds that no trial had.

A backtest without complaint is right if checkpoints under other barriers, which were recorded too, are predicted as well as it says.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from benchmarks.blind import FOLDER
from sim.advice.job import job_file, prepared
from sim.advice.judgement import Limits
from sim.advice.report import Report, report
from sim.advice.texts import name_of
from sim.advice.trial_runner import TrialRunner
from sim.advice.trials import SETTLED_NS, Bench
from sim.analysis.number_texts import ms_text
from sim.backtest.imports import with_backtest
from sim.cli.console.terminal import plain
from sim.model.scenario import Scenario
from sim.recordings import infer, observed, read_any, read_saved
from sim.runtime.run.simulate import simulate
from sim.scenario import write
from sim.units import format_duration, parse_duration
from sim.validation.predicted import predicted
from sim.validation.run_names import run_name
from sim.validation.truth import NEGLIGIBLE_MS

__all__ = ["Answer", "agrees", "answer_to", "limit_of", "main", "siblings"]

ROOM = 1.25
"""The limit, beside the 90 % quantile of the history."""
SEEDS = (101, 102, 103)
PERIODS = 100
"""Checkpoints of each run."""
AS_GOOD = 0.3
"""Error of a 90 % quantile that a verdict without complaint allows."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One recording: what was advised, and what became of it."""

    name: str
    limit_ms: float
    advised: str
    sure: float
    longer_ms: float  # 99 % quantile of the longer run; NaN: nothing was advised
    checkpoints: int  # of it
    recorded: str  # the recording of the advised setting, and its 99 % quantile; empty: there is none
    keeps: bool
    recording_keeps: bool
    complains: bool  # the backtest, about whole checkpoints
    agreeing: tuple[bool, ...]  # for each other setting that was recorded: whether its prediction is as good as no complaint says
    spent_s: float

    def row(self) -> list[str]:
        longer = "-" if not self.checkpoints else f"{ms_text(self.longer_ms)} ({self.checkpoints})"
        kept = "" if not self.checkpoints else "kept" if self.keeps else "BROKEN"
        recorded = f"{self.recorded}{'' if not self.recorded or self.recording_keeps else ' BROKEN'}"
        return [self.name, ms_text(self.limit_ms), self.advised, f"{self.sure:.0%}", longer, kept, recorded, f"{self.spent_s:.0f} s"]


HEADER = ["recording", "p99 at most", "advised", "sure", "longer run (checkpoints)", "", "recorded", "processor time"]


def main(arguments: Sequence[str]) -> None:
    names = arguments or sorted(path.stem for path in FOLDER.glob("*.zip"))
    found = []
    for name in names:
        found.append(answer_to(name))
        print("  ".join(found[-1].row()), flush=True)
    print("\n" + plain(HEADER, [row.row() for row in found]))
    advised = [row for row in found if row.checkpoints]
    in_recordings = [row for row in advised if row.recorded]
    praised = [agreed for row in found if not row.complains for agreed in row.agreeing]
    warned = [agreed for row in found if row.complains for agreed in row.agreeing]
    print(f"\n{sum(row.keeps for row in advised)} of {len(advised)} advised settings keep their limit in a longer run; ", end="")
    print(f"{sum(row.recording_keeps for row in in_recordings)} of {len(in_recordings)} in their own recording.")
    print(
        f"Backtests without complaint: {sum(praised)} of {len(praised)} other recorded settings are predicted as well as that says. ",
        end="",
    )
    print(f"With a complaint: {len(warned) - sum(warned)} of {len(warned)} are not.")


def answer_to(name: str) -> Answer:
    begun_s = time.process_time()
    source = read_saved(FOLDER / f"{name}.zip")
    imported, _ = with_backtest(source, infer(source))
    limit_ms = limit_of(observed(read_any(FOLDER / f"{name}.zip")))
    with TemporaryDirectory() as scratch:
        job = job_file(Path(scratch), write(imported.document, imported.question, imported.comments), Path(scratch))
        bench = prepared(job, (), (), recovery_ms=None)
        runner = TrialRunner(Path(scratch), jobs=1)
        limits = Limits(checkpoint_ms=limit_ms)
        advice = report(bench, limits, None, runner.run, Path(scratch), max_replications=3, vary=False)
        longer = _longer(bench, advice)
        recorded = _recorded(name, advice)
        agreeing = tuple(_is_predicted(other, bench) for other in siblings(name))
        complains = bench.backtest is not None and any(row.quantity == "end-to-end" for row in bench.backtest.off)
    worst_ms = float(longer.quantile(0.99)) if len(longer) else float("nan")
    return Answer(
        name, limit_ms, name_of(None if advice.chosen is None else advice.chosen.name), advice.data["confidence"]["setting"], worst_ms,
        len(longer), "" if recorded is None else f"{recorded[0]} {ms_text(recorded[1])}", worst_ms <= limit_ms,
        recorded is not None and recorded[1] <= limit_ms, complains, agreeing, time.process_time() - begun_s,
    )  # fmt: skip


def limit_of(history: pd.DataFrame) -> float:
    return round(ROOM * float(_durations(history).quantile(0.9)), -1)


def siblings(name: str) -> list[str]:
    """Recordings of the same job under other barriers."""
    others = [path.stem for path in FOLDER.glob("*.zip") if path.stem != name and run_name(path.stem).job == run_name(name).job]
    return sorted(other for other in others if run_name(other).kind != "interruptible")


def agrees(measured: pd.Series[float], expected: pd.Series[float]) -> bool:
    """Whether a prediction is as good as a verdict without complaint says."""
    pairs = [(float(measured.quantile(share)), float(expected.quantile(share))) for share in (0.5, 0.9)]
    return all(abs(there - here) < max(NEGLIGIBLE_MS, AS_GOOD * here) for here, there in pairs)


def _durations(table: pd.DataFrame) -> pd.Series[float]:
    rows = table[(table["quantity"] == "end_to_end_duration") & ~table["first"].astype(bool)]
    found: pd.Series[float] = rows["value"]
    return found


def _simulated(scenario: Scenario) -> pd.Series[float]:
    runs = [predicted(simulate(replace(scenario, run=replace(scenario.run, seed=seed)), check=False)) for seed in SEEDS]
    return _durations(pd.concat(runs, ignore_index=True))


def _longer(bench: Bench, advice: Report) -> pd.Series[float]:
    """Durations of checkpoints of the advised setting; none, where nothing was advised."""
    if advice.advised is None:
        return pd.Series(dtype=float)
    length_ns = SETTLED_NS + PERIODS * parse_duration(advice.advised.interval)
    return _simulated(bench.load(bench.common | advice.advised.point | {"run.duration": format_duration(length_ns), "run.warmup": "0 s"}))


def _recorded(name: str, advice: Report) -> tuple[str, float] | None:
    """(recording of the advised setting, 99 % quantile of its checkpoints)."""
    if advice.chosen is None or advice.advised is None or "checkpoint.interval" in advice.advised.point:
        return None
    for other in [name, *siblings(name)]:
        if other == name and advice.advised.point:
            continue
        if str(run_name(other).barriers) == advice.chosen.protocol:
            return other, float(_durations(observed(read_any(FOLDER / f"{other}.zip"))).quantile(0.99))
    return None


def _is_predicted(other: str, bench: Bench) -> bool:
    """Whether the setting of another recording is predicted as well as a backtest without complaint says."""
    scenario = bench.load(bench.common)
    options = replace(scenario.checkpoint, barriers=run_name(other).barriers)
    expected = _simulated(replace(scenario, checkpoint=options))
    return agrees(_durations(observed(read_any(FOLDER / f"{other}.zip"))), expected)


if __name__ == "__main__":
    main(sys.argv[1:])
