"""The committer of a sink, moment by moment: what it takes in before a barrier, what the barrier has overtaken, when it commits."""

from types import SimpleNamespace

from sim.model.sinks import Commit
from sim.protocol.commit import Committable
from sim.results.journal import Journal
from sim.runtime.context import CommittedOutput, Uncommitted
from sim.runtime.task.sink import SinkCommitter
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


class TestLosses:
    def test_one_that_is_lost_alone_is_noted_and_once(self):
        sink = Sink(transaction_timeout_ns=100)
        sink.env.run(500)
        sink.committer.restored(Uncommitted(3, (committable(3),)))
        assert sink.committed() == [(3, [], [3], True)]
        sink.committer.restored(Uncommitted(3, (committable(3),)))
        assert sink.committed() == []
