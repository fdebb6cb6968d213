"""Windows: records are held as keyed state until their window ends, then the task thread fires what they give, and nothing passes it."""

import pytest

from tests.runtime.task.windowed_runs import read, sizes
from tests.scenarios import run_scenario

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
