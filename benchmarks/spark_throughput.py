"""What Spark costs a sweep: CPU per cell with two workers against one, idle slots, overhead per cell, the first task of an executor.

    python -m benchmarks.spark_throughput [--rounds 3] [--cells 40]

On a standalone cluster on loopback; what is compared takes turns, medians are told.  Costs are CPU time, that of every
process of cluster and driver, so that it does not matter what else the machine does.  Idle slots and first tasks are
times on the clock: believe them of a quiet machine.  Bars: two workers use at most 1/0.85 of one worker's CPU per cell;
less than 15 % of the slots' time is idle.

Two cores under a load of 25, three rounds: two workers used 0.83 times the CPU of one per cell of 1 s, 0.85 times per
cell of 50 ms.  In a single round after tasks were sized by CPU it was 0.96 and 0.91.  That round, beyond the cells' own
CPU: 0.35 s and 0.07 s per cell on two workers (0.11 s of the latter before), 0.04 s and nothing on local processes.
First task: 17 s of CPU with a kernel to compile, 2.1 s without.  Idle slots 4 and 5 %, first tasks 72 s and 8 s on the
clock: told by a machine that was not quiet.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import event_log
from benchmarks.measure import print_table, record
from benchmarks.process_tree import Meter
from benchmarks.standalone import Cluster, standalone
from sim.model.schema.study import load
from sim.studies.cells import Row, timed, warm
from sim.studies.local import run_each
from sim.studies.plan import Cell, cells, planned_of
from sim.studies.progress import Progress, no_watch
from sim.studies.sweeps.spark_rows import QUICK_START_CONF, rows_on
from sim.studies.sweeps.spark_session import context

__all__ = ["Start", "Turn", "main", "on_processes", "on_spark", "planned"]

SCENARIO = Path(__file__).parent.parent / "scenarios" / "published" / "khaos-ysb.yaml"
KINDS = {
    "1 s": ("run.duration=18 min", "checkpoint.interval=10 s"),
    "50 ms": ("run.duration=75 s", "checkpoint.interval=30 s", "faults=[]"),
}
"""Cells that take about so much CPU."""
CPU_BAR, IDLE_BAR = 1 / 0.85, 0.15


@dataclass(frozen=True)
class Turn:
    """One sweep on a session whose workers are warm."""

    cells: int
    cpu: Counter[str]  # seconds by kind of process
    own_s: float  # CPU of the cells themselves
    idle_share: float

    @property
    def each_s(self) -> float:
        return sum(self.cpu.values()) / self.cells

    @property
    def overhead_s(self) -> float:
        return self.each_s - self.own_s / self.cells


@dataclass(frozen=True)
class Start:
    """The first task of each executor: one cell of 50 ms and whatever it has to load or compile before."""

    python_s: float  # CPU of a Python worker
    wall_s: float


def planned(kind: str, count: int, first_seed: int = 0) -> list[Cell]:
    """So many cells that differ in their seed."""
    return [cells(load(SCENARIO, [*KINDS[kind], f"run.seed={first_seed + k}"]).scenarios[:1])[0] for k in range(count)]


def on_spark(
    cluster: Cluster, workers: int, sweeps: dict[str, Sequence[Cell]], folder: Path, *, cold: bool
) -> tuple[Start, dict[str, Turn]]:
    """One session with so many of the cluster's workers: a cell for each of them to begin with, then the sweeps one by one."""
    caches = (
        {"spark.executorEnv.CKPTSIM_CACHE_DIR": folder / "code", "spark.executorEnv.XDG_CACHE_HOME": folder / "cache"}
        if cold
        else {}
    )
    events = folder / "events"
    conf = (
        event_log.settings(events)
        | {"spark.cores.max": str(workers)}
        | {key: str(value) for key, value in caches.items()}
    )
    measured: dict[str, tuple[list[Row], Counter[str], float, float]] = {}

    def sweep(name: str, chosen: Sequence[Cell]) -> None:
        begin, before = time.time(), meter.seconds()
        rows = list(rows_on(spark, planned_of(chosen), watch=no_watch))
        measured[name] = (rows, meter.seconds() - before, begin, time.time())

    with Meter() as meter, context(cluster.url, conf=QUICK_START_CONF | conf) as spark:
        while spark._jsc.sc().getExecutorMemoryStatus().size() <= workers:  # noqa: SLF001 - the driver is one
            time.sleep(0.2)
        sweep("", planned("50 ms", workers, first_seed=10_000))
        for name, chosen in sweeps.items():
            sweep(name, chosen)
    (log,) = event_log.logs(events)
    start_rows, start_cpu, *_ = measured.pop("")
    start = Start((start_cpu["Python workers"] - _own_s(start_rows)) / workers, statistics.median(log.first_task_s()))
    return start, {
        name: Turn(len(rows), cpu, _own_s(rows), log.idle_share(begin, end))
        for name, (rows, cpu, begin, end) in measured.items()
    }


