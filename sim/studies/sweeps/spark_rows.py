"""Run the cells of a sweep on Spark.  The driver receives rows when tasks end, and stores them as in a local sweep.

A job is a list of pickled cells, distributed with `parallelize`.  We tried `mapInArrow`; it takes 50 ms of CPU more per job,
for planning and for Arrow.  A job returns its result only when its last task has ended, so tasks add their rows to an
accumulator, which Spark merges at the end of each task.  Several jobs run at once, so that slots that are free at the end of
one job run tasks of the next.  Short cells are grouped into tasks of about a second.  A cell may run twice (lost executor,
speculative execution); both runs give the same row, because a run depends only on its cell.
"""

from __future__ import annotations

import json
import pickle
import re
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from sim.plane import compiled_kernel
from sim.runtime.manifest import code_version
from sim.studies.cells import Row, died
from sim.studies.plan import Cell
from sim.studies.progress import Watch
from sim.studies.sweeps import spark_task
from sim.studies.sweeps.spark_masters import MissingDependencyError
from sim.studies.sweeps.spark_session import ARCHIVE, reason

if TYPE_CHECKING:
    from sim.plane import Engine

CONCURRENT_JOBS = 3
"""Jobs at the same time.  Two of them have tasks ready when slots of the first become free."""
TASK_S = 1.0
"""CPU time [s] per task for which short cells are grouped; Spark spends 40-60 ms on each task."""
MAX_CELLS_PER_TASK = 64
"""Maximum cells per task, because a killed executor loses the rows of its tasks."""
EXECUTOR_CHECK_S = 5.0
"""Seconds between checks for executors."""
TICK_S = 0.5
"""Maximum seconds for which a row that has arrived waits on the driver."""
MAX_WITHOUT_EXECUTOR_S = 300.0
"""Maximum seconds without an executor; requests to a cluster may queue for minutes."""

QUICK_START_CONF = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""Java options for a quick start: cells run in Python, so Java's optimizing compiler costs more time than it saves."""

_KILLED = ("ExecutorLostFailure", "Python worker exited unexpectedly", "exited with code 137")
"""Parts of Spark's messages that an executor or its Python worker was killed."""
_RAISED = re.compile(
    r"api\.python\.PythonException: Traceback .*?^(?:\w+\.)*\w+(?:Error|Exception): ([^\n]*)", re.DOTALL | re.MULTILINE
)
"""A Python exception in the message of a Java exception; Spark 4.0 to 4.2 do not convert all of them to PythonException."""


class ClusterError(RuntimeError):
    """Raised if the cluster has stopped or cannot run anything.  Finished rows are stored.  The message is one line."""

    exit_code = 4


def rows_on(
    spark: Any,
    planned: Sequence[Cell],
    *,
    engine: Engine,
    watch: Watch,
    check: bool = True,
) -> Iterator[Row]:
    """Yield the row of each cell, in the order of arrival.  A cell that kills its worker gets a row with an error.

    Raises ClusterError or MissingDependencyError if the cluster cannot run cells.  All jobs are then cancelled.
    """
    kernel = compiled_kernel() if engine == "compiled" else None
    arrived = spark.accumulator([], spark_task.LinesAccumulatorParam())
    jobs = _Jobs(spark, engine, check, kernel and spark.broadcast(kernel), arrived)
    coming = iter(planned)
    with ThreadPoolExecutor(max_workers=CONCURRENT_JOBS) as threads:
        running = set[Future[None]]()
        try:
            while True:
                while len(running) < CONCURRENT_JOBS and (batch := jobs.next_batch(coming)):
                    running.add(threads.submit(jobs.run, batch))
                done, running = wait(running, timeout=TICK_S, return_when=FIRST_COMPLETED)
                jobs.check_executors()
                yield from jobs.take_rows()
                for job in done:
                    job.result()
                watch(jobs.finished, jobs.simulated_ns)
                if not running and not done:
                    return
        except BaseException:
            jobs.stopped = True
            threads.shutdown(wait=False, cancel_futures=True)
            with suppress(Exception):  # the context may be gone
                spark.cancelAllJobs()
            raise


