"""A task that was restored as finished is finished in the snapshots that follow, and is restored as finished again."""

import pytest

from tests.scenarios import run_scenario

WORLD = """# What becomes of a task that has finished when the job fails twice?
version: 1
job:
  short: {{source: {{rate-per-subtask: 100/s, record: 100 B, records-per-subtask: 5}}}}
  kept: {{input: {{short: forward}}, state: {{size: 20 kB{state}}}}}
  long: {{source: {{rate-per-subtask: 100/s, record: 100 B, records-per-subtask: 400}}, service: 1 ms}}
  sink: {{input: {{kept: hash, long: hash}}}}
checkpoint: {{interval: 100 ms, finish: {finish}}}
restart: {{strategy: fixed-delay, delay: 10 ms, attempts: 5, failover: full}}
faults: [{{kill: long, at: 1510 ms}}, {{kill: long, at: 1790 ms}}]
run: {{duration: 20 s}}
"""
STATES = ("", ", backend: rocksdb", ", ttl: 1 h", ", ttl: 1 h, changelog: {storage: memory}")


@pytest.mark.parametrize("finish", ["flink", "naive"])
@pytest.mark.parametrize("state", STATES)
def test_a_finished_task_has_no_state_behind_a_second_failure(state, finish):
    """The first checkpoint behind a restart waits for it: it has come to the end of its inputs only then."""
    result = run_scenario(WORLD.format(state=state, finish=finish))
    kept = result.subtasks[result.subtasks["vertex"] == "kept"].merge(
        result.checkpoints[["id", "trigger_timestamp"]], on="id"
    )
    begun, later = kept["trigger_timestamp"] < 100, kept["trigger_timestamp"] > 1790

    assert (result.job_status, len(result.recoveries), result.violations) == ("FINISHED", 2, ())
    assert kept[begun]["state_size"].sum() >= 20_000
    assert later.any()
    assert kept[later]["state_size"].sum() == 0
