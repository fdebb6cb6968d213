"""Checkpoints to which a region contributes the part of an earlier one: an addition from outside, in a few lines."""

import pytest

from sim.model.schema.study import loads
from sim.protocol.restart_strategy import regions
from sim.results.journal import Happening
from sim.runtime.simulate import simulate
from tests.oracle import oracle

SLICES = """
  source: {{source: {{rate: 2k/s, record: 1 kB}}, parallelism: 2}}
  work: {{input: {{source: forward}}, service: 100 us, parallelism: 2, state: {{size: 4 MB, backend: {backend}, update: 30 %}}}}
  sink: {{input: {{work: forward}}, service: 10 us, parallelism: 2, flush: {{share: 100 %}}, commit: {{}}}}
"""
JOB = """\
# Does a region that keeps its part come back with it?
version: 1
job:{job}
checkpoint: {{interval: {interval}, barriers: {barriers}, incremental: {incremental}, timeout: 300 ms, tolerable-failed: 9}}
cluster: {{placement: isolated, network: {{segment-size: 4 KiB}}}}
storage: {{bandwidth: 100 MB/s}}
faults: [{faults}]
run: {{duration: {duration}}}
"""
KILLS = "{kill: 'source[0]', at: 5500 ms}, {kill: 'source[1]', at: 5600 ms}"
USUAL = {
    "job": SLICES,
    "backend": "hashmap",
    "barriers": "aligned",
    "incremental": "false",
    "faults": KILLS,
    "interval": "1 s",
    "duration": "9 s",
}


def run(*, kept_of=lambda region: region, engine="compiled", **options):
    """(result, second region, (checkpoint, task) -> the checkpoint whose part stands for it)"""
    found = []

    def attach(instance):
        """The addition: in checkpoints of an even number these tasks keep their part."""
        layout, coordinator = instance.layout, instance.job.coordinator
        _, region = regions(len(layout.vertex), zip(layout.writer, layout.reader, strict=True))
        kept = kept_of(region)
        coordinator.keeps = lambda _: frozenset() if coordinator.machine.next_id % 2 else kept
        found.append(region)

    values = USUAL | {"duration": "9 s"} | options
    (scenario,) = loads(JOB.format(**(values | {"job": values["job"].format(**values)}))).scenarios
    result = simulate(scenario, engine=engine, attach=attach)
    numbers = {(row.checkpoint, row.task): row.number for row in result.journal if row.happening is Happening.PART_KEPT}
    return result, found[0], numbers


def test_a_part_that_does_not_fit_the_others_is_refused():
    """A sink alone is no region: what lies between it and its writer would be in neither part."""
    with pytest.raises(ValueError, match="tasks 3 and 5 exchange data"):
        run(kept_of=lambda region: frozenset({max(region)}))


def test_engines_agree():
    first, other = [run(engine=engine, duration="7 s")[0] for engine in ("compiled", oracle)]

    assert all(table.equals(other.tables[name]) for name, table in first.tables.items())
    assert list(first.journal) == list(other.journal)
