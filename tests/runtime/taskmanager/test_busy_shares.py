"""The looks at busy threads: when they come, what they average over, and when tasks are slowed down."""

from types import SimpleNamespace

import numpy as np

from sim.runtime.task_manager import Contention
from tests.runtime.task.fake_slots import FakeClock

MS, SECOND = 10**6, 10**9
CELLS = np.dtype([("busy_ns", np.int64), ("served", np.int64)])


class Host:
    """Three threads on two cores.  `share`: of its time that each is busy; `record_ns`: that a record takes on an idle core."""

    def __init__(self, share=1.0, record_ns=None, cores=2, tasks=(1, 2, 3)):
        self.env = FakeClock()
        self.share = share
        self.looks = []
        self.slowed = []
        plane = SimpleNamespace(tasks=self.rows)
        job = SimpleNamespace(vertices=[SimpleNamespace(work_ns=None), SimpleNamespace(work_ns=record_ns)])
        layout = SimpleNamespace(vertex=[0, 1, 1, 1])
        context = SimpleNamespace(env=self.env, plane=plane, layout=layout, scenario=SimpleNamespace(job=job))
        speed = SimpleNamespace(slow=lambda *facts: self.slowed.append((self.env.now, *facts)))
        self.contention = Contention(context, speed, tasks, cores)
        self.contention.start()

    def rows(self, *_):
        self.looks.append(self.env.now)
        rows = np.zeros(4, CELLS)
        rows["busy_ns"], rows["served"] = int(self.share * self.env.now), self.env.now // (10 * MS)
        return rows


def test_the_first_looks_follow_each_other_sooner():
    """100 ms, then twice as long each time, up to a second."""
    host = Host()
    host.env.run(5 * SECOND)

    assert [look // MS for look in host.looks] == [0, 100, 300, 700, 1500, 2500, 3500, 4500]
