"""Whole runs of tiny scenarios: engines agree, failures end the job, options reach what they are about."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.job import Distribution, Input, Job, Rate, Source, Vertex
from sim.model.storage import Storage
from sim.results.journal import Happening
from sim.results.schema import TABLES
from sim.runtime.job_instance import JobInstance
from sim.runtime.simulate import simulate
from sim.runtime.task.channel_state import ChannelState
from tests.laws.small_jobs import ALIGNED, MS, SECOND, UNALIGNED, chain, run, scenario, source
from tests.oracle import ENGINES

TINY = scenario(chain(), UNALIGNED, seconds=1, interval_ms=300)
ENGINE = "compiled"


def journal_of(result, happening):
    return [row for row in result.journal if row.happening is happening]


def too_slow(**options):
    """No checkpoint makes its 50 ms: the sink needs 20 ms per record, with queues in front."""
    return scenario(chain(1, sink_ns=20 * MS), seconds=2, interval_ms=200, timeout_ns=50 * MS, **options)


# ---------------------------------------------------------------------------------------------- a run


def test_engines_agree():
    """The same tables, journal and manifest, to the byte, from all three."""
    first, *others = [simulate(TINY, engine=engine) for engine in ENGINES]

    assert len(first.checkpoints) == 4
    assert first.checkpoints["persisted_data"].sum() > 0
    for other in others:
        assert first.manifest == other.manifest
        assert first.journal == other.journal
        for name, table in first.tables.items():
            assert table.equals(other.tables[name]), name


def test_an_unknown_engine_is_refused():
    """With the names of those there are."""
    with pytest.raises(ValueError, match="unknown engine 'gpu': one of compiled, interpreted"):
        simulate(TINY, engine="gpu")


def test_tables_are_those_of_the_schema():
    result = simulate(TINY, engine=ENGINE)

    assert {n: [column.name for column in columns] for n, columns in TABLES.items()} == {
        n: list(t) for n, t in result.tables.items()
    }
    assert result.job_status == "RUNNING"
    assert result.scenario is TINY
    assert list(zip(result.tasks["vertex"], result.tasks["index"], strict=True))[:3] == [
        ("source", 0),
        ("source", 1),
        ("stage0", 0),
    ]


@pytest.mark.parametrize("table", ["series", "subtasks", "path", "files"])
def test_a_table_without_columns_is_empty(table):
    """Nobody asks for any of it."""
    tables = simulate(scenario(chain(1), seconds=1), only={table: ()}).tables

    assert len(tables[table]) == 0
    assert all(
        len(tables[other])
        for other in ("checkpoints", "subtasks", "tasks", "series", "path", "files")
        if other != table
    )


def test_times_of_a_quiet_checkpoint_are_those_of_its_parts():
    """A job at rest on infinite storage: each step takes what the overheads say, nothing else.

    Trigger 1 ms, the barriers in no time, files of 2000 and 50 B at 1 MB/s with 2 ms latency, acknowledgement 1 ms.
    """
    job = chain(1)
    idle = Job((replace(job.vertices[0], source=Source((Rate(0, Fraction(0)),))), *job.vertices[1:]))
    result = simulate(scenario(idle, seconds=1), engine=ENGINE)
    first, stage = result.checkpoints.iloc[0], result.subtasks[result.subtasks["vertex"] == "stage0"].iloc[0]

    assert first["trigger_timestamp"] == 10.0
    assert first["end_to_end_duration"] == 1 + (2 + 2) + 1
    assert first["x_finalization"] == 3 + 1
    assert tuple(stage[n] for n in ("start_delay", "alignment_duration", "sync_duration", "async_duration")) == (
        1.0,
        0.0,
        0.0,
        4.0,
    )
    assert stage["x_hidden"] == 1.0, "the way of the acknowledgement"
    assert result.checkpoints["trigger_timestamp"].tolist() == [10.0, 410.0, 810.0]


@pytest.mark.parametrize("storage", [TINY.storage, Storage(inline_threshold_bytes=0)], ids=["slow", "instantaneous"])
def test_the_journal_tells_what_was_stored(storage):
    """Each subtask's volume of in-flight data, also where writing it takes no time."""
    result = simulate(replace(TINY, storage=storage), engine=ENGINE)
    written = {(row.checkpoint, row.task): row.number for row in journal_of(result, Happening.CHANNEL_STATE_WRITTEN)}

    assert len(written) == len(result.subtasks)
    assert sorted(written.values()) == sorted(result.subtasks["alignment_persisted"])
    assert sum(written.values()) > 0


