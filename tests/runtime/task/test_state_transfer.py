"""State as processes: how long uploads, copies, downloads and those of a changelog take, exactly; and who else notices."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import pytest
import simpy

from sim.model.checkpoint import CheckpointOptions
from sim.model.job import Distribution, Input, Job, Rate, Snapshot, Source, Vertex
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.state import Changelog, Lsm, State, StateOptions, Ttl
from sim.model.storage import Disk, Retry, Storage
from sim.runtime.job_instance import JobInstance
from sim.runtime.simulate import _materialized_per_hour
from sim.runtime.task.parts import WaitingBytes
from sim.runtime.task.subtask_state import SubtaskState
from sim.runtime.task.thread import Slot
from sim.runtime.task_manager import on_own_core
from sim.storage.filesystem import CheckpointStorage

# State as processes: how long uploads, copies and downloads take, exactly; and who else notices.


MS, MB = 1_000_000, 1_000_000
HEAP = State(10 * MB)
ROCKS = State(
    10 * MB,
    "rocksdb",
    Fraction(1),
    1000,
    Lsm(memtable_bytes=10**9, flush_bytes_per_second=10**15, freeze_ns=0, upload_ns=0),
)


def storage(**options):
    """1 B per ns and stream, 2 ms per file, reading at 2 B per ns; a disk with 0.5 B per ns."""
    given = {"inline_threshold_bytes": 0, "read_bytes_per_second": 2_000_000_000, "disk": Disk(500_000_000)} | options
    return CheckpointStorage(simpy.Environment(), Storage(1_000_000_000, close_ns=2 * MS, **given), seed=1)


def subtask(files, state, options, *, index=0, parallelism=1, host=0, slow=lambda factor: None):
    vertex = Vertex("map", parallelism=parallelism, state=state)
    position, checkpoint = SimpleNamespace(served=0), SimpleNamespace(state=options)
    context = SimpleNamespace(
        env=files.env,
        names=[("map", index)],
        plane=SimpleNamespace(position=lambda _: position),
        scenario=SimpleNamespace(checkpoint=checkpoint, run=SimpleNamespace(seed=1)),
        speed=SimpleNamespace(set_factor=lambda task, cause, factor: slow(factor)),
        storage=files,
    )
    manager = SimpleNamespace(number=host, work_on_core=partial(on_own_core, files.env), compaction=None)
    return SubtaskState(Slot(context, 0, vertex, None, manager, None))


def take(task, number, type_="checkpoint", served=0):
    """Freeze the state after so many records; how long that takes the thread [ns]."""
    task.slot.context.plane.position(0).served = served
    task.begin(number, type_)
    return task.take(number, WaitingBytes())


def took(files, work):
    """How long a process takes [ns]."""
    began = files.env.now
    files.env.run(until=files.env.process(work))
    return int(files.env.now) - began


def snapshot(task, files, number, type_="checkpoint", served=0):
    """Take and write one, keyed then operator state; (ns of each part, snapshot)."""
    take(task, number, type_, served)
    spent = [took(files, task.write(part, number)) for part in ("keyed", "operator")]
    return spent, task.close(number)


def test_a_wait_for_the_disk_falls_into_one_part_of_the_snapshot_or_both():
    """Four times 2.5 MB are merged at 1 MB/s: the fourth snapshot takes 10 s longer, some of it on the task thread."""

    def spent(wait, index):
        files = storage()
        lsm = Lsm(memtable_bytes=10**9, compaction_bytes_per_second=MB, wait=wait)
        state = State(5 * MB, "rocksdb", growth_bytes=MB, lsm=lsm)
        task = subtask(files, state, StateOptions(incremental=True), index=index, parallelism=2)
        for number in range(1, 4):
            snapshot(task, files, number, served=(number - 1) * 5 // 2)
        return take(task, 4, served=7), took(files, task.write("keyed", 4))

    for index in (0, 1):
        plain, delayed = spent(Fraction(0), index), spent(Fraction(1), index)
        assert sum(delayed) - sum(plain) == pytest.approx(9_500_000_000, rel=0.1)
        assert all(after > before for before, after in zip(plain, delayed, strict=True)), (
            "drawn: none of both parts is spared here"
        )
    assert spent(Fraction(1), 0)[0] != spent(Fraction(1), 1)[0]


@pytest.mark.parametrize("changelog", [None, Changelog()])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_grows_with_the_records_served(backend, changelog):
    """10 MB and 40 B per record: a snapshot holds what its task has served, and so does whoever is restored from it."""
    growing = State(10 * MB, backend, growth_bytes=40, changelog=changelog)
    files = storage()
    task, again = (subtask(files, growing, StateOptions()) for _ in range(2))
    assert task.keyed.counts_records
    _, kept = snapshot(task, files, 1, "native", served=50_000)
    began = took(files, again.restore(1, [(kept, Fraction(1))], 50_000))
    _, next_one = snapshot(again, files, 2, "native", served=60_000)

    assert sum(handle.size_bytes for handle in kept.handles if handle.name in ("state", "000001.sst")) == 12 * MB
    assert began > 0
    tables = [
        handle.size_bytes for handle in next_one.handles if handle.name == "state" or handle.name.endswith(".sst")
    ]
    assert {"hashmap": [12 * MB + 400_000], "rocksdb": [400_000, 12 * MB]}[backend] == tables


@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_that_expires_is_restored_with_the_times_of_its_keys(backend, halves):
    """40 B per record live for 10 s.  A snapshot of 10 s ago is empty, whatever had been served; that of 5 s ago is half full."""
    state = State(0, backend, growth_bytes=40, value_bytes=40, ttl=Ttl(10_000 * MS, checks=0))
    for rest_s, live_bytes in ((0, 2 * MB), (5, MB), (10, 0)):
        files = storage()
        task, again = (subtask(files, state, StateOptions()) for _ in range(2))
        assert task.keyed.counts_records
        files.env.run(until=10_000 * MS)
        _, kept = snapshot(task, files, 1, "native", served=50_000)
        if rest_s:
            files.env.run(until=(10 + rest_s) * 1000 * MS)
        took(files, again.restore(1, [(kept, Fraction(1, halves))] * halves, 50_000))

        assert live_bytes == pytest.approx(again.keyed.expiry.live_bytes, abs=0.02 * MB)
        again.slot.context.plane.position(0).served = 60_000
        again.keyed.count()
        assert live_bytes + 400_000 == pytest.approx(again.keyed.expiry.live_bytes, abs=0.02 * MB), (
            "10,000 records since, whatever came before"
        )


def test_a_canonical_savepoint_goes_at_the_pace_of_the_processor_and_slows_the_task():
    """10 MB at 20 MB/s are 500 ms, and 1 / (1 - 40 %) = 5/3 as long per record all the while; a checkpoint slows nothing."""
    factors, files = [], storage()
    options = StateOptions(savepoint_bytes_per_second=20 * MB, savepoint_cpu=Fraction(2, 5))
    task = subtask(files, ROCKS, options, slow=lambda factor: factors.append((int(files.env.now), factor)))
    (keyed_ns, _), _ = snapshot(task, files, 1, "canonical")

    assert keyed_ns == 500 * MS
    assert [(0, Fraction(5, 3)), (500 * MS, 1)] == factors
    snapshot(task, files, 2)
    assert len(factors) == 2


def test_a_cancelled_savepoint_slows_nobody():
    """The share of the processor comes back when it is interrupted."""
    factors, files = [], storage()
    task = subtask(files, HEAP, StateOptions(savepoint_cpu=Fraction(1, 2)), slow=factors.append)
    take(task, 1, "canonical")
    writing = files.env.process(task.write("keyed", 1))
    writing.defused = True
    files.env.run(until=MS)
    writing.interrupt()
    files.env.run()

    assert factors == [2, 1]


# -------------------------------------------------------------------------------------------------- restore


def restored(task, files, parts, served=0):
    return took(files, task.restore(1, parts, served))


def test_a_restored_task_counts_its_updates_from_where_it_stands():
    """1000 records served at the checkpoint, 1010 at the next: ten new entries."""
    files, options = storage(), StateOptions(incremental=True)
    stored = snapshot(subtask(files, ROCKS, options), files, 1, served=1000)[1]
    again = subtask(files, ROCKS, options)
    restored(again, files, [(stored, Fraction(1))], served=1000)
    after = snapshot(again, files, 2, served=1010)[1]

    assert [handle.size_bytes for handle in after.handles if handle.name == "000002.sst"] == [10_000]
    assert stored.handles[1] in after.handles


@pytest.mark.parametrize(("options", "after_s"), [({}, 1000), ({"compact_after_rescale": True}, 0.0501)])
def test_keys_of_other_subtasks_are_compacted_from_the_end_of_the_restore(options, after_s):
    """5 MB at 100 MB/s; without the option a second snapshot after a rescale has them too."""
    files, given = storage(), StateOptions(incremental=True, **options)
    stored = snapshot(subtask(files, ROCKS, given), files, 1)[1]
    again = subtask(files, ROCKS, given)
    restored(again, files, [(stored, Fraction(1, 2))])
    sizes = []
    for pause_s in (0, after_s):
        files.env.run(until=files.env.now + int(pause_s * 1000 * MS) + 1)
        handles = snapshot(again, files, len(sizes) + 2)[1].handles
        sizes.append(sum(handle.size_bytes for handle in handles if handle.name.endswith(".sst")) / MB)

    assert sizes == [15, 10 if options else 15]


# -------------------------------------------------------------------------------------------------- local recovery


LOCAL = StateOptions(incremental=True, local_recovery=True)


def test_a_local_heap_is_read_from_disk():
    """20 ms from this slow disk; from storage on another task manager, after its loss, and when it is rescaled."""
    files = storage()
    stored = snapshot(subtask(files, HEAP, LOCAL), files, 1)[1]

    assert restored(subtask(files, HEAP, LOCAL), files, [(stored, Fraction(1))]) == 20 * MS
    assert restored(subtask(files, HEAP, LOCAL, host=1), files, [(stored, Fraction(1))]) == 7 * MS
    assert restored(subtask(files, HEAP, LOCAL), files, [(stored, Fraction(1, 2))]) == 4.5 * MS
    files.lose_disk(0)
    assert restored(subtask(files, HEAP, LOCAL), files, [(stored, Fraction(1))]) == 7 * MS


def test_a_full_disk_costs_the_copy_not_the_checkpoint():
    files = storage(disk=Disk(500_000_000, 5 * MB))
    stored = snapshot(subtask(files, HEAP, LOCAL), files, 1)[1]

    assert None is stored.local
    assert stored.written_bytes == 10 * MB


# The changelog while a job runs: uploads of their own, tails that checkpoints wait for, materialisations in between.


LOG_WRITER_MS, S = 1_000_000, 1_000_000_000
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
        storage=Storage(1_000_000_000, close_ns=close_ns, inline_threshold_bytes=0),
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
        (stored.durable_ns / LOG_WRITER_MS, stored.size_bytes)
        for stored in simulated.storage.files
        if stored.name[0] == kind and stored.complete
    ]


def test_a_checkpoint_waits_for_the_tail():
    """500 kB since the start and a state of 1000 B, half a second into the run: 10 ms of batching, 0.5 ms of writing."""
    simulated = instance(Changelog(NEVER, 10**9), seconds=1)
    (subtask,) = [row for row in simulated.stats[1].subtasks.values() if row.state_bytes]

    assert [(pytest.approx(500 + 10 + 0.5, abs=0.1), pytest.approx(501_000, abs=2000))] == logs(simulated)
    assert pytest.approx(subtask.async_ns / LOG_WRITER_MS, abs=0.1) == 10.5
    assert subtask.sync_ns == 0
    assert subtask.written_bytes == subtask.state_bytes == logs(simulated)[0][1]


def upload_fails(materialize_ns=NEVER, pre_barrier_ns=0):
    """An outage as long as a client insists, at the first checkpoint."""
    base = scenario(Changelog(materialize_ns, 10**9, upload_attempts=1), interval=S, seconds=4)
    source, reader = base.job.vertices
    base = replace(base, job=Job((source, replace(reader, snapshot=Snapshot(pre_barrier_ns=pre_barrier_ns)))))
    base = replace(base, storage=replace(base.storage, retry=Retry(attempts=2, backoff_ns=LOG_WRITER_MS)))
    simulated = JobInstance(replace(base, checkpoint=replace(base.checkpoint, tolerable_failed=10)), "compiled")
    simulated.start()
    simulated.env.call_in(505 * LOG_WRITER_MS, lambda: simulated.storage.fail_until(700 * LOG_WRITER_MS))
    simulated.env.run(until=base.run.duration_ns)

    return simulated


@pytest.mark.parametrize("pre_barrier_ns", [0, 3 * LOG_WRITER_MS])
def test_a_failed_upload_is_not_tried_again(pre_barrier_ns):
    """The first checkpoint fails with the file, the second one fails the task: its log lacks a file.  A restart begins a new one.

    The exception ends the thread: the cancellation does not wait for what it was at, be that work before the barrier.
    """
    simulated = upload_fails(pre_barrier_ns=pre_barrier_ns)
    (restart,) = simulated.job.recovery.stats.values()

    assert [simulated.stats[number].status for number in sorted(simulated.stats)][:2] == ["FAILED", "FAILED"]
    assert {"COMPLETED"} == {simulated.stats[number].status for number in sorted(simulated.stats)[2:]}
    assert restart.what == "snapshot: an upload of the changelog has failed"
    assert pytest.approx(restart.failed_ns / LOG_WRITER_MS, abs=20) == 1500


def test_a_materialisation_gets_over_a_failed_upload():
    """It holds everything before it, so no checkpoint needs the missing file."""
    simulated = upload_fails(materialize_ns=1500 * LOG_WRITER_MS)

    assert [simulated.stats[number].status for number in sorted(simulated.stats)] == [
        "FAILED",
        "COMPLETED",
        "COMPLETED",
        "COMPLETED",
    ]
    assert not simulated.job.recovery.stats


def test_no_materialisation_gets_over_a_failed_upload_while_the_one_before_is_not_confirmed():
    """That was taken before the upload failed, and the checkpoint that would have confirmed it failed with the file."""
    simulated = upload_fails(materialize_ns=400 * LOG_WRITER_MS)

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


@pytest.mark.parametrize(
    ("backend", "reports", "per_hour"),
    [("hashmap", False, {"map": 3.6e9}), ("rocksdb", False, {"map": 1.8e9}), ("hashmap", True, {})],
)
def test_what_materialisations_write_in_an_hour(backend, reports, per_hour):
    """1 MB of state each second, of which files have half a second's new keys; a checkpoint counts them if it reports them."""
    log = Changelog(S, 10**9, reports_materialized=reports)
    simulated = instance(log, size=1_000_000, rate=500, interval=S // 4, seconds=4, backend=backend)

    assert pytest.approx(per_hour, rel=0.3) == _materialized_per_hour(simulated)
    if backend == "hashmap":  # after a restart the names come again, for as many materializations
        files = [*simulated.storage.files] * 2
        restarted = SimpleNamespace(context=simulated.context, storage=SimpleNamespace(files=files))
        assert pytest.approx(per_hour, rel=0.3) == _materialized_per_hour(restarted)
