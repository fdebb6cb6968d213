"""Windows: which records are held as keyed state, when they leave, which timers are kept, why a barrier waits."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.job import Window
from sim.runtime.context import TaskSnapshot
from sim.runtime.simulate import simulate
from sim.runtime.task.windows import EventTimeWindows, ProcessingTimeWindows, _WindowSnapshot
from tests.runtime.task.fake_slots import FakeSlot
from tests.runtime.task.windowed_runs import read, sizes
from tests.scenarios import read_scenario, run_scenario

# Windows: records are held as keyed state until their window ends, then the task thread fires what they give, and nothing passes it.


WINDOWS = """# What do windows that end together do to checkpoints?
version: 1
job:
  src: {{source: {{rate-per-subtask: 100/s, record: 500 B{bound}}}, parallelism: 2}}
  win:
    input: {{src: hash}}
    service: 10 us
    parallelism: 2
    window: {{tumbling: 5 s, time: processing, {window}}}
  sink: {{input: {{win: hash}}, service: {service}, parallelism: 2}}
checkpoint: {{interval: 3 s, barriers: {barriers}}}
run: {{duration: {duration}}}
"""


def run(window="fire: 0 s", *, bound="", barriers="aligned", sections="", duration="24 s", service="10 us"):
    text = WINDOWS.format(window=window, bound=bound, barriers=barriers, duration=duration, service=service)
    return run_scenario(text + sections)


def served(result, vertex):
    rows = result.tasks[result.tasks["vertex"] == vertex]
    return int(rows["numRecordsIn"].sum())


def test_records_held_are_keyed_state():
    """Forty bytes each: the size grows with the window and falls when it fires; what is not held is no state."""
    result = run("state-per-record: 40 B")
    trigger = result.checkpoints.set_index("id")["trigger_timestamp"] / 1e3
    state_bytes = sizes(result)

    assert len(state_bytes) > 5
    for checkpoint, size_bytes in state_bytes.items():
        assert 40 * 200 * (trigger[checkpoint] % 5) == pytest.approx(size_bytes, abs=40 * 30)
    assert {0} == set(sizes(run()))


def test_a_window_that_ended_while_the_task_was_down_fires_at_once():
    """Killed at 14.5 s with the checkpoint of 12 s, back after the end at 15 s: its timer is due; records behind it wait for 20 s."""
    result = run(sections="faults: [{kill: 'win[0]', at: 14500 ms}]\nrestart: {strategy: fixed-delay, delay: 2 s}\n")
    at = read(result, "sink", 19)
    late = [(time, rate) for time, rate in at.items() if rate and time > 12]

    assert len(late) == 1
    assert 17.0 <= late[0][0] <= 18.0
    assert result.violations == ()


def test_without_a_drain_no_window_ends_while_the_savepoint_is_written():
    """Its data ends at 8 s, and the savepoint takes five: the timer of 10 s is quiet, and the window stays in the savepoint."""
    text = WINDOWS.replace("    window:", "    snapshot: {{async: 5 s}}\n    window:")
    text = text.format(window="state-per-record: 40 B", bound="", barriers="aligned", duration="24 s", service="10 us")
    result = run_scenario(text + "actions: [{at: 8 s, stop: no-drain}]\n")
    savepoint = result.checkpoints.sort_values("trigger_timestamp").iloc[-1]

    assert result.job_status == "FINISHED"
    assert 13_000 < savepoint["trigger_timestamp"] + savepoint["end_to_end_duration"] < 14_000
    assert pytest.approx(served(result, "sink"), abs=20) == 1000
    assert result.violations == ()


EVENTS = """# What do windows of event time do to checkpoints?
version: 1
job:
  src: {{source: {{rate-per-subtask: 100/s, record: 500 B{bound}}}, parallelism: 2}}
  map: {{input: {{src: rebalance}}, service: 10 us, parallelism: 2}}
  win:
    input: {{map: hash}}
    service: 10 us
    parallelism: 2
    window: {{tumbling: 5 s, time: event, {window}}}
  sink: {{input: {{win: hash}}, service: 10 us, parallelism: 2}}
