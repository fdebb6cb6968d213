"""The accounts of records, of commits, of routes and of windows, told what is not true."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sim.model.job import Window
from sim.model.sinks import Commit
from sim.plane.interface import Ship
from sim.protocol.options import Ending
from sim.results.journal import Entry, Happening
from sim.runtime import context as runtime_context
from sim.runtime.context import Origin, StateSnapshot
from sim.runtime.monitors.monitor import WatchedRun
from sim.runtime.monitors.output import CommitMonitor
from sim.runtime.monitors.records import ConversionMonitor, CutMonitor, RecordMonitor, RouteMonitor
from sim.runtime.monitors.windows import WindowMonitor
from sim.storage.state_files import FrozenState
from tests.runtime.monitors.watched import (
    MAP,
    SINK,
    account_of,
    end_facts,
    end_of,
    facts,
    stateful,
    stopped,
    with_journal,
    with_scenario,
)

# The account of records, told what is not true: snapshots, restarts and ends that say otherwise than what tasks have done.


LATEST = 6
RESTORED = Entry(9, Happening.JOB_RESTORED, LATEST, number=1)


class Records(RecordMonitor):
    """The account of the stateful job, without others; `forgotten`: what it had all of them forget."""

    def __init__(self):
        instance = stateful()
        watched = WatchedRun.of(instance.context, instance.contents, instance.output, instance.tasks)
        self.forgotten = []
        super().__init__(watched, CutMonitor(watched), self.forgotten.append)
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


class TestSnapshots:
    def cut(self, account, **shifted):
        position = account.context.plane.position(MAP)
        changed = {}
        for name, by in shifted.items():
            cells = getattr(position, name)
            changed[name] = cells + by if name == "served" else np.array([cells[0] + by, *cells[1:]])
        account.cut(LATEST + 1, MAP, SimpleNamespace(position=position._replace(**changed)))
        return facts(account)

    @pytest.mark.parametrize(
        ("name", "by"), [("served", 1), ("served", -1), ("records_read", 1), ("records_written", -1)]
    )
    def test_a_snapshot_says_otherwise(self, account, name, by):
        (fact,) = self.cut(account, **{name: by})
        position = account.context.plane.position(MAP)
        counts = [position.served, int(position.records_read.sum()), int(position.records_written.sum())]
        says = [
            count + by * (column == name)
            for column, count in zip(("served", "records_read", "records_written"), counts, strict=True)
        ]
        assert (
            "it says that {} records were served, {} read, {} written; {}, {}, {} have been".format(*says, *counts)
            == fact
        )


class TestRestarts:
    """Tasks stand where they are; the checkpoint says where they ought to."""

    def restart(self, account, tasks=range(5), **shifted):
        account.note(**shifted)
        account.restarted(LATEST, tasks)
        return facts(account)

    @pytest.mark.parametrize("shifted", [{"served": 1}, {"late": 1}, {"read": 1}, {"written": 1}], ids=str)
    def test_a_task_stands_elsewhere(self, account, shifted):
        account.note(**shifted)
        account.restarted(LATEST, range(5))
        places = [violation for violation in account.found if "restart 1 from checkpoint 6" in violation.where]
        assert [violation.where for violation in places] == ["map[0], restart 1 from checkpoint 6"]

    def test_an_output_holds_what_its_rule_says(self, account):
        """A record that the map served is in its output."""
        account.note()
        account.ledger.of(LATEST).served[MAP] += 2
        account.restarted(LATEST, [SINK])
        served = account.ledger.served(LATEST, MAP)
        assert [f"it should hold {served} records and holds {served - 2} (at checkpoint 6)"] == facts(account)
        account._surplus = [-2 * (row.task == MAP) for row in account._outputs]
        account.restarted(LATEST, [SINK])
        assert facts(account) == [], "it began with so much less"


class TestAnotherJob:
    def test_records_that_are_lost_on_the_way(self, account):
        account.note(served=3)
        account.context = replace(account.context, names=[("other", 0)])
        after = Records()
        after.continue_from(account, LATEST)
        after.restarted(LATEST, range(5))
        assert [violation.where for violation in after.found] == ["job 1, begun from checkpoint 6 of job 0"]


class TestTheEnd:
    def end(self, account, *, drained=True, stop=None, ending=Ending.DRAIN, in_use=(), drops=False):
        end = SimpleNamespace(drained=drained, stop=stop, ending=ending)
        account.ends = Ends(SimpleNamespace(end=lambda _: end, in_use=lambda: iter(in_use), drops=lambda _: drops))
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

    @pytest.mark.parametrize(("ending", "up_to_cut"), [(Ending.NO_DRAIN, True), (Ending.DRAIN, False)])
    def test_what_comes_behind_the_cut_of_a_stop_may_stay_unread(self, account, ending, up_to_cut):
        account.note()
        tally = account._tally(range(5))
        tally.written += 7
        account.ends = Ends(SimpleNamespace(end=lambda _: SimpleNamespace(stop=LATEST, ending=ending)))
        seven = set((tally.written - account._to_be_read(tally).written).tolist())
        assert {7} == seven if up_to_cut else {0} == seven


class Ends:
    """The ends of five tasks."""

    def __init__(self, ends):
        self._ends = ends

    def __getattr__(self, name):
        return getattr(self._ends, name)

    def __len__(self):
        return 5


# The accounts of commits and of routes: what writers owe at the end of a job, and where records of an output must have gone.


def end(account, *, drained=False, stop=None):
    account.ends = SimpleNamespace(end=lambda _: SimpleNamespace(drained=drained, stop=stop, ending=Ending.DRAIN))


class TestWhatIsOwed:
    """The sink is transactional and has committed nothing."""

    @pytest.fixture
    def account(self):
        account = account_of(CommitMonitor, stateful())
        job = account.context.scenario.job
        committing = replace(job.vertices[-1], commit=Commit(holds_back=3))
        return with_scenario(account, job=replace(job, vertices=(*job.vertices[:-1], committing)))

    def read(self, account):
        return account.context.plane.position(SINK).records_read.tolist()

    def test_drained_it_owes_all_it_has_read(self, account):
        end(account, drained=True)
        assert {SINK: self.read(account)} == account._to_commit()
        (found,) = account.at_the_end(end_of(stateful(), finished=True))
        assert f"the job has finished and {sum(self.read(account))} records are lost: never committed" == found.fact

    def test_what_came_behind_the_cut_belongs_to_the_next_job(self, account):
        end(account, stop=LATEST)
        at_cut = account.contents.checkpoints[LATEST][SINK].position.records_read.tolist()
        assert at_cut < self.read(account)
        assert at_cut == account._to_commit_by(SINK, 0)


class TestRoutes:
    @pytest.fixture
    def account(self):
        return account_of(RouteMonitor, stateful())

    def facts_of(self, account):
        return [violation.fact for violation in account.at_the_end(None)]

    def test_a_record_that_went_astray(self, account, monkeypatch):
        read = account.context.plane.channels("records_out")
        read["records_out"][0] += 500
        monkeypatch.setattr(type(account.context.plane), "channels", lambda *_: read)
        assert len(self.facts_of(account)) == 1
        account.context = replace(account.context, origin=Origin(1, 0, LATEST, None))
        assert self.facts_of(account) == [], "another job has begun elsewhere in its turns"

    @pytest.mark.parametrize(
        ("ship", "chooses"),
        [(Ship.REBALANCE, True), (Ship.RESCALE, True), (Ship.BROADCAST, False), (Ship.GLOBAL, False)],
    )
    def test_edges_that_choose(self, account, ship, chooses):
        edges = tuple(replace(edge, ship=ship) for edge in account.context.spec.edges)
        account.context = replace(account.context, spec=replace(account.context.spec, edges=edges))
        assert (2 if chooses else 0) == len(list(account._routes()))

    def test_turns_begin_somewhere(self, account):
        """Those of a rescale edge with its first reader."""
        edges = account.context.spec.edges
        firsts = {}
        for ship in (Ship.REBALANCE, Ship.RESCALE):
            firsts[ship] = set()
            for seed in range(8):
                spec = replace(account.context.spec, seed=seed, edges=tuple(replace(edge, ship=ship) for edge in edges))
                account.context = replace(account.context, spec=spec)
                firsts[ship] |= {route.first for route in account._routes()}

        assert {Ship.REBALANCE: {0, 1}, Ship.RESCALE: {0}} == firsts


class TestBarriersInOutputs:
    @pytest.fixture
    def account(self):
        account = account_of(ConversionMonitor, stateful())
        account.barrier_waits(LATEST, 0)
        return account

    def completed(self, account, checkpoint=LATEST):
        account.completed(checkpoint, ())
        return facts(account)

    def test_one_that_heard_of_its_deadline_and_stayed(self, account):
        account.deadline_heard(LATEST, 0)
        assert len(self.completed(account)) == 1
        assert self.completed(account) == [], "told once"

    def test_one_of_another_checkpoint(self, account):
        """What is older is over with it, what is newer goes on."""
        account.barrier_waits(LATEST + 1, 1)
        for checkpoint, task in ((LATEST, 0), (LATEST + 1, 1)):
            account.deadline_heard(checkpoint, task)
        account.forget(lambda number: number == LATEST)
        assert self.completed(account) == []
        assert len(self.completed(account, LATEST + 1)) == 1


# The account of windows, told what is not true: watermarks ahead of their input, records that leave too soon or stay, timers that fail.


SECOND, MS = 10**9, 10**6
JOB = """# What do windows hold?
version: 1
job:
  src: {{source: {{rate-per-subtask: {rate}, record: 500 B, watermark: {{idle-timeout: 2 s}}}}, parallelism: 2}}
  win: {{input: {{src: hash}}, service: 10 us, parallelism: 2, window: {{{window}}}}}
  sink: {{input: {{win: hash}}, service: 10 us}}
