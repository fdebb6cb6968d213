"""What Spark's driver makes of a cluster that does not do what it should; no Spark is needed to see that."""

import json
import pickle
import warnings
from types import SimpleNamespace

import pytest

from sim.cells import cell
from sim.cells.local import no_watch
from sim.cells.plan import cells
from sim.plane import warm
from sim.runtime.run.manifest import code_version
from sim.sweeps.spark import rows as room
from sim.sweeps.spark import task
from sim.sweeps.spark.java import MissingDependencyError
from sim.sweeps.spark.rows import ClusterError
from sim.sweeps.workers import Workers

pytest.importorskip("pyspark")
pytestmark = pytest.mark.extra


class Java:
    """The Java side of a Spark context: its executors, and whether it runs."""

    def __init__(self):
        self.members, self.local, self.stopped = 1, False, False

    def sc(self):
        return self

    def isLocal(self):
        return self.local

    def isStopped(self):
        return self.stopped

    def getExecutorMemoryStatus(self):
        return SimpleNamespace(size=lambda: self.members)


@pytest.fixture
def java():
    return Java()


@pytest.fixture
def now(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: clock[0])
    return clock


@pytest.fixture
def jobs(java, now):
    spark = SimpleNamespace(_jsc=java, defaultParallelism=4)
    return room._Jobs(spark, "compiled", check=True, arrived=SimpleNamespace(value=[]))


def test_nobody_waits_for_executors_for_ever(jobs, java, now):
    """Spark would, and say nothing: a full cluster, or workers that all died.  The time counts from when the last one was there."""
    for now[0], java.members in ((200, 1), (400, 3), (600, 1)):
        jobs.check_executors() if now[0] < 600 else None
    jobs.check_executors()
    now[0] = 701

    with pytest.raises(ClusterError, match=r"no executor for 301 s: .* the same command goes on"):
        jobs.check_executors()


@pytest.mark.parametrize("state", ["local", "stopped"])
def test_where_there_are_no_executors_to_wait_for(jobs, java, now, state):
    """The driver does the work, or its jobs are about to fail and say why."""
    setattr(java, state, True)
    now[0] = 10_000

    jobs.check_executors()


@pytest.mark.parametrize(
    ("error_text", "kind", "message"),
    [
        ("Job aborted: most recent failure: Lost task 0.3: java.io.IOException: No space left", ClusterError, "No space left"),
        ('Lost task 0.3: java.io.IOException: Cannot run program "/opt/python": error=2', MissingDependencyError, "/opt/python"),
    ],
)
def test_what_no_cell_is_to_blame_for(jobs, error_text, kind, message):
    """One line, and the right exit code."""
    with pytest.raises(kind, match=message) as error:
        jobs._raise_unless_killed(RuntimeError(error_text))

    assert "\n" not in str(error.value)


def test_a_killed_executor_is_no_reason_to_stop(jobs):
    assert jobs._raise_unless_killed(RuntimeError("most recent failure: ExecutorLostFailure (executor 1 exited)")) is None


def test_batches_grow_with_the_cluster(jobs):
    """Executors may come after the first batch was made."""
    coming = iter(range(100))
    first = jobs.next_batch(coming)
    jobs._spark.defaultParallelism = 16
    second = jobs.next_batch(coming)

    assert (4, 16, 80) == (len(first), len(second), len(list(coming)))


RAISED = """\
An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0
in stage 0.0 (TID 0) (localhost executor driver): org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 7, in main
    process()
ModuleNotFoundError: No module named 'numpy'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
"""


def test_what_executors_lack_is_named(jobs):
    """Also by a Spark that repeats the words of Java."""
    with pytest.raises(MissingDependencyError, match=r"^the executors cannot run cells: No module named 'numpy'$"):
        jobs._raise_unless_killed(RuntimeError(RAISED))


