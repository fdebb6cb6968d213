"""A real Flink, a cause that was planted, and whether the answers alone name it (`tests/data/planted/README.md`)."""

import pytest

from sim.jobs.history.causes import process_pauses
from sim.jobs.history.explanation import answer, answer_text
from sim.jobs.history.history import garbage_text

HISTORY = None
PLANTED = [
    ("cold", HISTORY, "they are earlier in the history"),
    ("cold", 1, "It is the job's first: code is not compiled yet"),
    ("paused", 27, "nothing of task manager tm-2 moved for 2.4 s, while others did"),
    ("savepoint", 18, "a savepoint has a folder and a format of its own"),
    ("savepoint", 19, "Savepoint 18 had taken 3.2 s until 29 ms before it was triggered"),
    ("recovery", 41, "Tasks of the job had failed 11 s before it was triggered"),
    (
        "disk",
        13,
        "profile+out-writer[1] wrote 14 MB in 257 ms from task manager tm-0: not all of the storage is slow, but the disk or",
    ),
    ("disk", 13, "network of tm-1"),
    (
        "expired",
        33,
        "profile+out-writer[1] waits for a file (upload): its snapshot had begun, and was not acknowledged",
    ),
    ("expired", 33, "it was through 1.7 s later (18 MB at 1.9 MB/s)"),
    ("declined", 48, "profile+out-writer[0]: its asynchronous part failed, and it declined the checkpoint"),
    ("declined", 48, "the exception is in the log of task manager tm-1"),
    ("hot", HISTORY, "profile+out-writer[1] is busy 99 % of its time, and reads 82 % of the records of its vertex"),
    ("channel", 60, "is channel state of profile+out-writer[0]"),
    ("storm", HISTORY, "Garbage collection: tm-0 has spent 8.2 s in 1053 collections, 99 of them full (5.4 s)"),
    ("window", HISTORY, "long checkpoints of this history keep the rhythm of the windows of top (every 9 s)"),
    ("sink", HISTORY, "write+out-writer[1] is busy 100 % of its time"),
]


@pytest.mark.parametrize(("name", "checkpoint", "expected"), PLANTED)
def test_the_planted_cause_is_named(recorded, name, checkpoint, expected):
    """Lines are broken at 80 columns, and names at hyphens."""
    text = answer_text(answer(recorded(f"planted/{name}.zip"), checkpoint))

    assert "".join(expected.split()).lower() in "".join(text.split()).lower()


@pytest.mark.parametrize(
    "name", ["hot", "sink", "window", "disk", "users-jobs/J4-pressed-aligned-r1", "users-jobs/R3-firing-aligned"]
)
def test_no_pause_where_none_was(recorded, name):
    """Back-pressure, windows and slow files are no pauses of a process, and its garbage is as usual."""
    found = recorded(f"{name}.zip" if "/" in name else f"planted/{name}.zip")

    assert not [point.id for point in found.detailed if list(process_pauses(found, point))]
    assert not garbage_text(found.garbage, found.age_ms)
