"""The committer of a sink, moment by moment: what it takes in before a barrier, what the barrier has overtaken, when it commits."""

from types import SimpleNamespace

import pytest

from sim.model.sinks import Commit
from sim.protocol.commit import Committable, Writer
from sim.results.journal import Happening, Journal
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
    def test_a_completion_commits_what_its_snapshot_holds(self):
        sink = Sink()
        kept = sink.snapshot(3, committable(3), committable(3, writer=1, records=5))
        assert (kept.checkpoint, len(kept.committables), list(kept.in_flight)) == (3, 2, [])
        assert sink.committed() == []
        sink.committer.completed(3)
        (row,) = sink.context.commits
        assert (row.checkpoint, row.time_ns, row.task, row.trigger_ns) == (3, 0, 2, 33)
        assert sink.committed() == [(3, [3, 3], [], False)]
        assert sink.happened() == [(Happening.COMMITTED, 3, 15)]
        assert sink.output.has(committable(3))

    def test_nothing_is_committed_twice(self):
        sink = Sink()
        sink.snapshot(3, committable(3))
        for _ in range(2):
            sink.committer.completed(3)
        assert len(sink.committed()) == 1

    def test_what_its_snapshot_does_not_hold_waits(self):
        sink = Sink()
        sink.receive(committable(4))
        assert sink.snapshot(3, committable(3)).committables[1:] == ()
        sink.committer.completed(3)
        assert sink.committed() == [(3, [3], [], False)]

    def test_a_commit_keeps_the_thread(self):
        sink = Sink(time_ns=COMMIT_NS)
        sink.snapshot(3, committable(3))
        sink.committer.completed(3)
        assert (sink.log, sink.committed()) == (["occupy"], [])
        sink.env.run(COMMIT_NS)
        assert (sink.log, sink.context.commits[0].time_ns) == (["occupy", "vacate"], COMMIT_NS)

    def test_a_commit_of_a_task_that_failed_meanwhile_has_no_effect(self):
        sink = Sink(time_ns=COMMIT_NS)
        sink.snapshot(3, committable(3))
        sink.committer.completed(3)
        sink.thread.stopped = True
        sink.env.run(COMMIT_NS)
        assert (sink.log, sink.committed()) == (["occupy", "vacate"], [])
        assert not sink.output.has(committable(3))

    def test_files_that_are_not_there_are_noted(self):
        sink = Sink()
        sink.output.files |= {"there": 1, "cut": 2}
        sink.snapshot(3, committable(3, files=("there", "cut", "never")))
        sink.committer.completed(3)
        assert (Happening.FILE_MISSING, 3, 2) in sink.happened()

    @pytest.mark.parametrize(("drained", "emitted"), [(False, [4]), (True, [])])
    def test_records_that_wait_for_their_commit_leave(self, drained, emitted):
        """Not behind the end: a reader that has finished drops them."""
        sink = Sink(drained=drained, emits="on-commit")
        sink.snapshot(3, committable(3))
        sink.snapshot(4, committable(4))
        sink.committer.completed(4)
        assert emitted == sink.emitted

    def test_other_sinks_let_nothing_go(self):
        sink = Sink()
        sink.snapshot(3, committable(3))
        sink.committer.completed(3)
        assert sink.emitted == []

    def test_at_the_end_everything_is_committed(self):
        """Without a checkpoint: 0."""
        sink = Sink()
        sink.receive(committable(5))
        sink.committer.close()
        (row,) = sink.context.commits
        assert (row.checkpoint, row.trigger_ns) == (0, -1)
        assert sink.committed() == [(0, [5], [], False)]


class TestLosses:
    def test_a_transaction_that_was_open_for_too_long(self):
        sink = Sink(transaction_timeout_ns=100)
        sink.snapshot(3, committable(3), committable(3, writer=1, opened_ns=5))
        sink.env.run(105)
        sink.committer.completed(3)
        assert sink.committed() == [(3, [3], [3], False)]
        assert sink.happened() == [(Happening.TRANSACTION_LOST, 3, 10), (Happening.COMMITTED, 3, 10)]
        assert not sink.output.has(committable(3))
        assert sink.output.settled(committable(3))

    def test_one_that_is_lost_alone_is_noted_and_once(self):
        sink = Sink(transaction_timeout_ns=100)
        sink.env.run(500)
        sink.committer.restored(Uncommitted(3, (committable(3),)))
        assert sink.committed() == [(3, [], [3], True)]
        sink.committer.restored(Uncommitted(3, (committable(3),)))
        assert sink.committed() == []


