"""What operators do with the outside, on whole runs: where files go and when, what fails, what is carried over, what is lost."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.faults import Fault, Kill, Restart, When
from sim.model.job import Distribution, Input, Job, Vertex
from sim.model.sinks import Commit, Flush
from sim.model.storage import Disk, Retry, Storage
from sim.results.journal import Happening
from sim.runtime.job_instance import JobInstance
from sim.runtime.task.epochs import Epochs
from tests.laws.small_jobs import MS, SECOND, chain, scenario

ENGINE = "compiled"
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
    instance = JobInstance(base, ENGINE)
    instance.start()
    meanwhile(instance)
    instance.env.run(until=instance.env.timeout(base.run.duration_ns) | instance.outcome.failed)
    return instance


def sink_of(instance, checkpoint):
    return instance.stats[checkpoint].of(next(t for t, (name, _) in enumerate(instance.names) if name == "sink"))


def committed(instance):
    return [output for commit in instance.commits for output in commit.committed]


# ---------------------------------------------------------------------------------------------- files


def test_before_the_barrier_files_take_the_task_thread():
    """Three files of 20 kB at 1 MB/s, 2 ms each: 66 ms hidden before the barrier, nothing in the asynchronous phase but state."""
    instance = ran(sinking(Flush(60_000, files=3)))

    assert sink_of(instance, 2).pre_barrier_ns == 66 * MS
    assert 3 * len(instance.stats) == sum(file.name[0] == "flush" for file in instance.storage.files)


@pytest.mark.parametrize(("threads", "upload_ms"), [(1, 66), (2, 44), (3, 22)])
def test_behind_it_they_take_the_asynchronous_phase(threads, upload_ms):
    """After the state; so many files at a time.  Before the barrier they go to the local disk, at 10 MB/s."""
    storage = replace(STORAGE, disk=Disk(10_000_000))
    instance = ran(sinking(Flush(60_000, files=3), operator_io="async", upload_threads=threads, storage=storage))
    without = ran(sinking(operator_io="async", storage=storage))

    assert sink_of(instance, 2).pre_barrier_ns == 6 * MS
    assert upload_ms * MS == sink_of(instance, 2).async_ns - sink_of(without, 2).async_ns


def test_a_share_of_what_was_read_is_flushed():
    """Half of the bytes read since the last flush, in two files; the odd byte goes to the last."""
    instance = ran(sinking(Flush(share=Fraction(1, 2), files=2)))
    sizes = {
        n: [file.size_bytes for file in instance.storage.files if file.name[:1] == ("flush",) and file.name[3] == n]
        for n in instance.stats
    }
    read = int(
        instance.plane.position(next(t for t, (name, _) in enumerate(instance.names) if name == "sink")).consumed.sum()
    )

    assert all(0 <= large - small <= 1 for small, large in sizes.values())
    assert sum(map(sum, sizes.values())) <= read / 2 < sum(map(sum, sizes.values())) + 200 * 100 * 0.4


def test_nothing_read_is_nothing_written():
    """A sink at rest flushes no file and commits nothing."""
    base = sinking(Flush(60_000), Commit())
    idle = replace(base.job.vertices[0], source=replace(base.job.vertices[0].source, rates=(), total=1))
    instance = ran(
        replace(base, job=Job((idle, *base.job.vertices[1:])), checkpoint=replace(base.checkpoint, finish="off"))
    )

    assert sum(file.name[0] == "flush" for file in instance.storage.files) <= 1
    assert len(committed(instance)) <= 1


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


def test_local_room_is_given_back_when_files_are_durable():
    """Never more than one flush lies on the disk, and none is left there."""
    instance = ran(sinking(Flush(60_000, files=3), operator_io="async"))
    left = [file for file in instance.storage.files if file.disk and file.deleted_ns is None]

    assert {60_000} == {
        space.most_bytes
        for space in (manager.staging for manager in instance.tasks.managers.values())
        if space.most_bytes
    }
    assert left == []


def test_without_local_room_a_flush_waits_for_uploads():
    """Two files fit: the third waits until the first is uploaded, on the task thread."""
    instance = ran(sinking(Flush(60_000, files=3), operator_io="async", staging_bytes=40_000))

    assert sink_of(instance, 2).pre_barrier_ns == 22 * MS
    assert {40_000} == {
        space.most_bytes
        for space in (manager.staging for manager in instance.tasks.managers.values())
        if space.most_bytes
    }


def test_a_task_that_stops_gives_its_uploads_up():
    """What is under way stays half-written, and its room on the disk is free again."""
    instance = JobInstance(sinking(Flush(60_000, files=3), operator_io="async"), ENGINE)
    instance.start()
    uploads = lambda: [file for file in instance.storage.files if file.name[0] == "flush" and not file.disk]  # noqa: E731
    while not uploads():
        instance.env.step()
    next(task for task in instance.tasks if task.parts.of(Epochs) is not None).stop()
    now = instance.env.now
    instance.env.run(until=now + 300 * MS)

    assert {(False, now)} == {(file.complete, file.given_up_ns) for file in uploads()}
    assert {0} == {space.used_bytes for space in (manager.staging for manager in instance.tasks.managers.values())}


def test_an_abort_that_drops_leaves_nothing():
    """One file of three is durable, one under way, one in the line: they are deleted, stopped, forgotten, on the disk as well."""
    instance = JobInstance(sinking(Flush(60_000, files=3), operator_io="async", abort_policy="drop"), ENGINE)
    instance.start()
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


def test_a_flush_that_fails_before_the_barrier_fails_the_task():
    """An error on the task thread is the task's, not the checkpoint's."""
    instance = ran(
        sinking(Flush(60_000, files=3), storage=replace(STORAGE, retry=ONCE)), meanwhile=outage(830 * MS, 100 * MS)
    )
    failed = [row.detail for row in instance.journal if row.happening is Happening.TASK_FAILED]

    assert [reason.partition(":")[0] for reason in failed] == ["flush"]


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


@pytest.mark.parametrize("committer", ["chained", "global"])
def test_output_is_visible_a_commit_after_the_completion(committer):
    """Metadata 0 ms, completion 1 ms, notification 1 ms, commit 30 ms on the committer's thread."""
    instance = ran(sinking(commit=Commit(committer, 30 * MS)))
    commit = next(output for output in instance.commits if output.checkpoint == 2)

    assert instance.stats[2].completed_ns + 31 * MS == commit.time_ns
    assert instance.names[commit.task][0] == ("sink" if committer == "chained" else "committer")


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
    instance = JobInstance(sinking(commit=Commit(), timeout_ns=5 * SECOND), ENGINE)
    instance.start()
    instance.env.run(until=instance.env.timeout(300 * MS))
    instance.commits.clear()
    sink = instance.tasks[-1]
    sink.parts.of(Epochs).committer.machine = replace(sink.parts.of(Epochs).committer.machine, last_completed=0)
    sink.notify_aborted(2, latest_completed=1)
    instance.env.run(until=instance.env.timeout(50 * MS))

    assert sink.parts.of(Epochs).committer.machine.last_completed == 1


