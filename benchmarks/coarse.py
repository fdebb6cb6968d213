"""Runs that take several records for one, against exact ones: how wrong they are, and how much faster.

    python -m benchmarks.coarse [--seconds 40] [--jobs NAME ...] [--write]

Each job runs exactly, and with `run.resolution: auto`, which has a number for each vertex.  Where that refuses, ten records are taken for
one all the same, to show what would become of it.  `--write` puts the table into docs/truth.md.  About two CPU minutes.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks.measure import cpu_seconds, print_table, record
from sim.model.scenario import Scenario
from sim.plane import warm
from sim.runtime.run.resolution import resolution
from sim.runtime.run.result import Result
from sim.runtime.run.simulate import simulate
from sim.scenario import loads

PAGE = Path(__file__).resolve().parent.parent / "docs" / "truth.md"
BEGIN, END = "<!-- coarse: written by `python -m benchmarks.coarse --write` -->", "<!-- /coarse -->"
WARMUP_S = 5
BARS = {"p50": 0.06, "p99": 0.06, "in flight": 0.03}

JOBS = {
    "overloaded": """
  s0: {source: {rate-per-subtask: 250k/s, record: 100 B}, parallelism: 4}
  s1: {input: {s0: hash}, service: 3 us, record: 100 B, parallelism: 4, state: {size: 64 MB, update: 10 %}}
  s2: {input: {s1: hash}, service: 5 us, parallelism: 4, state: {size: 64 MB, update: 10 %}}""",
    "at 90 %": """
  s0: {source: {rate-per-subtask: 90k/s, record: 100 B}, parallelism: 8}
  s1: {input: {s0: hash}, service: 6 us, record: 100 B, parallelism: 8, state: {size: 64 MB, update: 10 %}}
  s2: {input: {s1: hash}, service: 10 us, parallelism: 8, state: {size: 64 MB, update: 10 %}}""",
    "exponential service at 70 %": """
  s0: {source: {rate-per-subtask: 70k/s, record: 100 B}, parallelism: 4}
  s1: {input: {s0: hash}, service: {exponential: 6 us}, record: 100 B, parallelism: 4}
  s2: {input: {s1: hash}, service: {exponential: 10 us}, parallelism: 4, state: {size: 64 MB, update: 10 %}}""",
    "lognormal service, overloaded": """
  s0: {source: {rate-per-subtask: 120k/s, record: 100 B}, parallelism: 4}
  s1: {input: {s0: hash}, service: {lognormal: {mean: 10 us, cv: 1}}, parallelism: 4, state: {size: 64 MB, update: 10 %}}""",
    "skewed union with fan-out": """
  s0: {source: {rate-per-subtask: 60k/s, record: 80 B}, parallelism: 2}
  s1: {source: {rate-per-subtask: 30k/s, record: 120 B}, parallelism: 2}
  s2: {input: {s0: rebalance, s1: rebalance}, service: 4 us, fan-out: 1.5, record: 100 B, parallelism: 2}
  s3: {input: {s2: {ship: hash, weights: [3, 1]}}, service: 10 us, parallelism: 2, state: {size: 64 MB, update: 10 %}}""",
    "filter before a slow sink": """
  src: {source: {rate-per-subtask: 100k/s, record: 100 B}, parallelism: 4}
  parse: {input: {src: rebalance}, service: 6 us, record: 100 B, fan-out: 0.01, parallelism: 4}
  sink: {input: {parse: hash}, service: 600 us, parallelism: 4, state: {size: 64 MB, update: 10 %}}""",
    "words of documents": """
  src: {source: {rate-per-subtask: 3k/s, record: 2 kB}, parallelism: 4}
  split: {input: {src: rebalance}, service: 150 us, record: 40 B, fan-out: 20, parallelism: 4}
  count: {input: {split: hash}, service: 12 us, parallelism: 4, state: {size: 64 MB, update: 10 %}}""",
    "join of fast and slow": """
  clicks: {source: {rate-per-subtask: 100k/s, record: 100 B}, parallelism: 4}
  rates: {source: {rate-per-subtask: 100/s, record: 200 B}, parallelism: 1}
  parse: {input: {clicks: rebalance}, service: 6 us, record: 150 B, fan-out: 0.05, parallelism: 4}
  enrich: {input: {parse: hash, rates: broadcast}, combine: join, service: 100 us, parallelism: 4, state: {size: 64 MB, update: 10 %}}""",
    "thin channels": """
  s0: {source: {rate-per-subtask: 1600/s, record: 100 B}, parallelism: 32}
  s1: {input: {s0: hash}, service: 262 us, record: 100 B, parallelism: 32, state: {size: 64 MB, update: 10 %}}
  s2: {input: {s1: hash}, service: 437 us, parallelism: 32, state: {size: 64 MB, update: 10 %}}""",
}
"""Name -> its vertices.  Barriers, storage and the run are the same for all."""


def scenarios(job: str, seconds: int) -> tuple[Scenario, ...]:
    """One with aligned and one with unaligned barriers."""
    text = f"""# How wrong is a run that takes several records for one?