checkpoint: {{interval: 3 s, {checkpoint}}}
run: {{duration: 24 s}}
"""


def run_events(window="fire: 0 s", *, bound="", checkpoint="barriers: aligned", sections=""):
    return run_scenario(EVENTS.format(window=window, bound=bound, checkpoint=checkpoint) + sections)


def delay(checkpoint, window="fire: 3 ms"):
    """The longest start delay [ms] behind or at the windows, without the end of the job."""
    result = run_events(window, checkpoint=checkpoint)
    rows = result.subtasks[result.subtasks["vertex"].isin(["win", "sink"])]
    assert result.violations == ()
    return rows["start_delay"].max()


def test_only_operators_of_sql_yield():
    """The WindowOperator of the DataStream API never does, and no timer of processing time."""
    assert delay("barriers: unaligned, interruptible-timers: true", "fire: 3 ms, api: datastream") > 500


@pytest.mark.parametrize("sections", ["", "actions: [{at: 8 s, stop: drain}]\n"])
def test_the_last_watermark_fires_all_windows_of_event_time(sections):
    """MAX_WATERMARK comes before the end of data, whether the source ends or the job drains: the sink reads every record."""
    result = run_events("fire: 2 ms, state-per-record: 40 B", bound=", records-per-subtask: 1100", sections=sections)

    assert result.job_status == "FINISHED"
    assert served(result, "win") == served(result, "sink") > 1500
    assert result.violations == ()


def test_windows_behind_windows_wait_for_what_they_fire():
    """A watermark goes on behind the outputs of the windows it ends: the second windows hold them when it comes."""
    text = EVENTS.replace(
        "  sink: {{input: {{win: hash}}",
        "  again: {{input: {{win: hash}}, service: 10 us, parallelism: 2, "
        "window: {{tumbling: 5 s, time: event}}}}\n  sink: {{input: {{again: hash}}",
    )
    result = run_scenario(text.format(window="fire: 2 ms", bound="", checkpoint="barriers: unaligned"))
    at = read(result, "sink", 20)

    assert pytest.approx(at.sum(), abs=120) == 3000
    assert result.violations == ()


# Windows that slide, sessions, buffers of SQL, its first stage: when records leave, what is state, why a barrier waits.


JOB = """# When do records of windows leave?
version: 1
job:
  src: {{source: {{rate-per-subtask: 100/s, record: 500 B{bound}}}, parallelism: 2}}
  win:
    input: {{src: hash}}
    service: 10 us
    parallelism: 2
    fan-out: {fan_out}
    window: {{{window}}}
  sink: {{input: {{win: hash}}, service: 10 us, parallelism: 2}}
