"""Causes of parts, in numbers: data before a barrier, files, windows, channel state; and which checkpoints are looked at."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from sim.explain.causes import Causes, SlowPlace
from sim.explain.close_up import CloseUp, Queued, _two_columns, rerun_with_observers
from sim.explain.explanation import NoCheckpointError, _typical, with_checkpoints
from sim.model.schema.study import loads
from sim.results.critical_path import PathKind, PathPart
from sim.results.journal import Happening
from tests.explain.test_parts_of_explain import observed

SECOND = 10**9


def with_data(*rows, task=0, **fields):
    """Causes where so many bytes lay at the writer and at the reader of each output of a task."""
    instance = observed(**fields)
    instance.queued[1, task] = np.array(rows)
    return Causes(instance, 1)


def part_of(kind, seconds=2, **others):
    return PathPart(kind, 0, seconds * SECOND, **{"task": 2, "channel": 0} | others)


def test_data_before_a_barrier_is_drained_at_a_rate():
    """4 MB in 2 s: 3 MB lay at the writer, 1 MB at the reader."""
    causes = with_data([3_000_000, 1_000_000])

    assert (
        causes.text([part_of(PathKind.QUEUE)])
        == "4 MB lay before it (3 MB not sent yet, 1 MB received or on the way), drained at 2 MB/s"
    )
    assert (Queued(3, 1).total, Queued(3, 1).at_writer, Queued(3, 1).at_reader) == (4, 3, 1)
    assert _two_columns(
        np.array([(100, 30, 0)], dtype=[("written", "i8"), ("sent", "i8"), ("taken", "i8")])
    ).tolist() == [[70, 30]]


def test_where_nothing_lay_before_it_the_thread_was_awaited():
    assert (
        with_data([0, 0]).text([part_of(PathKind.QUEUE)]) == "nothing lay before it: the thread of c[0] had to be free"
    )
    assert (
        with_data([5, 5]).text([part_of(PathKind.QUEUE, channel=1)])
        == "nothing lay before it: the thread of c[0] had to be free"
    )


def test_a_barrier_that_overtakes_waits_for_the_thread():
    causes = with_data([5, 5])
    causes.context.scenario.checkpoint.barriers.record.overtakes = True

    assert causes.text([part_of(PathKind.QUEUE)]) == "it overtook data, and waited for the thread of c[0]"
    causes.context.scenario.checkpoint.barriers.record.has_deadline = True
    assert "drained at" in causes.text([part_of(PathKind.QUEUE)])


def test_a_barrier_overtakes_nothing_where_another_input_is_a_broadcast():
    """Flink keeps all input edges of the vertex aligned (StreamGraphGenerator)."""
    causes = with_data([5, 5])
    causes.context.scenario.checkpoint.barriers.record.overtakes = True
    inputs = [
        SimpleNamespace(upstream=upstream, shipping=SimpleNamespace(overtaken=overtaken))
        for upstream, overtaken in (("a", True), ("b", False))
    ]
    vertices = causes.context.scenario.job.vertices
    vertices[2] = SimpleNamespace(**vars(vertices[2]) | {"name": "c", "inputs": inputs})

    assert "drained at" in causes.text([part_of(PathKind.QUEUE)])


@pytest.mark.parametrize(
    ("status", "failed_ns", "is_drained"),
    [("FAILED", 2 * SECOND, False), ("FAILED", 3 * SECOND, True), ("COMPLETED", 2 * SECOND, True)],
)
def test_a_queue_that_the_failure_cuts_off_is_not_drained(status, failed_ns, is_drained):
    causes = with_data([5, 5])
    causes.context.stats[1].status, causes.context.stats[1].failed_ns = status, failed_ns

    assert is_drained == ("drained at" in (text := causes.text([part_of(PathKind.QUEUE)])))
    assert is_drained == (not text.endswith(", and was not drained when the checkpoint was given up"))


def test_a_timeout_counts_the_data_of_its_channel_or_of_all_outputs():
    causes = with_data([3000, 1000])
    expected = "4 kB lay before it (3 kB not sent yet, 1 kB received or on the way); the barrier may overtake only 200 ms after the trigger"

    assert (
        causes.text([part_of(PathKind.TIMEOUT)])
        == causes.text([part_of(PathKind.TIMEOUT, task=0, channel=-1)])
        == f"{expected} (alignment timeout)"
    )
    assert causes.text([part_of(PathKind.TIMEOUT, task=1, channel=-1)]).startswith("no data lay before it; ")
    causes.context.scenario.checkpoint.barriers.timeout_ns = None
    assert "only 0 ns after" in causes.text([part_of(PathKind.TIMEOUT)]).replace("0 s", "0 ns")


@pytest.mark.parametrize(("waiting", "fan_out", "is_firing"), [(1000, 1, True), (999, 1, False), (500, 2, True)])
def test_a_window_is_the_cause_if_it_fires_for_half_of_the_part(waiting, fan_out, is_firing):
    """1 ms each: a thousand records take half of 2 s, with two copies each five hundred."""
    causes = with_data([5, 5])
    vertex = causes.context.scenario.job.vertices[2]
    vertex.window, vertex.fan_out = SimpleNamespace(fire_ns=10**6), fan_out
    causes.instance.waiting |= {(1, 0, 2): waiting + 7, (1, 2, 2): 7}
    firing = f"its window ended, and {waiting} held records or more were fired on the task thread, 1 ms each; 10 B lay before it"

    assert is_firing == causes.text([part_of(PathKind.QUEUE)]).startswith(firing)


def test_an_alignment_says_what_lay_before_the_last_barrier():
    causes = with_data([3000, 1000], task=1)

    assert causes.text([part_of(PathKind.ALIGNMENT, channel=1)]).startswith("no data lay") is False
    causes.instance.queued[1, 1] = np.array([[3000, 1000]])
    assert (
        causes.text([part_of(PathKind.ALIGNMENT, channel=1)])
        == "4 kB lay before it (3 kB not sent yet, 1 kB received or on the way) when it set out"
    )


def stored(name, size, created_ns, durable_ns):
    return SimpleNamespace(name=name, size_bytes=size, created_ns=created_ns, durable_ns=durable_ns)


def uploads(monkeypatch, *files, slow=None):
    monkeypatch.setattr("sim.explain.causes.slow_file", lambda _context, file: (slow or {}).get(file.name[-1]))
    causes = Causes(observed(storage=SimpleNamespace(files=dict(enumerate(files)))), 1)
    parts = [
        PathPart(PathKind.UPLOAD, place * SECOND, (place + 1) * SECOND, 2, file=place) for place in range(len(files))
    ]
    return causes, parts


def test_a_file_has_a_size_and_a_rate(monkeypatch):
    causes, parts = uploads(monkeypatch, stored(("keyed", "c", 7), 4_000_000, 0, SECOND))

    assert causes.text(parts) == "file keyed/c/7, 4 MB at 4 MB/s"
    flush = [PathPart(PathKind.FLUSH, 0, 2 * SECOND, 2, file=0)]
    assert (
        causes.text(flush)
        == "the operator writes before it forwards the barrier, on the task thread: file keyed/c/7, 4 MB at 2 MB/s"
    )


def test_of_several_files_the_longest_and_the_slowest_place_are_named(monkeypatch):
    slow = {"a": SlowPlace(Fraction(4), "node 3 was slow"), "b": SlowPlace(Fraction(5, 2), "node 9 was slow")}
    causes, parts = uploads(
        monkeypatch, stored(("a",), 1_000_000, 0, SECOND // 2), stored(("b",), 5_000_000, SECOND, 2 * SECOND), slow=slow
    )

    assert (
        causes.text(parts)
        == "2 files one after the other, the longest b, 6 MB at 3 MB/s; node 3 was slow (bandwidth divided by 4)"
    )
    assert slow["a"] == causes.slow(parts)
    assert slow["b"] == causes.slow(parts[1:])
    assert causes.slow([PathPart(PathKind.SYNC, 0, 1, 2)]) is None


def test_a_file_that_never_became_durable_took_until_the_end(monkeypatch):
    """The last acknowledgement came after 900 ns: longer than the other file took, though the failure is not known."""
    causes, parts = uploads(monkeypatch, stored(("a",), 1, 0, 100), stored(("b",), 1, 50, None))

    assert (
        causes.text(parts)
        == "2 files one after the other, the longest b was not durable when the checkpoint was given up"
    )
    causes.context.stats[1].latest_ack_ns, causes.context.stats[1].failed_ns = -1, 200
    assert "the longest b was" in causes.text(parts)


@pytest.mark.parametrize(("anew", "is_told"), [(2_100_000, True), (2_000_000, False)])
def test_compactions_are_told_that_rewrote_more_than_half(monkeypatch, anew, is_told):
    causes, parts = uploads(
        monkeypatch, stored(("a",), anew, 0, SECOND), stored(("b",), 4_000_000 - anew, SECOND, 2 * SECOND)
    )
    causes.instance.merged |= {(0, 2): frozenset(), (1, 2): frozenset("a")}

    assert is_told == causes.text(parts).endswith(", of which a compaction wrote 2.1 MB anew")


@pytest.mark.parametrize(
    ("own_ns", "changelog", "savepoint", "clause"),
    [
        (2 * SECOND, None, "", "the operator's own work in the asynchronous part"),
        (2 * SECOND - 1, None, "", "work of the asynchronous part, beside its files"),
        (0, SimpleNamespace(in_memory=True), "", "the changelog in memory is sent with the acknowledgement"),
        (0, SimpleNamespace(in_memory=False), "", "the task waits for files of the changelog"),
        (0, None, "native", "state is serialised for the native savepoint"),
    ],
)
def test_asynchronous_work_has_its_reason(own_ns, changelog, savepoint, clause):
    causes = Causes(observed(), 1)
    vertex = causes.context.scenario.job.vertices[2]
    vertex.snapshot.async_ns, vertex.state = own_ns, None if changelog is None else SimpleNamespace(changelog=changelog)
    causes.context.stats[1].savepoint_format = savepoint

    assert clause == causes.text([part_of(PathKind.ASYNC_WORK)])


def test_subtasks_that_share_a_file_of_channel_state_are_counted():
    """A task that has not acknowledged has no row yet."""
    causes = Causes(observed(), 1)
    causes.instance.paths.graph = SimpleNamespace(groups=[5, 6, 5])
    causes.context.stats[1].subtasks |= {
        0: SimpleNamespace(persisted_bytes=3000),
        1: SimpleNamespace(persisted_bytes=90_000),
    }
    share = "3 kB of in-flight data of 2 subtasks share a file of channel state, which c[0] and the others await"

    assert share == causes.text([part_of(PathKind.CHANNEL_STATE)])
    assert (
        causes.text([part_of(PathKind.CHANNEL_STATE, task=1)])
        == "90 kB of in-flight data are written to the file of channel state"
    )


def test_a_commit_on_the_task_thread_is_said():
    causes = Causes(observed(), 1)
    causes.context.scenario.job.vertices[2].commit = SimpleNamespace(time_ns=5)

    assert causes.text([part_of(PathKind.COMMIT)]) == "the commit makes the output visible, on the task thread"
    assert (
        causes.text([part_of(PathKind.COMMIT, task=0)]) == "the commit makes the output visible, on the task thread"
    )  # vertices are alike
    causes.context.scenario.job.vertices[2].commit.time_ns = 0
    assert causes.text([part_of(PathKind.COMMIT)]) == "the commit makes the output visible"
    assert causes.text([part_of(PathKind.COMMIT, task=-1, channel=-1)]) == "the commit makes the output visible"


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({}, "c[0] < a[0]"),
        ({"channel": 1}, "c[0] < b[0]"),
        ({"channel": -1}, "c[0]"),
        ({"channel": -1, "task": -1}, "coordinator"),
        ({"channel": -1, "task": 0}, "a[0]"),
    ],
)
def test_a_place_is_a_subtask_a_channel_or_the_coordinator(options, place):
    assert place == Causes(observed(), 1).place(part_of(PathKind.QUEUE, **options))


def test_only_barriers_of_the_same_task_count_as_its_first():
    causes = Causes(observed(), 1)
    arrived = Happening.BARRIER_ARRIVED
    story = [(arrived, 1, 0, 1), (Happening.BARRIER_FORWARDED, 2, 0, 2), (arrived, 2, 0, 3)]
    entries = [
        SimpleNamespace(happening=what, task=task, number=number, time_ns=at) for what, task, number, at in story
    ]
    causes.instance.paths = SimpleNamespace(story=lambda _: entries)

    assert causes.text([part_of(PathKind.ALIGNMENT)]) == "nothing lay before it any more"
    assert causes.text([part_of(PathKind.ALIGNMENT, channel=1)]).startswith(
        "the first barrier came from a[0], the last through this channel: "
    )


def run_of(*rows, firsts=(), warmup_ms=0, jobs=None):
    """A run whose checkpoints are (status, trigger [ms], duration [ms]), the first ones being uploads of everything."""
    stats = {}
    for number, (status, at, ms) in enumerate(rows, 1):
        end_ns = (at + ms) * 10**6
        stats[number] = SimpleNamespace(
            number=number, status=status, trigger_ns=at * 10**6, latest_ack_ns=end_ns, failed_ns=end_ns
        )
    table = SimpleNamespace(run=SimpleNamespace(finds_warm_up=False, warmup_ns=warmup_ms * 10**6))
    return CloseUp(
        SimpleNamespace(scenario=table, firsts=firsts), (SimpleNamespace(context=SimpleNamespace(stats=stats)),)
    )


@pytest.mark.parametrize(
    ("rows", "firsts", "warmup_ms", "chosen"),
    [
        # the median and the slowest
        ([("COMPLETED", 0, 300), ("COMPLETED", 1, 100), ("COMPLETED", 2, 200)], [], 0, [3, 1]),
        ([("COMPLETED", 0, 300), ("COMPLETED", 1, 100)], [], 0, [2, 1]),  # of two in the middle the quicker
        ([("COMPLETED", 0, 300)], [], 0, [1]),
        ([("COMPLETED", 0, 900), ("COMPLETED", 5, 100), ("COMPLETED", 6, 90)], [], 5, [3, 2]),  # behind the warm-up
        # a first upload stands first
        ([("COMPLETED", 0, 900), ("COMPLETED", 5, 100), ("COMPLETED", 6, 90)], [1], 5, [1, 3, 2]),
        ([("COMPLETED", 0, 900)], [1], 0, [1]),
        ([("FAILED", 0, 5), ("FAILED", 1, 9), ("IN_PROGRESS", 3, 50)], [], 0, [2]),  # the last that failed
        (
            [("IN_PROGRESS", 0, 50), ("IN_PROGRESS", 3, 50)],
            [],
            2,
            [1],
        ),  # under way for longest, even from before the end of the warm-up
    ],
)
def test_the_checkpoints_that_are_looked_at(monkeypatch, rows, firsts, warmup_ms, chosen):
    monkeypatch.setattr(
        "sim.explain.explanation._first_uploads", lambda run: [(0, number) for number in run.result.firsts]
    )

    assert [(0, number) for number in chosen] == _typical(run_of(*rows, firsts=firsts, warmup_ms=warmup_ms))


def test_nothing_to_look_at_is_an_error(monkeypatch):
    monkeypatch.setattr("sim.explain.explanation._first_uploads", lambda _: [])

    with pytest.raises(NoCheckpointError, match="after the warm-up"):
        _typical(run_of(("FAILED", 1, 9), warmup_ms=2))


JOB = """
version: 1
job:
  source: {source: {rate: 4k/s, record: 1 kB}}
  sink: {input: {source: hash}, service: 100 us}
