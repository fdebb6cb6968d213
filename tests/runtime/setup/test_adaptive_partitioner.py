"""Rebalance and rescale avoid busy channels (FLIP-339), as a scenario and Flink's keys say."""

import pytest

from tests.oracle import oracle
from tests.scenarios import read_scenario, run_scenario

# One of four subtasks is three times as slow as the others, too slow for its share.
JOB = """
version: 1
job:
  log:  {source: {rate: 400/s, record: 500 B}, parallelism: 2}
  work: {input: {log: rebalance}, service: 6 ms, parallelism: 4}
checkpoint: {interval: 5 s}
cluster: {network: {segment-size: 4 KiB}}
faults: [{slow: "work[0]", factor: 3, at: 2 s}]
run: {duration: 20 s}
"""
KEY = "taskmanager.network.adaptive-partitioner"


def run(switch, ship="rebalance", **options):
    overrides = f"cluster.network.adaptive-partitioner={switch}", f"job.work.input.log={ship}"
    return run_scenario(JOB, overrides=overrides, **options)


@pytest.mark.parametrize("ship", ["rebalance", "rescale"])
def test_a_slow_subtask_gets_fewer_records_and_barriers_wait_less(ship):
    before, after = run("off", ship), run("on", ship)
    (slow, *others), (spared, *busier) = (
        result.tasks.loc[result.tasks["vertex"] == "work", "numRecordsIn"].tolist() for result in (before, after)
    )
    longest = [result.checkpoints["end_to_end_duration"].max() for result in (before, after)]

    assert slow > 0.8 * min(others), "they wait for it"
    assert spared < 0.6 * min(busier)
    assert longest[1] < 0.7 * longest[0]
    assert before.violations == after.violations == ()


def test_engines_agree():
    kernel, reference = run("on"), run("{max-traverse-size: 2}", engine=oracle)
    same = run("{max-traverse-size: 2}")

    assert same.tasks.equals(reference.tasks)
    assert same.checkpoints.equals(reference.checkpoints)
    assert not kernel.tasks.equals(same.tasks)


def test_keys_of_flink():
    def partitioner(**keys):
        block = ", ".join(f"{KEY}.{key.replace('_', '-')}: {value}" for key, value in keys.items())
        return read_scenario(JOB, overrides=[f"flink={{{block}}}"]).cluster.network.adaptive_partitioner

    assert partitioner(enabled="false") is None
    assert partitioner(enabled="true").max_traverse_size == 4
    assert partitioner(enabled="true", max_traverse_size=8).max_traverse_size == 8
    with pytest.raises(Exception, match="nothing would be compared"):
        partitioner(enabled="true", max_traverse_size=1)
