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
from sim.results.journal import Happening
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
    def test_a_fault_strikes_at_each_of_its_times(self):
        struck = Struck(at(JobManagerDown(5), 3, 9), at(JobManagerDown(7), 4))
        assert struck.run() == [
            (3 * SECOND, "no JobManager", 5),
            (4 * SECOND, "no JobManager", 7),
            (9 * SECOND, "no JobManager", 5),
        ]

    def test_again_and_again_after_times_that_are_drawn(self):
        every = Fault(JobManagerDown(5), When(every=FaultLaw(10 * SECOND, "exponential")))
        log = Struck(every, every).run(400 * SECOND)
        times = [row[0] for row in log]
        assert 50 < len(times) < 110, "twice once in 10 s"
        assert len(set(times)) == len(times), "each fault has draws of its own"
        assert times != [row[0] for row in Struck(every, every, seed=2).run(400 * SECOND)]

    def test_at_regular_times(self):
        log = Struck(Fault(JobManagerDown(5), When(every=FaultLaw(10 * SECOND)))).run(35 * SECOND)
        assert [row[0] for row in log] == [10 * SECOND, 20 * SECOND, 30 * SECOND]

    def test_what_struck_the_job_before_does_not_strike_again(self):
        origin = SimpleNamespace(at_ns=4 * SECOND)
        struck = Struck(at(JobManagerDown(5), 3, 4, 5), now=4 * SECOND, origin=origin)
        assert [row[0] for row in struck.run()] == [5 * SECOND]


class TestWhom:
    @pytest.mark.parametrize(
        ("what", "tasks"),
        [(Kill("stage0"), [2, 3]), (Kill("stage0", 1), [3]), (Kill("sink", 0), [4]), (Kill("sink", 7), [])],
        ids=str,
    )
    def test_a_vertex_or_one_subtask_is_killed(self, what, tasks):
        assert [(SECOND, "fail", tasks, "killed")] == Struck(at(what, 1)).run()

    def test_victims_are_drawn_among_all_tasks(self):
        log = Struck(at(Kill(), *range(1, 90))).run()
        victims = Counter(task for _, _, tasks, _ in log for task in tasks)
        assert set(range(6)) == set(victims)
        assert max(victims.values()) < 30

    def test_task_managers_are_drawn_among_all(self):
        log = Struck(at(TaskManagerLost(None), *range(1, 60)), at(TaskManagerLost(2), 70)).run()
        assert {0, 1, 2, 3} == {row[2] for row in log[:-1]}
        assert (70 * SECOND, "lose", 2, TaskManagerLost(2)) == log[-1]

    def test_the_next_job_goes_on_drawing(self):
        kills = at(Kill(), 1, 2, 3, 11, 12, 13)
        first = Struck(kills)
        begun = first.run(10 * SECOND)
        second = Struck(kills, before=first.faults, now=10 * SECOND, origin=SimpleNamespace(at_ns=10 * SECOND))
        assert [row[2] for row in Struck(kills).run()] == [row[2] for row in begun + second.run()]


class TestStorage:
    def test_storage_is_away_for_a_time(self):
        assert (Struck(at(StorageOutage(2500 * 10**6), 1)).run()) == [
            (SECOND, Happening.FAULT, "no storage for 2.5 s"),
            (SECOND, "fail_until", 3500 * 10**6),
        ]

    @pytest.mark.parametrize(("begun_s", "resumes"), [(2, True), (3, False), (4, False)])
    def test_an_outage_outlasts_a_job(self, begun_s, resumes):
        first = Struck(at(StorageOutage(2 * SECOND), 1))
        first.run(begun_s * SECOND)
        second = Struck(before=first.faults, now=begun_s * SECOND)
        assert ([(begun_s * SECOND, "fail_until", 3 * SECOND)] if resumes else []) == second.log

    def test_the_longest_outage_goes_on(self):
        first = Struck(at(StorageOutage(5 * SECOND), 1), at(StorageOutage(SECOND), 2))
        first.run(4 * SECOND)
        assert Struck(before=first.faults, now=4 * SECOND).log == [(4 * SECOND, "fail_until", 6 * SECOND)]


class TestNetworks:
    def test_a_short_outage_makes_a_host_wait(self):
        struck = Struck(at(NetworkOutage(2 * SECOND, 1), 1))
        assert struck.run() == [
            (SECOND, Happening.FAULT, "task manager 1 cut off for 2 s"),
            (SECOND, "cut off", 1, 3 * SECOND),
            (SECOND, "suspend", 1, 2 * SECOND),
            (SECOND, "suspend", 3, 2 * SECOND),
        ]

    @pytest.mark.parametrize(("lasts_s", "is_lost"), [(49, False), (50, True)])
    def test_one_that_outlasts_the_heartbeat_is_a_loss(self, lasts_s, is_lost):
        log = Struck(at(NetworkOutage(lasts_s * SECOND, 1), 1)).run()
        assert is_lost == ((SECOND, "lose", 1, TaskManagerLost(1, silent=True)) in log)
        assert is_lost != any(row[1] == "suspend" for row in log)


class TestSlowTasks:
    def factors(self, struck, until_ns=100 * SECOND):
        return [(row[0] // SECOND, row[2], row[4]) for row in struck.run(until_ns) if row[1] == "slow"]

    def test_a_vertex_is_slow_for_a_time(self):
        struck = Struck(at(SlowTask("sink", 4, 3 * SECOND), 1))
        assert [(1, 4, Fraction(4)), (1, 5, Fraction(4)), (4, 4, Fraction(1)), (4, 5, Fraction(1))] == self.factors(
            struck
        )

    def test_a_subtask_is_slow_to_the_end(self):
        struck = Struck(at(SlowTask("sink", 4, None, 1), 1))
        assert [
            (SECOND, Happening.FAULT, "sink slower by 4"),
            (SECOND, "slow", 5, "fault", Fraction(4)),
        ] == struck.run()

    def test_the_largest_factor_counts(self):
        struck = Struck(
            at(SlowTask("sink", 4, 9 * SECOND, 0), 1),
            at(SlowTask("sink", 2, 3 * SECOND, 0), 2),
            at(SlowTask("sink", 8, SECOND, 0), 3),
        )
        assert [(second, factor) for second, _, factor in self.factors(struck)] == [
            (1, 4),
            (2, 4),
            (3, 8),
            (4, 4),
            (5, 4),
            (10, 1),
        ]

    @pytest.mark.parametrize(("lasts_s", "left"), [(3, 0), (4, 0), (5, 1), (None, 1)])
    def test_it_is_slow_in_the_next_job_too(self, lasts_s, left):
        """The next job begins at 5 s."""
        slow = SlowTask("sink", 4, None if lasts_s is None else lasts_s * SECOND, 0)
        first = Struck(at(slow, 1))
        first.run(5 * SECOND)
        second = Struck(before=first.faults, now=5 * SECOND)
        expected = [(5, 4, Fraction(4))] * left + [(6, 4, Fraction(1))] * (left and lasts_s is not None)
        assert expected == self.factors(second)
