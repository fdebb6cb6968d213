"""Phoebe's savepoints of overloaded jobs (arXiv 2206.09679): durations by parallelism, simulated beside published.

    python -m benchmarks.published.phoebe

A savepoint's barriers wait behind whatever fills the channels, so it takes as long as the busiest subtask needs for its
share of them.  Flink gives each channel a constant number of buffers, so that grows with the parallelism.  Fitted: how
long the windows take per record, on the savepoints at parallelism 12 and nothing else; all other parallelisms are
predicted.  Not known: which campaigns there are (a hundred, drawn onto key groups anew for each savepoint), how large
records are on the wire.  The fitted service time does not agree with the throughput the authors measured (about 12,500
records/s and worker, a third of which reach the windows).  Four times as many records would have to lie in the
channels.  What holds them is not known, so only the dependence on the parallelism is a prediction.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import fmean, median

import pandas as pd

from benchmarks.measure import print_table
from sim.model.job import Distribution, Rate, Source
from sim.model.scenario import Scenario
from sim.model.schema.study import load
from sim.runtime.simulate import simulate

__all__ = [
    "FITTED",
    "SERVICE_NS",
    "by_parallelism",
    "fit_ns",
    "overloaded",
    "predicted",
    "savepoint_s",
    "scenario",
    "shares",
]

ROOT = Path(__file__).parents[2] / "scenarios" / "published"
FITTED = 12
SERVICE_NS = 11_800_000
"""What `fit_ns` returns: per simulated record, which stands for ten."""
CAMPAIGNS = 100
_KEY_GROUPS = 128


def overloaded() -> pd.DataFrame:
    """Savepoints of the threshold autoscaler taken to scale out; `parallelism` = before."""
    rows = pd.read_csv(ROOT / "data" / "phoebe" / "savepoints.csv")
    rows["parallelism"] = rows.groupby("run").parallelism_after.shift()
    rows = rows[rows.run.str.endswith("twres") & (rows.parallelism < rows.parallelism_after)]
    return rows.assign(parallelism=rows.parallelism.astype(int), seconds=rows.save_ms / 1000).reset_index(drop=True)


def shares(parallelism: int, seed: int) -> tuple[Fraction, ...]:
    """Each subtask's share of the records: its campaigns, drawn onto key groups; nobody has none."""
    random = Random(f"{parallelism}/{seed}")
    while True:
        campaigns = [0] * parallelism
        for _ in range(CAMPAIGNS):
            campaigns[random.randrange(_KEY_GROUPS) * parallelism // _KEY_GROUPS] += 1
        if min(campaigns):
            return tuple(Fraction(count, CAMPAIGNS) for count in campaigns)


def scenario(parallelism: int, seed: int, service_ns: int = SERVICE_NS, rate: Fraction | None = None) -> Scenario:
    """`rate`: simulated records/s of each source; None: a backlog."""
    base = load(ROOT / "phoebe.yaml").scenarios[0]
    source, reader = base.job.vertices
    log = Source() if rate is None else Source((Rate(0, rate),))
    (inlet,), service = reader.inputs, Distribution(service_ns)
    return replace(
        base,
        job=replace(
            base.job,
            vertices=(
                replace(source, parallelism=parallelism, source=log),
                replace(
                    reader,
                    parallelism=parallelism,
                    service=service,
                    inputs=(replace(inlet, weights=shares(parallelism, seed), service=service),),
                ),
            ),
        ),
    )


def savepoint_s(job: Scenario) -> float:
    """Duration of the one savepoint [s]; the rest of the run if it is not complete by then."""
    table = simulate(job, check=False).checkpoints
    (row,) = table[table.savepointFormat != ""].to_dict("records")
    at_ns, end_ns = job.actions[0].at_ns, job.run.duration_ns
    return float(row["end_to_end_duration"]) / 1000 if row["status"] == "COMPLETED" else (end_ns - at_ns) / 1e9


def fit_ns(rows: pd.DataFrame, seeds: int = 8) -> int:
    """All times of an overloaded job scale with its service time, so one ratio says it; in steps of 0.1 ms."""
    seen = fmean(rows[rows.parallelism == FITTED].seconds)
    unit_ns = 2_500_000
    there = fmean(savepoint_s(scenario(FITTED, seed, unit_ns)) for seed in range(seeds))
    return round(unit_ns * seen / there / 100_000) * 100_000


def predicted(rows: pd.DataFrame) -> pd.DataFrame:
    """With a column `predicted` [s], each savepoint with campaigns of its own."""
    return rows.assign(predicted=[savepoint_s(scenario(row.parallelism, row.Index)) for row in rows.itertuples()])


def by_parallelism(rows: pd.DataFrame) -> pd.DataFrame:
    """How many savepoints, and their mean duration published and predicted [s]."""
    groups = rows.groupby("parallelism")
    table = groups.agg(savepoints=("seconds", "size"), published=("seconds", "mean"), predicted=("predicted", "mean"))
    return table.assign(error=table.predicted / table.published - 1)


def main() -> None:
    rows = overloaded()
    print(f"fitted at parallelism {FITTED}: {fit_ns(rows) / 1e6:g} ms per record\n")
    rows = predicted(rows)
    print_table(
        ("parallelism", "savepoints", "published s", "simulated s", "error %", ""),
        [
            (
                str(p),
                int(row.savepoints),
                row.published,
                row.predicted,
                100 * row.error,
                "fitted" if p == FITTED else "",
            )
            for p, row in by_parallelism(rows).iterrows()
        ],
    )
    for name, column in (("published", rows.seconds), ("simulated", rows.predicted)):
        print(f"{name}: median {median(column):.0f} s, p90 {column.quantile(0.9):.0f} s, of all {len(rows)}")
    print(f"rank correlation {rows.seconds.corr(rows.predicted, 'spearman'):.2f}")


if __name__ == "__main__":
    main()
