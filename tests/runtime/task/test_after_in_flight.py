"""A chain whose last operator is finalized first writes its state when the in-flight data of its task manager is written."""

import pytest

from tests.scenarios import run_scenario

JOB = """\
job:
  a: {source: {rate: 1200/s, record: 1 kB}, parallelism: 2}
  b: {input: {a: hash}, parallelism: 2, service: 2 ms, state: {size: 4 MB}}
checkpoint: {interval: 4 s, barriers: unaligned}
cluster: {placement: spread}
storage: {bandwidth: 20 MB/s, in-flight-bandwidth: 2 MB/s}
run: {duration: 30 s}
"""
AFTER = "job.b.snapshot.after-in-flight=true"


def ran(*changes, engine="compiled"):
    return run_scenario(JOB, overrides=changes, engine=engine)


def medians(result):
    """Asynchronous phases [ms] by vertex, of checkpoints that meet full queues."""
    return result.subtasks[result.subtasks["id"] > 2].groupby("vertex")["async_duration"].median()


def test_its_asynchronous_phase_is_the_sum_of_both():
    """2 MB of state take 100 ms; in-flight data takes longer, and is all that the source waits for."""
    together, after = medians(ran()), medians(ran(AFTER))

    assert together["a"] == pytest.approx(after["a"], rel=0.1)
    assert together["b"] == pytest.approx(together["a"], rel=0.2)
    assert pytest.approx(after["b"] - together["b"], abs=15) == 100
