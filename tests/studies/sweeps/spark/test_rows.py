"""What Spark's driver makes of a cluster that does not do what it should; no Spark is needed to see that."""

import json
import pickle
from types import SimpleNamespace

import pytest

from sim.studies.sweeps import spark_rows as room
from sim.studies.sweeps.spark_masters import MissingDependencyError
from sim.studies.sweeps.spark_rows import ClusterError
from tests.studies.sweeps.spark.conftest import Java, PythonException

pytestmark = pytest.mark.usefixtures("pyspark")


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

    with pytest.raises(ClusterError, match=r"no executor for 301 s: .* run the same command to resume"):
        jobs.check_executors()


def test_five_minutes_without_an_executor_are_not_too_long(jobs, java, now):
    """A second more is."""
    now[0] = 300

    jobs.check_executors()


def test_executors_are_counted_every_five_seconds(jobs, java, now):
    """Each look is a call of Java."""
    for now[0] in (4, 5, 9, 10, 14.9):
        jobs.check_executors()

    assert java.looks == 2


@pytest.mark.parametrize("state", ["local", "stopped"])
def test_where_there_are_no_executors_to_wait_for(jobs, java, now, state):
    """The driver does the work, or its jobs are about to fail and say why."""
    setattr(java, state, True)
    now[0] = 10_000

    jobs.check_executors()


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


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (RuntimeError("Py4JError: broken pipe"), ClusterError, "Spark cannot run cells: broken pipe"),
        (
            RuntimeError("Job aborted: most recent failure: Lost task 0.3: java.io.IOException: No space left"),
            ClusterError,
            "Spark cannot run cells: Lost task 0.3: java.io.IOException: No space left",
        ),
        (
            RuntimeError('Lost task 0.3: java.io.IOException: Cannot run program "/opt/python": error=2'),
            MissingDependencyError,
            'the executors cannot run cells: Cannot run program "/opt/python": error=2',
        ),
        (
            PythonException("ValueError: no such host"),
            MissingDependencyError,
            "the executors cannot run cells: no such host",
        ),
        (RuntimeError(RAISED), MissingDependencyError, "the executors cannot run cells: No module named 'numpy'"),
    ],
)
def test_the_reason_is_the_rest_of_the_line(jobs, error, kind, message):
    """One line, and the right exit code."""
    with pytest.raises(kind) as raised:
        jobs._raise_unless_killed(error)

    assert message == str(raised.value)


@pytest.mark.parametrize("gone", ["stopped", "never there"])
def test_a_cluster_that_is_gone_is_told_before_anything_else(jobs, java, gone):
    if gone == "stopped":
        java.stopped = True
    else:
        jobs._spark._jsc = None

    with pytest.raises(
        ClusterError, match=r"^the Spark cluster is gone; run the same command to resume from the rows that are kept$"
    ):
        jobs._raise_unless_killed(RuntimeError("ExecutorLostFailure"))


@pytest.mark.parametrize(
    "message", ["ExecutorLostFailure (executor 1 exited)", "Python worker exited unexpectedly", "exited with code 137"]
)
def test_a_killed_executor_is_no_reason_to_stop(jobs, message):
    assert jobs._raise_unless_killed(RuntimeError(f"most recent failure: {message}")) is None


def test_batches_grow_with_the_cluster(jobs):
    """Executors may come after the first batch was made."""
    coming = iter(range(100))
    first = jobs.next_batch(coming)
    jobs._spark.defaultParallelism = 16
    second = jobs.next_batch(coming)

    assert (len(first), len(second), len(list(coming))) == (4, 16, 80)


@pytest.mark.parametrize(("cpu_s", "per_slot"), [(2.0, 1), (1.0, 1), (0.25, 4), (0.1, 10), (0.01, 64)])
def test_short_cells_share_a_task_of_a_second(jobs, cpu_s, per_slot):
    """Up to 64 of them; until one has ended each has a task."""
    ready = Tasks(jobs, lambda tasks, cells: tasks.send(*({"cell": cell.id, "cpu_s": cpu_s} for cell in cells)))
    jobs.run([a_cell("a"), a_cell("b"), a_cell("c")])
    jobs.take_rows()

    assert ready.batches == [3]
    assert 4 * per_slot == len(jobs.next_batch(iter(range(1000))))


def test_a_cluster_without_a_slot_counts_as_one(jobs):
    """Its executors are about to come."""
    jobs._spark.defaultParallelism = 0

    assert len(jobs.next_batch(iter(range(9)))) == 1


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


