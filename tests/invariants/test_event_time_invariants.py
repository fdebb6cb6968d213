"""Watermarks, windows, and timers of processing time (invariants 88 to 90, 123 and 124)."""

from dataclasses import replace

import pytest

from sim.model.job import Window
from sim.runtime.context import ACTIVE, IDLE, LAST_WATERMARK, StateSnapshot
from sim.runtime.invariants.event_time import (
    EventTime,
    Inputs,
    OpenWindows,
    Timers,
    records_in_state,
    redistribute_ends,
)
from sim.storage.state_files import FrozenState
from tests.invariants.watched import account_of, facts, stopped

# Invariants 88 and 89: the least watermark of a task's inputs, and which windows records belong to.


def heard(*signals):
    """(channel, what it says), one after the other, on two channels."""
    inputs = Inputs({4: 0, 5: 0})
    return inputs, [inputs.on_watermark(channel, number) for channel, number in signals]


def test_the_least_watermark_counts():
    inputs, risen = heard((4, 30), (5, 10), (5, 50))

    assert risen == [False, True, True]
    assert inputs.time_ns == 30
    assert inputs.is_active_again


def test_an_idle_channel_does_not_count_until_it_has_caught_up():
    inputs, _ = heard((4, 30), (5, 10), (5, IDLE))
    assert inputs.time_ns == 30

    inputs.on_watermark(5, ACTIVE)
    inputs.on_watermark(4, 40)
    assert inputs.time_ns == 40, "it is behind, and does not hold the others back"

    inputs.on_watermark(5, 45)
    inputs.on_watermark(4, 60)
    assert inputs.time_ns == 45


def test_the_last_channel_that_falls_idle_lets_all_watermarks_count():
    inputs, _ = heard((4, 30), (5, 10), (4, IDLE), (5, IDLE))

    assert not inputs.is_active_again
    assert inputs.time_ns == 30


def test_records_behind_a_watermark_belong_to_later_windows():
    """Windows of 100: on channel 4 seven of ten records came before its watermark, channel 5 has not come so far."""
    windows = OpenWindows(100, 0, 0, {4: [], 5: []})
    windows.on_watermark(4, 100, 7, 0)
    windows.on_watermark(4, 130, 9, 0)
    windows.on_watermark(5, 210, 20, 0)

    assert windows.later_records(90, {4: 10, 5: 21}) is None
    assert windows.later_records(100, {4: 10, 5: 21}) == 3 + 1
    assert windows.later_records(150, {4: 10, 5: 21}) is None, "it has ended before"
    assert windows.later_records(200, {4: 10, 5: 21}) == 0 + 1, (
        "those of an active channel without a watermark came too late"
    )


def test_records_of_an_idle_channel_leave_up_to_its_silence():
    windows = OpenWindows(100, 0, 0, {4: []})
    windows.on_watermark(4, IDLE, 5, 0)

    assert windows.later_records(100, {4: 8}) == 3


def test_records_of_sessions_wait_behind_their_watermark():
    """A gap of 50: what came before the watermark of 100 leaves at 150."""
    windows = OpenWindows(1, 0, 50, {4: []})
    windows.on_watermark(4, 100, 7, 0)
    windows.on_watermark(4, 150, 9, 0)

    assert windows.later_records(149, {4: 9}) is None
    assert windows.later_records(150, {4: 9}) == 2


def test_records_of_an_idle_channel_wait_for_their_own_window_only():
    """Windows of 100 that end 50 later."""
    windows = OpenWindows(100, 0, 50, {4: [], 5: []})
    for channel in (4, 5):
        windows.on_watermark(channel, 100, 4, 0)
    windows.on_watermark(5, IDLE, 7, 120)
    assert windows.later_records(150, {4: 4, 5: 7}) == 3
    windows.on_watermark(4, 200, 6, 120)

    assert windows.later_records(250, {4: 6, 5: 7}) == 0


