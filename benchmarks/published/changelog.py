"""The changelog post (flink.apache.org/2022/05/30): checkpoints of two jobs with and without it, simulated beside published.

    python -m benchmarks.published.changelog [value-state | windows]

Published: changelog.csv beside this file (durations in s, sizes in GB).  Durations of a second and more were read off
Flink's web UI, which cut them off at the second (humanize-duration.pipe.ts): "5 s" is anything from 5 to 6.  Simulated
is a stretch of the 21 hours; the number of checkpoints is that of 21 hours at the pace of the stretch.

The post does not say how large values and state are, nor what S3, the machines' disks and the JobManager could do.
These are fitted, one number per cell marked `fitted`; everything else is predicted, with one set of numbers for all
four runs. value-state, off: checkpointed size p50 -> value of 1.1 kB, its p90 -> compaction at 50 MB/s, full size p50
-> state, duration p50 -> 55 MB/s per machine.  On: duration p50 and p90 -> latency of a request, mean and cv; number of
checkpoints -> the JobManager's time besides _metadata; checkpointed size p50 -> threshold.  (1.1 MB/s per subtask never
reach the default of 5 MB, yet the post says most is written ahead.) windows: checkpointed size p50, off -> state; full
size p50, on -> 18.6 kB of changes per record.  Facts with a source: 3,500 writes/s and prefix, never reached here (S3
user guide); three requests per new object (PrestoS3FileSystem).

What one bandwidth cannot explain: the windows' log is 71 MB/s per machine, without a pause, while the value-state job
moved 47 MB/s when it moved nothing but checkpoints.  Presto stages files on the local disk, where RocksDB compacts;
that they share it is not modelled.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from benchmarks.measure import print_table
from sim.model.schema.study import load
from sim.runtime.simulate import simulate

__all__ = ["BARS", "compared", "published", "run"]

HERE = Path(__file__).parent
SCENARIOS = HERE.parents[1] / "scenarios" / "published"
HOURS_S = 21 * 3600
BARS = {"end_to_end_duration": 0.25, "checkpointed_size": 0.25, "state_size": 0.25, "checkpoints": 0.10}
_STRETCH = {
    ("value-state", "off"): ("run.duration=700 s", "run.warmup=250 s"),  # a checkpoint every 7 s needs a longer one
    ("windows", "on"): ("run.duration=260 s", "run.warmup=200 s"),  # until every subtask has been materialised once
}
_UNITS = {"end_to_end_duration": 1e3, "checkpointed_size": 1e9, "state_size": 1e9}


def published() -> pd.DataFrame:
    return pd.read_csv(HERE / "changelog.csv", keep_default_na=False, na_values={"quantile": [""]})


def run(job: str, changelog: str) -> pd.DataFrame:
    """The completed checkpoints after the warm-up; `changelog`: off or on."""
    study = load(SCENARIOS / f"changelog-{job}.yaml", _STRETCH.get((job, changelog), ()))
    scenario = study.scenarios[("off", "on").index(changelog)]
    table = simulate(scenario, check=False).checkpoints
    return table[(table.status == "COMPLETED") & (table.trigger_timestamp >= scenario.run.warmup_ns / 1e6)]


def compared(job: str, changelog: str, checkpoints: pd.DataFrame) -> pd.DataFrame:
    """The rows of `published` of this run with columns `simulated` and `error` (relative, 0 inside an interval; nothing completed: inf)."""
    rows = published()
    rows = rows[(rows.job == job) & (rows.changelog == changelog)]
    seen = [_quantity(checkpoints, row.quantity, row.quantile) for row in rows.itertuples()]
    pairs = list(zip(seen, rows.low, rows.high, strict=True))
    return rows.assign(
        simulated=seen, error=[max(0.0, value / high - 1) + min(0.0, value / low - 1) for value, low, high in pairs]
    )


def _quantity(checkpoints: pd.DataFrame, quantity: str, quantile: float) -> float:
    if len(checkpoints) < 2:
        return 0.0 if quantity == "checkpoints" else float("inf")
    if quantity == "checkpoints":
        cycle_s = checkpoints.trigger_timestamp.diff().mean() / 1e3
        return float(HOURS_S / cycle_s)
    return float(checkpoints[quantity].quantile(quantile) / _UNITS[quantity])


def main() -> None:
    for job in sys.argv[1:] or ("value-state", "windows"):
        rows = pd.concat([compared(job, changelog, run(job, changelog)) for changelog in ("off", "on")])
        print_table(
            (job, "quantity", "quantile", "published", "simulated", "error %", "bar %", ""),
            [
                (
                    row.changelog,
                    row.quantity,
                    "" if pd.isna(row.quantile) else f"p{100 * row.quantile:g}",
                    f"{row.low:g}" if row.low == row.high else f"[{row.low:g}, {row.high:g})",
                    row.simulated,
                    100 * row.error,
                    100 * BARS[row.quantity],
                    row.use or ("" if abs(row.error) <= BARS[row.quantity] else "MISSED"),
                )
                for row in rows.itertuples()
            ],
        )
        p50 = rows[rows["quantile"] == 0.5].set_index(["quantity", "changelog"])
        for quantity, over, under in (("end_to_end_duration", "off", "on"), ("state_size", "on", "off")):
            theirs, ours = (
                p50[column][quantity, over] / p50[column][quantity, under] for column in ("low", "simulated")
            )
            print(f"{quantity} p50, {over} / {under}: {theirs:.2f} published, {ours:.2f} simulated")
        print()


if __name__ == "__main__":
    main()
