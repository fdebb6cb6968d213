"""CheckpointingTimeBenchmark of apache/flink-benchmarks (pull request 54): time per checkpoint, simulated beside published.

    python -m benchmarks.published.flink_benchmarks

Nothing is fitted: buffers, records, fan-out, debloating, sleeping times and how checkpoints follow each other are those
of the benchmark's code.  The control path is this project's default, recorded on another machine.  A score is
checkpoints per second, one after the other, so a cell is the time from one trigger to the next, ten warm-up checkpoints
left out as JMH does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pandas as pd

from benchmarks.measure import print_table
from sim.model.scenario import Scenario
from sim.model.schema.study import load
from sim.runtime.simulate import simulate

__all__ = ["BAR", "ROOT", "Cell", "after", "cell", "cycle_ms", "disagreements", "published", "simulated"]

ROOT = Path(__file__).parents[2] / "scenarios" / "published"
BAR = 0.35
SERVICE = {"200 us": "1.06 ms", "1 ms": "1.06 ms", "10 ms": "10.06 ms"}
"""What sleeping costs: the JDK rounds a nanosleep below 1 ms up to it (Thread.sleep(long, int)), Linux wakes up 50 us later and more."""
BARRIERS = {"ALIGNED": "aligned", "UNALIGNED": "unaligned", "UNALIGNED_1": "{aligned-timeout: 1 ms}"}
WARM_UP = 10
"""Checkpoints before those that count (JMH warm-up iterations of one checkpoint at least)."""
SEEDS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of the table, as it was run or with something changed."""

    mode: str
    sleep: str
    profile: str = "1.15"
    overdraft: int = 0


def published() -> pd.DataFrame:
    """The seven scores, with a column `ms`: time per checkpoint."""
    rows = pd.read_csv(ROOT / "data" / "flink-benchmarks" / "scores.csv")
    return rows.assign(ms=1000 / rows.ops_per_s)


def cell(point: Cell, duration: str) -> Scenario:
    """Its scenario."""
    name = "aligned" if point.mode == "ALIGNED" else "unaligned"
    overrides = [f"job.sink.service={SERVICE[point.sleep]}", f"run.duration={duration}"]
    if point.mode != "ALIGNED":
        overrides += [f"checkpoint.barriers={BARRIERS[point.mode]}", f"cluster.profile={point.profile}"]
        overrides.append(f"cluster.network.overdraft={point.overdraft}")
    (scenario,) = load(ROOT / f"flink-benchmarks-{name}.yaml", overrides).scenarios
    return scenario


def cycle_ms(scenario: Scenario, skip: int = WARM_UP) -> float:
    """Mean time from one trigger to the next, the first `skip` checkpoints left out."""
    rows = simulate(scenario, check=False).checkpoints
    triggers = rows[rows.status == "COMPLETED"].trigger_timestamp
    return float(triggers.diff().iloc[skip + 1 :].mean())


def simulated(point: Cell) -> float:
    """Mean over seeds [ms].  Long enough for ten checkpoints that count, a few hundred where they are short."""
    slow = point.sleep == "10 ms"
    if point.mode == "ALIGNED":  # the first one finds queues full of buffers from before debloating
        duration = "15 min" if slow else "2 min"
    else:
        duration = "2 min" if point.mode == "UNALIGNED_1" and point.profile == "1.15" and slow else "15 s"
    base = cell(point, duration)
    return fmean(cycle_ms(replace(base, run=replace(base.run, seed=seed))) for seed in SEEDS)


def after() -> list[tuple[str, Cell]]:
    """UNALIGNED_1 and UNALIGNED at 10 ms with what Flink has got since."""
    return [
        ("UNALIGNED_1 as published", Cell("UNALIGNED_1", "10 ms")),
        ("UNALIGNED_1, overdraft 10", Cell("UNALIGNED_1", "10 ms", "1.15", 10)),
        ("UNALIGNED_1, FLINK-27251", Cell("UNALIGNED_1", "10 ms", "1.20", 0)),
        ("UNALIGNED_1, both", Cell("UNALIGNED_1", "10 ms", "1.20", 10)),
        ("UNALIGNED as published", Cell("UNALIGNED", "10 ms")),
        ("UNALIGNED, overdraft 10", Cell("UNALIGNED", "10 ms", "1.15", 10)),
    ]


def disagreements(seen: pd.DataFrame, ours: list[float]) -> list[tuple[str, str]]:
    """Pairs of cells whose order is wrong, among those that differ by more than both confidence intervals."""
    wrong = []
    for (i, a), (j, b) in combinations(enumerate(seen.itertuples()), 2):
        apart = abs(a.ops_per_s - b.ops_per_s) > a.error + b.error
        if apart and (a.ms < b.ms) != (ours[i] < ours[j]):
            wrong.append((f"{a.mode} {a.sleep}", f"{b.mode} {b.sleep}"))
    return wrong


def main() -> None:
    seen = published()
    ours = [simulated(Cell(row.mode, row.sleep)) for row in seen.itertuples()]
    print_table(
        ("mode", "sleep", "published ms", "simulated ms", "ratio", f"within {BAR:.0%}"),
        [
            (row.mode, row.sleep, row.ms, ms, ms / row.ms, "yes" if abs(ms / row.ms - 1) <= BAR else "NO")
            for row, ms in zip(seen.itertuples(), ours, strict=True)
        ],
    )
    print(f"\norderings that differ: {disagreements(seen, ours) or 'none'}\n")
    print_table(("sink sleeps 10 ms", "ms per checkpoint"), [(name, simulated(case)) for name, case in after()])


if __name__ == "__main__":
    main()
