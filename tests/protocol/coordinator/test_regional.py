"""The coordinator of regional checkpoints, after what was read of apache/flink#28963 (FLIP-600)."""

from fractions import Fraction

import pytest

from sim.model.checkpoint import CheckpointOptions, RegionalCheckpoints
from sim.protocol.coordinator import Coordinator
from sim.protocol.messages import (
    Acknowledged,
    CheckpointRequested,
    CheckpointTimedOut,
    Declined,
    DiscardState,
    LeaderElected,
    LeaderLost,
    MetadataWritten,
    NotifyAborted,
    NotifyComplete,
    Plan,
    RecordFailed,
    RequestKind,
    Savepoint,
    StateDiscarded,
    TriggerReady,
    WriteMetadata,
)
from sim.protocol.options import FailureReason
from sim.protocol.regional import (
    AllSourcesEnded,
    NotifyRegionalComplete,
    RegionalCoordinator,
    WriteRegionalMetadata,
    referenced_by,
    regions_of,
)
from tests.protocol.machines import Running

REGIONS = 4
TASKS = frozenset(range(2 * REGIONS))  # source n, then sink n
EXCHANGES = tuple((task, task + REGIONS) for task in range(REGIONS))
LATE = FailureReason.CHECKPOINT_EXPIRED
BAD_UPLOAD = FailureReason.CHECKPOINT_ASYNC_EXCEPTION


class Job(Running):
    """A coordinator whose checkpoints are triggered by hand; times are 0, which none of its decisions read."""

    def __init__(self, ratio=Fraction(3, 10), consecutive=2, exchanges=EXCHANGES, retained=1, restored=0):
        options = CheckpointOptions(None, tolerable_failed=99)
        base = Coordinator.configured(options, num_retained=retained, restored=restored)
        super().__init__(RegionalCoordinator.of(base, RegionalCheckpoints(True, ratio, consecutive), exchanges))

    def trigger(self, kind=RequestKind.MANUAL, tasks=TASKS):
        savepoint = Savepoint() if kind is RequestKind.SAVEPOINT else None
        number = self.state.next_id
        self.on(CheckpointRequested(0, kind, savepoint))
        self.on(TriggerReady(0, Plan(tasks, tasks)))
        assert self.state.pending[-1].checkpoint == number
        return number

    def answered(self, *declining, kind=RequestKind.MANUAL, tasks=TASKS):
        """A checkpoint that these tasks decline, and all others acknowledge: its id, and the last commands."""
        number, commands = self.trigger(kind, tasks), ()
        for task in sorted(tasks):
            answer = Declined(0, task, number, BAD_UPLOAD) if task in declining else Acknowledged(0, task, number)
            commands = self.on(answer) or commands
        return number, commands

    def ended(self, *declining, **how):
        """Its id, and the commands when its metadata is written or when it is aborted."""
        number, commands = self.answered(*declining, **how)
        if any(isinstance(command, WriteMetadata) for command in commands):
            commands = self.on(MetadataWritten(0, number))
        for command in commands:
            if isinstance(command, DiscardState):
                self.on(StateDiscarded(0, command.checkpoint))
        return number, commands


def failure(commands):
    return next((command.reason for command in commands if isinstance(command, RecordFailed)), None)


def discarded(commands):
    return [command.checkpoint for command in commands if isinstance(command, DiscardState)]


def test_a_checkpoint_completes_without_the_region_that_declines():
    job = Job()
    first, _ = job.ended()
    second, (write,) = job.answered(1)

    assert write == WriteRegionalMetadata(second, first, frozenset({1, 1 + REGIONS}))
    assert job.state.locked

    commands = job.on(MetadataWritten(0, second))

    assert commands[-1] == NotifyRegionalComplete(second, TASKS - write.tasks, first, write.tasks)
    assert (job.state.retained, job.state.referenced, discarded(commands)) == ((second,), (first,), [])
    assert job.state.failures.count == 0


def test_a_decline_waits_for_all_answers():
    """It used to abort at once (F10)."""
    job = Job()
    job.ended()
    number = job.trigger()

    assert job.on(Declined(0, 0, number, BAD_UPLOAD)) == ()
    assert [job.on(Acknowledged(0, task, number)) for task in sorted(TASKS - {0, 7})] == [()] * 6
    assert isinstance(job.on(Acknowledged(0, 7, number))[0], WriteRegionalMetadata)


def test_tasks_that_have_not_answered_at_the_timeout_count_as_declined():
    job = Job()
    first, _ = job.ended()
    number = job.trigger()
    for task in TASKS - {2 + REGIONS}:
        job.on(Acknowledged(0, task, number))

    assert job.on(CheckpointTimedOut(0, number)) == (WriteRegionalMetadata(number, first, frozenset({2, 2 + REGIONS})),)
    assert job.on(CheckpointTimedOut(0, number)) == ()


@pytest.mark.parametrize(("regions", "completes"), [(1, True), (2, False)])
def test_more_failed_regions_than_the_ratio_abort(regions, completes):
    """A quarter is at most 0.25, a half is not."""
    job = Job(ratio=Fraction(1, 4))
    job.ended()
    number, commands = job.ended(*range(regions))

    assert failure(commands) == (None if completes else BAD_UPLOAD)
    assert (number in job.state.retained) == completes


