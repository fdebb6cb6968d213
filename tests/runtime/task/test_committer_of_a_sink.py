"""The committer of a sink, moment by moment: what it takes in before a barrier, what the barrier has overtaken."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.schema.study import load
from sim.model.sinks import Commit
from sim.protocol.commit import Committable, CommittablesReceived, IcebergCommitter, SnapshotTaken
from sim.results.journal import EventType
from sim.runtime.context import CommittedOutput, Uncommitted
from sim.runtime.simulate import simulate
from sim.runtime.task.sink import SinkCommitter
from tests.places import ROOT
from tests.runtime.task.fake_slots import FakeClock
from tests.worlds.in_flight import in_flight_of

# The committer of a sink, moment by moment: what it takes in before a barrier, what the barrier has overtaken, when it commits.


def committable(epoch):
    return Committable(0, epoch, ((0, 10),), 0, 100, ())


class Sink:
    """A committer with real output; `emitted`: epochs whose records leave."""

    def __init__(self, **options):
        self.env, self.emitted = FakeClock(), []
        self.context = SimpleNamespace(
            env=self.env,
            scenario=SimpleNamespace(
                cluster=SimpleNamespace(latency_ns=7, profile="2.x"),
                job=SimpleNamespace(vertex=lambda _: SimpleNamespace(connector="")),
            ),
            commits=[],
            stats={},
            failing_commits={},
            output=CommittedOutput(None, [("sink", 0), ("sink", 1), ("committer", 0)]),
        )
        self.committer = SinkCommitter(Slot(self.context), Commit(**options), self.emitted.append, lambda: False)

    def snapshot(self, checkpoint, *rows):
        """The writers hand these over before their barriers; all of these arrive."""
        for row in rows:
            self.committer.receive(row)
        self.committer.receive_committable(checkpoint)
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
        self.context = context
        self.thread = SimpleNamespace(stopped=False, post=lambda _: None)

    @property
    def now(self):
        return self.context.env.now

    def note(self, *_):
        pass


def test_records_that_wait_for_their_commit_leave():
    sink = Sink(emits="on-commit")
    sink.snapshot(3, committable(3))
    sink.snapshot(4, committable(4))
    sink.committer.completed(4)
    assert sink.emitted == [4]


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


def test_late_files_replace_those_of_their_own_checkpoint():
    """Files of checkpoint 2 that arrive behind its snapshot are in a manifest of their own, in place of the earlier one."""
    committer = IcebergCommitter()
    for checkpoint, writer in ((2, 0), (3, 1)):
        sent = replace(committable(2), writer=writer)
        committer, _ = committer.on(CommittablesReceived(0, (sent,)))
        committer, commands = committer.on(SnapshotTaken(0, checkpoint))

    assert [row.writer for command in commands for row in command.committables] == [0]
    assert [row.writer for row in committer.committables] == [1]


# Barriers that overtake committables between a writer and its committer: who loses records, and who does not.


SCENARIO = ROOT / "scenarios/iceberg-15846.yaml"
LOSES = {("iceberg-v1", "unaligned"), ("iceberg-v1", "aligned-timeout 0.5 s")}


def studied(scenario, **commit):
    """The scenario with other options of its commit."""
    vertices = tuple(
        replace(vertex, commit=replace(vertex.commit, **commit)) if vertex.commit else vertex
        for vertex in scenario.job.vertices
    )
    return replace(scenario, job=replace(scenario.job, vertices=vertices))


@pytest.fixture(scope="module")
def combinations():
    """By sink and barriers."""
    return {
        (scenario.job.vertex("lake").connector, str(scenario.checkpoint.barriers)): scenario
        for scenario in load(SCENARIO).scenarios
    }


@pytest.fixture(scope="module")
def results(combinations):
    return {name: simulate(scenario) for name, scenario in combinations.items()}


def test_only_version_1_loses_records_and_only_if_barriers_overtake(results):
    """Aligned it is clean, and so is version 2, whose inner edges stay aligned: in the same job, with the same faults."""
    assert {name for name, result in results.items() if result.violations} == LOSES
    assert len(results) == 6


def test_a_failed_checkpoint_lets_late_files_replace_the_earlier_ones(results):
    """The deadline divides the files of a checkpoint: what its story says is what apache/iceberg#15846 says."""
    violation = results["iceberg-v1", "aligned-timeout 0.5 s"].violations[0]
    story = "\n".join(violation.evidence)

    assert "records are lost before it" in violation.fact
    assert "CHECKPOINT_EXPIRED" in story
    assert "drops" in story
    assert "their manifest was replaced by one of files that arrived after the barrier" in story


def test_a_commit_that_fails_lets_the_older_list_be_forgotten(results):
    """Unaligned, files are always a checkpoint late; the restore takes the list of the checkpoint before for committed."""
    story = "\n".join(results["iceberg-v1", "unaligned"].violations[0].evidence)

    assert "the table's newest commit is of checkpoint 10" in story
    assert "a commit failed" in story


@pytest.mark.parametrize("barriers", ["unaligned", "aligned-timeout 0.5 s"])
@pytest.mark.parametrize(("exchange", "overtakes"), [("aligned", False), ("as-job", True)])
def test_flinks_own_committer_loses_nothing_that_is_overtaken(combinations, barriers, exchange, overtakes):
    """Before FLINK-36287 committables are in-flight data of their checkpoint; a restore brings them back, and they are committed late."""
    scenario = studied(combinations["iceberg-v2", barriers], exchange=exchange)
    result, in_flight = in_flight_of(lambda watch: simulate(scenario, attach=watch))

    assert tuple(result.violations) == ()
    assert overtakes == bool(in_flight)


def test_version_1_behind_aligned_edges_loses_nothing(combinations):
    """What FLINK-36287 does for others would do for it: the mechanism needs both, its committer and an edge that barriers overtake on."""
    sealed = simulate(studied(combinations["iceberg-v1", "aligned-timeout 0.5 s"], exchange="aligned"))

    assert tuple(sealed.violations) == ()
    assert EventType.OUTPUT_DROPPED not in {row.event_type for row in sealed.journal}
