"""Jobs that do not get on: restarts without end, how far a restarted job has come, checkpoints that hang as Flink's do."""

from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

from sim.model.schema.study import load
from sim.results.tables import TOO_MANY_FAILED, RecoveryStats
from sim.runtime.job_instance import JobInstance
from sim.runtime.sampling import CatchUp
from sim.runtime.simulate import simulate
from sim.runtime.standstill import Queues, endless
from tests.invariants.jobs.small_jobs import chain
from tests.places import DATA

# A job that restarts forever is told as one; one that gets somewhere, or that somebody else holds up, is not.


WORLD = DATA / "worlds/flush-never-ends.yaml"


def test_a_flush_that_can_never_be_written():
    """How often, from where, why, and what to change."""
    (world,) = load(WORLD).scenarios
    outcome = simulate(world).job_status

    assert outcome.startswith(
        "RESTARTING FOR EVER: 29 times in a row from the beginning because of 'flush: no answer within 0.04 s"
    )
    assert outcome.endswith("write less per checkpoint, or give a request more time or attempts (storage.retry)")


def test_checkpoints_that_hang_need_no_more_time():
    """Their tasks wait for each other, and do so again after each restart."""
    changes = [
        "checkpoint.tolerable-failed=0",
        "checkpoint.timeout=300 ms",
        "job.s0.source.records-per-subtask=200",
        "run.duration=60 s",
    ]
    (world,) = load(WORLD.with_name("early-barrier-before-a-forced-alignment.yaml"), changes).scenarios
    outcome = simulate(world).job_status

    assert outcome.startswith(
        "RESTARTING FOR EVER: 8 times in a row from the beginning because of 'tolerable failed checkpoints exceeded"
    )
    assert outcome.endswith("; more time does not help, as tasks wait for each other: take aligned barriers")


def test_what_a_restart_commits_again_is_no_progress():
    """It was visible before; the restores after it fail all the same."""
    (world,) = load(WORLD.with_name("restore-never-ends.yaml")).scenarios
    outcome = simulate(world).job_status

    assert outcome.startswith("RESTARTING FOR EVER: ")
    assert "from checkpoint 1 because of 'restore: no answer within 0.15 s (2 attempts)'" in outcome


FLUSH, EXPIRED = "flush: no answer within 0.4 s", "tolerable failed checkpoints exceeded: CHECKPOINT_EXPIRED"


def verdict(rows, now_ns=0, stats=MappingProxyType({})):
    """What is said of these restarts."""
    storage = SimpleNamespace(attempts=SimpleNamespace(down_until_ns=0))
    context = SimpleNamespace(
        stats=stats, commits=[], env=SimpleNamespace(now=now_ns), storage=storage, failing_commits={}
    )
    return endless(context, rows)


def restart(n, what=FLUSH, kind="task", checkpoint=3):
    return RecoveryStats(n, kind, what, 1000 * n, 1000 * n, 1, checkpoint=checkpoint)


@pytest.mark.parametrize("other", [restart(3, checkpoint=2), restart(3, "killed"), restart(3, kind="job-manager")])
def test_another_checkpoint_or_a_fault_of_others_ends_the_row(other):
    rows = [restart(n) for n in range(1, 8)]

    assert verdict(rows).startswith("RESTARTING FOR EVER: 7 times in a row from checkpoint 3 ")
    assert verdict([other if row.number == 3 else row for row in rows]) is None


@pytest.mark.parametrize(("completed_ns", "times"), [(1999, 6), (2000, 5), (3000, 0)])
def test_what_was_before_the_last_progress_does_not_count(completed_ns, times):
    done = {3: SimpleNamespace(status="COMPLETED", completed_ns=completed_ns, standstill="")}
    told = verdict([restart(n) for n in range(1, 8)], stats=done)

    assert (told or " 0 times").split(" times")[0].endswith(f" {times}")


@pytest.mark.parametrize(
    ("running_ns", "now_ns", "continues"), [(5300, 6600, False), (5300, 6800, True), (-1, 90_000, False)]
)
def test_a_job_that_outlives_its_restarts_goes_on(running_ns, now_ns, continues):
    """It ran for 700 ns after each restart, then for twice as long and more; no checkpoint is complete.  Or it is still being restored."""
    rows = [restart(n) for n in range(1, 6)]
    for row in rows:
        row.running_ns = running_ns if row.number == 5 else row.failed_ns + 300

    assert continues == (verdict(rows, now_ns) is None)


