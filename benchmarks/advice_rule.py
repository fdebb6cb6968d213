"""Does the rule for taking an advised setting back fire where nothing is wrong?  In nine of ten runs at least it must not.

`python -m benchmarks.advice_rule [NAME...]` advises on each job, runs what is advised under twenty seeds that no trial had, and
applies the rule that was printed to ten checkpoints of each run.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sim.advice.answer import WATCHED_CHECKPOINTS
from sim.advice.job import prepare_bench
from sim.advice.judgement import KEEPS_UP, Limits
from sim.advice.report import Report, report
from sim.advice.settings import checkpoint_period_ns
from sim.advice.trials import SETTLED_NS, Bench, TrialRunner
from sim.model.units import format_duration
from sim.studies.cells import outcome
from sim.studies.plan import Cell

__all__ = ["JOBS", "Job", "fires", "later_runs", "main"]

ROOT = Path(__file__).parents[1]
SEEDS = range(201, 221)
MIN_QUIET_SHARE = 0.9
BUDGET_S = 40.0
"""Processor time of all trials of a job."""


@dataclass(frozen=True, slots=True)
class Job:
    """A scenario, what of it is set today, and the limits that are asked for."""

    name: str
    changes: tuple[str, ...]
    limits: Limits


ALIGNED = "checkpoint.barriers=aligned"
JOBS = (
    Job("p4-severe", (ALIGNED,), Limits(checkpoint_ms=2000)),
    Job(
        "skewed-keys",
        (ALIGNED, "job.sink.input.count={ship: hash, weights: {hot: 50 %}}"),
        Limits(checkpoint_ms=3000, recovery_ms=120_000),
    ),
    Job("windows-that-fire-together", (ALIGNED, "checkpoint.interruptible-timers=false"), Limits(checkpoint_ms=1000)),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advice_rule", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; all if none is named")
    names = parser.parse_args(arguments).names
    for job in JOBS:
        if names and job.name not in names:
            continue
        with TemporaryDirectory() as scratch:
            bench = prepare_bench(
                ROOT / "scenarios" / f"{job.name}.yaml", job.changes, (), recovery_ms=job.limits.recovery_ms
            )
            runner = TrialRunner(Path(scratch), jobs=1, budget_s=BUDGET_S)
            advice = report(bench, job.limits, None, runner, Path(scratch), max_replications=6)
        if advice.chosen is None:
            print(f"{job.name}: nothing is advised", flush=True)
            continue
        runs = later_runs(bench, advice)
        reasons = [reason for row in runs if (reason := fires(advice.data["watch"], row))]
        quiet = len(runs) - len(reasons)
        verdict = "" if quiet >= MIN_QUIET_SHARE * len(runs) else "  TOO OFTEN"
        back = next(line for line in advice.parts[1].splitlines() if line.startswith(("back", "again")))  # type: ignore[union-attr]
        print(
            f"{job.name}: {advice.verdict}\n  {back}\n  quiet in {quiet} of {len(runs)} runs{verdict}",
            *reasons[:3],
            sep="\n  ",
            flush=True,
        )


def later_runs(
    bench: Bench, advice: Report, seeds: Sequence[int] = SEEDS, settled_ns: int = SETTLED_NS
) -> list[dict[str, Any]]:
    """Return the row of each run of the advised setting, with so many checkpoints as the rule is about after it has settled."""
    if advice.advised is None:
        return []
    options = bench.with_setting(advice.advised).checkpoint
    period_ns = checkpoint_period_ns(options, advice.data["advised"]["checkpoint_p50_ms"] * 1e6)
    length = {
        "run.duration": format_duration(round(settled_ns + (WATCHED_CHECKPOINTS + 0.5) * period_ns)),
        "run.warmup": format_duration(settled_ns),
        "faults": [],
    }
    scenario = bench.load({**bench.common, **bench.horizon.change(0.0), **advice.advised.point, **length})
    runs = [replace(scenario, run=replace(scenario.run, seed=seed)) for seed in seeds]
    return [outcome(Cell(run, str(run.run.seed)), check=False) for run in runs]


def fires(rule: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return why the rule of an advice (`watch` of its JSON) says that a run is to be taken back, or ""."""
    longest_ms = rule["roll_back_above_longest_ms"]
    if row["end_to_end_p50_ms"] > rule["roll_back_above_p50_ms"]:
        return f"p50 {row['end_to_end_p50_ms']:.0f} ms > {rule['roll_back_above_p50_ms']:.0f} ms"
    if row["end_to_end_max_ms"] > (math.inf if longest_ms is None else longest_ms):
        return f"longest {row['end_to_end_max_ms']:.0f} ms > {longest_ms:.0f} ms"
    per_second = row["throughput_per_second"]
    lags = not rule["roll_back_only_if_lag_grows"] or row["backlog_growth"] > KEEPS_UP * per_second * row["ended_s"]
    if lags and per_second < rule["roll_back_below_per_second"]:
        return f"{per_second:.0f}/s < {rule['roll_back_below_per_second']:.0f}/s"
    return ""


if __name__ == "__main__":
    main()