version: 1
job:{JOBS[job]}
checkpoint: {{interval: 2 s, barriers: [aligned, unaligned]}}
storage: {{bandwidth: 100 MB/s, file-latency: 20 ms, metadata-latency: 20 ms}}
run: {{duration: {seconds} s, warmup: {WARMUP_S} s, seed: 7}}
"""
    return tuple(loads(text).scenarios)


def answers(result: Result) -> dict[str, float]:
    """What people ask for: durations in ms, bytes in flight, records per second at the end."""
    done = result.checkpoints[(result.checkpoints["status"] == "COMPLETED") & (result.checkpoints["trigger_timestamp"] > WARMUP_S * 1e3)]
    series = result.series[result.series["time"] > WARMUP_S]
    durations = done["end_to_end_duration"]
    return {
        "p50": float(durations.median()), "p99": float(durations.quantile(0.99)),
        "in flight": float((series["inputQueueSize"] + series["outputQueueSize"]).groupby(series["time"]).sum().mean()),
        "throughput": float(series.loc[series["vertex"] == series["vertex"].iloc[-1], "numRecordsInPerSecond"].mean()),
    }  # fmt: skip


def compared(job: str, scenario: Scenario) -> tuple[tuple[str, ...], list[tuple[str, str, float, str]]]:
    """A row of the table, and rows for the history."""
    exact_s, exact = cpu_seconds(lambda: simulate(scenario))
    auto = replace(scenario, run=replace(scenario.run, resolution=0))
    how = resolution(auto)
    tried = auto if how.records > 1 else replace(scenario, run=replace(scenario.run, resolution=10))
    numbers = list(how.as_one.values()) if how.records > 1 else [10]
    as_one = ", ".join(map(str, numbers if len(set(numbers)) > 1 else numbers[:1]))
    coarse_s, coarse = cpu_seconds(lambda: simulate(tried))
    before, after = answers(exact), answers(coarse)
    errors = {name: after[name] / before[name] - 1 for name in before}
    within = all(abs(errors[name]) <= bar for name, bar in BARS.items())
    name = f"{job}, {scenario.checkpoint.barriers}"
    verdict = "taken" if how.records > 1 else "refused"
    if not within and how.records > 1:
        verdict = "taken, and wrong"
    row = (name, as_one, *(f"{100 * error:+.1f} %" for error in errors.values()), f"{exact_s / coarse_s:.1f} x", verdict)
    history = [(name, f"error of {what}", error, "") for what, error in errors.items()] + [(name, "exact / coarse", exact_s / coarse_s, "")]
    return row, history


def main() -> None:
    """One row per job and way of barriers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--jobs", nargs="*", choices=list(JOBS), default=list(JOBS))
    parser.add_argument("--write", action="store_true", help="into docs/truth.md")
    options = parser.parse_args()
    warm()
    found = [compared(job, scenario) for job in options.jobs for scenario in scenarios(job, options.seconds)]
    header = ("job, barriers", "records as one", "p50", "p99", "in flight", "throughput", "CPU time", "auto")
    rows = [row for row, _ in found]
    print_table(header, rows)
    record("coarse", [line for _, lines in found for line in lines])
    if options.write:
        before, rest = PAGE.read_text().split(BEGIN)
        table = [f"| {' | '.join(cells)} |" for cells in (header, ("---",) * len(header), *rows)]
        PAGE.write_text(before + "\n".join([BEGIN, *table, END]) + rest.split(END)[1])


if __name__ == "__main__":
    main()
