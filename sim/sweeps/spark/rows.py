"""Cells on Spark.  Rows come back to the driver as jobs of a few tasks end, and are kept there, as in a local sweep.

Spark spreads a list of pickled cells over tasks.  A table, by `mapInArrow`, takes 50 ms of CPU more per job: for planning and for Arrow.
Several jobs run at once, so that free slots at the end of a job serve the next one.  Short cells share a task of about a second.  A
cell may run twice (lost executor, speculation): it is pure, so the row is the same.
"""

from __future__ import annotations

import json
import pickle
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sim.cells.cell import Row, died
from sim.cells.local import Watch
from sim.cells.plan import Cell
from sim.plane import compiled_kernel
from sim.runtime.run.manifest import code_version
from sim.sweeps.spark import task as spark_task
from sim.sweeps.spark.java import MissingDependencyError
from sim.sweeps.spark.session import ARCHIVE, reason

if TYPE_CHECKING:
    from sim.plane import Engine

AT_ONCE = 3
"""Jobs at once: two jobs have tasks ready when slots of the first get free."""
TASK_S = 1.0
"""Cells of less CPU share a task: Spark spends 40-60 ms on each task."""
MOST_CELLS = 64
"""... up to this number: a killed executor loses its tasks."""
LOOK_S = 5.0
"""Time between two checks whether the cluster still exists."""
PATIENCE_S = 300.0
"""The longest wait for an executor: queues of clusters take time."""

QUICK_JAVA = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""Java compiles quickly and not well: cells run in Python, and a good compiler costs more than it gains."""

_KILLED = ("ExecutorLostFailure", "Python worker exited unexpectedly", "exited with code 137")
"""Spark's messages about killed executors."""
_RAISED = re.compile(r"api\.python\.PythonException: Traceback .*?^(?:\w+\.)*\w+(?:Error|Exception): ([^\n]*)", re.DOTALL | re.MULTILINE)
"""An exception of Python in a message of Java: Spark 4.0 to 4.2 do not translate all of them."""


class ClusterError(RuntimeError):
    """The cluster is gone or cannot run anything; finished rows are kept.  One line."""


def rows_on(spark: Any, planned: Sequence[Cell], *, engine: Engine, watch: Watch, check: bool = True) -> Iterator[Row]:
    """Rows as they come.  A cell that kills every worker gets an error as its row."""
    kernel = compiled_kernel() if engine == "compiled" else None
    jobs = _Jobs(spark, engine, check, kernel and spark.sparkContext.broadcast(kernel))
    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        left, running = list(planned), dict[Future[list[Row]], list[Cell]]()
        finished = simulated_ns = 0
        try:
            while left or running:
                while left and len(running) < AT_ONCE:
                    batch, left = jobs.next_batch(left)
                    running[threads.submit(jobs.run, batch)] = batch
                done, _ = wait(running, timeout=LOOK_S, return_when=FIRST_COMPLETED)
                jobs.check_executors()
                for job in done:
                    batch = running.pop(job)
                    yield from job.result()
                    finished += len(batch)
                    simulated_ns += sum(cell.scenario.run.duration_ns for cell in batch)
                watch(finished, simulated_ns)
        except BaseException:
            jobs.stopped = True
            threads.shutdown(wait=False, cancel_futures=True)
            with suppress(Exception):  # the context may be gone
                spark.sparkContext.cancelAllJobs()
            raise


