"""Checkpoints to which a region contributes the part of an earlier one: an addition from outside, in a few lines."""

import pytest

from sim.protocol.restart_strategy import regions
from sim.runtime.simulate import simulate
from tests.oracle import oracle
from tests.scenarios import read_scenario

JOB = """\
# Does a region that keeps its part come back with it?
version: 1
job:
  source: {source: {rate: 2k/s, record: 1 kB}, parallelism: 2}
  work: {input: {source: forward}, service: 100 us, parallelism: 2, state: {size: 4 MB, backend: hashmap, update: 30 %}}
  sink: {input: {work: forward}, service: 10 us, parallelism: 2, flush: {share: 100 %}, commit: {}}
checkpoint: {interval: 1 s, barriers: aligned, incremental: false, timeout: 300 ms, tolerable-failed: 9}
cluster: {placement: isolated, network: {segment-size: 4 KiB}}
storage: {bandwidth: 100 MB/s}
faults: [{kill: 'source[0]', at: 5500 ms}, {kill: 'source[1]', at: 5600 ms}]
run: {duration: 7 s}
"""


def run(*, kept_of=lambda region: region, engine="compiled"):
    def attach(instance):
        """The addition: in checkpoints of an even number these tasks keep their part."""
        layout, coordinator = instance.layout, instance.job.coordinator
        _, region = regions(len(layout.vertex), zip(layout.writer, layout.reader, strict=True))
        kept = kept_of(region)
        coordinator.keeps = lambda _: frozenset() if coordinator.machine.next_id % 2 else kept

    scenario = read_scenario(JOB)
    return simulate(scenario, engine=engine, attach=attach)


def test_a_part_that_does_not_fit_the_others_is_refused():
    """A sink alone is no region: what lies between it and its writer would be in neither part."""
    with pytest.raises(ValueError, match="tasks 3 and 5 exchange data"):
        run(kept_of=lambda region: frozenset({max(region)}))


def test_engines_agree():
    first, other = run(), run(engine=oracle)

    assert all(table.equals(other.tables[name]) for name, table in first.tables.items())
    assert list(first.journal) == list(other.journal)