class Tasks:
    """Spark's side of a job: each task sends lines, and may be killed afterwards."""

    def __init__(self, jobs, work):
        self.lines, self.batches = jobs._lines.value, []
        jobs._spark.parallelize = lambda tasks, _: self.spread([cell for task in tasks for cell in pickle.loads(task)])
        jobs._spark.setJobDescription = lambda _: None
        self._work = work

    def spread(self, cells):
        self.batches.append(len(cells))
        return SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=lambda: self._work(self, cells)))

    def send(self, *lines):
        self.lines.extend(map(json.dumps, lines))


def a_cell(name):
    return SimpleNamespace(id=name, scenario=SimpleNamespace(run=SimpleNamespace(duration_ns=5)))


def test_executors_that_compile_are_told_once(jobs):
    """Their processor is another one, and each takes half a minute: worth a line, but not one per task."""
    Tasks(jobs, lambda tasks, cells: tasks.send({task.COMPILED_ON: "node-7"}, *({"cell": cell.id, "cpu_s": 1.0} for cell in cells)))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = []
        for name in "ab":
            jobs.run([a_cell(name)])
            rows += jobs.arrived()

    assert [{"cell": "a", "cpu_s": 1.0}, {"cell": "b", "cpu_s": 1.0}] == rows
    assert ["node-7 compiled the kernel itself"] == [str(warning.message).partition(":")[0] for warning in caught]


def test_rows_come_with_their_task_and_not_with_their_job(jobs):
    """A straggler keeps nobody waiting: what other tasks have sent is there while the job goes on."""
    seen = []

    def work(tasks, cells):
        tasks.send({"cell": "a", "cpu_s": 1.0})
        seen.append([row["cell"] for row in jobs.arrived()])
        tasks.send({"cell": "b", "cpu_s": 9.0})

    Tasks(jobs, work)
    jobs.run([a_cell("a"), a_cell("b")])

    assert [["a"]] == seen
    assert ["b"] == [row["cell"] for row in jobs.arrived()]
    assert (2, 10) == (jobs.finished, jobs.simulated_ns)


def test_what_has_a_row_does_not_run_again(jobs):
    """A job fails when an executor was killed four times; its other tasks have sent their rows by then."""

    def work(tasks, cells):
        tasks.send(*({"cell": cell.id, "cpu_s": 1.0} for cell in cells if cell.id != "deadly"))
        if any(cell.id == "deadly" for cell in cells):
            raise RuntimeError("ExecutorLostFailure")

    tasks = Tasks(jobs, work)
    jobs.run([a_cell(name) for name in ("a", "deadly", "b")])

    rows = {row["cell"]: row.get("status") for row in jobs.arrived()}
    assert {"a": None, "b": None, "deadly": "error"} == rows
    assert [3, 1] == tasks.batches


@pytest.mark.parametrize(("sent", "expected"), [(("kernel-x.o", b"code"), ["compiled_on"]), (None, [])])
def test_a_task_says_that_it_compiled_although_code_was_sent(monkeypatch, sent, expected):
    """Without a compiler on the driver nothing was sent, and nothing is worth telling."""
    received = []
    monkeypatch.setattr(cell, "warm", lambda engine, kernel: not received.append(kernel))
    lines = []
    arrived = SimpleNamespace(add=lines.extend)
    run = task.runner("archive", code_version(), "compiled", True, sent and SimpleNamespace(value=sent), arrived)

    assert [] == list(run(iter([])))
    keys = [key for line in lines for key in json.loads(line)]

    assert ([sent], expected) == (received, keys)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_an_executor_does_not_compile(tmp_path, study):
    """It finds nothing in its cache, and would keep there what it compiled."""
    warm()
    planned = cells(study.scenarios)[:1]
    conf = {"spark.executorEnv.CKPTSIM_CACHE_DIR": str(tmp_path / "cache")}

    with Workers(master="local[1]", conf=conf) as workers:
        (row,) = workers.rows(planned, "compiled", no_watch, check=True)

    assert ("ok", False) == (row["status"], (tmp_path / "cache").exists())
