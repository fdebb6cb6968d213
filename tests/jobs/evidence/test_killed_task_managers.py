"""TaskManagers of a real Flink were killed: the log of its JobManager, and the same job simulated."""

from dataclasses import dataclass, replace
from functools import cached_property

import pytest

from sim.model.faults import Restart
from sim.model.schema.study import load
from tests.jobs.evidence.logs import SECOND, at_recorded_heartbeats, recoveries, seconds_after
from tests.places import DATA

MISSES = {"job-master": r"jobmaster\.JobMaster .* no longer", "resource-manager": r"ResourceManager .* no longer"}
NOTICED, DEPLOYING, RUNNING = "tasks will be restarted", "from state RESTARTING to RUNNING", "INITIALIZING to RUNNING"


@dataclass(frozen=True)
class Run:
    """A recorded run, and the time of the kill."""

    name: str
    killed: str

    def log_s(self, pattern):
        return seconds_after(self.killed, self.folder / "jobmanager.log", pattern)

    @property
    def folder(self):
        return DATA / "lost-task-managers" / self.name

    @cached_property
    def scenario(self):
        (scenario,) = load(self.folder / "job.yaml").scenarios
        return scenario

    def recoveries(self, monkeypatch, **restart):
        """The recoveries of the simulated job whose heartbeats come when the recorded ones came, in seconds since the kill."""
        missed_s = {sender: self.log_s(pattern)[0] for sender, pattern in MISSES.items()}
        at_recorded_heartbeats(monkeypatch, self.scenario, missed_s)
        return recoveries(replace(self.scenario, restart=replace(self.scenario.restart, **restart)))

    def seeded(self):
        """The first recovery by each of eight seeds, which draw when heartbeats come."""
        runs = (replace(self.scenario, run=replace(self.scenario.run, seed=seed)) for seed in range(1, 9))
        return [recoveries(scenario)[0] for scenario in runs]


PRESSED = Run("K7-lost-pressed-aligned", "2026-11-23 02:08:53.217")
ADAPTIVE = Run("A1-adaptive-aligned", "2026-11-23 20:15:35.253")
FRESH = [
    Run("L1-lost-calm-aligned", "2026-11-23 13:07:19.103"),
    Run("L2-lost-pressed-aligned", "2026-11-23 13:12:20.373"),
]


def test_the_strategy_counts_each_failed_deployment():
    """Flink's own delays: 1 s, half as much again each time, 10 % either way; what comes before and after them takes below 0.1 s."""
    begun, over = PRESSED.log_s(NOTICED), PRESSED.log_s(DEPLOYING)
    default = Restart()
    due = [default.initial_ns / SECOND * float(default.multiplier) ** k for k in range(len(over))]

    assert (default.strategy, len(over)) == ("exponential-delay", 5)
    for delay, first, last in zip(due, begun, over, strict=True):
        assert 0.9 * delay <= last - first <= 1.1 * delay + 0.1


@pytest.mark.parametrize("pattern", MISSES.values(), ids=MISSES)
def test_refused_heartbeats_are_an_interval_apart(pattern):
    """The defaults: the JobMaster's second heartbeat after the kill counts, and the ResourceManager's, each at its own times."""
    restart = Restart()
    missed_s = PRESSED.log_s(pattern)[0]
    earliest_s = restart.heartbeat_interval_ns / SECOND * (restart.heartbeat_failures - 1)

    assert earliest_s <= missed_s <= earliest_s + restart.heartbeat_interval_ns / SECOND


def test_the_outage_is_predicted_from_the_times_of_heartbeats(monkeypatch):
    """With those of the recording: so many deployments, and all tasks run within a tenth of the time.  Peers notice at once."""
    (row,) = PRESSED.recoveries(monkeypatch)

    assert row["detected"] == pytest.approx(PRESSED.log_s(NOTICED)[0], abs=0.05)
    assert len(PRESSED.log_s(DEPLOYING)) == row["deployments"]
    assert row["running"] == pytest.approx(max(PRESSED.log_s(RUNNING)), rel=0.1)
    assert row["restored_checkpoint"] == 14, "that of 70 s is pending, as the 16th of the recording was"


@pytest.mark.slow
def test_the_outage_lies_within_what_chance_makes_of_it():
    rows, observed_s = PRESSED.seeded(), max(PRESSED.log_s(RUNNING))

    assert {4, 5, 6} >= {row["deployments"] for row in rows} > {5}
    assert 0.9 * min(row["running"] for row in rows) <= observed_s <= 1.1 * max(row["running"] for row in rows)


@pytest.mark.parametrize("run", FRESH, ids=lambda run: run.name)
def test_all_tasks_run_when_the_fresh_process_has_started(run, monkeypatch):
    """Told from the first start of each job; without it tasks run when they are deployed, a sixth too early."""
    (row,), (at_once,) = run.recoveries(monkeypatch), run.recoveries(monkeypatch, fresh_start_ns=0)
    observed_s = max(run.log_s(RUNNING))

    assert len(run.log_s(DEPLOYING)) == row["deployments"]
    assert row["running"] == pytest.approx(observed_s, rel=0.1)
    assert at_once["running"] < 0.9 * observed_s


# ---- The adaptive scheduler.


def last_start_s():
    *_, last = (at for at in ADAPTIVE.log_s(RUNNING) if at < 60)
    return last


def test_it_goes_on_with_one_slot_when_that_is_stable(monkeypatch):
    """Five deployments onto the dead slot fail, the sixth waits ten seconds for a second slot."""
    first, _ = ADAPTIVE.recoveries(monkeypatch)

    assert 6 == len([at for at in ADAPTIVE.log_s("Restoring job") if at < 60]) == first["deployments"]
    assert first["running"] == pytest.approx(last_start_s(), rel=0.1)


def test_it_is_rescaled_with_the_first_checkpoint_after_the_slot_is_back(monkeypatch):
    """In both: not when the slot is there, but when the checkpoint is complete; its cooldown is over by then."""
    _, second = ADAPTIVE.recoveries(monkeypatch)
    rescaled, all_run = second["failed"], second["running"]
    (desired,), (registered,) = (
        ADAPTIVE.log_s("Desired resources are met"),
        ADAPTIVE.log_s("Registering TaskManager with ResourceID tm-9"),
    )

    assert min(abs(at - desired) for at in ADAPTIVE.log_s("Completed checkpoint")) < 0.01
    assert registered < desired < registered + 10
    assert registered < rescaled < registered + 10
    assert all_run - rescaled == pytest.approx(ADAPTIVE.log_s(RUNNING)[-1] - desired, abs=1.1)


def test_the_time_on_no_slot_lies_within_what_chance_of_heartbeats_makes_it():
    """Eight seeds: 23 to 33 s; observed 31.1 s."""
    predicted = [row["running"] for row in ADAPTIVE.seeded()]

    assert min(predicted) <= last_start_s() <= max(predicted)
    assert 22 < min(predicted) < max(predicted) < 34