def on_processes(jobs: int, chosen: Sequence[Cell]) -> Turn:
    """Without Spark."""
    with Meter() as meter:
        before = meter.seconds()
        rows = [row for _, row in run_each(_timed, chosen, jobs=jobs)]
        return Turn(len(rows), meter.seconds() - before, _own_s(rows), 0.0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark_throughput", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", type=int, default=40, help="of 1 s; of 50 ms there are five times as many")
    given = parser.parse_args(arguments)
    warm()
    sweeps = {"1 s": planned("1 s", given.cells), "50 ms": planned("50 ms", 5 * given.cells)}
    turns: dict[tuple[str, str], list[Turn]] = {}
    starts: dict[str, list[Start]] = {"cold": [], "warm": []}
    with (
        tempfile.TemporaryDirectory(prefix="ckptsim-throughput-") as place,
        standalone(Path(place) / "cluster") as cluster,
    ):
        for k in range(given.rounds):
            for workers in (1, 2):
                for state, begun in starts.items():
                    todo = sweeps if state == "warm" else {}
                    start, measured = on_spark(
                        cluster, workers, todo, Path(place) / f"{k}-{workers}-{state}", cold=state == "cold"
                    )
                    begun.append(start)
                    for kind, turn in measured.items():
                        turns.setdefault((kind, f"Spark, {workers} worker{'s' * (workers > 1)}"), []).append(turn)
            for kind, chosen in sweeps.items():
                turns.setdefault((kind, "--jobs 2"), []).append(on_processes(2, chosen))
    _tell(turns, starts)


def _tell(turns: dict[tuple[str, str], list[Turn]], starts: dict[str, list[Start]]) -> None:
    each_s = {case: statistics.median(turn.each_s for turn in repeats) for case, repeats in turns.items()}
    overhead_s = {case: statistics.median(turn.overhead_s for turn in repeats) for case, repeats in turns.items()}
    idle = {case: statistics.median(turn.idle_share for turn in repeats) for case, repeats in turns.items()}
    print_table(
        ["cells of", "on", "CPU s per cell", "of it not the cell's", "idle slots"],
        [
            (*case, each_s[case], overhead_s[case], f"{idle[case]:.0%}" if "Spark" in case[1] else "-")
            for case in sorted(turns)
        ],
    )
    for kind in KINDS:
        both = turns[kind, "Spark, 2 workers"]
        ratio = each_s[kind, "Spark, 2 workers"] / each_s[kind, "Spark, 1 worker"]
        print(f"cells of {kind}: two workers use {ratio:.2f} times the CPU per cell of one (bar {CPU_BAR:.2f})")
        spent, count = sum((turn.cpu for turn in both), Counter[str]()), sum(turn.cells for turn in both) / 1000
        print(
            "  where it goes [ms per cell]: "
            + ", ".join(f"{role} {spent_s / count:.0f}" for role, spent_s in spent.most_common())
        )
    first = {
        state: (
            statistics.median(launch.python_s for launch in measured),
            statistics.median(launch.wall_s for launch in measured),
        )
        for state, measured in starts.items()
    }
    head = ["first task of an executor", "CPU s of its Python", "s on the clock"]
    print_table(head, [(state, *medians) for state, medians in first.items()])
    record(
        "spark",
        [
            *((", ".join(case), "CPU per cell", value, "s") for case, value in each_s.items()),
            *((", ".join(case), "idle slots", value, "1") for case, value in idle.items() if "Spark" in case[1]),
            *((f"first task, {state}", "CPU", measured[0], "s") for state, measured in first.items()),
        ],
    )


def _timed(cell: Cell, progress: Progress) -> Row:
    return timed(cell, progress=progress)


def _own_s(rows: Iterable[Row]) -> float:
    return sum(row["cpu_s"] for row in rows)


if __name__ == "__main__":
    main()
