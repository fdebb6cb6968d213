"""Histories of checkpoints: recorded ones, and small ones made by hand."""

import pytest

import benchmarks.lab  # noqa: F401 - some recordings are the lab's
from sim.jobs.history.history import History
from sim.jobs.history.reading import history_of
from sim.jobs.reading import read_source
from sim.jobs.source.recorded_job import Phases, RecordedAlignment, RecordedCheckpoint, RecordedSubtask, RecordedTask
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.jobs.source.rest_job import RestInput, RestVertex
from tests.places import DATA

TWO_VERTICES = (
    RestVertex("a", "src", ("src",), 1, 128, ()),
    RestVertex("b", "sink", ("sink",), 2, 128, (RestInput("src", "HASH"),)),
)


@pytest.fixture
def recorded():
    """``recorded("users-jobs/J4-pressed-aligned-r1.zip")`` -> its history."""
    return lambda name: history_of(read_source([DATA / name]))


def acknowledged(index, end_ms, start_ms, align_ms=0, sync_ms=0, async_ms=0, **details):
    phases = Phases(sync=sync_ms, **{"async": async_ms})
    alignment = RecordedAlignment(duration=align_ms, persisted=details.pop("persisted", 0))
    return RecordedSubtask(
        index=index,
        status="completed",
        end_to_end_duration=end_ms,
        start_delay=start_ms,
        alignment=alignment,
        checkpoint=phases,
        checkpointed_size=details.pop("size", 100_000),
        **details,
    )


def pending(index):
    return RecordedSubtask(index=index, status="pending_or_failed")


def point(number, took_ms, src, sink, status="COMPLETED", **details):
    tasks = {"src": RecordedTask(subtasks=src), "sink": RecordedTask(subtasks=sink)}
    return RecordedCheckpoint(
        id=number, status=status, trigger_timestamp=10_000 * number, end_to_end_duration=took_ms, tasks=tasks, **details
    )


def history(*points, **details):
    """A source, and two sinks behind a hash."""
    return History(
        "job", "2.3.0", TWO_VERTICES, points, details.pop("config", CheckpointConfig(interval=10_000)), **details
    )