class _Jobs:
    """The Spark jobs of a sweep, and the number of cells that fit into a task."""

    def __init__(self, spark: Any, engine: Engine, check: bool, kernel: Any = None) -> None:
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(spark_task)
        self._spark, self._engine, self._check, self._kernel = spark, engine, check, kernel
        self._compilers: set[str] = set()
        """Hosts that compiled the kernel although it was sent."""
        self._cpu_s, self._cells, self._begun = 0.0, 0, 0
        self._met = time.monotonic()  # last time with an executor
        self.stopped = False

    def next_batch(self, left: list[Cell]) -> tuple[list[Cell], list[Cell]]:
        size = self._slots() * self._cells_per_task()
        return left[:size], left[size:]

    def check_executors(self) -> None:
        """ClusterError: there has been no executor for too long.  Spark itself would wait silently for ever."""
        java = self._spark.sparkContext._jsc  # noqa: SLF001 - PySpark has no public way
        if java is None or java.sc().isStopped():  # the jobs will report it
            return
        if java.sc().isLocal() or java.sc().getExecutorMemoryStatus().size() > 1:  # the driver is counted, too
            self._met = time.monotonic()
        elif (waited_s := time.monotonic() - self._met) > PATIENCE_S:
            raise ClusterError(
                f"no executor for {waited_s:.0f} s: the cluster is full, or cannot start any (its logs say why); "
                "the same command goes on from the rows that are kept"
            )

    def run(self, batch: Sequence[Cell]) -> list[Row]:
        """Rows of a batch.  If the job fails for good, its halves are tried separately, down to the guilty cell."""
        try:
            rows = self._collect(batch)
        except Exception as error:
            if self.stopped:
                raise
            self._raise_unless_killed(error)
            if len(batch) == 1:
                return [died(batch[0])]
            half = len(batch) // 2
            return [*self.run(batch[:half]), *self.run(batch[half:])]
        self._cpu_s += sum(row["cpu_s"] for row in rows)  # CPU, not wall time: on a busy machine tasks would shrink, and cost more
        self._cells += len(rows)
        return rows

    def _collect(self, batch: Sequence[Cell]) -> list[Row]:
        count = min(len(batch), max(self._slots(), -(-len(batch) // MOST_CELLS)))
        tasks = [pickle.dumps(batch[i::count]) for i in range(count)]  # neighbours in a plan cost about the same
        self._begun += len(batch)
        self._spark.sparkContext.setJobDescription(f"{len(batch)} cells, {self._begun} begun")  # for this thread
        run = spark_task.runner(ARCHIVE, code_version(), self._engine, self._check, self._kernel)
        done = self._spark.sparkContext.parallelize(tasks, len(tasks)).mapPartitions(run).collect()
        lines = [json.loads(line) for line in done]
        self._note_compilers({line[spark_task.COMPILED_ON] for line in lines if spark_task.COMPILED_ON in line})
        return [line for line in lines if spark_task.COMPILED_ON not in line]

    def _note_compilers(self, hosts: set[str]) -> None:
        """Say once that executors spend their time on compiling."""
        if hosts and not self._compilers:
            warnings.warn(
                f"{min(hosts)} compiled the kernel itself: its processor or llvmlite is not the same as here, "
                "so the machine code of this machine does not fit",
                RuntimeWarning,
                stacklevel=2,
            )
        self._compilers |= hosts

    def _raise_unless_killed(self, error: Exception) -> None:
        """Return if a killed executor caused the failure; raise any other error, which is not the cells' fault."""
        context = self._spark.sparkContext
        if context._jsc is None or context._jsc.sc().isStopped():  # noqa: SLF001 - there is no public way
            raise ClusterError("the Spark cluster is gone; the same command goes on from the rows that are kept") from None
        from pyspark.errors import PythonException

        missing, raised = re.search(r"Cannot run program .*", str(error)), _RAISED.search(str(error))
        if isinstance(error, PythonException) or missing or raised:  # raised outside of any cell
            why = missing[0] if missing else raised[1] if raised else reason(str(error))
            raise MissingDependencyError(f"the executors cannot run cells: {why}") from None
        if not any(word in str(error) for word in _KILLED):
            latest = re.search(r"most recent failure: (.*)", str(error))
            raise ClusterError(f"Spark cannot run cells: {latest[1] if latest else reason(str(error))}") from None

    def _slots(self) -> int:
        """The present number: executors come and go."""
        return max(1, int(self._spark.sparkContext.defaultParallelism))

    def _cells_per_task(self) -> int:
        if not self._cells:
            return 1
        return min(max(round(TASK_S * self._cells / max(self._cpu_s, 1e-9)), 1), MOST_CELLS)
