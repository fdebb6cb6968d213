"""Cuts, record positions, routes and barriers in outputs: what adds up is silent; what is lost, held twice or astray is told."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sim.model.randomness import draw, stream
from sim.plane.interface import Ship
from sim.protocol.options import StopMode
from sim.results.journal import Entry, EventType
from sim.runtime.context import Origin
from sim.runtime.invariants import records
from sim.runtime.invariants.invariant import Ledger, ObservedRun, RecordTally, Surplus
from sim.runtime.invariants.records import (
    LATEST as GOES_BACK,
)
from sim.runtime.invariants.records import (
    ONCE,
    UNKNOWN,
    BarrierTimeouts,
    ConsistentCuts,
    Cut,
    Partitioning,
    RecordPositions,
    Written,
    misplaced,
)
from tests.invariants.watched import (
    MAP,
    SINK,
    account_of,
    end_facts,
    ended,
    facts,
    hollow,
    stateful,
    with_journal,
    with_scenario,
)

# The arithmetic of a consistent cut.


NAMES = [("source", 0), ("source", 1), ("sink", 0)]
ACCOUNT = "bytes sent before the barrier: 500; consumed before the reader's snapshot 400, captured at the reader 50, captured at the writer 10"
LAYOUT = SimpleNamespace(writer=[0, 1], reader=[2, 2])  # two channels into one sink


def cut_account(*channels, exactly_once=True):
    """Checkpoint 3; per channel what was written, consumed, captured at the reader and at the writer."""
    account = hollow(ConsistentCuts, journal(), NAMES, now_ns=9_000_000, layout=LAYOUT)
    account._exactly_once, account._record_bytes = exactly_once, np.full(len(channels), 100)
    account.cut_of = lambda _: Cut(*np.array(channels).T)
    account.completed(3, ())
    return account


def broken(*channels, **options):
    (violation,) = cut_account(*channels, **options).found
    return violation


def journal():
    rows = [(1_000_000, EventType.TRIGGERED, 3), (2_000_000, EventType.SNAPSHOT_BEGUN, 3, 0)]
    rows += [(3_000_000, EventType.BARRIER_FORWARDED, 3, 0, 10), (3_500_000, EventType.SNAPSHOT_BEGUN, 3, 1)]
    rows += [(4_000_000, EventType.SNAPSHOT_BEGUN, 3, 2), (5_000_000, EventType.SNAPSHOT_BEGUN, 4, 2)]
    return [Entry(*row) for row in rows]


def test_loss_is_told():
    """40 of 500 bytes are nowhere: where they went missing, who took part and when, and the account."""
    violation = broken((500, 400, 50, 10))

    assert (
        violation.where,
        violation.fact,
        violation.time_ns,
    ) == ("checkpoint 3, channel source[0] -> sink[0]", "40 bytes are lost", 9_000_000)
    assert violation.evidence == (
        "0.001000 s  the coordinator triggers checkpoint 3",
        "0.002000 s  source[0] begins snapshot 3",
        "0.003000 s  source[0] writes barrier 3 to its outputs, overtaking 10 bytes",
        "0.004000 s  sink[0] begins snapshot 3",
        ACCOUNT,
    ), "nothing of the other source, nor of another checkpoint"


@pytest.mark.parametrize(
    ("channel", "exactly_once", "fact"),
    [
        ((500, 499, 0, 0), True, "1 byte is lost"),
        ((500, 499, 0, 0), False, "1 byte is lost"),
        ((500, 480, 50, 0), True, "30 bytes are held twice"),
        ((UNKNOWN, 500, 0, 0), False, "it completed although the writer took no part"),
        ((UNKNOWN, UNKNOWN, 0, 0), True, "it completed although the writer took no part"),
        ((500, UNKNOWN, 0, 0), True, "it completed although the reader took no part"),
    ],
)
def test_what_is_lost_twice_or_unknown_is_told(channel, exactly_once, fact):
    """At least once allows duplicates, never losses.  Silence about half a cut would pass for a proof."""
    violation = broken(channel, exactly_once=exactly_once)

    assert fact == violation.fact
    assert (UNKNOWN in channel) == ("not known" in violation.evidence[-1])


def test_losses_are_told_before_duplicates():
    """A loss here does not make up for a duplicate there; one story, the others are counted."""
    violation = broken((100, 190, 0, 0), (100, 95, 0, 0))

    assert (violation.where, violation.fact) == (
        "checkpoint 3, channel source[1] -> sink[0]",
        "5 bytes are lost (and 1 more channel)",
    )


def test_what_a_cut_holds_twice_and_not_at_all_is_counted_apart():
    """Over all channels; with the account of the worst one."""
    surplus = cut_account((100, 101, 0, 0), (100, 97, 0, 0)).run.surpluses[3]

    assert (surplus.twice_bytes, surplus.lost_bytes, surplus.channel) == (1, 3, (1, 2))
    assert surplus.account.startswith("bytes sent before the barrier: 100; consumed before the reader's snapshot 97")
    assert cut_account((100, 90, 10, 0)).run.surpluses == {}


LATEST = 6
COMPLETED = Entry(5, EventType.COMPLETED, LATEST)
RESTORED = Entry(9, EventType.JOB_RESTORED, LATEST, number=1)


class TestCuts:
    @pytest.fixture
    def account(self):
        return account_of(ConsistentCuts, stateful())

    def completed(self, account):
        account.completed(LATEST, ())
        return facts(account)

    def shifted(self, account, monkeypatch, column, by):
        """The map's part says another number of bytes of its first channel."""
        part = account.contents.checkpoints[LATEST][MAP]
        cells = getattr(part.position, column).copy()
        cells[0] += by
        monkeypatch.setattr(part, "position", part.position._replace(**{column: cells}))

    @pytest.mark.parametrize(("column", "by"), [("consumed", -5), ("captured", -5), ("written", 5), ("overtaken", -5)])
    def test_bytes_are_lost(self, account, monkeypatch, column, by):
        self.shifted(account, monkeypatch, column, by)
        (fact,) = self.completed(account)
        assert "5 bytes are lost" in fact
        surplus = account.run.surpluses[LATEST]
        assert (surplus.twice_bytes, surplus.lost_bytes) == (0, 5)
        assert ((0, MAP) if column in ("consumed", "captured") else (MAP, SINK)) == surplus.channel

    @pytest.fixture
    def restored(self, account):
        """Restarted from a checkpoint that lost 5 bytes, from one that held 7 twice, and from one that did both."""
        channel = (0, MAP)
        account.run.surpluses = {
            1: Surplus(0, 5, channel, "-"),
            2: Surplus(7, 0, channel, "-"),
            3: Surplus(7, 5, channel, "-"),
        }
        turns = [
            row
            for number in (1, 2, 3)
            for row in (COMPLETED._replace(checkpoint=number), RESTORED._replace(checkpoint=number))
        ]
        with_journal(account, *turns)
        return account, turns

    def test_at_least_once_may_process_twice_and_lose_nothing(self, restored):
        """A restart from the first checkpoint again, though a later one is complete, is no repetition."""
        account, turns = restored
        account._exactly_once = False
        assert len(end_facts(account, *turns, RESTORED._replace(checkpoint=1))) == 4, "those that lose something"
        assert [(row.invariant, row.fact) for row in account.repetitions] == [(ONCE, "7 bytes are processed twice")]

    def test_a_restart_goes_back_to_the_latest_checkpoint(self, account, monkeypatch):
        rows = COMPLETED._replace(checkpoint=5), COMPLETED, RESTORED._replace(checkpoint=5)
        (found,) = ended(account, *rows)
        assert (found.invariant, found.fact) == (GOES_BACK, "checkpoint 5 is restored, the latest completed one is 6")
        monkeypatch.setattr(account.context.stats[LATEST], "savepoint_format", "native")
        assert end_facts(account, *rows) == []

    def test_a_job_goes_back_to_what_it_began_from(self, account):
        assert len(end_facts(account, RESTORED)) == 1
        account.context = replace(account.context, origin=Origin(1, 0, LATEST, None))
        assert end_facts(account, RESTORED) == []


