"""A user changes interval and timeout of checkpoints of a running job (FLIP-571)."""

from itertools import pairwise

import pytest

from sim.protocol.coordinator import Coordinator
from sim.results.journal import EventType
from tests.scenarios import read_scenario, run_scenario

# A checkpoint takes 5 s, more than its timeout.
JOB = """
version: 1
job:
  log:     {source: {rate: 100/s, record: 1 kB}, parallelism: 2}
  profile: {input: {log: hash}, service: 1 ms, state: {size: 1 GB}, parallelism: 2}
checkpoint: {interval: 10 s, timeout: 4 s, tolerable-failed: 10}
storage: {bandwidth: 100 MB/s}
restart: {strategy: fixed-delay, delay: 1 s}
run: {duration: 60 s}
"""


def run(*actions, **changes):
    overrides = [f"{key.replace('_', '.')}={value}" for key, value in changes.items()]
    return run_scenario(JOB, overrides=[f"actions=[{', '.join(actions)}]", *overrides])


def table(result):
    """(trigger [s], status) of each checkpoint."""
    rows = result.checkpoints
    return [(round(ms / 1000), status) for ms, status in zip(rows["trigger_timestamp"], rows["status"], strict=True)]


def test_a_longer_timeout_saves_the_checkpoint_in_progress():
    failed, completed = "FAILED", "COMPLETED"

    assert table(run()) == [(at_s, failed) for at_s in (0, 10, 20, 30, 40, 50)]
    after = run("{checkpoint: {timeout: 8 s}, at: 13 s}")
    assert table(after) == [(0, failed), *((at_s, completed) for at_s in (10, 20, 30, 40, 50))]
    assert after.violations == ()


def test_a_shorter_timeout_ends_it_at_once():
    """It has been in progress for 3 s."""
    result = run("{checkpoint: {timeout: 2 s}, at: 13 s}")

    assert result.checkpoints["end_to_end_duration"].tolist()[:3] == pytest.approx([4000, 3000, 2000], abs=50)
    assert result.violations == ()


def test_another_interval_counts_from_the_next_trigger_on():
    result = run("{checkpoint: {interval: 20 s, timeout: 8 s}, at: 13 s}")

    assert [at_s for at_s, _ in table(result)] == [0, 10, 20, 40]


@pytest.mark.parametrize("fault", ["{job-manager: down-for 5 s, at: 22 s}", "{kill: profile, at: 22 s}"])
def test_both_are_kept_over_failovers(fault):
    """A request while there is no JobManager is repeated."""
    early = run("{checkpoint: {interval: 20 s, timeout: 8 s}, at: 13 s}", faults=f"[{fault}]")
    late = run("{checkpoint: {interval: 20 s, timeout: 8 s}, at: 23 s}", faults=f"[{fault}]")

    for result, interval_s in (early, 20), (late, 20):
        last = [row for row in table(result) if row[0] > 28]
        assert {status for _, status in last} <= {"COMPLETED"}
        assert [b - a for (a, _), (b, _) in pairwise(last)] == [interval_s] * (len(last) - 1)
        assert result.violations == ()
    assert len([*late.journal.only({EventType.CHECKPOINTS_CHANGED})]) == 1


def test_a_rescaled_job_keeps_them_and_another_job_does_not():
    action = "{checkpoint: {timeout: 8 s}, at: 13 s}"
    for rescale, expected in (("checkpoint", "COMPLETED"), ("savepoint", "FAILED")):
        changed = f"{{at: 25 s, parallelism: {{profile: 3}}, from: {rescale}}}"
        result = run(action, rescale=changed, storage_bandwidth="80 MB/s")
        own = result.checkpoints[result.checkpoints["x_job"] == 1]
        assert own["status"].iloc[0] == expected, rescale


def test_a_checker_knows_the_changed_timeout(monkeypatch):
    """A coordinator that forgets the change is noticed."""
    monkeypatch.setattr(Coordinator, "_configuration_updated", lambda self, event: (self, ()))

    assert run("{checkpoint: {timeout: 8 s}, at: 13 s}").violations


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("{checkpoint: {}, at: 1 s}", "changes nothing"),
        ("{checkpoint: {timeout: 1 ms}, at: 1 s}", "Flink wants 10 ms or more"),
        ("{checkpoint: {timeout: 1 s}, stop: drain, at: 1 s}", "exactly one of"),
    ],
)
def test_a_change_that_cannot_be_made_has_one_message(action, message):
    with pytest.raises(Exception, match=message):
        read_scenario(JOB, overrides=[f"actions=[{action}]"])
