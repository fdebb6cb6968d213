"""Does `ckptsim advise` recommend what really was better?  Recordings that differ in one setting: one is asked about, the other knows.

`python -m benchmarks.advice [FOLDER] [NAME...]`; without a folder, the recordings of this project.  Predicted are the numbers of the
advised setting, from the configuration of the first recording; recorded are those of the second one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from benchmarks.lab import read
from sim.advice.job import job_file, prepare_bench
from sim.advice.judgement import Limits
from sim.advice.report import report
from sim.advice.texts import limits_text, name_of
from sim.advice.trials import TrialRunner
from sim.app.verbs.common import format_table
from sim.jobs.evidence.prediction import observed, predicted
from sim.jobs.reading import to_document
from sim.model.units import format_duration
from sim.results.formats import bytes_text, ms_text, per_second_text
from sim.runtime.simulate import simulate

__all__ = ["PAIRS", "Pair", "judged", "main"]

RECORDINGS = Path(__file__).parents[1] / "tests" / "data" / "recordings"
SEEDS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Pair:
    """`better`: the recording of the setting that is to be advised; the same one: nothing is to be changed."""

    today: str
    limits: Limits
    better: str
    advised: str = field(default="")  # part of the setting's name


PAIRS = (
    Pair("p4-severe-aligned", Limits(checkpoint_ms=2000), "p4-severe-timeout-1s", "aligned-timeout 1 s, every 4 s"),
    Pair("p4-severe-aligned", Limits(checkpoint_ms=500), "p4-severe-unaligned", "unaligned, every 4 s"),
    Pair(
        "debloat1s-p4-severe-aligned",
        Limits(checkpoint_ms=4000),
        "debloat1s-p4-severe-aligned",
        "aligned, debloating, every 4 s",
    ),
    Pair("p4-severe-timeout-1s", Limits(checkpoint_ms=500), "p4-severe-unaligned", "unaligned, every 4 s"),
    Pair(
        "p4-severe-aligned",
        Limits(checkpoint_ms=60_000, recovery_ms=120_000, loss=0.03),
        "p4-severe-aligned",
        "aligned, every 4 s",
    ),
    Pair("p4-severe-unaligned", Limits(checkpoint_ms=500), "p4-severe-unaligned", "unaligned, every 4 s"),
    Pair(
        "expire4s-p4-severe-aligned",
        Limits(checkpoint_ms=60_000),
        "p4-severe-aligned",
        "aligned, timeout 10 min, every 3 s",
    ),
    Pair("join-fastslow-aligned", Limits(checkpoint_ms=500), "join-fastslow-unaligned", "unaligned, every 4 s"),
    Pair(
        "chain3-none-syncflush500-aligned",
        Limits(checkpoint_ms=1000),
        "chain3-none-asyncflush500-aligned",
        "FLINK-37375",
    ),
)


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments and Path(arguments[0]).is_dir() else RECORDINGS
    names = arguments[1:] if folder != RECORDINGS else arguments
    right = 0
    pairs = [pair for pair in PAIRS if not names or pair.today in names]
    for pair in pairs:
        lines, is_right = judged(pair, folder)
        right += is_right
        print("\n".join(lines), end="\n\n", flush=True)
    print(f"{right} of {len(pairs)} advised as the other recording has it")


def judged(pair: Pair, folder: Path) -> tuple[list[str], bool]:
    """Lines for people, and whether the advice is right."""
    with TemporaryDirectory() as scratch:
        recording = read(_file(folder, pair.today))
        imported = to_document(recording)
        job = job_file(Path(scratch), imported.text, Path(scratch))
        bench = prepare_bench(job, (), (), recovery_ms=pair.limits.recovery_ms)
        begun, runner = time.process_time(), TrialRunner(Path(scratch), jobs=1)
        advice = report(bench, pair.limits, None, runner, Path(scratch), max_replications=12)
        spent_s = time.process_time() - begun
        chosen = advice.chosen
        head = f"{recording.name}, {limits_text(pair.limits)}: {'no setting meets the limits' if chosen is None else name_of(chosen.name)}"
        sure = advice.data["confidence"]["setting"]
        lines = [f"{head} ({100 * sure:.0f} %, {runner.spent_s():.0f} s of work in runs, {spent_s:.0f} s in all)"]
        if chosen is None:
            return lines, False
        other = read(_file(folder, pair.better))
        length = format_duration(round(other.config.duration_s) * 10**9)
        point = advice.advised.point if advice.advised is not None else {}
        scenario = bench.load(bench.common | point | {"run.duration": length})
        runs = [
            predicted(simulate(replace(scenario, run=replace(scenario.run, seed=seed)), check=False)) for seed in SEEDS
        ]
        rows = list(_compared(pd.concat(runs), observed(other), [vertex.name for vertex in scenario.job.vertices][-1]))
    lines += ["", format_table([f"beside {other.name}", "predicted", "recorded"], rows)]
    return lines, pair.advised in name_of(chosen.name)


def _compared(simulated: pd.DataFrame, seen: pd.DataFrame, sink: str) -> Iterator[list[str]]:
    for label, quantity, vertex, share, text in (
        ("checkpoint p50", "end_to_end_duration", "", 0.5, ms_text),
        ("checkpoint p99", "end_to_end_duration", "", 0.99, ms_text),
        ("in flight", "persisted_data", "", 0.5, bytes_text),
        ("written", "checkpointed_size", "", 0.5, bytes_text),
        ("throughput", "numRecordsInPerSecond", sink, 0.5, per_second_text),
    ):
        values = [_quantile(side, quantity, vertex, share) for side in (simulated, seen)]
        yield [label, *map(text, values)]


def _quantile(table: pd.DataFrame, quantity: str, vertex: str, share: float) -> float:
    """The first checkpoint meets a cold JVM and queues that are not full."""
    rows = table[
        (table["quantity"] == quantity) & (table["vertex"].fillna("") == vertex) & ~table["first"].astype(bool)
    ]
    return float(rows["value"].quantile(share)) if len(rows) else float("nan")


def _file(folder: Path, name: str) -> Path:
    """Repetitions and families stand in the names of other collections."""
    names = (f"{name}.json.gz", f"shuffle-{name}.json.gz", f"shuffle-{name}-rep1.json.gz")
    return next((folder / name for name in names if (folder / name).exists()), folder / names[0])


if __name__ == "__main__":
    main(sys.argv[1:])