def test_windows_may_begin_anywhere():
    """Windows of 100 that end at 30, 130 and so on."""
    windows = OpenWindows(100, 30, 0, {4: []})

    assert [windows.end_until(time) for time in (29, 30, 129, 130)] == [0, 30, 30, 130]


def test_a_channel_whose_data_has_ended_goes_on_no_more():
    inputs = Inputs({4: 0, 5: 0})
    inputs.on_watermark(4, 30)
    inputs.on_watermark(4, LAST_WATERMARK)
    assert inputs.is_active_again

    inputs.on_watermark(5, IDLE)
    assert not inputs.is_active_again


def test_an_idle_channel_says_nothing():
    inputs, risen = heard((4, 30), (5, IDLE), (5, 90))

    assert [inputs.time_ns == 30, risen[2]] == [True, False]
    inputs.on_watermark(5, ACTIVE)
    inputs.on_watermark(4, 60)
    assert inputs.time_ns == 60


def test_a_channel_has_caught_up_at_the_time_of_the_task():
    inputs, _ = heard((4, 30), (5, 10), (5, IDLE), (5, ACTIVE), (5, 30), (4, 60))

    assert inputs.time_ns == 30, "it counts again"


def test_a_channel_that_was_never_behind_counts_at_once():
    inputs, _ = heard((4, 30), (5, 30), (5, IDLE), (5, ACTIVE), (4, 60))

    assert inputs.time_ns == 30


# Invariant 90: timers of processing time fire once, when they are due, and in order.


S = 1_000_000_000


def timers(**fields):
    return Timers(10 * S, 0, 0, **fields)


def test_windows_that_end_and_fire():
    own = timers()

    assert own.window_ended(10 * S, 5) is None
    assert own.fire(11 * S, 10 * S, 5) is None, "the thread was busy"
    assert own.silent(20 * S) is None
    assert own.kept(21 * S, 8) == ((30 * S, 8),)


def test_a_window_that_has_no_timer():
    own = timers(begun_ns=3 * S)
    own.window_ended(10 * S, 5)

    assert own.silent(21 * S) == "the window that ended at 20 s has no timer; the last one was set at 10 s"
    assert timers(begun_ns=25 * S).silent(29 * S) is None


def test_a_restored_timer_that_was_forgotten():
    own = timers(pending=[(10 * S, 5)], begun_ns=12 * S)
    own.window_ended(20 * S, 9)

    assert own.fire(20 * S, 20 * S, 9) == "the timer of 10 s has not fired, that of 20 s fires; 1 were forgotten"


def test_a_timer_at_its_time_and_a_window_at_its_end():
    timers = Timers(10, 0, 0)
    timers.window_ended(10, 4)

    assert timers.fire(10, 10, 4) is None, "neither early nor late"
    assert timers.pending == []
    assert timers.silent(20) is None, "it ends in this instant"
    assert timers.silent(21) == "the window that ended at 2e-08 s has no timer; the last one was set at 1e-08 s"


def test_timers_of_a_snapshot_are_those_that_wait_and_the_next_one():
    """Windows of 10 that end at 3, 13 and so on; sessions wait 5 longer."""
    timers = Timers(10, 3, 5, pending=[(18, 4)])

    assert timers.kept(13, 9) == ((18, 4), (28, 9))
    assert timers.kept(12, 9) == ((18, 4), (18, 9))


def test_what_a_session_lets_go_is_set_once():
    timers = Timers(10, 0, 5)
    timers.window_ended(10, 4)
    timers.window_ended(20, 4)
    timers.window_ended(30, 6)

    assert timers.pending == [(15, 4), (35, 6)]


# What sliding windows keep.


