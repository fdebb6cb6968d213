"""Two TaskManagers of a real Flink were killed: who heard of it from whom, and how long tasks began on a process that was fresh."""

from dataclasses import replace

import pytest

from sim.model.schema.study import load
from tests.jobs.evidence.logs import at_recorded_heartbeats, recoveries, seconds_after
from tests.places import DATA

RUNS = DATA / "lost-task-managers"
KILLED = {
    "L1-lost-calm-aligned": "2026-11-23 13:07:19.103",
    "L2-lost-pressed-aligned": "2026-11-23 13:12:20.373",
}
RUNNING, DEPLOYING = "INITIALIZING to RUNNING", "from state RESTARTING to RUNNING"
MISSES = {"job-master": r"jobmaster\.JobMaster .* no longer", "resource-manager": r"ResourceManager .* no longer"}


def log_s(name, pattern):
    return seconds_after(KILLED[name], RUNS / name / "jobmanager.log", pattern)


def recovery(name, monkeypatch, **restart):
    """The recovery of the simulated job whose heartbeats come when the recorded ones came, in seconds since the kill."""
    (scenario,) = load(RUNS / name / "job.yaml").scenarios
    at_recorded_heartbeats(
        monkeypatch, scenario, {sender: log_s(name, pattern)[0] for sender, pattern in MISSES.items()}
    )
    (row,) = recoveries(replace(scenario, restart=replace(scenario.restart, **restart)))
    return row


@pytest.mark.parametrize("name", KILLED)
def test_all_tasks_run_when_the_fresh_process_has_started(name, monkeypatch):
    """Told from the first start of each job; without it tasks run when they are deployed, a sixth too early."""
    row = recovery(name, monkeypatch)
    observed_s = max(log_s(name, RUNNING))

    assert len(log_s(name, DEPLOYING)) == row["deployments"]
    assert row["running"] == pytest.approx(observed_s, rel=0.1)
    assert recovery(name, monkeypatch, fresh_start_ns=0)["running"] < 0.9 * observed_s


def test_tasks_on_the_process_that_was_there_begin_at_once():
    """Half of them run before those on the fresh process initialize."""
    name = "L2-lost-pressed-aligned"
    last_s = max(log_s(name, DEPLOYING))
    running = [at - last_s for at in log_s(name, RUNNING) if at > last_s]

    assert [at < 1 for at in running] == [True] * 3 + [False] * 3


def test_the_jobmaster_hears_it_from_the_resourcemanager():
    """In one run its own heartbeat was the first that was missed, in the other the ResourceManager's."""
    second_hand, own = (
        {sender: log_s(name, pattern)[0] for sender, pattern in MISSES.items()} for name in reversed(KILLED)
    )

    assert 0 <= second_hand["job-master"] - second_hand["resource-manager"] < 0.1
    assert own["job-master"] < own["resource-manager"] - 1
