"""Outputs that leave later than their records: answers of asynchronous I/O, and output that waits for its commit."""

import pytest

from tests.scenarios import run_scenario

ASYNC = """# How does a job of requests checkpoint?
version: 1
job:
  src: {{source: {{rate-per-subtask: unlimited, record: 1 kB}}, parallelism: 1}}
  ask:
    input: {{src: hash}}
    service: 10 us
    async-io: {{latency: 100 ms, capacity: 20}}
    snapshot: {{operator-state: 500 B}}
  sink: {{input: {{ask: hash}}, service: {service}, parallelism: 1}}
checkpoint: {{interval: 2 s, barriers: unaligned}}
run: {{duration: 21 s}}
"""
CASCADE = """# When does output that waits for its commit arrive?
version: 1
job:
  src: {{source: {{rate-per-subtask: 100/s, record: 500 B{bound}}}, parallelism: 1}}
  first: {{input: {{src: hash}}, service: 10 us, commit: {{emits: on-commit}}, parallelism: 1}}
  last: {{input: {{first: hash}}, service: 10 us, commit: two-phase, parallelism: 1}}
checkpoint: {{interval: 2 s}}
run: {{duration: 20 s}}
"""


@pytest.fixture(scope="module")
def result():
    return run_scenario(ASYNC.format(service="10 us"))


def served(result, vertex):
    rows = result.tasks[result.tasks["vertex"] == vertex]
    return int(rows["numRecordsIn"].sum())


def test_requests_under_way_are_operator_state(result):
    """Twenty records without their length, beside what the operator writes anyway."""
    rows = result.subtasks[(result.subtasks["vertex"] == "ask") & (result.subtasks["id"] > 2)]
    state = rows["checkpointed_size"] - rows["alignment_persisted"]

    assert {500 + 20 * 996} == set(state)


@pytest.mark.parametrize("then", ["ends", "stops"])
def test_the_end_of_data_waits_for_answers(then):
    """Requests of 100 ms: every record asked for is answered and read by the sink, whether the source ends or the job drains."""
    text = ASYNC.format(service="10 us").replace(
        "rate-per-subtask: unlimited", "rate-per-subtask: 150/s, records-per-subtask: 600"
    )
    if then == "stops":
        text += "actions: [{at: 1 s, stop: drain}]\n"
    result = run_scenario(text)

    assert result.job_status == "FINISHED"
    assert served(result, "ask") == served(result, "sink") > 100
    assert result.violations == ()


@pytest.fixture(scope="module")
def held_back():
    return run_scenario(CASCADE.format(bound=""))


def test_output_arrives_with_its_commit(held_back):
    """The second stage reads what the first had read at its last completed checkpoint, not more."""
    commits = held_back.commits[held_back.commits["vertex"] == "first"]

    assert int(commits["records"].sum()) == served(held_back, "last")
    assert served(held_back, "last") < served(held_back, "first")
    assert held_back.violations == ()


def test_the_last_stage_commits_one_checkpoint_later(held_back):
    first, last = (held_back.commits[held_back.commits["vertex"] == vertex] for vertex in ("first", "last"))

    assert first["records"].tolist()[1:-1] == pytest.approx(last["records"].tolist()[1:], abs=1)
    assert list(first["checkpoint"][1:]) == list(last["checkpoint"])
