"""What operators do with the outside, on whole runs: where files go and when, what fails, what is carried over, what is lost."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.faults import Kill, Restart
from sim.model.job import Distribution, Input, Job, Vertex
from sim.model.sinks import Commit, Flush
from sim.model.storage import Retry, Storage
from sim.results.journal import Happening
from sim.runtime.task.epochs import Epochs
from tests.laws.small_jobs import MS, SECOND, chain, fault_at, scenario, started

STORAGE = Storage(1_000_000, close_ns=2 * MS, inline_threshold_bytes=0)


def sinking(flush=None, commit=None, **options):
    """source -> stage -> sink at 1 MB/s and 2 ms per file, a checkpoint every 400 ms."""
    job = chain(1, rate=200)
    sink = replace(job.vertices[-1], flush=flush, commit=commit)
    behind = Input("sink", "global", service=Distribution(0), record_bytes=Distribution(1))
    committer = (
        (Vertex("committer", inputs=(behind,), committer_of="sink"),) if commit and commit.committer == "global" else ()
    )
    base = scenario(Job((*job.vertices[:-1], sink, *committer)))
    known = {name: options.pop(name) for name in list(options) if name in ("storage", "restart", "run")}
    return replace(base, checkpoint=replace(base.checkpoint, **options), **({"storage": STORAGE} | known))


def ran(base, *, meanwhile=lambda instance: None):
    instance = started(base)
    meanwhile(instance)
    instance.env.run(until=instance.env.timeout(base.run.duration_ns) | instance.outcome.failed)
    return instance


def sink_of(instance, checkpoint):
    return instance.stats[checkpoint].of(next(t for t, (name, _) in enumerate(instance.names) if name == "sink"))


def committed(instance):
    return [output for commit in instance.commits for output in commit.committed]


# ---------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("way", ["pre-barrier", "async"])
def test_the_files_of_the_end_are_written_once(way):
    """A bounded job: the end of the input flushes for the final checkpoint, whose own snapshot finds nothing more to write."""
    base = sinking(Flush(60_000, files=3), Commit(), operator_io=way)
    ends = replace(base.job.vertices[0], source=replace(base.job.vertices[0].source, total=50))
    instance = ran(replace(base, job=Job((ends, *base.job.vertices[1:]))))
    kept = [file.name for file in instance.storage.files if file.name[0] == "flush" and not file.disk]

    assert len(set(kept)) == len(kept)
    assert set(kept) == {name for output in committed(instance) for name in output.files}
    assert {0} == {space.used_bytes for space in (manager.staging for manager in instance.tasks.managers.values())}


def test_without_local_room_a_flush_waits_for_uploads():
    """Two files fit: the third waits until the first is uploaded, on the task thread."""
    instance = ran(sinking(Flush(60_000, files=3), operator_io="async", staging_bytes=40_000))

    assert sink_of(instance, 2).pre_barrier_ns == 22 * MS
    assert {40_000} == {
        space.most_bytes
        for space in (manager.staging for manager in instance.tasks.managers.values())
        if space.most_bytes
    }


def test_an_abort_that_drops_leaves_nothing():
    """One file of three is durable, one under way, one in the line: they are deleted, stopped, forgotten, on the disk as well."""
    instance = started(sinking(Flush(60_000, files=3), operator_io="async", abort_policy="drop"))
    uploads = lambda: [file for file in instance.storage.files if file.name[0] == "flush" and not file.disk]  # noqa: E731
    while not any(file.complete for file in uploads()):
        instance.env.step()
    next(task for task in instance.tasks if task.parts.of(Epochs) is not None).parts.of(Epochs).aborted(1)
    instance.env.run(until=instance.env.now + 50 * MS)

    assert sum(file.complete for file in uploads()) == 1
    assert [file for file in uploads() if file.complete and file.deleted_ns is None] == []
    assert {0} == {space.used_bytes for space in (manager.staging for manager in instance.tasks.managers.values())}


# ---------------------------------------------------------------------------------------------- failures

ONCE = Retry(attempts=1)


def outage(at_ns, lasts_ns):
    """Storage is down for a while."""
    return lambda instance: instance.env.call_in(at_ns, lambda: instance.storage.fail_until(at_ns + lasts_ns))


def test_an_upload_that_fails_declines_the_checkpoint():
    """CHECKPOINT_ASYNC_EXCEPTION; the task goes on, and its files are uploaded with the next checkpoint."""
    base = sinking(Flush(60_000, files=3), Commit(), operator_io="async", storage=replace(STORAGE, retry=ONCE))
    instance = ran(base, meanwhile=outage(850 * MS, 20 * MS))  # while files are uploaded, the state is durable already

    assert (instance.stats[3].status, instance.stats[3].failure) == ("FAILED", "CHECKPOINT_ASYNC_EXCEPTION")
    assert instance.job_status == "RUNNING"
    assert [output.epoch for commit in instance.commits if commit.checkpoint == 4 for output in commit.committed] == [
        3,
        4,
    ]
    assert sum(output.missing for output in committed(instance)) == 0


def test_a_failed_flush_leaves_the_thread():
    """The exception ends the work that held the thread: the restart waits for its delay and the overheads, not for the watchdog."""
    storage, restart = replace(STORAGE, retry=ONCE), Restart("fixed-delay", 100 * MS)
    instance = ran(
        sinking(Flush(60_000, files=3), storage=storage, restart=restart), meanwhile=outage(830 * MS, 100 * MS)
    )
    (failure,) = instance.job.recovery.stats.values()

    assert failure.kind == "task"
    assert failure.detected_ns == failure.cancelled_ns


def test_a_full_staging_area_fails_the_task_if_it_must_not_wait():
    instance = ran(sinking(Flush(60_000, files=3), operator_io="async", staging_bytes=40_000, staging_full="fail"))

    assert Happening.TASK_FAILED in {row.happening for row in instance.journal}


# ---------------------------------------------------------------------------------------------- commits


def test_a_lost_notification_delays_and_loses_nothing():
    """The next completion covers it: every epoch once, some two at a time."""
    instance = ran(sinking(commit=Commit(), lost_notifications=Fraction(1, 2)))
    covered = [len(commit.committed) for commit in instance.commits]

    assert max(covered) > 1
    assert [output.epoch for output in committed(instance)] == list(range(1, sum(covered) + 1))


def test_all_notifications_lost_is_nothing_visible():
    instance = ran(sinking(commit=Commit(), lost_notifications=Fraction(1)))

    assert instance.commits == []


def test_an_abort_tells_of_the_completion_before_it():
    """The notification of 1 is lost, 2 expires: its abort names 1, which is committed then."""
    instance = started(sinking(commit=Commit(), timeout_ns=5 * SECOND))
    instance.env.run(until=instance.env.timeout(300 * MS))
    instance.commits.clear()
    sink = instance.tasks[-1]
    sink.parts.of(Epochs).committer.machine = replace(sink.parts.of(Epochs).committer.machine, last_completed=0)
    sink.notify_aborted(2, latest_completed=1)
    instance.env.run(until=instance.env.timeout(50 * MS))

    assert sink.parts.of(Epochs).committer.machine.last_completed == 1


def test_a_restart_loses_nothing_that_is_visible_already():
    """Checkpoint 2 holds its own committables, older than the timeout when the task is back: they were committed before."""
    base = sinking(commit=Commit(transaction_timeout_ns=600 * MS), restart=Restart("fixed-delay", 900 * MS))
    instance = ran(replace(base, faults=(fault_at(Kill("sink", 0), 600),)))
    restored = {row.checkpoint for row in instance.journal if row.happening is Happening.JOB_RESTORED}

    assert {2} == restored
    assert [output.epoch for commit in instance.commits for output in commit.lost] == []


def test_a_loss_is_told_once():
    """The checkpoint the task is restored from holds an epoch that has been given up already, and gives it up again."""
    base = sinking(commit=Commit(transaction_timeout_ns=300 * MS), restart=Restart("fixed-delay", 10 * MS))
    instance = ran(replace(base, faults=(fault_at(Kill("sink", 0), 900),)))
    lost = [(output.epoch, output.opened_ns) for commit in instance.commits for output in commit.lost]

    (restored,) = {row.checkpoint for row in instance.journal if row.happening is Happening.JOB_RESTORED}

    assert restored in {epoch for epoch, _ in lost}
    assert len(set(lost)) == len(lost)


def test_the_committer_reads_barriers_and_no_records():
    """Its edge is aligned whatever the barriers of the job are, and nothing but them travels on it."""
    instance = ran(sinking(commit=Commit("global")))
    tasks = instance.plane.tasks()

    assert tasks[-1]["served"] == 0
    assert tuple(forced for _, forced in instance.context.outputs(len(tasks) - 2)) == (True,)
