"""Small files share a task; all slots get some, and no task gets much more than others."""

import pytest

from sim.studies.traces import pipeline
from sim.studies.traces.listing import TraceFile

SMALL = 15_000


def split(sizes, slots):
    """How many files each task reads."""
    files = [TraceFile(str(number), "folder", str(number), size) for number, size in enumerate(sizes)]
    found = pipeline.shares(files, slots)
    assert files == [file for share in found for file in share]
    return [len(share) for share in found]


@pytest.mark.parametrize(
    ("files", "slots", "expected"),
    [(40, 2, [20, 20]), (40, 100, [1] * 40), (1, 2, [1]), (100, 3, [33, 34, 33]), (400, 2, [52] * 6 + [53, 35])],
)
def test_small_files_share_tasks(files, slots, expected):
    """A task per slot, and more of them where one would read for long."""
    assert expected == split([SMALL] * files, slots)


def test_a_large_file_has_a_task_of_its_own():
    assert split([SMALL] * 20 + [1 << 30] + [SMALL] * 20, 2) == [20, 1, 20]


def test_tasks_are_not_too_many(monkeypatch):
    monkeypatch.setattr(pipeline, "MAX_TASKS", 4)

    assert split([1 << 30] * 40, 2) == [10] * 4
