"""The end of a task, event by event."""

import pytest

from sim.protocol.machine import InvalidTransition
from sim.protocol.options import StopMode
from sim.protocol.task_finishing import (
    FINISHING,
    CloseOperators,
    CompletionHandled,
    DataEnded,
    EndState,
    FinishOperators,
    ForwardEndOfData,
    ForwardEndOfPartition,
    InputsClosed,
    OperatorsClosed,
    OperatorsFinished,
    OutputRead,
    QuiesceTimers,
    ReportEndOfData,
    ReportFinished,
    SnapshotBegun,
    SnapshotEnded,
    TaskEnd,
)
from tests.protocol.machines import feed as after

DRAINED, STOPPED = DataEnded(1, StopMode.DRAIN), DataEnded(1, StopMode.NO_DRAIN)
FINISHED, CLOSED, READ, SHUT = OperatorsFinished(2), OperatorsClosed(3), OutputRead(2), InputsClosed(2)
GONE = [ForwardEndOfPartition(), ReportFinished()]


def begun(checkpoint, *, stop=None):
    return SnapshotBegun(2, checkpoint, stop)


def ended(checkpoint):
    return SnapshotEnded(2, checkpoint)


def heard(checkpoint):
    return CompletionHandled(3, checkpoint)


def source(rule="flink", *, outputs=1, checkpointing=True):
    return TaskEnd(FINISHING[rule], checkpointing, outputs, inputs_open=False)


def reader(rule="flink", *, outputs=0):
    return TaskEnd(FINISHING[rule], checkpointing=True, unread=outputs, inputs_open=True)


def test_operators_finish_before_the_end_of_data_leaves():
    end, commands = after(source(), DRAINED)

    assert (EndState.FINISHING, [FinishOperators()]) == (end.state, commands)

    end, commands = after(end, FINISHED)

    assert (EndState.WAITING, [ForwardEndOfData(StopMode.DRAIN), ReportEndOfData()]) == (end.state, commands)


def test_a_job_that_stops_where_it_stands_finishes_nothing():
    """No finish(), and the coordinator hears of no end of data: there will be no final checkpoint of its own accord."""
    assert [QuiesceTimers(), ForwardEndOfData(StopMode.NO_DRAIN)] == after(source(), STOPPED)[1]


def test_a_task_waits_for_the_first_checkpoint_after_its_end():
    """Checkpoint 4 began before the end of data, 5 after it: 5, or a later one, holds the end."""
    end, _ = after(source(), begun(4), DRAINED, FINISHED, READ, ended(4), heard(4))

    assert end.state == EndState.WAITING

    end, _ = after(end, begun(5), ended(5))

    assert (end.state, end.final) == (EndState.WAITING, 5)
    assert [CloseOperators()] == after(end, heard(5))[1]
    assert [CloseOperators()] == after(end, heard(6))[1], "the notification of 5 was lost"


def test_a_task_waits_until_its_output_is_read():
    """An unaligned barrier overtakes the end of data: the checkpoint completes before the readers have come so far."""
    end, commands = after(source(outputs=2), DRAINED, FINISHED, begun(5), ended(5), heard(5), READ)

    assert CloseOperators() not in commands
    assert [CloseOperators()] == after(end, READ)[1]


def test_a_task_waits_for_the_end_of_its_inputs():
    end, commands = after(reader(), DRAINED, FINISHED, begun(5), ended(5), heard(5))

    assert CloseOperators() not in commands
    assert [CloseOperators()] == after(end, SHUT)[1]


def test_a_task_waits_for_snapshots_under_way():
    """Their files would be lost with it; no other one begins meanwhile."""
    end, commands = after(source(), DRAINED, FINISHED, READ, begun(5), ended(5), begun(6), heard(5))

    assert CloseOperators() not in commands
    assert (end.state, end.closing) == (EndState.LEAVING, True)
    assert [CloseOperators()] == after(end, ended(6))[1]


def test_closing_comes_before_the_end_of_the_partition():
    end, commands = after(source(), DRAINED, FINISHED, READ, begun(5), ended(5), heard(5))

    assert (True, CloseOperators()) == (end.closing, commands[-1])

    end, commands = after(end, CLOSED)

    assert (end.state, commands) == (EndState.FINISHED, GONE)


def test_nothing_is_waited_for_without_checkpoints():
    assert CloseOperators() in after(source(checkpointing=False), DRAINED, FINISHED, READ)[1]


@pytest.mark.parametrize("ending", [DRAINED, STOPPED])
def test_with_a_stop_only_its_savepoint_counts(ending):
    """A later checkpoint of the end of data does not help; the savepoint does, whoever else completes."""
    events = [
        ending,
        *([FINISHED] if ending is DRAINED else []),
        READ,
        begun(5),
        ended(5),
        begun(6, stop=ending.ending),
        ended(6),
    ]
    end, commands = after(source(), *events, heard(5))

    assert CloseOperators() not in commands
    assert [CloseOperators()] == after(end, heard(6))[1]


