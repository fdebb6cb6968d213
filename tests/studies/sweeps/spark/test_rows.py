"""What Spark's driver makes of a cluster that does not do what it should; no Spark is needed to see that."""

from dataclasses import replace
from itertools import chain
from types import SimpleNamespace

import pytest

from sim.model.job import Rate
from sim.model.packed_records import PackedRecords
from sim.studies.sweeps import spark_rows as room
from sim.studies.sweeps.packed_cells import CellPacker, unpack
from sim.studies.sweeps.spark_masters import MissingDependencyError
from sim.studies.sweeps.spark_rows import ClusterError
from sim.studies.work import planned_work_s
from tests.studies.sweeps.spark.conftest import Context, PythonException, plan_of

pytestmark = pytest.mark.usefixtures("pyspark")


@pytest.fixture
def now(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: clock[0])
    return clock


@pytest.fixture
def jobs_of(now, study):
    """Makes the jobs of cells with these names: `work` is given the names of a task, and returns the CPU time of each cell that ends."""

    def make(names, work=lambda names: {}, *, slots=4, of=None):
        def run(_, __, names):
            spark.sent.add({"cell": name, "cpu_s": cpu_s} for name, cpu_s in work(names).items())

        spark = Context(slots, run)
        scenario = study.scenarios[0]
        long = replace(scenario, run=replace(scenario.run, duration_ns=scenario.run.duration_ns * 1000))
        return room._Jobs(spark, plan_of(names, scenario, long, of=of), check=True)

    return make


@pytest.fixture
def jobs(jobs_of):
    made = jobs_of([f"c{i}" for i in range(100)])
    made._spark.jobs_end = False
    return made


@pytest.fixture
def java(jobs):
    return jobs._spark._jsc


def all_rows(jobs):
    """The rows until all cells have one."""
    rows = []
    while jobs.finished < len(jobs._planned):
        jobs.advance()
        rows += jobs.take_rows()
    return rows


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


def test_java_that_has_ended_is_a_cluster_that_is_gone(jobs, java):
    """It does not answer whether it has stopped."""
    java.isStopped = lambda: 1 / 0

    with pytest.raises(ClusterError, match=r"^the Spark cluster is gone"):
        jobs._raise_unless_killed(RuntimeError("ConnectionRefusedError"))


def test_open_tasks_grow_with_the_cluster(jobs):
    """Executors may come after the first job was submitted."""
    jobs.advance()
    jobs.advance()
    assert [len(job) for job in jobs._spark.jobs] == [24], "two per slot, and 16"
    jobs._spark.defaultParallelism = 16
    jobs.advance()

    assert [len(job) for job in jobs._spark.jobs] == [24, 24]


def test_the_next_job_is_submitted_when_half_of_the_open_tasks_have_ended(jobs):
    """However long the others take, and whether their job has ended or not."""
    jobs.advance()
    for count, submitted in ((11, [24]), (1, [24, 12]), (1, [24, 12])):
        names = sorted(jobs._last_cells)[:count]
        jobs._spark.sent.add({"cell": name, "cpu_s": 1.0} for name in names)
        jobs.take_rows()
        jobs.advance()

        assert submitted == [len(job) for job in jobs._spark.jobs]


@pytest.mark.parametrize(("cpu_s", "per_task"), [(2.0, 1), (1.0, 1), (0.26, 3), (0.099, 10), (0.01, 64)])
def test_short_cells_share_a_task_of_a_second(jobs_of, cpu_s, per_task):
    """Up to 64 of them; until one has ended each has a task."""
    jobs = jobs_of([f"c{i}" for i in range(2000)], lambda names: dict.fromkeys(names, cpu_s))
    for _ in range(2):
        jobs.advance()
        jobs.take_rows()

    assert [{1}, {per_task}] == [{len(task) for task in job} for job in jobs._spark.jobs]


