"""A lever of advice, carried out on a real Flink: what is predicted, and which keys are set, are what advice prints."""

from benchmarks.flink.switch import changed_job, pulled
from sim.model.schema.study import loads

JOB = """\
# State on the heap that grows.
version: 1
job:
  source: {source: {rate: 1k/s, record: 100 B}}
  count: {input: {source: hash}, service: 500 us, state: {size: 100 MB, growth: 1 kB}}
checkpoint: {interval: 5 s}
run: {duration: 1 min}
"""


def test_a_lever_sets_what_advice_prints():
    """RocksDB with increments: two keys of Flink, and a longer service in what is predicted."""
    scenario = loads(JOB).scenarios[0]
    lever = pulled(JOB, scenario, "RocksDB incremental")
    changed = changed_job(JOB, scenario, lever, 0.0)

    assert lever.flink == {"state.backend.type": "rocksdb", "execution.checkpointing.incremental": "true"}
    assert (changed.job.vertex("count").state.backend, changed.job.vertex("count").service.mean) == ("rocksdb", 510_000)


def test_a_later_job_has_the_state_that_has_grown_until_then():
    """1 MB a second for 50 s; it goes on growing."""
    scenario = loads(JOB).scenarios[0]
    state = changed_job(JOB, scenario, pulled(JOB, scenario, "RocksDB incremental"), 50.0).job.vertex("count").state

    assert 145e6 < state.bytes < 155e6
    assert state.growth_bytes == 1000
