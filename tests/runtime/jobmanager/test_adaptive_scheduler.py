"""The adaptive scheduler: what a job runs on, what it waits for before it starts or is rescaled, and lost task managers."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.faults import Restart, TaskManagerLost
from sim.model.job import Distribution
from sim.results.journal import EventType
from sim.runtime.jobmanager.recovery_host import Elasticity
from sim.runtime.jobmanager.task_managers import TaskManagers
from tests.invariants.jobs.small_jobs import SECOND, chain, scenario, with_options
from tests.oracle import oracle
from tests.runtime.jobmanager.adaptive_runs import run
from tests.runtime.task.fake_slots import FakeClock

# A job under the adaptive scheduler: it runs on the task managers that are left, and on others when they come.


def outages(result):
    """Job instance -> (from, to) [s]: how long not all of its tasks ran."""
    return [(row.failed / 1000, row.running / 1000) for row in result.recoveries.itertuples()]


def parallelism(result):
    """By job instance: how many tasks of the profile acknowledged checkpoints."""
    own = result.subtasks[result.subtasks["vertex"] == "profile"]
    jobs = own["x_job"] if "x_job" in own else own["vertex"]  # one instance
    return own.groupby(jobs)["index"].nunique().tolist()


@pytest.mark.parametrize(
    "holds",
    ["job.profile.async-io={latency: 300 ms, capacity: 100}", "job.profile.window={tumbling: 3 s, time: event}"],
)
def test_what_operators_hold_is_dealt_out(holds):
    """Requests under way, and records in windows, go on with one subtask, and with two when the others are back."""
    result = run(holds)

    assert result.recoveries["kind"].tolist() == ["task-manager", "rescale"]
    assert parallelism(result) == [2, 1, 2]
    assert not result.violations


def test_records_behind_at_least_once_barriers_are_no_negative_data_in_flight():
    """A busy reader has counted them when its writers, which are at their barriers, had not sent them."""
    sizes = "job.log.parallelism=4", "job.profile.parallelism=4", "job.log.source.rate=400/s"
    result = run("checkpoint.barriers=at-least-once", "job.profile.service=9 ms", "checkpoint.interval=3 s", *sizes)

    assert result.recoveries["kind"].tolist() == ["task-manager", "rescale"]
    assert not result.violations


def test_timers_of_processing_time_keep_their_subtasks():
    assert parallelism(run("job.profile.window={tumbling: 3 s, time: processing}")) == [2]


def test_before_two_it_is_rescaled_without_a_checkpoint():
    """As soon as the slots are there; records since the latest checkpoint are served again."""
    result = run("cluster.profile=1.20")

    assert pytest.approx(12 + 62, abs=0.3) == outages(result)[1][0]
    assert result.recoveries["replayed_records"].iloc[1] > 0


def test_without_any_slot_it_fails_in_the_end():
    overrides = "cluster.placement=single", "restart.resource-wait=20 s"

    assert "FAILED" in run(*overrides).job_status
    assert run(*overrides, "restart.reactive=true").job_status == "RUNNING"


@pytest.mark.parametrize("seed", range(2))
def test_both_engines_do_the_same_and_nothing_is_lost(seed):
    """Times of losses that are drawn, under every law."""
    losses = f"faults=[{{task-manager: random, every: {{exponential: {15 + 5 * seed} s}}}}]"
    overrides = losses, f"run.seed={seed}", "restart.replacement={exponential: 20 s}", "run.duration=100 s"
    kernel, reference = (run(*overrides, engine=engine) for engine in ("compiled", oracle))

    assert kernel.recoveries.equals(reference.recoveries)
    assert kernel.checkpoints.equals(reference.checkpoints)
    assert not kernel.violations


def test_a_rescaled_job_stays_the_same_job():
    """It claims nothing from itself: the checkpoint that it goes on from is its own, subsumed by later ones."""
    result = run()

    assert len(result.recoveries) == 2
    assert result.recoveries["cause"].iloc[-1].startswith("rescaled by the adaptive scheduler, from checkpoint")
    assert len(result.restores) == 0
    assert len(result.snapshots) == 1
    assert result.violations == ()


# The waits of an adaptive job, one by one: for slots before it starts, for a cooldown and a checkpoint before it is rescaled.


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
            has_slots_without=lambda missing: len(missing) < 3,
            absent={number: SimpleNamespace(offered_ns=at_s * SECOND) for number, at_s in dict(absent).items()},
        )
        note = lambda event_type, detail: self.log.append((self.env.now, event_type, detail))  # noqa: E731
        outcome = SimpleNamespace(
            rescale=lambda missing: self.log.append((self.env.now // SECOND, "rescaled", set(missing))),
            fail=lambda reason: self.log.append((self.env.now // SECOND, "failed", reason)),
        )
        self.coordinator = SimpleNamespace(machine=SimpleNamespace(latest_completed=4))
        context = SimpleNamespace(env=self.env, scenario=base, note=note, outcome=outcome)
        self.elasticity = Elasticity(context, managers, self.coordinator, lambda restart: restart == self.current)

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
        failed = [(300 * SECOND, EventType.GIVEN_UP, reason), (300, "failed", reason)]
        assert (failed if fails else []) == job.run(300)


class TestWhileItRuns:
    """Deployed at 3 s without the first task manager, which is back at 50 s."""

    def running(self):
        job = Job(absent={0: 50})
        job.elasticity.executes(SECOND_RESTART, 3 * SECOND)
        return job

    def end(self, job, at_s, *, completed=True):
        before = job.run(at_s)
        job.coordinator.on_ended(completed=completed)
        return before + job.run(at_s)

    def test_it_is_rescaled_with_the_next_checkpoint(self):
        job = self.running()
        assert self.end(job, 49) == []
        assert [(52, "rescaled", set())] == self.end(job, 52)

    def test_two_failed_checkpoints_rescale_it(self):
        """Those before the slots are back do not count (Executing#onFailedCheckpoint)."""
        job = self.running()
        assert [self.end(job, at_s, completed=False) for at_s in (49, 51)] == [[], []]
        assert [(53, "rescaled", set())] == self.end(job, 53, completed=False)

    def test_without_a_checkpoint_it_is_rescaled_when_three_are_overdue(self):
        assert [(65, "rescaled", set())] == self.running().run(200)

    def test_a_cooldown_comes_first(self):
        job = Job(absent={0: 10}, profile="1.20")
        job.elasticity.executes(SECOND_RESTART, 3 * SECOND)
        assert [(33, "rescaled", set())] == job.run(200)


class TestCheckpointForARescale:
    """FLINK-36753: deployed at 3 s without two task managers, back at 50 s and 60 s; slots are stable at 70 s at the latest."""

    def triggered(self, *, until_s=100, last_s=None, pending=(), back=(50, 60), **changes):
        job = Job(absent=dict(enumerate(back)))
        job.elasticity.options = replace(RESTART, rescale_checkpoint=True, **changes)
        vars(job.coordinator.machine).update(
            triggering=None, pending=pending, last_completion_ns=None if last_s is None else last_s * SECOND
        )
        job.coordinator.dispatch = lambda event: job.log.append((event.now // SECOND, event.kind.value))
        checkpoint = replace(job.elasticity.context.scenario.checkpoint, min_pause_ns=8 * SECOND)
        job.elasticity.context.scenario = replace(job.elasticity.context.scenario, checkpoint=checkpoint)
        job.elasticity.executes(SECOND_RESTART, 3 * SECOND)
        return [row for row in job.run(until_s) if row[1] == "manual"]

    def test_it_is_triggered_when_slots_come_and_when_they_are_stable(self):
        assert self.triggered() == [(50, "manual"), (60, "manual")]
        assert self.triggered(back=(50, 200)) == [(50, "manual"), (70, "manual")]
        assert self.triggered(back=(10, 200)) == [(33, "manual"), (53, "manual")], "after the cooldown"

    def test_it_waits_for_the_pause_and_for_none_that_is_in_progress(self):
        assert self.triggered(last_s=48) == [(56, "manual"), (60, "manual")]
        assert self.triggered(pending=("one",)) == []

    def test_a_job_that_asks_for_none_waits_for_the_next_periodic_one(self):
        """Slots are back at 74 s; the next periodic one is due at 85 s."""
        sparse = "checkpoint.interval=60 s", "run.duration=100 s", "restart.rescale-delay=100 s"
        rescales = [run(*sparse, f"restart.rescale-checkpoint={on}").recoveries.iloc[1] for on in ("false", "true")]

        assert [row["kind"] for row in rescales] == ["rescale", "rescale"]
        assert [row["failed"] // 1000 for row in rescales] == [84, 74]
        assert max(row["replayed_records"] for row in rescales) < 100


# Lost task managers as the JobManager sees them: when it misses them, and which of them it can do without.


def managers(**options):
    """Two of them at 100 s; a lost one is replaced within 60 s."""
    restart = Restart("fixed-delay", replacement=Distribution(60 * SECOND), **options)
    base = replace(scenario(chain(2)), restart=restart)
    return TaskManagers(SimpleNamespace(scenario=base, hosts=(0, 1), env=SimpleNamespace(now=100 * SECOND)))


@pytest.mark.parametrize("provider", ["kubernetes", "yarn"])
def test_flink_asks_for_another_container_once_it_misses_one(provider):
    """A container that falls silent ends not: nobody else starts another in its place, as a supervisor of processes does."""
    lost = []
    for name in (provider, "standalone"):
        fleet = managers(provider=name)
        fleet.lose(TaskManagerLost(0, silent=True), 1)
        lost.append(fleet.slots.lost[1])
    asked, supervised = lost

    assert asked.replaced_ns == asked.released_ns + 60 * SECOND
    assert supervised.replaced_ns == (100 + 60) * SECOND < asked.replaced_ns


def test_an_adaptive_job_knows_what_is_missing_and_until_when():
    fleet = managers(scheduler="adaptive")
    fleet.lose(TaskManagerLost(0, orderly=True), 0)
    assert fleet.returning() == {0: 160 * SECOND}
    fleet.context.env.now = 160 * SECOND
    assert fleet.returning() == {}