def test_a_transaction_that_is_open_for_too_long_is_a_named_loss():
    """Checkpoints come every 400 ms, the external system waits 300 ms: everything but the first epoch is lost."""
    instance = ran(sinking(commit=Commit(transaction_timeout_ns=300 * MS)))
    lost = [output.epoch for commit in instance.commits for output in commit.lost]

    assert [output.epoch for output in committed(instance)] == [1]
    assert list(range(2, 2 + len(lost))) == lost
    assert len(lost) == sum(row.happening is Happening.TRANSACTION_LOST for row in instance.journal)


def test_a_timeout_longer_than_interval_and_commit_loses_nothing():
    instance = ran(sinking(commit=Commit(transaction_timeout_ns=600 * MS)))

    assert [output for commit in instance.commits for output in commit.lost] == []


def test_a_restart_loses_nothing_that_is_visible_already():
    """Checkpoint 2 holds its own committables, older than the timeout when the task is back: they were committed before."""
    base = sinking(commit=Commit(transaction_timeout_ns=600 * MS), restart=Restart("fixed-delay", 900 * MS))
    instance = ran(replace(base, faults=(Fault(Kill("sink", 0), When((600 * MS,))),)))
    restored = {row.checkpoint for row in instance.journal if row.happening is Happening.JOB_RESTORED}

    assert {2} == restored
    assert [output.epoch for commit in instance.commits for output in commit.lost] == []


def test_a_loss_is_told_once():
    """The checkpoint the task is restored from holds an epoch that has been given up already, and gives it up again."""
    base = sinking(commit=Commit(transaction_timeout_ns=300 * MS), restart=Restart("fixed-delay", 10 * MS))
    instance = ran(replace(base, faults=(Fault(Kill("sink", 0), When((900 * MS,))),)))
    lost = [(output.epoch, output.opened_ns) for commit in instance.commits for output in commit.lost]

    (restored,) = {row.checkpoint for row in instance.journal if row.happening is Happening.JOB_RESTORED}

    assert restored in {epoch for epoch, _ in lost}
    assert len(set(lost)) == len(lost)


@pytest.mark.parametrize("committer", ["chained", "global"])
def test_a_commit_that_is_cut_short_is_done_again(committer):
    """The task fails in the middle of a commit of 50 ms: what the checkpoint held becomes visible after the restore, once."""
    base = sinking(commit=Commit(committer, 50 * MS), restart=Restart("fixed-delay", 100 * MS))
    vertex = "sink" if committer == "chained" else "committer"
    instance = ran(replace(base, faults=(Fault(Kill(vertex, 0), When((440 * MS,))),)))
    again = next(commit for commit in instance.commits if commit.again)

    assert ([output.epoch for output in again.committed], again.checkpoint) == ([2], 2)
    assert sorted({output.epoch for output in committed(instance)}) == [output.epoch for output in committed(instance)]
    assert instance.violations() == ()


def test_the_committer_reads_barriers_and_no_records():
    """Its edge is aligned whatever the barriers of the job are, and nothing but them travels on it."""
    instance = ran(sinking(commit=Commit("global")))
    tasks = instance.plane.tasks()

    assert tasks[-1]["served"] == 0
    assert tuple(forced for _, forced in instance.context.outputs(len(tasks) - 2)) == (True,)