def test_the_last_cells_are_spread_over_all_slots(jobs_of):
    """Two tasks of a second would leave two slots idle."""
    jobs = jobs_of([f"c{i}" for i in range(44)], lambda names: dict.fromkeys(names, 0.1))

    assert len(all_rows(jobs)) == 44
    assert [len(task) for task in jobs._spark.jobs[0]] == [1] * 24
    assert 4 <= len(jobs._spark.jobs[1]) <= 5


def test_long_cells_come_first_and_have_a_task_of_their_own(jobs_of):
    """By what their scenario lets expect."""
    names = [f"c{i}" for i in range(60)]
    jobs = jobs_of(names, lambda names: dict.fromkeys(names, 0.05), slots=1, of=[i % 20 == 19 for i in range(60)])
    all_rows(jobs)

    assert jobs._spark.jobs[0][:5] == [["c19"], ["c39"], ["c59"], ["c0"], ["c1"]]
    assert max(map(len, jobs._spark.jobs[1])) > 1


def test_a_cluster_without_a_slot_counts_as_one(jobs):
    """Its executors are about to come."""
    jobs._spark.defaultParallelism = 0
    jobs.advance()

    assert [len(job) for job in jobs._spark.jobs] == [18]


def test_many_open_jobs_are_asked_in_turn_whether_they_have_ended(jobs_of):
    """Each question is a call of Java."""
    jobs = jobs_of([f"c{i}" for i in range(300)], lambda names: dict.fromkeys(names, 1.0), slots=1)
    jobs._spark.collect = lambda run, tasks, collect=jobs._spark.collect: (
        setattr(future := collect(run, tasks), "ends", False) or future
    )
    all_rows(jobs)
    looks = [future.looks for future in jobs._spark.futures]
    jobs.advance()

    assert len(looks) > room.MAX_POLLED_JOBS
    assert sum(future.looks for future in jobs._spark.futures) - sum(looks) == room.MAX_POLLED_JOBS


def test_rows_come_with_their_task_and_not_with_their_job(jobs_of):
    """A straggler keeps nobody waiting: what other tasks have sent is there while the job goes on."""
    jobs = jobs_of(["a", "b"], lambda names: {"a": 1.0} if names == ["a"] else {})
    jobs._spark.jobs_end = False
    jobs.advance()
    assert [row["cell"] for row in jobs.take_rows()] == ["a"]
    jobs._spark.sent.add([{"cell": "b", "cpu_s": 9.0}])
    duration_ns = jobs._planned[0].scenario.run.duration_ns

    assert [row["cell"] for row in jobs.take_rows()] == ["b"]
    assert (jobs.finished, jobs.simulated_ns) == (2, 2 * duration_ns)


def killed_by(deadly):
    def work(names):
        if deadly in names:
            raise RuntimeError("ExecutorLostFailure")
        return dict.fromkeys(names, 1.0)

    return work


def test_what_has_a_row_does_not_run_again(jobs_of):
    """A job fails when an executor was killed four times; its other tasks have sent their rows by then."""
    jobs = jobs_of(["a", "deadly", "b"], killed_by("deadly"))

    assert {row["cell"]: row.get("status") for row in all_rows(jobs)} == {"a": None, "b": None, "deadly": "error"}
    assert jobs._spark.jobs == [[["a"], ["deadly"], ["b"]], [["deadly"]]]


def test_halves_of_what_has_no_row_are_tried_down_to_the_cell_that_kills(jobs_of):
    """The first half has the odd one."""

    def work(names):
        if any("deadly" in task for task in jobs._spark.jobs[-1]):
            raise RuntimeError("ExecutorLostFailure")
        return dict.fromkeys(names, 1.0)

    jobs = jobs_of(["a", "b", "deadly", "c", "d"], work)
    rows = {row["cell"]: row.get("status") for row in all_rows(jobs)}

    assert rows == {"a": None, "b": None, "c": None, "d": None, "deadly": "error"}
    assert [sorted(chain(*job)) for job in jobs._spark.jobs] == [
        ["a", "b", "c", "d", "deadly"],
        ["a", "b", "deadly"],
        ["c", "d"],
        ["a", "b"],
        ["deadly"],
    ]


