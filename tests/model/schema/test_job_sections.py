"""Sections of vertices: sources with a backlog, service factors, several edges, late outputs, instances."""

from fractions import Fraction

import pytest

from sim.model.job import Backlog, Distribution, Watermark, Window
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.runtime.plane_spec import plane_spec
from tests.scenarios import read_scenario

# `source: {backlog: ...}` and `checkpoint: {interval-during-backlog: ...}`: what reaches the model, and what is refused.


TEXT = """# Who is behind?
version: 1
job:
  src: {{source: {{rate: {rate}, record: 1 kB, records: 1k{backlog}}}, parallelism: 4}}
  op: {{input: {{src: hash}}}}
{rest}
run: {{duration: 10 s}}
"""


def study(
    backlog=", backlog: {lag: 5 s}", rest="checkpoint: {interval: 5 s, interval-during-backlog: 1 min}", rate="100/s"
):
    return loads(TEXT.format(backlog=backlog, rest=rest, rate=rate), name="x")


def test_history_is_shared_by_the_subtasks():
    """Rounded up: nobody's last record of it is live."""
    source = study(", backlog: {records: 10}").scenarios[0].job.vertices[0].source

    assert Backlog(records=3) == source.backlog


@pytest.mark.parametrize(("written", "expected"), [("1 min", 60 * 10**9), ("off", 0), ("5 s", 5 * 10**9)])
def test_the_interval_is_as_long_or_longer_or_there_is_none(written, expected):
    given = study(rest=f"checkpoint: {{interval: 5 s, interval-during-backlog: {written}}}")

    assert Backlog(lag_ns=5 * 10**9) == given.scenarios[0].job.vertices[0].source.backlog
    assert expected == given.scenarios[0].checkpoint.interval_during_backlog_ns
    assert given.warnings == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backlog": ""}, "no source says source: {backlog: ...}"),
        ({"rest": "checkpoint: {interval: off, interval-during-backlog: 1 min}"}, "has no effect without an interval"),
        (
            {"rest": "checkpoint: {interval: 5 s, interval-during-backlog: 1 min}\ncluster: {profile: 1.15}"},
            "has no effect with Flink 1.15: it came with 1.18",
        ),
    ],
)
def test_what_has_no_effect_is_said(given, message):
    assert [message in str(warning) for warning in study(**given).warnings] == [True]


# `service-factor:` of a vertex: what reaches the model, and what is refused.


FACTORED = """# Who is slow?
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB}}
  op: {input: {src: hash}, parallelism: 12, service-factor: FACTORS}
checkpoint: {interval: 5 s}
run: {duration: 10 s}
"""


def factors(given):
    return loads(FACTORED.replace("FACTORS", given), name="x").scenarios[0].job.vertices[1].service_factors


def test_factors_stand_by_the_number_of_a_subtask():
    assert ((2, Fraction(5, 4)), (10, Fraction(1, 2))) == factors("{10: 0.5, 2: 1.25}")


# Several edges between the same two vertices: their names, their order, what is theirs alone.


PARALLEL_EDGES = """# Who sees it twice?
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB}}
  other: {source: {rate: 100/s, record: 1 kB}}
  join:
    input:
      left: {from: src, ship: hash}
      other: rebalance
      right: {from: src, ship: rebalance, fan-out: 0.5, record: 300 B, service: 2 ms}
    combine: join
    parallelism: 2
checkpoint: {interval: 5 s, barriers: unaligned, forced-aligned: [src -> join]}
run: {duration: 10 s}
"""


def test_edges_stand_in_the_order_of_the_file_each_with_its_own_amounts():
    """The order of the gates, by which a join takes turns."""
    job = read_scenario(PARALLEL_EDGES, name="x").job
    left, other, right = job.vertices[-1].inputs

    assert [(i.upstream, i.ship) for i in (left, other, right)] == [
        ("src", "hash"),
        ("other", "rebalance"),
        ("src", "rebalance"),
    ]
    assert (Fraction(1, 2), Distribution(300), Distribution(2_000_000)) == (
        right.fan_out,
        right.record_bytes,
        right.service,
    )
    assert (None, Distribution(1000)) == (left.fan_out, left.record_bytes)
    assert job.edges == (("src", "join"), ("other", "join"), ("src", "join"))


SIDE = """# Where do late records go?
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB}}
  op:
    input: {src: hash}
    fan-out: 0.5
    outputs: {late: {fan-out: 0.2, record: 300 B}, errors: {fan-out: 0.1}}
  sink: {input: {op: hash}}
  late: {input: {op: {ship: hash, output: late}}}
  all: {input: {op: rebalance, again: {from: op, ship: hash, output: late}, errors: {from: op, ship: global, output: errors}}, record: 1 kB}
checkpoint: {interval: 5 s}
run: {duration: 10 s}
"""


