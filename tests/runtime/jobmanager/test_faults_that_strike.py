"""What a fault does at its times: whom it hits, how long it lasts, what the journal says."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.model.faults import (
    Fault,
    FaultLaw,
    JobManagerDown,
    Kill,
    NetworkOutage,
    Restart,
    SlowTask,
    StorageOutage,
    TaskManagerLost,
    When,
)
from sim.runtime.jobmanager.faults import Faults
from tests.laws.small_jobs import SECOND, chain, scenario
from tests.runtime.fakes import clock

NAMES = [(vertex, index) for vertex in ("source", "stage0", "sink") for index in (0, 1)]
HOSTS = (0, 1, 0, 1, 2, 3)


class Struck:
    """Components that write down what hits them."""

    def __init__(self, *faults, seed=1, before=None, now=0, origin=None):
        base = scenario(chain(2))
        base = replace(
            base, faults=faults, run=replace(base.run, seed=seed), restart=Restart(heartbeat_timeout_ns=50 * SECOND)
        )
        self.log = []
        self.env = clock(begin_ns=now)
        record = lambda name: lambda *facts: self.log.append((self.env.now, name, *facts))  # noqa: E731
        note = lambda happening, detail: self.log.append((self.env.now, happening, detail))  # noqa: E731
        self.context = SimpleNamespace(
            scenario=base,
            env=self.env,
            hosts=HOSTS,
            names=NAMES,
            origin=origin,
            note=note,
            storage=SimpleNamespace(fail_until=record("fail_until")),
            failing_commits={},
        )
        self.recovery = SimpleNamespace(
            fail_tasks=record("fail"),
            lose_host=record("lose"),
            lose_job_manager=record("no JobManager"),
            cluster=SimpleNamespace(task_managers=SimpleNamespace(continue_from=lambda _: None)),
        )
        self.speed = SimpleNamespace(slow=record("slow"))
        self.reachability = SimpleNamespace(cut_off=record("cut off"), continue_from=lambda _: None)
        tasks = [
            SimpleNamespace(suspend=lambda ns, task=task: self.log.append((self.env.now, "suspend", task, ns)))
            for task in range(6)
        ]
        self.faults = Faults(self.context, tasks, self.recovery, self.reachability, self.speed, before)

    def run(self, until_ns=100 * SECOND):
        self.env.run(until=self.env.timeout(until_ns - self.env.now))
        log, self.log[:] = list(self.log), []
        return log


def at(what, *seconds):
    return Fault(what, When(tuple(second * SECOND for second in seconds)))


class TestTimes:
    def test_at_regular_times(self):
        log = Struck(Fault(JobManagerDown(5), When(every=FaultLaw(10 * SECOND)))).run(35 * SECOND)
        assert [row[0] for row in log] == [10 * SECOND, 20 * SECOND, 30 * SECOND]


class TestWhom:
    def test_victims_are_drawn_among_all_tasks(self):
        log = Struck(at(Kill(), *range(1, 90))).run()
        victims = Counter(task for _, _, tasks, _ in log for task in tasks)
        assert set(range(6)) == set(victims)
        assert max(victims.values()) < 30


class TestStorage:
    def test_the_longest_outage_goes_on(self):
        first = Struck(at(StorageOutage(5 * SECOND), 1), at(StorageOutage(SECOND), 2))
        first.run(4 * SECOND)
        assert Struck(before=first.faults, now=4 * SECOND).log == [(4 * SECOND, "fail_until", 6 * SECOND)]


class TestNetworks:
    @pytest.mark.parametrize(("lasts_s", "is_lost"), [(49, False), (50, True)])
    def test_one_that_outlasts_the_heartbeat_is_a_loss(self, lasts_s, is_lost):
        log = Struck(at(NetworkOutage(lasts_s * SECOND, 1), 1)).run()
        assert is_lost == ((SECOND, "lose", 1, TaskManagerLost(1, silent=True)) in log)
        assert is_lost != any(row[1] == "suspend" for row in log)


class TestSlowTasks:
    def factors(self, struck, until_ns=100 * SECOND):
        return [(row[0] // SECOND, row[2], row[4]) for row in struck.run(until_ns) if row[1] == "slow"]

    @pytest.mark.parametrize(("lasts_s", "left"), [(3, 0), (4, 0), (5, 1), (None, 1)])
    def test_it_is_slow_in_the_next_job_too(self, lasts_s, left):
        """The next job begins at 5 s."""
        slow = SlowTask("sink", 4, None if lasts_s is None else lasts_s * SECOND, 0)
        first = Struck(at(slow, 1))
        first.run(5 * SECOND)
        second = Struck(before=first.faults, now=5 * SECOND)
        expected = [(5, 4, Fraction(4))] * left + [(6, 4, Fraction(1))] * (left and lasts_s is not None)
        assert expected == self.factors(second)
