"""A job under the adaptive scheduler: it runs on the task managers that are left, and on others when they come."""

import pytest

from tests.oracle import oracle
from tests.runtime.jobmanager.adaptive_runs import run


def outages(result):
    """Job instance -> (from, to) [s]: how long not all of its tasks ran."""
    return [(row.failed / 1000, row.running / 1000) for row in result.recoveries.itertuples()]


def parallelism(result):
    """By job instance: how many tasks of the profile acknowledged checkpoints."""
    own = result.subtasks[result.subtasks["vertex"] == "profile"]
    jobs = own["x_job"] if "x_job" in own else own["vertex"]  # one instance
    return own.groupby(jobs)["index"].nunique().tolist()


@pytest.mark.parametrize(
    "holds",
    ["job.profile.async-io={latency: 300 ms, capacity: 100}", "job.profile.window={tumbling: 3 s, time: event}"],
)
def test_what_operators_hold_is_dealt_out(holds):
    """Requests under way, and records in windows, go on with one subtask, and with two when the others are back."""
    result = run(holds)

    assert result.recoveries["kind"].tolist() == ["task-manager", "rescale"]
    assert parallelism(result) == [2, 1, 2]
    assert not result.violations


def test_records_behind_at_least_once_barriers_are_no_negative_data_in_flight():
    """A busy reader has counted them when its writers, which are at their barriers, had not sent them."""
    sizes = "job.log.parallelism=4", "job.profile.parallelism=4", "job.log.source.rate=400/s"
    result = run("checkpoint.barriers=at-least-once", "job.profile.service=9 ms", "checkpoint.interval=3 s", *sizes)

    assert result.recoveries["kind"].tolist() == ["task-manager", "rescale"]
    assert not result.violations


def test_timers_of_processing_time_keep_their_subtasks():
    assert parallelism(run("job.profile.window={tumbling: 3 s, time: processing}")) == [2]


def test_before_two_it_is_rescaled_without_a_checkpoint():
    """As soon as the slots are there; records since the latest checkpoint are served again."""
    result = run("cluster.profile=1.20")

    assert pytest.approx(12 + 62, abs=0.3) == outages(result)[1][0]
    assert result.recoveries["replayed_records"].iloc[1] > 0


def test_without_any_slot_it_fails_in_the_end():
    overrides = "cluster.placement=single", "restart.resource-wait=20 s"

    assert "FAILED" in run(*overrides).job_status
    assert run(*overrides, "restart.reactive=true").job_status == "RUNNING"


@pytest.mark.parametrize("seed", range(2))
def test_both_engines_do_the_same_and_nothing_is_lost(seed):
    """Times of losses that are drawn, under every law."""
    losses = f"faults=[{{task-manager: random, every: {{exponential: {15 + 5 * seed} s}}}}]"
    overrides = losses, f"run.seed={seed}", "restart.replacement={exponential: 20 s}", "run.duration=100 s"
    kernel, reference = (run(*overrides, engine=engine) for engine in ("compiled", oracle))

    assert kernel.recoveries.equals(reference.recoveries)
    assert kernel.checkpoints.equals(reference.checkpoints)
    assert not kernel.violations


def test_a_rescaled_job_stays_the_same_job():
    """It claims nothing from itself: the checkpoint that it goes on from is its own, subsumed by later ones."""
    result = run()

    assert len(result.recoveries) == 2
    assert result.recoveries["cause"].iloc[-1].startswith("rescaled by the adaptive scheduler, from checkpoint")
    assert len(result.restores) == 0
    assert len(result.snapshots) == 1
    assert result.violations == ()
