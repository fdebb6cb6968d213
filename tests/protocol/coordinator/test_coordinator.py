"""The coordinator, after Flink's CheckpointCoordinatorTest, CheckpointRequestDeciderTest and CheckpointFailureManagerTest."""

import pytest

from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.protocol.checkpoint_requests import MAX_WAITING, TriggerRequest, WaitingRequests
from sim.protocol.coordinator import Coordinator, FailureCounter, effective_interval_ns, first_trigger_delay
from sim.protocol.machine import InvalidTransition
from sim.protocol.messages import (
    Acknowledged,
    ArmCheckpointTimeout,
    ArmPeriodicTimer,
    CheckpointRequested,
    CheckpointTimedOut,
    Declined,
    DiscardState,
    FailJob,
    LeaderElected,
    LeaderLost,
    MetadataWritten,
    NotifyAborted,
    NotifyComplete,
    PeriodicTimerFired,
    Plan,
    PrepareTrigger,
    RecordCompleted,
    RecordFailed,
    RecordRefused,
    RecordTriggered,
    RequestKind,
    Savepoint,
    SchedulerStarted,
    SchedulerStopped,
    StateDiscarded,
    TasksRestored,
    TriggerReady,
    TriggerTasks,
    WriteMetadata,
)
from sim.protocol.options import BarrierOptions, FailureReason, StopMode
from tests.protocol.machines import Running

PERIODIC, MANUAL, SAVEPOINT = RequestKind.PERIODIC, RequestKind.MANUAL, RequestKind.SAVEPOINT
PLAN = Plan(trigger=frozenset({0}), wait_for=frozenset({0, 1}))
ALL = PLAN.wait_for
ALIGNED = Barriers()


def coordinator(barriers=ALIGNED, *, interval=100, num_retained=1, **options):
    options = {"timeout_ns": 1000, "tolerable_failed": 99, **options}
    return Running(
        Coordinator.configured(CheckpointOptions(interval, barriers=barriers, **options), num_retained=num_retained)
    )


def triggered(now, machine=None, kind=MANUAL, **options):
    """A coordinator with a checkpoint under way, requested at `now`."""
    machine = coordinator(**options) if machine is None else machine
    machine.on(CheckpointRequested(now, kind))
    machine.on(TriggerReady(now, PLAN))
    return machine


def pausing():
    """The first periodic checkpoint is under way; the next one waits 80 ns after a completion."""
    machine = coordinator(min_pause_ns=80)
    machine.on(SchedulerStarted(0, 0))
    machine.on(PeriodicTimerFired(0))
    machine.on(TriggerReady(0, PLAN))
    return machine


def acknowledged(machine, checkpoint, now):
    machine.on(Acknowledged(now, 0, checkpoint))
    return machine.on(Acknowledged(now, 1, checkpoint))


def completed(machine, checkpoint, now):
    acknowledged(machine, checkpoint, now)
    return machine.on(MetadataWritten(now, checkpoint))


def types(commands):
    return [type(machine) for machine in commands]


# ------------------------------------------------------------------------------------------ timer


def test_the_life_of_a_checkpoint():
    """Timer, trigger, acknowledgements, metadata, notification; t0 is taken before the trigger's overhead."""
    machine = coordinator()

    assert (ArmPeriodicTimer(40),) == machine.on(SchedulerStarted(0, 40))
    assert (ArmPeriodicTimer(140), PrepareTrigger(PERIODIC)) == machine.on(PeriodicTimerFired(40))
    assert (
        RecordTriggered(1, 40, PLAN),
        ArmCheckpointTimeout(1, 1043),
        TriggerTasks(1, frozenset({0}), BarrierOptions(40)),
    ) == machine.on(TriggerReady(43, PLAN))
    assert machine.on(Acknowledged(60, 1, 1)) == ()
    assert (WriteMetadata(1),) == machine.on(Acknowledged(70, 0, 1))
    assert (RecordCompleted(1, 70, 95), NotifyComplete(1, ALL)) == machine.on(MetadataWritten(95, 1))


