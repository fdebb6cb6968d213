"""Does a longer run of what is advised keep the limit it was advised for?  Does the recording of that setting, where there is one?

`python -m benchmarks.advice_kept [NAME...]`: recordings of tests/data/users-jobs are asked about with limits on p99.  One is a little above
the 90 % quantile of their own history, one is far above it.  The advised setting then runs anew, from the end of the
history through the horizon, with seeds that no trial had: state that grows is larger in the end.  `--write` puts the
table into docs/truth.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from benchmarks.blind import FOLDER, PAGE
from benchmarks.lab.envelope_build import replaced
from benchmarks.lab.settings import run_name
from sim.advice.job import job_file, prepare_bench
from sim.advice.judgement import Limits
from sim.advice.report import Report, report
from sim.advice.texts import name_of
from sim.advice.trials import SETTLED_NS, Bench, TrialRunner
from sim.jobs.evidence.backtest import with_backtest
from sim.jobs.evidence.prediction import observed, predicted
from sim.jobs.reading import infer, read_any
from sim.jobs.source.saved import read_saved
from sim.model.units import format_duration
from sim.results.formats import ms_text
from sim.runtime.simulate import simulate

__all__ = ["Answer", "answers_to", "durations", "limits_of", "main", "siblings", "table"]

BEGIN, END = "<!-- kept: written by `python -m benchmarks.advice_kept --write` -->", "<!-- /kept -->"
ROOMS = (1.25, 5.0)
"""The limits, beside the 90 % quantile of the history."""
SEEDS = (101, 102)
AHEAD_NS = 1800 * 10**9
"""The horizon, and the length of the longer run."""
BUDGET_S = 60.0
"""Processor time of all trials for one recording and limit."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One recording and limit: what was advised, and what became of it."""

    name: str
    limit_ms: float
    advised: str
    sure: float
    longer_ms: float  # 99 % quantile of the longer run; NaN: nothing was advised
    checkpoints: int  # of it
    recorded: str  # the recording of the advised setting, and its 99 % quantile; empty: there is none
    keeps: bool
    recording_keeps: bool
    confirmed: bool  # by a long run, which the budget may have no room for: then the answer begins with "Try"
    spent_s: float

    def row(self) -> list[str]:
        longer = "–" if not self.checkpoints else f"{ms_text(self.longer_ms)} ({self.checkpoints})"
        kept = "" if not self.checkpoints else "kept" if self.keeps else "BROKEN"
        kept += "" if self.confirmed or not kept else ", not confirmed"
        recorded = f"{self.recorded}{'' if not self.recorded or self.recording_keeps else ' BROKEN'}"
        return [
            self.name,
            ms_text(self.limit_ms),
            self.advised,
            f"{self.sure:.0%}",
            longer,
            kept,
            recorded,
            f"{self.spent_s:.0f} s",
        ]


HEADER = [
    "recording",
    "p99 at most",
    "advised",
    "sure",
    "longer run (checkpoints)",
    "limit",
    "recorded",
    "processor time",
]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advice_kept", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="recordings; all if none is named")
    parser.add_argument("--write", action="store_true", help="put the table into docs/truth.md")
    chosen = parser.parse_args(arguments)
    found = []
    for name in chosen.names or sorted(path.stem for path in FOLDER.glob("*.zip")):
        for answer in answers_to(name):
            found.append(answer)
            print("  ".join(answer.row()), flush=True)
    text = table(found)
    print(f"\n{text}")
    if chosen.write:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), f"{BEGIN}\n{text}\n{END}"), encoding="utf-8")


def table(found: Sequence[Answer]) -> str:
    """Markdown: a row per recording and limit, then how many settings keep theirs."""
    lines = [
        f"| {' | '.join(HEADER)} |",
        f"|{' --- |' * len(HEADER)}",
        *(f"| {' | '.join(answer.row())} |" for answer in found),
    ]
    advised = [answer for answer in found if answer.checkpoints and answer.confirmed]
    unsure = [answer for answer in found if answer.checkpoints and not answer.confirmed]
    recorded = [answer for answer in advised if answer.recorded]
    kept = (
        f"{sum(answer.keeps for answer in advised)} of {len(advised)} advised settings keep their limit in a longer run"
    )
    refused = f"For {len(found) - len(advised) - len(unsure)} limits none was advised"
    unsaid = f"Of {len(unsure)} advised as not confirmed {sum(answer.keeps for answer in unsure)} kept it"
    return "\n".join(
        [
            *lines,
            "",
            f"{kept}, {sum(answer.recording_keeps for answer in recorded)} of {len(recorded)} in their own recording. {unsaid}. {refused}.",
        ]
    )


