"""What each change of a scenario changes, and nothing else; the waterfall of an account, column by column."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.explain.causes import SlowPlace, _nodes, _slowest, slow_file
from sim.explain.close_up import rerun_with_observers
from sim.explain.explanation import NOTABLE, WIDTH, Account, AccountLine, duration, sentence, text, title
from sim.explain.what_if import _RULES, WhatIf, what_if
from sim.model.schema.study import loads
from sim.results.critical_path import PathKind, PathPart

MS = 10**6
JOB = """
version: 1
job:
  source: {source: {rate: 400/s, record: 1 kB}}
  sink: {input: {source: hash}, service: 1 ms, snapshot: {pre-barrier: 5 ms, sync: 6 ms, async: 7 ms}, commit: two-phase,
         state: {size: 4 MB, backend: rocksdb}}
checkpoint: {interval: 1 s, max-concurrent: 3, savepoint-rate: 10 MB/s}
storage: {bandwidth: 100 MB/s, metadata-latency: 20 ms, slow: {share: 10 %, factor: 20}}
run: {duration: 12 s}
"""


@pytest.fixture(scope="module")
def scenario():
    return loads(JOB).scenarios[0]


def after(kind, scenario, vertex=None):
    _, change = _RULES.get(kind, ("", lambda *_: None))
    return change(
        scenario, None if vertex is None else next(own for own in scenario.job.vertices if own.name == vertex)
    )


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (PathKind.TRIGGER, "trigger_ns"),
        (PathKind.ACKNOWLEDGEMENT, "acknowledge_ns"),
        (PathKind.NOTIFICATION, "notify_ns"),
    ],
)
def test_a_message_that_takes_no_time_leaves_all_else_as_it_is(scenario, kind, field):
    found = after(kind, scenario)

    assert getattr(found.overheads, field) == 0
    assert replace(scenario, overheads=replace(scenario.overheads, **{field: 0})) == found != scenario


@pytest.mark.parametrize("kind", [PathKind.QUEUE, PathKind.TIMEOUT, PathKind.ALIGNMENT])
def test_unaligned_barriers_go_one_checkpoint_at_a_time(scenario, kind):
    found = after(kind, scenario).checkpoint

    assert (found.barriers.kind, found.max_concurrent) == ("unaligned", 1)
    assert scenario.checkpoint == replace(found, barriers=scenario.checkpoint.barriers, max_concurrent=3)


def test_files_behind_the_barrier_are_a_change_only_where_they_are_before_it(scenario):
    found = after(PathKind.FLUSH, scenario)

    assert ("async", scenario) == (found.checkpoint.operator_io, replace(found, checkpoint=scenario.checkpoint))
    assert after(PathKind.FLUSH, found) is None


@pytest.mark.parametrize("kind", [PathKind.PRE_BARRIER, PathKind.SYNC, PathKind.ASYNC_QUEUE, PathKind.ASYNC_WORK])
def test_without_its_work_a_vertex_spends_no_processor_on_snapshots(scenario, kind):
    """Neither its own nor that of its state; other vertices and its rate of records stay."""
    found = after(kind, scenario, "sink")
    source, sink, *_ = found.job.vertices

    assert (sink.snapshot.pre_barrier_ns, sink.snapshot.sync_ns, sink.snapshot.async_ns) == (0, 0, 0)
    assert (
        sink.state.sync_ns,
        sink.state.serialize_bytes_per_second,
        sink.state.lsm.link_ns,
        sink.state.lsm.flush_bytes_per_second,
    ) == (0, None, 0, 10**15)
    assert found.checkpoint.state.savepoint_bytes_per_second is None
    assert scenario.job.vertices[0] == source
    assert scenario.job.vertices[1] == replace(
        sink, snapshot=scenario.job.vertices[1].snapshot, state=scenario.job.vertices[1].state
    )
    assert after(kind, scenario) is None
    assert after(kind, scenario, "source").job.vertices[0].state is None


@pytest.mark.parametrize("kind", [PathKind.UPLOAD, PathKind.CHANNEL_STATE])
def test_storage_that_takes_no_time_still_writes_its_metadata(scenario, kind):
    found = after(kind, scenario)

    assert (
        found.storage.bytes_per_second,
        found.storage.metadata_ns,
        found.overheads.file_ns,
        found.storage.slow_probability,
    ) == (None, 20 * MS, 0, 0.0)
    assert scenario.storage.inline_threshold_bytes == found.storage.inline_threshold_bytes


def test_a_commit_takes_no_time_where_there_is_one(scenario):
    committers = [vertex.name for vertex in scenario.job.vertices if vertex.committer_of]
    slow = replace(
        scenario,
        job=replace(
            scenario.job,
            vertices=tuple(
                replace(vertex, commit=replace(vertex.commit, time_ns=9)) if vertex.commit else vertex
                for vertex in scenario.job.vertices
            ),
        ),
    )
    for name in ("sink", *committers):
        assert (
            next(own for own in after(PathKind.COMMIT, slow, name).job.vertices if own.name == "sink").commit.time_ns
            == 0
        )
    assert after(PathKind.COMMIT, slow) is None
    assert after(PathKind.COMMIT, slow, "source") is None
    assert after(PathKind.OUTPUT, slow) is None


def test_metadata_that_takes_no_time_completes_at_once(scenario):
    found = after(PathKind.FINALISATION, scenario)

    assert (found.storage.metadata_ns, found.overheads.complete_ns) == (0, 0)
    assert scenario.storage == replace(found.storage, metadata_ns=20 * MS)


@pytest.mark.parametrize(
    ("place", "change"),
    [("node 3 was slow", "without the slow node"), ("the stream was a slow one", "without the slow stream")],
)
def test_a_slow_place_costs_what_its_factor_says(scenario, place, change):
    """A twentieth of the bandwidth: without it 100 ms become 5 ms, and nothing is slow any more."""
    context = SimpleNamespace(scenario=scenario)
    found = what_if(
        PathKind.UPLOAD,
        [PathPart(PathKind.UPLOAD, 0, 60 * MS), PathPart(PathKind.UPLOAD, 60 * MS, 100 * MS)],
        SlowPlace(Fraction(20), place),
        context,
    )

    assert (change, 95 * MS) == (found.change, found.saved_ns)
    assert (found.scenario.storage.slow_probability, found.scenario.storage.slow_factor) == (0.0, 1)
    assert scenario.storage == replace(found.scenario.storage, slow_probability=0.1, slow_factor=20)


def test_what_is_so_already_is_no_change(scenario):
    """Barriers that overtake gain nothing; the coordinator has no vertex; what nobody can spare has no change."""
    context = SimpleNamespace(scenario=scenario, layout=SimpleNamespace(vertex=[0, 1]))
    unaligned = SimpleNamespace(scenario=after(PathKind.QUEUE, scenario), layout=context.layout)
    part = [PathPart(PathKind.QUEUE, 0, 7, task=1)]

    assert (
        what_if(PathKind.QUEUE, part, None, context).change,
        what_if(PathKind.QUEUE, part, None, context).saved_ns,
    ) == ("with unaligned barriers", 7)
    assert what_if(PathKind.QUEUE, part, None, unaligned) is None
    assert what_if(PathKind.OUTPUT, part, None, context) is None
    assert (
        what_if(PathKind.SYNC, [PathPart(PathKind.SYNC, 0, 7, task=1)], None, context)
        .scenario.job.vertices[1]
        .snapshot.sync_ns
        == 0
    )
    assert what_if(PathKind.SYNC, [PathPart(PathKind.SYNC, 0, 7, task=0)], None, context).scenario is not None
    assert (
        what_if(
            PathKind.TRIGGER, [PathPart(PathKind.TRIGGER, 0, 7, task=-1)], None, context
        ).scenario.overheads.trigger_ns
        == 0
    )


def line(kind, begin_ms, end_ms, place="sink[0]", cause="it is slow", **options):
    return AccountLine((PathPart(kind, begin_ms * MS, end_ms * MS),), place, cause, **options)


def account_of(*lines, after=(), status="COMPLETED", is_open=False, strategy="it", savepoint="", job=0, end_ns=None):
    end_ns = (lines[-1].parts[-1].end_ns if lines else 0) if end_ns is None else end_ns
    begin_ns = lines[0].begin_ns if lines else 0
    path = SimpleNamespace(
        begin_ns=begin_ns,
        duration_ns=end_ns - begin_ns,
        is_open=is_open,
        parts=[part for own in lines for part in own.parts],
        after=[part for own in after for part in own.parts],
    )
    stats = SimpleNamespace(status=status, failure="expired", savepoint_format=savepoint, number=7)
    return Account(strategy, job, stats, path, tuple(lines), tuple(after))


def test_the_waterfall_of_an_account():
    """23 columns are 1 s: 400 ms are 9.2 of them, 590 ms end at 22.77, and what takes next to nothing still has one."""
    found = account_of(
        line(PathKind.TRIGGER, 1000, 1400, "coordinator", "calls travel"),
        line(PathKind.SYNC, 1400, 1990),
        line(PathKind.ACKNOWLEDGEMENT, 1990, 2000),
        after=(line(PathKind.FINALISATION, 2000, 2001, "coordinator", "x " * 60),),
    )
    blocks = text(found).split("\n\n")

    assert blocks[0].splitlines() == ["Checkpoint 7 (it) took 1 s. 59 % of it, 590 ms, is sync of sink[0]: it is slow."]
    assert blocks[1].splitlines() == [
        "  1  trigger              coordinator             400 ms ██████████",
        "  2  sync                 sink[0]                 590 ms          ██████████████",
        "  3  acknowledgement      sink[0]                  10 ms                       █",
        "     sum to the last acknowledgement                 1 s (1000 ms)",
        "  4  finalisation         coordinator               1 ms                       █",
    ]
    assert blocks[2].splitlines() == ["  1  Calls travel.", "  2  It is slow."]
    assert max(len(own) for own in text(found).splitlines()) <= WIDTH


def test_a_part_of_no_time_has_a_mark_where_it_is():
    """In the middle of the picture a single column, at its end the last one."""
    found = account_of(
        line(PathKind.TRIGGER, 0, 500),
        line(PathKind.ALIGNMENT, 500, 500),
        line(PathKind.SYNC, 500, 1000),
        line(PathKind.ACKNOWLEDGEMENT, 1000, 1000),
    )
    bars = [row[57:] for row in text(found).split("\n\n")[1].splitlines() if "█" in row]

    assert bars[1::2] == [" " * 11 + "█", " " * 22 + "█"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "checkpoint 7 (it)"),
        ({"job": 2}, "checkpoint 7 of job 2 (it)"),
        ({"savepoint": "native", "strategy": "a"}, "native savepoint 7 (a)"),
    ],
)
def test_the_title_names_number_job_and_strategy(options, expected):
    assert expected == title(account_of(**options))


@pytest.mark.parametrize(("end_ns", "exact"), [(5_743_200_001, "(5743200001 ns)"), (5_743_000_000, "(5743 ms)")])
def test_the_sum_is_exact(end_ns, exact):
    """To the nanosecond where it is not a whole number of milliseconds."""
    found = account_of(AccountLine((PathPart(PathKind.SYNC, 0, end_ns),), "sink[0]", "it is slow"))

    (total,) = [own for own in text(found).splitlines() if "sum to" in own]
    assert total.endswith(f"   5.7 s {exact}")
    assert duration(end_ns) == "5.7 s"


def test_parts_of_less_than_a_twentieth_have_no_note():
    found = account_of(
        line(PathKind.TRIGGER, 0, 49),
        line(PathKind.SYNC, 49, 950),
        line(PathKind.ACKNOWLEDGEMENT, 950, 1000, cause="it travels"),
    )

    assert text(found).split("\n\n")[2].splitlines() == ["  2  It is slow.", "  3  It travels."]
    assert NOTABLE == 0.05


@pytest.mark.parametrize(("saved_ms", "is_told"), [(50, True), (49, False)])
def test_changes_that_save_a_twentieth_are_told(saved_ms, is_told):
    """Parts of one change add up; an aborted checkpoint has none."""
    halves = [WhatIf("with x", own * MS, None) for own in (saved_ms - 20, 20)]
    lines = [line(PathKind.SYNC, 0, 500, what_if=halves[0]), line(PathKind.UPLOAD, 500, 1000, what_if=halves[1])]
    found = account_of(*lines)

    assert ([WhatIf("with x", saved_ms * MS, None)] if is_told else []) == list(found.changes)
    assert account_of(*lines, is_open=True).changes == ()
    effect = "With x: the rest of the path takes 950 ms of 1 s; simulated, 960 ms."
    assert is_told == (effect in " ".join(text(found, {"with x": 960 * MS}).split()))


def test_the_longest_line_is_spoken_about():
    found = account_of(
        line(PathKind.SYNC, 0, 300),
        line(PathKind.UPLOAD, 300, 900, cause="storage is slow"),
        line(PathKind.ACKNOWLEDGEMENT, 900, 1000),
    )

    assert found.longest.parts[0].kind == PathKind.UPLOAD
    assert sentence(found).endswith("60 % of it, 600 ms, sink[0] waits for a file (upload): storage is slow.")
    assert "was still under way" in sentence(account_of(status="IN_PROGRESS"))


def test_a_place_is_as_slow_as_at_its_slowest_moment(monkeypatch):
    """Nine moments from the beginning to the end of the file are looked at; of several places the slowest is named."""
    seen = []

    class History:
        def __init__(self, number):
            self.number = number

        def at(self, moment):
            seen.append(moment)
            return (Fraction(self.number) if moment == 800 else Fraction(1)), 0

    monkeypatch.setattr("sim.explain.causes.slowness", lambda _slow, _seed, number: History(number))
    file = SimpleNamespace(created_ns=0, durable_ns=800)

    assert (Fraction(5), "node 5 was slow") == _slowest(None, 1, {2, 5, 3}, "node", file)
    assert [100 * i for i in range(9)] == sorted(set(seen))
    assert _slowest(None, 1, {1}, "node", file) is None
    # it was looked at once, at 0
    assert _slowest(None, 1, {4}, "prefix", SimpleNamespace(created_ns=0, durable_ns=None)) is None
    assert _slowest(None, 1, set(), "node", file) is None
    seen.clear()
    _slowest(None, 1, {1}, "node", SimpleNamespace(created_ns=800, durable_ns=1600))
    assert [800 + 100 * i for i in range(9)] == sorted(seen)


def test_of_places_equally_slow_the_first_is_named(monkeypatch):
    """Any would do; but the same file gets the same words in each run."""
    monkeypatch.setattr("sim.explain.causes.slowness", lambda *_: SimpleNamespace(at=lambda _: (Fraction(2), 0)))

    assert (Fraction(2), "node 3 was slow") == _slowest(
        None, 1, {7, 3, 5}, "node", SimpleNamespace(created_ns=0, durable_ns=8)
    )


def test_all_nodes_of_all_blocks_are_on_the_way_of_a_file():
    """A file of 25 MB has three blocks of 10 MB, an empty one has one, and of a huge one a thousand are looked at."""
    blocks = []
    dfs = SimpleNamespace(
        options=SimpleNamespace(block_bytes=10), replicas=lambda _name, _host, block: blocks.append(block) or [block, 7]
    )

    assert {0, 1, 2, 7} == _nodes(dfs, SimpleNamespace(size_bytes=25, name="x", host=0))
    assert {0, 7} == _nodes(dfs, SimpleNamespace(size_bytes=0, name="x", host=0))
    blocks.clear()
    _nodes(dfs, SimpleNamespace(size_bytes=10**6, name="x", host=0))
    assert len(blocks) == 1000


def test_a_file_on_a_disk_has_no_slow_place():
    assert slow_file(None, SimpleNamespace(disk=True)) is None


@pytest.mark.parametrize(
    ("share", "expected"), [("100 %", SlowPlace(Fraction(20), "the stream was a slow one")), ("0 %", None)]
)
def test_a_stream_of_flat_storage_is_slow_as_a_whole(share, expected):
    """A file within another one is as slow as that."""
    (instance,) = rerun_with_observers(
        loads(JOB.replace("share: 10 %", f"share: {share}").replace("12 s", "1500 ms")).scenarios[0]
    ).instances
    files = instance.context.storage.files
    twice = rerun_with_observers(
        loads(
            JOB.replace("share: 10 %, factor: 20", f"share: {share}, factor: 2").replace("12 s", "1500 ms")
        ).scenarios[0]
    ).instances[0]

    assert expected == slow_file(instance.context, files[0])
    assert (expected and expected._replace(factor=2)) == slow_file(twice.context, twice.context.storage.files[0])
    assert expected == slow_file(instance.context, SimpleNamespace(disk=False, inside=0))


DFS = JOB.replace(
    "storage: {bandwidth: 100 MB/s, metadata-latency: 20 ms, slow: {share: 10 %, factor: 20}}",
    "storage: {dfs: {nodes: 4, bandwidth: 100 MB/s, replication: 2, SLOW}}",
)
STORE = DFS.replace(
    "{dfs: {nodes: 4, bandwidth: 100 MB/s, replication: 2, SLOW}}",
    "{object-store: {bandwidth: 100 MB/s, prefixes: 2, SLOW}}",
)


@pytest.mark.parametrize(("text", "title"), [(DFS, "node"), (STORE, "prefix")])
@pytest.mark.parametrize(("slow", "factor"), [("slow: {share: 100 %, factor: 2, lasts: 10 min}", 2), ("", None)])
def test_files_of_shared_storage_name_their_slow_node_or_prefix(text, title, slow, factor):
    """The first of those that are equally slow; a factor of two is slow as well."""
    own = text.replace(", SLOW", f", {slow}" if slow else "").replace("12 s", "1500 ms")
    (instance,) = rerun_with_observers(loads(own).scenarios[0]).instances
    found = [slow_file(instance.context, file) for file in instance.context.storage.files]

    assert {None if factor is None else (factor, title)} == {
        place and (place.factor, place.place.split()[0]) for place in found
    }