def test_the_grid_does_not_drift():
    """Wake-ups that come late do not move it; missed points follow at once."""
    machine = coordinator()
    machine.on(SchedulerStarted(0, 40))

    assert ArmPeriodicTimer(140) == machine.on(PeriodicTimerFired(90))[0]
    assert ArmPeriodicTimer(240) == machine.on(PeriodicTimerFired(140))[0]
    assert ArmPeriodicTimer(500) == machine.on(PeriodicTimerFired(500))[0]  # 340 was missed: at once
    assert ArmPeriodicTimer(500) == machine.on(PeriodicTimerFired(500))[0]  # 440 too


def test_without_an_interval_nothing_is_periodic():
    machine = coordinator(interval=None)

    assert machine.on(SchedulerStarted(0, 40)) == ()
    assert (PrepareTrigger(MANUAL),) == machine.on(CheckpointRequested(50, MANUAL))


def test_an_interval_below_the_pause_is_raised():
    machine = coordinator(interval=100, min_pause_ns=150)
    machine.on(SchedulerStarted(0, 0))

    assert ArmPeriodicTimer(150) == machine.on(PeriodicTimerFired(0))[0]
    assert effective_interval_ns(1, 10**30) == 365 * 86400 * 10**9


def test_the_first_trigger():
    """2.x: the min-pause after all tasks run, or the first of a restart; without one that is refused.  1.20: in [min-pause, interval]."""
    at = {"interval_ns": 100, "min_pause_ns": 30, "first_trigger_ns": 4}

    assert first_trigger_delay("2.x", **at) == 34
    assert first_trigger_delay("2.x", **at, restarted=True) == 30
    assert [
        first_trigger_delay("2.x", **{**at, "min_pause_ns": 0}, restarted=restarted) for restarted in (False, True)
    ] == [4, 100]
    assert first_trigger_delay("1.20", **at, draw=0) == 30
    assert first_trigger_delay("1.20", **at, draw=2**32 - 1) == 100


# ------------------------------------------------------------------------------------------ requests


def test_invariant_19_a_pause_drops_the_request_and_moves_the_grid():
    machine = pausing()
    completed(machine, 1, 50)

    assert (
        ArmPeriodicTimer(200),
        RecordRefused(PERIODIC, FailureReason.MINIMUM_TIME_BETWEEN_CHECKPOINTS),
        ArmPeriodicTimer(130),
    ) == machine.on(PeriodicTimerFired(100))
    assert (ArmPeriodicTimer(230), PrepareTrigger(PERIODIC)) == machine.on(PeriodicTimerFired(130))


@pytest.mark.parametrize(("completion", "runs"), [(20, True), (21, False)])
def test_invariant_19_the_pause_ends_exactly(completion, runs):
    machine = pausing()
    completed(machine, 1, completion)

    assert runs == (PrepareTrigger(PERIODIC) in machine.on(PeriodicTimerFired(100)))


def test_a_failure_imposes_no_pause():
    machine = pausing()
    machine.on(Declined(90, 1, 1, FailureReason.CHECKPOINT_DECLINED))
    machine.on(StateDiscarded(90, 1))

    assert PrepareTrigger(PERIODIC) == machine.on(PeriodicTimerFired(100))[-1]


def test_invariant_18_one_slot_holds_back_the_next():
    machine = triggered(0)

    assert machine.on(CheckpointRequested(10, MANUAL)) == ()
    assert acknowledged(machine, 1, 20)[1:] == ()  # writing metadata still holds the slot
    assert PrepareTrigger(MANUAL) in machine.on(MetadataWritten(45, 1))


def test_invariant_19_one_trigger_at_a_time():
    machine = coordinator(max_concurrent=2)

    assert (PrepareTrigger(MANUAL),) == machine.on(CheckpointRequested(0, MANUAL))
    assert machine.on(CheckpointRequested(1, MANUAL)) == ()
    assert PrepareTrigger(MANUAL) == machine.on(TriggerReady(5, PLAN))[-1]