@pytest.mark.parametrize(
    ("ends", "once", "copies"),
    [((), 4, 12), ((10,), 4 + 10, 12 + 20), ((10, 15), 4 + 15, 12 + 10 + 10), ((10, 15, 21), 4 + 11, 12 + 12 + 5)],
)
def test_records_stay_until_their_last_window_has_ended(ends, once, copies):
    """Each record belongs to three windows; four records have left at no end."""
    assert once == records_in_state(4, ends, 3, copies=False)
    assert copies == records_in_state(4, ends, 3, copies=True)


def test_a_record_of_one_window_leaves_with_it():
    assert 4 == records_in_state(4, (10, 20), 1, copies=False) == records_in_state(4, (10, 20), 1, copies=True)


def test_ends_are_dealt_out_in_equal_parts():
    """A task that has heard of fewer ends counts what had left it."""
    assert redistribute_ends([(4, 7), (6,), ()], [9, 9, 4], 2) == [(7, 9), (7, 8)]  # 4 + 6 + 4 and 7 + 6 + 4 records
    assert redistribute_ends([(), ()], [5, 6], 3) == [(), (), ()]


# Told what is not true: watermarks ahead of their input, records that leave too soon or stay, timers that fail.


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
def account(event_time):
    return account_of(EventTime, event_time)


def snapshot(window_bytes):
    return StateSnapshot(1, "checkpoint", FrozenState(), 0, window_bytes)


class TestWatermarksOfSources:
    """The last record of the first source was due at 8.24 s."""

    def test_a_watermark_does_not_go_back(self, account):
        account.watermark_sent(SOURCE, 5 * SECOND)
        account.watermark_sent(SOURCE, 5 * SECOND)
        assert facts(account) == []
        account.watermark_sent(SOURCE, 5 * SECOND - 1 * MS)
        assert facts(account) == ["its watermark goes back from 5 s to 4.999 s"]

    def test_a_status_is_no_watermark_to_go_back_from(self, account):
        account.watermark_sent(OTHER_SOURCE, ACTIVE)
        account.watermark_sent(OTHER_SOURCE, 5 * SECOND)
        assert facts(account) == []

    def test_without_a_rate_records_come_as_far_as_the_clock(self):
        account = account_of(EventTime, job("tumbling: 5 s, time: event", rate="unlimited"))

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
        account = account_of(EventTime, event_time)
        account.context = replace(context, scenario=scenario)

        account.watermark_sent(SOURCE, IDLE)
        assert ([] if is_idle else ["it says that it is idle, its last record was due 0.01 s ago"]) == facts(account)


class TestWatermarksOfReaders:
    def test_a_watermark_is_not_ahead_of_the_slowest_input(self, account):
        account.watermark_arrived(WIN, FIRST, 10 * SECOND)
        account.watermark_arrived(WIN, SECOND_INPUT, 4 * SECOND)
        account.watermark_sent(WIN, 4 * SECOND)
        assert facts(account) == []
        account.watermark_sent(WIN, 4 * SECOND + 1)
        assert facts(account) == ["its watermark 4 s is ahead of its input from src[1], which has come to 4 s"]

    def test_a_watermark_does_not_stay_behind_all_inputs(self, account):
        for channel in (FIRST, SECOND_INPUT):
            account.watermark_arrived(WIN, channel, 4 * SECOND)
        account.watermark_arrived(WIN, FIRST, 6 * SECOND)
        assert facts(account) == ["its watermark stays at 0 s, all active inputs had come to 4 s"]

    def test_a_task_is_not_idle_while_an_input_is_active(self, account):
        account.watermark_arrived(WIN, FIRST, IDLE)
        account.watermark_sent(WIN, IDLE)
        assert facts(account) == ["it says that it is idle, its input from src[1] is not"]
        account.watermark_arrived(WIN, SECOND_INPUT, IDLE)
        account.watermark_sent(WIN, IDLE)
        assert facts(account) == []

    def test_an_input_that_is_active_again_counts(self, account):
        for number in (IDLE, ACTIVE):
            account.watermark_arrived(WIN, FIRST, number)
        account.watermark_arrived(WIN, SECOND_INPUT, IDLE)
        account.watermark_sent(WIN, IDLE)
        assert facts(account) == ["it says that it is idle, its input from src[0] is not"]

    def test_each_law_is_told_once_a_task(self, account):
        for _ in range(2):
            account.watermark_sent(WIN, 5 * SECOND)
            account.watermark_sent(WINDOWS_SINK, 5 * SECOND)

        assert [violation.where for violation in account.found] == ["win[0]", "sink[0]"]


