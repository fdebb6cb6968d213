"""What a task takes from its deployment until it reads its state, after a failure and where a larger parallelism brings in processes."""

import pytest

from sim.model.schema.study import loads
from sim.runtime.simulate import simulate
from tests.oracle import oracle

JOB = """\
job:
  a: {source: {rate: 400/s, record: 1 kB}, parallelism: 2}
  b: {input: {a: hash}, parallelism: 2, service: 1 ms, state: {size: 1 MB}}
checkpoint: {interval: 1 s, barriers: unaligned}
cluster: {placement: spread}
restart: {strategy: fixed-delay, delay: 100 ms, fresh-start: 3 s, state-start: 700 ms}
run: {duration: 20 s}
"""


def restart(*changes, engine="compiled"):
    """ms from the deployment to the first record, and until all tasks run."""
    result = simulate(loads(JOB, overrides=changes).scenarios[0], engine=engine)
    row = result.recoveries.iloc[-1]
    assert result.violations == ()
    return row["first_record"] - row["deployed"], row["running"] - row["deployed"]


KILLED = "faults=[{kill: b, at: 8200 ms}]"


def test_a_restarted_task_with_state_begins_to_read_it_later():
    """Sources run at once; what they emit waits for the readers."""
    (first, running), (first_at_once, running_at_once) = restart(KILLED), restart(KILLED, "restart.state-start=0 s")

    assert pytest.approx([first - first_at_once, running - running_at_once], abs=15) == [700, 700]


def test_without_a_checkpoint_there_is_no_state_to_read():
    early = "faults=[{kill: b, at: 15 ms}]"

    assert restart(early) == restart(early, "restart.state-start=0 s")


@pytest.mark.parametrize(("subtasks", "running_ms"), [(3, 3700), (1, 700)])
def test_a_larger_parallelism_brings_in_a_process_that_ran_nothing_of_the_job(subtasks, running_ms):
    """3 s before its tasks initialize; a smaller parallelism brings in none."""
    _, running = restart(f"rescale=[{{at: 8200 ms, parallelism: {{b: {subtasks}}}}}]")

    assert running_ms == pytest.approx(running, abs=60)


def test_a_process_that_was_brought_in_before_is_not_fresh_again():
    to = "{{at: {} s, parallelism: {{b: {}}}}}"
    times = ", ".join(to.format(at, p) for at, p in ((4, 3), (9, 2), (14, 3)))

    assert pytest.approx(restart(f"rescale=[{times}]")[1], abs=60) == 700


def test_engines_agree():
    rescaled = "rescale=[{at: 8200 ms, parallelism: {b: 3}}]"

    assert restart(rescaled) == restart(rescaled, engine=oracle)