# Restores: the latest completed checkpoint is where they go back to.


H = EventType
PAIR = [("source", 0), ("sink", 0)]


def restores(*rows, surpluses=None):
    """(happening, checkpoint, task, number), a millisecond each."""
    entries = [Entry(ms * 1_000_000, *row) for ms, row in enumerate(rows)]
    account = hollow(ConsistentCuts, entries, PAIR, run={"surpluses": surpluses or {}})
    account._exactly_once = True
    account.at_the_end()
    return account.found


def restore_facts(*rows, surpluses=None):
    return [violation.fact for violation in restores(*rows, surpluses=surpluses)]


FIRST, SECOND = (H.COMPLETED, 1, -1, 0), (H.COMPLETED, 2, -1, 0)
FAILURE = (H.TASK_FAILED, -1, 1, 0)


def restored(checkpoint, number=1):
    return (H.JOB_RESTORED, checkpoint, -1, number)


def test_an_incomplete_checkpoint_is_told():
    assert restore_facts(FIRST, FAILURE, restored(2)) == ["checkpoint 2 is restored, the latest completed one is 1"]
    assert restore_facts(FIRST, FAILURE, restored(0)) == ["checkpoint 0 is restored, the latest completed one is 1"]


@pytest.mark.parametrize(
    ("surplus", "fact"),
    [
        ((5, 10), "5 bytes are processed twice and 10 bytes are never processed"),
        ((1, 0), "1 byte is processed twice"),
        ((0, 1), "1 byte is never processed"),
    ],
)
def test_what_a_restored_cut_holds_twice_or_not_at_all_is_told(surplus, fact):
    assert [fact] == restore_facts(FIRST, FAILURE, restored(1), surpluses={1: Surplus(*surplus, (0, 1), "")})


