"""What all machines share: they are values, and their table of legal transitions says neither too little nor too much."""

from hypothesis import given
from hypothesis import strategies as st

from sim.protocol.barrier_handler import (
    AlternatingCollectingBarriers,
    AlternatingCollectingBarriersUnaligned,
    AlternatingWaitingForFirstBarrier,
    AlternatingWaitingForFirstBarrierUnaligned,
    BarrierHandler,
    BarrierTracker,
)
from sim.protocol.machine import InvalidTransition
from sim.protocol.messages import (
    AlignmentTimedOut,
    BarrierAnnounced,
    BarrierArrived,
    CancellationArrived,
    GateClosed,
    InputEnded,
    TriggerReceived,
)
from sim.protocol.options import AlignmentType, BarrierOptions

# What all machines share: they are values.


def test_a_machine_is_equal_to_another_in_the_same_state():
    tracker = BarrierTracker.for_gates(1)

    assert tracker == BarrierTracker.for_gates(1)
    assert len({tracker, BarrierTracker.for_gates(1), BarrierTracker.for_gates(2)}) == 2


# The table of legal transitions says neither too little nor too much.


# ---- Which states may follow which on an event, to compare with Flink's Alternating* states.
#
# Every abort leads back to the first state.  A barrier of a newer checkpoint aborts the pending one and is then handled
# by the first state, so the transitions of the first state apply.

AW, AC = AlternatingWaitingForFirstBarrier, AlternatingCollectingBarriers
UW, UC = AlternatingWaitingForFirstBarrierUnaligned, AlternatingCollectingBarriersUnaligned

TRANSITIONS = {
    AW: {
        BarrierAnnounced: {AW},
        BarrierArrived: {AW, AC, UC},  # AW: the only barrier; UC: unaligned or late
        AlignmentTimedOut: {UW},
        GateClosed: {AW},
        CancellationArrived: {AW},
        InputEnded: {AW},
        TriggerReceived: {AW},
    },
    AC: {
        BarrierAnnounced: {AC, AW},  # AW: of a newer checkpoint
        BarrierArrived: {AC, AW, UC},  # AW: the last one; UC: unaligned or late
        AlignmentTimedOut: {UC},
        GateClosed: {AC, AW},
        CancellationArrived: {AW},
        InputEnded: {AW},
        TriggerReceived: {AW},
    },
    UW: {
        BarrierAnnounced: {UW, AW},
        BarrierArrived: {UC, AW, AC},  # AW: the only barrier; AC: of a newer checkpoint
        AlignmentTimedOut: {UW},
        GateClosed: {UW},
        CancellationArrived: {AW},
        InputEnded: {AW},
        TriggerReceived: {AW},
    },
    UC: {
        BarrierAnnounced: {UC, AW},
        BarrierArrived: {UC, AW, AC},  # AW: the last one; AC: of a newer checkpoint
        AlignmentTimedOut: {UC},
        GateClosed: {UC, AW},
        CancellationArrived: {AW},
        InputEnded: {AW},
        TriggerReceived: {AW},
    },
}
# state -> event -> states that may follow; an event that is not listed is obsolete, and changes nothing

UNALIGNED = BarrierOptions(0, AlignmentType.UNALIGNED)
TIMEOUT = BarrierOptions(0, aligned_timeout_ns=50)


def events(options, *, now=10):
    """Every event about checkpoints 1 to 3 on two gates."""
    yield from (GateClosed(now, gate) for gate in (0, 1))
    yield InputEnded(now, 0)
    for checkpoint in (1, 2, 3):
        yield TriggerReceived(now, checkpoint, options[0])
        yield AlignmentTimedOut(60, checkpoint)
        for gate in (0, 1):
            yield CancellationArrived(now, gate, checkpoint)
            for carried in options:
                yield from (
                    BarrierArrived(now, gate, checkpoint, carried, first, last)
                    for first, last in ((1, 1), (1, 0), (0, 1))
                )
                if carried.timeoutable:
                    yield BarrierAnnounced(now, gate, checkpoint, carried)


def reached(options, gates=2, depth=3):
    """(state, event, next state) of every sequence of so many events."""
    found, frontier = set(), {BarrierHandler.for_gates(gates)}
    for _ in range(depth):
        following = set()
        for handler in frontier:
            for event in events(options):
                try:
                    after, _ = handler.on(event)
                except InvalidTransition:
                    continue
                found.add((type(handler.state), type(event), type(after.state)))
                following.add(after)
        frontier = following
    return found


def test_every_transition_of_the_table_can_happen_and_no_other():
    happened = reached((UNALIGNED, TIMEOUT)) | reached((TIMEOUT,), gates=1)
    table = {
        (state, event, to) for state, row in TRANSITIONS.items() for event, targets in row.items() for to in targets
    }

    assert set() == table - happened
    assert set() == {(state, event, to) for state, event, to in happened if state is not to} - table


@given(st.lists(st.sampled_from(sorted(events((UNALIGNED, TIMEOUT)), key=str)), max_size=12))
def test_a_handler_snapshots_each_checkpoint_once_and_in_order(sequence):
    """Whatever comes, in whatever order: no checkpoint is begun twice, none after a newer one."""
    handler, begun = BarrierHandler.for_gates(2), []
    for event in sequence:
        try:
            handler, commands = handler.on(event)
        except InvalidTransition:
            continue
        begun += [command.checkpoint for command in commands if type(command).__name__ == "StartSnapshot"]

    assert sorted(set(begun)) == begun
