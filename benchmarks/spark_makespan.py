"""How long a sweep with a few long cells takes on a large cluster, and what a cell costs the driver's Python.

    python -m benchmarks.spark_makespan [--cells 100] [--standalone CELLS]

No Spark: a make-believe cluster of some slots runs the tasks that `sim.studies.sweeps.spark_rows` submits, in the order in
which Spark would, on a clock of its own.  Cells take 1 s, and a few of them longer; rows are those of one real run.  A
makespan is compared with its bound, the larger of the longest cell and of all cells divided by the slots.  "Unforeseen":
long cells look like short ones, so they come in any order.

100 cells per slot: 1.0 times the bound in all three cases, and 1.2, 1.3 and 1.2 times unforeseen.  Three jobs
at once, each of a task per slot, took 2.7, 8.6 and 23 times the bound.
A cell costs the driver's Python 0.05 (1,000 slots) to 0.10 ms (16 slots).

`--standalone` confirms it on a real cluster of four workers, whose cells sleep: makespans, and so many cells that take no
time, which show how many the driver handles per second.
"""

from __future__ import annotations

import argparse
import heapq
import pickle
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.measure import print_table
from benchmarks.standalone import standalone
from sim.model.schema.study import load
from sim.studies import cells as cells_module
from sim.studies.cells import Row, timed
from sim.studies.plan import CellPlan, SeededScenarios
from sim.studies.progress import no_watch
from sim.studies.sweeps import spark_rows
from sim.studies.sweeps.run import Workers, run_missing
from sim.studies.sweeps.spark_session import context
from sim.studies.sweeps.store import Store

__all__ = ["CASES", "Case", "Cluster", "Sweep", "main", "planned", "swept"]

SCENARIO = Path(__file__).parent.parent / "scenarios" / "published" / "khaos-ysb.yaml"
SHORT_S = 1.0


@dataclass(frozen=True)
class Case:
    """A sweep with long cells."""

    slots: int
    long_share: float
    long_s: float

    def __str__(self) -> str:
        return f"{self.slots} slots, {self.long_share:.1%} of cells of {self.long_s:.0f} s"


CASES = (Case(16, 0.01, 60), Case(100, 0.01, 60), Case(1000, 0.001, 600))


