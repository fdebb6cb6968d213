"""The barrier handler with aligned barriers: sequences in, commands out, as in Flink's CheckpointBarrierAlignerTestBase."""

import pytest

from sim.protocol.barrier_handler import (
    AlternatingCollectingBarriers,
    AlternatingWaitingForFirstBarrier,
    BarrierHandler,
)
from sim.protocol.machine import InvalidTransition
from sim.protocol.messages import (
    BarrierArrived,
    CancellationArrived,
    DeclineCheckpoint,
    ForwardCancellation,
    GateClosed,
    InputEnded,
    ResumeInputs,
    SettleBarriers,
    StartSnapshot,
)
from sim.protocol.options import BarrierOptions, FailureReason
from tests.protocol.machines import feed as feed_machine

OPTIONS = BarrierOptions(trigger_ns=100)


def feed(gates, *events):
    machine, commands = feed_machine(BarrierHandler.for_gates(gates), *events)
    return machine, tuple(commands)


def both(now, gate, checkpoint=1):
    """A gate with one channel."""
    return BarrierArrived(now, gate, checkpoint, OPTIONS, first=True, last=True)


def first(now, gate, checkpoint=1):
    return BarrierArrived(now, gate, checkpoint, OPTIONS, first=True, last=False)


def last(now, gate, checkpoint=1):
    return BarrierArrived(now, gate, checkpoint, OPTIONS, first=False, last=True)


def snapshot(checkpoint, *, first_ns, alignment_ns):
    return StartSnapshot(checkpoint, OPTIONS, first_ns, alignment_ns, resumes=True)


def test_two_of_three_gates_wait():
    """A task with three gates keeps collecting after the second last barrier."""
    handler, commands = feed(3, both(110, 1), both(120, 2))

    assert AlternatingCollectingBarriers() == handler.state
    assert commands == ()


def test_a_newer_barrier_subsumes_the_alignment():
    """Blocked channels are resumed, the older checkpoint is declined, those downstream are spared the wait."""
    handler, commands = feed(2, both(110, 0), both(200, 1, 2))

    assert AlternatingCollectingBarriers() == handler.state
    assert handler.pending.checkpoint == 2
    assert (
        ResumeInputs(1),
        SettleBarriers(1),
        DeclineCheckpoint(1, FailureReason.CHECKPOINT_DECLINED_SUBSUMED),
        ForwardCancellation(1),
    ) == commands


def test_a_checkpoint_never_heard_of_is_settled():
    """Barriers of 2 that still come after the first one of 3 are obsolete."""
    _, commands = feed(2, both(110, 0), both(120, 1), both(300, 0, 3))

    assert SettleBarriers(2) == commands[-1]


def test_checkpoints_before_the_first_one_heard_of_are_settled():
    assert SettleBarriers(1) == feed(2, both(110, 0, 2))[1][0]


def test_every_gap_between_checkpoints_is_settled():
    _, commands = feed(2, both(110, 0, 3), both(200, 0, 5))

    assert [SettleBarriers(n) for n in (2, 3, 4)] == [
        command for command in commands if isinstance(command, SettleBarriers)
    ]


def test_an_obsolete_barrier_changes_nothing():
    handler, _ = feed(2, both(110, 0), both(300, 1, 3))
    after, commands = handler.on(both(310, 0, 2))

    assert commands == ()
    assert handler == after


def test_a_cancellation_aborts_the_alignment():
    handler, commands = feed(2, both(110, 0), CancellationArrived(120, 1, 1))

    assert AlternatingWaitingForFirstBarrier() == handler.state
    assert (
        ResumeInputs(1),
        SettleBarriers(1),
        DeclineCheckpoint(1, FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER),
        ForwardCancellation(1),
    ) == commands


def test_a_cancellation_before_any_barrier_is_passed_on():
    handler, commands = feed(2, CancellationArrived(120, 1, 1))

    assert (
        SettleBarriers(1),
        DeclineCheckpoint(1, FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER),
        ForwardCancellation(1),
    ) == commands
    assert (handler, ()) == handler.on(both(130, 0))  # too late


def test_one_cancellation_is_enough():
    """The second channel's marker says nothing new."""
    _, commands = feed(2, both(110, 0), CancellationArrived(120, 1, 1), CancellationArrived(121, 0, 1))

    assert sum(isinstance(command, ForwardCancellation) for command in commands) == 1


def test_a_cancellation_of_a_newer_checkpoint_frees_the_older_one():
    """The older one is not declined by this task: the newer one's cancellation says it all (abortInternal)."""
    handler, commands = feed(2, both(110, 0), CancellationArrived(120, 1, 2))

    assert ResumeInputs(1) == commands[0]
    assert DeclineCheckpoint(2, FailureReason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER) == commands[2]
    assert handler.current == 2


def test_an_old_cancellation_is_ignored():
    _, commands = feed(1, both(110, 0), CancellationArrived(120, 0, 1))

    assert (snapshot(1, first_ns=110, alignment_ns=0),) == commands


def test_a_closed_gate_counts_as_arrived():
    handler, commands = feed(2, both(110, 0), GateClosed(140, 1))

    assert (snapshot(1, first_ns=110, alignment_ns=30),) == commands
    assert frozenset({0}) == handler.open_gates


def test_an_end_aborts_what_is_pending_where_checkpoints_do_not_outlive_it():
    """Without FLIP-147: the task declines, unblocks and tells the others."""
    ended = InputEnded(120, 1)
    handler, commands = feed(2, both(110, 0), ended)

    assert [ResumeInputs, SettleBarriers, DeclineCheckpoint, ForwardCancellation] == [
        type(command) for command in commands
    ]
    assert commands[2].reason == FailureReason.CHECKPOINT_DECLINED_INPUT_END_OF_STREAM
    assert (handler, ()) == handler.on(ended), "nothing is pending"


@pytest.mark.parametrize(
    "events",
    [
        (both(110, 0), both(111, 0)),  # a gate has one last barrier
        (last(110, 0),),  # and a first one before it
        (GateClosed(100, 0), both(110, 0)),
        (GateClosed(100, 0), GateClosed(101, 0)),
    ],
)
def test_what_cannot_happen_names_the_event(events):
    with pytest.raises(InvalidTransition) as caught:
        feed(2, *events)

    assert str(events[-1]) in str(caught.value)