def test_the_story_of_a_restore_is_the_cut_of_its_channel_the_failure_and_the_restart():
    """Nothing of other checkpoints, of other tasks, of other kinds, nor of what came after the restart."""
    rows = [(H.TRIGGERED, 1, -1), (H.SNAPSHOT_BEGUN, 1, 0), (H.SNAPSHOT_BEGUN, 1, 2), (H.SYNC_FINISHED, 1, 0)]
    rows += [FIRST, (H.TRIGGERED, 2, -1), FAILURE, restored(1), (H.SNAPSHOT_BEGUN, 1, 1)]
    (violation,) = restores(*rows, surpluses={1: Surplus(1, 0, (0, 1), "account")})

    assert violation.evidence == (
        "0.000000 s  the coordinator triggers checkpoint 1",
        "0.001000 s  source[0] begins snapshot 1",
        "0.004000 s  checkpoint 1 is complete",
        "0.006000 s  sink[0] fails: ",
        "0.007000 s  restart 1 deploys its tasks with the state of checkpoint 1 (0: none, from the beginning)",
        "source[0] -> sink[0]: account",
    )


# What a restart brings back is held against the ledger.


NOTHING, CHANNEL = np.zeros(0, np.int64), np.zeros(1, np.int64)


def journal_of_returns():
    rows = [
        (H.TRIGGERED, 3, -1),
        (H.SNAPSHOT_BEGUN, 3, 0),
        (H.COMPLETED, 3, -1),
        (H.TASK_FAILED, -1, 1),
        (H.JOB_RESTORED, 3, -1),
    ]
    return [Entry(ms * 1_000_000, *row, 1) for ms, row in enumerate(rows)]


def tally(served=(20, 15), late=(0, 0), read=15, written=20):
    return RecordTally(
        *(np.array(column, np.int64) for column in (served, late, [read], [written])), np.ones(2, np.bool_)
    )


def violations_of_returns(stands, *, input_differs=False):
    ledger = Ledger.opened([NOTHING, CHANNEL], [CHANNEL, NOTHING], len(CHANNEL))
    run = {"ledger": ledger, "surpluses": {3: None} if input_differs else {}}
    account = hollow(RecordPositions, journal_of_returns(), PAIR, now_ns=4_000_000, run=run)
    account._check_positions(tally(), stands)
    return account.found


