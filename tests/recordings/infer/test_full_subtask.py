"""The time of a record where one subtask is full and others wait: what the full one needs sets the pace of the job."""

from pathlib import Path

import pytest

from sim.backtest.backtest import backtest
from sim.recordings.infer.flows import Flow, Flows
from sim.recordings.infer.work import _full_subtask
from sim.recordings.reading import read_any

USERS = Path(__file__).parents[2] / "data" / "users-jobs"
SHARES = [((0.99, 0.5), 0), ((0.5, 0.4, 0.95), 2), ((0.99, 0.98), None), ((0.5, 0.4), None), ((0.99,), None)]


def flow(*shares):
    """Subtasks of 100 s that are busy for these shares."""
    return Flows(tuple(Flow(100_000.0, 1000.0, busy_ms=100_000.0 * share) for share in shares), "metrics")


@pytest.mark.parametrize(("shares", "expected"), SHARES)
def test_the_only_subtask_that_is_full(shares, expected):
    assert expected == _full_subtask(flow(*shares), "in")


@pytest.mark.parametrize("name", ["J4-pressed-aligned-r1", "J4-pressed-unaligned-r1", "J4-pressed-timeout500-r1"])
def test_throughput_of_a_job_with_a_hot_key(name):
    """The mean over subtasks set the bottleneck 9 to 10 % low."""
    throughput = backtest(read_any(USERS / f"{name}.zip")).of("throughput")

    assert () == throughput.off
    assert throughput.observed.p50 == pytest.approx(throughput.predicted.p50, rel=0.027)
