"""Whole runs of tiny scenarios: engines agree, failures end the job, options and service factors reach what they are about."""

from dataclasses import replace

import pytest

import sim
from sim.results.journal import EventType
from sim.runtime.simulate import simulate
from tests.invariants.jobs.small_jobs import MS, UNALIGNED, chain, scenario, with_options
from tests.scenarios import read_scenario

# Whole runs of tiny scenarios: engines agree, failures end the job, options reach what they are about.


TINY = scenario(chain(), UNALIGNED, seconds=1, interval_ms=300)


def journal_of(result, event_type):
    return [row for row in result.journal if row.event_type is event_type]


def too_slow(**options):
    """No checkpoint makes its 50 ms: the sink needs 20 ms per record, with queues in front."""
    return scenario(chain(1, sink_ns=20 * MS), seconds=2, interval_ms=200, timeout_ns=50 * MS, **options)


# ---------------------------------------------------------------------------------------------- a run


def test_an_unknown_engine_is_refused():
    """With the names of those there are."""
    with pytest.raises(ValueError, match="unknown engine 'gpu': one of compiled, interpreted"):
        simulate(TINY, engine="gpu")


# ---------------------------------------------------------------------------------------------- failures


def test_tolerated_failures_let_the_job_go_on():
    """Two tolerated: the third one ends it."""
    result = simulate(replace(too_slow(), checkpoint=replace(too_slow().checkpoint, tolerable_failed=2)))

    assert result.checkpoints["status"].tolist() == ["FAILED"] * 3
    assert [(number, "CHECKPOINT_EXPIRED") for number in (1, 2, 3)] == [
        (row.checkpoint, row.detail) for row in journal_of(result, EventType.ABORTED)
    ]
    assert result.job_status.startswith("FAILED")


def test_no_interval_no_checkpoints():
    """The data moves as ever; tables are empty and have their columns."""
    base = scenario(chain(1), seconds=1)
    result = simulate(with_options(base, interval_ns=None))

    assert (len(result.checkpoints), len(result.subtasks), list(result.journal)) == (0, 0, [])
    assert "persisted_data" in result.checkpoints
    assert (result.tasks["numRecordsIn"] > 0).all()


# ---------------------------------------------------------------------------------------------- options reach their place


# Subtasks of one vertex that need other times for a record: in all engines, several records as one, and after a rescale.


TEXT = """# Who is slow?
version: 1
job:
  src: {source: {rate: 800/s, record: 400 B}, service: 1 us}
  map: {input: {src: rebalance}, parallelism: 2, service: 1 ms}
checkpoint: {interval: 1 s}
run: {duration: 4 s}
"""
SLOW = "job.map.service-factor={1: 2}"


def result(*overrides, engine="compiled"):
    return sim.simulate(read_scenario(TEXT, overrides=list(overrides)), engine=engine)


def each_ms(tasks):
    """Busy time per record of each subtask of the map."""
    tasks = tasks[tasks["vertex"] == "map"]
    return [round(time_ms, 2) for time_ms in tasks["accumulateBusyTimeMs"] / tasks["numRecordsIn"]]


def test_services_of_a_subtask_take_its_factor_times_as_long():
    assert each_ms(result(SLOW).tasks) == [1, 2]