@pytest.mark.parametrize(
    ("stands", "where", "fact"),
    [
        (
            tally(served=(25, 15)),
            "source[0]",
            "it goes on with record 25, its checkpoint holds 20: 5 records are never emitted",
        ),
        (
            tally(served=(15, 15)),
            "source[0]",
            "it goes on with record 15, its checkpoint holds 20: 5 records are emitted again",
        ),
        (
            tally(served=(20, 16)),
            "sink[0]",
            "it goes on after record 16, its checkpoint holds everything up to record 15",
        ),
        (tally(late=(0, 2)), "sink[0]", "2 records are waiting for outputs, 0 in its checkpoint"),
        (
            tally(read=16),
            "sink[0]",
            "it goes on with record 16 of an input, its checkpoint holds 15: 1 record is never read",
        ),
        (
            tally(read=12),
            "sink[0]",
            "it goes on with record 12 of an input, its checkpoint holds 15: 3 records are read again",
        ),
        (tally(written=22), "source[0]", "it goes on with record 22 of an output, in its checkpoint it had written 20"),
    ],
)
def test_who_stands_elsewhere_is_told(stands, where, fact):
    (violation,) = violations_of_returns(stands)

    assert (f"{where}, restart 1 from checkpoint 3", fact, 4_000_000) == (
        violation.where,
        violation.fact,
        violation.time_ns,
    )
    assert "0.003000 s  sink[0] fails: " in violation.evidence
    assert ("0.001000 s  source[0] begins snapshot 3" in violation.evidence) == (where == "source[0]"), (
        "only what the task itself did"
    )


def test_what_a_cut_does_to_inputs_is_told_once():
    """By those who judge cuts."""
    assert violations_of_returns(tally(read=12), input_differs=True) == []
    assert len(violations_of_returns(tally(read=12, served=(25, 15)), input_differs=True)) == 1


def test_others_are_counted():
    assert "(and 1 more)" in violations_of_returns(replace(tally(), late=np.array([1, 1])))[0].fact


@pytest.mark.parametrize(
    ("num", "den", "per_channel", "expected_output"),
    [(1, 1, False, 20), (3, 2, False, 30), (1, 3, False, 6), (2, 1, True, 40)],
)
def test_every_record_served_leaves_its_outputs(num, den, per_channel, expected_output):
    """On all channels together, or on each of a broadcast: one channel here.  Late records have left nothing yet."""

    def found(more, uncounted=0):
        account = hollow(RecordPositions)
        account._outputs, account._surplus = [Written(0, CHANNEL, num, den, per_channel)], [uncounted]
        account._check_outputs(
            tally(served=(23, 15), late=(3, 0), written=expected_output + more), [True] * 2, "at the end"
        )
        return facts(account)

    assert found(0) == found(4, uncounted=4) == []
    assert [f"it should hold {expected_output} records and holds {expected_output - 1} (at the end)"] == found(-1)


# The account no restore touches: counts since the last start, added to where a task stood at the cut it went back to.


READER = 1


def pair():
    """A source, a sink, one channel."""
    nothing, channel = np.zeros(0, np.int64), np.zeros(1, np.int64)
    return Ledger.opened([nothing, channel], [channel, nothing], 1)


def tally_of_ledger(served, read, written, known=(True, True)):
    return RecordTally(np.array(served), np.zeros(2, np.int64), np.array([read]), np.array([written]), np.array(known))


def parts(stands):
    return stands.served.tolist(), stands.read.tolist(), stands.written.tolist()


def noted(ledger, checkpoint, task, served, *records):
    read, written = [list(records), []] if task == READER else [[], list(records)]
    return ledger.note(checkpoint, task, served, 0, np.array(read, np.int64), np.array(written, np.int64))


def test_behind_a_restart_only_what_is_counted_leads_on():
    """Ten served, back to the cut at seven, three served again: the task stands at ten."""
    ledger = pair()
    noted(ledger, 1, 0, 7, 7)
    noted(ledger, 1, READER, 6, 6)
    ledger.restart_at(ledger.of(1), tally_of_ledger([10, 9], 9, 10))
    stands = ledger.stands(tally_of_ledger([13, 9], 9, 13))

    assert parts(stands) == ([10, 6], [6], [10])
    assert noted(ledger, 2, 0, 13, 13)[0] == 10


def test_only_the_tasks_started_go_back():
    ledger = pair()
    ledger.restart_at(ledger.of(0), tally_of_ledger([10, 9], 9, 10, known=(True, False)))
    stands = ledger.stands(tally_of_ledger([10, 9], 9, 10))

    assert parts(stands) == ([0, 9], [9], [0])


# The same, told of a job with six complete checkpoints.


