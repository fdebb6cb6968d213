"""The changelog while a job runs: uploads of their own, tails that checkpoints wait for, materialisations in between."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.checkpoint import CheckpointOptions
from sim.model.job import Distribution, Input, Job, Rate, Snapshot, Source, Vertex
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.state import Changelog, Lsm, State, StateOptions
from sim.model.storage import Retry, Storage
from sim.runtime.job_instance import JobInstance

MS, S = 1_000_000, 1_000_000_000
NEVER = 10**6 * S


def scenario(changelog, *, size=1000, rate=1000, interval=NEVER, seconds=10, backend="rocksdb", close_ns=0):
    """1000 updates of 1 kB per second into a state of 1000 B, one subtask."""
    source = Vertex("source", source=Source((Rate(0, Fraction(rate)),)), service=Distribution(1000))
    inlet = Input("source", service=Distribution(1000), record_bytes=Distribution(100))
    state = State(size, backend, Fraction(1), 1000, Lsm(memtable_bytes=10**12), changelog)
    return Scenario(
        "?",
        "log",
        Job((source, Vertex("map", inputs=(inlet,), state=state))),
        CheckpointOptions(interval, state=StateOptions(incremental=True)),
        Run(seconds * S),
        storage=Storage(1_000_000_000, close_ns, inline_threshold_bytes=0),
        overheads=Overheads(0, 0, 0, 0, S // 2, file_ns=0),
    )


def instance(*arguments, **options):
    """A finished run."""
    finished = JobInstance(scenario(*arguments, **options), "compiled")
    finished.start()
    finished.env.run(until=finished.scenario.run.duration_ns)
    return finished


def logs(simulated, kind="changelog"):
    """(ms, bytes) of each whole file of the log, in order."""
    return [
        (stored.durable_ns / MS, stored.size_bytes)
        for stored in simulated.storage.files
        if stored.name[0] == kind and stored.complete
    ]


def test_a_checkpoint_waits_for_the_tail():
    """500 kB since the start and a state of 1000 B, half a second into the run: 10 ms of batching, 0.5 ms of writing."""
    simulated = instance(Changelog(NEVER, 10**9), seconds=1)
    (subtask,) = [row for row in simulated.stats[1].subtasks.values() if row.state_bytes]

    assert [(pytest.approx(500 + 10 + 0.5, abs=0.1), pytest.approx(501_000, abs=2000))] == logs(simulated)
    assert pytest.approx(subtask.async_ns / MS, abs=0.1) == 10.5
    assert subtask.sync_ns == 0
    assert subtask.written_bytes == subtask.state_bytes == logs(simulated)[0][1]


def upload_fails(materialize_ns=NEVER, pre_barrier_ns=0):
    """An outage as long as a client insists, at the first checkpoint."""
    base = scenario(Changelog(materialize_ns, 10**9, upload_attempts=1), interval=S, seconds=4)
    source, reader = base.job.vertices
    base = replace(base, job=Job((source, replace(reader, snapshot=Snapshot(pre_barrier_ns=pre_barrier_ns)))))
    base = replace(base, storage=replace(base.storage, retry=Retry(attempts=2, backoff_ns=MS)))
    simulated = JobInstance(replace(base, checkpoint=replace(base.checkpoint, tolerable_failed=10)), "compiled")
    simulated.start()
    simulated.env.call_in(505 * MS, lambda: simulated.storage.fail_until(700 * MS))
    simulated.env.run(until=base.run.duration_ns)

    return simulated


@pytest.mark.parametrize("pre_barrier_ns", [0, 3 * MS])
def test_a_failed_upload_is_not_tried_again(pre_barrier_ns):
    """The first checkpoint fails with the file, the second one fails the task: its log lacks a file.  A restart begins a new one.

    The exception ends the thread: the cancellation does not wait for what it was at, be that work before the barrier.
    """
    simulated = upload_fails(pre_barrier_ns=pre_barrier_ns)
    (restart,) = simulated.job.recovery.stats.values()

    assert [simulated.stats[number].status for number in sorted(simulated.stats)][:2] == ["FAILED", "FAILED"]
    assert {"COMPLETED"} == {simulated.stats[number].status for number in sorted(simulated.stats)[2:]}
    assert restart.what == "snapshot: an upload of the changelog has failed"
    assert pytest.approx(restart.failed_ns / MS, abs=20) == 1500


def test_a_materialisation_gets_over_a_failed_upload():
    """It holds everything before it, so no checkpoint needs the missing file."""
    simulated = upload_fails(materialize_ns=1500 * MS)

    assert [simulated.stats[number].status for number in sorted(simulated.stats)] == [
        "FAILED",
        "COMPLETED",
        "COMPLETED",
        "COMPLETED",
    ]
    assert not simulated.job.recovery.stats


def test_no_materialisation_gets_over_a_failed_upload_while_the_one_before_is_not_confirmed():
    """That was taken before the upload failed, and the checkpoint that would have confirmed it failed with the file."""
    simulated = upload_fails(materialize_ns=400 * MS)

    assert [simulated.stats[number].status for number in sorted(simulated.stats)][:2] == ["FAILED", "FAILED"]
    assert len(simulated.job.recovery.stats) == 1


def test_a_file_that_two_checkpoints_wait_for_is_written_once():
    """The first one is over before the second one's turn comes: what it waited for is still known."""
    slow = scenario(Changelog(NEVER, 10**9), interval=2 * S, seconds=12, size=4_000_000)
    checkpoint = replace(slow.checkpoint, max_concurrent=3, tolerable_failed=100)
    simulated = JobInstance(
        replace(slow, checkpoint=checkpoint, storage=replace(slow.storage, bytes_per_second=1_000_000)), "compiled"
    )
    simulated.start()
    simulated.env.run(until=simulated.scenario.run.duration_ns)
    names = [stored.name for stored in simulated.storage.files if stored.name[0] == "changelog"]

    assert len(set(names)) == len(names) > 3


@pytest.mark.parametrize("interval", [None, S])
def test_uploads_that_are_over_are_forgotten(interval):
    """Dozens of files without a checkpoint that waits for them, or one per checkpoint: only what is under way is remembered."""
    simulated = instance(Changelog(NEVER, 100_000), interval=interval, seconds=5)
    log = simulated.tasks[1].state.keyed.log

    assert len(logs(simulated)) > 20
    assert len(log._uploads) <= 1
    assert len(log._claims) <= 1
