"""How an enumerator sees a backlog: look by look, as the JobManager is told of it."""

from types import SimpleNamespace

import numpy as np

from sim.model.job import Backlog
from sim.runtime.jobmanager.coordinator_host import _Enumerator
from tests.runtime.task.fake_slots import FakeClock


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
