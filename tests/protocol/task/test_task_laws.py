"""A task's checkpoints, whatever happens in whatever order: a Hypothesis machine plays channels, thread, files and mails."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sim.model.checkpoint import Barriers
from sim.protocol.barrier_modes import strategy
from sim.protocol.messages import (
    AbortNotified,
    Acknowledge,
    AsyncFailed,
    BarrierArrived,
    CancellationArrived,
    CancelSnapshot,
    ChannelStateWritten,
    DeclineCheckpoint,
    FinishChannelState,
    ForwardBarrier,
    ForwardCancellation,
    GateClosed,
    Phase,
    PhaseFinished,
    ReleaseTask,
    ResumeInputs,
    RunAsync,
    RunPreBarrier,
    RunSync,
    SettleBarriers,
)
from sim.protocol.options import AlignmentType, BarrierOptions
from sim.protocol.task_checkpointing import TaskCheckpointing

PHASES = {
    RunPreBarrier: Phase.PRE_BARRIER,
    ForwardBarrier: Phase.FORWARD_BARRIER,
    RunSync: Phase.SYNC,
    RunAsync: Phase.ASYNC,
}
BARRIER, CANCELLATION, NOTHING, END = "barrier", "cancellation", "nothing", "end"


class Laws(RuleBasedStateMachine):
    """What an onlooker knows.  Each gate is one channel: what was sent and not yet read waits in its queue."""

    sound = False  # nothing has gone wrong so far

    @initialize(
        alignment=st.sampled_from([AlignmentType.ALIGNED, AlignmentType.UNALIGNED, AlignmentType.AT_LEAST_ONCE]),
        gates=st.integers(1, 3),
    )
    def begin(self, alignment, gates):
        self.alignment, self.gates = alignment, gates
        self.task = TaskCheckpointing.configured(strategy(Barriers(alignment.value)), gates)
        self.now, self.sent, self.settled, self.sound = 0, 0, 0, True
        self.queues = [[] for _ in range(gates)]
        self.closed = set()  # gates whose end is sent
        self.blocked = {}  # gate -> the barrier nothing follows
        self.at_work = None  # (checkpoint, phase) of the task thread
        self.asynchronous, self.writing = set(), set()  # what files are being written, by checkpoint
        self.forwarded, self.cancelled, self.acknowledged, self.declined, self.aborted = [], [], [], set(), set()
        self.failed = set()  # checkpoints whose asynchronous part failed

    # -------------------------------------------------------------------------------------- what happens

    @rule(what=st.lists(st.sampled_from([BARRIER, BARRIER, BARRIER, CANCELLATION, NOTHING]), min_size=3, max_size=3))
    def send(self, what):
        """The next checkpoint on every channel that is open."""
        self.sent += 1
        for gate in range(self.gates):
            if gate not in self.closed and what[gate] != NOTHING:
                self.queues[gate].append((what[gate], self.sent))

    @rule(gate=st.integers(0, 2), rarely=st.integers(0, 4))
    def end(self, gate, rarely):
        if not rarely and gate < self.gates and gate not in self.closed:
            self.closed.add(gate)
            self.queues[gate].append((END, 0))

    @rule(gate=st.integers(0, 2))
    @precondition(lambda self: self.at_work is None)
    def read(self, gate):
        """The next element of a channel; the data plane swallows obsolete barriers."""
        if gate >= self.gates or gate in self.blocked or not self.queues[gate]:
            return
        what, checkpoint = self.queues[gate].pop(0)
        if what == END:
            self.tell(GateClosed(self.now, gate))
        elif what == CANCELLATION:
            self.tell(CancellationArrived(self.now, gate, checkpoint))
        elif checkpoint > self.settled:
            if self.alignment is AlignmentType.ALIGNED:
                self.blocked[gate] = checkpoint
            options = BarrierOptions(0, self.alignment)
            unaligned = self.alignment is AlignmentType.UNALIGNED
            self.tell(BarrierArrived(self.now, gate, checkpoint, options, first=True, last=True, priority=unaligned))

    @rule()
    @precondition(lambda self: self.at_work is not None)
    def continue_from(self):
        self.tell(PhaseFinished(self.now, *self.at_work))

    @rule(data=st.data(), fails=st.sampled_from([False, False, False, True]))
    @precondition(lambda self: self.asynchronous)
    def finish_asynchronous_work(self, data, fails):
        checkpoint = data.draw(st.sampled_from(sorted(self.asynchronous)))
        self.asynchronous.remove(checkpoint)
        if fails:
            self.failed.add(checkpoint)
        self.tell(AsyncFailed(self.now, checkpoint) if fails else PhaseFinished(self.now, checkpoint, Phase.ASYNC))

    @rule(data=st.data())
    @precondition(lambda self: self.writing)
    def finish_channel_state(self, data):
        checkpoint = data.draw(st.sampled_from(sorted(self.writing)))
        self.writing.remove(checkpoint)
        self.tell(ChannelStateWritten(self.now, checkpoint))

    @rule(data=st.data())
    @precondition(lambda self: self.sent)
    def abort(self, data):
        """The coordinator's mail; it may come before the barriers, or when all is over."""
        at_work = st.nothing() if self.at_work is None else st.just(self.at_work[0])
        checkpoint = data.draw(at_work | st.integers(1, self.sent))
        self.aborted.add(checkpoint)
        self.tell(AbortNotified(self.now, checkpoint))

    # -------------------------------------------------------------------------------------- what must hold

    def tell(self, event):
        self.now, self.sound = self.now + 1, False
        self.task, commands = self.task.on(event)
        for command in commands:
            match command:
                case RunPreBarrier() | ForwardBarrier() | RunSync():
                    free = (
                        self.at_work is None
                        if isinstance(command, RunPreBarrier)
                        else self.at_work[0] == command.checkpoint
                    )
                    assert free, "one thread, one snapshot at a time"
                    self.at_work = command.checkpoint, PHASES[type(command)]
                    if isinstance(command, ForwardBarrier):
                        self.law_one_marker(command.checkpoint)
                        self.forwarded.append(command.checkpoint)
                case ReleaseTask():
                    assert (command.checkpoint, Phase.SYNC) == self.at_work
                    self.at_work = None
                case RunAsync():
                    self.asynchronous.add(command.checkpoint)
                case FinishChannelState():
                    assert self.alignment is AlignmentType.UNALIGNED
                    self.writing.add(command.checkpoint)
                case CancelSnapshot():
                    self.asynchronous.discard(command.checkpoint)
                    self.writing.discard(command.checkpoint)
                    if self.at_work is not None and self.at_work[0] == command.checkpoint:
                        self.at_work = None
                case ResumeInputs():
                    self.blocked = {gate: n for gate, n in self.blocked.items() if n > command.checkpoint}
                case SettleBarriers():
                    self.settled = max(self.settled, command.checkpoint)
                case ForwardCancellation():
                    twice = (
                        self.alignment is AlignmentType.UNALIGNED and command.checkpoint in self.aborted
                    )  # at its first barrier; given up
                    assert twice or command.checkpoint not in self.cancelled
                    assert self.alignment is AlignmentType.UNALIGNED or command.checkpoint not in self.forwarded
                    self.cancelled.append(command.checkpoint)
                case DeclineCheckpoint():
                    # a cancellation declines whatever the task said before (abortCheckpointOnBarrier)
                    twice = self.alignment is AlignmentType.UNALIGNED and command.checkpoint in self.failed
                    assert command.checkpoint not in {*self.acknowledged, *(() if twice else self.declined)}
                    self.declined.add(command.checkpoint)
                case Acknowledge():
                    self.law_acknowledged(command.checkpoint)
        self.sound = True

    def law_one_marker(self, checkpoint):
        """Those downstream get barriers in the order of their checkpoints, and none they were told not to wait for."""
        assert checkpoint > max(self.forwarded, default=0)
        assert checkpoint not in self.cancelled

    def law_acknowledged(self, checkpoint):
        """Once, when its barrier has left and all its files are written; never what was declined or known to be aborted."""
        assert checkpoint in self.forwarded
        assert checkpoint not in {*self.acknowledged, *self.declined, *self.aborted, *self.asynchronous, *self.writing}
        self.acknowledged.append(checkpoint)

    @invariant()
    def nothing_is_at_work_that_the_task_has_forgotten(self):
        if hasattr(self, "task"):
            known = {snapshot.checkpoint for snapshot in self.task.snapshots}
            assert self.asynchronous | self.writing | ({self.at_work[0]} if self.at_work else set()) <= known

    def teardown(self):
        """One more checkpoint on every channel: the task always gets as far as to acknowledge it, and nothing is left over."""
        if not self.sound or len(self.closed) == self.gates:
            return
        self.send([BARRIER] * 3)
        while self.at_work or self.asynchronous or self.writing or any(self.queues):
            if self.at_work:
                self.continue_from()
            for checkpoint in sorted(self.asynchronous):
                self.asynchronous.discard(checkpoint)
                self.tell(PhaseFinished(self.now, checkpoint, Phase.ASYNC))
            for checkpoint in sorted(self.writing):
                self.writing.discard(checkpoint)
                self.tell(ChannelStateWritten(self.now, checkpoint))
            ready = [gate for gate in range(self.gates) if self.queues[gate] and gate not in self.blocked]
            assert ready or self.at_work or self.asynchronous or self.writing or not any(self.queues), "stuck"
            for gate in ready:
                if self.at_work is None:
                    self.read(gate)

        assert self.sent == self.acknowledged[-1]
        assert self.blocked == {}
        assert self.task.snapshots == ()


test_invariants_of_of_a_task = Laws.TestCase
test_invariants_of_of_a_task.settings = settings(max_examples=200, stateful_step_count=50)