class TestRecordsThatLeave:
    """Both inputs of win[0] come to the end of a window: all it holds belongs to windows that have ended."""

    def end_windows(self, account):
        for channel in (FIRST, SECOND_INPUT):
            account.watermark_arrived(WIN, channel, 10 * SECOND)
        return account.context.plane.position(WIN).served

    def test_records_of_later_windows_stay(self, account):
        served = self.end_windows(account)
        account.records_left(WIN, served + 1)
        assert [f"1 record of later windows leave with those up to {served}"] == facts(account)

    def test_no_record_stays_behind(self, account):
        served = self.end_windows(account)
        account.records_left(WIN, served - 2)
        assert [f"2 records are left behind: those up to {served} belong to windows that have ended"] == facts(account)

    def test_nothing_leaves_before_an_end(self, account):
        account.records_left(WIN, 7)
        assert facts(account) == ["records up to 7 leave, no window has ended"]

    def test_nothing_leaves_twice(self, account):
        served = self.end_windows(account)
        for _ in range(2):
            account.records_left(WIN, served)
        assert [f"records up to {served} leave, no window has ended"] == facts(account)

    def test_records_leave_before_the_watermark(self, account):
        served = self.end_windows(account)
        account.watermark_sent(WIN, 10 * SECOND)
        assert [f"its watermark 10 s leaves before the records up to {served}, which it ends"] == facts(account)

    def test_records_leave_before_the_next_watermark_comes(self, account):
        served = self.end_windows(account)
        account.watermark_arrived(WIN, FIRST, 11 * SECOND)
        _, fact = facts(account)
        assert f"the records up to {served} have not left, their windows have ended" == fact

    def test_a_chained_source_lets_all_go_that_it_has_served(self, account):
        served = account.context.plane.position(SOURCE).served
        account.records_left(SOURCE, served)
        assert facts(account) == []
        account.records_left(SOURCE, served - 1)
        assert len(facts(account)) == 1


class TestTheEndOfData:
    def facts_of(self, account, task):
        account.at_the_end()
        return [(violation.where, violation.fact) for violation in account.found]

    def test_the_end_ends_all_windows(self, account, event_time):
        account.input_ended(WIN)
        late = event_time.plane.position(WIN).late
        assert [
            ("win[0]", f"its data has ended, it waits for nothing, and its windows hold {late} records")
        ] == self.facts_of(account, WIN)

    def test_one_such_task_is_told(self, account):
        for task in (WIN, WIN + 1):
            account.input_ended(task)
        assert len(self.facts_of(account, WIN)) == 1


class TestRecordsInSnapshots:
    def cut(self, account, checkpoint=1):
        part = account.contents.cut(checkpoint, WIN)
        counted = account.context.plane.counted(WIN)
        account.ledger.note(checkpoint, WIN, counted.served, part.position.late, counted.read, counted.written)
        account.cut(checkpoint, WIN, part)
        return part

    def test_records_in_windows_are_in_the_snapshot(self, account):
        late = self.cut(account).position.late
        account.state_taken(1, WIN, snapshot(late * 10))
        assert facts(account) == []
        account.state_taken(1, WIN, snapshot(late * 10 - 1))
        assert [f"snapshot 1 has {late * 10 - 1} bytes for {late} records in windows, 10 each"] == facts(account)

    def test_sliding_windows_keep_what_has_left_for_the_others(self, sliding):
        """A copy for each of two windows, and one of what has left at the end before."""
        account = account_of(EventTime, sliding)
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

    def test_a_bundle_leaves_before_the_barrier(self, account):
        part = account.contents.cut(1, WIN)
        account._windows[WIN] = Window(5 * SECOND, early=True)
        account._attempt_of(WIN).open_windows = None
        account.cut(1, WIN, part)
        assert [
            f"{part.position.late} records are held behind barrier 1, a first stage lets all go before it"
        ] == facts(account)
        account.timers_quiet(WIN)
        account.cut(1, WIN, part)
        assert facts(account) == []


