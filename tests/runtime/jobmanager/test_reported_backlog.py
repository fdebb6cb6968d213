"""Sources that report a backlog: when they do, how an enumerator sees one, and what the coordinator makes of it."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

from sim.model.job import Backlog, Rate, Source
from sim.runtime.jobmanager.coordinator_host import _Enumerator
from tests.invariants.jobs.small_jobs import MS, SECOND, chain, scenario, started
from tests.runtime.task.fake_slots import FakeClock

# Sources that report a backlog: when they do, and what the coordinator makes of it.


HISTORY = (Rate(0, Fraction(2000)), Rate(1 * SECOND, Fraction(100)))
"""Per subtask: 2,000 records that are due at once, and then a hundred a second; the sink serves 500/s."""


def triggers(backlog, in_backlog_ns, *, seconds=9, rates=HISTORY):
    """When checkpoints of an interval of 200 ms are triggered [ms]."""
    job = chain(sink_ns=2 * MS)
    first, *others = job.vertices
    job = replace(job, vertices=(replace(first, source=Source(rates, backlog=backlog)), *others))
    instance = started(
        scenario(job, seconds=seconds, interval_ms=200, interval_during_backlog_ns=in_backlog_ns), "compiled"
    )
    instance.env.run(until=seconds * SECOND)

    assert instance.violations() == ()
    return [stats.trigger_ns // MS for stats in instance.stats.values()]


def test_no_checkpoint_is_triggered_while_history_is_read():
    """Its 4,000 records take the two sinks four seconds; the first trigger had been armed before anybody reported."""
    at = triggers(Backlog(records=2000), 0)

    assert sum(ms < 3500 for ms in at) <= 1
    assert sum(ms >= 4000 for ms in at) > 15


def test_a_source_that_has_ended_is_not_behind():
    """Its last record was due long ago."""
    job = chain(sink_ns=1 * MS)
    first, *others = job.vertices
    bounded = Source((Rate(0, Fraction(2000)),), total=200, backlog=Backlog(lag_ns=10 * MS))
    live = replace(first, name="live", source=Source((Rate(0, Fraction(10)),)))
    reader = replace(others[0], inputs=(*others[0].inputs, replace(others[0].inputs[0], upstream="live")))
    job = replace(job, vertices=(replace(first, source=bounded), live, reader, *others[1:]))
    instance = started(scenario(job, seconds=4, interval_ms=200, interval_during_backlog_ns=0))
    instance.env.run(until=4 * SECOND)

    assert sum(stats.trigger_ns > 1 * SECOND for stats in instance.stats.values()) > 8


# How an enumerator sees a backlog: look by look, as the JobManager is told of it.


class Looking:
    """A source with two subtasks that have to emit 1000 records."""

    def __init__(self, backlog):
        self.served = np.zeros(2, np.int64)
        self.reports = []
        context = SimpleNamespace(
            env=FakeClock(),
            layout=SimpleNamespace(first_task=[0]),
            scenario=SimpleNamespace(job=SimpleNamespace(vertices=[SimpleNamespace(emitting=2)])),
            plane=SimpleNamespace(served=lambda: self.served),
            spec=SimpleNamespace(vertices=[SimpleNamespace(source=SimpleNamespace(total=1000))]),
        )
        self.machine = SimpleNamespace(leader=0, absent=False)
        coordinator = SimpleNamespace(machine=self.machine, dispatch=lambda event: self.reports.append(event.behind))
        self.enumerator = _Enumerator(context, coordinator, 0, backlog)

    def report(self, first, second):
        """What is told at a look at which its two subtasks have come so far."""
        self.served[:] = first, second
        self.reports.clear()
        self.enumerator.look()
        return self.reports


def test_another_job_manager_knows_nothing_until_it_is_told():
    looking = Looking(Backlog(records=100))
    looking.report(0, 0)
    looking.machine.leader = 1
    assert looking.report(0, 0) == [True]
    assert looking.report(0, 0) == []
    looking.machine.leader = 2
    assert looking.report(100, 100) == []
