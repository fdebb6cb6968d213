"""Committed output and the end of data: what tiles is silent; gaps, overlaps, early commits and wrong ends are told."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.scenario import Action
from sim.model.sinks import Commit
from sim.protocol.options import StopMode
from sim.results.journal import Entry, EventType, Journal
from sim.results.tables import CheckpointStats, CommitStats, CommittedEpoch
from sim.runtime.invariants import output
from sim.runtime.invariants.files import deletions
from sim.runtime.invariants.output import Commits, EndOfData
from tests.invariants.watched import (
    MAP,
    account_of,
    end_facts,
    facts,
    hollow,
    named,
    stateful,
    with_scenario,
)
from tests.invariants.watched import SINK as STATEFUL_SINK

MS = 1_000_000
NAMES = [("source", 0), ("sink", 0)]
SINK = 1


def epoch(number, *inputs, **fields):
    return CommittedEpoch(SINK, number, inputs, opened_ns=0, size_bytes=10, **fields)


def commit(checkpoint, *epochs, at_ms=None, **fields):
    """Checkpoint n completes at 10 n ms and is committed 1 ms later, unless something else is said."""
    return CommitStats(checkpoint, (10 * checkpoint + 1 if at_ms is None else at_ms) * MS, SINK, 0, epochs, **fields)


def stats():
    rows = {n: CheckpointStats(n, 0, 2, status="COMPLETED", completed_ns=10 * n * MS) for n in (1, 2, 3, 4)}
    return {**rows, 3: replace(rows[3], status="FAILED", completed_ns=-1)}


def journal(commits):
    rows = Journal()
    for number, row in stats().items():
        rows.note((10 * number - 5) * MS, EventType.TRIGGERED, number)
        rows.note(10 * number * MS, EventType.COMPLETED if row.status == "COMPLETED" else EventType.ABORTED, number)
    for commit in commits:
        rows.note(
            commit.time_ns,
            EventType.COMMITTED,
            commit.checkpoint,
            commit.task,
            sum(e.records for e in commit.committed),
        )
    return rows


def judged(*commits, rows=None, read=None, begun_from=0, timeout_ms=0, **output):
    """The violations of a job with these commits; `read`: what its sink has read of each input channel, if it has finished."""
    sink = Commit(transaction_timeout_ns=timeout_ms * MS) if timeout_ms else None if read is None else Commit()
    output = SimpleNamespace(**{"covered_before": None, "counted_from": 0} | output)
    fields = {"commits": commits, "stats": stats(), "begun_from": begun_from, "output": output}
    fields["scenario"] = replace(stateful().scenario, faults=())
    fields["vertex"] = lambda task: SimpleNamespace(commit=sink if task == SINK else None)
    account = hollow(Commits, journal(commits) if rows is None else rows, NAMES, now_ns=99 * MS, **fields)
    account.run.finished = read is not None
    account._to_commit_by = lambda *_: read
    account.at_the_end()
    return account.found


def violations(*commits):
    return judged(*commits)


def test_transactions_live_as_long_as_their_timeout():
    """The first one is lost after 11 ms, the second one is committed after 41 ms."""
    commits = CommitStats(1, 11 * MS, SINK, 0, (), (epoch(1, (0, 10)),)), commit(4, epoch(4, (10, 20)))
    early, late = ("its transaction is lost after 11 ms", "its transaction is committed after 41 ms")

    for timeout_ms, expected in ((10, [late]), (11, [early, late]), (40, [early, late]), (41, [early])):
        found = [row.fact for row in judged(*commits, timeout_ms=timeout_ms) if row.invariant == output.TIMELY]
        assert found == [f"{fact}, its timeout is {timeout_ms} ms" for fact in expected]


def test_a_gap_is_told():
    """Records 10 to 14 of the first channel and 5 to 6 of the second are in no commit."""
    (violation,) = violations(commit(1, epoch(1, (0, 10), (0, 5))), commit(2, epoch(2, (14, 20), (6, 7))))

    assert violation.fact == "5 records are lost before it"
    assert violation.where == "epoch 2 of sink[0], committed with checkpoint 2"
    assert "0.011000 s  sink[0] makes 15 records visible on completion of checkpoint 1" in violation.evidence
    assert (
        violation.evidence[-1] == "input channel 0: records up to 10 were committed before, this epoch holds 14 to 20"
    )


def test_an_overlap_is_told():
    (violation,) = violations(commit(1, epoch(1, (0, 10))), commit(2, epoch(2, (7, 20))))

    assert violation.fact == "3 records are committed twice"


def test_the_same_epoch_twice_is_told():
    """Two writes of one transaction: what an external system that does not recognise it would show."""
    (violation,) = violations(commit(1, epoch(1, (0, 10))), commit(2, epoch(1, (0, 10))))

    assert violation.fact == "10 records are committed twice"


def test_a_lost_transaction_is_told_once():
    """What the external system threw away is lost; what follows it is not blamed again."""
    (violation,) = violations(
        commit(1, epoch(1, (0, 10))), commit(2, lost=(epoch(2, (10, 30)),)), commit(4, epoch(4, (30, 40)))
    )

    assert violation.fact.startswith("20 records are lost: the transaction")


def test_output_newer_than_its_checkpoint_is_told():
    (violation,) = violations(commit(1, epoch(2, (0, 1))))

    assert violation.fact == "it makes epoch 2 visible, which is newer than checkpoint 1"


def test_missing_files_are_told():
    """Committed output names a file that was deleted or never finished."""
    (violation,) = violations(commit(1, epoch(1, (0, 10), files=("a", "b"), missing=1)))

    assert violation.fact == "1 of the 2 files it names are not there in full"


def left(read, *commits):
    return [violation.fact for violation in judged(*commits, read=read)]


def test_an_uncommitted_tail_is_told():
    """Between the last checkpoint and the end: 3 records of one channel, 1 of another."""
    assert left((13, 6), commit(1, epoch(1, (0, 10), (0, 5)))) == [
        "the job has finished and 4 records are lost: never committed"
    ]
    assert left((7,)) == ["the job has finished and 7 records are lost: never committed"]


def again(checkpoint, **fields):
    return commit(checkpoint, epoch(checkpoint, (0, 1)), again=True, **fields)


def test_a_commit_after_a_restore_needs_a_complete_checkpoint_too():
    assert [len(violations(repetition)) == 1 for repetition in (again(1, at_ms=9), again(3))] == [True, True]


def test_an_instance_commits_what_it_began_from_without_completing_it():
    """Another instance did, whether it had committed the output or not."""
    for first in (again(7), commit(7, epoch(7, (0, 1)))):
        assert judged(first, begun_from=7) == []
        assert len(judged(first, begun_from=6)) == 1


def test_the_story_of_a_gap_has_the_last_commit_before_it():
    """Failures until then; the commits of this task only, and the ends of their checkpoints."""
    commits = [commit(1, epoch(1, (0, 10))), commit(2, epoch(2, (10, 20))), commit(4, epoch(4, (25, 30)))]
    rows = journal(commits)
    rows.note(41 * MS, EventType.COMMITTED, 4, 0, 99)
    for ms, why in ((41, "now"), (42, "later")):
        rows.note(ms * MS, EventType.TASK_FAILED, -1, 0, 0, why)
    (violation,) = judged(*commits, rows=rows)

    assert violation.evidence == (
        "0.015000 s  the coordinator triggers checkpoint 2",
        "0.020000 s  checkpoint 2 is complete",
        "0.021000 s  sink[0] makes 10 records visible on completion of checkpoint 2",
        "0.035000 s  the coordinator triggers checkpoint 4",
        "0.040000 s  checkpoint 4 is complete",
        "0.041000 s  sink[0] makes 5 records visible on completion of checkpoint 4",
        "0.041000 s  source[0] fails: now",
        "input channel 0: records up to 20 were committed before, this epoch holds 25 to 30",
    )


def test_a_commit_of_nothing_covers_nothing():
    assert left((1,), commit(1, epoch(1, (0, 0)))) == ["the job has finished and 1 record is lost: never committed"]


def test_epochs_of_channels_that_are_no_more_are_not_laid_beside_those_of_today():
    """Rescaled from checkpoint 1: two channels became one.  What expires is lost all the same, and files must be there."""
    old, expired = epoch(1, (0, 10), (0, 5), files=("a",), missing=1), epoch(1, (10, 12), (5, 9))
    commits = [commit(1, old, lost=(expired,), again=True), commit(2, epoch(2, (7, 20)))]
    begun = {"begun_from": 1, "covered_before": {SINK: [7]}, "counted_from": 1}
    lost, missing = [violation.fact for violation in judged(*commits, read=(20,), **begun)]

    assert lost.startswith("6 records are lost: the transaction")
    assert missing == "1 of the 1 files it names are not there in full"
    assert len(judged(*commits, read=(21,), **begun)) == 3


# How the data of tasks ends, and what follows (invariants 113 to 116).


NOW, SECOND, LATEST = 5400 * MS, 10**9, 6
TRIGGERED, END = EventType.TRIGGERED, EventType.END_OF_DATA
ALL_ENDED = [Entry(10, END, task=0, detail="drain"), Entry(20, END, task=1, detail="drain")]


def missing(*rows, end_ns=99, deployed=(), deleted=()):
    """What is said where no checkpoint begins within 10 ns behind the end of all data."""
    overheads = SimpleNamespace(acknowledge_ns=10 - output._SOON_NS, trigger_ns=0)
    files = [SimpleNamespace(deleted_ns=begin, removed_ns=end) for begin, end in deleted]
    account = hollow(
        EndOfData,
        rows,
        now_ns=end_ns,
        run={"deployed": dict(deployed)},
        scenario=replace(stateful().scenario, overheads=overheads),
        storage=SimpleNamespace(files=files),
    )
    account._check_final_checkpoint()
    return facts(account)


def test_a_checkpoint_follows_the_end_of_all_data():
    """It counts from the end of the last task, or of the checkpoint that was under way then."""
    begun, done = Entry(15, TRIGGERED, 3), Entry(40, EventType.COMPLETED, 3)

    assert missing(*ALL_ENDED, Entry(25, TRIGGERED, 4)) == []
    assert missing(*ALL_ENDED, end_ns=30) == []
    assert missing(*ALL_ENDED, end_ns=31) == ["all data has ended, and no checkpoint begins for 1.1e-05 ms"]
    assert missing(ALL_ENDED[0]) == []
    assert missing(begun, *ALL_ENDED) == missing(begun, *ALL_ENDED, done) == []


def test_deletions_come_before_the_last_checkpoint():
    """Those under way at the end of all data, and those without a gap behind them; a later one excuses nothing."""
    cases = [[], [(15, 21)], [(15, 60), (60, 90)], [(15, 60), (61, 90)], [(21, 90)]]

    assert [len(missing(*ALL_ENDED, deleted=rows)) for rows in cases] == [1, 1, 0, 1, 1]


def test_a_failure_breaks_the_wait_for_the_last_checkpoint_off():
    """Until all tasks run again, and have come to their ends again."""
    lost, runs = Entry(22, EventType.TASK_FAILED, task=0), Entry(50, EventType.JOB_RECOVERED)
    restored, own = Entry(30, EventType.JOB_RESTORED, 1, number=1), {1: frozenset({0, 1})}
    again = [Entry(60, END, task=0, detail="drain"), Entry(61, END, task=1, detail="drain")]

    assert missing(*ALL_ENDED, lost, restored, runs, deployed=own) == []
    assert missing(*ALL_ENDED, lost, restored, *again, deployed=own) == []
    assert len(missing(*ALL_ENDED, lost, restored, runs, *again, deployed=own)) == 1


class TestEnds:
    @pytest.fixture
    def account(self):
        return account_of(EndOfData, stateful())

    def part(self, account, task=MAP):
        return account.contents.checkpoints[LATEST][task]

    def cut(self, account):
        account.cut(LATEST, MAP, self.part(account))
        return facts(account)

    def test_a_snapshot_behind_the_end_says_so(self, account, monkeypatch):
        assert self.cut(account) == []
        account.data_ended(MAP, "drain")
        assert self.cut(account) == [
            "its snapshot for checkpoint 6 says that its operators go on, and its data has ended"
        ]
        monkeypatch.setattr(self.part(account), "finished", True)
        assert self.cut(account) == []

    @pytest.mark.parametrize("parts", [True, False])
    def test_operators_that_had_finished_say_so_again(self, account, monkeypatch, parts):
        """With files to read, too: they are not opened again."""
        with monkeypatch.context() as finished:
            finished.setattr(self.part(account), "finished", True)
            finished.setattr(self.part(account), "parts", self.part(account).parts if parts else ())
            account.restarted(LATEST, [MAP])
        assert self.cut(account) == [
            "its snapshot for checkpoint 6 says that its operators go on, and it was restored as finished"
        ]
        account.restarted(LATEST, [MAP])
        assert self.cut(account) == []

    def test_no_timer_fires_behind_the_end(self, account):
        account.timer_fired(MAP, 5 * SECOND, 1)
        assert facts(account) == []
        account.data_ended(MAP, "no-drain")
        account.timer_fired(MAP, 5 * SECOND, 1)
        assert facts(account) == ["its timer of 5.000000 s fires, and its data has ended"]

    def ended(self, detail, task=0):
        return Entry(NOW, EventType.END_OF_DATA, task=task, detail=detail)

    def test_data_ends_as_the_stop_asked(self, account):
        assert end_facts(account, self.ended("no-drain")) == ["its data ends without a drain, no stop asked for that"]
        with_scenario(account, actions=(Action(1, "native", "no-drain"),))
        assert end_facts(account, self.ended("no-drain")) == []
        with_scenario(account, actions=(Action(1, "native", "drain"), Action(2, "native")))
        assert end_facts(account, self.ended("no-drain")) == ["its data ends without a drain, the stop asked for drain"]

    def test_a_stop_without_a_drain_drains_no_source_that_has_more(self, account, monkeypatch):
        """Only where the job has finished: else a source may be waiting to stop."""
        with_scenario(account, actions=(Action(1, "native", "no-drain"),))
        monkeypatch.setattr(account.context.stats[LATEST], "stops", True)
        assert end_facts(account, self.ended("drain"), finished=True) == ["it is drained, the stop was to be without"]
        assert end_facts(account, self.ended("drain")) == []
        assert end_facts(account, self.ended("drain", task=MAP), finished=True) == [], "no source"

    def test_no_task_counts_as_finished_that_has_not(self, account):
        triggered = Entry(NOW, EventType.TRIGGERED, LATEST, number=2)
        assert end_facts(account, triggered) == [
            "2 tasks need not acknowledge, 0 have finished since they were restarted"
        ]

    def all_ended(self, account, before_ns):
        return end_facts(account, *(self.ended("drain", task)._replace(time_ns=NOW - before_ns) for task in range(5)))

    def test_deletions_under_way_come_first(self, account, monkeypatch):
        """One that began before the end of the data, and is over 10 ms ago."""
        file = named(account, "_metadata", LATEST)
        monkeypatch.setattr(file, "deleted_ns", NOW - 2 * SECOND)
        monkeypatch.setattr(file, "removed_ns", NOW - 10 * MS)
        assert self.all_ended(account, SECOND) == []
        monkeypatch.setattr(file, "removed_ns", None)
        assert len(self.all_ended(account, SECOND)) == 1, "no client insists for so long"
        monkeypatch.setattr(file, "deleted_ns", NOW + 1)
        assert (NOW + 1, NOW) in deletions(account.context)


def with_ends(account, *, drained=False, stop=None):
    account.ends = SimpleNamespace(end=lambda _: SimpleNamespace(drained=drained, stop=stop, ending=StopMode.DRAIN))


class TestWhatIsOwed:
    """The sink is transactional and has committed nothing."""

    @pytest.fixture
    def account(self):
        account = account_of(Commits, stateful())
        job = account.context.scenario.job
        committing = replace(job.vertices[-1], commit=Commit(holds_back=3))
        return with_scenario(account, job=replace(job, vertices=(*job.vertices[:-1], committing)))

    def read(self, account):
        return account.context.plane.position(STATEFUL_SINK).records_read.tolist()

    def test_drained_it_owes_all_it_has_read(self, account):
        with_ends(account, drained=True)
        assert [f"the job has finished and {sum(self.read(account))} records are lost: never committed"] == end_facts(
            account, finished=True
        )
