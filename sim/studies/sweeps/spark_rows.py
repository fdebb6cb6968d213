"""Run the cells of a sweep on Spark.  The driver receives rows when tasks end, and stores them as in a local sweep.

    cells, longest first:   c1 | c2 | c3 c4 c5 | c6 c7 c8 | ...      a task: one long cell, or short ones of a second or more
    open tasks:             <-- two per slot and some more -->       running or waiting in Spark; others follow as they end

Tasks are submitted as jobs of half such a window, because Spark starts the tasks of jobs in the order of the jobs.  A job
ends with its last task, so a limit on open jobs would let a few long cells idle the cluster; open tasks have a limit instead.
Long cells come first, by their expected work, so that none of them begins when all others have ended.

A job is a list of pickled cells, distributed with `parallelize`.  We tried `mapInArrow`; it takes 50 ms of CPU more per job,
for planning and for Arrow.  A job returns its result only when its last task has ended, so tasks add their rows to an
accumulator, which Spark merges at the end of each task.  Jobs are submitted asynchronously by one thread.  A cell may run
twice (lost executor, speculative execution); both runs give the same row, because a run depends only on its cell.
"""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from sim.plane import compiled_kernel
from sim.runtime.result import code_version
from sim.studies.cells import Row, died
from sim.studies.local import delayed_signals
from sim.studies.plan import CellPlan
from sim.studies.progress import Watch
from sim.studies.sweeps import spark_task
from sim.studies.sweeps.packed_cells import CellPacker
from sim.studies.sweeps.spark_masters import MissingDependencyError
from sim.studies.sweeps.spark_session import ARCHIVE, reason
from sim.studies.work import planned_work_s

TASKS_PER_SLOT, SPARE_TASKS = 2, 16
"""Maximum open tasks per slot, and in addition: on few slots, a job of a few tasks would cost more than its cells."""
TASK_S = 1.0
"""CPU time [s] per task for which short cells are grouped; Spark spends 40-60 ms on each task."""
TASK_S_PER_SLOT = 0.01
"""... and per slot of the cluster: the driver's Java spends 8 ms on each task, so a thousand slots need tasks of 10 s."""
MAX_CELLS_PER_TASK = 64
"""Maximum cells per task, because a killed executor loses the rows of its tasks."""
EXECUTOR_CHECK_S = 5.0
"""Seconds between checks for executors."""
TICK_S = 0.2
"""Seconds between looks at what has arrived."""
MAX_POLLED_JOBS = 10
"""Maximum jobs that are asked at each look whether they have ended, in turn; each question is a call of Java."""
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
    planned: CellPlan,
    *,
    watch: Watch,
    check: bool = True,
) -> Iterator[Row]:
    """Yield the row of each cell, in the order of arrival.  A cell that kills its worker gets a row with an error.

    Raises ClusterError or MissingDependencyError if the cluster cannot run cells.  All jobs are then cancelled.
    """
    jobs = _Jobs(spark, planned, check, spark.broadcast(compiled_kernel()))
    try:
        while True:
            with delayed_signals():  # if a call of Java were interrupted, the next one would read its answer
                jobs.advance()
            yield from jobs.take_rows()
            watch(jobs.finished, jobs.simulated_ns)
            if jobs.finished == len(planned):
                return
            time.sleep(TICK_S)
    except BaseException:
        with suppress(Exception):  # the context may be gone
            spark.cancelAllJobs()
        raise


class _Job(NamedTuple):
    """A submitted job."""

    future: Any  # Java's
    cells: list[int]  # indices in the plan


