"""What Spark's driver makes of a cluster that does not do what it should; no Spark is needed to see that."""

from types import SimpleNamespace

import pytest

from sim.sweeps.spark import rows as room
from sim.sweeps.spark.java import MissingDependencyError
from sim.sweeps.spark.rows import ClusterError

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