def answers_to(name: str) -> Iterator[Answer]:
    source = read_saved(FOLDER / f"{name}.zip")
    imported, _ = with_backtest(source, infer(source))
    with TemporaryDirectory() as scratch:
        job = job_file(Path(scratch), imported.text, Path(scratch))
        bench = prepare_bench(job, (), (), recovery_ms=None, ahead_ns=AHEAD_NS)
        for limit_ms in limits_of(observed(read_any(FOLDER / f"{name}.zip"))):
            yield _answer(name, limit_ms, bench, Path(scratch))


def _answer(name: str, limit_ms: float, bench: Bench, scratch: Path) -> Answer:
    begun_s = time.process_time()
    runner = TrialRunner(scratch, jobs=1, budget_s=BUDGET_S)
    limits = Limits(checkpoint_ms=limit_ms)
    advice = report(bench, limits, None, runner, scratch, max_replications=3)
    longer = _longer(bench, advice)
    recorded = _recorded(name, advice)
    longer_ms = float(longer.quantile(0.99)) if len(longer) else float("nan")
    return Answer(
        name,
        limit_ms,
        "no setting meets the limits" if advice.chosen is None else name_of(advice.chosen.name),
        advice.data["confidence"]["setting"],
        longer_ms,
        len(longer),
        "" if recorded is None else f"{recorded[0]} {ms_text(recorded[1])}",
        longer_ms <= limit_ms,
        recorded is not None and recorded[1] <= limit_ms,
        advice.data["confirmed"] is not False,
        time.process_time() - begun_s,
    )


def limits_of(history: pd.DataFrame) -> list[float]:
    return [round(room * float(durations(history).quantile(0.9)), -1) for room in ROOMS]


def siblings(name: str) -> list[str]:
    """Recordings of the same job under other barriers."""
    others = [
        path.stem
        for path in FOLDER.glob("*.zip")
        if path.stem != name and run_name(path.stem).job == run_name(name).job
    ]
    return sorted(other for other in others if run_name(other).kind != "interruptible")


def durations(observations: pd.DataFrame) -> pd.Series[float]:
    """Whole checkpoints, but for the first [ms]."""
    rows = observations[(observations["quantity"] == "end_to_end_duration") & ~observations["first"].astype(bool)]
    found: pd.Series[float] = rows["value"]
    return found


def _longer(bench: Bench, advice: Report) -> pd.Series[float]:
    """Durations of checkpoints of the advised setting; none, where nothing was advised."""
    if advice.advised is None:
        return pd.Series(dtype=float)
    length = {"run.duration": format_duration(SETTLED_NS + AHEAD_NS), "run.warmup": "0 s", "faults": []}
    scenario = bench.load({**bench.common, **bench.horizon.change(0.0), **advice.advised.point, **length})
    seeded = [replace(scenario, run=replace(scenario.run, seed=seed)) for seed in SEEDS]
    return durations(pd.concat([predicted(simulate(run, check=False)) for run in seeded], ignore_index=True))


def _recorded(name: str, advice: Report) -> tuple[str, float] | None:
    """(recording of the advised setting, 99 % quantile of its checkpoints)."""
    if advice.chosen is None or advice.advised is None or "checkpoint.interval" in advice.advised.point:
        return None
    for other in [name, *siblings(name)]:
        if other == name and advice.advised.point:
            continue
        if str(run_name(other).barriers) == advice.chosen.protocol:
            return other, float(durations(observed(read_any(FOLDER / f"{other}.zip"))).quantile(0.99))
    return None


if __name__ == "__main__":
    main()
