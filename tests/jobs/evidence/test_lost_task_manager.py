"""A TaskManager of a real Flink was killed: the log of its JobManager, and the same job simulated."""

from dataclasses import replace
from functools import cache

import pytest

from sim.model.faults import Restart
from sim.model.schema.study import load
from tests.jobs.evidence.logs import SECOND, at_recorded_heartbeats, recoveries, seconds_after
from tests.places import DATA

RUN = DATA / "lost-task-managers" / "K7-lost-pressed-aligned"
KILLED = "2026-11-23 02:08:53.217"
(SCENARIO,) = load(RUN / "job.yaml").scenarios


def log_s(pattern):
    return seconds_after(KILLED, RUN / "jobmanager.log", pattern)


NOTICED = r"tasks will be restarted"
DEPLOYING = r"from state RESTARTING to RUNNING"
JOB_MASTER_MISSES, RESOURCE_MANAGER_MISSES = (
    rf"{name} +\[\] - TaskManager with id .* no longer" for name in ("JobMaster", "ResourceManager")
)
RUNS = r"INITIALIZING to RUNNING"


@cache
def recovery(seed):
    """The one recovery of the simulated job, in seconds since the kill."""
    (row,) = recoveries(replace(SCENARIO, run=replace(SCENARIO.run, seed=seed)))
    return row


def test_the_strategy_counts_each_failed_deployment():
    """Flink's own delays: 1 s, half as much again each time, 10 % either way; what comes before and after them takes below 0.1 s."""
    begun, over = log_s(NOTICED), log_s(DEPLOYING)
    default = Restart()
    due = [default.initial_ns / SECOND * float(default.multiplier) ** k for k in range(len(over))]

    assert (default.strategy, len(over)) == ("exponential-delay", 5)
    for delay, first, last in zip(due, begun, over, strict=True):
        assert 0.9 * delay <= last - first <= 1.1 * delay + 0.1


def test_refused_heartbeats_are_an_interval_apart():
    """The defaults: the JobMaster's second heartbeat after the kill counts, and the ResourceManager's, each at its own times."""
    restart = Restart()
    for pattern in (JOB_MASTER_MISSES, RESOURCE_MANAGER_MISSES):
        (missed_s,) = log_s(pattern)
        earliest_s = restart.heartbeat_interval_ns / SECOND * (restart.heartbeat_failures - 1)

        assert earliest_s <= missed_s <= earliest_s + restart.heartbeat_interval_ns / SECOND


def test_the_peers_notice_at_once():
    assert recovery(1)["detected"] == pytest.approx(log_s(NOTICED)[0], abs=0.05)


def test_the_outage_is_predicted_from_the_times_of_heartbeats(monkeypatch):
    """With those of the recording: so many deployments, and all tasks run within a tenth of the time."""
    patterns = {"job-master": JOB_MASTER_MISSES, "resource-manager": RESOURCE_MANAGER_MISSES}
    at_recorded_heartbeats(monkeypatch, SCENARIO, {sender: log_s(pattern)[0] for sender, pattern in patterns.items()})
    row = recovery.__wrapped__(1)

    assert len(log_s(DEPLOYING)) == row["deployments"]
    assert row["running"] == pytest.approx(max(log_s(RUNS)), rel=0.1)
    assert row["restored_checkpoint"] == 14, "that of 70 s is pending, as the 16th of the recording was"


@pytest.mark.slow
def test_the_outage_lies_within_what_chance_makes_of_it():
    rows = [recovery(seed) for seed in range(1, 9)]

    assert {4, 5, 6} >= {row["deployments"] for row in rows} > {5}
    assert 0.9 * min(row["running"] for row in rows) <= max(log_s(RUNS)) <= 1.1 * max(row["running"] for row in rows)
