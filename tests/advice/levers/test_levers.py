"""Which levers apply to a job, in which order, and what they change."""

import pytest

from sim.advice.levers import LEVERS, more_subtasks, not_released, rank_levers
from sim.advice.settings import Situation, allowed_protocols, protocols
from sim.advice.situation import LOSS, PARTS, UPLOAD
from sim.model.job import SHIPPING
from sim.model.schema.study import loads
from sim.model.schema.text import Reading, compose
from sim.studies.sweeps.design import override
from tests.scenarios import read_scenario

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
    return Situation(read_scenario(text), compose(text, Reading("job")), protocols()[0], 10**10, shares, {}, full=full)


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
    job = read_scenario(JOB, overrides=[override(key, value) for key, value in point.items()]).job

    assert [vertex.parallelism for vertex in job.vertices] == [2, 4, 4]
    assert SHIPPING["forward"].one_to_one
    assert job.vertex("sink").inputs[0].ship == "forward"
    counted = job.vertex("count")
    shares = [float(share) for share in counted.shares(counted.inputs[0])]
    # the other half is that of one hot key, as far as anybody can tell
    assert pytest.approx([1 / 6, 1 / 6]) == shares[:2]
    assert pytest.approx(1.0) == sum(shares)


# ---- Nothing is proposed that the job's version of Flink does not have.

OFF = """\
# A job that has none of what came later, and many subtasks.
version: 1
job:
  source: {source: {rate: 1k/s, record: 100 B}, parallelism: 60}
  count: {input: {source: hash}, service: 500 us, parallelism: 60, state: {size: 1 GB}}
  top: {input: {count: hash}, window: {tumbling: 10 s, time: event}}
checkpoint: {interval: 10 s}
restart: {strategy: none, heartbeat-failures: 0, replacement: 30 s}
run: {duration: 1 min}
"""
RELEASES = {
    "unaligned": "1.11",
    "a spare TaskManager": "1.12",
    "aligned-timeout 1 s": "1.13",
    "restart strategy exponential-delay": "1.13",
    "debloating": "1.14",
    "failing heartbeats count": "1.14",
    "changelog": "1.15",
    "merged files": "1.20",
    "interruptible timers": "1.20",
}


def proposed(version):
    """Everything that advice would try for a job with this version of Flink, and what it says that it left out."""
    where = situation(f"{OFF}cluster: {{version: {version}}}\n", **dict.fromkeys(PARTS, 1.0))
    changes = [change for _, changes in rank_levers(where) for change in changes]
    names = [change.name or change.protocol.name for change in changes if change.name or change.protocol]
    return [*names, *(protocol.name for protocol in allowed_protocols(where.scenario))], not_released(where)


@pytest.mark.parametrize(("option", "since"), RELEASES.items())
def test_a_release_gets_no_option_that_came_later(option, since):
    major, minor = since.split(".")
    (before, left_out), (then, others) = proposed(f"{major}.{int(minor) - 1}.4"), proposed(f"{since}.0")

    assert not [name for name in before if option in name]
    assert [name for name in then if option in name]
    assert (left_out[option], option in others) == (since, False)


def test_a_release_gets_other_heartbeats():
    """More frequent ones are older than those that count when they fail."""
    (before, _), (then, _) = proposed("1.13.6"), proposed("1.14.0")

    assert "heartbeats every 2 s" in before
    assert "heartbeats every 2 s, failing heartbeats count" in then


def test_the_newest_release_lacks_nothing():
    assert proposed("2.x")[1] == proposed("2.3")[1] == {}
