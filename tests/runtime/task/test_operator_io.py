"""What operators do with the outside: where files go and when, their sizes, what an abort makes of them, what is lost."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest
import simpy

from sim.model.faults import Kill, Restart
from sim.model.job import Distribution, Input, Job, Vertex
from sim.model.sinks import Commit, Flush
from sim.model.storage import Disk, Retry, Storage
from sim.results.journal import EventType
from sim.runtime.task.epochs import Epochs
from sim.runtime.task.sink import OperatorFiles
from sim.runtime.task_manager import StagingSpace
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import StorageFailed
from tests.invariants.jobs.small_jobs import MS, SECOND, chain, fault_at, scenario, started

# What operators do with the outside, on whole runs: where files go and when, what fails, what is carried over, what is lost.


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

    assert EventType.TASK_FAILED in {row.event_type for row in instance.journal}


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
    restored = {row.checkpoint for row in instance.journal if row.event_type is EventType.JOB_RESTORED}

    assert {2} == restored
    assert [output.epoch for commit in instance.commits for output in commit.lost] == []


def test_a_loss_is_told_once():
    """The checkpoint the task is restored from holds an epoch that has been given up already, and gives it up again."""
    base = sinking(commit=Commit(transaction_timeout_ns=300 * MS), restart=Restart("fixed-delay", 10 * MS))
    instance = ran(replace(base, faults=(fault_at(Kill("sink", 0), 900),)))
    lost = [(output.epoch, output.opened_ns) for commit in instance.commits for output in commit.lost]

    (restored,) = {row.checkpoint for row in instance.journal if row.event_type is EventType.JOB_RESTORED}

    assert restored in {epoch for epoch, _ in lost}
    assert len(set(lost)) == len(lost)


def test_the_committer_reads_barriers_and_no_records():
    """Its edge is aligned whatever the barriers of the job are, and nothing but them travels on it."""
    instance = ran(sinking(commit=Commit("global")))
    tasks = instance.plane.tasks()

    assert tasks[-1]["served"] == 0
    assert tuple(forced for _, forced in instance.context.outputs(len(tasks) - 2)) == (True,)


# The files of an operator, flush by flush: their sizes, where they are, and what an abort makes of them under each policy.


KB, OPERATOR_FILES_MS = 1000, 10**6


class Operator:
    """A sink at 1 MB/s to storage and 10 MB/s to its disk: files of 10 kB take 10 ms and 1 ms."""

    def __init__(self, flush=Flush(20 * KB, files=2), policy="survive", limit_bytes=None):  # noqa: B008  # frozen
        self.env = simpy.Environment()
        self.storage = CheckpointStorage(
            self.env, Storage(1_000_000, close_ns=0, inline_threshold_bytes=0, disk=Disk(10_000_000)), seed=1
        )
        self.published = {}
        self.space = StagingSpace(self.env, limit_bytes)
        options = SimpleNamespace(abort_policy=policy, upload_threads=1)
        context = SimpleNamespace(
            env=self.env,
            names=[("sink", 0)],
            storage=self.storage,
            scenario=SimpleNamespace(checkpoint=options),
            output=SimpleNamespace(stored=self.published.__setitem__),
        )
        manager = SimpleNamespace(staging=self.space, number=0)
        self.files = OperatorFiles(SimpleNamespace(context=context, task=0, manager=manager), flush)

    def do(self, work):
        """How long a process takes [ms]."""
        began = self.env.now
        self.env.run(until=self.env.process(work))
        return round((self.env.now - began) / OPERATOR_FILES_MS)

    def staged(self, checkpoint):
        """A flush lies on the local disk."""
        self.files.choose(checkpoint, 1)
        self.do(self.files.stage(checkpoint))

    def stored(self):
        """Checkpoint and number of each file in storage that is there in full, and how often it was begun."""
        return [
            file.name[3:] for file in self.storage.files if not file.disk and file.complete and file.deleted_ns is None
        ]

    def on_disk(self):
        return [file.name[3:] for file in self.storage.files if file.disk and file.deleted_ns is None]


def work_until_cancelled(work):
    with suppress(simpy.Interrupt):
        yield from work


class TestWays:
    def test_a_failed_upload_fails_the_checkpoint_and_is_tried_again_under_another_name(self):
        operator = Operator(Flush(10 * KB))
        operator.staged(1)
        operator.storage.fail_until(1 << 60)
        with pytest.raises(StorageFailed):
            operator.do(operator.files.upload(1))
        operator.storage.attempts.down_until_ns = 0
        operator.do(operator.files.upload(1))
        assert operator.stored() == [(1, 0, 2)]

    def test_who_finds_no_room_has_the_others_uploaded(self):
        """Two files fit: those of the first flush go to storage while the second one waits."""
        operator = Operator(limit_bytes=20 * KB)
        operator.staged(1)
        assert operator.stored() == []
        operator.staged(2)
        assert operator.stored()[:1] == [(1, 0)]


class TestAborts:
    def aborted(self, policy, uploads=True):
        """The first checkpoint is aborted after 15 ms of its uploads: one file is durable, one half-written."""
        operator = Operator(policy=policy)
        operator.staged(1)
        if uploads:
            snapshot = operator.env.process(work_until_cancelled(operator.files.upload(1)))
            operator.env.run(until=operator.env.now + 15 * OPERATOR_FILES_MS)
            snapshot.interrupt()
        operator.files.abort(1)
        return operator

    def test_files_that_were_not_begun_are_uploaded_now(self):
        operator = self.aborted("survive", uploads=False)
        operator.env.run()
        assert operator.stored() == [(1, 0), (1, 1)]
        assert len(operator.published) == 2

    def test_files_are_dropped(self):
        """What is durable is deleted, and the next snapshot uploads its own only."""
        operator = self.aborted("drop")
        operator.env.run()
        assert (operator.stored(), operator.on_disk(), operator.space.used_bytes) == ([], [], 0)
        operator.staged(2)
        assert operator.do(operator.files.upload(2)) == 20
        assert operator.stored() == [(2, 0), (2, 1)]

    def test_files_that_waited_for_a_thread_are_uploaded_with_the_next_snapshot(self):
        """Those of the first snapshot go on."""
        operator = Operator(policy="reupload")
        for checkpoint in (1, 2):
            operator.staged(checkpoint)
        operator.env.process(operator.files.upload(2))
        operator.env.run(until=operator.env.now + 5 * OPERATOR_FILES_MS)
        operator.files.abort(2)
        operator.do(operator.files.upload(2))
        operator.env.run()
        assert operator.stored() == [(1, 0), (1, 1), (2, 0), (2, 1)]


class TestStops:
    def test_a_file_that_is_being_staged_is_not_used(self):
        operator = Operator()
        operator.files.choose(1, 1)
        operator.env.process(operator.files.stage(1))
        operator.env.run(until=OPERATOR_FILES_MS // 2)
        operator.files.stop()
        operator.env.run()
        assert (operator.on_disk(), operator.space.used_bytes) == ([], 0)