@dataclass
class Cluster:
    """A context of Spark: its tasks take the time of their cells, `length_s`, on the clock `now_s`."""

    slots: int
    length_s: Callable[[str], float]
    fails: Callable[[list[str]], bool] = lambda cells: False  # whether a task of these cells kills its executor
    now_s: float = 0.0
    tasks_cpu_s: float = 0.0  # of this process, which runs the tasks too
    sent_bytes: int = 0
    jobs: list[int] = field(default_factory=list)  # number of tasks of each
    broadcasts: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._waiting = deque[tuple[SimpleNamespace, float, bytes]]()
        self._running: list[tuple[float, int, SimpleNamespace, bytes]] = []
        self._begun = 0
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False, isLocal=lambda: True))

    @property
    def defaultParallelism(self) -> int:  # noqa: N802 - Spark's name
        return self.slots

    def accumulator(self, zero: list[Row], _: object) -> SimpleNamespace:
        self._buffer: list[Row] = []
        self._accumulator = SimpleNamespace(value=list(zero), add=self._buffer.extend)
        return self._accumulator

    def broadcast(self, value: Any) -> SimpleNamespace:
        self.broadcasts.append(value)
        return SimpleNamespace(value=value)

    def setJobDescription(self, text: str) -> None:  # noqa: N802 - Spark's name
        pass

    def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
        self._waiting.clear()

    def parallelize(self, tasks: Sequence[bytes], _: int) -> SimpleNamespace:
        def write_and_read_results(run: Callable[[Any], Any]) -> SimpleNamespace:
            job = SimpleNamespace(left=len(tasks), failed=False)
            self.jobs.append(len(tasks))
            self.sent_bytes += sum(map(len, tasks))
            begin_s = time.process_time()
            for task in tasks:
                list(run(iter([task])))
                length_s = sum(self.length_s(row["cell"]) for row in self._buffer)
                self._waiting.append((job, length_s, pickle.dumps(self._buffer)))
                self._buffer.clear()
            self.tasks_cpu_s += time.process_time() - begin_s
            self._begin()
            return SimpleNamespace(isDone=lambda: job.failed or not job.left, get=lambda: self._result(job))

        return SimpleNamespace(
            mapPartitions=lambda run: SimpleNamespace(
                _jrdd=SimpleNamespace(collectAsync=lambda: write_and_read_results(run))
            )
        )

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Run the cluster for a time."""
        until_s = self.now_s + seconds
        while self._running and self._running[0][0] <= until_s:
            self.now_s, _, job, rows = heapq.heappop(self._running)
            if not job.failed:
                self._end(job, pickle.loads(rows))
            self._begin()
        self.now_s = until_s

    def _begin(self) -> None:
        """Begin the tasks that wait, job after job, while there are slots."""
        while self._waiting and len(self._running) < self.slots:
            job, length_s, rows = self._waiting.popleft()
            if not job.failed:
                self._begun += 1
                heapq.heappush(self._running, (self.now_s + length_s, self._begun, job, rows))

    def _end(self, job: SimpleNamespace, rows: list[Row]) -> None:
        if self.fails([row["cell"] for row in rows]):  # for the last time that Spark tries it
            job.failed = True
            return
        job.left -= 1
        self.last_end_s = self.now_s
        self._accumulator.value.extend(rows)

    def _result(self, job: SimpleNamespace) -> None:
        if job.failed:
            raise RuntimeError("ExecutorLostFailure")


def planned(count: int, case: Case, *, foreseen: bool = True, seed: int = 1) -> tuple[CellPlan, dict[str, float]]:
    """Return the plan of a sweep, and its cells' lengths [s].  `foreseen`: the scenario of long cells runs for longer."""
    rng = random.Random(seed)
    is_long = np.array([rng.random() < case.long_share for _ in range(count)])
    (short,) = load(SCENARIO, ["run.duration=5 min", "checkpoint.interval=30 s", "faults=[]"]).scenarios[:1]
    duration_ns = round(short.run.duration_ns * case.long_s / SHORT_S)
    long = replace(short, run=replace(short.run, duration_ns=duration_ns))
    of, seeds = (is_long if foreseen else is_long * 0).astype(np.int64), np.arange(count)
    ids = np.array([f"{i:020d}" for i in range(count)], dtype="S20")
    plan = CellPlan(SeededScenarios((short, long), of, seeds), seeds, seeds * 0, ids, ids)
    lengths = np.where(is_long, case.long_s, SHORT_S).tolist()
    return plan, dict(zip((name.decode() for name in ids), lengths, strict=True))


@dataclass(frozen=True)
class Sweep:
    """A sweep on the make-believe cluster."""

    cells: int
    makespan_s: float
    bound_s: float
    driver_cpu_s: float
    errors: list[str]  # cells without a result
    cluster: Cluster

    @property
    def ratio(self) -> float:
        return self.makespan_s / self.bound_s


def swept(plan: CellPlan, lengths_s: dict[str, float], slots: int, row: Row, **options: Any) -> Sweep:
    """Run a sweep, and store its rows.  `row`: the columns of all rows but for the cell."""
    cluster = Cluster(slots, lengths_s.__getitem__, **options)

    def timed(cell: Any, *_: object, **__: object) -> Row:
        return row | {"cell": cell.id, "cpu_s": lengths_s[cell.id], "wall_s": lengths_s[cell.id]}

    pyspark = ModuleType("pyspark")
    pyspark.cloudpickle = SimpleNamespace(register_pickle_by_value=lambda module: None)  # type: ignore[attr-defined]
    pyspark.TaskContext = SimpleNamespace(get=lambda: None)  # type: ignore[attr-defined]
    errors = ModuleType("pyspark.errors")
    errors.PythonException = type("PythonException", (Exception,), {})  # type: ignore[attr-defined]
    with (
        mock.patch.dict(sys.modules, {"pyspark": pyspark, "pyspark.errors": errors}),
        mock.patch.object(spark_rows, "time", cluster),
        mock.patch.object(cells_module, "timed", timed),
        mock.patch.object(cells_module, "warm"),
        tempfile.TemporaryDirectory(prefix="ckptsim-makespan-") as folder,
    ):
        begin_s = time.process_time()
        run_missing(plan, store := Store(Path(folder)), _On(cluster))
        cpu_s = time.process_time() - begin_s - cluster.tasks_cpu_s
        kept = store.kept()
        errors = [
            cell for cell, ok in zip(kept.cells.to_pylist(), kept.is_ok(np.arange(len(kept))), strict=True) if not ok
        ]
    bound_s = max(sum(lengths_s.values()) / slots, *lengths_s.values())
    return Sweep(len(kept), cluster.last_end_s, bound_s, cpu_s, errors, cluster)


