"""The committer of a sink, moment by moment: what it takes in before a barrier, what the barrier has overtaken, when it commits."""

from types import SimpleNamespace

import pytest

from sim.model.sinks import Commit
from sim.protocol.commit import Committable, Writer
from sim.runtime.context import CommittedOutput, Uncommitted
from sim.runtime.task.sink import SinkCommitter, SinkWriter
from tests.runtime.task.fake_slots import FakeClock


def committable(epoch):
    return Committable(0, epoch, ((0, 10),), 0, 100, ())


class Sink:
    """A committer with real output; `emitted`: epochs whose records leave."""

    def __init__(self, *, drained=False, **options):
        self.env, self.emitted = FakeClock(), []
        self.context = SimpleNamespace(
            env=self.env,
            scenario=SimpleNamespace(cluster=SimpleNamespace(latency_ns=7, profile="2.x")),
            commits=[],
            stats={},
            failing_commits={},
        )
        self.committer = SinkCommitter(Slot(self.context), Commit(**options), self.emitted.append, lambda: drained)

    def snapshot(self, checkpoint, *rows):
        """The writers hand these over before their barriers; all of these arrive."""
        for row in rows:
            self.committer.receive(row)
        self.committer.take_in(checkpoint)
        return self.committer.cut(checkpoint)

    def committed(self):
        """(checkpoint, epochs committed, epochs lost, again) of each commit."""
        rows = [
            (row.checkpoint, [epoch.epoch for epoch in row.committed], [epoch.epoch for epoch in row.lost], row.again)
            for row in self.context.commits
        ]
        self.context.commits.clear()
        return rows


class Slot:
    """The slot of the task of the committer, whose mails wait."""

    task = 2
    vertex = SimpleNamespace(committer_of="sink", name="committer")

    def __init__(self, context):
        self.context, self.output = context, CommittedOutput(None, [("sink", 0), ("sink", 1), ("committer", 0)])
        self.thread = SimpleNamespace(stopped=False, post=lambda _: None)

    @property
    def now(self):
        return self.context.env.now

    def note(self, *_):
        pass


@pytest.mark.parametrize(("drained", "emitted"), [(False, [4]), (True, [])])
def test_records_that_wait_for_their_commit_leave(drained, emitted):
    """Not behind the end: a reader that has finished drops them."""
    sink = Sink(drained=drained, emits="on-commit")
    sink.snapshot(3, committable(3))
    sink.snapshot(4, committable(4))
    sink.committer.completed(4)
    assert emitted == sink.emitted


def test_one_that_is_lost_alone_is_noted_and_once():
    sink = Sink(transaction_timeout_ns=100)
    sink.env.run(500)
    sink.committer.restored(Uncommitted(3, (committable(3),)))
    assert sink.committed() == [(3, [], [3], True)]
    sink.committer.restored(Uncommitted(3, (committable(3),)))
    assert sink.committed() == []


def test_what_is_over_is_over_for_older_ones_too():
    """Committables travel as records do: the barrier of the writer overtakes what it has handed over."""
    sink = Sink(committer="global", exchange="as-job")
    second, third = sink.snapshot(2), sink.snapshot(3)
    sink.committer.completed(2)
    for epoch in (2, 3):
        sink.committer.receive(committable(epoch))
    assert ([row.epoch for row in second.in_flight], [row.epoch for row in third.in_flight]) == ([], [2, 3])


def test_a_global_committer_is_looked_up_when_there_is_something_to_commit():
    sink, lookups = Sink(), []
    writer = SinkWriter(Writer(0, (0,), 0), "sink", None, lambda vertex: (lookups.append(vertex), sink.committer)[1])
    writer.overtaken()
    writer.end_epoch(9, 3, (0,), 0, ())
    assert lookups == []
    for checkpoint in (4, 5):
        writer.end_epoch(9, checkpoint, (checkpoint,), 0, ())
    assert lookups == ["sink"]
