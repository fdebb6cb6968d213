"""Windows that slide, sessions, buffers of SQL, its first stage: when records leave, what is state, why a barrier waits."""

import pytest

from sim.runtime.simulate import simulate
from tests.runtime.task.windowed_runs import read, sizes
from tests.scenarios import read_scenario, run_scenario

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


def run(window, *, bound="", fan_out="1", interval="3 s", barriers="aligned", duration="24 s", sections=""):
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
    at = read(run(f"sliding: 10 s, every: 5 s, time: {time}", fan_out="2"))
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
    result = run(window, bound=late, interval="1 s", sections=fault)
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
    calm = sizes(run(window))
    killed = sizes(run(window, sections="faults: [{kill: 'win[0]', at: 12500 ms}]\n"))

    assert calm.max() == pytest.approx(killed.max(), rel=0.1)


def test_sessions_go_on_after_a_failure():
    """What is restored has waited since nobody knows when: it waits again, and leaves once."""
    result = run(
        "session: 3 s, time: event, state-per-record: 1 B",
        bound=", records-per-subtask: 1500",
        duration="40 s",
        sections="faults: [{kill: 'win[0]', at: 8 s}]\n",
    )

    assert result.job_status == "FINISHED"


def test_rows_are_flushed_before_the_barrier_and_before_firing():
    """Three seconds of 100 rows/s and 2 ms each: 600 ms before each barrier, in each subtask; and 400 ms at 5 s, before anything leaves."""
    result = run("tumbling: 5 s, time: event, flush: 2 ms", duration="12 s")
    busy = result.series[(result.series["vertex"] == "win") & (result.series["time"] == 6.0)]["busy"].mean()

    assert pytest.approx(pre_barrier_ms(result).loc[2], abs=60) == 600
    assert pytest.approx(pre_barrier_ms(result).loc[3], abs=60) == 200, "since the firing at 5 s"
    assert busy > 0.3


def test_the_first_stage_lets_everything_go_before_a_barrier():
    """Windows of 10 s, a checkpoint every 3 s: rows leave at each of them, and the snapshot holds none."""
    result = run("tumbling: 10 s, time: event, stage: local, state-per-record: 1 B")
    at = read(result)

    assert {4.0, 7.0, 10.0, 11.0} <= {second for second, rate in at.items() if rate > 30}
    assert {0} == set(sizes(result))


def test_an_output_that_is_full_holds_the_barrier_back_in_the_first_stage():
    """Its rows are written before the barrier, in unaligned mode too: 300 of 5 ms each."""
    result = run("tumbling: 10 s, time: event, stage: local, fire: 5 ms", barriers="unaligned")

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
    result = run("session: 3200 ms, time: processing, state-per-record: 1 B", interval="1 s")
    at = read(result)

    assert at[at.index <= 3].sum() == 0
    assert pytest.approx(at[(at.index > 8) & (at.index <= 18)].tolist(), abs=60) == [200] * 10
    assert pytest.approx(sizes(result).iloc[10], abs=40) == 650


def test_sessions_that_were_restored_end_in_their_time():
    """Down from 9.1 to 10.3 s: what was read about 8 s leaves about 11 s, and not with the next records."""
    result = run(
        "session: 3200 ms, time: processing, state-per-record: 1 B",
        duration="30 s",
        sections="faults: [{kill: 'win[0]', at: 9100 ms}]\n",
    )
    at = read(result, until=26)

    assert pytest.approx(at.iloc[11], abs=60) == 200
