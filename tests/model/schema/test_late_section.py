"""`async-io:`, `window:`, `commit: {emits: on-commit}` and `shifted-exponential`: what reaches the model, and what is refused."""

import pytest

from sim.model.job import Watermark, Window
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from tests.scenarios import read_scenario

TEXT = """# What waits?
version: 1
job:
  src: {{source: {{rate: 100/s, record: 1 kB}}}}
  op: {{input: {{src: hash}}, {what}}}
checkpoint: {{interval: 5 s}}
run: {{duration: 10 s}}
"""


def read(what):
    return read_scenario(TEXT.format(what=what), name="x").job.vertices[1]


def complaint(what):
    with pytest.raises(ScenarioError) as raised:
        read(what)
    return str(raised.value)


def test_windows_slide_wait_for_a_gap_or_leave_early():
    second = 10**9

    assert (
        Window(10 * second, "event", every_ns=2 * second)
        == read("window: {sliding: 10 s, every: 2 s, time: event}").window
    )
    session = read("window: {session: 5 s, lasts: 8 s, time: event}").window
    assert Window(5 * second, "event", every_ns=1, hold_ns=9 * second) == session
    assert (
        read("window: {sliding: 10 s, every: 2 s, time: event}").window.overlapping,
        session.overlapping,
        session.step_ns,
    ) == (5, 1, 1)
    processing = read("window: {session: 8 s, lasts: 2 s, time: processing}").window
    assert Window(8 * second, every_ns=second // 4, hold_ns=9 * second) == processing
    local = "window: {tumbling: 7 s, time: event, stage: local, flush: 3 us}"
    assert Window(7 * second, "event", flush_ns=3000, early=True) == read(local).window


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("async-io: {latency: 1 s, capacity: 0}", "job.op.async-io.capacity: 0 is out of range"),
        ("async-io: {latency: 1 s}, commit: two-phase", "two vertices"),
        ("window: {tumbling: 7 s, time: processing}, commit: two-phase", "windows and transactions are two vertices"),
        (
            "window: {tumbling: 7 s, time: processing}, commit: {emits: on-commit}",
            "windows and transactions are two vertices",
        ),
        (
            "window: {tumbling: 7 s, time: processing}, async-io: {latency: 1 s}",
            "windows and requests are two vertices",
        ),
        ("window: {tumbling: 500 us, time: processing}", "1 ms or more"),
        ("window: {tumbling: 7 s, time: processing, phase: 7 s}", "is 7 s, but a window of 7 s ends within 7 s"),
        ("window: {tumbling: 7 s, time: wall}", "expected"),
        ("window: {time: event}", "write exactly one of tumbling, sliding, session and mini-batch"),
        ("window: {tumbling: 7 s, mini-batch: 1 s, time: event}", "there are tumbling and mini-batch"),
        ("window: {sliding: 7 s, time: event}", "windows that slide begin one every so often, write every: 1 s"),
        ("window: {sliding: 7 s, every: 8 s, time: event}", "no more than the size, 7 s"),
        ("window: {tumbling: 7 s, every: 1 s, time: event}", "stands with sliding"),
        ("window: {sliding: 7 s, every: 2 s, phase: 3 s, time: event}", "is 3 s, but a window of 2 s ends within 2 s"),
        ("window: {tumbling: 7 s, lasts: 1 s, time: event}", "stands with session"),
        (
            "window: {session: 7 s, phase: 1 s, time: event}",
            "sessions end when their keys are silent, not at fixed times",
        ),
        ("window: {tumbling: 7 s, time: processing, size: 5}", "other windows hold as many records as come"),
        ("window: {tumbling: 7 s, time: event, api: datastream, flush: 1 us}", "the WindowOperator buffers nothing"),
        ("commit: {emits: on-commit, committer: global}", "only a chained one"),
        ("commit: {emits: later}", "expected at-once or on-commit"),
        ("service: {shifted-exponential: {mean: 2 ms, cv: 1.5}}", "between 0 (excluded) and 1"),
    ],
)
def test_what_makes_no_sense_is_told(what, message):
    assert message in complaint(what)


