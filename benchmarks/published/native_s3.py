"""Checkpoints through the native S3 plug-in of Flink 2.3 and through Presto's, simulated beside published.

    python -m benchmarks.published.native_s3

Published (apache/flink-web, docs/content/posts/2026-06-26-announcing-native-s3-fs.md): rates, durations and numbers of checkpoints, in
`PUBLISHED`.  Used: both average throughputs, the target of 20 GB, and of the durations one, Presto's P99: with Presto's rate at that
size it gives the size at the end, 15.5 GB, which both runs had.  Keys are taken to be drawn evenly, so that new ones become rarer.
Predicted: all others.  Not explained: how many checkpoints complete (the native run has more than one a minute although a third of
its checkpoints take longer than that; Presto's has fewer than its durations leave time for), and the stored size of a checkpoint,
0.3 to 0.4 GB, a thirtieth of what full checkpoints of such durations and rates move.
"""

from __future__ import annotations

from math import log
from pathlib import Path

from benchmarks.measure import print_table
from sim.model.schema.study import load
from sim.runtime.simulate import simulate

__all__ = ["PUBLISHED", "SCENARIO", "growth_bytes", "predicted"]

SCENARIO = Path(__file__).parents[2] / "scenarios" / "published" / "native-s3.yaml"
PUBLISHED = {
    "native": {"mean": 48.8, "p90": 72.5, "p99": 76.7, "completed": 78, "throughput": 200e6},
    "presto": {"mean": 90.1, "p90": 155.0, "p99": 165.3, "completed": 40, "throughput": 92e6},
}
"""Durations in s, throughput in bytes/s."""
PRESTO_RATE_AT_END = 94e6  # of states of 14 to 16 GB
TARGET_BYTES, RUN_S, RECORDS_PER_SECOND = 20e9, 77 * 60, 8


def growth_bytes() -> float:
    """Return the new keys per record at the beginning [bytes], with which the state has Presto's size at the end."""
    end_bytes = PUBLISHED["presto"]["p99"] * PRESTO_RATE_AT_END
    return -log(1 - end_bytes / TARGET_BYTES) / RUN_S * TARGET_BYTES / RECORDS_PER_SECOND


def predicted(plugin: str) -> dict[str, float]:
    """Return the same quantities as `PUBLISHED`, without the throughput."""
    scenario = load(SCENARIO).scenarios[list(PUBLISHED).index(plugin)]
    table = simulate(scenario, check=False).checkpoints
    seconds = table[table.status == "COMPLETED"].end_to_end_duration / 1e3
    quantiles = {"p90": float(seconds.quantile(0.9)), "p99": float(seconds.quantile(0.99))}
    return {"mean": float(seconds.mean()), **quantiles, "completed": len(seconds)}


def main() -> None:
    """Print a row per plug-in and quantity."""
    rows = [
        [plugin, name, PUBLISHED[plugin][name], value, f"{100 * (value / PUBLISHED[plugin][name] - 1):+.0f} %"]
        for plugin in PUBLISHED
        for name, value in predicted(plugin).items()
    ]
    print_table(["plug-in", "quantity", "published", "predicted", "off by"], rows)


if __name__ == "__main__":
    main()
