"""Windows: records are held as keyed state until their window ends, then the task thread fires what they give, and nothing passes it."""

from itertools import pairwise

import pytest

from sim.model.schema.study import loads
from sim.runtime.simulate import simulate
from tests.runtime.task.windowed_runs import read, sizes

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
    return simulate(loads(text + sections, name="win").scenarios[0])


def served(result, vertex):
    rows = result.tasks[result.tasks["vertex"] == vertex]
    return int(rows["numRecordsIn"].sum())


def test_records_leave_at_the_end_of_their_window():
    """Two subtasks of 100 records/s each: nothing for five seconds, then a thousand records at once, to the end of the run."""
    result = run()
    at = read(result, "sink", 20)

    assert [time for time, rate in at.items() if rate] == [6.0, 11.0, 16.0]
    assert pytest.approx(at[at > 0].tolist(), abs=20) == [1000] * 3  # some wait for the flush of a buffer
    assert result.violations == ()


def test_a_phase_shifts_all_windows():
    at = read(run("phase: 2 s"), "sink", 20)

    assert [time for time, rate in at.items() if rate] == [3.0, 8.0, 13.0, 18.0]


def test_firing_keeps_the_thread_for_each_record():
    """Five hundred records of 2 ms per subtask: busy for a second, and the barrier of the checkpoint at 15 s waits for the end of it."""
    result = run("fire: 2 ms")
    series = result.series[(result.series["vertex"] == "win") & (result.series["time"] == 6.0)]
    delays = result.subtasks[result.subtasks["vertex"] == "win"].groupby("id")["start_delay"].max()

    assert pytest.approx(series["busy"].mean(), abs=0.02) == 1.0
    assert delays.max() == pytest.approx(1000, abs=40)
    assert result.violations == ()


@pytest.mark.parametrize("barriers", ["aligned", "unaligned", "{aligned-timeout: 100 ms}"])
def test_no_barrier_passes_a_firing(barriers):
    """Processing-time timers are never interrupted: with barriers that overtake data it takes as long."""
    delays = run("fire: 2 ms", barriers=barriers).checkpoints["end_to_end_duration"]

    assert delays.max() > 0.6


def test_records_held_are_keyed_state():
    """Forty bytes each: the size grows with the window and falls when it fires; what is not held is no state."""
    result = run("state-per-record: 40 B")
    trigger = result.checkpoints.set_index("id")["trigger_timestamp"] / 1e3
    state_bytes = sizes(result)

    assert len(state_bytes) > 5
    for checkpoint, size_bytes in state_bytes.items():
        assert 40 * 200 * (trigger[checkpoint] % 5) == pytest.approx(size_bytes, abs=40 * 30)
    assert {0} == set(sizes(run()))


def test_a_snapshot_stores_what_its_position_holds():
    """State and position are cut at one instant, whatever waits in front."""
    scenario = loads(
        WINDOWS.format(
            window="fire: 3 ms, state-per-record: 1 B", bound="", barriers="unaligned", duration="24 s", service="1 ms"
        ),
        name="win",
    ).scenarios[0]
    result = simulate(scenario)

    assert len(set(sizes(result).tolist())) > 3
    assert result.violations == ()


@pytest.mark.parametrize("kill", ["7 s", "9900 ms", "10050 ms"])
def test_windows_go_on_after_a_failure(kill):
    """Held records are held again; a window that ended meanwhile fires at once; nothing is lost and nothing leaves twice."""
    result = run("fire: 1 ms, state-per-record: 40 B", sections=f"faults: [{{kill: 'win[0]', at: {kill}}}]\n")

    assert len(result.recoveries) == 1
    assert result.violations == ()


def test_a_window_that_ended_while_the_task_was_down_fires_at_once():
    """Killed at 14.5 s with the checkpoint of 12 s, back after the end at 15 s: its timer is due; records behind it wait for 20 s."""
    result = run(sections="faults: [{kill: 'win[0]', at: 14500 ms}]\nrestart: {strategy: fixed-delay, delay: 2 s}\n")
    at = read(result, "sink", 19)
    late = [(time, rate) for time, rate in at.items() if rate and time > 12]

    assert len(late) == 1
    assert 17.0 <= late[0][0] <= 18.0
    assert result.violations == ()