def test_a_job_that_never_ran_between_its_restarts_goes_on_once_it_runs():
    """There is nothing to outlive: no restart before the last one got that far."""
    rows = [restart(n) for n in range(1, 6)]
    for row in rows:
        row.running_ns = 5300 if row.number == 5 else -1

    assert verdict(rows, 5300) is not None
    assert verdict(rows, 5301) is None


def test_causes_may_take_turns():
    """Now a request takes too long, now a checkpoint: nothing is completed either.  The commonest is told first, in its last words."""
    later = FLUSH.replace("0.4", "0.5")
    rows = [restart(1), restart(2, later), *(restart(n, EXPIRED, "checkpoints") for n in (3, 4, 5))]

    assert (
        f"because of 3 x '{EXPIRED}' and 2 x '{later}', with nothing completed in between; give checkpoints more time"
        in verdict(rows)
    )
    assert verdict(rows).endswith(
        "or, if later ones complete, tolerate failures (tolerable-failed), and write less per checkpoint,"
        " or give a request more time or attempts (storage.retry)"
    )


def test_no_timeout_helps_checkpoints_whose_files_cannot_be_written():
    """Requests that fail fail before the timeout of the checkpoint."""
    exceeded = f"{TOO_MANY_FAILED}: CHECKPOINT_ASYNC_EXCEPTION"
    rows = [restart(n, exceeded, "checkpoints") for n in range(1, 6)]

    assert verdict(rows).endswith(
        "; ask storage for less at once, or give a request more time or attempts (storage.retry)"
    )


# How far a restarted job has come, number by number: what it repeats, how far it is from where it was, and when it is looked at again.


class Usual:
    """What usually waits: nothing is known of it unless a test says so."""

    def __init__(self, waiting=None, in_flight_mean=None, due=0):
        self.catching_up = 0
        self.due = due
        self._waiting, self._in_flight_mean = waiting, in_flight_mean

    def waiting(self, _):
        return self._waiting

    def in_flight_mean(self, _):
        return self._in_flight_mean

    def in_log(self, task, now, emitted):
        return max(0, self.due - emitted)


def context(served, in_flight=(0,) * 6, origin=None):
    plane = SimpleNamespace(served=lambda: np.array(served), in_flight=lambda: np.array(in_flight))
    layout = SimpleNamespace(vertex=[0, 0, 1, 1, 2, 2], task_gates=[(), (), (0,), (1,), (2,), (3,)])
    return SimpleNamespace(
        plane=plane,
        layout=layout,
        scenario=SimpleNamespace(job=chain(2)),
        env=SimpleNamespace(now=50),
        origin=origin,
        log=lambda _: SimpleNamespace(segments=["at a rate"]),
    )


def begun(served=(90, 80, 60, 70, 30, 40), at=(50, 60, 40, 40, 10, 15), usual=None, **options):
    """A restart: where the tasks stood, and where their checkpoint puts them."""
    parts = {task: SimpleNamespace(position=SimpleNamespace(served=position)) for task, position in enumerate(at)}
    stats = RecoveryStats(1, "task", "killed", 40, 45, 6)
    return CatchUp(context(served, **options), stats, parts, usual or Usual())


def test_a_rescaled_job_has_to_empty_its_logs():
    """It is rescaled because it was overloaded: being back at that backlog is not what the user waits for."""
    overloaded = Usual(waiting=500.0, due=590)
    snapshot = SimpleNamespace(served=np.array((90, 80, 60, 70, 30, 40)))

    assert begun(usual=overloaded)._distance() == 500 + 510 - 500
    assert begun(usual=overloaded, origin=snapshot)._distance() == 500 + 510


def test_sinks_serve_again_what_they_had_served_since():
    assert begun().stats.served_again == 20 + 25


@pytest.mark.parametrize(
    ("served", "usual", "in_flight", "distance"),
    [
        ((90, 80), Usual(0.0, 0.0), 0, 0),
        ((85, 70), Usual(0.0, 0.0), 0, 15),
        ((99, 70), Usual(0.0, 0.0), 0, 10),
        ((90, 80), Usual(5.0, 0.0, due=93), 0, 3 + 13 - 5),
        ((90, 80), Usual(50.0, 0.0, due=93), 0, 0),
        ((90, 80), Usual(0.0, 4.0), 2, 2 * 6 - 4),
        ((90, 80), Usual(0.0, 40.0), 2, 0),
    ],
    ids=["there", "behind", "one is ahead", "logs are longer", "logs are shorter", "more in flight", "less in flight"],
)
def test_the_distance_counts_sources_logs_and_what_is_in_flight(served, usual, in_flight, distance):
    progress = begun(usual=usual)
    progress.context = context((*served, 0, 0, 0, 0), in_flight=(in_flight,) * 6)

    assert distance == progress._distance()