def sleeping(row: Row, length_s: float, long_seeds: frozenset[int], long_s: float) -> Callable[..., Any]:
    """Return what takes the place of `spark_task.runner`: cells sleep, and their rows are those of one run."""

    def runner(*options: Any) -> Callable[[Any], Any]:
        sent = options[4]

        def run(tasks: Any) -> Any:
            import pickle
            import time

            for packed in tasks:
                for _, runs in pickle.loads(packed):
                    for seed, name, _ in runs:
                        seconds = long_s if seed in long_seeds else length_s
                        time.sleep(seconds)
                        sent.add([row | {"cell": name.decode(), "cpu_s": seconds, "wall_s": seconds}])
            return iter(())

        return run

    return runner


def on_standalone(cells: int, row: Row) -> list[tuple[object, ...]]:
    """Return lines of a table: sweeps on a cluster of four workers, and one of so many cells that take no time."""
    lines: list[tuple[object, ...]] = []
    case = Case(4, 0.05, 8.0)
    with (
        tempfile.TemporaryDirectory(prefix="ckptsim-makespan-") as folder,
        standalone(Path(folder) / "cluster", workers=case.slots) as cluster,
        context(cluster.url) as spark,
    ):
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(sys.modules[sleeping.__module__])
        while spark._jsc.sc().getExecutorMemoryStatus().size() <= case.slots:  # noqa: SLF001 - the driver is one
            time.sleep(0.2)
        sweeps = (
            ("first tasks of the workers", 8, True, 0.0),
            (str(case), 200, True, SHORT_S),
            (f"{case}, unforeseen", 200, False, SHORT_S),
            ("cells that take no time", cells, True, 0.0),
        )
        for name, count, foreseen, short_s in sweeps:
            plan, lengths_s = planned(count, case, foreseen=foreseen)
            long_s = case.long_s if short_s else 0.0
            long = frozenset(i for i, seconds in enumerate(lengths_s.values()) if seconds == case.long_s)
            store = Store(Path(folder) / name)
            begin_s, begin_cpu_s = time.monotonic(), time.process_time()
            with mock.patch.object(spark_rows.spark_task, "runner", sleeping(row, short_s, long, long_s)):
                run_missing(plan, store, _On(spark))
            spent_s, cpu_ms = time.monotonic() - begin_s, 1e3 * (time.process_time() - begin_cpu_s) / count
            bound_s = max(((count - len(long)) * short_s + len(long) * long_s) / case.slots, long_s)
            ratio = spent_s / bound_s if bound_s else "-"
            lines.append((name, str(len(store.kept())), spent_s, bound_s, ratio, cpu_ms, count / spent_s))
    return lines


class _On(Workers):
    """Workers of a context of Spark."""

    def __init__(self, spark: Any) -> None:
        super().__init__()
        self._spark = spark

    def rows(self, missing: CellPlan, *_: object) -> Any:
        return spark_rows.rows_on(self._spark, missing, watch=no_watch)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark_makespan", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--cells", type=int, default=100, help="per slot")
    parser.add_argument("--standalone", type=int, help="cells that take no time, on a real cluster of four workers")
    given = parser.parse_args(arguments)
    lines = []
    row = timed(planned(1, CASES[0])[0][0])
    head = ["case", "cells", "makespan s", "bound s", "ratio", "driver's CPU ms per cell"]
    if given.standalone:
        print_table([*head, "cells/s"], on_standalone(given.standalone, row))
        return
    for case in CASES:
        for foreseen in (True, False):
            plan, lengths_s = planned(given.cells * case.slots, case, foreseen=foreseen)
            sweep = swept(plan, lengths_s, case.slots, row)
            numbers = (
                f"{sweep.makespan_s:.0f}",
                f"{sweep.bound_s:.0f}",
                sweep.ratio,
                1e3 * sweep.driver_cpu_s / sweep.cells,
            )
            lines.append((str(case) + ("" if foreseen else ", unforeseen"), str(sweep.cells), *numbers))
    print_table(head, lines)


if __name__ == "__main__":
    main()
