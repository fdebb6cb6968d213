"""Several records as one: the same bytes and work, in fewer pieces."""

from __future__ import annotations

import pytest

from sim.model.resolution.coarse import coarse, not_coarse
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
    source, mid, sink = coarse(loads(TEXT).scenarios[0], 10).job.vertices

    assert 5000 == source.source.rates[0].per_second
    assert 125 == source.source.backlog.records  # of each subtask
    assert (1000, 50_000, 10) == (mid.inputs[0].record_bytes.mean, mid.inputs[0].service.mean, mid.inputs[0].service.terms)
    assert (900, 10) == (sink.inputs[0].record_bytes.mean, sink.inputs[0].record_bytes.terms)
    assert (10_000, 70) == (sink.state.value_bytes, sink.state.growth_bytes)


def test_one_as_one_changes_nothing():
    scenario = loads(TEXT).scenarios[0]

    assert scenario is coarse(scenario, 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("backlog: {records: 2500}", "records: 10k"), "job.src.source: it ends with a certain record"),
        (("fan-out: 0.5", "async-io: {latency: 5 ms}"), "job.mid.async-io: every record is a request of its own"),
        (("fan-out: 0.5", "window: {tumbling: 2 s, time: processing}"), "job.mid.window: it fires single records"),
        (("growth: 7 B}", "growth: 7 B}, commit: {emits: on-commit}"), "job.sink.commit: it keeps single records"),
        (
            ("run: {", "cluster: {network: {buffer-timeout: 0 s}}\nrun: {"),
            "cluster.network.buffer-timeout is 0: every record leaves in a buffer of its own",
        ),
        (("run: {", "cluster: {network: {debloat: true}}\nrun: {"), "cluster.network.debloat is on: a shrunk buffer may hold few records"),
    ],
)
def test_what_happens_to_single_records_is_named(change, reason):
    assert [] == list(not_coarse(loads(TEXT).scenarios[0]))
    assert [reason] == list(not_coarse(loads(TEXT.replace(*change)).scenarios[0]))


def test_a_join_is_named():
    text = TEXT.replace("input: {mid: hash}", "input: {mid: hash, src: hash}, combine: join")

    assert ["job.sink: a join reads its inputs record by record"] == list(not_coarse(loads(text).scenarios[0]))
