"""Sources that keep in step: who is too far ahead in event time waits, so that windows hold less; barriers do not."""

import pytest

from sim.model.schema.study import loads
from sim.runtime.simulate import simulate
from tests.oracle import oracle
from tests.runtime.task.windowed_runs import sizes

JOB = """# What does a source that is slow do to windows?
version: 1
job:
  fast: {{source: {{rate: 100/s, record: 500 B{bound}{aligned}}}, service: 5 ms}}
  slow: {{source: {{rate: 100/s, record: 500 B{bound}{aligned}}}, service: {service}}}
  win:
    input: {{fast: hash, slow: hash}}
    service: 10 us
    window: {{tumbling: 1 s, time: event, state-per-record: 1 B}}
  sink: {{input: {{win: hash}}, service: 10 us}}
checkpoint: {{interval: 2 s, barriers: {barriers}}}
run: {{duration: {duration}}}
"""
USUAL = {"bound": "", "service": "20 ms", "barriers": "aligned", "duration": "40 s"}


def alignment(buffer, drift="2 s", every="1 s"):
    return (
        f", watermark: {{alignment: {{group: g, max-drift: {drift}, update-interval: {every}, buffer-size: {buffer}}}}}"
    )


def run(aligned="", *, sections="", **given):
    result = simulate(loads(JOB.format(aligned=aligned, **USUAL | given) + sections, name="aligned").scenarios[0])

    assert result.violations == ()
    return result


def emitted(result, vertex):
    rows = result.tasks[result.tasks["vertex"] == vertex]
    return int(rows["numRecordsOut"].sum())


def test_without_alignment_windows_hold_what_the_fast_source_is_ahead():
    """The slow one reads at half the rate: after 38 s the windows hold 19 s of the other, 100 records each."""
    assert pytest.approx(sizes(run()).iloc[-1], rel=0.1) == 1900


@pytest.mark.parametrize(("buffer", "least_s", "most_s"), [(0, 2, 2 + 2), (3, 5, 2 + 8)])
def test_a_source_too_far_ahead_waits(buffer, least_s, most_s):
    """Ahead by its drift and by what it reads before it hears of it: for an interval or two, or three more with Flink's buffer."""
    result = run(alignment(buffer))
    kept_bytes = sizes(result).iloc[6:]

    assert 100 * least_s < kept_bytes.max() < 100 * most_s
    assert emitted(result, "fast") == pytest.approx(emitted(result, "slow") + 400, abs=500)


def test_a_source_that_waits_is_idle_and_has_a_backlog():
    rows = run(alignment(0)).series
    later = rows[(rows["vertex"] == "fast") & (rows["time"] > 15)]

    assert pytest.approx(later["idle"].mean(), abs=0.1) == 0.75
    assert pytest.approx(later["busy"].mean(), abs=0.1) == 0.25
    assert later["backlog"].max() > 100 * 15


@pytest.mark.parametrize("barriers", ["aligned", "unaligned"])
def test_barriers_do_not_wait(barriers):
    """The slow source works for 20 ms at a time; the one that waits sends its barriers at once."""
    result = run(alignment(0), barriers=barriers)
    rows = result.subtasks[(result.subtasks["vertex"] == "fast")]

    assert rows["start_delay"].max() < 10
    assert result.checkpoints["end_to_end_duration"].max() < 60


def test_sources_of_another_group_do_not_wait():
    text = JOB.format(aligned=alignment(0), **USUAL).replace("group: g", "group: other", 1)
    result = simulate(loads(text, name="aligned").scenarios[0])

    assert emitted(result, "fast") == pytest.approx(4000, abs=30)


def test_nobody_waits_for_a_source_that_is_idle():
    """It has no records from 5 s on and is idle a second later: the other one reads on."""
    text = JOB.format(aligned=alignment(0)[:-1] + ", idle-timeout: 1 s}", **USUAL | {"service": "1 ms"})
    text = text.replace(
        "slow: {source: {rate: 100/s", "slow: {source: {rate: [{at: 0 s, rate: 100/s}, {at: 5 s, rate: 0/s}]"
    )
    result = simulate(loads(text, name="aligned").scenarios[0])

    assert emitted(result, "fast") == pytest.approx(4000, abs=30)


def test_nobody_waits_for_a_source_that_has_ended():
    text = JOB.format(aligned=alignment(3), **USUAL | {"service": "1 ms", "bound": ", records: 2000"})
    result = simulate(loads(text.replace("records: 2000", "records: 500", 1), name="aligned").scenarios[0])

    assert result.job_status == "FINISHED"
    assert [emitted(result, "fast") + emitted(result, "slow"), emitted(result, "win")] == [2500] * 2


def test_a_restored_source_reads_on_until_the_first_limit():
    """The limit is no part of a snapshot: it reads its backlog of ten seconds at once, for two intervals; then both are in step again."""
    result = run(alignment(0), sections="faults: [{kill: fast, at: 20500 ms}]\n", duration="60 s")
    kept_bytes = sizes(result)
    failed_at = result.checkpoints.set_index("id")["trigger_timestamp"] < 20_500

    assert len(result.recoveries) == 1
    assert kept_bytes[~failed_at].max() > 1.15 * kept_bytes[failed_at].max()
    assert kept_bytes.iloc[-1] < 400


def test_a_job_that_is_drained_ends_while_a_source_waits():
    result = run(alignment(0), sections="actions: [{at: 21 s, stop: drain}]\n")

    assert result.job_status == "FINISHED"
    assert emitted(result, "fast") + emitted(result, "slow") == emitted(result, "win")


def test_alignment_needs_no_window():
    text = JOB.format(aligned=alignment(0), **USUAL).replace(
        "    window: {tumbling: 1 s, time: event, state-per-record: 1 B}\n", ""
    )
    assert "window" not in text.split("\n", 1)[1]
    result = simulate(loads(text, name="aligned").scenarios[0])

    assert emitted(result, "fast") == pytest.approx(emitted(result, "slow") + 200, abs=250)


UNLIMITED = """# Do sources without a rate get on that may not drift at all?
version: 1
job:
  src:
    source:
      record: 100 B
      rate: unlimited
      records-per-subtask: 60
      watermark: {interval: 50 ms, alignment: {group: g, max-drift: 0 s, update-interval: 80 ms, buffer-size: 0}}
    parallelism: 3
    service: 5 ms
  sink: {input: {src: hash}, service: 10 us}
checkpoint: {interval: 1 s}
run: {duration: 1 min}
"""


@pytest.mark.parametrize("engine", [oracle, "compiled"])
def test_the_watermark_of_a_source_that_waits_stands_still(engine):
    """A record without a rate bears the time of its emission: while none leaves, the watermark does not follow the clock.

    Else each would be ahead of what the others had reported, and wait for ever.
    """
    result = simulate(loads(UNLIMITED, name="unlimited").scenarios[0], engine=engine)

    assert (result.job_status, result.violations) == ("FINISHED", ())
    assert emitted(result, "src") == 180
    assert 1000 * result.ended_ns / 1e9 > 60 * 5, "they have waited for each other"
