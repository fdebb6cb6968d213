"""What the history of checkpoints tells of one vertex: work before the barrier, and latency that is none."""

import pytest

from sim.jobs.infer.cores import busy_in_snapshots_ms, infer_pauses
from sim.jobs.infer.scenario import infer_residuals
from tests.jobs.infer.made_jobs import MB, MadeJob, checkpoint, drafted, flowed, own, subtask, vertex

CHAIN = [vertex("src"), vertex("map", "src"), vertex("sink", "map")]


def pauses(history, **config):
    """The sections `snapshot:` after a checkpoint of each element, which has the subtask of each vertex."""
    job = MadeJob(
        CHAIN,
        [checkpoint(k, **{name: [each] for name, each in row.items()}) for k, row in enumerate(history, 2)],
        config,
    )
    draft = drafted(job)
    for row in CHAIN:
        infer_pauses(draft.vertex(row.name), job, row)
    return {name: values.get("snapshot", {}) for name, values in draft.document["job"].items()}, job


def test_an_unaligned_one_does_not_wait_for_the_others():
    """Their barriers come while the asynchronous phase lasts."""
    usual = subtask(start=100, align=300, sync=5, async_=320, late=-297)
    late = subtask(start=100, align=300, sync=5, async_=320, late=200)
    found, _ = pauses([{"src": usual, "map": usual, "sink": late}] * 4, unaligned_checkpoints=True)

    assert found == {"src": {}, "map": {}, "sink": {"pre-barrier": "500 ms"}}


@pytest.mark.parametrize(("at_sink", "works"), [(600, True), (100, False)], ids=["late", "in time"])
def test_work_before_the_barrier_makes_readers_wait(at_sink, works):
    """`map` acknowledges 500 ms late.  Where its reader had the barrier before that, it was no work, and keeps no thread busy."""
    row = {"src": subtask(), "map": subtask(start=90, align=5, late=503), "sink": subtask(start=at_sink)}
    found, job = pauses([row] * 4)

    assert works == ("pre-barrier" in found["map"])
    assert works == (busy_in_snapshots_ms(job, CHAIN[1], flowed(own(1.0))) > 0)


def test_latency_that_strikes_all_vertices_alike_is_no_work_of_the_last_one():
    """Nobody reads it, so only the others show what is usual."""
    rows = [dict.fromkeys(("src", "map", "sink"), subtask(late=late)) for late in (200, 20) * 3]

    assert pauses(rows)[0] == {"src": {}, "map": {}, "sink": {}}


def test_what_happened_once_is_an_outlier():
    """However long it took."""
    rows = [{"src": subtask(), "map": subtask(), "sink": subtask(late=late)} for late in (4970, 3, 3, 3)]

    assert pauses(rows)[0]["sink"] == {}


def residuals(of_sink):
    """``of_sink(number)``: bytes of the sink in a checkpoint, and its asynchronous phase [ms]."""
    points = []
    for number in range(2, 18):
        size, took_ms = of_sink(number)
        points.append(checkpoint(number, map=[subtask(0, MB)], sink=[subtask(0, size, async_=took_ms)]))
    job = MadeJob(CHAIN, points, {})
    draft = drafted(job)
    infer_residuals(draft, job)
    return draft.document.get("residuals")


def test_large_files_are_no_chance():
    """Ten times the bytes in ten times the time, in every fourth checkpoint; as many bytes in that time are a tail."""
    assert residuals(lambda number: ((1 + 9 * (number % 4 == 0)) * MB, (1 + 9 * (number % 4 == 0)) * 40)) is None
    assert residuals(lambda number: (MB, (1 + 9 * (number % 4 == 0)) * 40))["of"] == {
        "sink": {"async": [[360 * (number % 4 == 0) for number in range(2, 18)]]}
    }


def test_a_history_without_latency_has_none():
    assert residuals(lambda _: (MB, 40)) is None
