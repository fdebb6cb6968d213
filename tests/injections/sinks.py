"""Bugs of transactional sinks."""

from dataclasses import replace

from sim.protocol.commit import (
    CommittablesReceived,
    Committer,
    CompletionNotified,
    Restored,
    SnapshotTaken,
    Writer,
    _commit_up_to,
)
from sim.runtime.context import CommittedOutput
from sim.runtime.task.epochs import Epochs
from sim.runtime.task.sink import SinkCommitter, SinkWriter
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


@add(Committer, "on", SINK, "The committer commits at the barrier, before its checkpoint is complete.")
def commits_come_before_the_completion(original):
    def on(self, event):
        if isinstance(event, SnapshotTaken):
            return _commit_up_to(self, event.now, event.checkpoint, again=False)
        return original(self, event)

    return on


@add(Committer, "on", LOSSY, "A completion commits the epoch of its own checkpoint only.")
def older_epochs_are_not_committed(original):
    def on(self, event):
        if not isinstance(event, CompletionNotified):
            return original(self, event)
        own = tuple(row for row in self.committables if row.epoch == event.checkpoint)
        after, commands = original(replace(self, committables=own), event)
        return replace(
            after, committables=tuple(row for row in self.committables if row.epoch > event.checkpoint)
        ), commands

    return on


@add(Committer, "on", SLOW_COMMIT, "What a snapshot holds is not committed after a restart.")
def restored_transactions_are_forgotten(original):
    return lambda self, event: original(self, replace(event, committables=()) if isinstance(event, Restored) else event)


@add(SinkCommitter, "cut", SLOW_COMMIT, "Snapshots do not hold the transactions that wait for their commit.")
def snapshots_hold_no_transactions(original):
    return lambda self, checkpoint: original(self, checkpoint)._replace(committables=())


@add(CommittedOutput, "has", SINK, "The external system takes a transaction a second time.")
def transactions_are_not_recognised(_):
    return lambda self, committable: False


@add(SinkWriter, "go_on_behind", SINK, "A restarted writer counts from the beginning.")
def a_writer_counts_from_the_beginning(original):
    return lambda self, checkpoint, written: original(self, checkpoint, tuple(0 for _ in written))


@add(Writer, "_closed", SINK, "A transaction leaves out the first record of each channel.")
def transactions_lack_a_record(original):
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


@add(Epochs, "cut", HOLDING, "Snapshots do not hold the records that a writer keeps back.")
def records_kept_back_are_no_state(original):
    def cut(self, checkpoint, snapshot):
        original(self, checkpoint, snapshot)
        snapshot.held_back = ()

    return cut


@add(
    Epochs, "before_barrier", CASCADE, "A stage that emits what it commits emits it before its checkpoint is complete."
)
def output_is_emitted_before_its_commit(original):
    def before(self, checkpoint):
        kept_ns = original(self, checkpoint)
        if self._emits_on_commit:
            self.slot.thread.release_late_outputs(self.plane.position(self.slot.task).served)
        return kept_ns

    return before


@add(
    SinkCommitter,
    "take_in",
    GLOBAL,
    "The global committer leaves the transactions of the first writer for the next checkpoint.",
)
def a_committable_comes_late(original):
    def take_in(self, checkpoint):
        left_out, self._in_transit = self._in_transit[:1], self._in_transit[1:]
        original(self, checkpoint)
        self._in_transit = [*left_out, *self._in_transit]

    return take_in


@add(SinkCommitter, "_receive", SINK, "A committable is handed over twice.")
def a_committable_is_counted_twice(original):
    def receive(self, sent, *, behind):
        original(self, sent, behind=behind)
        if sent:
            self._tell(CommittablesReceived(self.slot.now, (sent[0].committable,), behind))

    return receive