class _Jobs:
    """The Spark jobs of a sweep, and the rows that have arrived."""

    def __init__(self, spark: Any, planned: CellPlan, check: bool, kernel: Any = None) -> None:
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(spark_task)
        self._spark, self._planned, self._packer = spark, planned, CellPacker(planned, spark.broadcast)
        self._sent = spark.accumulator([], spark_task.RowsAccumulatorParam())
        self._options = ARCHIVE, code_version(), check, kernel, self._sent
        self._expected_s = planned.per_scenario(planned_work_s).astype(float)
        self._duration_ns = planned.per_scenario(lambda scenario: scenario.run.duration_ns)
        self._order = np.argsort(-self._expected_s, kind="stable")  # of the cells
        self._submitted = 0  # cells of `_order`
        self._jobs, self._ended = deque[_Job](), list[_Job]()  # the rows of ended ones have arrived
        self._open: dict[str, int] = {}  # id -> index of a submitted cell without a row
        self._last_cells: set[str] = set()  # the last cell of each open task; its rows arrive together
        self._cpu_s = self._expected_cpu_s = 0.0  # of finished cells
        self.finished = self.simulated_ns = 0
        self._executor_seen_s = self._checked_s = time.monotonic()  # when there was one, and when that was checked

    def advance(self) -> None:
        """Submit cells of failed jobs again, and what fits in the window of open tasks."""
        try:
            while self._ended:
                self._retry(self._ended.pop())
            self._submit_next()
            for _ in range(min(len(self._jobs), MAX_POLLED_JOBS)):
                job = self._jobs.popleft()
                (self._ended if job.future.isDone() else self._jobs).append(job)
            self.check_executors()
        except (ClusterError, MissingDependencyError):
            raise
        except Exception as error:
            self._raise_unless_killed(error)
            raise

    def take_rows(self) -> list[Row]:
        """Return the rows that have arrived since the last call, without second rows of a cell."""
        sent: list[Row] = self._sent.value
        count = len(sent)  # Spark may append others at the same time
        rows, sent[:count] = sent[:count], []
        new = [(row, i) for row in rows if (i := self._open.pop(row["cell"], None)) is not None]
        for row, i in new:
            self._last_cells.discard(row["cell"])
            # CPU time, not wall time: otherwise tasks would get fewer cells on a busy machine, and cost more
            self._cpu_s += row.get("cpu_s", 0.0)
            self._expected_cpu_s += self._expected_s[i]
            self.simulated_ns += self._duration_ns[i]
        self.finished += len(new)
        return [row for row, _ in new]

    def _submit_next(self) -> None:
        """Submit the next cells as a job, if half of the window is free."""
        if self._submitted == len(self._planned):
            return
        slots = self._slots()
        window = TASKS_PER_SLOT * slots + SPARE_TASKS
        if (room := window - len(self._last_cells)) >= window // 2:
            self._submit(self._next_tasks(slots, room))

    def _next_tasks(self, slots: int, most: int) -> list[list[int]]:
        """Return the cells of the next tasks, at most `most` of them.

        A task has cells of a second in all, or of more on a large cluster, or of less at the end, so that all slots have some.
        Until a cell has finished, it is not known how long cells take here, and each has a task.
        """
        cells = self._order[self._submitted : self._submitted + most * MAX_CELLS_PER_TASK]
        task_s = 0.0
        if self._expected_cpu_s:
            rest_s = self._expected_s[self._order[self._submitted :]].sum() / slots
            task_s = max(TASK_S, TASK_S_PER_SLOT * slots) * self._expected_cpu_s / max(self._cpu_s, 1e-9)
            task_s = min(task_s, rest_s)
        tasks, filled_s = list[list[int]](), math.inf
        for cell, expected_s in zip(cells.tolist(), self._expected_s[cells].tolist(), strict=True):
            if filled_s + expected_s > task_s or len(tasks[-1]) == MAX_CELLS_PER_TASK:
                if len(tasks) == most:
                    break
                tasks.append([])
                filled_s = 0.0
            tasks[-1].append(cell)
            filled_s += expected_s
        self._submitted += sum(map(len, tasks))
        return tasks

    def check_executors(self) -> None:
        """Raise ClusterError if there has been no executor for MAX_WITHOUT_EXECUTOR_S.  Spark itself waits without a limit."""
        if time.monotonic() - self._checked_s < EXECUTOR_CHECK_S:
            return
        self._checked_s = time.monotonic()
        if self._is_gone():  # the jobs fail, which reports it
            return
        java = self._spark._jsc  # noqa: SLF001 - PySpark has no public way
        if java.sc().isLocal() or java.sc().getExecutorMemoryStatus().size() > 1:  # one entry is the driver
            self._executor_seen_s = time.monotonic()
        elif (waited_s := time.monotonic() - self._executor_seen_s) > MAX_WITHOUT_EXECUTOR_S:
            raise ClusterError(
                f"no executor for {waited_s:.0f} s: the cluster is full, or cannot start any (its logs say why); "
                "run the same command to resume from the rows that are kept"
            )

    def _submit(self, tasks: Sequence[Sequence[int]]) -> None:
        """Submit tasks, given as indices of cells, as a job."""
        job = [i for cells in tasks for i in cells]
        self._open |= {self._planned.ids[i].decode(): i for i in job}
        self._last_cells |= {self._planned.ids[cells[-1]].decode() for cells in tasks}
        packed, series = self._packer.pack(tasks)
        self._spark.setJobDescription(f"{len(job)} cells, {self._submitted} begun")
        run = spark_task.runner(*self._options, series)
        tasks_rdd = self._spark.parallelize(packed, len(packed)).mapPartitions(run)
        self._jobs.append(_Job(tasks_rdd._jrdd.collectAsync(), job))  # noqa: SLF001 - PySpark has no public way

    def _retry(self, job: _Job) -> None:
        """Submit the cells of an ended job that have no row.

        If executors were killed so often that a job fails, these cells are split into halves, which run as separate jobs.  This
        is repeated until the cell that kills its executor is alone; it gets a row with an error.
        """
        remaining = [i for i in job.cells if self._planned.ids[i].decode() in self._open]
        if not remaining:
            return
        try:
            job.future.get()
        except Exception as error:  # noqa: BLE001 - Spark's own kinds, by way of Java
            self._raise_unless_killed(error)
        if len(job.cells) == 1:
            self._sent.value.append(died(self._planned[remaining[0]]))
            return
        self._last_cells.difference_update(self._planned.ids[remaining].astype(str))
        half = (len(remaining) + 1) // 2
        for cells in filter(None, (remaining[:half], remaining[half:])):
            count = max(min(len(cells), self._slots()), -(-len(cells) // MAX_CELLS_PER_TASK))
            self._submit([cells[i::count] for i in range(count)])

    def _raise_unless_killed(self, error: Exception) -> None:
        """Return if the job failed because executors were killed; otherwise raise ClusterError or MissingDependencyError."""
        if self._is_gone():
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

    def _is_gone(self) -> bool:
        """Return True if the context has stopped, or Java has ended."""
        java = self._spark._jsc  # noqa: SLF001 - PySpark has no public way
        try:
            return java is None or java.sc().isStopped()
        except Exception:  # noqa: BLE001 - of the bridge to Java
            return True

    def _slots(self) -> int:
        """Return the current number of slots, which changes as executors join and leave; at least 1."""
        return max(1, int(self._spark.defaultParallelism))