def test_savepoints_go_first_and_are_forced_without_unaligned_checkpoints():
    machine = triggered(0)
    machine.on(CheckpointRequested(10, MANUAL))

    assert (PrepareTrigger(SAVEPOINT),) == machine.on(CheckpointRequested(20, SAVEPOINT))


def test_a_savepoint_is_aligned_and_commits_nothing():
    """It neither subsumes nor is announced; it does set the pause."""
    machine = coordinator(barriers=Barriers("unaligned"), min_pause_ns=80)
    machine.on(CheckpointRequested(0, SAVEPOINT))

    assert BarrierOptions(0, savepoint=True) == machine.on(TriggerReady(3, PLAN))[-1].options
    assert [RecordCompleted] == types(completed(machine, 1, 50))
    assert machine.state.latest_completed == 0
    assert machine.state.last_completion_ns == 50


def test_unaligned_checkpoints_do_not_overlap():
    with pytest.raises(ValueError, match="max_concurrent"):
        coordinator(barriers=Barriers("unaligned"), max_concurrent=2)


def test_slow_deletions_hold_back_triggers():
    """More of them under way than checkpoints allowed at once (numberOfCleaningCheckpoints)."""
    machine = triggered(0)
    machine.on(CheckpointTimedOut(1000, 1))
    triggered(1000, machine)
    machine.on(CheckpointTimedOut(2000, 2))

    assert machine.on(CheckpointRequested(2010, MANUAL)) == ()
    assert (PrepareTrigger(MANUAL),) == machine.on(StateDiscarded(40, 1))


def test_the_list_of_wishes_is_bounded():
    """The last periodic one makes room; among others the newcomer is turned away."""
    requests = WaitingRequests(1, 0)
    for now in range(MAX_WAITING):
        requests, _ = requests.with_request(TriggerRequest(PERIODIC, now))
    requests, dropped = requests.with_request(TriggerRequest(MANUAL, 5))

    assert TriggerRequest(PERIODIC, MAX_WAITING - 1, serial=MAX_WAITING - 1) == dropped
    assert MANUAL is requests.waiting[0].kind

    for now in range(MAX_WAITING):
        requests, dropped = requests.with_request(TriggerRequest(MANUAL, now))

    assert TriggerRequest(MANUAL, MAX_WAITING - 1) == dropped


def test_a_request_that_finds_no_room_is_refused():
    machine = triggered(0)
    for now in range(MAX_WAITING):
        machine.on(CheckpointRequested(now, MANUAL))

    assert (RecordRefused(MANUAL, FailureReason.TOO_MANY_CHECKPOINT_REQUESTS),) == machine.on(
        CheckpointRequested(2000, MANUAL)
    )


# ------------------------------------------------------------------------------------------ trigger


def test_a_trigger_that_cannot_write_counts():
    machine = coordinator(tolerable_failed=0)
    machine.on(CheckpointRequested(0, MANUAL))

    assert (RecordRefused(MANUAL, FailureReason.IO_EXCEPTION), FailJob(FailureReason.IO_EXCEPTION)) == machine.on(
        TriggerReady(3, None, FailureReason.IO_EXCEPTION)
    )


# ------------------------------------------------------------------------------------------ failure


def test_expiry_aborts():
    machine = triggered(0)
    machine.on(Acknowledged(50, 1, 1))

    assert (
        RecordFailed(1, FailureReason.CHECKPOINT_EXPIRED, 1003),
        NotifyAborted(1, ALL, 0),
        DiscardState(1),
    ) == machine.on(CheckpointTimedOut(1003, 1))


def test_nothing_expires_while_metadata_is_written():
    machine = triggered(0)
    acknowledged(machine, 1, 50)

    assert machine.on(CheckpointTimedOut(1000, 1)) == ()
    assert NotifyComplete(1, ALL) in machine.on(MetadataWritten(1010, 1))
    assert machine.on(CheckpointTimedOut(1020, 1)) == ()


