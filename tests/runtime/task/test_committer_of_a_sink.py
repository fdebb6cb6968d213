"""The committer of a sink, moment by moment: what it takes in before a barrier, what the barrier has overtaken, when it commits."""

from types import SimpleNamespace

import pytest

from sim.model.sinks import Commit
from sim.protocol.commit import Committable, Writer
from sim.results.journal import Journal
from sim.runtime.context import CommittedOutput, Uncommitted
from sim.runtime.task.sink import SinkCommitter, SinkWriter
from tests.runtime.task.fake_slots import FakeClock

LATENCY_NS, COMMIT_NS = 7, 40
NAMES = [("sink", 0), ("sink", 1), ("committer", 0)]


def committable(epoch, writer=0, records=10, opened_ns=0, files=()):
    return Committable(writer, epoch, ((0, records),), opened_ns, 100, files)


class Thread:
    """Mails run when a test says so."""

    stopped = False

    def __init__(self, log):
        self.mails = []
        self.occupy, self.vacate = (lambda word=word: log.append(word) for word in ("occupy", "vacate"))

    def post(self, mail):
        self.mails.append(mail)

    def run(self):
        mails, self.mails = self.mails, []
        for mail in mails:
            mail()


class Sink:
    """A committer with real output; `emitted`: epochs whose records leave."""

    def __init__(self, *, drained=False, **options):
        self.env, self.log, self.emitted = FakeClock(), [], []
        existing = SimpleNamespace(exists=lambda file: file == 1)
        self.output = CommittedOutput(SimpleNamespace(files=existing), NAMES)
        scenario = SimpleNamespace(cluster=SimpleNamespace(latency_ns=LATENCY_NS, profile="2.x"))
        self.context = SimpleNamespace(
            env=self.env,
            scenario=scenario,
            commits=[],
            stats={3: SimpleNamespace(trigger_ns=33)},
            journal=Journal(),
            failing_commits={},
        )
        self.thread = Thread(self.log)
        slot = Slot(self)
        self.committer = SinkCommitter(slot, Commit(**options), self.emitted.append, lambda: drained)

    def receive(self, *rows):
        for row in rows:
            self.committer.receive(row)

    def snapshot(self, checkpoint, *rows):
        """The writers hand these over before their barriers; all of these arrive."""
        self.receive(*rows)
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

    def happened(self):
        return [(row.happening, row.checkpoint, row.number) for row in self.context.journal]


class Slot:
    """The slot of the task of the committer."""

    task = 2

    def __init__(self, sink):
        self.context, self.output, self.thread = sink.context, sink.output, sink.thread
        self.vertex = SimpleNamespace(committer_of="sink", name="committer")

    @property
    def now(self):
        return self.context.env.now

    def note(self, happening, checkpoint=-1, number=0, detail=""):
        self.context.journal.note(self.now, happening, checkpoint, self.task, number, detail)


class TestCommits:
    @pytest.mark.parametrize(("drained", "emitted"), [(False, [4]), (True, [])])
    def test_records_that_wait_for_their_commit_leave(self, drained, emitted):
        """Not behind the end: a reader that has finished drops them."""
        sink = Sink(drained=drained, emits="on-commit")
        sink.snapshot(3, committable(3))
        sink.snapshot(4, committable(4))
        sink.committer.completed(4)
        assert emitted == sink.emitted


class TestLosses:
    def test_one_that_is_lost_alone_is_noted_and_once(self):
        sink = Sink(transaction_timeout_ns=100)
        sink.env.run(500)
        sink.committer.restored(Uncommitted(3, (committable(3),)))
        assert sink.committed() == [(3, [], [3], True)]
        sink.committer.restored(Uncommitted(3, (committable(3),)))
        assert sink.committed() == []


class TestBarriersThatOvertake:
    """Committables travel as records do: the barrier of writer 0 overtakes what it has handed over."""

    @pytest.fixture
    def sink(self):
        return Sink(committer="global", exchange="as-job")

    def test_what_is_over_is_over_for_older_ones_too(self, sink):
        second, third = sink.snapshot(2), sink.snapshot(3)
        sink.committer.completed(2)
        sink.receive(committable(2), committable(3))
        assert ([row.epoch for row in second.in_flight], [row.epoch for row in third.in_flight]) == ([], [2, 3])


class TestWriters:
    def test_a_global_committer_is_looked_up_when_there_is_something_to_commit(self):
        sink, lookups = Sink(), []
        writer = SinkWriter(
            Writer(0, (0,), 0), "sink", None, lambda vertex: (lookups.append(vertex), sink.committer)[1]
        )
        writer.overtaken()
        writer.end_epoch(9, 3, (0,), 0, ())
        assert lookups == []
        for checkpoint in (4, 5):
            writer.end_epoch(9, checkpoint, (checkpoint,), 0, ())
        assert lookups == ["sink"]
