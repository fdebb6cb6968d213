"""Which levers apply to a job, in which order, and what they change."""

import pytest

from sim.advice.levers import LEVERS, more_subtasks, rank_levers
from sim.advice.settings import Situation, protocols
from sim.advice.situation import LOSS, PARTS, UPLOAD
from sim.model.job import SHIPPING
from sim.model.schema.study import loads
from sim.model.schema.text import Reading, compose
from sim.studies.sweeps.design import override

JOB = """\
# A job with state on the heap.
version: 1
job:
  source: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  count: {input: {source: {ship: hash, weights: [1, 2]}}, service: 500 us, parallelism: 2, state: {size: 1 GB}}
  sink: {input: {count: forward}, service: {exponential: 10 us}, parallelism: 2}
checkpoint: {interval: 10 s}
storage: {bandwidth: 100 MB/s}
run: {duration: 1 min}
"""


def situation(text=JOB, full="", **shares):
    return Situation(
        loads(text).scenarios[0], compose(text, Reading("job")), protocols()[0], 10**10, shares, {}, full=full
    )


def names(where):
    return [lever.name for lever, _ in rank_levers(where)]


def test_state_in_rocksdb_calls_for_increments():
    found = names(situation(JOB.replace("size: 1 GB", "size: 1 GB, backend: rocksdb"), **{UPLOAD: 1.0}))

    assert "incremental" in found
    assert "RocksDB incremental" not in found


def test_parts_that_take_nothing_call_for_nothing():
    assert names(situation()) == []
    assert "RocksDB incremental" not in names(situation(**{UPLOAD: 0.01, LOSS: 0.99}))


def test_every_lever_shortens_known_parts():
    assert set() == {part for lever in LEVERS for part in lever.helps} - set(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_every_change_makes_a_scenario(part):
    """Keys that a lever changes are keys of a scenario, with values that it takes."""
    where = situation(full="count", **{part: 1.0})
    for _, changes in rank_levers(where):
        for change in changes:
            changes_of_job = [override(key, value) for key, value in change.point.items()]
            assert len(loads(JOB, overrides=changes_of_job).scenarios) == 1


def test_more_subtasks_keep_their_key_groups_and_forwarded_edges():
    """Whoever is forwarded to follows; weights stay those of the groups that they were counted on."""
    point = more_subtasks(situation(), "count", 2)
    job = loads(JOB, overrides=[override(key, value) for key, value in point.items()]).scenarios[0].job

    assert [vertex.parallelism for vertex in job.vertices] == [2, 4, 4]
    assert SHIPPING["forward"].one_to_one
    assert job.vertex("sink").inputs[0].ship == "forward"
    counted = job.vertex("count")
    shares = [float(share) for share in counted.shares(counted.inputs[0])]
    # the other half is that of one hot key, as far as anybody can tell
    assert pytest.approx([1 / 6, 1 / 6]) == shares[:2]
    assert pytest.approx(1.0) == sum(shares)
