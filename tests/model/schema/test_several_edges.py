"""Several edges between the same two vertices: their names, their order, what is theirs alone."""

from fractions import Fraction

from sim.model.job import Distribution
from sim.model.schema.study import loads
from sim.runtime.lowering import plane_spec
from tests.scenarios import read_scenario

TEXT = """# Who sees it twice?
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
    job = read_scenario(TEXT, name="x").job
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


def test_a_sweep_reaches_each_edge_by_its_name():
    study = loads(TEXT.replace("ship: rebalance, fan-out: 0.5", "ship: rebalance, fan-out: [0.5, 2]"), name="x")

    assert [Fraction(1, 2), Fraction(2)] == [
        scenario.job.vertices[-1].inputs[2].fan_out for scenario in study.scenarios
    ]
    assert [axis.name for axis in study.axes] == ["job.join.input.right.fan-out"]


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
