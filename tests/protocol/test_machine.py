"""What all machines share: a story that is no part of their value, and the error that tells it."""

from dataclasses import fields

import pytest

from sim.protocol.barrier_handler import BarrierHandler, BarrierTracker
from sim.protocol.checkpoint_requests import PendingCheckpoint
from sim.protocol.coordinator import Coordinator
from sim.protocol.coordinator_messages import Plan, RequestKind
from sim.protocol.machine import (
    MAX_LOGGED_EVENTS,
    InvalidTransition,
    append_to_event_log,
    replace_fields,
    with_event_logged,
)
from sim.protocol.recovery import Recovery
from sim.protocol.snapshot_store import SnapshotStore
from sim.protocol.task_checkpointing import SnapshotInProgress, TaskCheckpointing
from sim.protocol.task_finishing import TaskEnd

MACHINES = [
    BarrierHandler,
    BarrierTracker,
    Coordinator,
    Recovery,
    SnapshotInProgress,
    SnapshotStore,
    TaskCheckpointing,
    TaskEnd,
]


@pytest.mark.parametrize("machine", MACHINES)
def test_how_a_machine_came_to_its_state_does_not_matter(machine):
    """Two that are in the same state are equal, and their story is told by errors only."""
    (story,) = (field for field in fields(machine) if field.name == "story")

    assert (story.compare, story.repr) == (False, False)


def test_an_impossible_event_is_told_with_what_led_to_it():
    error = InvalidTransition("lamp", "lit", "switched on", ("plugged in", "switched on"), "it is on already")

    assert str(error) == (
        "lamp: switched on cannot happen in lit: it is on already\nwhat led here, oldest first:\n  plugged in\n  switched on"
    )
    assert str(InvalidTransition("lamp", "lit", "switched on")).endswith("oldest first:\n  nothing")


def test_a_story_keeps_its_latest_events():
    story = ()
    for event in range(MAX_LOGGED_EVENTS + 3):
        story = append_to_event_log(story, event)

    assert tuple(range(3, MAX_LOGGED_EVENTS + 3)) == story


def test_a_machine_of_the_past_keeps_its_story():
    """The copy that an event has made takes the story; the machine before it, and one that nothing changes, are left as they were."""
    before = BarrierTracker.waiting(1)
    unchanged = with_event_logged(before, before, "nothing")
    after = with_event_logged(before, replace_fields(before, latest=7), "something")

    assert [machine.story for machine in (before, unchanged, after)] == [(), ("nothing",), ("something",)]
    assert unchanged is not before


def test_a_field_may_have_any_name():
    """The copier is a written function; `kind` and `machine` were names of its own."""
    pending = PendingCheckpoint(1, RequestKind.MANUAL, 5, Plan(frozenset({0}), frozenset({0, 1})))

    after = replace_fields(pending, latest_ack_ns=7)

    assert (after.kind, after.latest_ack_ns) == (RequestKind.MANUAL, 7)