def test_what_processing_time_windows_hold_at_the_end_of_data_is_lost():
    """Pending processing-time timers are dropped when the operator finishes (FLINK-18647): the job does not wait for them."""
    result = run(bound=", records-per-subtask: 700", sections="")

    assert result.job_status == "FINISHED"
    assert served(result, "win") == 1400
    assert served(result, "sink") == pytest.approx(1000, abs=20)
    assert result.violations == ()


@pytest.mark.parametrize("stop", ["drain", "no-drain"])
def test_a_job_with_windows_stops(stop):
    result = run("fire: 1 ms, state-per-record: 40 B", sections=f"actions: [{{at: 8 s, stop: {stop}}}]\n")

    assert result.job_status == "FINISHED"
    assert result.violations == ()


def test_the_next_job_goes_on_with_what_windows_hold():
    """Stopped at 8 s without a drain, started again from the savepoint: every record leaves once."""
    sections = "actions: [{at: 8 s, stop: no-drain}]\ninstances: {count: 2}\n"
    result = run("state-per-record: 40 B", sections=sections, bound=", records-per-subtask: 1500")

    assert result.violations == ()


def test_without_a_drain_no_window_ends_while_the_savepoint_is_written():
    """Its data ends at 8 s, and the savepoint takes five: the timer of 10 s is quiet, and the window stays in the savepoint."""
    text = WINDOWS.replace("    window:", "    snapshot: {{async: 5 s}}\n    window:")
    text = text.format(window="state-per-record: 40 B", bound="", barriers="aligned", duration="24 s", service="10 us")
    result = simulate(loads(text + "actions: [{at: 8 s, stop: no-drain}]\n", name="win").scenarios[0])
    savepoint = result.checkpoints.sort_values("trigger_timestamp").iloc[-1]

    assert result.job_status == "FINISHED"
    assert 13_000 < savepoint["trigger_timestamp"] + savepoint["end_to_end_duration"] < 14_000
    assert pytest.approx(served(result, "sink"), abs=20) == 1000
    assert result.violations == ()


def test_others_are_rescaled_beside_windows():
    result = run("fire: 1 ms, state-per-record: 40 B", sections="rescale: {at: 8 s, parallelism: {sink: 3}}\n")

    assert result.violations == ()


EVENTS = """# What do windows of event time do to checkpoints?
version: 1
job:
  src: {{source: {{rate-per-subtask: 100/s, record: 500 B{bound}}}, parallelism: 2}}
  map: {{input: {{src: rebalance}}, service: {service}, parallelism: 2}}
  win:
    input: {{map: hash}}
    service: 10 us
    parallelism: 2
    window: {{tumbling: 5 s, time: event, {window}}}
  sink: {{input: {{win: hash}}, service: 10 us, parallelism: 2}}
checkpoint: {{interval: 3 s, {checkpoint}}}
run: {{duration: {duration}}}
"""


def run_events(
    window="fire: 0 s", *, bound="", checkpoint="barriers: aligned", sections="", duration="24 s", service="10 us"
):
    text = EVENTS.format(window=window, bound=bound, checkpoint=checkpoint, duration=duration, service=service)
    return simulate(loads(text + sections, name="win").scenarios[0])


def test_watermarks_end_windows_of_event_time():
    """They come up to 200 ms after the end of their window, with the records that came until then, once each subtask."""
    at = read(run_events(), "sink", 20)

    assert [time for time, rate in at.items() if rate > 60] == [6.0, 11.0, 16.0]
    assert pytest.approx(at.sum(), abs=80) == 3000


def test_watermarks_wait_behind_records():
    """A map of 100/s cannot keep up with 200/s: event time runs at its speed, and so do windows."""
    result = run_events(service="20 ms", duration="44 s")
    at = read(result, "sink", 44)
    firings = [time for time, rate in at.items() if rate > 60]

    assert len(firings) > 2
    assert min(later - earlier for earlier, later in pairwise(firings)) >= 9
    assert result.violations == ()


