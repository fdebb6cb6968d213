"""A limit on recovery on a real Flink: today's setting breaks it and the advised one keeps it, as the simulation says of both."""

import pytest

from sim.model.schema.study import load
from tests.jobs.evidence.logs import recoveries, seconds_after
from tests.places import DATA

RUN = DATA / "lost-task-managers" / "C1-limit-on-recovery"
KILLED = {
    "today": "2026-11-23 23:08:51.600",
    "advised": "2026-11-23 23:14:48.723",
}
HEARTBEATS = {"today": "10 s", "advised": "2 s"}
CAUGHT_UP_S = {"today": 30.8, "advised": 7.7}
LIMIT_S = 20


def log_s(name, pattern):
    return seconds_after(KILLED[name], RUN / f"{name}.log", pattern)


def seeded(name):
    """A recovery by each of eight seeds, which draw when heartbeats come."""
    for seed in range(1, 9):
        overrides = [f"run.seed={seed}", f"restart.heartbeat-interval={HEARTBEATS[name]}"]
        yield from recoveries(load(RUN / "job.yaml", overrides=overrides).scenarios[0])


@pytest.mark.parametrize("name", KILLED)
def test_the_outage_is_that_of_some_phase_of_heartbeats(name):
    deployments, running_s = len(log_s(name, "RESTARTING to RUNNING")), max(log_s(name, "INITIALIZING to RUNNING"))
    alike = [row["running"] for row in seeded(name) if row["deployments"] == deployments]

    assert alike
    assert 0.95 * min(alike) <= running_s <= 1.05 * max(alike)


def test_the_limit_is_broken_today_and_kept_as_advised():
    expected = {name: [row["caught_up"] for row in seeded(name)] for name in KILLED}

    assert min(expected["today"]) > LIMIT_S > max(expected["advised"])
    assert CAUGHT_UP_S["today"] > LIMIT_S > CAUGHT_UP_S["advised"]
    assert min(expected["today"]) <= CAUGHT_UP_S["today"] <= max(expected["today"])