checkpoint: {{interval: {interval}, barriers: {barriers}}}
run: {{duration: {duration}}}
"""


def run_window(window, *, bound="", fan_out="1", interval="3 s", barriers="aligned", duration="24 s", sections=""):
    text = JOB.format(
        window=window, bound=bound, fan_out=fan_out, interval=interval, barriers=barriers, duration=duration
    )
    result = run_scenario(text + sections)

    assert result.violations == ()
    return result


def pre_barrier_ms(result):
    """Work before the barrier, by checkpoint: what is left of its parts."""
    rows = result.subtasks[result.subtasks["vertex"] == "win"]
    return rows["x_pre_barrier"].groupby(rows["id"]).max()


@pytest.mark.parametrize("time", ["processing", "event"])
def test_windows_that_slide_end_at_each_slide(time):
    """Windows of 10 s every 5 s: a record is in two of them, so a fan-out of 2 lets 2,000 records leave every 5 s."""
    at = read(run_window(f"sliding: 10 s, every: 5 s, time: {time}", fan_out="2"))
    firings = [(second, rate) for second, rate in at.items() if rate > 100]

    assert [second for second, _ in firings] == [6.0, 11.0, 16.0, 21.0]
    assert pytest.approx([rate for _, rate in firings], abs=100) == [2000] * 4


def firings(at):
    """The seconds in which a window lets records go."""
    return {second: rate for second, rate in at.items() if rate > 50}


@pytest.mark.parametrize("fault", ["", "faults: [{kill: 'win[0]', at: 13500 ms}]\n"])
def test_a_window_that_ends_late_takes_no_records_of_later_ones(fault):
    """Watermarks stay 7 s behind: windows of 5 s end at 12 s, 17 s and so on, with 1,000 records each; those of 7 s to 12 s are state."""
    late = ", watermark: {lateness: 7 s}"
    window = "tumbling: 5 s, time: event, state-per-record: 10 B"
    result = run_window(window, bound=late, interval="1 s", sections=fault)
    state_bytes = sizes(result).loc[8:10]

    assert firings(read(result))[13.0] == pytest.approx(1000, abs=60)
    assert state_bytes.min() >= 7 * 200 * 10
    if not fault:
        assert [*firings(read(result))] == [13.0, 18.0]
        assert sizes(result).max() == pytest.approx(12 * 200 * 10, rel=0.1)


def test_windows_behind_late_windows_wait_no_second_time():
    """What the first window lets go at 12 s ends the second one, too."""
    windows = "tumbling: 5 s, time: event"
    text = JOB.format(
        window=windows,
        bound=", watermark: {lateness: 7 s}",
        fan_out="1",
        interval="3 s",
        barriers="aligned",
        duration="24 s",
    )
    text = text.replace("sink: {input: {win: hash}", f"sink: {{window: {{{windows}}}, fan-out: 1, input: {{win: hash}}")
    result = simulate(
        read_scenario(
            text.replace("checkpoint:", "  end: {input: {sink: hash}, service: 10 us}\ncheckpoint:"), name="win"
        )
    )

    assert result.violations == ()
    assert [*firings(read(result, "end"))] == [13.0, 18.0]


def test_sliding_state_is_back_after_a_failure():
    """The records that have left stay in state, and no others: the restored task writes as much as it did before."""
    window = "sliding: 10 s, every: 2 s, time: event, state-per-record: 10 B"
    calm = sizes(run_window(window))
    killed = sizes(run_window(window, sections="faults: [{kill: 'win[0]', at: 12500 ms}]\n"))

    assert calm.max() == pytest.approx(killed.max(), rel=0.1)


def test_sessions_go_on_after_a_failure():
    """What is restored has waited since nobody knows when: it waits again, and leaves once."""
    result = run_window(
        "session: 3 s, time: event, state-per-record: 1 B",
        bound=", records-per-subtask: 1500",
        duration="40 s",
        sections="faults: [{kill: 'win[0]', at: 8 s}]\n",
    )

    assert result.job_status == "FINISHED"


def test_rows_are_flushed_before_the_barrier_and_before_firing():
    """Three seconds of 100 rows/s and 2 ms each: 600 ms before each barrier, in each subtask; and 400 ms at 5 s, before anything leaves."""
    result = run_window("tumbling: 5 s, time: event, flush: 2 ms", duration="12 s")
    busy = result.series[(result.series["vertex"] == "win") & (result.series["time"] == 6.0)]["busy"].mean()

    assert pytest.approx(pre_barrier_ms(result).loc[2], abs=60) == 600
    assert pytest.approx(pre_barrier_ms(result).loc[3], abs=60) == 200, "since the firing at 5 s"
    assert busy > 0.3


def test_the_first_stage_lets_everything_go_before_a_barrier():
    """Windows of 10 s, a checkpoint every 3 s: rows leave at each of them, and the snapshot holds none."""
    result = run_window("tumbling: 10 s, time: event, stage: local, state-per-record: 1 B")
    at = read(result)

    assert {4.0, 7.0, 10.0, 11.0} <= {second for second, rate in at.items() if rate > 30}
    assert {0} == set(sizes(result))


def test_an_output_that_is_full_holds_the_barrier_back_in_the_first_stage():
    """Its rows are written before the barrier, in unaligned mode too: 300 of 5 ms each."""
    result = run_window("tumbling: 10 s, time: event, stage: local, fire: 5 ms", barriers="unaligned")

    assert pytest.approx(pre_barrier_ms(result).max(), rel=0.15) == 1500


@pytest.mark.parametrize(
    "stop",
    [
        "",
        "actions: [{at: 8 s, stop: drain}]\n",
        "actions: [{at: 8 s, stop: no-drain}]\n",
        "faults: [{kill: 'src[0]', at: 8 s}]\n",
    ],
)
def test_a_source_with_a_first_stage_ends(stop):
    text = JOB.format(
        window="tumbling: 5 s, time: event",
        bound=", records-per-subtask: 1200",
        fan_out="1",
        interval="3 s",
        barriers="aligned",
        duration="60 s",
    ).replace(
        "parallelism: 2}\n  win", "parallelism: 2, window: {tumbling: 2 s, time: processing, stage: local}}\n  win"
    )
    result = run_scenario(text + stop)

    assert result.job_status == "FINISHED"
    assert result.violations == ()


def test_a_session_of_processing_time_waits_for_its_gap():
    """Gap 3.2 s: each record leaves as much later, to a step of a tenth of a second, and without watermarks."""
    result = run_window("session: 3200 ms, time: processing, state-per-record: 1 B", interval="1 s")
    at = read(result)

    assert at[at.index <= 3].sum() == 0
    assert pytest.approx(at[(at.index > 8) & (at.index <= 18)].tolist(), abs=60) == [200] * 10
    assert pytest.approx(sizes(result).iloc[10], abs=40) == 650


def test_sessions_that_were_restored_end_in_their_time():
    """Down from 9.1 to 10.3 s: what was read about 8 s leaves about 11 s, and not with the next records."""
    result = run_window(
        "session: 3200 ms, time: processing, state-per-record: 1 B",
        duration="30 s",
        sections="faults: [{kill: 'win[0]', at: 9100 ms}]\n",
    )
    at = read(result, until=26)

    assert pytest.approx(at.iloc[11], abs=60) == 200


# The windows of one task, moment by moment: which records leave, which timers are kept, which watermark goes on.


SECOND = 10**9
TUMBLING = Window(5 * SECOND, "event")


def snapshot(finished=False, **kept):
    return TaskSnapshot(
        3,
        SimpleNamespace(served=0, late=0),
        finished=finished,
        kept={"windows": _WindowSnapshot(**kept)} if kept else {},
    )


class TestWindowsOfEventTime:
    """Two channels; 60 and 40 records were read."""

    @pytest.fixture
    def slot(self):
        slot = FakeSlot(channels=(4, 7), window=TUMBLING)
        slot.served, slot.late, slot.read = 100, 30, [60, 40]
        return slot

    @pytest.fixture
    def windows(self, slot):
        return EventTimeWindows(slot, replace(TUMBLING, flush_ns=10))

    def test_records_of_an_idle_channel_wait_for_no_watermark_of_it(self, slot, windows):
        windows.on_watermark(4, 5 * SECOND)
        windows.fall_idle(7, 0)
        slot.read, slot.served = [60, 45], 105
        assert windows.fire(5 * SECOND)
        slot.env.run(SECOND)
        assert ("release_late_outputs", 100) in slot.calls()


class TestTimersOfProcessingTime:
    """Windows of 5 s; 100 records are served at the beginning."""

    def windows(self, **options):
        slot = FakeSlot()
        slot.served, slot.late = 100, 30
        return slot, ProcessingTimeWindows(slot, replace(TUMBLING, time="processing", **options))

    @pytest.mark.parametrize("how", ["quiesce", "end_input", "finished", "stopped"])
    def test_behind_the_end_no_timer_fires(self, how):
        slot, windows = self.windows()
        if how == "finished":
            windows.restored(snapshot(finished=True))
        windows.begin()
        if how == "stopped":
            slot.thread.stopped = True
        elif how != "finished":
            getattr(windows, how)()
        slot.env.run(20 * SECOND)
        assert slot.calls("release_late_outputs") == []
        assert slot.env.next_ns is None

    def test_a_timer_whose_mail_comes_behind_the_end(self):
        slot, windows = self.windows(hold_ns=3 * SECOND)
        windows.begin()
        slot.env.run(6 * SECOND)
        windows.quiesce()
        slot.env.run(9 * SECOND)
        assert slot.calls() == []
