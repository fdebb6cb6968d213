"""What counts as a restart, and from when a job is down."""

import pytest

from tests.scenarios import run_scenario

JOB = """\
version: 1
job:
  source: {source: {rate: 400/s, record: 100 B}}
  sink: {input: {source: hash}, service: 1500 us, state: {size: 20 MB}}
checkpoint: {interval: 1 s, barriers: aligned}
storage: {bandwidth: 40 MB/s, read-bandwidth: 5 MB/s}
restart: {strategy: fixed-delay, delay: 3 s, heartbeat-interval: 2 s, heartbeat-timeout: HEARTBEAT}
faults: [FAULTS]
run: {duration: 30 s}
"""


def recoveries(*faults, heartbeat="50 s"):
    text = JOB.replace("FAULTS", ", ".join(faults)).replace("HEARTBEAT", heartbeat)
    return run_scenario(text, check=False).recoveries.to_dict("records")


def kill(at_s):
    return f"{{kill: sink, at: {at_s} s}}"


@pytest.mark.parametrize(("second_s", "count"), [(6.0, 1), (8.0, 1), (8.8, 2), (11.0, 2), (13.0, 2)])
def test_a_failure_of_a_task_that_is_down_is_none(second_s, count):
    """It fails at 5.3 s, is deployed at 8.5 s, and restores until 12.5 s: from then on it may fail again."""
    rows = recoveries(kill(5.3), kill(second_s))

    assert count == len(rows)
    assert 8_450 < rows[0]["deployed"] < 8_500


def test_tasks_work_on_without_a_job_manager():
    """They stop when the next one restarts them, or when they have missed its heartbeat; downtime counts from then."""
    lost = "{job-manager: down-for 6 s, at: 5 s}"
    (patient,), (short,) = recoveries(lost), recoveries(lost, heartbeat="2 s")

    assert (patient["failed"], patient["served_again"] >= 6 * 400) == (11_000, True)
    assert 5_000 < short["failed"] <= 7_000
    assert short["running"] == pytest.approx(patient["running"], abs=50)
    assert short["downtime"] >= patient["downtime"] + 3_900