def test_a_decline_aborts_at_once():
    machine = triggered(0)

    assert (
        FailureReason.CHECKPOINT_DECLINED_SUBSUMED
        is machine.on(Declined(9, 1, 1, FailureReason.CHECKPOINT_DECLINED_SUBSUMED))[0].reason
    )
    assert machine.on(Declined(10, 0, 1, FailureReason.CHECKPOINT_DECLINED_SUBSUMED)) == ()


def test_an_abort_tells_the_latest_completed():
    machine = triggered(0)
    completed(machine, 1, 10)
    triggered(20, machine)

    assert NotifyAborted(2, ALL, 1) in machine.on(CheckpointTimedOut(1020, 2))


def test_a_failed_metadata_write_aborts():
    machine = triggered(0)
    acknowledged(machine, 1, 50)

    assert FailureReason.FINALIZE_CHECKPOINT_FAILURE is machine.on(MetadataWritten(60, 1, failed=True))[0].reason


def test_invariant_24_a_failover_before_the_metadata_is_durable_aborts():
    machine = triggered(0)
    acknowledged(machine, 1, 50)

    assert [RecordFailed, NotifyAborted, DiscardState] == types(machine.on(SchedulerStopped(55)))
    assert machine.on(MetadataWritten(60, 1)) == ()
    assert machine.state.latest_completed == 0


def test_restored_tasks_abort_what_is_pending_and_the_schedule_goes_on():
    """Flink 2.x stops its scheduler at the first failure only (SchedulerBase#restoreState)."""
    machine = pausing()
    schedule = machine.state.schedule
    failed, *_ = machine.on(TasksRestored(55))

    assert FailureReason.JOB_FAILOVER_REGION is failed.reason
    assert machine.state.pending == ()
    assert schedule is not None
    assert machine.state.schedule == schedule


def test_a_completion_subsumes_older_ones():
    machine = triggered(0, max_concurrent=2)
    triggered(10, machine)
    commands = completed(machine, 2, 50)

    assert [RecordCompleted, RecordFailed, NotifyAborted, DiscardState, NotifyComplete] == types(commands)
    assert FailureReason.CHECKPOINT_SUBSUMED is commands[1].reason


def test_what_an_older_savepoint_holds_is_still_needed():
    """It is under way while a newer checkpoint completes."""
    machine = triggered(0, kind=SAVEPOINT, max_concurrent=3)
    triggered(10, machine)
    triggered(20, machine)
    completed(machine, 2, 30)

    assert frozenset({1, 2, 3}) == machine.state.needed


def test_invariant_23_retained_checkpoints_are_bounded():
    machine = coordinator(num_retained=2)
    for checkpoint in (1, 2, 3):
        triggered(checkpoint, machine)
        commands = completed(machine, checkpoint, checkpoint)

    assert machine.state.retained == (2, 3)
    assert DiscardState(1) in commands


def test_a_subsumed_checkpoint_is_being_deleted():
    """Until its state is discarded it counts among the deletions that hold back triggers."""
    machine = coordinator()
    for checkpoint in (1, 2):
        triggered(checkpoint, machine)
        completed(machine, checkpoint, checkpoint)

    assert machine.state.cleaning == 1

    machine.on(StateDiscarded(5, 1))

    assert machine.state.cleaning == 0


@pytest.mark.parametrize("reason", [reason for reason in FailureReason if not reason.counts])
def test_invariant_21_other_reasons_do_not_count(reason):
    machine = triggered(0, tolerable_failed=0)

    assert FailJob not in types(machine.on(Declined(9, 1, 1, reason)))


@pytest.mark.parametrize("reason", [reason for reason in FailureReason if reason.counts])
def test_invariant_21_the_first_counted_failure_too_many_fails_the_job(reason):
    machine = coordinator(tolerable_failed=1)
    for checkpoint in (1, 2):
        triggered(checkpoint, machine)
        commands = machine.on(Declined(checkpoint, 1, checkpoint, reason))
        machine.on(StateDiscarded(checkpoint, checkpoint))

        assert (checkpoint == 2) == (FailJob(reason, 1) in commands)


