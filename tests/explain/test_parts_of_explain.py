"""What is said of each kind of part, which change would spare it, and which checkpoints are chosen."""

from types import SimpleNamespace

import numpy as np
import pytest

from sim.explain.causes import Causes
from sim.explain.close_up import ObservedInstance, rerun_with_observers
from sim.explain.explanation import _end_name, _fate, _passes, accounts
from sim.explain.what_if import bound
from sim.model.schema.study import loads
from sim.results.critical_path import PathKind, PathPart
from sim.results.journal import Happening

MILLISECOND = 10**6
SPARED = {
    PathKind.QUEUE: "with unaligned barriers",
    PathKind.TIMEOUT: "with unaligned barriers",
    PathKind.ALIGNMENT: "with unaligned barriers",
    PathKind.FLUSH: "with files written in the asynchronous part",
    PathKind.PRE_BARRIER: "without the work before the barrier",
    PathKind.SYNC: "without the synchronous part",
    PathKind.ASYNC_QUEUE: "without the asynchronous work",
    PathKind.ASYNC_WORK: "without the asynchronous work",
    PathKind.UPLOAD: "with storage that takes no time",
    PathKind.CHANNEL_STATE: "with storage that takes no time",
    PathKind.COMMIT: "with a commit that takes no time",
}
"""What a setting of a real job can spare."""


@pytest.mark.parametrize("overtakes", [False, True])
@pytest.mark.parametrize("kind", PathKind)
def test_a_bound_is_told_where_a_setting_spares_the_part(kind, overtakes):
    """Barriers that overtake already gain nothing by unaligned ones."""
    found = bound(kind, 7, overtakes=overtakes)
    expected = None if overtakes and SPARED.get(kind) == "with unaligned barriers" else SPARED.get(kind)

    assert expected == (None if found is None else found.change)
    assert found is None or (found.saved_ns, found.scenario) == (7, None)


def observed(**fields):
    """Tasks a (0), b (1) and c (2); channels a -> c (0) and b -> c (1), with 70 bytes at the writer of channel 0 and 30 at its reader."""
    vertex = SimpleNamespace(
        name="v",
        committer_of="",
        inputs=(),
        window=None,
        fan_out=1,
        commit=None,
        state=None,
        snapshot=SimpleNamespace(async_ns=0),
    )
    barriers = SimpleNamespace(
        timeout_ns=200 * MILLISECOND, record=SimpleNamespace(overtakes=False, has_deadline=False)
    )
    scenario = SimpleNamespace(
        job=SimpleNamespace(vertices=[vertex] * 3),
        cluster=SimpleNamespace(version=""),
        checkpoint=SimpleNamespace(barriers=barriers, forced_aligned=()),
    )
    layout = SimpleNamespace(writer=np.array([0, 1]), reader=np.array([2, 2]), vertex=[0, 1, 2], outputs=[[0], [1], []])
    layout.task_partitions, layout.partitions = [[0], [1], []], [(0, 0, [0]), (1, 0, [1])]
    stats = SimpleNamespace(latest_ack_ns=900, failed_ns=-1, status="COMPLETED", savepoint_format="", subtasks={})
    context = SimpleNamespace(
        scenario=scenario, layout=layout, names=[("a", 0), ("b", 0), ("c", 0)], stats={1: stats}, **fields
    )
    return ObservedInstance(context, paths=SimpleNamespace(story=lambda _: []))


@pytest.mark.parametrize(
    ("before", "after", "fired"), [(70, 20, 50), (70, 70, 0), (20, 70, 0), (None, 20, 0), (70, None, 0)]
)
def test_records_that_a_window_fired_are_those_that_it_holds_no_more(before, after, fired):
    instance = observed()
    instance.waiting |= {key: count for key, count in (((1, 0, 2), before), ((1, 2, 2), after)) if count is not None}

    assert fired == instance.fired(1, 0)


def test_tables_of_a_compaction_are_those_that_the_checkpoint_before_did_not_have():
    """The first checkpoint has to write them all, and other tasks have their own."""
    instance = observed()
    instance.merged |= {
        (1, 0): frozenset("ab"),
        (2, 0): frozenset("bc"),
        (2, 1): frozenset("x"),
        (4, 0): frozenset("cde"),
    }

    assert frozenset() == instance.compacted(1, 0) == instance.compacted(2, 1)
    assert [frozenset("c"), frozenset("de")] == [instance.compacted(number, 0) for number in (2, 4)]


@pytest.mark.parametrize(
    ("kind", "clause"),
    [
        (PathKind.TRIGGER, "coordinator prepares"),
        (PathKind.TASK_THREAD, "before it took the call"),
        (PathKind.END_OF_INPUT, "an input of the task ends instead of sending a barrier"),
        (PathKind.PRE_BARRIER, "prepareSnapshotPreBarrier"),
        (PathKind.SYNC, "the synchronous part"),
        (PathKind.ASYNC_QUEUE, "still at work for an older checkpoint"),
        (PathKind.ASYNC_WORK, "work of the asynchronous part, beside its files"),
        (PathKind.OUTPUT, "had not left its output queues"),
        (PathKind.ACKNOWLEDGEMENT, "takes its turn there"),
        (PathKind.FINALISATION, "writes _metadata"),
        (PathKind.NOTIFICATION, "thread of the committer"),
        (PathKind.COMMIT, "makes the output visible"),
    ],
)
def test_each_kind_of_part_has_its_words(kind, clause):
    assert clause in Causes(observed(), 1).text([PathPart(kind, 0, 100, task=2)])


