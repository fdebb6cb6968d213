"""A job under the adaptive scheduler: it runs on the task managers that are left, and on others when they come."""

import pytest

from tests.oracle import oracle
from tests.runtime.jobmanager.adaptive_runs import JOB, run


def outages(result):
    """Job instance -> (from, to) [s]: how long not all of its tasks ran."""
    return [(row.failed / 1000, row.running / 1000) for row in result.recoveries.itertuples()]


def parallelism(result):
    """By job instance: how many tasks of the profile acknowledged checkpoints."""
    own = result.subtasks[result.subtasks["vertex"] == "profile"]
    jobs = own["x_job"] if "x_job" in own else own["vertex"]  # one instance
    return own.groupby(jobs)["index"].nunique().tolist()


def test_it_goes_on_with_fewer_slots_and_is_rescaled_when_the_others_are_back():
    """Lost at 12 s, deployed on the one that is left ten seconds after the heartbeat; rescaled with the first checkpoint after 74 s."""
    result = run()
    (lost, again), (back, all_run) = outages(result)

    assert result.job_status == "RUNNING"
    assert result.recoveries["kind"].tolist() == ["task-manager", "rescale"]
    assert lost == 12
    assert 10 + 12 < again < 22 + 6
    assert 12 + 62 <= back <= 12 + 62 + 5.5
    assert back < all_run < back + 3
    assert parallelism(result) == [2, 1, 2]
    completed = result.checkpoints[result.checkpoints["status"] == "COMPLETED"]
    assert back * 1000 in [
        pytest.approx(end, abs=50) for end in completed["trigger_timestamp"] + completed["end_to_end_duration"]
    ]
    assert not result.violations


def test_the_default_scheduler_waits_for_all_slots():
    (only,) = outages(run("restart.scheduler=default"))

    assert only[1] > 12 + 62


def test_slots_that_come_while_it_waits_are_all_it_needs():
    """They are there before it is stable: no other parallelism."""
    result = run("restart.replacement=8 s")

    assert parallelism(result) == [2]
    assert 20 < outages(result)[0][1] < 24


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


def test_timers_of_processing_time_keep_their_subtasks():
    assert parallelism(run("job.profile.window={tumbling: 3 s, time: processing}")) == [2]


def test_in_reactive_mode_nothing_is_waited_for():
    waits, reactive = outages(run()), outages(run("restart.reactive=true"))

    assert 9.5 < waits[0][1] - reactive[0][1] < 10.5


def test_before_two_it_is_rescaled_without_a_checkpoint():
    """As soon as the slots are there; records since the latest checkpoint are served again."""
    result = run("cluster.profile=1.20")

    assert pytest.approx(12 + 62, abs=0.3) == outages(result)[1][0]
    assert result.recoveries["replayed_records"].iloc[1] > 0


def test_a_cooldown_comes_before_a_rescale():
    """Slots are back long before it has run for 60 s."""
    result = run("restart.replacement=30 s", "restart.cooldown=60 s")
    (_, begun), (back, _) = outages(result)

    assert 59 < back - begun < 66


def test_without_any_slot_it_fails_in_the_end():
    overrides = "cluster.placement=single", "restart.resource-wait=20 s"

    assert "FAILED" in run(*overrides).job_status
    assert run(*overrides, "restart.reactive=true").job_status == "RUNNING"


def test_a_failure_while_it_runs_on_fewer_waits_for_more_slots_again():
    """All slots are wanted, so it waits until those it has are stable."""
    result = run("faults=[{task-manager: 0, at: 12 s}, {kill: 'profile[0]', at: 45 s}]")
    failed, again = outages(result)[1]

    assert failed == 45
    assert 55 < again < 58
    assert parallelism(result) == [2, 1, 1, 2]
    assert not result.violations


def test_the_restart_strategy_goes_on_counting():
    """Deployments onto the slot that is gone are attempts, and those of another parallelism come on top."""
    limited = (
        "restart.strategy=fixed-delay",
        "restart.delay=1 s",
        "faults=[{task-manager: 0, at: 12 s}, {kill: 'profile[0]', at: 45 s}]",
    )
    spent = run(*limited).recoveries["deployments"].iloc[0]

    assert run(*limited, f"restart.attempts={spent + 1}").job_status == "RUNNING"
    assert "FAILED" in run(*limited, f"restart.attempts={spent}").job_status


def test_a_window_cannot_be_dealt_out_so_the_job_waits():
    window = JOB.replace("service: 2 ms,", "service: 2 ms, window: {tumbling: 3 s, time: processing, fire: 20 us},")
    result = run(job=window)

    assert parallelism(result) == [2]
    assert outages(result)[0][1] > 12 + 62


@pytest.mark.parametrize("seed", range(2))
def test_both_engines_do_the_same_and_nothing_is_lost(seed):
    """Times of losses that are drawn, under every law."""
    losses = f"faults=[{{task-manager: random, every: {{exponential: {15 + 5 * seed} s}}}}]"
    overrides = losses, f"run.seed={seed}", "restart.replacement={exponential: 20 s}", "run.duration=100 s"
    kernel, reference = (run(*overrides, engine=engine) for engine in ("compiled", oracle))

    assert kernel.recoveries.equals(reference.recoveries)
    assert kernel.checkpoints.equals(reference.checkpoints)
    assert not kernel.violations
