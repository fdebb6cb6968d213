"""Two TaskManagers of a real Flink were killed: how long tasks began on a process that was fresh."""

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