def alignment(*happenings):
    instance = observed()
    instance.paths = SimpleNamespace(
        story=lambda _: [
            SimpleNamespace(happening=what, task=task, number=number, time_ns=at)
            for what, task, number, at in happenings
        ]
    )
    return Causes(instance, 1).text([PathPart(PathKind.ALIGNMENT, 50, 100, task=2, channel=1)])


def test_an_alignment_names_the_first_barrier_and_says_why_the_last_was_late():
    arrived, forwarded = Happening.BARRIER_ARRIVED, Happening.BARRIER_FORWARDED
    first = "the first barrier came from a[0], the last through this channel: "

    assert f"{first}nothing lay before it any more" == alignment(
        (arrived, 2, 0, 50), (arrived, 2, 1, 100), (forwarded, 1, -1, 50)
    )
    assert f"{first}its writer sent it later; nothing" in alignment(
        (arrived, 2, 0, 50), (arrived, 2, 1, 100), (forwarded, 1, -1, 51)
    )
    assert (
        alignment((arrived, 2, 1, 50), (arrived, 1, 0, 20), (forwarded, 1, -1, 20)) == "nothing lay before it any more"
    )


@pytest.mark.parametrize(
    ("happening", "at_ns", "task", "overtakes"),
    [
        (Happening.OUTPUT_CONVERTED, 50, 1, True),
        (Happening.OUTPUT_CONVERTED, 51, 1, False),
        (Happening.OUTPUT_CONVERTED, 50, 0, False),
        (Happening.INPUT_PRIORITISED, 49, 2, True),
        (Happening.INPUT_PRIORITISED, 51, 2, False),
    ],
)
def test_a_barrier_overtakes_from_the_moment_it_is_converted(happening, at_ns, task, overtakes):
    """At its writer, or at its reader; the part begins at 50."""
    assert overtakes == alignment((happening, task, -1, at_ns)).endswith(
        "it overtook data, and waited for the thread of c[0]"
    )


@pytest.mark.parametrize(
    ("durable", "clause"),
    [
        ((90, 100), "2 files one after the other, the longest b, 3 MB at"),
        ((90, 101), "not durable"),
        ((90, None), "not durable"),
    ],
)
def test_a_file_that_is_not_durable_has_no_bandwidth(monkeypatch, durable, clause):
    """One of several is enough.  3 MB in 100 ns."""
    files = {
        i: SimpleNamespace(name=(name,), size_bytes=size, created_ns=10 * i, durable_ns=at)
        for i, (name, size, at) in enumerate(zip("ab", (10**6, 2 * 10**6), durable, strict=True))
    }
    monkeypatch.setattr("sim.explain.causes.slow_file", lambda *_: None)
    causes = Causes(observed(storage=SimpleNamespace(files=files)), 1)
    files[0].created_ns = 20

    assert clause in causes.text(
        [PathPart(PathKind.UPLOAD, 0, 50, 2, file=0), PathPart(PathKind.UPLOAD, 50, 100, 2, file=1)]
    )


@pytest.mark.parametrize(
    ("kind", "place", "clause"),
    [
        (PathKind.QUEUE, "c[0] < a[0]", "its barrier is on the way from a[0] to c[0]"),
        (PathKind.TIMEOUT, "c[0] < a[0]", "its barrier waits on the way from a[0] to c[0] until the alignment timeout"),
        (PathKind.TIMEOUT, "a[0]", "its barrier waits in the output of a[0] until the alignment timeout"),
        (PathKind.ALIGNMENT, "c[0] < a[0]", "c[0] has its first barrier and waits for the last, from a[0]"),
        (PathKind.TASK_THREAD, "a[0]", "the call waits for the task thread of a[0]"),
        (PathKind.UPLOAD, "a[0]", "a[0] waits for a file (upload)"),
        (PathKind.SYNC, "a[0]", "is sync of a[0]"),
    ],
)
def test_a_sentence_says_where_the_longest_part_is_spent(kind, place, clause):
    assert clause == _passes(SimpleNamespace(place=place, parts=[PathPart(kind, 0, 1)], name=str(kind)))


@pytest.mark.parametrize(
    ("status", "is_open", "end", "fate"),
    [
        ("COMPLETED", False, "the last acknowledgement", "took 7 ms"),
        ("FAILED", True, "the failure", "was given up after 7 ms (expired)"),
        ("IN_PROGRESS", True, "now", "has been under way for 7 ms"),
    ],
)
def test_a_sum_ends_where_the_checkpoint_does(status, is_open, end, fate):
    account = SimpleNamespace(
        stats=SimpleNamespace(status=status, failure="expired"), path=SimpleNamespace(is_open=is_open)
    )

    assert (end, fate) == (_end_name(account), _fate(account, "7 ms"))


def test_where_none_completes_the_last_that_failed_is_told():
    job = "{source: {source: {rate: 1k/s, record: 1 kB}}, sink: {input: {source: hash}, snapshot: {async: 5 s}}}"
    checkpoint = "{interval: 1 s, timeout: 100 ms, tolerable-failed: 100}"
    run = rerun_with_observers(
        loads(f"version: 1\njob: {job}\ncheckpoint: {checkpoint}\nrun: {{duration: 5 s, warmup: 0 s}}").scenarios[0]
    )
    (found,) = accounts("it", run)

    rows = run.result.checkpoints
    assert len(rows) > 2
    assert {"FAILED"} == set(rows["status"])
    assert rows["id"].max() == found.stats.number
