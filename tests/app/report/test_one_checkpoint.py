"""One checkpoint: when each subtask reached what."""

import pandas as pd
import pytest

from sim.app.report.figures import one_checkpoint, with_moments
from tests.app.report.marks import marks_of


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
    join = marks_of(one_checkpoint(with_moments(rows), "it"), 0, "box").query("y == 3.65")

    assert list(join["series"]) == ["until its first barrier", "alignment", "synchronous", "asynchronous"]
    assert list(join["x2"]) == [8.0, 28.0, 29.0, 39.0]


def test_an_unaligned_alignment_is_no_wait_for_it(rows):
    """It goes on beside the snapshot, which had begun with the first barrier."""
    rows.loc[4, "async_duration"] = 31.0
    join = with_moments(rows).loc[4]

    assert (join["first"], join["begun"]) == (8.0, 8.0)


def test_a_declined_subtask_is_not_drawn(rows):
    rows.loc[1, "status"] = "pending"

    assert one_checkpoint(with_moments(rows), "it").panels[0].y.names == ("src[0]", "fast[0]", "fast[1]", "join[0]")
