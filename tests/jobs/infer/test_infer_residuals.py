"""What checkpoints of a history took beyond what is usual, and nothing that the protocol or bytes explain."""

from sim.jobs.infer.scenario import infer_residuals
from tests.jobs.infer.made_jobs import MB, MadeJob, checkpoint, drafted, subtask, vertex

CHAIN = [vertex("src"), vertex("map", "src"), vertex("sink", "map")]


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