def test_invariant_21_a_success_forgives():
    machine = coordinator(tolerable_failed=1)
    triggered(1, machine)
    machine.on(CheckpointTimedOut(1001, 1))
    triggered(1002, machine)
    completed(machine, 2, 1002)
    triggered(1003, machine)

    assert FailJob not in types(machine.on(CheckpointTimedOut(2003, 3)))
    assert FailureReason.CHECKPOINT_EXPIRED.counts


def test_invariant_21_a_checkpoint_counts_once():
    counter = FailureCounter(tolerable=1)
    for _ in range(3):
        counter, too_many = counter.with_failure(5, FailureReason.CHECKPOINT_EXPIRED)

        assert not too_many


def test_invariant_21_failures_older_than_a_success_do_not_count():
    counter = FailureCounter(tolerable=0).with_success(5)

    assert (counter, False) == counter.with_failure(4, FailureReason.CHECKPOINT_EXPIRED)
    assert counter.with_failure(6, FailureReason.CHECKPOINT_EXPIRED)[1]
    assert counter is counter.with_success(3)


def test_invariant_21_a_success_forgives_once():
    """Told again, it forgives nothing that failed since; nor does it fail itself."""
    counter, _ = FailureCounter(tolerable=9).with_success(5).with_failure(6, FailureReason.CHECKPOINT_EXPIRED)

    assert counter.with_success(5).count == 1
    assert (counter, False) == counter.with_failure(5, FailureReason.CHECKPOINT_EXPIRED)


def test_invariant_21_counting_starts_anew_after_it_fired():
    counter = FailureCounter(tolerable=1)
    fired = []
    for checkpoint in range(1, 5):
        counter, too_many = counter.with_failure(checkpoint, FailureReason.CHECKPOINT_EXPIRED)
        fired.append(too_many)

    assert fired == [False, True, False, True]


@pytest.mark.parametrize(
    "event",
    [
        Acknowledged(5, 0, 2),  # never triggered
        Acknowledged(5, 7, 1),  # not awaited
        MetadataWritten(5, 1),
        TriggerReady(5, PLAN),
        StateDiscarded(5, 1),
    ],
)
def test_what_cannot_happen_names_the_event(event):
    machine = triggered(0)

    with pytest.raises(InvalidTransition, match=type(event).__name__):
        machine.on(event)


def test_a_second_acknowledgement_cannot_happen():
    machine = triggered(0)
    machine.on(Acknowledged(5, 0, 1))

    with pytest.raises(InvalidTransition, match="has done so already"):
        machine.on(Acknowledged(6, 0, 1))


def test_a_scheduler_starts_once_and_a_task_must_acknowledge():
    machine = coordinator()
    machine.on(SchedulerStarted(0, 40))

    with pytest.raises(InvalidTransition, match="running already"):
        machine.on(SchedulerStarted(1, 40))

    machine.on(CheckpointRequested(2, MANUAL))

    with pytest.raises(InvalidTransition, match="no task has to acknowledge"):
        machine.on(TriggerReady(3, Plan(frozenset(), frozenset())))


# ---------------------------------------------------------------------------------------------- stopping with a savepoint

STOP = Savepoint("native", StopMode.DRAIN)


def stopping(now=0, **options):
    """The periodic scheduler has been stopped, the savepoint to stop with is under way."""
    machine = coordinator(**options)
    machine.on(SchedulerStarted(now, 100))
    machine.on(SchedulerStopped(now))
    machine.on(CheckpointRequested(now, SAVEPOINT, STOP))
    return machine


def test_the_savepoint_a_job_stops_with_is_announced():
    """It commits; it is nobody's to keep all the same."""
    machine = stopping()
    machine.on(TriggerReady(3, PLAN))
    done = completed(machine, 1, 20)

    assert NotifyComplete(1, ALL) == done[-1]
    assert machine.state.retained == ()


def test_a_failed_stop_fails_the_job():
    """Its tasks have ended their data: they cannot go on."""
    machine = stopping(tolerable_failed=99)
    machine.on(TriggerReady(3, PLAN))

    assert FailJob(FailureReason.CHECKPOINT_EXPIRED, None, stopping=True) == machine.on(CheckpointTimedOut(1003, 1))[-1]


