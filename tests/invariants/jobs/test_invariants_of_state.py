"""Invariants 38, 39 and 84 on whole runs: what incremental checkpoints write and refer to, savepoints that stand alone, logs in memory."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.model.faults import Kill, Restart, TaskManagerLost
from sim.model.job import Source
from sim.model.scenario import Action
from sim.model.state import Changelog, Lsm, State, StateOptions
from sim.model.storage import Disk
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    MS,
    SECOND,
    UNALIGNED,
    chain,
    completed,
    fault_at,
    run,
    scenario,
    with_network,
    with_options,
)
from tests.invariants.jobs.test_invariants_of_durations import _scaled

LSM = Lsm(memtable_bytes=4_000, base_bytes=6_000, multiplier=2, table_bytes=2_000, compaction_bytes_per_second=100_000)
ROCKS = State(20_000, "rocksdb", Fraction(1, 2), 20, LSM)
HEAP = replace(ROCKS, backend="hashmap")


def world(state, options, kind=ALIGNED, **fields):
    """Two subtasks with 10 kB of state each, 400 records/s, files from 1 B on."""
    job = chain(2, rate=400, sink_ns=MS // 2)
    job = replace(job, vertices=tuple(v if v.state is None else replace(v, state=state) for v in job.vertices))
    return with_options(scenario(job, kind, **fields), state=options)


def with_state(done):
    """(checkpoint, subtask row, what it holds) of each completed checkpoint and stateful subtask, in order."""
    tasks = [t for t, v in enumerate(done.layout.vertex) if done.scenario.job.vertices[v].state is not None]
    return [(number, done.stats[number].subtasks[task], task) for number in sorted(completed(done)) for task in tasks]


def lsm_options():
    sizes = st.sampled_from([500, 2_000, 8_000])
    return st.builds(
        Lsm,
        memtable_bytes=sizes,
        level0_files=st.integers(1, 5),
        base_bytes=sizes,
        multiplier=st.integers(2, 4),
        table_bytes=sizes,
        compaction_bytes_per_second=st.sampled_from([10_000, 10**9]),
    )


@given(
    lsm_options(), st.sampled_from([Fraction(1, 10), Fraction(1)]), st.sampled_from([ALIGNED, UNALIGNED]), st.booleans()
)
@settings(max_examples=25)
def test_invariant_38_a_chain_of_increments_holds_the_live_bytes(lsm, update_share, kind, changelog):
    """Summed over a chain, what was written is at least what the last one refers to; no checkpoint writes more than it refers to.

    Materialisations are reported here: Flink's sizes leave them out.
    """
    log = Changelog(700 * MS, 10**9, reports_materialized=True) if changelog else None
    state = replace(ROCKS, lsm=lsm, update_share=update_share, changelog=log)
    done = run(world(state, StateOptions(incremental=True), kind))
    rows = with_state(done)

    assert len(completed(done)) >= 4
    assert all(row.written_bytes <= row.state_bytes for _, row, _ in rows)
    assert any(row.written_bytes < row.state_bytes for _, row, _ in rows)
    for task in {task for _, _, task in rows}:
        own = [row for _, row, of in rows if of == task]
        assert sum(row.written_bytes for row in own) >= own[-1].state_bytes >= 9_000


@pytest.mark.parametrize(
    ("state", "options"),
    [
        (HEAP, StateOptions()),
        (HEAP, StateOptions(incremental=True)),
        (ROCKS, StateOptions()),
    ],
    ids=["heap", "heap incremental", "rocksdb full"],
)
def test_invariant_38_full_checkpoints_write_all_they_refer_to(state, options):
    """Checkpointed size and state size are equal."""
    rows = with_state(run(world(state, options)))

    assert len(rows) >= 8
    assert all(row.written_bytes == row.state_bytes for _, row, _ in rows)


def test_invariant_38_tables_add_up_what_subtasks_wrote():
    """The ledger holds the bytes the statistics name: written is written, referred to exists."""
    done = run(world(ROCKS, StateOptions(incremental=True)))
    latest = max(completed(done))
    for _, row, task in with_state(done)[-2:]:
        ((stored, _),) = done.contents.of(latest, task).parts
        sizes = [done.storage.files[handle.file].size_bytes for handle in stored.all_handles]

        assert row.state_bytes == sum(sizes) == sum(handle.size_bytes for handle in stored.all_handles)
        assert all(done.storage.files.exists(handle.file) for handle in stored.all_handles)


@pytest.mark.parametrize("format_", ["canonical", "native"])
@pytest.mark.parametrize("changelog", [None, Changelog(700 * MS, 10**9)], ids=["plain", "changelog"])
def test_invariant_39_a_savepoint_has_all_its_files_to_itself(format_, changelog):
    """No file of it was written for a checkpoint, no checkpoint refers to a file of it, and the next checkpoint is no larger."""
    base = world(
        replace(ROCKS, changelog=changelog), StateOptions(incremental=True, savepoint_bytes_per_second=None), seconds=4
    )
    done = run(replace(base, actions=(Action(2 * SECOND, format_),)))
    kept = done.job.files.kept_here()
    (savepoint,) = [snapshot for snapshot in kept if snapshot.is_savepoint]

    assert {savepoint.checkpoint} == {file.checkpoint for file in savepoint.files}
    assert {"savepoint"} == {file.scope for file in savepoint.files}
    assert sum(file.size_bytes for file in savepoint.files) >= 20_000
    others = [file for snapshot in kept if not snapshot.is_savepoint for file in snapshot.files]
    assert others
    assert savepoint.checkpoint not in {file.checkpoint for file in others}


@pytest.mark.parametrize(("keeps", "again"), [(True, False), (False, True)])
def test_invariant_39_a_savepoint_leaves_increments_alone(keeps, again):
    """FLINK-23949, and what it was like before: everything is written again."""
    # no compaction: a table stays what it is
    state = replace(ROCKS, lsm=replace(LSM, level0_files=1000, memtable_bytes=10**6))
    base = world(state, StateOptions(incremental=True, savepoints_keep_base=keeps), seconds=4)
    done = run(replace(base, actions=(Action(2 * SECOND, "native"),)))
    savepoint = next(snapshot.checkpoint for snapshot in done.job.files.kept_here() if snapshot.is_savepoint)
    after = [row for number, row, _ in with_state(done) if number == savepoint + 1]

    assert len(after) == 2
    assert [again] * 2 == [row.written_bytes == row.state_bytes for row in after]


@given(
    st.sampled_from([300 * MS, 900 * MS, 60 * SECOND]),
    st.sampled_from([ALIGNED, UNALIGNED]),
    st.sampled_from(["rocksdb", "hashmap"]),
)
@settings(max_examples=6, deadline=None)
def test_invariant_84_a_log_in_memory_is_copied_whole_and_one_in_files_is_not(interval_ns, kind, backend):
    """Synchronous part: the changes since the last materialisation times the copy of one; nothing grows where the log lies in files."""
    files = Changelog(interval_ns, 2_000)
    memory = replace(files, storage="memory", copy_ns=MS // 10)
    state = replace(ROCKS, backend=backend, lsm=replace(LSM, flush_bytes_per_second=10**12, link_ns=0))
    in_files, in_memory = (
        with_state(run(world(replace(state, changelog=log), StateOptions(incremental=True), kind)))
        for log in (files, memory)
    )

    assert {0} == {row.sync_ns for _, row, _ in in_files}
    assert [row.written_bytes // state.value_bytes * (MS // 10) for _, row, _ in in_memory] == [
        row.sync_ns for _, row, _ in in_memory
    ]
    assert max(row.sync_ns for _, row, _ in in_memory) > 0


@pytest.mark.parametrize(
    "changelog",
    [None, Changelog(700 * MS, 2_000), Changelog(700 * MS, storage="memory")],
    ids=["plain", "files", "memory"],
)
@pytest.mark.parametrize(
    "options",
    [
        StateOptions(incremental=True),
        StateOptions(incremental=True, local_recovery=True),
        StateOptions(),
    ],
    ids=["incremental", "local", "full"],
)
def test_a_restored_state_is_whole_and_goes_on(options, changelog):
    """After a failure checkpoints complete again, with all their bytes in files that exist, and increments stay small."""
    base = world(replace(ROCKS, changelog=changelog), options, seconds=5)
    kill = fault_at(Kill("stage0", 0), 2000)
    done = run(replace(base, faults=(kill,), restart=Restart("fixed-delay", delay_ns=100 * MS, attempts=3)))
    after = [(number, row, task) for number, row, task in with_state(done) if row.ack_ns > 3 * SECOND]

    assert len(after) >= 6
    for number, row, task in after[-2:]:
        ((stored, _),) = done.contents.of(number, task).parts
        assert all(handle.file is None or done.storage.files.exists(handle.file) for handle in stored.all_handles)
        assert any(handle.file is not None for handle in stored.all_handles)
        assert row.state_bytes >= 9_000
        assert (options.incremental or changelog is not None) == bool(stored.keyed.reused)


@pytest.mark.parametrize(
    ("state", "fault", "local", "seconds"),
    [
        (ROCKS, Kill("stage0", 0), False, 1),
        (ROCKS, Kill("stage0", 0), True, 0),
        (ROCKS, TaskManagerLost(2), True, 1),
        (HEAP, Kill("stage0", 0), False, 1),
        (HEAP, Kill("stage0", 0), True, 0),
        (HEAP, TaskManagerLost(2), True, 1),
    ],
    ids=[f"{backend}, {case}" for backend in ("rocksdb", "heap") for case in ("remote", "local", "lost")],
)
def test_local_copies_spare_the_download_until_their_task_manager_is_lost(state, fault, local, seconds):
    """10 kB per subtask at 10 kB/s: a second or more, or nothing; the subtask of the lost task manager has to read."""
    base = world(state, StateOptions(incremental=True, transfer_threads=1, local_recovery=local), seconds=8)
    stored = replace(base.storage, read_bytes_per_second=10_000, disk=Disk(10**9))
    restart = Restart("fixed-delay", delay_ns=100 * MS, heartbeat_interval_ns=100 * MS)
    done = run(replace(base, storage=stored, faults=(fault_at(fault, 2000),), restart=restart))
    (restored,) = done.job.recovery.stats.values()
    took_ns = restored.running_ns - restored.deployed_ns

    # RocksDB has older entries and other files too
    assert seconds * SECOND <= took_ns <= (4 * seconds * SECOND or SECOND // 20)


def test_a_savepoint_costs_the_job_its_share_of_the_processor():
    """Saturated stages: half of the processor for the second a savepoint takes is half the records of that second."""

    def served(share, actions):
        options = StateOptions(savepoint_bytes_per_second=10_000, savepoint_cpu=share)
        job = chain(1, sink_ns=MS // 100)
        vertices = tuple(v if v.state is None else replace(v, state=State(10_000)) for v in job.vertices)
        base = scenario(replace(job, vertices=vertices), seconds=2, interval_ms=10**6)
        done = run(with_options(replace(base, actions=actions), state=options, interval_ns=None))
        return int(done.plane.tasks()["served"][1])

    savepoint = (Action(SECOND // 2, "canonical"),)
    alone, free, costly = served(Fraction(1, 2), ()), served(Fraction(0), savepoint), served(Fraction(1, 2), savepoint)

    assert free == pytest.approx(alone, rel=0.01)
    assert costly == pytest.approx(alone * 3 / 4, rel=0.02)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize(
    "state", [ROCKS, replace(HEAP, serialize_bytes_per_second=50_000, sync_ns=MS)], ids=["rocksdb", "heap"]
)
def test_invariant_28_all_times_scale_with_any_state(k, state):
    """Flushes, links, compactions, serialising: k times as slow is k times as long, byte for byte."""

    def slow(v, k):
        if v.state is None:
            return v
        state, lsm = v.state, v.state.lsm
        lsm = replace(
            lsm,
            flush_bytes_per_second=10_000_000 // k,
            link_ns=lsm.link_ns * k,
            freeze_ns=(lsm.freeze_ns or 0) * k,
            upload_ns=(lsm.upload_ns or 0) * k,
            compaction_bytes_per_second=lsm.compaction_bytes_per_second // k,
        )
        rate = None if state.serialize_bytes_per_second is None else state.serialize_bytes_per_second // k
        return replace(v, state=replace(state, lsm=lsm, sync_ns=state.sync_ns * k, serialize_bytes_per_second=rate))

    def slowed(base, k):
        return replace(base, job=replace(base.job, vertices=tuple(slow(v, k) for v in base.job.vertices)))

    base = with_network(world(state, StateOptions(incremental=True)), buffer_timeout_ns=-1)
    vertices = tuple(v if v.source is None else replace(v, source=Source()) for v in base.job.vertices)
    base = replace(base, job=replace(base.job, vertices=vertices))
    before, after = (with_state(run(variant)) for variant in (slowed(_scaled(base, 1), 1), slowed(_scaled(base, k), k)))

    assert len(before) >= 4
    assert [(row.written_bytes, row.state_bytes) for _, row, _ in before] == [
        (row.written_bytes, row.state_bytes) for _, row, _ in after
    ]
    assert [k * row.async_ns for _, row, _ in before] == pytest.approx(
        [row.async_ns for _, row, _ in after], abs=100 * k
    )
    assert [k * row.sync_ns for _, row, _ in before] == pytest.approx([row.sync_ns for _, row, _ in after], abs=100 * k)
