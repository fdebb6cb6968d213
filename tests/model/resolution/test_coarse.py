"""Several records as one: the same bytes and work, in fewer pieces."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sim.model.resolution.coarse import coarse, not_coarse, single_records
from sim.scenario import loads

TEXT = """
version: 1
job:
  src:  {source: {rate: 100k/s, record: 100 B, backlog: {records: 2500}}, parallelism: 2}
  mid:  {input: {src: hash}, service: {lognormal: {mean: 5 us, cv: 2}}, record: {exponential: 90 B}, fan-out: 0.5, parallelism: 2}
  sink: {input: {mid: hash}, service: 3 us, parallelism: 2, state: {size: 64 MB, update: 10 %, value: 1 kB, growth: 7 B}}
checkpoint: {interval: 1 s}
run: {duration: 10 s}
"""


def test_rates_shrink_as_records_grow():
    """Bytes and work per second are what they were; the share of records that update state too, in larger pieces."""
    source, mid, sink = coarse(loads(TEXT).scenarios[0], {"src": 10, "mid": 10, "sink": 10}).job.vertices

    assert 5000 == source.source.rates[0].per_second
    assert 125 == source.source.backlog.records  # of each subtask
    assert (1000, 50_000, 10) == (mid.inputs[0].record_bytes.mean, mid.inputs[0].service.mean, mid.inputs[0].service.terms)
    assert (900, 10) == (sink.inputs[0].record_bytes.mean, sink.inputs[0].record_bytes.terms)
    assert (10_000, 70) == (sink.state.value_bytes, sink.state.growth_bytes)


def test_one_as_one_changes_nothing():
    scenario = loads(TEXT).scenarios[0]

    assert scenario is coarse(scenario, {"src": 1, "mid": 1, "sink": 1})


def test_edges_between_different_groups_turn_the_ones_into_the_others():
    """Ten records of `src` are one, hence five of the next edge; two of those that `mid` takes for one are needed for its output's four."""
    source, mid, sink = coarse(loads(TEXT).scenarios[0], {"src": 10, "mid": 2, "sink": 4}).job.vertices

    assert [5000, (Fraction(5), 2), (Fraction(1, 4), 4)] == [
        source.source.rates[0].per_second,
        *((vertex.inputs[0].fan_out, vertex.inputs[0].record_bytes.terms) for vertex in (mid, sink)),
    ]
    assert [10, 2, 4] == [vertex.records_as_one for vertex in (source, mid, sink)]
    assert mid.fan_out == Fraction(1, 2), "what a vertex gives for a record is the edges' business"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("backlog: {records: 2500}", "records: 10k"), "job.src.source: it ends with a certain record"),
        (("fan-out: 0.5", "window: {tumbling: 2 s, time: event}"), "job.mid.window: event time counts single records"),
        (
            ("run: {", "cluster: {network: {buffer-timeout: 0 s}}\nrun: {"),
            "cluster.network.buffer-timeout is 0: every record leaves in a buffer of its own",
        ),
        (("run: {", "cluster: {network: {debloat: true}}\nrun: {"), "cluster.network.debloat is on: a shrunk buffer may hold few records"),
    ],
)
def test_what_forbids_it_everywhere_is_named(change, reason):
    assert [] == list(not_coarse(loads(TEXT).scenarios[0]))
    assert [reason] == list(not_coarse(loads(TEXT.replace(*change)).scenarios[0]))


@pytest.mark.parametrize(
    ("change", "vertex", "reason"),
    [
        (("fan-out: 0.5", "async-io: {latency: 5 ms}"), "mid", "job.mid.async-io: every record is a request of its own"),
        (("fan-out: 0.5", "window: {tumbling: 2 s, time: processing}"), "mid", "job.mid.window: it fires single records"),
        (("growth: 7 B}", "growth: 7 B}, commit: {emits: on-commit}"), "sink", "job.sink.commit: it keeps single records"),
        (
            ("input: {mid: hash}", "input: {mid: hash, src: hash}, combine: join"),
            "sink",
            "job.sink: a join reads its inputs record by record",
        ),
        (("rate: 100k/s, record", "rate: 100k/s, waits: poll, record"), "src", "job.src.source: checkpoints wait for single records"),
    ],
)
def test_vertices_of_single_records_are_named(change, vertex, reason):
    assert [] == list(single_records(loads(TEXT).scenarios[0]))
    assert [(vertex, reason)] == list(single_records(loads(TEXT.replace(*change)).scenarios[0]))