def test_progress_is_told_once_a_second():
    heard = []
    simulate(scenario(chain(1, rate=10), seconds=3.5), engine=ENGINE, progress=heard.append)

    assert heard == [1 * SECOND, 2 * SECOND, 3 * SECOND]


def test_an_error_within_a_run_is_raised_with_its_time():
    """Whoever reports it can say when it happened; it is not swallowed."""
    with pytest.raises(ZeroDivisionError) as caught:
        simulate(
            scenario(chain(1, rate=10), seconds=3.5),
            engine=ENGINE,
            progress=lambda time_ns: 1 // (2 * SECOND - time_ns),
        )

    assert caught.value.__notes__ == ["after 2.000000 s of simulated time"]


def test_series_sum_up_to_the_totals():
    """A row per second and vertex: what was done in the seconds is what was done."""
    result = simulate(scenario(chain(1), UNALIGNED, seconds=3), engine=ENGINE)
    series, tasks = result.series.groupby("vertex"), result.tasks.set_index("vertex")

    assert len(result.series) == 3 * 3
    assert sorted(set(result.series["time"])) == [1.0, 2.0, 3.0]
    for vertex, rows in series:
        assert (
            0.98 * tasks["numRecordsIn"][vertex] <= rows["numRecordsInPerSecond"].sum() <= tasks["numRecordsIn"][vertex]
        )
        assert 0.98 * tasks["numBytesOut"][vertex] <= rows["numBytesOutPerSecond"].sum() <= tasks["numBytesOut"][vertex]
        assert ((rows["busy"] + rows["idle"] + rows["backPressured"]).round(9) == 1).all()
    assert (result.series[result.series["vertex"] == "source"]["inputQueueSize"] == 0).all()
    assert (result.series[result.series["vertex"] == "sink"]["outputQueueSize"] == 0).all()
    assert (result.series[result.series["vertex"] == "sink"]["inputQueueSize"] > 0).all(), "it is the slowest"


def test_shares_of_time_are_those_of_all_subtasks():
    series = simulate(scenario(chain(2), seconds=2), engine=ENGINE).series

    assert ((series["busy"] + series["idle"] + series["backPressured"]).round(9) == 1).all()


# ---------------------------------------------------------------------------------------------- failures


def test_an_expired_checkpoint_fails_a_job_that_tolerates_none():
    """The run ends there and then: the job does not come back."""
    result = simulate(replace(too_slow(), checkpoint=replace(too_slow().checkpoint, tolerable_failed=0)), engine=ENGINE)
    (end,) = journal_of(result, Happening.JOB_FAILED)

    assert result.job_status == "FAILED: tolerable failed checkpoints exceeded: CHECKPOINT_EXPIRED"
    assert result.checkpoints["failure_message"].tolist() == ["CHECKPOINT_EXPIRED"]
    assert end.time_ns == (10 + 1 + 50) * MS
    assert end.time_ns == max(row.time_ns for row in result.journal)
    assert result.tasks[[c for c in result.tasks if c.endswith("TimeMs")]].sum(axis=1).round(6)[0] == 61.0


def test_tolerated_failures_let_the_job_go_on():
    """Two tolerated: the third one ends it."""
    result = simulate(replace(too_slow(), checkpoint=replace(too_slow().checkpoint, tolerable_failed=2)), engine=ENGINE)

    assert result.checkpoints["status"].tolist() == ["FAILED"] * 3
    assert [(number, "CHECKPOINT_EXPIRED") for number in (1, 2, 3)] == [
        (row.checkpoint, row.detail) for row in journal_of(result, Happening.ABORTED)
    ]
    assert result.job_status.startswith("FAILED")


def test_a_job_that_tolerates_everything_runs_on():
    result = simulate(too_slow(), engine=ENGINE)

    assert result.job_status == "RUNNING"
    assert journal_of(result, Happening.JOB_FAILED) == []
    assert len(result.checkpoints) > 3


def test_no_interval_no_checkpoints():
    """The data moves as ever; tables are empty and have their columns."""
    base = scenario(chain(1), seconds=1)
    result = simulate(replace(base, checkpoint=replace(base.checkpoint, interval_ns=None)), engine=ENGINE)

    assert (len(result.checkpoints), len(result.subtasks), list(result.journal)) == (0, 0, [])
    assert "persisted_data" in result.checkpoints
    assert (result.tasks["numRecordsIn"] > 0).all()


def test_a_source_with_nothing_due_takes_part():
    """Nothing more is due for now, but its log goes on: its subtask idles on and acknowledges."""
    job = chain(1)
    quiet = Job(
        (
            replace(job.vertices[0], source=Source((Rate(0, Fraction(100)), Rate(50 * MS, Fraction(0))))),
            *job.vertices[1:],
        )
    )
    result = simulate(scenario(quiet, seconds=2), engine=ENGINE)

    assert result.job_status == "RUNNING"
    assert result.checkpoints["status"].tolist() == ["COMPLETED"] * 5
    assert result.tasks["numRecordsIn"].tolist() == [5, 5, 5]