checkpoint: {{interval: 3 s}}
run: {{duration: 12 s}}
"""
SOURCE, OTHER_SOURCE, WIN, WINDOWS_SINK = 0, 1, 2, 4
FIRST, SECOND_INPUT = 0, 2  # the channels that WIN reads


def job(window, rate="100/s"):
    """At 8.25 s: the window up to 5 s has ended, and the records since then are held."""
    return stopped(JOB.format(window=window, rate=rate), 8250 * MS)


@pytest.fixture(scope="module")
def event_time():
    return job("tumbling: 5 s, time: event, state-per-record: 10 B")


@pytest.fixture(scope="module")
def sliding():
    return job("sliding: 10 s, every: 5 s, time: event, state-per-record: 10 B, api: datastream")


@pytest.fixture(scope="module")
def processing_time():
    return job("tumbling: 5 s, time: processing, state-per-record: 10 B")


@pytest.fixture
def windows_account(event_time):
    return account_of(WindowMonitor, event_time)


def snapshot(window_bytes):
    return StateSnapshot(1, "checkpoint", FrozenState(), 0, window_bytes)


class TestWatermarksOfSources:
    """The last record of the first source was due at 8.24 s."""

    def test_a_watermark_does_not_go_back(self, windows_account):
        windows_account.watermark_sent(SOURCE, 5 * SECOND)
        windows_account.watermark_sent(SOURCE, 5 * SECOND)
        assert facts(windows_account) == []
        windows_account.watermark_sent(SOURCE, 5 * SECOND - 1 * MS)
        assert facts(windows_account) == ["its watermark goes back from 5 s to 4.999 s"]

    def test_a_status_is_no_watermark_to_go_back_from(self, windows_account):
        windows_account.watermark_sent(OTHER_SOURCE, runtime_context.ACTIVE)
        windows_account.watermark_sent(OTHER_SOURCE, 5 * SECOND)
        assert facts(windows_account) == []

    def test_without_a_rate_records_come_as_far_as_the_clock(self):
        account = account_of(WindowMonitor, job("tumbling: 5 s, time: event", rate="unlimited"))

        account.watermark_sent(SOURCE, 8250 * MS)
        assert facts(account) == []
        account.watermark_sent(SOURCE, 8250 * MS + 1)
        assert len(facts(account)) == 1

    @pytest.mark.parametrize(("timeout", "is_idle"), [(9 * MS, True), (10 * MS, True), (11 * MS, False)])
    def test_a_source_is_idle_after_its_timeout(self, event_time, timeout, is_idle):
        """The last record was due 10 ms ago."""
        context = event_time.context
        source = context.scenario.job.vertices[0]
        patient = replace(
            source, source=replace(source.source, watermark=replace(source.source.watermark, idle_timeout_ns=timeout))
        )
        scenario = replace(
            context.scenario, job=replace(context.scenario.job, vertices=(patient, *context.scenario.job.vertices[1:]))
        )
        account = account_of(WindowMonitor, event_time)
        account.context = replace(context, scenario=scenario)

        account.watermark_sent(SOURCE, runtime_context.IDLE)
        assert ([] if is_idle else ["it says that it is idle, its last record was due 0.01 s ago"]) == facts(account)


class TestWatermarksOfReaders:
    def test_a_watermark_is_not_ahead_of_the_slowest_input(self, windows_account):
        windows_account.watermark_arrived(WIN, FIRST, 10 * SECOND)
        windows_account.watermark_arrived(WIN, SECOND_INPUT, 4 * SECOND)
        windows_account.watermark_sent(WIN, 4 * SECOND)
        assert facts(windows_account) == []
        windows_account.watermark_sent(WIN, 4 * SECOND + 1)
        assert facts(windows_account) == ["its watermark 4 s is ahead of its input from src[1], which has come to 4 s"]

    def test_a_watermark_does_not_stay_behind_all_inputs(self, windows_account):
        for channel in (FIRST, SECOND_INPUT):
            windows_account.watermark_arrived(WIN, channel, 4 * SECOND)
        windows_account.watermark_arrived(WIN, FIRST, 6 * SECOND)
        assert facts(windows_account) == ["its watermark stays at 0 s, all active inputs had come to 4 s"]

    def test_a_task_is_not_idle_while_an_input_is_active(self, windows_account):
        windows_account.watermark_arrived(WIN, FIRST, runtime_context.IDLE)
        windows_account.watermark_sent(WIN, runtime_context.IDLE)
        assert facts(windows_account) == ["it says that it is idle, its input from src[1] is not"]
        windows_account.watermark_arrived(WIN, SECOND_INPUT, runtime_context.IDLE)
        windows_account.watermark_sent(WIN, runtime_context.IDLE)
        assert facts(windows_account) == []

    def test_an_input_that_is_active_again_counts(self, windows_account):
        for number in (runtime_context.IDLE, runtime_context.ACTIVE):
            windows_account.watermark_arrived(WIN, FIRST, number)
        windows_account.watermark_arrived(WIN, SECOND_INPUT, runtime_context.IDLE)
        windows_account.watermark_sent(WIN, runtime_context.IDLE)
        assert facts(windows_account) == ["it says that it is idle, its input from src[0] is not"]

    def test_each_law_is_told_once_a_task(self, windows_account):
        for _ in range(2):
            windows_account.watermark_sent(WIN, 5 * SECOND)
            windows_account.watermark_sent(WINDOWS_SINK, 5 * SECOND)

        assert [violation.where for violation in windows_account.found] == ["win[0]", "sink[0]"]


class TestRecordsThatLeave:
    """Both inputs of win[0] come to the end of a window: all it holds belongs to windows that have ended."""

    def end_windows(self, windows_account):
        for channel in (FIRST, SECOND_INPUT):
            windows_account.watermark_arrived(WIN, channel, 10 * SECOND)
        return windows_account.context.plane.position(WIN).served

    def test_records_of_later_windows_stay(self, windows_account):
        served = self.end_windows(windows_account)
        windows_account.records_left(WIN, served + 1)
        assert [f"1 record of later windows leave with those up to {served}"] == facts(windows_account)

    def test_no_record_stays_behind(self, windows_account):
        served = self.end_windows(windows_account)
        windows_account.records_left(WIN, served - 2)
        assert [f"2 records are left behind: those up to {served} belong to windows that have ended"] == facts(
            windows_account
        )

    def test_nothing_leaves_before_an_end(self, windows_account):
        windows_account.records_left(WIN, 7)
        assert facts(windows_account) == ["records up to 7 leave, no window has ended"]

    def test_nothing_leaves_twice(self, windows_account):
        served = self.end_windows(windows_account)
        for _ in range(2):
            windows_account.records_left(WIN, served)
        assert [f"records up to {served} leave, no window has ended"] == facts(windows_account)

    def test_records_leave_before_the_watermark(self, windows_account):
        served = self.end_windows(windows_account)
        windows_account.watermark_sent(WIN, 10 * SECOND)
        assert [f"its watermark 10 s leaves before the records up to {served}, which it ends"] == facts(windows_account)

    def test_records_leave_before_the_next_watermark_comes(self, windows_account):
        served = self.end_windows(windows_account)
        windows_account.watermark_arrived(WIN, FIRST, 11 * SECOND)
        _, fact = facts(windows_account)
        assert f"the records up to {served} have not left, their windows have ended" == fact

    def test_a_chained_source_lets_all_go_that_it_has_served(self, windows_account):
        served = windows_account.context.plane.position(SOURCE).served
        windows_account.records_left(SOURCE, served)
        assert facts(windows_account) == []
        windows_account.records_left(SOURCE, served - 1)
        assert len(facts(windows_account)) == 1


class TestTheEndOfData:
    def facts_of(self, windows_account, task):
        return [(violation.where, violation.fact) for violation in windows_account.at_the_end(None)]

    def test_the_end_ends_all_windows(self, windows_account, event_time):
        windows_account.input_ended(WIN)
        late = event_time.plane.position(WIN).late
        assert [
            ("win[0]", f"its data has ended, it waits for nothing, and its windows hold {late} records")
        ] == self.facts_of(windows_account, WIN)

    def test_one_such_task_is_told(self, windows_account):
        for task in (WIN, WIN + 1):
            windows_account.input_ended(task)
        assert len(self.facts_of(windows_account, WIN)) == 1


class TestRecordsInSnapshots:
    def cut(self, windows_account, checkpoint=1):
        part = windows_account.contents.cut(checkpoint, WIN)
        counted = windows_account.context.plane.counted(WIN)
        windows_account.ledger.note(checkpoint, WIN, counted.served, part.position.late, counted.read, counted.written)
        windows_account.cut(checkpoint, WIN, part)
        return part

    def test_records_in_windows_are_in_the_snapshot(self, windows_account):
        late = self.cut(windows_account).position.late
        windows_account.state_taken(1, WIN, snapshot(late * 10))
        assert facts(windows_account) == []
        windows_account.state_taken(1, WIN, snapshot(late * 10 - 1))
        assert [f"snapshot 1 has {late * 10 - 1} bytes for {late} records in windows, 10 each"] == facts(
            windows_account
        )

    def test_sliding_windows_keep_what_has_left_for_the_others(self, sliding):
        """A copy for each of two windows, and one of what has left at the end before."""
        account = account_of(WindowMonitor, sliding)
        position = sliding.plane.position(WIN)
        for channel in (FIRST, SECOND_INPUT):
            account.watermark_arrived(WIN, channel, 5 * SECOND)
        needed = 2 * position.late + position.served  # nothing had left before
        self.cut(account)
        account.state_taken(1, WIN, snapshot(10 * needed))
        assert facts(account) == []
        account.state_taken(1, WIN, snapshot(10 * needed - 1))
        (fact,) = facts(account)
        assert (
            f"snapshot 1: it has {10 * needed - 1} bytes for {needed} records whose last window has not ended, 10 each"
            == fact
        )

    def test_a_bundle_leaves_before_the_barrier(self, windows_account):
        part = windows_account.contents.cut(1, WIN)
        windows_account._windows[WIN] = Window(5 * SECOND, early=True)
        windows_account._attempt_of(WIN).open_windows = None
        windows_account.cut(1, WIN, part)
        assert [
            f"{part.position.late} records are held behind barrier 1, a first stage lets all go before it"
        ] == facts(windows_account)
        windows_account.timers_quiet(WIN)
        windows_account.cut(1, WIN, part)
        assert facts(windows_account) == []


class TestTimers:
    @pytest.fixture
    def windows_account(self, processing_time):
        """It begins now: windows that ended before are none of its business."""
        return account_of(WindowMonitor, processing_time)

    def cut(self, windows_account, *, finished=False, checkpoint=1):
        part = windows_account.contents.cut(checkpoint, WIN, finished=finished)
        counted = windows_account.context.plane.counted(WIN)
        windows_account.ledger.note(checkpoint, WIN, counted.served, part.position.late, counted.read, counted.written)
        windows_account.cut(checkpoint, WIN, part)

    def test_windows_end_at_multiples_of_their_size(self, windows_account):
        windows_account.window_ended(WIN)
        assert facts(windows_account) == ["a window ends at 8.25 s, windows of 5 s do not"]

    def test_a_timer_that_was_set_fires_once(self, windows_account):
        served = windows_account.context.plane.position(WIN).served
        windows_account.window_ended(WIN)
        facts(windows_account)
        windows_account.timer_fired(WIN, 8250 * MS, served)
        assert facts(windows_account) == []
        windows_account.timer_fired(WIN, 8250 * MS, served)
        assert [f"a timer of 8.25 s fires that was never set, and lets the records up to {served} go"] == facts(
            windows_account
        )

    @pytest.fixture
    def from_the_beginning(self, windows_account):
        windows_account._attempt_of(WIN).timers.begun_ns = 0
        return windows_account

    def test_a_window_without_a_timer(self, from_the_beginning):
        windows_account = from_the_beginning
        self.cut(windows_account)
        assert facts(windows_account) == ["the window that ended at 5 s has no timer; the last one was set at 0 s"]

    def test_a_restored_timer_fires(self, windows_account):
        """The one of the open window, at 10 s: its task begins anew and must not forget it."""
        self.cut(windows_account)
        served = windows_account.ledger.served(1, WIN)
        windows_account.restarted(1, [WIN])
        windows_account.timer_fired(WIN, 10 * SECOND, served)
        assert facts(windows_account) == ["the timer of 10 s fires at 8.25 s"], "it was set, and fires too soon here"
        windows_account.timer_fired(WIN, 11 * SECOND, served)
        assert facts(windows_account) == ["the timer of 11 s fires at 8.25 s"]

    def test_a_restored_task_forgets_what_is_no_state(self, windows_account):
        """Its timers of windows that ended since are not those of the checkpoint."""
        self.cut(windows_account)
        windows_account.window_ended(WIN)
        facts(windows_account)
        windows_account.restarted(1, [WIN])
        windows_account.timer_fired(WIN, 8250 * MS, windows_account.context.plane.position(WIN).served)
        assert len(facts(windows_account)) == 1

    def test_operators_that_had_finished_fire_no_timer(self, windows_account):
        self.cut(windows_account, finished=True)
        windows_account.restarted(1, [WIN])
        windows_account.timer_fired(WIN, 8 * SECOND, 1)
        assert facts(windows_account) == [
            "a timer of 8 s fires, its operators had finished when the snapshot was taken"
        ]


class TestWindowsOfAnotherJob:
    """It begins from a checkpoint of the one before."""

    def test_vertices_of_the_same_parallelism_go_on_with_their_timers(self, processing_time):
        before, after = (account_of(WindowMonitor, processing_time) for _ in range(2))
        before._timers[4] = {("win", 0): ((9 * SECOND, 3),), ("win", 1): None}
        after.continue_from(before, 4)
        after.restarted(4, [WIN, WIN + 1])
        assert after._attempt_of(WIN).timers.pending == [(9 * SECOND, 3)]
        assert after._attempt_of(WIN + 1).timers is None