class Records(RecordPositions):
    """The account of the stateful job, without others."""

    def __init__(self):
        instance = stateful()
        super().__init__(ObservedRun.of(instance.context, instance.tasks))
        with_journal(self, RESTORED)

    def note(self, tasks=range(5), **shifted):
        """The ledger has these tasks at their cuts where they stand now; `shifted`: a count of the map is off by so much."""
        for task in tasks:
            counted, late = self.context.plane.counted(task), self.context.plane.position(task).late
            read, written = counted.read.copy(), counted.written.copy()
            if task == MAP:
                read[0] += shifted.get("read", 0)
                written[0] += shifted.get("written", 0)
            off = shifted if task == MAP else {}
            self.ledger.note(
                LATEST, task, counted.served + off.get("served", 0), late + off.get("late", 0), read, written
            )


@pytest.fixture
def account():
    return Records()


class TestTheEnd:
    def end(self, account, *, drained=True, stop=None, ending=StopMode.DRAIN, in_use=(), drops=False):
        end = SimpleNamespace(drained=drained, stop=stop, ending=ending)
        account.ends = SimpleNamespace(end=lambda _: end, in_use=lambda: iter(in_use), drops=lambda _: drops)
        return end_facts(account, finished=True)

    def unread(self, account):
        """The job was stopped in the middle of its run: its queues are full."""
        channels = account.context.plane.channels("records_in", "records_out")
        written, read = int(channels["records_out"].sum()), int(channels["records_in"].sum())
        assert written > read
        return f"{written} records are written and {read} read, on 6 channels"

    def test_data_that_nobody_has_read(self, account):
        assert [self.unread(account)] == self.end(account)

    def test_what_is_in_use_then(self, account):
        thread = "the thread of map[0] is at work"
        assert [f"it has finished, and {thread}", self.unread(account)] == self.end(account, in_use=[thread])

    @pytest.mark.parametrize(("ending", "up_to_cut"), [(StopMode.NO_DRAIN, True), (StopMode.DRAIN, False)])
    def test_what_comes_behind_the_cut_of_a_stop_may_stay_unread(self, account, ending, up_to_cut):
        account.note()
        tally = account._tally(range(5))
        tally.written += 7
        account.ends = SimpleNamespace(end=lambda _: SimpleNamespace(stop=LATEST, ending=ending))
        seven = set((tally.written - account._to_be_read(tally).written).tolist())
        assert {7} == seven if up_to_cut else {0} == seven

    def test_a_source_that_has_more(self, account):
        job = account.context.scenario.job
        source = replace(job.vertices[0], source=replace(job.vertices[0].source, total=10**9))
        with_scenario(account, job=replace(job, vertices=(source, *job.vertices[1:])))
        served = account.context.plane.counted(0).served
        total = account.context.vertex(0).total(0)
        assert f"it has {total} records and has emitted {served}, each counted once" in self.end(account)
        account._rescaled = frozenset({"src"})
        assert not any("each counted once" in fact for fact in self.end(account))

    def test_a_source_that_read_on_behind_its_savepoint(self, account, monkeypatch):
        monkeypatch.setattr(account.context.stats[LATEST], "stops", True)
        account.note()
        account.ledger.of(LATEST).served[0] -= 3
        assert "3 records are emitted behind savepoint 6" in self.end(account, stop=LATEST)
        assert not any("savepoint" in fact for fact in self.end(account, stop=LATEST - 1))

    def test_answers_that_came_too_late(self, account, monkeypatch):
        """Only of tasks that made requests."""
        monkeypatch.setattr(
            account, "_tally", lambda _: replace(Records._tally(account, range(5)), late=np.array([0, 0, 3, 0, 0]))
        )
        assert not any("did not wait" in fact for fact in self.end(account))
        vertex = SimpleNamespace(has_pending_outputs=True, total=lambda _: None)
        account.context = SimpleNamespace(**vars_of(account.context), vertex=lambda _: vertex)
        assert "the job has finished and 3 records are lost: the job did not wait for their outputs" in self.end(
            account
        )
        assert not any("did not wait" in fact for fact in self.end(account, drops=True))


def vars_of(context):
    return {name: getattr(context, name) for name in ("stats", "layout", "tasks", "names", "plane", "env", "journal")}