# ---------------------------------------------------------------------------------------------- options reach their place


def pointwise(ship="forward"):
    """source -> map over one pointwise edge, map -> sink by hash; the sink is the slowest: everything is full."""
    inlet = Input("source", ship, service=Distribution(100_000), record_bytes=Distribution(100))
    outlet = replace(inlet, upstream="map", ship="hash", service=Distribution(3 * MS))
    return Job((source("source", 2), Vertex("map", 2, inputs=(inlet,)), Vertex("sink", 2, inputs=(outlet,))))


@pytest.mark.parametrize(
    ("ship", "also", "forced"),
    [("forward", (), True), ("rescale", (), True), ("hash", (), False), ("hash", (("source", "map"),), True)],
)
def test_forced_edges_carry_aligned_barriers(ship, also, forced):
    """Pointwise edges, and edges named, capture nothing of what they carry; the others do."""
    base = scenario(pointwise(ship), UNALIGNED, seconds=2)
    instance = run(replace(base, checkpoint=replace(base.checkpoint, forced_aligned=also)), ENGINE)
    captured = {0: 0, 1: 0}
    for cut in instance.accounts.cuts.cuts.of_checkpoint.values():
        for channel, captured_bytes in enumerate(cut.captured.tolist()):
            captured[instance.layout.edge[channel]] += captured_bytes

    assert [(0, forced)] == instance.context.outputs(0)
    assert instance.context.outputs(2) == [(1, False)]
    assert forced == (captured[0] == 0)
    assert captured[1] > 0
    assert [row.status for row in instance.stats.values()].count("COMPLETED") >= 2, (
        "a capture must not keep back a barrier"
    )


def groups(placement, size):
    base = scenario(chain(), UNALIGNED, seconds=1)
    base = replace(
        base,
        cluster=replace(base.cluster, placement=placement),
        checkpoint=replace(base.checkpoint, subtasks_per_channel_state_file=size),
    )
    return [task.parts.of(ChannelState).writer.members for task in JobInstance(base, ENGINE).tasks]


@pytest.mark.parametrize(
    ("placement", "size", "expected"),
    [
        ("isolated", 5, [[0], [1], [2], [3], [4], [5]]),
        ("single", 5, [[0, 1, 2, 3, 4]] * 5 + [[5]]),
        ("single", 1, [[0], [1], [2], [3], [4], [5]]),
        ("spread", 5, [[0, 2, 4], [1, 3, 5]] * 3),
        ("spread", 2, [[0, 2], [1, 3], [0, 2], [1, 3], [4], [5]]),
    ],
)
def test_channel_state_groups_stay_in_their_task_manager(placement, size, expected):
    """Up to so many subtasks of one task manager share a file; never two task managers."""
    assert expected == groups(placement, size)


def test_members_of_a_group_share_their_writer():
    """One thread for all of them, not one each."""
    base = scenario(chain(), UNALIGNED, seconds=1)
    instance = JobInstance(replace(base, cluster=replace(base.cluster, placement="single")), ENGINE)

    assert len({id(task.parts.of(ChannelState).writer) for task in instance.tasks}) == 2


def test_first_trigger_is_drawn_in_the_old_profile():
    """1.20: uniform between pause and interval, by the seed; 2.x: as measured, always the same."""

    def firsts(profile):
        base = scenario(chain(1, rate=10), seconds=0.5, interval_ms=400)
        scenarios = [
            replace(base, cluster=replace(base.cluster, profile=profile), run=replace(base.run, seed=seed))
            for seed in range(1, 9)
        ]
        return [simulate(scenario, engine=ENGINE).checkpoints["trigger_timestamp"][0] for scenario in scenarios]

    assert {10.0} == set(firsts("2.x"))
    assert len(set(firsts("1.20"))) == 8
    assert all(0 <= first <= 400 for first in firsts("1.20"))


def test_aligned_and_unaligned_have_the_same_data():
    """The workload is a function of the seed: without checkpoints the barriers' kind changes nothing."""
    off = [replace(scenario(chain(), kind, seconds=1), run=TINY.run) for kind in (ALIGNED, UNALIGNED)]
    first, second = (
        simulate(replace(instance, checkpoint=replace(instance.checkpoint, interval_ns=None)), engine=ENGINE)
        for instance in off
    )

    assert first.tasks.equals(second.tasks)
