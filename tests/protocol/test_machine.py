"""What all machines share: they are frozen, and the error of an impossible event lists the events before it."""

from dataclasses import FrozenInstanceError, dataclass

import pytest

from sim.protocol.barrier_handler import BarrierTracker
from sim.protocol.machine import MAX_LOGGED_EVENTS, EventLog, InvalidTransition


@dataclass(frozen=True)
class Lamp:
    lit: bool = False

    def on(self, event):
        if event == "switched on" and self.lit:
            raise InvalidTransition("lamp", self, event, "it is on already")
        return Lamp(event == "switched on"), ()


def test_a_machine_refuses_assignments_and_is_equal_to_another_in_the_same_state():
    tracker = BarrierTracker.for_gates(1)

    with pytest.raises(FrozenInstanceError):
        tracker.latest = 7
    assert tracker == BarrierTracker.for_gates(1)
    assert len({tracker, BarrierTracker.for_gates(1), BarrierTracker.for_gates(2)}) == 2


def test_an_impossible_event_is_told_with_the_events_before_it():
    log = EventLog()
    lamp, _ = log.step(Lamp.on, Lamp(), "plugged in")
    lamp, _ = log.step(Lamp.on, lamp, "switched on")

    with pytest.raises(InvalidTransition) as raised:
        log.step(Lamp.on, lamp, "switched on")

    assert str(raised.value) == "lamp: switched on cannot happen in Lamp(lit=True): it is on already"
    assert raised.value.__notes__ == ["earlier events, oldest first:\n  plugged in\n  switched on"]


@pytest.mark.parametrize("before", [0, MAX_LOGGED_EVENTS - 1, MAX_LOGGED_EVENTS + 1, 3 * MAX_LOGGED_EVENTS])
def test_the_log_keeps_the_latest_events(before):
    log, lamp = EventLog(), Lamp()
    for number in range(before):
        lamp, _ = log.step(Lamp.on, lamp, number)

    with pytest.raises(InvalidTransition) as raised:
        log.step(Lamp.on, Lamp(lit=True), "switched on")

    latest = [f"  {number}" for number in range(before)][-MAX_LOGGED_EVENTS:] or ["  none"]
    assert raised.value.__notes__[0].splitlines()[1:] == latest