class TestRestores:
    def test_what_was_held_is_committed_again_unless_it_is_visible(self):
        sink = Sink()
        sink.output.commit([committable(2)], 2)
        sink.committer.restored(Uncommitted(3, (committable(2), committable(3))))
        assert sink.committed() == [(3, [3], [], True)]

    def test_in_flight_data_follows(self):
        sink = Sink()
        sink.committer.restored(Uncommitted(3, (), [committable(3)]))
        assert sink.committed() == [(3, [3], [], True)]

    def test_without_any_nothing_is_committed(self):
        sink = Sink()
        sink.committer.restored(Uncommitted(3, ()))
        assert sink.committed() == []


class TestBarriersThatOvertake:
    """Committables travel as records do: the barrier of writer 0 overtakes what it has handed over."""

    @pytest.fixture
    def sink(self):
        return Sink(committer="global", exchange="as-job")

    def test_what_is_overtaken_is_in_flight_data(self, sink):
        sink.receive(committable(3), committable(3, writer=1))
        sink.committer.overtake(0)
        sink.committer.take_in(3)
        kept = sink.committer.cut(3)
        assert [row.writer for row in kept.committables] == [1]
        assert [row.writer for row in kept.in_flight] == [0]

    def test_what_has_arrived_is_not_overtaken(self, sink):
        sink.receive(committable(3))
        sink.env.run(LATENCY_NS - 1)
        sink.thread.run()
        sink.env.run(LATENCY_NS)
        sink.thread.run()
        sink.committer.overtake(0)
        sink.committer.take_in(3)
        assert len(sink.committer.cut(3).committables) == 1

    def test_it_arrives_behind_its_barrier_and_is_committed_with_it(self, sink):
        sink.receive(committable(3))
        sink.committer.overtake(0)
        sink.committer.take_in(3)
        sink.committer.cut(3)
        sink.committer.completed(3)
        assert sink.committed() == []
        sink.env.run(LATENCY_NS)
        sink.thread.run()
        assert sink.committed() == [(3, [3], [], False)]

    def test_another_channel_may_bring_more_until_the_checkpoint_is_over(self, sink):
        kept = sink.snapshot(3)
        sink.receive(committable(3, writer=1), committable(4, writer=1))
        assert [(row.epoch, row.writer) for row in kept.in_flight] == [(3, 1)]
        sink.committer.aborted(3)
        sink.receive(committable(3, writer=0))
        assert len(kept.in_flight) == 1

    def test_what_is_over_is_over_for_older_ones_too(self, sink):
        second, third = sink.snapshot(2), sink.snapshot(3)
        sink.committer.completed(2)
        sink.receive(committable(2), committable(3))
        assert ([row.epoch for row in second.in_flight], [row.epoch for row in third.in_flight]) == ([], [2, 3])

    def test_the_end_takes_everything_in(self, sink):
        sink.receive(committable(3))
        sink.committer.overtake(0)
        sink.committer.take_in_all()
        assert len(sink.committer.machine.committables) == 1

    def test_where_no_barrier_overtakes_nothing_is_in_flight(self):
        sink = Sink()
        sink.receive(committable(3))
        sink.committer.overtake(0)
        sink.committer.take_in(3)
        kept = sink.committer.cut(3)
        assert (len(kept.committables), list(kept.in_flight)) == (1, [])
        assert sink.env.next_ns is None


class TestWriters:
    def test_a_closed_epoch_goes_to_its_committer(self):
        sink = Sink()
        writer = SinkWriter(Writer(0, (0,), 4), "sink", sink.committer, None)
        writer.go_on_behind(2, (5,))
        writer.end_epoch(9, 3, (12,), 100, ())
        writer.end_epoch(10, 4, (12,), 0, ())
        writer.end_input(20, (15,), 50, ())
        sink.committer.take_in_all()
        assert [(row.epoch, row.inputs) for row in sink.committer.machine.committables] == [
            (3, ((5, 12),)),
            (5, ((12, 15),)),
        ]

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
