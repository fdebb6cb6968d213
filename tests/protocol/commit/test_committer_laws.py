"""The committer, whatever happens in whatever order: a Hypothesis machine plays writers, checkpoints, failures and the world outside."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sim.protocol.commit import (
    CommitEpochs,
    Committable,
    CommittablesReceived,
    Committer,
    CompletionNotified,
    ReportLost,
    Restored,
)


class Laws(RuleBasedStateMachine):
    """What an onlooker knows: what was written, which checkpoints are complete, what is visible."""

    @initialize(timeout_ns=st.sampled_from([None, None, 40]))
    def begin(self, timeout_ns):
        self.timeout_ns = timeout_ns
        self.committer = Committer(timeout_ns)
        self.now, self.epoch, self.announced = 0, 0, 0
        self.written = {}  # what was written and not rolled back, by (writer, epoch)
        self.stored = {0: ()}  # what the committer held at each barrier since the start
        self.completed = [0]
        self.visible, self.lost = set(), set()

    @rule(writers=st.sets(st.integers(0, 2)), age=st.integers(0, 20))
    def barrier(self, writers, age):
        """Committables of a new epoch, if anything was written, then the committer's own snapshot."""
        self.epoch += 1
        new = tuple(
            Committable(w, self.epoch, ((0, 1),), max(0, self.now - age), 100) for w in sorted(writers, reverse=True)
        )
        self.written |= {(committable.writer, committable.epoch): committable for committable in new}
        self.tell(CommittablesReceived(self.now, new))
        self.stored[self.epoch] = self.committer.committables

    @rule(ns=st.integers(1, 30))
    def pass_time(self, ns):
        self.now += ns

    @rule(data=st.data(), heard=st.sampled_from([True, True, False]))
    @precondition(lambda self: max(self.stored) > self.completed[-1])
    def complete(self, data, heard):
        """Any later one; those between are aborted.  The notice may be lost."""
        self.completed.append(data.draw(st.sampled_from(sorted(n for n in self.stored if n > self.completed[-1]))))
        if heard:
            self.hear(self.completed[-1])

    @rule(data=st.data())
    def hear_late(self, data):
        """Perhaps for the second time."""
        self.hear(data.draw(st.sampled_from(self.completed)))

    @rule()
    def restore(self):
        """From the latest complete checkpoint; what was written after it is rolled back and written again under new epochs."""
        latest = self.completed[-1]
        self.written = {name: committable for name, committable in self.written.items() if name[1] <= latest}
        self.stored = {n: committables for n, committables in self.stored.items() if n <= latest}
        self.announced = latest
        self.committer = Committer(self.timeout_ns)
        self.tell(Restored(self.now, latest, self.stored[latest]))

    def hear(self, checkpoint):
        self.announced = max(self.announced, checkpoint)
        self.tell(CompletionNotified(self.now, checkpoint))

    def tell(self, event):
        self.committer, commands = self.committer.on(event)
        for command in commands:
            names = [(committable.writer, committable.epoch) for committable in command.committables]
            assert names, "about something"
            assert isinstance(event, Restored) or not self.visible & set(names), "once, but for a restore"
            if isinstance(command, ReportLost):
                assert all(self.now - committable.opened_ns > self.timeout_ns for committable in command.committables)
                self.lost |= set(names)
            else:
                assert isinstance(command, CommitEpochs)
                assert sorted(names, key=lambda name: (name[1], name[0])) == names, "in their order"
                assert isinstance(event, Restored) == command.again
                self.visible |= set(names)

    @invariant()
    def nothing_is_visible_before_its_checkpoint_is_complete(self):
        """And nothing of what a failure has rolled back ever is."""
        if hasattr(self, "written"):
            assert self.visible <= {name for name in self.written if name[1] <= self.completed[-1]}

    @invariant()
    def what_is_complete_is_visible_or_reported_lost(self):
        """As soon as the committer has heard of it, or of a later checkpoint."""
        if hasattr(self, "written"):
            assert {name for name in self.written if name[1] <= self.announced} <= self.visible | self.lost
            assert self.timeout_ns is not None or not self.lost


test_invariants_of_of_the_committer = Laws.TestCase
test_invariants_of_of_the_committer.settings = settings(max_examples=200, stateful_step_count=30)
