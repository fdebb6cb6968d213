"""What is read from Spark's event logs."""

import json
import math

import pytest

from benchmarks import event_log


def added(executor, at_ms):
    return {
        "Event": "SparkListenerExecutorAdded",
        "Timestamp": at_ms,
        "Executor ID": executor,
        "Executor Info": {"Total Cores": 1},
    }


def task(executor, begin_ms, end_ms, reason="Success"):
    info = {"Executor ID": executor, "Launch Time": begin_ms, "Finish Time": end_ms}
    return {"Event": "SparkListenerTaskEnd", "Task End Reason": {"Reason": reason}, "Task Info": info}


def job(description):
    return {
        "Event": "SparkListenerJobStart",
        "Properties": {"spark.job.description": description} if description else {},
    }


EVENTS = [
    job("4 cells, 4 begun"),
    added("0", 1000),
    added("1", 1000),
    task("0", 2000, 3000),
    job("4 cells, 8 begun"),
    task("1", 2000, 6000),
    task("1", 6000, 7000, "ExecutorLostFailure"),
    {"Event": "SparkListenerExecutorRemoved", "Timestamp": 7000, "Executor ID": "1"},
    task("0", 8000, 12000),
    job(""),
]


@pytest.fixture
def log(tmp_path):
    lines = "\n".join(map(json.dumps, EVENTS)) + '\n{"Event": "SparkListenerTa'  # the driver was killed
    (tmp_path / "app-1").write_text(lines)
    (log,) = event_log.logs(tmp_path)
    return log


def test_counts(log):
    """Cells that have begun, attempts that came to nothing."""
    assert (log.begun, log.lost) == (8, 1)
    assert log.first_task_s() == [1.0, 4.0]
    assert {"0": (1.0, math.inf), "1": (1.0, 7.0)} == log.there_s


@pytest.mark.parametrize(("between", "idle"), [((), 1 - 9 / 15), ((2.0, 6.0), 1 - 5 / 8), ((8.0, 10.0), 0.0)])
def test_idle_slots(log, between, idle):
    """Slots of the executors that were there at the time count; an attempt that is lost is no work."""
    assert idle == pytest.approx(log.idle_share(*between))
