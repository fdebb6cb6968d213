"""Cells on Spark.  Rows come back to the driver as tasks end, and are kept there, as in a local sweep.

Spark spreads a list of pickled cells over tasks.  A table, by `mapInArrow`, takes 50 ms of CPU more per job: for
planning and for Arrow.  What a job returns comes with its last task.  Rows are therefore added to an accumulator, which
Spark merges at the end of each task.  Several jobs run at once, so that free slots at the end of a job serve the next
one.  Short cells share a task of about a second.  A cell may run twice (lost executor, speculation): it is pure, so the
row is the same.
"""

from __future__ import annotations

import json
import pickle
import re
import threading
import time
import warnings
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

AT_ONCE = 3
"""Jobs at once: two jobs have tasks ready when slots of the first get free."""
TASK_S = 1.0
"""Cells of less CPU share a task: Spark spends 40-60 ms on each task."""
MAX_CELLS = 64
"""... up to this number: a killed executor loses its tasks."""
LOOK_S = 5.0
"""Time between two checks whether the cluster still exists."""
TICK_S = 0.5
"""The longest time that a row waits on the driver."""
PATIENCE_S = 300.0
"""The longest wait for an executor: queues of clusters take time."""

QUICK_JAVA = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""Java compiles quickly and not well: cells run in Python, and a good compiler costs more than it gains."""

_KILLED = ("ExecutorLostFailure", "Python worker exited unexpectedly", "exited with code 137")
"""Spark's messages about killed executors."""
_RAISED = re.compile(
    r"api\.python\.PythonException: Traceback .*?^(?:\w+\.)*\w+(?:Error|Exception): ([^\n]*)", re.DOTALL | re.MULTILINE
)
"""An exception of Python in a message of Java: Spark 4.0 to 4.2 do not translate all of them."""


class ClusterError(RuntimeError):
    """The cluster is gone or cannot run anything; finished rows are kept.  One line."""

    exit_code = 4


def rows_on(
    spark: Any,
    planned: Sequence[Cell],
    *,
    engine: Engine,
    watch: Watch,
    check: bool = True,
) -> Iterator[Row]:
    """Rows as they come.  A cell that kills every worker gets an error as its row."""
    kernel = compiled_kernel() if engine == "compiled" else None
    arrived = spark.accumulator([], spark_task.LinesAccumulatorParam())
    jobs = _Jobs(spark, engine, check, kernel and spark.broadcast(kernel), arrived)
    coming = iter(planned)
    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        running = set[Future[None]]()
        try:
            while True:
                while len(running) < AT_ONCE and (batch := jobs.next_batch(coming)):
                    running.add(threads.submit(jobs.run, batch))
                done, running = wait(running, timeout=TICK_S, return_when=FIRST_COMPLETED)
                jobs.check_executors()
                yield from jobs.arrived()
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
    """The Spark jobs of a sweep, the number of cells that fit into a task, and the rows that have arrived."""

    def __init__(self, spark: Any, engine: Engine, check: bool, kernel: Any = None, arrived: Any = None) -> None:
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(spark_task)
        self._spark, self._engine, self._check, self._kernel = spark, engine, check, kernel
        self._lines = arrived
        self._lock = threading.Lock()
        self._open: dict[str, Cell] = {}  # cells that have begun and have no row yet
        self._rows: list[Row] = []  # that have arrived, and were not asked for
        self._compilers: set[str] = set()
        """Hosts that compiled the kernel although it was sent."""
        self._cpu_s, self.finished, self.simulated_ns, self._begun = 0.0, 0, 0, 0
        self._met = self._looked = time.monotonic()  # last time with an executor, and last look
        self.stopped = False

    def next_batch(self, coming: Iterator[Cell]) -> list[Cell]:
        return list(islice(coming, self._slots() * self._cells_per_task()))

    def arrived(self) -> list[Row]:
        """The rows that have come since the last call."""
        self._sort_in()
        with self._lock:
            rows, self._rows = self._rows, []
        return rows

    def check_executors(self) -> None:
        """ClusterError: there has been no executor for too long.  Spark itself would wait silently for ever."""
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        java = self._spark._jsc  # noqa: SLF001 - PySpark has no public way
        if java is None or java.sc().isStopped():  # the jobs will report it
            return
        if java.sc().isLocal() or java.sc().getExecutorMemoryStatus().size() > 1:  # the driver is counted, too
            self._met = time.monotonic()
        elif (waited_s := time.monotonic() - self._met) > PATIENCE_S:
            raise ClusterError(
                f"no executor for {waited_s:.0f} s: the cluster is full, or cannot start any (its logs say why); "
                "run the same command to resume from the rows that are kept"
            )

    def run(self, batch: Sequence[Cell]) -> None:
        """Run a batch.  If the job fails for good, halves of what has no row are tried separately, down to the guilty cell."""
        with self._lock:
            self._open |= {cell.id: cell for cell in batch}
        try:
            self._run(batch)
        except Exception as error:
            if self.stopped:
                raise
            self._raise_unless_killed(error)
            self._sort_in()
            left = [cell for cell in batch if cell.id in self._open]
            if len(batch) == 1:
                self._add([died(cell) for cell in left])
                return
            half = (len(left) + 1) // 2
            for part in filter(None, (left[:half], left[half:])):
                self.run(part)

    def _run(self, batch: Sequence[Cell]) -> None:
        count = min(len(batch), max(self._slots(), -(-len(batch) // MAX_CELLS)))
        tasks = [pickle.dumps(batch[i::count]) for i in range(count)]  # neighbours in a plan cost about the same
        self._begun += len(batch)
        self._spark.setJobDescription(f"{len(batch)} cells, {self._begun} begun")  # for this thread
        run = spark_task.runner(ARCHIVE, code_version(), self._engine, self._check, self._kernel, self._lines)
        self._spark.parallelize(tasks, len(tasks)).mapPartitions(run).collect()

    def _sort_in(self) -> None:
        """Take what tasks have sent.  Spark merges at the end of the list meanwhile."""
        sent: list[str] = self._lines.value
        with self._lock:
            count = len(sent)
            lines = [json.loads(line) for line in sent[:count]]
            del sent[:count]
        self._note_compilers({line[spark_task.COMPILED_ON] for line in lines if spark_task.COMPILED_ON in line})
        self._add([line for line in lines if spark_task.COMPILED_ON not in line])

    def _add(self, rows: Sequence[Row]) -> None:
        with self._lock:
            for row in rows:
                if (cell := self._open.pop(row["cell"], None)) is not None:  # else it ran twice
                    self._rows.append(row)
                    # CPU, not wall time: on a busy machine tasks would shrink, and cost more
                    self._cpu_s += row.get("cpu_s", 0.0)
                    self.finished += 1
                    self.simulated_ns += cell.scenario.run.duration_ns

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
        if self._spark._jsc is None or self._spark._jsc.sc().isStopped():  # noqa: SLF001 - there is no public way
            raise ClusterError(
                "the Spark cluster is gone; run the same command to resume from the rows that are kept"
            ) from None
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
        return max(1, int(self._spark.defaultParallelism))

    def _cells_per_task(self) -> int:
        if not self.finished:
            return 1
        return min(max(round(TASK_S * self.finished / max(self._cpu_s, 1e-9)), 1), MAX_CELLS)
