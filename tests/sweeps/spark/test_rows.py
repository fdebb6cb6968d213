"""What Spark's driver makes of a cluster that does not do what it should; no Spark is needed to see that."""

import json
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
    return room._Jobs(SimpleNamespace(sparkContext=SimpleNamespace(_jsc=java, defaultParallelism=4)), "compiled", check=True)


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
    first, left = jobs.next_batch(list(range(100)))
    jobs._spark.sparkContext.defaultParallelism = 16
    second, left = jobs.next_batch(left)

    assert (4, 16, 80) == (len(first), len(second), len(left))


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


def test_executors_that_compile_are_told_once(jobs, monkeypatch):
    """Their processor is another one, and each takes half a minute: worth a line, but not one per task."""
    lines = [{task.COMPILED_ON: "node-7"}, {"cell": "a", "cpu_s": 1.0}]
    spread = SimpleNamespace(collect=lambda: [json.dumps(line) for line in lines])
    spread.mapPartitions = lambda _: spread
    jobs._spark.sparkContext.parallelize = lambda *_: spread
    jobs._spark.sparkContext.setJobDescription = lambda _: None

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = [jobs.run(["a cell"]), jobs.run(["a cell"])]

    assert [lines[1:], lines[1:]] == rows
    assert ["node-7 compiled the kernel itself"] == [str(warning.message).partition(":")[0] for warning in caught]


@pytest.mark.parametrize(("sent", "expected"), [(("kernel-x.o", b"code"), ["compiled_on"]), (None, [])])
def test_a_task_says_that_it_compiled_although_code_was_sent(monkeypatch, sent, expected):
    """Without a compiler on the driver nothing was sent, and nothing is worth telling."""
    received = []
    monkeypatch.setattr(cell, "warm", lambda engine, kernel: not received.append(kernel))
    run = task.runner("archive", code_version(), "compiled", True, sent and SimpleNamespace(value=sent))

    keys = [key for line in run(iter([])) for key in json.loads(line)]

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
