"""How an enumerator sees a backlog: look by look, as the JobManager is told of it."""

from types import SimpleNamespace

import numpy as np

from sim.model.job import Backlog
from sim.runtime.jobmanager.coordinator_host import _Enumerator
from tests.runtime.task.fake_slots import FakeClock

LOG = SimpleNamespace(total=1000, due=lambda ordinal: ordinal)


class Looking:
    """A source with three subtasks behind another vertex, the last of them silent: a record is due every ns, 1000 in all."""

    def __init__(self, backlog):
        self.env = FakeClock()
        self.served = np.zeros(5, np.int64)
        self.reports = []
        layout = SimpleNamespace(first_task=[0, 1])
        vertices = [None, SimpleNamespace(emitting=2)]
        context = SimpleNamespace(
            env=self.env,
            layout=layout,
            scenario=SimpleNamespace(job=SimpleNamespace(vertices=vertices)),
            plane=SimpleNamespace(served=lambda: self.served),
            spec=SimpleNamespace(vertices=[None, SimpleNamespace(source=LOG)]),
        )
        self.machine = SimpleNamespace(leader=0, absent=False)
        coordinator = SimpleNamespace(
            machine=self.machine, dispatch=lambda event: self.reports.append((event.source, event.behind))
        )
        self.enumerator = _Enumerator(context, coordinator, 1, backlog)

    def report(self, first, second, now=None):
        """What is told at a look at which its two subtasks have come so far."""
        self.served[1:3] = first, second
        self.env.now = self.env.now if now is None else now
        self.reports.clear()
        self.enumerator.look()
        return [is_behind for _, is_behind in self.reports]


def test_another_job_manager_knows_nothing_until_it_is_told():
    looking = Looking(Backlog(records=100))
    looking.report(0, 0)
    looking.machine.leader = 1
    assert looking.report(0, 0) == [True]
    assert looking.report(0, 0) == []
    looking.machine.leader = 2
    assert looking.report(100, 100) == []
