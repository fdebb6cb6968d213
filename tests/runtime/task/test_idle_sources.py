"""Sources that are idle: a silent partition holds windows back, unless its subtask says that it is idle."""

from math import inf

import pytest

from tests.runtime.task.windowed_runs import read, sizes
from tests.scenarios import run_scenario

JOB = """# What does a silent partition do to windows?
version: 1
job:
  src: {{source: {{rate-per-subtask: {rate}, record: {record}, silent: {silent}{bound}{watermark}}}, parallelism: 3}}
  win:
    input: {{src: hash}}
    service: {reading}
    parallelism: 2
    window: {{tumbling: 5 s, time: event, state-per-record: 10 B}}
  sink: {{input: {{win: hash}}, service: 10 us, parallelism: 2}}
checkpoint: {{interval: 3 s, barriers: {barriers}}}
run: {{duration: {duration}}}
"""
IDLE = ", watermark: {idle-timeout: 2 s}"


USUAL = {
    "rate": "100/s",
    "record": "500 B",
    "silent": 1,
    "bound": "",
    "reading": "10 us",
    "barriers": "aligned",
    "duration": "24 s",
}


def run(watermark=IDLE, *, sections="", **given):
    return run_scenario(JOB.format(watermark=watermark, **USUAL | given) + sections)


def fired(result):
    """The seconds in which most records of a window leave, and how many do."""
    return {time: rate for time, rate in read(result, until=inf).items() if rate > 100}


def test_a_source_that_comes_back_counts_again():
    """Nothing from 3 s to 12 s: all subtasks are idle, nothing is flushed; the first watermark behind it ends the window of 5 s."""
    result = run(rate="[{at: 0 s, rate: 100/s}, {at: 3 s, rate: 0/s}, {at: 12 s, rate: 100/s}]", silent=0)

    assert list(fired(result)) == [13.0, 16.0, 21.0]
    assert pytest.approx(list(fired(result).values()), abs=100) == [900, 900, 1500]


def test_back_pressure_is_no_idleness():
    """Windows read 20 records/s of 300: sources wait for a second at a time, their clock stands still, no window ends too early."""
    calm, waiting = (
        run(watermark, silent=0, reading="100 ms", record="5 kB")
        for watermark in ("", ", watermark: {idle-timeout: 300 ms}")
    )

    assert calm.series["backPressured"].max() > 0.9
    assert fired(calm) == fired(waiting)
    assert sizes(calm).tolist() == sizes(waiting).tolist()


@pytest.mark.parametrize(("idle", "left"), [("", 600), (IDLE, 0)], ids=["never", "idle"])
def test_a_drain_while_all_sources_are_idle_fires_nothing(idle, left):
    """The last watermark does not pass an output that was announced idle: what windows hold is lost (RecordWriterOutput#emitWatermark)."""
    steps = "[{at: 0 s, rate: 100/s}, {at: 3 s, rate: 0/s}, {at: 100 s, rate: 100/s}]"
    result = run(idle, rate=steps, silent=1, sections="actions: [{at: 12 s, stop: drain}]\n", duration="30 s")

    assert result.job_status == "FINISHED"
    assert left == result.tasks[result.tasks["vertex"] == "sink"]["numRecordsIn"].sum()
    assert result.violations == ()


def test_idleness_passes_operators():
    """Two windows one behind the other: the second one is held back by the silent source of its own alone."""
    text = JOB.format(
        watermark=IDLE, **USUAL | {"silent": 0, "rate": "[{at: 0 s, rate: 100/s}, {at: 2 s, rate: 0/s}]"}
    ).replace(
        "  win:\n    input: {src: hash}",
        "  b: {source: {rate: 100/s, record: 500 B}}\n  m: {input: {src: hash}, parallelism: 2}\n  win:\n    input: {m: hash, b: hash}",
    )
    result = run_scenario(text)

    assert list(fired(result)) == [6.0, 11.0, 16.0, 21.0]
    assert pytest.approx(fired(result)[6.0], abs=30) == 600 + 500


def test_a_silent_subtask_has_no_backlog():
    """It is never behind: neither in the series, nor to the enumerator, which lets checkpoints go on after 300 records."""
    result = run(bound=", backlog: {records: 100}", barriers="aligned, interval-during-backlog: off")
    rows = result.series[result.series["vertex"] == "src"]

    assert rows["backlog"].max() <= 3
    assert rows["lag"].max() < 0.1
    assert len(result.checkpoints) == 8