def test_all_tasks_hear_of_an_abort():
    job = Job()
    job.ended()
    number, commands = job.ended(0, 1, 2)

    assert NotifyAborted(number, TASKS, 1) in commands


def test_one_region_aborts():
    """Also if all regions may fail."""
    all_to_all = tuple((source, sink) for source in range(REGIONS) for sink in range(REGIONS, 2 * REGIONS))
    job = Job(Fraction(1), exchanges=all_to_all)
    job.ended()

    assert failure(job.ended(0)[1]) is BAD_UPLOAD


def test_without_a_completed_checkpoint_it_aborts():
    assert failure(Job().ended(0)[1]) is BAD_UPLOAD


def test_a_restored_snapshot_is_fallen_back_to():
    """F5: also one that the job has not claimed."""
    assert Job(restored=7).answered(0)[1][0].fallback == 7


def test_after_the_limit_the_next_one_is_global():
    """F1: that it fails resets the count, so a region that always fails is never waited for."""
    job = Job()
    job.ended()
    reasons = [failure(job.ended(0)[1]) for _ in range(9)]
    declined = FailureReason.CHECKPOINT_DECLINED

    assert reasons == [None, None, declined] * 3


def test_a_global_success_resets_the_count():
    job = Job()
    job.ended()
    outcomes = [failure(job.ended(*declining)[1]) for declining in ([0], [0], [], [0], [0], [0])]

    assert outcomes == [None, None, None, None, None, FailureReason.CHECKPOINT_DECLINED]


def test_the_ratio_is_judged_before_the_tier():
    """F2: a global one that fails with too many regions leaves the flag set."""
    job = Job()
    outcomes = [failure(job.ended(*declining)[1]) for declining in ([], [0], [0], [0, 1], [0], [0])]

    assert outcomes == [None, None, None, BAD_UPLOAD, FailureReason.CHECKPOINT_DECLINED, None]


def test_what_is_referred_to_is_kept_along_the_chain():
    """F9: the reference names the one before, so all in between stay although only the first and the last are read."""
    job = Job(consecutive=9)
    job.ended()
    for _ in range(3):
        assert discarded(job.ended(0)[1]) == []
    assert (job.state.retained, job.state.referenced) == ((4,), (1, 2, 3))
    assert job.state.needed == {1, 2, 3, 4}

    _, commands = job.ended()

    assert discarded(commands) == [1, 2, 3, 4]
    assert (job.state.referenced, dict(job.state.references), job.state.cleaning) == ((), {}, 0)


def test_only_what_retained_ones_refer_to_is_kept():
    job = Job(retained=2)
    for declining in ([], [0], [], []):
        _, commands = job.ended(*declining)

    assert discarded(commands) == [1, 2]
    assert referenced_by([5, 3], {5: 4, 4: 2, 3: 2, 2: 1}) == {1, 2, 4}


def test_savepoints_are_global():
    job = Job()
    job.ended()
    number = job.trigger(RequestKind.SAVEPOINT)

    assert failure(job.on(Declined(0, 0, number, BAD_UPLOAD))) is BAD_UPLOAD


def test_a_task_that_does_not_run_aborts():
    """F12: as in 2.3, at once."""
    job = Job()
    job.ended()
    number = job.trigger()

    assert failure(job.on(Declined(0, 0, number, FailureReason.TRIGGER_CHECKPOINT_FAILURE)))


def test_the_checkpoint_after_the_end_of_all_sources_is_global():
    job = Job()
    job.ended()
    job.on(AllSourcesEnded(0))

    assert failure(job.ended(0)[1]) is FailureReason.CHECKPOINT_DECLINED


def test_another_job_manager_counts_anew_and_keeps_what_is_referred_to():
    job = Job()
    for declining in ([], [0], [0]):
        job.ended(*declining)
    job.on(LeaderLost(0))
    job.on(LeaderElected(0))

    assert (job.state.referenced, job.state.next_is_global) == ((1, 2), False)
    assert failure(job.ended(0)[1]) is None


def test_metadata_that_cannot_be_written_is_an_abort_for_all_tasks():
    job = Job()
    job.ended()
    number, _ = job.answered(0)
    commands = job.on(MetadataWritten(0, number, failed=True))

    assert NotifyAborted(number, TASKS, 1) in commands
    assert (job.state.consecutive, job.state.referenced) == (0, ())


def test_a_checkpoint_without_failures_is_as_without_regions():
    job = Job()
    number, commands = job.ended()

    assert commands[-1] == NotifyComplete(number, TASKS)


def test_regions_are_those_of_the_tasks_that_take_part():
    exchanges = [(0, 2), (1, 2), (2, 3), (4, 5)]

    assert regions_of(range(6), exchanges) == ({0, 1, 2, 3}, {4, 5})
    assert regions_of({0, 1, 3, 5}, exchanges) == ({0}, {1}, {3}, {5})