def test_a_stop_aborted_with_the_job_does_not_fail_it_again():
    machine = stopping()
    machine.on(TriggerReady(3, PLAN))

    assert [notified for notified in machine.on(SchedulerStopped(5)) if isinstance(notified, FailJob)] == []


def test_a_stop_that_is_refused_lets_periodic_checkpoints_go_on():
    """A task is not running: the job goes on as before, one interval later."""
    machine = stopping()
    refused, timer = machine.on(TriggerReady(3, None))

    assert (RecordRefused(SAVEPOINT, FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING), ArmPeriodicTimer(103)) == (
        refused,
        timer,
    )


def test_a_stop_that_is_refused_starts_no_timer_in_a_job_without_an_interval():
    machine = coordinator(interval=None)
    machine.on(CheckpointRequested(0, SAVEPOINT, STOP))

    assert (RecordRefused(SAVEPOINT, FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING),) == machine.on(
        TriggerReady(3, None)
    )


def test_metadata_may_be_refused_for_a_reason():
    """Union state of a vertex that is over in part."""
    machine = triggered(0)
    acknowledged(machine, 1, 10)
    why = FailureReason.CHECKPOINT_DECLINED_TASK_CLOSING
    failed = machine.on(MetadataWritten(11, 1, failed=True, reason=why))

    assert why == failed[0].reason
    assert machine.state.failures.count == 0, "it is not counted"


# ------------------------------------------------------------------------------------------ leaders


def test_a_lost_leader_tells_nobody_what_it_aborts():
    """What is pending is gone; its tasks hear nothing of that, and nobody deletes its files."""
    machine = triggered(10)

    assert [RecordFailed] == types(machine.on(LeaderLost(20)))
    assert machine.state.pending == ()


def test_messages_to_a_lost_leader_are_lost_with_it():
    machine = triggered(10)
    leader = machine.state.leader

    assert machine.state.accepts_messages_from(leader)
    machine.on(LeaderLost(20))
    assert not machine.state.accepts_messages_from(leader)
    nobody = machine.state.leader
    assert not machine.state.accepts_messages_from(nobody)
    machine.on(LeaderElected(30))
    assert not machine.state.accepts_messages_from(nobody), "what set out to none does not reach the next one"
    assert machine.state.accepts_messages_from(machine.state.leader)


@pytest.mark.parametrize("kind", [RequestKind.SAVEPOINT, RequestKind.MANUAL])
def test_without_a_job_manager_clients_get_an_error(kind):
    machine = triggered(10)
    machine.on(LeaderLost(20))

    assert (RecordRefused(kind, FailureReason.NO_JOB_MANAGER),) == machine.on(
        CheckpointRequested(30, kind, Savepoint())
    )


def test_what_a_lost_leader_had_begun_ends_unseen():
    """A trigger that was being prepared, metadata, a deletion: their ends change nothing, and the next leader begins with a clean sheet."""
    machine = triggered(10)
    acknowledged(machine, 1, 20)
    machine.on(PeriodicTimerFired(110))
    machine.on(LeaderLost(120))
    before = machine.state

    for event in (
        MetadataWritten(130, 1),
        TriggerReady(130, None),
        StateDiscarded(130, 1),
        Declined(130, 0, 1, FailureReason.IO_EXCEPTION),
    ):
        assert machine.on(event) == ()
    assert before == machine.state
    assert (before.triggering, before.pending, before.cleaning, before.last_completion_ns) == (None, (), 0, None)


def test_a_new_leader_counts_failed_checkpoints_anew():
    machine = triggered(10)
    machine.on(Declined(20, 0, 1, FailureReason.CHECKPOINT_DECLINED))
    assert machine.state.failures.count == 1

    machine.on(LeaderLost(30))
    machine.on(LeaderElected(40))

    assert machine.state.failures.count == 0
    assert machine.state.next_id == 2, "ids go on: the counter is kept with the completed checkpoints"
