"""The waits of an adaptive job, one by one: for slots before it starts, for a cooldown and a checkpoint before it is rescaled."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.faults import Restart
from sim.results.journal import Happening
from sim.runtime.jobmanager.elasticity import Elasticity
from tests.laws.small_jobs import SECOND, chain, scenario, with_options
from tests.runtime.task.fake_slots import FakeClock

RESTART = Restart(
    scheduler="adaptive",
    stabilization_ns=10 * SECOND,
    cooldown_ns=30 * SECOND,
    rescale_stabilization_ns=20 * SECOND,
    resource_wait_ns=300 * SECOND,
)
SECOND_RESTART = 2


class Job:
    """A job on three task managers; those that are lost come back at the times that a test says [s]."""

    def __init__(self, lost=(), absent=(), profile="2.x"):
        self.env = FakeClock()
        self.back_ns = {number: at_s * SECOND for number, at_s in dict(lost).items()}
        self.current, self.log = SECOND_RESTART, []
        base = scenario(chain(1))
        base = replace(base, restart=RESTART, cluster=replace(base.cluster, profile=profile))
        base = with_options(base, interval_ns=5 * SECOND)
        managers = SimpleNamespace(
            returning=self.returning,
            without_any=lambda missing: len(missing) == 3,
            can_do_without=lambda missing: len(missing) < 3,
            absent={number: SimpleNamespace(given_ns=at_s * SECOND) for number, at_s in dict(absent).items()},
        )
        note = lambda happening, detail: self.log.append((self.env.now, happening, detail))  # noqa: E731
        context = SimpleNamespace(env=self.env, scenario=base, note=note)
        outcome = SimpleNamespace(
            rescale=lambda missing: self.log.append((self.env.now // SECOND, "rescaled", set(missing))),
            fail=lambda reason: self.log.append((self.env.now // SECOND, "failed", reason)),
        )
        self.coordinator = SimpleNamespace(machine=SimpleNamespace(latest_completed=4))
        self.elasticity = Elasticity(
            context, managers, self.coordinator, outcome, lambda restart: restart == self.current
        )

    def returning(self):
        return {number: at_ns for number, at_ns in self.back_ns.items() if at_ns > self.env.now}

    def run(self, until_s):
        self.env.run(until_s * SECOND)
        log, self.log[:] = list(self.log), []
        return log


class TestBeforeItStarts:
    def test_a_later_restart_takes_over(self):
        job = Job({0: 60})
        job.elasticity.waits(SECOND_RESTART)
        job.current += 1
        assert job.run(100) == []

    def test_while_none_can_be_spared_it_looks_again_when_the_next_one_is_back(self):
        """At 10 s all are gone."""
        job = Job({0: 60})
        job.elasticity.waits(SECOND_RESTART)
        job.back_ns |= {1: 15 * SECOND, 2: 70 * SECOND}
        assert [(15, "rescaled", {0, 2})] == job.run(100)


class TestWithoutAnySlot:
    @pytest.mark.parametrize(("back_s", "fails"), [(300, False), (301, True)])
    def test_it_fails_in_the_end(self, back_s, fails):
        job = Job({0: back_s, 1: 900, 2: 900})
        job.elasticity.waits(SECOND_RESTART)
        reason = "no slot for as long as it waits for resources"
        failed = [(300 * SECOND, Happening.GIVEN_UP, reason), (300, "failed", reason)]
        assert (failed if fails else []) == job.run(300)


class TestWhileItRuns:
    """Deployed at 3 s without the first task manager, which is back at 50 s."""

    def running(self):
        job = Job(absent={0: 50})
        job.elasticity.executes(SECOND_RESTART, 3 * SECOND)
        return job

    def complete(self, job, at_s):
        before = job.run(at_s)
        job.coordinator.on_completed()
        return before + job.run(at_s)

    def test_it_is_rescaled_with_the_next_checkpoint(self):
        job = self.running()
        assert self.complete(job, 49) == []
        assert [(52, "rescaled", set())] == self.complete(job, 52)

    def test_without_a_checkpoint_it_is_rescaled_when_three_are_overdue(self):
        assert [(65, "rescaled", set())] == self.running().run(200)

    def test_a_cooldown_comes_first(self):
        job = Job(absent={0: 10}, profile="1.20")
        job.elasticity.executes(SECOND_RESTART, 3 * SECOND)
        assert [(33, "rescaled", set())] == job.run(200)