def test_a_source_says_how_far_its_event_time_has_come():
    text = TEXT.format(what="service: 1 ms").replace(
        "record: 1 kB}", "record: 1 kB, watermark: {interval: 1 s, lateness: 3 s}}"
    )
    source = read_scenario(text, name="x").job.vertices[0].source

    assert Watermark(10**9, 3 * 10**9) == source.watermark
    with pytest.raises(ScenarioError, match="is 0 s: a source looks for watermarks now and then"):
        loads(text.replace("interval: 1 s", "interval: 0 s"), name="x")
    with pytest.raises(ScenarioError, match="interval: is 1 ns: Flink counts milliseconds, write 1 ms or more"):
        loads(text.replace("interval: 1 s", "interval: 1 ns"), name="x")


def test_a_source_may_be_idle_and_some_of_its_subtasks_silent():
    text = TEXT.format(what="service: 1 ms").replace(
        "src: {source: {rate: 100/s, record: 1 kB}", "src: {parallelism: 4, source: {SOURCE}"
    )
    given = "rate: 120/s, record: 1 kB, silent: 1, records: 600, watermark: {idle-timeout: 5 s}"
    vertex = read_scenario(text.replace("SOURCE", given), name="x").job.vertices[0]

    assert Watermark(idle_timeout_ns=5 * 10**9) == vertex.source.watermark
    assert (vertex.emitting, vertex.source.rates[0].per_second, [vertex.total(i) for i in range(4)]) == (
        3,
        40,
        [200, 200, 200, 0],
    )
    assert (
        Watermark()
        == loads(text.replace("SOURCE", given.replace("5 s", "0 s")), name="x")
        .scenarios[0]
        .job.vertices[0]
        .source.watermark
    )
    with pytest.raises(
        ScenarioError, match="is 4, of 4 subtasks: one of them must have records; write rate: 0/s if none has"
    ):
        loads(text.replace("SOURCE", given.replace("silent: 1", "silent: 4")), name="x")


def test_watermark_alignment_is_accepted_and_has_no_effect():
    """Known defects look at it."""
    text = TEXT.format(what="service: 1 ms")
    aligned = text.replace("record: 1 kB}", "record: 1 kB, watermark: {alignment: {group: g, max-drift: 20 s}}}")
    study, plain = loads(aligned, name="x"), loads(text, name="x")

    assert "alignment: has no effect: watermark alignment (FLIP-182) is not simulated" in str(study.warnings[0])
    assert study.scenarios[0].job.vertices[0].source.watermark == Watermark(alignment=True)
    assert plain.scenarios[0].job.vertices[0].source.watermark == Watermark()


def test_timers_are_interruptible_if_barriers_overtake():
    """Also by Flink's own key; without windows of event time it is told that nothing comes of it."""
    text = TEXT.format(what="window: {tumbling: 7 s, time: event}")
    flink = "flink: {execution.checkpointing.unaligned.interruptible-timers.enabled: true}\n"
    read_in = loads(text.replace("interval: 5 s", "interval: 5 s, barriers: unaligned") + flink, name="x")

    assert read_in.scenarios[0].checkpoint.interruptible_timers
    assert tuple(read_in.warnings) == ()
    text = text.replace("time: event", "time: processing")
    assert "has no effect: no vertex has windows of event time" in str(loads(text + flink, name="x").warnings[0])


def test_mini_batches_are_accepted_and_have_no_effect():
    text = TEXT.format(what="window: {mini-batch: 2 s, size: 5k, time: processing}")
    study = loads(text, name="x")

    assert study.scenarios[0].job.vertex("op").window is None
    assert [warning.message for warning in study.warnings] == ["has no effect: mini-batches are not modelled"]


def test_a_source_keeps_no_windows_of_keys():
    text = TEXT.format(what="service: 1 ms").replace(
        "record: 1 kB}", "record: 1 kB}, window: {tumbling: 7 s, time: processing}"
    )
    with pytest.raises(ScenarioError, match="only stage: local stands in its chain"):
        loads(text, name="x")


def test_windows_of_processing_time_keep_their_parallelism():
    text = TEXT.format(what="window: {tumbling: 7 s, time: processing}") + "rescale: {at: 5 s, parallelism: {op: 2}}\n"
    with pytest.raises(ScenarioError, match="rescaling of processing-time timers is not modelled"):
        loads(text, name="x")


def test_a_source_waits_for_no_answers():
    text = TEXT.format(what="service: 1 ms").replace("record: 1 kB}", "record: 1 kB}, async-io: {latency: 1 s}")
    with pytest.raises(ScenarioError, match="a source waits for no answers"):
        loads(text, name="x")