def test_rows_come_with_their_task_and_not_with_their_job(jobs):
    """A straggler keeps nobody waiting: what other tasks have sent is there while the job goes on."""
    seen = []

    def work(tasks, cells):
        tasks.send({"cell": "a", "cpu_s": 1.0})
        seen.append([row["cell"] for row in jobs.take_rows()])
        tasks.send({"cell": "b", "cpu_s": 9.0})

    Tasks(jobs, work)
    jobs.run([a_cell("a"), a_cell("b")])

    assert seen == [["a"]]
    assert [row["cell"] for row in jobs.take_rows()] == ["b"]
    assert (jobs.finished, jobs.simulated_ns) == (2, 10)


def test_what_has_a_row_does_not_run_again(jobs):
    """A job fails when an executor was killed four times; its other tasks have sent their rows by then."""

    def work(tasks, cells):
        tasks.send(*({"cell": cell.id, "cpu_s": 1.0} for cell in cells if cell.id != "deadly"))
        if any(cell.id == "deadly" for cell in cells):
            raise RuntimeError("ExecutorLostFailure")

    tasks = Tasks(jobs, work)
    jobs.run([a_cell(name) for name in ("a", "deadly", "b")])

    rows = {row["cell"]: row.get("status") for row in jobs.take_rows()}
    assert rows == {"a": None, "b": None, "deadly": "error"}
    assert tasks.batches == [3, 1]


def test_halves_of_what_has_no_row_are_tried_down_to_the_cell_that_kills(jobs):
    """The first half has the odd one."""

    def work(tasks, cells):
        if any(cell.id == "deadly" for cell in cells):
            raise RuntimeError("ExecutorLostFailure")
        tasks.send(*({"cell": cell.id, "cpu_s": 1.0} for cell in cells))

    tasks = Tasks(jobs, work)
    jobs.run([a_cell(name) for name in ("a", "b", "deadly", "c", "d")])

    assert {row["cell"]: row.get("status") for row in jobs.take_rows()} == {
        "a": None,
        "b": None,
        "c": None,
        "d": None,
        "deadly": "error",
    }
    assert tasks.batches == [5, 3, 2, 1, 2]


def test_a_job_that_fails_while_all_ends_is_not_tried_again(jobs):
    """Ctrl-C cancels it: its cells run with the next command."""

    def work(tasks, cells):
        jobs.stopped = True
        raise RuntimeError("ExecutorLostFailure")

    tasks = Tasks(jobs, work)

    with pytest.raises(RuntimeError, match="ExecutorLostFailure"):
        jobs.run([a_cell("a"), a_cell("b")])
    assert (tasks.batches, jobs.take_rows()) == ([2], [])


def test_a_cell_that_ran_twice_has_one_row(jobs):
    """Its executor was lost, or Spark speculated."""
    Tasks(jobs, lambda tasks, cells: tasks.send({"cell": "a", "cpu_s": 1.0}, {"cell": "a", "cpu_s": 2.0}))
    jobs.run([a_cell("a")])

    assert jobs.take_rows() == [{"cell": "a", "cpu_s": 1.0}]
    assert (jobs.finished, jobs.simulated_ns) == (1, 5)


@pytest.mark.parametrize(
    ("slots", "count", "tasks"), [(4, 3, 3), (4, 9, 4), (1, 64, 1), (1, 65, 2), (1, 128, 2), (2, 200, 4)]
)
def test_a_batch_has_a_task_per_slot_and_64_cells_in_a_task_at_most(jobs, slots, count, tasks):
    """Neighbours in a plan cost about the same: they are dealt out to tasks."""
    dealt = []
    jobs._spark.defaultParallelism = slots
    jobs._spark.setJobDescription = lambda _: None
    jobs._spark.parallelize = lambda lists, _: SimpleNamespace(
        mapPartitions=lambda _: SimpleNamespace(collect=lambda: dealt.extend(map(pickle.loads, lists)))
    )
    jobs.run([a_cell(i) for i in range(count)])

    assert tasks == len(dealt)
    assert list(range(0, count, tasks)) == [cell.id for cell in dealt[0]]
    assert max(map(len, dealt)) <= room.MAX_CELLS_PER_TASK


def test_a_job_says_how_many_cells_have_begun(jobs):
    """On Spark's own pages."""
    descriptions = []
    Tasks(jobs, lambda tasks, cells: None)
    jobs._spark.setJobDescription = descriptions.append
    for names in ("abc", "de"):
        jobs.run([a_cell(name) for name in names])

    assert descriptions == ["3 cells, 3 begun", "2 cells, 5 begun"]
