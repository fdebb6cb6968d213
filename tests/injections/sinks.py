"""Bugs of transactional sinks."""

from dataclasses import replace

from sim.protocol.commit import (
    CommittablesReceived,
    Committer,
    CompletionNotified,
    Restored,
    SnapshotTaken,
    Writer,
    WriterRestored,
    _commit_up_to,
)
from sim.runtime.context import CommittedOutput
from sim.runtime.task.epochs import Epochs
from sim.runtime.task.sink import SinkCommitter
from tests.injections.injection import Injections
from tests.injections.least_worlds import chain, sink, source, world

INJECTIONS = Injections("sinks")
add = INJECTIONS.add

KILLED = ({"kill": "k[0]", "at": "1020 ms"},)
SINK = world(faults=KILLED)
SLOW_COMMIT = world(
    chain(k=sink(commit={"time": "100 ms"})),
    faults=({"kill": "k[0]", "at": "700 ms"}, {"kill": "k[1]", "at": "1250 ms"}),
)
LOSSY = world(checkpoint={"lost-notifications": "60 %"})
HOLDING = world(chain(k=sink(commit={"holds-back": 5})), faults=KILLED)
CASCADE = world({"s": source(), "m": sink("s", commit={"emits": "on-commit"}), "k": sink("m")}, faults=KILLED)
GLOBAL = world(chain(k=sink(commit={"committer": "global"})), faults=KILLED)


@add(Committer, "on", SINK)
def commits_come_before_the_completion(original):
    """The committer commits at the barrier, before its checkpoint is complete."""

    def on(self, event):
        if isinstance(event, SnapshotTaken):
            return _commit_up_to(self, event.now, event.checkpoint, again=False)
        return original(self, event)

    return on


@add(Committer, "on", LOSSY)
def older_epochs_are_not_committed(original):
    """A completion commits the epoch of its own checkpoint only."""

    def on(self, event):
        if not isinstance(event, CompletionNotified):
            return original(self, event)
        own = tuple(row for row in self.committables if row.epoch == event.checkpoint)
        after, commands = original(replace(self, committables=own), event)
        return replace(
            after, committables=tuple(row for row in self.committables if row.epoch > event.checkpoint)
        ), commands

    return on


@add(Committer, "on", SLOW_COMMIT)
def restored_transactions_are_forgotten(original):
    """What a snapshot holds is not committed after a restart."""
    return lambda self, event: original(self, replace(event, committables=()) if isinstance(event, Restored) else event)


@add(SinkCommitter, "cut", SLOW_COMMIT)
def snapshots_hold_no_transactions(original):
    """Snapshots do not hold the transactions that wait for their commit."""
    return lambda self, checkpoint: original(self, checkpoint)._replace(committables=())


@add(CommittedOutput, "has", SINK)
def transactions_are_not_recognised(_):
    """The external system takes a transaction a second time."""
    return lambda self, committable: False


@add(Writer, "on", SINK)
def a_writer_counts_from_the_beginning(original):
    """A restarted writer counts from the beginning."""

    def on(self, event):
        restored = isinstance(event, WriterRestored)
        return original(self, replace(event, written=tuple(0 for _ in event.written)) if restored else event)

    return on


@add(Writer, "_closed", SINK)
def transactions_lack_a_record(original):
    """A transaction leaves out the first record of each channel."""

    def closed(self, event, epoch):
        after, commands = original(self, event, epoch)
        return after, tuple(
            replace(
                row,
                committable=replace(
                    row.committable, inputs=tuple((min(a + 1, b), b) for a, b in row.committable.inputs)
                ),
            )
            for row in commands
        )

    return closed


@add(Epochs, "cut", HOLDING)
def records_kept_back_are_no_state(original):
    """Snapshots do not hold the records that a writer keeps back."""

    def cut(self, checkpoint, snapshot):
        original(self, checkpoint, snapshot)
        snapshot.held_back = ()

    return cut


@add(Epochs, "before_barrier", CASCADE)
def output_is_emitted_before_its_commit(original):
    """A stage that emits what it commits emits it before its checkpoint is complete."""

    def before(self, checkpoint):
        kept_ns = original(self, checkpoint)
        if self._emits_on_commit:
            self.slot.thread.release_late_outputs(self.slot.position.served)
        return kept_ns

    return before


@add(SinkCommitter, "receive_committable", GLOBAL)
def a_committable_comes_late(original):
    """The global committer leaves the transactions of the first writer for the next checkpoint."""

    def receive_committable(self, checkpoint):
        left_out, self._in_transit = self._in_transit[:1], self._in_transit[1:]
        original(self, checkpoint)
        self._in_transit = [*left_out, *self._in_transit]

    return receive_committable


@add(SinkCommitter, "_receive", SINK)
def a_committable_is_counted_twice(original):
    """A committable is handed over twice."""

    def receive(self, sent, *, behind):
        original(self, sent, behind=behind)
        if sent:
            self._dispatch(CommittablesReceived(self.slot.now, (sent[0].committable,), behind))

    return receive
