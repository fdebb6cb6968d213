"""The laws of the coordinator, whatever happens in whatever order: a Hypothesis machine plays the tasks, the storage and the clock."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.protocol.coordinator import Coordinator
from sim.protocol.messages import (
    Acknowledged,
    ArmCheckpointTimeout,
    ArmPeriodicTimer,
    CancelPeriodicTimer,
    CheckpointRequested,
    CheckpointTimedOut,
    Declined,
    DiscardState,
    FailJob,
    MetadataWritten,
    NotifyComplete,
    PeriodicTimerFired,
    Plan,
    PrepareTrigger,
    RecordCompleted,
    RecordFailed,
    RecordTriggered,
    RequestKind,
    SchedulerStarted,
    SchedulerStopped,
    StateDiscarded,
    TriggerReady,
    WriteMetadata,
)
from sim.protocol.options import FailureReason
from tests.protocol.machines import Running

PERIODIC, SAVEPOINT = RequestKind.PERIODIC, RequestKind.SAVEPOINT
INTERVAL, TIMEOUT, RETAINED = 100, 250, 2
TASKS = frozenset(range(3))


class Laws(RuleBasedStateMachine):
    """What an onlooker knows: it never looks inside the coordinator."""

    @initialize(
        max_concurrent=st.integers(1, 3),
        min_pause=st.sampled_from([0, 30, 150]),
        tolerable=st.integers(0, 2),
        kind=st.sampled_from(["aligned", "unaligned"]),
    )
    def begin(self, max_concurrent, min_pause, tolerable, kind):
        self.max_concurrent = max_concurrent if kind == "aligned" else 1
        self.min_pause, self.tolerable, self.savepoints_forced = min_pause, tolerable, kind == "aligned"
        options = CheckpointOptions(
            INTERVAL,
            barriers=Barriers(kind),
            timeout_ns=TIMEOUT,
            min_pause_ns=min_pause,
            max_concurrent=self.max_concurrent,
            tolerable_failed=tolerable,
        )
        self.coordinator = Running(Coordinator.configured(options, num_retained=RETAINED))
        self.now = 0
        self.timer = None
        self.preparing = None  # (t0, kind)
        self.plans, self.kinds, self.acks, self.timeouts = {}, {}, {}, {}  # by pending checkpoint
        self.triggered, self.completed, self.writing, self.discarding, self.deleted, self.gone = (
            [],
            [],
            set(),
            [],
            set(),
            set(),
        )
        self.last_completion = None
        self.retained = []
        self.counted, self.last_success = set(), 0

    # -------------------------------------------------------------------------------------- what happens

    @rule(first=st.integers(0, 50))
    @precondition(lambda self: self.timer is None)
    def start(self, first):
        self.tell(SchedulerStarted(self.now, first))

    @rule(rarely=st.integers(0, 5))
    def stop(self, rarely):
        if rarely:
            return
        self.tell(SchedulerStopped(self.now))
        if self.timer is None:
            assert not self.plans, "everything pending is aborted"

    @rule(ns=st.sampled_from([1, 7, 20, 80, 300]))
    def pass_time(self, ns):
        """To that moment, stopping at every wake-up on the way."""
        until = self.now + ns
        while (
            wake := min((at for at in (self.timer, *self.timeouts.values()) if at is not None), default=until + 1)
        ) <= until:
            self.now = max(self.now, wake)
            if wake == self.timer:
                self.timer = None
                self.tell(PeriodicTimerFired(self.now))
            else:
                late = next(checkpoint for checkpoint, at in self.timeouts.items() if at == wake)
                del self.timeouts[late]
                self.tell(CheckpointTimedOut(self.now, late))
                assert late not in self.plans or late in self.writing
        self.now = until

    @rule(kind=st.sampled_from([RequestKind.MANUAL, SAVEPOINT]))
    def request(self, kind):
        self.tell(CheckpointRequested(self.now, kind))

    @rule(tasks=st.sets(st.sampled_from(sorted(TASKS)), min_size=1), running=st.sampled_from([True, True, True, False]))
    @precondition(lambda self: self.preparing is not None)
    def ready(self, tasks, running):
        self.tell(TriggerReady(self.now, Plan(frozenset({0}), frozenset(tasks)) if running else None))

    @rule(data=st.data())
    @precondition(lambda self: any(plan.wait_for - self.acks[n] for n, plan in self.plans.items()))
    def acknowledge(self, data):
        checkpoint = data.draw(st.sampled_from([n for n, plan in self.plans.items() if plan.wait_for - self.acks[n]]))
        task = data.draw(st.sampled_from(sorted(self.plans[checkpoint].wait_for - self.acks[checkpoint])))
        self.acks[checkpoint] = self.acks[checkpoint] | {task}
        self.tell(Acknowledged(self.now, task, checkpoint))

    @rule(kind=st.sampled_from([RequestKind.MANUAL, SAVEPOINT]), completes=st.booleans())
    def all_goes_well(self, kind, completes):
        """Most of the time it does: wishes are fulfilled, files deleted; perhaps the newest checkpoint completes."""
        self.discard()
        self.tell(CheckpointRequested(self.now, kind))
        if self.preparing is not None:
            self.tell(TriggerReady(self.now, Plan(frozenset({0}), TASKS)))
        if self.plans and completes:
            newest = max(self.plans)
            for task in sorted(self.plans[newest].wait_for - self.acks[newest]):
                self.acks[newest] = self.acks[newest] | {task}
                self.tell(Acknowledged(self.now, task, newest))
            self.tell(MetadataWritten(self.now, newest))
        self.discard()

    @rule(
        data=st.data(),
        reason=st.sampled_from([FailureReason.CHECKPOINT_DECLINED, FailureReason.CHECKPOINT_DECLINED_SUBSUMED]),
    )
    @precondition(lambda self: set(self.plans) - self.writing)
    def decline(self, data, reason):
        checkpoint = data.draw(st.sampled_from(sorted(set(self.plans) - self.writing)))
        self.tell(Declined(self.now, 0, checkpoint, reason))

    @rule(data=st.data())
    @precondition(lambda self: self.gone)
    def law_22_no_acknowledgement_after_an_abort(self, data):
        """It comes too late; the coordinator goes on as time passing alone would have it."""
        checkpoint = data.draw(st.sampled_from(sorted(self.gone)))
        commands = self.tell(Acknowledged(self.now, 0, checkpoint))

        assert all(getattr(command, "checkpoint", None) != checkpoint for command in commands)

    @rule(data=st.data(), failed=st.sampled_from([False, False, False, True]))
    @precondition(lambda self: self.writing)
    def write(self, data, failed):
        checkpoint = data.draw(st.sampled_from(sorted(self.writing)))
        self.tell(MetadataWritten(self.now, checkpoint, failed))

    @rule()
    @precondition(lambda self: self.discarding)
    def discard_all(self):
        self.discard()

    # -------------------------------------------------------------------------------------- what must hold

    def discard(self):
        while self.discarding:
            self.tell(StateDiscarded(self.now, self.discarding.pop(0)))

    def tell(self, event):
        self.failing = False
        if isinstance(event, TriggerReady):
            t0, kind = self.preparing
            self.preparing = None
        commands = self.coordinator.on(event)
        for command in commands:
            match command:
                case ArmPeriodicTimer():
                    self.timer = command.at_ns
                case CancelPeriodicTimer():
                    self.timer = None
                case PrepareTrigger():
                    self.law_18_concurrency(command)
                    self.law_19_pause(command)
                    self.preparing = (self.now, command.kind)
                case RecordTriggered():
                    self.law_18_ids(command)
                    assert t0 == command.trigger_ns
                    n = command.checkpoint
                    self.plans[n], self.kinds[n], self.acks[n] = command.plan, kind, frozenset()
                case ArmCheckpointTimeout():
                    self.timeouts[command.checkpoint] = command.at_ns
                case WriteMetadata():
                    self.law_22_acknowledged(command)
                    self.writing.add(command.checkpoint)
                case RecordCompleted():
                    self.completion(command)
                case RecordFailed():
                    self.failure(command, task=event.task if isinstance(event, Declined) else None)
                case DiscardState():
                    assert command.checkpoint not in self.deleted, "deleted twice"
                    self.deleted.add(command.checkpoint)
                    self.discarding.append(command.checkpoint)
                    if command.checkpoint in self.retained:
                        self.retained.remove(command.checkpoint)
                case NotifyComplete():
                    assert command.checkpoint == self.completed[-1]
                    assert not [n for n in self.plans if n < command.checkpoint and self.kinds[n] is not SAVEPOINT], (
                        "subsumed"
                    )
                case FailJob():
                    self.law_21_fired()
        assert not self.failing, "more counted failures than tolerated, and the job goes on"
        return commands

    def law_18_ids(self, command):
        """Ids strictly increase."""
        assert command.checkpoint > max(self.triggered, default=0)
        self.triggered.append(command.checkpoint)

    def law_18_concurrency(self, command):
        """At an unforced trigger fewer are pending than allowed."""
        if command.kind is not SAVEPOINT or not self.savepoints_forced:
            assert len(self.plans) < self.max_concurrent

    def law_19_pause(self, command):
        """A periodic trigger keeps its distance from the last completion; never two in the trigger phase."""
        assert self.preparing is None
        if command.kind is PERIODIC and self.last_completion is not None:
            assert self.now >= self.last_completion + self.min_pause

    def law_22_acknowledged(self, command):
        """The metadata is written when exactly the plan's tasks have acknowledged."""
        assert self.plans[command.checkpoint].wait_for == self.acks[command.checkpoint]

    def completion(self, command):
        """Invariant 18: completed checkpoints increase.  Invariant 15: all acknowledged, metadata durable."""
        n, kind = command.checkpoint, self.kinds[command.checkpoint]
        assert n in self.writing
        assert self.plans[n].wait_for == self.acks[n]
        self.forget(n)
        self.last_completion = self.now
        if n > self.last_success:
            self.counted, self.last_success = set(), n
        if kind is not SAVEPOINT:
            assert n > max(self.completed, default=0)
            self.completed.append(n)
            self.retained.append(n)

    def failure(self, command, task):
        """Invariant 21: the moment distinct counted failures since the last success exceed what is tolerated."""
        n, kind = command.checkpoint, self.kinds[command.checkpoint]
        if command.reason is FailureReason.CHECKPOINT_SUBSUMED:
            assert kind is not SAVEPOINT
            assert n < self.completed[-1]
        self.forget(n)
        if command.reason.counts and n > self.last_success and (kind is not SAVEPOINT or task is not None):
            self.counted.add(n)
            self.failing = len(self.counted) > self.tolerable

    def law_21_fired(self):
        assert self.failing
        self.failing = False
        self.counted = set()

    def forget(self, checkpoint):
        del self.plans[checkpoint]
        self.writing.discard(checkpoint)
        self.gone.add(checkpoint)

    @invariant()
    def law_23_retained(self):
        """As many as configured; the latest is among them."""
        if hasattr(self, "retained"):
            assert len(self.retained) <= RETAINED
            assert self.completed[-1:] == self.retained[-1:]


test_invariants_18_to_23_of_the_coordinator = Laws.TestCase
test_invariants_18_to_23_of_the_coordinator.settings = settings(stateful_step_count=60)