def test_a_cell_that_ran_twice_has_one_row(jobs_of):
    """Its executor was lost, or Spark speculated."""
    jobs = jobs_of(["a"], lambda names: {"a": 1.0})
    jobs.advance()
    jobs._spark.sent.add([{"cell": "a", "cpu_s": 2.0}])

    assert jobs.take_rows() == [{"cell": "a", "cpu_s": 1.0}]
    assert jobs.finished == 1


@pytest.mark.parametrize(
    ("slots", "count", "tasks"), [(4, 3, 2), (1, 129, 2), (1, 256, 2), (2, 400, 4), (300, 200, 100)]
)
def test_halves_have_a_task_per_slot_and_64_cells_in_a_task_at_most(jobs_of, slots, count, tasks):
    """Neighbours in a plan cost about the same: they are redistributed to tasks."""
    jobs = jobs_of([f"c{i}" for i in range(count)], slots=slots)
    job = room._Job(SimpleNamespace(get=lambda: None), list(range(count)))
    jobs._open = {f"c{i}": i for i in range(count)}
    jobs._retry(job)
    first = jobs._spark.jobs[0]

    assert tasks == len(first)
    assert [f"c{i}" for i in range(0, (count + 1) // 2, tasks)] == first[0]
    assert max(map(len, first)) <= room.MAX_CELLS_PER_TASK


def test_a_job_says_how_many_cells_have_begun(jobs):
    """On Spark's own pages."""
    jobs._spark.work = lambda run, task, names: jobs._spark.sent.add([{"cell": name, "cpu_s": 1.0} for name in names])
    all_rows(jobs)

    assert jobs._spark.descriptions[:2] == ["24 cells, 24 begun", "24 cells, 48 begun"]


def test_a_long_series_is_broadcast_once_and_not_sent_with_each_cell(study):
    """The rates of a day have 1.4 MB.  Equal ones of two scenarios are one."""
    rows = [(1000 * i, 1000 + i % 7, 3) for i in range(2000)]

    def with_rates():
        job = study.scenarios[0].job
        source = replace(job.vertices[0].source, rates=PackedRecords(Rate.of_integers, rows))
        return replace(
            study.scenarios[0], job=replace(job, vertices=(replace(job.vertices[0], source=source), *job.vertices[1:]))
        )

    spark, plan = Context(), plan_of("abcd", with_rates(), with_rates(), study.scenarios[0], of=[0, 1, 0, 2])
    packer = CellPacker(plan, spark.broadcast)
    tasks, series = packer.pack([[0, 1], [2]])
    again, _ = packer.pack([[1]])
    short, none = packer.pack([[3]])

    assert len(spark.calls) == len(series) == 1
    assert len(spark.calls[0][1]) > 40_000 > 10_000 > max(map(len, [*tasks, *again, *short]))
    assert none == {}
    assert [cell.scenario for task in tasks for cell in unpack(task, series)] == [plan[i].scenario for i in (0, 1, 2)]


def test_expected_work_counts_the_records_that_are_due(study):
    """A rate that varies counts as its steps do, packed or not; a source without a rate adds nothing."""
    job, run = study.scenarios[0].job, study.scenarios[0].run
    first = job.vertices[0]

    def work(rates):
        source = replace(first.source, rates=rates)
        vertices = (replace(first, source=source), *job.vertices[1:])
        return planned_work_s(replace(study.scenarios[0], job=replace(job, vertices=vertices)), None)

    half_ns = run.duration_ns // 2
    steps = [(0, 10**7, 1), (half_ns, 3 * 10**7, 1), (3 * run.duration_ns, 10**9, 1)]
    packed = PackedRecords(Rate.of_integers, steps)
    records = first.emitting * 2 * 10**7 * run.duration_ns / 1e9

    assert work(packed) == work(tuple(packed)) == pytest.approx(work(()) + 1e-8 * records * len(job.vertices))