class _Jobs:
    """The Spark jobs of a sweep, and the rows that have arrived.  `run` is called by several threads at once, one per job."""

    def __init__(self, spark: Any, engine: Engine, check: bool, kernel: Any = None, arrived: Any = None) -> None:
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(spark_task)
        self._spark, self._engine, self._check, self._kernel = spark, engine, check, kernel
        self._lines = arrived
        self._lock = threading.Lock()
        self._open: dict[str, Cell] = {}  # id -> submitted cell without a row
        self._rows: list[Row] = []  # rows that have arrived since the last call of `take_rows`
        self._cpu_s, self.finished, self.simulated_ns, self._begun = 0.0, 0, 0, 0
        self._executor_seen_s = self._checked_s = (
            time.monotonic()
        )  # last time with an executor, and time of the last check
        self.stopped = False

    def next_batch(self, coming: Iterator[Cell]) -> list[Cell]:
        """Return the cells of the next job, enough for one task per slot; empty if none are left."""
        return list(islice(coming, self._slots() * self._cells_per_task()))

    def take_rows(self) -> list[Row]:
        """Return the rows that have arrived since the last call."""
        self._take_lines()
        with self._lock:
            rows, self._rows = self._rows, []
        return rows

    def check_executors(self) -> None:
        """Raise ClusterError if there has been no executor for MAX_WITHOUT_EXECUTOR_S.  Spark itself waits without a limit."""
        if time.monotonic() - self._checked_s < EXECUTOR_CHECK_S:
            return
        self._checked_s = time.monotonic()
        java = self._spark._jsc  # noqa: SLF001 - PySpark has no public way
        if java is None or java.sc().isStopped():  # the jobs fail, which reports it
            return
        if java.sc().isLocal() or java.sc().getExecutorMemoryStatus().size() > 1:  # one entry is the driver
            self._executor_seen_s = time.monotonic()
        elif (waited_s := time.monotonic() - self._executor_seen_s) > MAX_WITHOUT_EXECUTOR_S:
            raise ClusterError(
                f"no executor for {waited_s:.0f} s: the cluster is full, or cannot start any (its logs say why); "
                "run the same command to resume from the rows that are kept"
            )

    def run(self, batch: Sequence[Cell]) -> None:
        """Run a batch of cells as a job.

        If executors were killed so often that the job fails, the cells without a row are split into halves, which run as
        separate jobs.  This is repeated until the cell that kills its executor is alone; it gets a row with an error.
        """
        with self._lock:
            self._open |= {cell.id: cell for cell in batch}
        try:
            self._run(batch)
        except Exception as error:
            if self.stopped:
                raise
            self._raise_unless_killed(error)
            self._take_lines()
            remaining = [cell for cell in batch if cell.id in self._open]
            if len(batch) == 1:
                self._add([died(cell) for cell in remaining])
                return
            half = (len(remaining) + 1) // 2
            for part in filter(None, (remaining[:half], remaining[half:])):
                self.run(part)

    def _run(self, batch: Sequence[Cell]) -> None:
        """Submit a batch as a job, and wait until it has ended."""
        count = min(len(batch), max(self._slots(), -(-len(batch) // MAX_CELLS_PER_TASK)))
        # neighbours in a plan take about the same time, so each task gets every `count`-th cell
        tasks = [pickle.dumps(batch[i::count]) for i in range(count)]
        self._begun += len(batch)
        self._spark.setJobDescription(f"{len(batch)} cells, {self._begun} begun")  # applies to jobs of this thread
        run = spark_task.runner(ARCHIVE, code_version(), self._engine, self._check, self._kernel, self._lines)
        self._spark.parallelize(tasks, len(tasks)).mapPartitions(run).collect()

    def _take_lines(self) -> None:
        """Take the rows that tasks have sent, as lines of JSON.  Lines that Spark appends at the same time are left for the next call."""
        sent: list[str] = self._lines.value
        with self._lock:
            count = len(sent)
            rows = [json.loads(line) for line in sent[:count]]
            del sent[:count]
        self._add(rows)

    def _add(self, rows: Sequence[Row]) -> None:
        """Record rows as arrived; second rows of a cell are ignored."""
        with self._lock:
            for row in rows:
                if (cell := self._open.pop(row["cell"], None)) is not None:  # otherwise the cell ran twice
                    self._rows.append(row)
                    # CPU time, not wall time: otherwise tasks would get fewer cells on a busy machine, and cost more
                    self._cpu_s += row.get("cpu_s", 0.0)
                    self.finished += 1
                    self.simulated_ns += cell.scenario.run.duration_ns

    def _raise_unless_killed(self, error: Exception) -> None:
        """Return if the job failed because executors were killed; otherwise raise ClusterError or MissingDependencyError."""
        if self._spark._jsc is None or self._spark._jsc.sc().isStopped():  # noqa: SLF001 - there is no public way
            raise ClusterError(
                "the Spark cluster is gone; run the same command to resume from the rows that are kept"
            ) from None
        from pyspark.errors import PythonException

        missing, raised = re.search(r"Cannot run program .*", str(error)), _RAISED.search(str(error))
        # an exception in a cell becomes a row, so this one was raised outside of cells
        if isinstance(error, PythonException) or missing or raised:
            why = missing[0] if missing else raised[1] if raised else reason(str(error))
            raise MissingDependencyError(f"the executors cannot run cells: {why}") from None
        if not any(word in str(error) for word in _KILLED):
            latest = re.search(r"most recent failure: (.*)", str(error))
            raise ClusterError(f"Spark cannot run cells: {latest[1] if latest else reason(str(error))}") from None

    def _slots(self) -> int:
        """Return the current number of slots, which changes as executors join and leave; at least 1."""
        return max(1, int(self._spark.defaultParallelism))

    def _cells_per_task(self) -> int:
        """Return the number of cells that take about TASK_S of CPU time; 1 before any cell has finished."""
        if not self.finished:
            return 1
        return min(max(round(TASK_S * self.finished / max(self._cpu_s, 1e-9)), 1), MAX_CELLS_PER_TASK)