class TestAnotherParallelism:
    """A checkpoint dealt out: sums where subtasks differ in number, each on its own where they do not."""

    def shape(self, sinks):
        """A source and sinks, all to all; numbers of tasks and channels."""
        vertices = [SimpleNamespace(name=name) for name in ("source", "sink")]
        spec = SimpleNamespace(
            vertices=vertices, edges=[SimpleNamespace(upstream=0, downstream=1, ship=Ship.REBALANCE)]
        )
        layout = SimpleNamespace(vertex=[0] + [1] * sinks, edge=[0] * sinks)
        return [("source", 0), *(("sink", n) for n in range(sinks))], {"spec": spec, "layout": layout}

    def tally(self, served, read, written):
        columns = (np.array(column) for column in (served, [0] * len(served), read, written))
        return RecordTally(*columns, np.ones(len(served), bool))

    def facts_of(self, served, read, written):
        """The job before had two sinks and two records in flight."""
        accounts = []
        for sinks in (2, len(served) - 1):
            names, context = self.shape(sinks)
            ledger = SimpleNamespace(of=lambda _: self.tally([9, 4, 3], [4, 3], [5, 4]))
            accounts.append(hollow(RecordPositions, (), names, run={"ledger": ledger}, **context))
        accounts[1]._check_redistribution(accounts[0], 6, self.tally(served, read, written))
        return facts(accounts[1])

    @pytest.mark.parametrize(
        ("served", "read", "written", "fact"),
        [
            ([9, 3, 4], [4, 3], [5, 4], "4 records are served by sink in the checkpoint, 3 in the new tasks (task 0)"),
            ([9, 4, 2], [4, 3], [5, 4], "3 records are served by sink in the checkpoint, 2 in the new tasks (task 1)"),
            ([9, 3, 3, 0], [0, 0, 0], [1, 1, 0], "7 records are served by sink in the checkpoint, 6 in the new tasks"),
            (
                [9, 3, 3, 1],
                [0, 0, 0],
                [1, 0, 0],
                "2 records are in flight between source and sink in the checkpoint, 1 in the new channels",
            ),
        ],
    )
    def test_records_that_are_lost(self, served, read, written, fact):
        assert [fact] == self.facts_of(served, read, written)

    def test_streams_that_stay_are_compared_channel_by_channel(self):
        assert self.facts_of([9, 4, 3], [4, 2], [6, 4]) == [
            "5 records are written between source and sink in the checkpoint, 6 in the new channels (channel 0)",
            "3 records are read between source and sink in the checkpoint, 2 in the new channels (channel 1)",
        ]


@pytest.mark.parametrize(
    ("before", "after", "fact"),
    [
        ([12, 0], [6, 6, 0, 0], ""),
        ([12, 0], [3, 3, 3, 3], "[0] gets 3 records in flight, its key groups have 6"),
        ([12, 0], [0, 0, 6, 6], "[0] gets 0 records in flight, its key groups have 6"),
        ([5, 2], [3, 3, 1], ""),
        ([5, 2], [5, 2], ""),
        ([5, 2], [4, 3], "[0] gets 4 records in flight, its key groups have 5"),
        ([5, 2], [7], ""),
    ],
)
def test_records_in_flight_go_to_the_owners_of_their_key_groups(before, after, fact):
    assert misplaced(before, after, 12) == fact


# Which reader each record goes to, chosen once more (invariant 119).


KEYS = stream(7, "route", "edge", 0)


def partitioned(edge, channels, written=(), turn_seed=7, compared=()):
    """Sources with the same edge: `channels` of each."""
    plane = SimpleNamespace(channels=lambda _: {"records_out": np.array(written, np.int64)})
    layout = SimpleNamespace(partitions=[(task, 0, own) for task, own in enumerate(channels)], subtask=[0, 0])
    spec = SimpleNamespace(edges=[edge], seed=turn_seed, compares=lambda ship: ship in compared)
    return hollow(Partitioning, (), [("source", 0), ("source", 1)], now_ns=5, plane=plane, layout=layout, spec=spec)


def an_edge(ship, weights=()):
    return SimpleNamespace(name="edge", ship=ship, weights=weights)


def chosen(edge, channels, records, seed=7):
    return partitioned(edge, (), turn_seed=seed)._choose(edge, 0, channels, records).tolist()


