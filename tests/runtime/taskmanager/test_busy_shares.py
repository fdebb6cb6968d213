"""The looks at busy threads: when they come, what they average over, and when tasks are slowed down."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from sim.model.randomness import slowdown
from sim.runtime.context import Counters
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


def test_threads_that_have_enough_cores_are_not_looked_at():
    for cores in (3, 4):
        host = Host(cores=cores)
        assert (host.looks, host.env.next_ns) == ([], None)


def test_all_tasks_of_the_host_are_slowed_once_by_as_much_as_cores_are_short():
    host = Host(share=1.0)
    host.env.run(9 * SECOND)

    assert [(100 * MS, task, "cores", Fraction(3, 2)) for task in (1, 2, 3)] == host.slowed


def test_the_first_look_is_believed():
    host = Host(share=0.75)
    host.env.run(100 * MS)

    assert host.contention._shares == [0.75] * 3
    assert Fraction(round(slowdown([0.75] * 3, 2) * 1024), 1024) == host.slowed[0][3]


def test_shares_are_averages_over_some_seconds():
    """A second at half of it among five that count: the mean moves by a fifth of the change."""
    host = Host(share=1.0)
    host.env.run(9500 * MS)
    before = host.rows
    busy_ns = host.rows()["busy_ns"]
    host.contention.context.plane.tasks = lambda *_: before_with(before, busy_ns)
    host.env.run(10500 * MS)

    assert pytest.approx(host.contention._shares) == [0.8] * 3


def before_with(rows, busy_ns):
    """Nobody has been busy since."""
    found = rows()
    found["busy_ns"] = busy_ns
    return found


def test_a_small_change_changes_nothing():
    host = Host(share=1.0)
    host.env.run(SECOND)
    host.slowed.clear()
    host.contention.factor *= 1.005
    host.env.run(2 * SECOND)
    assert host.slowed == []
    host.contention.factor *= 1.02
    host.env.run(3 * SECOND)
    assert len(host.slowed) == 3


def test_waiting_for_answers_is_no_work():
    """Threads count as busy for their records alone: a hundred per second of 4 ms."""
    host = Host(share=1.0, record_ns=4 * MS)
    host.env.run(100 * MS)

    assert pytest.approx(host.contention._shares) == [0.4] * 3


def test_records_take_longer_on_cores_that_are_short():
    host = Host(share=1.0, record_ns=4 * MS)
    host.contention.factor = 1.5
    host.env.run(100 * MS)

    assert pytest.approx(host.contention._shares) == [0.6] * 3


def test_a_thread_is_no_busier_than_it_was():
    host = Host(share=0.1, record_ns=4 * MS)
    host.env.run(100 * MS)

    assert pytest.approx(host.contention._shares) == [0.1] * 3


def test_a_restarted_task_has_not_worked_backwards():
    host = Host(share=1.0)
    host.env.run(SECOND)
    host.share = -1.0
    host.env.run(1500 * MS)

    assert all(0 <= share < 1 for share in host.contention._shares)


class TestTotals:
    @pytest.fixture
    def served(self):
        return np.array([10, 20, 30])

    @pytest.fixture
    def counters(self, served):
        rows = np.zeros(3, np.dtype([("served", np.int64)]))
        rows["served"] = served
        return Counters(SimpleNamespace(served=lambda: served, tasks=lambda *_: rows.copy()), 3)

    def test_what_is_served_again_counts_again(self, counters, served):
        counters.restart({0: 4, 2: 30})
        counters.restart({0: 9})
        assert counters.before.tolist() == [6 + 1, 0, 0]
        assert counters.rows("served")["served"].tolist() == [17, 20, 30]

    def test_earlier_looks_keep_their_numbers(self, counters):
        before = counters.before
        counters.restart({0: 4})
        assert before.tolist() == [0, 0, 0]