def test_a_side_output_has_amounts_of_its_own_and_all_its_readers_the_same():
    job = read_scenario(SIDE, name="x").job
    amounts = {(v.name, i.output): (job.fan_out(i), i.record_bytes.mean) for v in job.vertices[2:] for i in v.inputs}

    assert {
        ("sink", ""): (Fraction(1, 2), 1000),
        ("late", "late"): (Fraction(1, 5), 300),
        ("all", ""): (Fraction(1, 2), 1000),
        ("all", "late"): (Fraction(1, 5), 300),
        ("all", "errors"): (Fraction(1, 10), 1000),
    } == amounts


def test_a_side_output_that_nobody_reads_is_warned_of():
    text = SIDE.replace("errors: {from: op, ship: global, output: errors}", "errors: {from: src, ship: global}")

    (warning,) = loads(text, name="x").warnings

    assert str(warning) == "x:8:52: job.op.outputs.errors: has no effect: no input says output: errors"


UNION = """# Who waits for whom?
version: 1
job:
  a: {source: {rate: 100/s, record: 1 kB}}
  b: {source: {rate: 100/s, record: 1 kB}}
  c: {source: {rate: 100/s, record: 1 kB}}
  join: {input: {a: {ship: hash, union: left}, b: {ship: hash, union: left}, c: hash}, combine: join}
checkpoint: {interval: 5 s}
run: {duration: 10 s}
"""


def test_edges_of_a_union_are_one_input_of_a_join():
    scenario = read_scenario(UNION, name="x")

    assert scenario.job.vertices[-1].gates_of_inputs == (2, 1)
    assert plane_spec(scenario).vertices[-1].gates_of_inputs == (2, 1)
    assert read_scenario(UNION.replace(", union: left", ""), name="x").job.vertices[-1].gates_of_inputs == (
        1,
        1,
        1,
    )


def test_a_union_without_a_join_is_warned_of():
    warnings = loads(UNION.replace(", combine: join", ""), name="x").warnings

    assert [str(warning).split(": ")[1] for warning in warnings] == ["job.join.input.a.union", "job.join.input.b.union"]
    assert "without combine: join all inputs are one stream" in str(warnings[0])


# `async-io:`, `window:`, `commit: {emits: on-commit}` and `shifted-exponential`: what reaches the model, and what is refused.


LATE = """# What waits?
version: 1
job:
  src: {{source: {{rate: 100/s, record: 1 kB}}}}
  op: {{input: {{src: hash}}, {what}}}
checkpoint: {{interval: 5 s}}
run: {{duration: 10 s}}
"""


def read(what):
    return read_scenario(LATE.format(what=what), name="x").job.vertices[1]


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


def test_a_source_says_how_far_its_event_time_has_come():
    text = LATE.format(what="service: 1 ms").replace(
        "record: 1 kB}", "record: 1 kB, watermark: {interval: 1 s, lateness: 3 s}}"
    )
    source = read_scenario(text, name="x").job.vertices[0].source

    assert Watermark(10**9, 3 * 10**9) == source.watermark


def test_a_source_may_be_idle_and_some_of_its_subtasks_silent():
    text = LATE.format(what="service: 1 ms").replace(
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


def test_watermark_alignment_is_accepted_and_has_no_effect():
    """Known defects look at it."""
    text = LATE.format(what="service: 1 ms")
    aligned = text.replace("record: 1 kB}", "record: 1 kB, watermark: {alignment: {group: g, max-drift: 20 s}}}")
    study, plain = loads(aligned, name="x"), loads(text, name="x")

    assert "alignment: has no effect: watermark alignment (FLIP-182) is not simulated" in str(study.warnings[0])
    assert study.scenarios[0].job.vertices[0].source.watermark == Watermark(alignment=True)
    assert plain.scenarios[0].job.vertices[0].source.watermark == Watermark()


def test_timers_are_interruptible_if_barriers_overtake():
    """Also by Flink's own key; without windows of event time it is told that nothing comes of it."""
    text = LATE.format(what="window: {tumbling: 7 s, time: event}")
    flink = "flink: {execution.checkpointing.unaligned.interruptible-timers.enabled: true}\n"
    read_in = loads(text.replace("interval: 5 s", "interval: 5 s, barriers: unaligned") + flink, name="x")

    assert read_in.scenarios[0].checkpoint.interruptible_timers
    assert tuple(read_in.warnings) == ()
    text = text.replace("time: event", "time: processing")
    assert "has no effect: no vertex has windows of event time" in str(loads(text + flink, name="x").warnings[0])


def test_mini_batches_are_accepted_and_have_no_effect():
    text = LATE.format(what="window: {mini-batch: 2 s, size: 5k, time: processing}")
    study = loads(text, name="x")

    assert study.scenarios[0].job.vertex("op").window is None
    assert [warning.message for warning in study.warnings] == ["has no effect: mini-batches are not modelled"]


def test_windows_of_processing_time_keep_their_parallelism():
    text = LATE.format(what="window: {tumbling: 7 s, time: processing}") + "rescale: {at: 5 s, parallelism: {op: 2}}\n"
    with pytest.raises(ScenarioError, match="rescaling of processing-time timers is not modelled"):
        loads(text, name="x")
