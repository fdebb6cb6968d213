"""What a fault does at its times: whom it hits, how long it lasts, what the journal says."""

from dataclasses import replace
from types import SimpleNamespace

from sim.model.faults import (
    Fault,
    FaultLaw,
    JobManagerDown,
    Restart,
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
            lose_task_manager=record("lose"),
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
