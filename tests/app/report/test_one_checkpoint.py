"""One checkpoint: when each subtask reached what, who reads whom, and what a slider moves through."""

import pandas as pd
import pytest

from sim.app.report.figures import SampledQueues, one_checkpoint, with_moments
from sim.app.report.job_graph import GraphEdge, GraphVertex, JobGraph, places


def subtask(vertex, index, start, aligning, sync, async_, total):
    return {
        "vertex": vertex,
        "index": index,
        "status": "completed",
        "start_delay": start,
        "alignment_duration": aligning,
        "x_pre_barrier": 0.0,
        "sync_duration": sync,
        "async_duration": async_,
        "end_to_end_duration": total,
        "checkpointed_size": 100,
    }


GRAPH = JobGraph(
    (GraphVertex("src", 2), GraphVertex("fast", 2), GraphVertex("join", 1)),
    (GraphEdge("src", "fast", "FORWARD"), GraphEdge("src", "join", "hash"), GraphEdge("fast", "join", "REBALANCE")),
)


@pytest.fixture
def rows():
    return pd.DataFrame(
        [
            subtask("src", 0, 1.0, 0.0, 2.0, 3.0, 7.0),
            subtask("src", 1, 1.0, 0.0, 2.0, 3.0, 6.0),
            subtask("fast", 0, 5.0, 0.0, 0.0, 0.0, 5.0),
            subtask("fast", 1, 6.0, 0.0, 0.0, 0.0, 6.0),
            subtask("join", 0, 8.0, 20.0, 1.0, 10.0, 40.0),
        ]
    )


def test_bars_follow_one_another(rows):
    """Their ends are the moments of the subtask."""
    join = one_checkpoint(with_moments(rows), "it").of(0, "box").query("y == 3.65")

    assert list(join["series"]) == ["until its first barrier", "alignment", "synchronous", "asynchronous"]
    assert list(join["x2"]) == [8.0, 28.0, 29.0, 39.0]


def test_an_unaligned_alignment_is_no_wait_for_it(rows):
    """It goes on beside the snapshot, which had begun with the first barrier."""
    rows.loc[4, "async_duration"] = 31.0
    join = one_checkpoint(with_moments(rows), "it", GRAPH).scrub["tasks"][-1]

    assert (join["first"], join["last"], join["begun"]) == (8.0, 28.0, 8.0)


def test_a_subtask_reads_as_its_exchange_says(rows):
    """Forward: its neighbour; all others: everything."""
    tasks = {task["name"]: task for task in one_checkpoint(with_moments(rows), "it", GRAPH).scrub["tasks"]}

    assert [task["reads"] for task in tasks.values()] == [[], [], [[0, 1]], [[1, 2]], [[0, 2], [2, 4]]]


def test_a_vertex_stands_below_what_it_reads():
    top = [box["top"] for box in places(GRAPH)]

    assert GRAPH.layers() == [[0], [1], [2]]
    assert top == sorted(top, reverse=True)


def test_queues_are_those_of_their_sample(rows):
    scrub = one_checkpoint(
        with_moments(rows), "it", GRAPH, SampledQueues([-5.0, 10.0], [["a", "b", "c"], ["d", "e", "f"]])
    ).scrub

    assert scrub["queues"] == {"at_ms": [-5.0, 10.0], "words": [["a", "b", "c"], ["d", "e", "f"]]}


def test_a_declined_subtask_is_not_drawn(rows):
    rows.loc[1, "status"] = "pending"

    assert one_checkpoint(with_moments(rows), "it").panels[0].y.names == ("src[0]", "fast[0]", "fast[1]", "join[0]")