def test_a_checkpoint_behind_the_savepoint_of_a_stop_does_not_count():
    """The final checkpoint is taken beside the savepoint, and may be complete before it."""
    end, commands = after(
        source(), DRAINED, FINISHED, READ, begun(6, stop=StopMode.DRAIN), begun(7), ended(7), ended(6), heard(7)
    )

    assert CloseOperators() not in commands
    assert [CloseOperators()] == after(end, heard(6))[1]


def test_a_task_fails_with_the_savepoint_it_has_begun_to_stop_with():
    """Its data has ended and cannot go on; another checkpoint that is aborted is none of its business."""
    end, _ = after(source(), STOPPED, begun(6, stop=STOPPED.ending))

    assert [end.fails_with(5), end.fails_with(6)] == [False, True]
    assert not source().fails_with(6)


def test_savepoint_first_and_the_end_afterwards():
    """As before FLIP-147: the savepoint completes, then the operators finish, and nobody waits for what holds that."""
    _, commands = after(
        source(), begun(6, stop=StopMode.FINISH_AFTER_SAVEPOINT), ended(6), heard(6), DRAINED, FINISHED, READ
    )

    assert [FinishOperators(), ForwardEndOfData(StopMode.DRAIN), CloseOperators()] == commands, (
        "nor is a final checkpoint asked for"
    )


def test_naive_tasks_end_one_after_the_other():
    """No end of data: the next task hears of the end when this one has its checkpoint."""
    first, commands = after(source("naive"), DRAINED, FINISHED)

    assert [FinishOperators(), ReportEndOfData()] == commands

    first, commands = after(first, begun(5), ended(5), heard(5), CLOSED)

    assert [CloseOperators(), ForwardEndOfPartition()] == commands
    assert [ReportFinished()] == after(first, READ)[1], (
        "as long as somebody reads what it wrote it takes part in checkpoints"
    )

    second, commands = after(reader("naive"), SHUT)

    assert (EndState.FINISHING, [FinishOperators()]) == (second.state, commands)
    assert after(second, FINISHED)[0].state == EndState.WAITING


def test_naive_tasks_finish_nothing_when_the_job_stops_where_it_stands():
    """They hear of no end of data; the savepoint tells them to ignore the end of their inputs (StreamTask#setSynchronousSavepointId)."""
    _, commands = after(reader("naive"), begun(6, stop=StopMode.NO_DRAIN), ended(6), heard(6), SHUT)

    assert [QuiesceTimers(), CloseOperators()] == commands

    _, commands = after(reader("naive"), begun(6, stop=StopMode.DRAIN), ended(6), heard(6), SHUT)

    assert [FinishOperators()] == commands


def test_a_job_has_drained_when_its_data_ended_to_drain():
    ends = [after(source(), *events)[0] for events in ([], [DRAINED], [DRAINED, FINISHED], [STOPPED])]

    assert [end.drained for end in ends] == [False, False, True, False], "its operators finish first"


def test_only_flip_147_asks_for_a_final_checkpoint():
    assert [name for name, rule in FINISHING.items() if rule.final_trigger] == ["flink"]


def test_checkpoints_go_on_after_an_end_where_tasks_wait_for_one():
    for name, rule in FINISHING.items():
        assert [name in {"flink", "naive"}] * 2 == [rule.waits, rule.after_finish]


def test_the_first_checkpoint_ever_is_waited_for_too():
    end, commands = after(source(), DRAINED, FINISHED, READ, begun(1), ended(1))

    assert CloseOperators() not in commands
    assert [CloseOperators()] == after(end, heard(1))[1]


def test_the_coordinator_hears_of_an_end_of_data_that_no_checkpoint_holds():
    """Where nobody waits for one, and behind a savepoint that is not complete yet."""
    assert ReportEndOfData() in after(source("off"), DRAINED, FINISHED)[1]
    assert ReportEndOfData() in after(source(), begun(6, stop=StopMode.DRAIN), ended(6), DRAINED, FINISHED)[1]


@pytest.mark.parametrize("rule", ["commit-at-finish", "discard", "off"])
def test_before_flip_147_no_task_waits_for_a_checkpoint(rule):
    assert CloseOperators() in after(source(rule), DRAINED, FINISHED, READ)[1]


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([DRAINED, DRAINED], "ended already"),
        ([FINISHED], "EndState.RUNNING"),
        ([CLOSED], "EndState.RUNNING"),
        ([READ, READ], "all channels are read"),
    ],
)
def test_impossible_events(events, why):
    with pytest.raises(InvalidTransition, match=why):
        after(source(), *events)


def test_the_end_of_data_comes_first():
    with pytest.raises(InvalidTransition, match="EndOfData is missing"):
        after(reader(), SHUT)