class TestTimers:
    @pytest.fixture
    def account(self, processing_time):
        """It begins now: windows that ended before are none of its business."""
        return account_of(EventTime, processing_time)

    def cut(self, account, *, finished=False, checkpoint=1):
        part = account.contents.cut(checkpoint, WIN, finished=finished)
        counted = account.context.plane.counted(WIN)
        account.ledger.note(checkpoint, WIN, counted.served, part.position.late, counted.read, counted.written)
        account.cut(checkpoint, WIN, part)

    def test_windows_end_at_multiples_of_their_size(self, account):
        account.window_ended(WIN)
        assert facts(account) == ["a window ends at 8.25 s, windows of 5 s do not"]

    def test_a_timer_that_was_set_fires_once(self, account):
        served = account.context.plane.position(WIN).served
        account.window_ended(WIN)
        facts(account)
        account.timer_fired(WIN, 8250 * MS, served)
        assert facts(account) == []
        account.timer_fired(WIN, 8250 * MS, served)
        assert [f"a timer of 8.25 s fires that was never set, and lets the records up to {served} go"] == facts(account)

    @pytest.fixture
    def from_the_beginning(self, account):
        account._attempt_of(WIN).timers.begun_ns = 0
        return account

    def test_a_window_without_a_timer(self, from_the_beginning):
        account = from_the_beginning
        self.cut(account)
        assert facts(account) == ["the window that ended at 5 s has no timer; the last one was set at 0 s"]

    def test_a_restored_timer_fires(self, account):
        """The one of the open window, at 10 s: its task begins anew and must not forget it."""
        self.cut(account)
        served = account.ledger.served(1, WIN)
        account.restarted(1, [WIN])
        account.timer_fired(WIN, 10 * SECOND, served)
        assert facts(account) == ["the timer of 10 s fires at 8.25 s"], "it was set, and fires too soon here"
        account.timer_fired(WIN, 11 * SECOND, served)
        assert facts(account) == ["the timer of 11 s fires at 8.25 s"]

    def test_a_restored_task_forgets_what_is_no_state(self, account):
        """Its timers of windows that ended since are not those of the checkpoint."""
        self.cut(account)
        account.window_ended(WIN)
        facts(account)
        account.restarted(1, [WIN])
        account.timer_fired(WIN, 8250 * MS, account.context.plane.position(WIN).served)
        assert len(facts(account)) == 1

    def test_operators_that_had_finished_fire_no_timer(self, account):
        self.cut(account, finished=True)
        account.restarted(1, [WIN])
        account.timer_fired(WIN, 8 * SECOND, 1)
        assert facts(account) == ["a timer of 8 s fires, its operators had finished when the snapshot was taken"]


class TestWindowsOfAnotherJob:
    """It begins from a checkpoint of the one before."""

    def test_vertices_of_the_same_parallelism_go_on_with_their_timers(self, processing_time):
        before, after = (account_of(EventTime, processing_time) for _ in range(2))
        before._timers[4] = {("win", 0): ((9 * SECOND, 3),), ("win", 1): None}
        after.continue_from(before, 4)
        after.restarted(4, [WIN, WIN + 1])
        assert after._attempt_of(WIN).timers.pending == [(9 * SECOND, 3)]
        assert after._attempt_of(WIN + 1).timers is None
