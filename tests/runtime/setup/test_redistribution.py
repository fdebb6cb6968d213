"""A checkpoint redistributed to another parallelism: nothing in flight is lost, state goes by key groups, streams fit together."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.job import AsyncIO, Distribution, Job
from sim.model.sinks import Commit
from sim.plane import build
from sim.plane.interface import create_layout
from sim.runtime.plane_spec import plane_spec
from sim.runtime.redistribution import redistribute
from tests.invariants.jobs.small_jobs import ALIGNED, MS, SECOND, UNALIGNED, chain, scenario, started


def rescaled(base, **parallelism):
    vertices = tuple(
        replace(vertex, parallelism=parallelism.get(vertex.name, vertex.parallelism)) for vertex in base.job.vertices
    )
    return replace(base, job=Job(vertices))


def latest(base, engine="compiled"):
    """What the latest completed checkpoint of a second of this job holds."""
    instance = started(base, engine)
    instance.env.run(until=instance.env.timeout(2 * SECOND))
    return instance, instance.contents.checkpoints[instance.job.coordinator.machine.latest_completed]


def dealt(base, **parallelism):
    instance, stored = latest(base)
    after = rescaled(base, **parallelism)
    return instance, stored, plane_spec(after), redistribute(stored, instance.spec, after)


def in_flight(parts):
    """(records written and not read, bytes captured, bytes overtaken) of a whole checkpoint."""
    rows = [part.position for part in parts.values()]
    records = sum(int(row.records_written.sum()) for row in rows) - sum(int(row.records_read.sum()) for row in rows)
    return records, sum(int(row.captured.sum()) for row in rows), sum(int(row.overtaken.sum()) for row in rows)


@pytest.mark.parametrize("parallelism", [{"stage0": 3}, {"stage0": 5, "sink": 1}, {"sink": 4}, {}])
@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED], ids=str)
def test_nothing_in_flight_is_lost(kind, parallelism):
    """As many records as before, on as many bytes, behind and before the senders; records served add up."""
    base = scenario(chain(2, sink_ns=8 * MS), kind)
    _, stored, spec, parts = dealt(base, **parallelism)
    before, after = in_flight(stored), in_flight(parts)

    assert before[0] == after[0]
    assert (kind is UNALIGNED) == (after[0] > 0)
    assert before[1] + before[2] == pytest.approx(after[1] + after[2], abs=100 * len(parts)), (
        "records cut in two are whole again"
    )
    assert sum(vertex.parallelism for vertex in spec.vertices) == len(parts)
    assert sum(part.position.served for part in stored.values()) == sum(part.position.served for part in parts.values())


@pytest.mark.parametrize(
    ("parallelism", "lower"), [({"sink": 4}, 2), ({"stage0": 3}, 1), ({"stage0": 5, "sink": 4}, 2)]
)
def test_records_in_flight_stay_in_their_key_groups(parallelism, lower):
    """What waits for the first of two readers goes to the new readers of the lower half of the key groups, and to no other."""
    base = scenario(chain(2, sink_ns=8 * MS), UNALIGNED)
    instance, stored = latest(base)
    tasks = [range(first, last) for first, last in ((2, 4), (4, 6))]
    for task in tasks[0]:  # nothing waits for the second reader
        row = stored[task].position
        missing = [stored[reader].position.records_read[task - tasks[0].start] for reader in tasks[1]]
        row.records_written[1] = missing[1]
    after = rescaled(base, **parallelism)
    spec, parts = plane_spec(after), redistribute(stored, instance.spec, after)
    sinks = [task for task, vertex in enumerate(create_layout(spec).vertex) if spec.vertices[vertex].name == "sink"]
    columns = [parts[task].position.records_written for task in range(2, sinks[0])]
    to_reader = [
        sum(int(column[reader]) for column in columns) - int(parts[task].position.records_read.sum())
        for reader, task in enumerate(sinks)
    ]

    assert sum(to_reader[:lower]) > 0
    assert sum(to_reader[lower:]) == 0


@pytest.mark.parametrize("parallelism", [{"stage0": 3}, {"sink": 1}, {"sink": 5}, {"stage0": 5, "sink": 3}, {}])
@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED], ids=str)
def test_what_a_writer_holds_back_is_dealt_out(kind, parallelism):
    """As many records as before; on the streams that begin anew they count as read and not as written, and those in flight follow them."""
    base = scenario(chain(2, sink_ns=8 * MS), kind)
    sink = replace(base.job.vertices[-1], commit=Commit(holds_back=3))
    _, stored, spec, parts = dealt(replace(base, job=Job((*base.job.vertices[:-1], sink))), **parallelism)
    readers = [part for part in parts.values() if part.held_back]
    plane = build(replace(spec, begin_ns=2 * SECOND), "compiled")
    plane.start({task: part.position for task, part in parts.items()})

    assert (
        2 * 2 * 3
        == sum(sum(part.held_back) for part in stored.values())
        == sum(sum(part.held_back) for part in readers)
    )
    assert dict(parallelism).get("sink", 2) == len(readers)
    assert (not parallelism) == any(sum(part.written) for part in readers)
    assert all(
        plane.position(task).records_read.tolist() == part.position.records_read.tolist()
        for task, part in parts.items()
    )


def test_requests_under_way_stay_with_their_task():
    """The stage behind is rescaled: who asked has the same requests under way, and the records it has served with them."""
    base = scenario(chain(2), ALIGNED)
    source, stage, sink = base.job.vertices
    asking = replace(stage, async_io=AsyncIO(Distribution(50 * MS)))
    _, stored, _, parts = dealt(replace(base, job=Job((source, asking, sink))), sink=3)

    for task in (2, 3):
        before, after = stored[task].position, parts[task].position
        assert before.late > 0
        assert (before.late, before.served) == (after.late, after.served)


@pytest.mark.parametrize("stages", [1, 3])
def test_requests_under_way_are_dealt_out(stages):
    """List state: as many requests in all, in equal parts, and none that its task has not served."""
    base = scenario(chain(2), ALIGNED)
    source, stage, sink = base.job.vertices
    asking = replace(stage, async_io=AsyncIO(Distribution(50 * MS)))
    _, stored, _, parts = dealt(replace(base, job=Job((source, asking, sink))), **{stage.name: stages})
    late = [parts[task].position.late for task in range(2, 2 + stages)]

    assert sum(part.position.late for part in stored.values()) == sum(late) > 0
    assert max(late) - min(late) <= 1
    assert all(part.position.late <= part.position.served for part in parts.values())


@pytest.mark.parametrize("sinks", [1, 3])
def test_every_committable_goes_to_one_new_task(sinks):
    """Two sinks become one or three: none is forgotten, none comes twice, and the checkpoint they are restored with is theirs."""
    base = scenario(chain(2), ALIGNED)
    sink = replace(base.job.vertices[-1], commit=Commit())
    _, stored, _, parts = dealt(replace(base, job=Job((*base.job.vertices[:-1], sink))), sink=sinks)
    before, after = (
        [part.committables for part in snapshots.values() if part.committables is not None]
        for snapshots in (stored, parts)
    )

    assert sum(len(uncommitted.committables) for uncommitted in before) == 2
    first, second = (
        sorted(str(c) for uncommitted in side for c in uncommitted.committables) for side in (before, after)
    )
    assert first == second
    assert {uncommitted.checkpoint for uncommitted in before} == {uncommitted.checkpoint for uncommitted in after}


def test_keyed_state_goes_by_key_groups():
    """2 -> 3 subtasks: the one in the middle takes a third of what each of the two had."""
    _, stored, _, parts = dealt(scenario(chain(2), ALIGNED), stage0=3)
    shares = [[share for _, share in parts[task].parts] for task in (2, 3, 4)]

    assert [len(share) for share in shares] == [1, 2, 1]
    assert pytest.approx(float(sum(map(sum, shares)) / 2), abs=0.02) == 1
    assert Fraction(1, 3) == pytest.approx(shares[1][0], abs=0.02)
    assert sum(part.state_bytes for part in stored.values()) == pytest.approx(
        sum(part.state_bytes for part in parts.values()), abs=10
    )


def test_channel_state_is_read_by_everybody_who_may_own_some_of_it():
    """D.9: 2 -> 3 subtasks, the middle one reads what both old ones captured: more is read than is kept."""
    _, stored, _, parts = dealt(scenario(chain(2, sink_ns=8 * MS), UNALIGNED), sink=3)
    kept = sum(int(part.position.captured.sum() + part.position.overtaken.sum()) for part in parts.values())
    captured = [int(stored[task].position.captured.sum()) for task in (4, 5)]

    assert sum(captured) + captured[0] + captured[1] == sum(parts[task].in_flight_bytes for task in (4, 5, 6))
    assert kept < sum(part.in_flight_bytes for part in parts.values())
