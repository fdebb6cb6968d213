"""A task is late for the first barrier of a checkpoint by `cluster: barrier-wake-up`, and serves nothing meanwhile."""

import pytest

from tests.scenarios import run_scenario

JOB = """\
job:
  a: {source: {rate: 2k/s, record: 1 kB}, parallelism: 2}
  b: {input: {a: rebalance}, parallelism: 2, service: 100 us}
  c: {input: {b: hash}, parallelism: 2, service: 900 us}
checkpoint: {interval: 1 s, barriers: unaligned}
cluster: {placement: spread}
run: {duration: 20 s}
"""


def ran(*changes, engine="compiled"):
    return run_scenario(JOB, overrides=changes, engine=engine)


def delays(result):
    """Median time [ms] from the trigger to the first barrier, by vertex."""
    return result.subtasks[result.subtasks["id"] > 1].groupby("vertex")["start_delay"].median()


@pytest.mark.parametrize(("barriers", "at_c"), [("unaligned", 20.0), ("aligned", 10.0), ("at-least-once", 10.0)])
def test_each_exchange_adds_its_lateness(barriers, at_c):
    """10 ms at b, 20 ms at c, unless c has records to work off while b is late; sources are triggered and wait for nothing."""
    late = delays(ran(f"checkpoint.barriers={barriers}", "cluster.barrier-wake-up=10 ms")) - delays(
        ran(f"checkpoint.barriers={barriers}")
    )

    assert {"a": 0.0, "b": 10.0, "c": at_c} == pytest.approx(late.to_dict(), abs=1.5)


def test_a_barrier_that_is_converted_is_late_as_well():
    """c is full: its barriers wait behind data up to the timeout, and overtake it then."""
    full = ("checkpoint.barriers={aligned-timeout: 200 ms}", "job.c.service=1200 us")
    late = delays(ran(*full, "cluster.barrier-wake-up=50 ms")) - delays(ran(*full))

    assert 40 <= late["c"] <= 120