def test_channels_take_turns():
    """Those of a rescale edge begin with its first reader, those of a rebalance edge anywhere."""
    assert chosen(an_edge(Ship.RESCALE), 3, 7) == [3, 2, 2]
    assert {(3, 2, 2), (2, 3, 2), (2, 2, 3)} == {
        tuple(chosen(an_edge(Ship.REBALANCE), 3, 7, seed)) for seed in range(12)
    }


def test_a_key_has_its_channel():
    counts = chosen(an_edge(Ship.HASH), 3, 50)

    assert [sum(draw(KEYS, k) * 3 >> 32 == place for k in range(50)) for place in range(3)] == counts


def test_slices_of_keys_belong_to_channels():
    weights = (0, 0, 0, 1)
    counts = chosen(an_edge(Ship.HASH, weights), 2, 50)

    assert [sum(weights[draw(KEYS, k) * 4 >> 32] == place for k in range(50)) for place in range(2)] == counts
    assert counts[0] > counts[1]


def astray(edge, channels, *written, compared=()):
    account = partitioned(edge, channels, written, compared=compared)
    account.at_the_end()
    return [(violation.where, violation.fact) for violation in account.found]


def test_a_record_that_takes_another_channel_is_told():
    """The first channel that differs; not of edges that choose none."""
    found = ("an output of source[1]", "its channel 0 has 4 records of 6, 3 choose it")

    assert astray(an_edge(Ship.RESCALE), [(0, 1), (2, 3)], 3, 3, 4, 2) == [found]
    assert astray(an_edge(Ship.RESCALE), [(0, 1, 2)], 3, 4, 2) == [
        ("an output of source[0]", "its channel 1 has 4 records of 9, 3 choose it")
    ]
    for ship in (Ship.BROADCAST, Ship.GLOBAL):
        assert astray(an_edge(ship), [(0, 1), (2, 3)], 3, 3, 4, 2) == []
    assert astray(an_edge(Ship.RESCALE), [(0, 1), (2, 3)], 3, 3, 4, 2, compared=[Ship.RESCALE]) == [], (
        "the load chooses"
    )


def test_a_long_run_is_judged_by_its_first_outputs():
    edge, most = an_edge(Ship.HASH), records.MAX_KEYED_RECORDS

    assert len(astray(edge, [(0, 1)], 1, most - 1)) == 1, "as many as are drawn"
    assert astray(edge, [(0, 1)], 2, most - 1) == [], "one more"
    assert astray(edge, [(2, 3), (0, 1)], 1, most - 1, *chosen(edge, 2, 60)) == [], "the first output has 60"


class TestRoutes:
    @pytest.fixture
    def account(self):
        return account_of(Partitioning, stateful())

    def facts_of(self, account):
        return end_facts(account)

    def test_a_record_that_went_astray(self, account, monkeypatch):
        read = account.context.plane.channels("records_out")
        read["records_out"][0] += 500
        monkeypatch.setattr(type(account.context.plane), "channels", lambda *_: read)
        assert len(self.facts_of(account)) == 1
        account.context = replace(account.context, origin=Origin(1, 0, LATEST, None))
        assert self.facts_of(account) == [], "another job has begun elsewhere in its turns"


class TestBarriersInOutputs:
    @pytest.fixture
    def account(self):
        account = account_of(BarrierTimeouts, stateful())
        account.barrier_waits(LATEST, 0)
        return account

    def completed(self, account, checkpoint=LATEST):
        account.completed(checkpoint, ())
        return facts(account)

    def test_one_that_heard_of_its_deadline_and_stayed(self, account):
        for task in (1, 0):
            account.barrier_waits(LATEST, task)
            account.deadline_announced(LATEST, task)
        (fact,) = self.completed(account)
        assert fact.startswith("the deadline has passed while its barrier waited in an output")
        assert fact.endswith("was not converted (and 1 more)")
        assert self.completed(account) == [], "told once"

    def test_one_of_another_checkpoint(self, account):
        """What is older is over with it, what is newer goes on."""
        account.barrier_waits(LATEST + 1, 1)
        for checkpoint, task in ((LATEST, 0), (LATEST + 1, 1)):
            account.deadline_announced(checkpoint, task)
        account.forget(lambda number: number == LATEST)
        assert self.completed(account) == []
        assert len(self.completed(account, LATEST + 1)) == 1