# Checkpoints hang where Flink's do, and the run names the tasks that wait for each other.
#
# Real Flink 2.3 ran the same four diamonds.  With both pointwise edges no checkpoint completed, and no further record was
# read, even after three expired checkpoints.  With one of the two edges, or none, all completed.


STANDSTILL_WORLD = DATA / "worlds/early-barrier-before-a-forced-alignment.yaml"
BEHIND_FULL_OUTPUTS = "for barriers behind full outputs, which nobody reads before these barriers arrive"
CIRCLE = f"'m3' waits {BEHIND_FULL_OUTPUTS}"


def read(file, *changes):
    """The job with few buffers, which 1.x has options for, and the first checkpoint as soon as in 2.x."""
    (scenario,) = load(file, changes).scenarios
    return replace(scenario, cluster=replace(scenario.cluster, profile="2.x"))


def ran(*changes, engine="compiled"):
    return simulate(read(STANDSTILL_WORLD, *changes), engine=engine)


def test_a_barrier_can_be_held_up_further_back():
    """The vertex the barrier is missing from is idle itself: the one before it cannot write."""
    behind = (
        "job.map={input: {m1: forward}, record: 100 B}",
        "job.m3.input={map: {ship: hash, service: 500 us}, m2: rescale}",
    )
    result = ran(*behind, "job.s0.source.records-per-subtask=200")

    assert result.checkpoints["x_standstill"].tolist() == [CIRCLE] * 3


def test_what_is_being_stored_is_only_slow():
    """Captured buffers are on their way when the checkpoint expires: nobody knows what comes of it."""
    slow, slower = (ran(f"storage.bandwidth={rate}", "storage.inline-threshold=0 B") for rate in ("30 kB/s", "1 kB/s"))

    assert [result.checkpoints["x_standstill"][0] for result in (slow, slower)] == [CIRCLE, ""]


def test_a_task_that_aligns_can_have_a_full_output():
    """m1 has barriers too, and it is its output that holds it up."""
    scenario = read(STANDSTILL_WORLD.with_name("aligning-with-a-full-output.yaml"))
    assert ["", f"'m1' and 'k0' wait {BEHIND_FULL_OUTPUTS}"] == simulate(scenario).checkpoints["x_standstill"].tolist()


# ------------------------------------------------------------------------------------------- one instant of a plane


class Still:
    """The tables of a plane at one instant, to be changed."""

    def __init__(self, plane):
        self._tables = plane.channels(), plane.partitions(), plane.tasks()
        self.position = plane.position

    def channels(self, *_):
        return self._tables[0]

    def partitions(self):
        return self._tables[1]

    def tasks(self, *_):
        return self._tables[2]


@pytest.fixture
def hung():
    """(layout, plane) of a job that hangs; m3 reads one more source, whose barrier is there."""
    scenario = read(STANDSTILL_WORLD, "job.late={source: {record: 100 B, rate: 1/s}}", "job.m3.input.late=hash")
    instance = JobInstance(scenario, "compiled")
    instance.start()
    instance.env.run(until=instance.env.timeout(1_000_000_000))
    names = [name for name, _ in instance.names]
    ends = {
        (names[w], names[r]): c
        for c, (w, r) in enumerate(zip(instance.layout.writer, instance.layout.reader, strict=True))
    }
    return instance.layout, Still(instance.plane), names.index, ends


def test_one_missing_barrier_is_enough(hung):
    """However many others may still come."""
    layout, plane, _, channel = hung
    plane.channels()["blocked"][channel["late", "m3"]] = 0

    assert len(Queues(plane, layout).deadlocked()) == 1


@pytest.mark.parametrize("vertex", ["m1", "m2", "m3"])
def test_no_circle_while_storage_has_buffers_of_one_of_its_tasks(hung, vertex):
    """They come back when they are written, and somebody goes on."""
    layout, plane, task, _ = hung

    assert Queues(plane, layout, storing=frozenset({task(vertex)})).deadlocked() == []
