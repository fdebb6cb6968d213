"""A TaskManager of a real Flink was killed under the adaptive scheduler, and another started later: the log, and the job simulated."""

from dataclasses import replace

import pytest

from sim.model.schema.study import load
from tests.jobs.evidence.logs import at_recorded_heartbeats, recoveries, seconds_after
from tests.places import DATA

RUN = DATA / "lost-task-managers" / "A1-adaptive-aligned"
KILLED = "2026-11-23 20:15:35.253"
(SCENARIO,) = load(RUN / "job.yaml").scenarios


def log_s(pattern):
    return seconds_after(KILLED, RUN / "jobmanager.log", pattern)


@pytest.fixture
def recorded(monkeypatch):
    """Both recoveries, with the heartbeats of the recording."""
    senders = {"job-master": "JobMaster", "resource-manager": "ResourceManager"}
    missed_s = {
        sender: log_s(rf"{name} +\[\] - TaskManager with id .* no longer")[0] for sender, name in senders.items()
    }
    at_recorded_heartbeats(monkeypatch, SCENARIO, missed_s)
    return recoveries(SCENARIO)


def test_it_goes_on_with_one_slot_when_that_is_stable(recorded):
    """Five deployments onto the dead slot fail, the sixth waits ten seconds for a second slot."""
    *_, last = (at for at in log_s("INITIALIZING to RUNNING") if at < 60)

    assert 6 == len([at for at in log_s("Restoring job") if at < 60]) == recorded[0]["deployments"]
    assert recorded[0]["running"] == pytest.approx(last, rel=0.1)


def test_it_is_rescaled_with_the_first_checkpoint_after_the_slot_is_back(recorded):
    """In both: not when the slot is there, but when the checkpoint is complete; its cooldown is over by then."""
    rescaled, all_run = recorded[1]["failed"], recorded[1]["running"]
    (desired,), (registered,) = (
        log_s("Desired resources are met"),
        log_s("Registering TaskManager with ResourceID tm-9"),
    )

    assert min(abs(at - desired) for at in log_s("Completed checkpoint")) < 0.01
    assert registered < desired < registered + 10
    assert registered < rescaled < registered + 10
    assert all_run - rescaled == pytest.approx(log_s("INITIALIZING to RUNNING")[-1] - desired, abs=1.1)


def test_the_time_on_no_slot_lies_within_what_chance_of_heartbeats_makes_it():
    """Eight seeds: 23 to 33 s; observed 31.1 s."""
    seeded = (replace(SCENARIO, run=replace(SCENARIO.run, seed=seed)) for seed in range(1, 9))
    predicted = [recoveries(scenario)[0]["running"] for scenario in seeded]
    *_, observed = (at for at in log_s("INITIALIZING to RUNNING") if at < 60)

    assert min(predicted) <= observed <= max(predicted)
    assert 22 < min(predicted) < max(predicted) < 34
