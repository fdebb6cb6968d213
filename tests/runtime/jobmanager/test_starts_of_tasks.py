"""What a task takes from its deployment until it reads its state, after a failure and where a larger parallelism brings in processes."""

import pytest

from tests.oracle import oracle
from tests.scenarios import run_scenario

JOB = """\
job:
  a: {source: {rate: 400/s, record: 1 kB}, parallelism: 2}
  b: {input: {a: hash}, parallelism: 2, service: 1 ms, state: {size: 1 MB}}
checkpoint: {interval: 1 s, barriers: unaligned}
cluster: {placement: spread}
restart: {strategy: fixed-delay, delay: 100 ms, fresh-start: 3 s, state-start: 700 ms}
run: {duration: 20 s}
"""


def running_ms(*changes, engine="compiled"):
    """From the deployment until all tasks run."""
    result = run_scenario(JOB, overrides=changes, engine=engine)
    row = result.recoveries.iloc[-1]
    return row["running"] - row["deployed"]


@pytest.mark.parametrize("engine", ["compiled", oracle])
def test_a_restarted_task_with_state_begins_to_read_it_later(engine):
    killed = "faults=[{kill: b, at: 8200 ms}]"
    later = running_ms(killed, engine=engine) - running_ms(killed, "restart.state-start=0 s", engine=engine)

    assert pytest.approx(later, abs=15) == 700


@pytest.mark.parametrize(("subtasks", "expected"), [(3, 3700), (1, 700)])
def test_a_larger_parallelism_brings_in_a_process_that_ran_nothing_of_the_job(subtasks, expected):
    """3 s before its tasks initialize; a smaller parallelism brings in none."""
    assert expected == pytest.approx(running_ms(f"rescale=[{{at: 8200 ms, parallelism: {{b: {subtasks}}}}}]"), abs=60)
