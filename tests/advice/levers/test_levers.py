"""Which levers apply to a job, in which order, and what they change."""

import re

import pytest

from sim.advice.job import prepared
from sim.advice.levers import LEVERS, more_subtasks, ranked
from sim.advice.settings import protocols
from sim.advice.situation import CHANNEL_STATE, LOSS, PARTS, QUEUE, RESTORE, UPLOAD, Situation, dominant
from sim.model.job import SHIPPING
from sim.model.schema.flink_text import flink_lines
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
    return [lever.name for lever, _ in ranked(where)]


def test_upload_of_state_on_the_heap_calls_for_rocksdb():
    """It comes before the changelog, and barriers are no help."""
    found = names(situation(**{UPLOAD: 1.0}))

    assert found.index("RocksDB incremental") < found.index("changelog")
    assert "barriers" not in found
    assert "incremental" not in found


@pytest.mark.parametrize("connector", ["hudi", "iceberg-v1", "file-sink-compaction"])
def test_committers_that_stand_in_no_file_are_no_obstacle(tmp_path, connector):
    """Vertices that a connector brings have no section of their own."""
    sink = f"sink: {{input: {{count: hash}}, connector: {connector}, commit: as-connector, flush: {{share: 100 %, files: 1}}}}"
    text = re.sub(r"sink: .*", sink, JOB)
    (tmp_path / "job.yaml").write_text(text)

    assert prepared(tmp_path / "job.yaml", [], [], recovery_ms=None).unasked_updates
    assert names(situation(text, **{UPLOAD: 1.0}))


def test_the_changelog_is_pulled_with_its_log_in_files():
    """Flink's own default is memory: then each checkpoint copies the whole log."""
    advised = loads(JOB, overrides=[override("job.count.state.changelog", "on")]).scenarios[0]

    assert flink_lines(advised)["state.changelog.storage"] == "filesystem"


def test_state_in_rocksdb_calls_for_increments():
    found = names(situation(JOB.replace("size: 1 GB", "size: 1 GB, backend: rocksdb"), **{UPLOAD: 1.0}))

    assert "incremental" in found
    assert "RocksDB incremental" not in found


def test_data_in_flight_calls_for_barriers_and_smaller_buffers():
    """What takes machines comes last."""
    found = names(situation(full="count", **{QUEUE: 0.8, CHANNEL_STATE: 0.2}))

    assert found == ["barriers", "segments", "parallelism"]
    assert "parallelism" not in names(situation(**{QUEUE: 1.0}))


def test_a_restore_calls_for_local_copies():
    assert "local recovery" in names(situation(**{RESTORE: 1.0}))


def test_parts_that_take_nothing_call_for_nothing():
    assert names(situation()) == []
    assert "RocksDB incremental" not in names(situation(**{UPLOAD: 0.01, LOSS: 0.99}))


def test_every_lever_shortens_known_parts():
    assert set() == {part for lever in LEVERS for part in lever.helps} - set(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_every_change_makes_a_scenario(part):
    """Keys that a lever changes are keys of a scenario, with values that it takes."""
    where = situation(full="count", **{part: 1.0})
    for _, changes in ranked(where):
        for change in changes:
            changes_of_job = [override(key, value) for key, value in change.point.items()]
            assert len(loads(JOB, overrides=changes_of_job).scenarios) == 1


def test_rocksdb_costs_service_time():
    """Vertices with state take longer for each record, no others do."""
    (change,) = next(
        changes for lever, changes in ranked(situation(**{UPLOAD: 1.0})) if lever.name == "RocksDB incremental"
    )
    own = change.point

    assert own == {
        "job.count.state.backend": "rocksdb",
        "checkpoint.incremental": True,
        "job.count.service": "510000 ns",
    }


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


def test_no_more_subtasks_than_key_groups():
    assert more_subtasks(situation(), "count", 128) == {}


def test_what_dominates():
    where = situation()
    slow = Situation(
        where.scenario, where.plain, where.protocol, 10**10, {}, {UPLOAD: 18_000.0, QUEUE: 2_000.0}, 0.0, 9e9
    )

    assert dominant(slow) == "18 s of 20 s: upload of state (9 GB at 500 MB/s)"
    assert dominant(where) == ""
