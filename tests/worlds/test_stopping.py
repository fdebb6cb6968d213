"""A job that has made the savepoint it stops with does not go back behind it: its output is visible, and no checkpoint holds it."""

from dataclasses import replace

import pytest

from sim.metrics.journal import Happening
from sim.model.actions import Action
from sim.model.faults import Fault, Kill, When
from sim.runtime.run.simulate import simulate
from tests.laws.small_jobs import MS
from tests.worlds.strategies import base


@pytest.mark.parametrize("how", ["drain", "no-drain"])
def test_a_job_that_fails_while_it_stops_is_not_restarted(how):
    """StopWithSavepointStoppingException is a NonRecoverableError: whoever stops the job goes on from the savepoint."""
    stopping = replace(base(), actions=(Action(1000 * MS, stop=how),))
    sound = simulate(stopping)
    done = max(row.time_ns for row in sound.journal if row.happening is Happening.COMPLETED)
    failing = replace(stopping, faults=(Fault(Kill("sink", 0), When((done + 2 * MS,))),))
    run = simulate(failing)

    assert "FINISHED" == sound.job_status
    assert run.job_status.startswith("FAILED: stopped with a savepoint, then failed")
    assert 0 == len(run.recoveries)
    assert () == run.violations


def test_a_failure_before_the_savepoint_is_complete_restarts_the_job():
    """Nothing is visible yet: the job goes on from its latest checkpoint, and stops no more."""
    failing = replace(base(), actions=(Action(1000 * MS, stop="drain"),), faults=(Fault(Kill("sink", 0), When((1002 * MS,))),))
    run = simulate(failing)

    assert ("FINISHED", 1) == (run.job_status, len(run.recoveries))
    assert () == run.violations