checkpoint: {interval: CHECKPOINTS}
run: {duration: 3 s}
"""


def test_only_strategies_that_take_checkpoints_are_explained():
    """At intervals, or by an action."""
    off = loads(JOB.replace("CHECKPOINTS", "off")).scenarios[0]
    on = loads(JOB.replace("CHECKPOINTS", "1 s")).scenarios[0]
    saved = loads(JOB.replace("CHECKPOINTS", "off") + "actions: [{savepoint: canonical, at: 1 s}]\n").scenarios[0]

    assert {"on": on, "saved": saved} == with_checkpoints({"off": off, "on": on, "saved": saved})
    with pytest.raises(NoCheckpointError, match="no strategy takes checkpoints"):
        with_checkpoints({"off": off})


def test_a_closer_look_changes_nothing_and_sees_each_job_instance():
    """Each observer is called once for it, and queues are noted for tasks that have readers."""
    seen = []
    scenario = loads(JOB.replace("CHECKPOINTS", "1 s")).scenarios[0]
    run = rerun_with_observers(scenario, attach=seen.append)

    (instance,) = run.instances
    assert (1, seen[0].context) == (len(seen), instance.context)
    assert {0} == {task for _, task in instance.queued}
    assert {1, 2} <= {number for number, _ in instance.queued}
    assert {(1, 2)} == {table.shape for table in instance.queued.values()}
    assert {} == instance.waiting == instance.merged
    assert instance.path_finder() is instance.path_finder()
    assert instance.before_barrier(1, 0) == Queued(*instance.queued[1, 0][0].tolist())
    assert instance.before_barrier(99, 0) is None
