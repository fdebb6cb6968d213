"""Faults from one job instance to the next: what is still in force goes on, chance goes on where it was."""

from dataclasses import replace

import pytest

from sim.model.faults import Fault, FaultLaw, Rescale, Restart, SlowTask, StorageOutage, When
from sim.model.scenario import Instances
from sim.model.schema.study import loads
from sim.results.journal import Happening
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import MS, SECOND, chain, fault_at, scenario

RESCALED = {"rescale": (Rescale(3 * SECOND, (("sink", 3),)),)}
TWO_JOBS = {"instances": Instances(2)}


def run(chained, *faults, seconds=6):
    base = scenario(chain(2, rate=100), seconds=seconds)
    return simulate(replace(base, restart=Restart("fixed-delay", delay_ns=10 * MS), faults=faults, **chained))


@pytest.mark.parametrize("chained", [RESCALED, TWO_JOBS], ids=["rescaled", "two jobs"])
@pytest.mark.parametrize("lasts", [2 * SECOND, None])
def test_a_slow_task_stays_slow(chained, lasts):
    """Until its time is over; 40 times 2 ms for a record, in up to three subtasks."""
    result = run(chained, fault_at(SlowTask("sink", 40, lasts), 2000))
    sinks = result.series[result.series["vertex"] == "sink"].groupby("time")["numRecordsInPerSecond"].max()

    assert sinks[4.0] <= 3 * 1000 / 80 + 2
    assert (sinks[6.0] > 100) == (lasts is not None)


@pytest.mark.parametrize("chained", [RESCALED, TWO_JOBS], ids=["rescaled", "two jobs"])
def test_an_outage_of_storage_goes_on(chained):
    """The new job cannot read what it begins from before the outage ends."""
    result = run(chained, fault_at(StorageOutage(1500 * MS), 2000))
    completed = result.checkpoints[result.checkpoints["status"] == "COMPLETED"]["latest_ack_timestamp"]

    assert not completed.between(2001, 3499).any()
    assert completed.gt(3500).any(), "then all is well again"
    assert result.violations == ()


def test_a_fault_that_fails_nothing_is_told_all_the_same():
    result = run(
        {},
        Fault(StorageOutage(500 * MS), When(every=FaultLaw(1100 * MS))),
        fault_at(SlowTask("sink", 40, SECOND), 2000),
        seconds=3,
    )

    assert [(entry.time_ns, entry.detail) for entry in result.journal if entry.happening is Happening.FAULT] == [
        (1100 * MS, "no storage for 0.5 s"),
        (2 * SECOND, "sink slower by 40"),
        (2200 * MS, "no storage for 0.5 s"),
    ]


@pytest.mark.parametrize(
    ("provider", "back_s"),
    [
        ("kubernetes", 60 + 30),  # nobody requests a pod before another JobManager leads
        ("standalone", 60),  # the machine comes back by itself, at 50 s
    ],
)
def test_who_replaces_a_task_manager_that_is_lost_without_a_job_manager(provider, back_s):
    text = f"""version: 1
job:
  src: {{source: {{rate: 100/s, record: 500 B}}, parallelism: 2}}
  sink: {{input: {{src: hash}}, parallelism: 2}}
checkpoint: {{interval: 5 s}}
cluster: {{slots: 1}}
restart: {{replacement: 30 s, provider: {provider}}}
faults: [{{job-manager: down-for 40 s, at: 20 s}}, {{task-manager: 1, at: 20 s}}]
run: {{duration: 110 s}}
"""
    (row,) = simulate(loads(text).scenarios[0]).recoveries.to_dict("records")

    assert row["failed"] == pytest.approx(20_000, abs=1)  # from then on nothing is processed
    assert row["running"] / 1000 == pytest.approx(back_s, abs=2)