def test_lateness_holds_windows_back():
    """The watermark stays two seconds behind."""
    at = read(run_events(bound=", watermark: {interval: 100 ms, lateness: 2 s}"), "sink", 19)

    assert [time for time, rate in at.items() if rate > 60] == [8.0, 13.0, 18.0]


def delay(checkpoint, window="fire: 3 ms"):
    """The longest start delay [ms] behind or at the windows, without the end of the job."""
    result = run_events(window, checkpoint=checkpoint)
    rows = result.subtasks[result.subtasks["vertex"].isin(["win", "sink"])]
    assert result.violations == ()
    return rows["start_delay"].max()


def test_interruptible_timers_let_overtaking_barriers_pass():
    """Seconds of firing: aligned and unaligned barriers wait for the end of it, interruptible timers for one output."""
    kinds = ("aligned", "unaligned", "aligned, interruptible-timers: true", "unaligned, interruptible-timers: true")
    delays = [delay(f"barriers: {kind}") for kind in kinds]

    assert min(delays[:3]) > 500
    assert delays[3] < 60


def test_only_operators_of_sql_yield():
    """The WindowOperator of the DataStream API never does, and no timer of processing time."""
    assert delay("barriers: unaligned, interruptible-timers: true", "fire: 3 ms, api: datastream") > 500


def test_an_interrupted_firing_goes_on_after_a_failure():
    """The snapshot holds what was not fired yet; it is fired after the restore, and nothing leaves twice."""
    text = EVENTS.replace("{{win: hash}}, ", "{{win: hash}}, commit: two-phase, ").format(
        window="fire: 3 ms, state-per-record: 40 B",
        checkpoint="barriers: unaligned, interruptible-timers: true",
        bound=", records-per-subtask: 1500",
        duration="60 s",
        service="10 us",
    )
    result = simulate(loads(text + "faults: [{kill: 'win[0]', at: 6700 ms}]\n", name="win").scenarios[0])

    assert result.recoveries["restored_checkpoint"].tolist() == [3]
    assert 0 < sizes(result)[3] < 40 * 1000
    assert result.job_status == "FINISHED"
    assert result.commits["records"].sum() == 3000
    assert result.violations == ()


@pytest.mark.parametrize("sections", ["", "actions: [{at: 8 s, stop: drain}]\n"])
def test_the_last_watermark_fires_all_windows_of_event_time(sections):
    """MAX_WATERMARK comes before the end of data, whether the source ends or the job drains: the sink reads every record."""
    result = run_events("fire: 2 ms, state-per-record: 40 B", bound=", records-per-subtask: 1100", sections=sections)

    assert result.job_status == "FINISHED"
    assert served(result, "win") == served(result, "sink") > 1500
    assert result.violations == ()


def test_without_a_drain_windows_stay_in_the_savepoint():
    """The next job fires them: together every record once."""
    sections = "actions: [{at: 8 s, stop: no-drain}]\ninstances: {count: 2}\n"
    result = run_events("state-per-record: 40 B", sections=sections, bound=", records-per-subtask: 1500")

    assert result.violations == ()


def test_windows_behind_windows_wait_for_what_they_fire():
    """A watermark goes on behind the outputs of the windows it ends: the second windows hold them when it comes."""
    text = EVENTS.replace(
        "  sink: {{input: {{win: hash}}",
        "  again: {{input: {{win: hash}}, service: 10 us, parallelism: 2, "
        "window: {{tumbling: 5 s, time: event}}}}\n  sink: {{input: {{again: hash}}",
    )
    text = text.format(
        window="fire: 2 ms", bound="", checkpoint="barriers: unaligned", duration="24 s", service="10 us"
    )
    result = simulate(loads(text, name="win").scenarios[0])
    at = read(result, "sink", 20)

    assert pytest.approx(at.sum(), abs=120) == 3000
    assert result.violations == ()
