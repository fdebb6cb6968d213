"""Ends and failures of a simulated run are measured as those of a recorded one."""

from benchmarks.lab.predicted_ends import of_ends_and_failures
from tests.scenarios import run_scenario

JOB = """
version: 1
job:
  src:  {{source: {{rate-per-subtask: 300/s, record: 500 B{bounded}}}, parallelism: 2}}
  sink: {{input: {{src: hash}}, service: 500 us, parallelism: 2, commit: two-phase}}
checkpoint: {{interval: 5 s}}
storage: {{bandwidth: 100 MB/s, file-latency: 20 ms, metadata-latency: 20 ms}}
{more}
run: {{duration: 20 s}}
"""


def values(bounded="", fields=""):
    result = run_scenario(JOB.format(bounded=bounded, more=fields))
    return {(quantity, vertex): value for quantity, vertex, value in of_ends_and_failures(result)}


def test_a_bounded_job_commits_all_with_its_final_checkpoint():
    """13.3 s of records: two periodic checkpoints at 0 and 5 s, one at 10 s, and the final one right after the end."""
    seen = values(bounded=", records-per-subtask: 4000")

    assert seen["committed", "sink"] == 8_000
    assert seen["checkpoints_to_commit", "sink"] == 1
    assert 0 < seen["tail_commit_delay", "sink"] < 200
    assert seen["tail_commit_delay", "sink"] < seen["job_end_delay", ""] < 500


def test_a_failure_goes_back_to_the_latest_checkpoint():
    """Killed at 12 s, 2 s after the third checkpoint: some 2 s of both sources are emitted again."""
    seen = values(fields='faults: [{kill: "sink[0]", at: 12 s}]\nrestart: {strategy: fixed-delay, delay: 2 s}')

    assert seen["restored_checkpoint", ""] == 3
    assert 1_150 < seen["replayed_records", ""] < 1_400
    assert 2_000 < seen["downtime", ""] < 3_000


def test_an_endless_job_without_failure_has_only_commits():
    assert {("committed", "sink")} == set(values())
