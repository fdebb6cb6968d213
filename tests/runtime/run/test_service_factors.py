"""Subtasks of one vertex that need other times for a record: in all engines, several records as one, and after a rescale."""

import pandas as pd
import pytest

import sim
from sim.model.schema.study import loads
from tests.oracle import oracle

TEXT = """# Who is slow?
version: 1
job:
  src: {source: {rate: 800/s, record: 400 B}, service: 1 us}
  map: {input: {src: rebalance}, parallelism: 2, service: 1 ms}
checkpoint: {interval: 1 s}
run: {duration: 4 s}
"""
SLOW = "job.map.service-factor={1: 2}"


def result(*overrides: str, engine: str = "compiled") -> sim.Result:
    return sim.simulate(loads(TEXT, overrides=list(overrides)).scenarios[0], engine=engine)


def each_ms(tasks: pd.DataFrame) -> list[float]:
    """Busy time per record of each subtask of the map."""
    tasks = tasks[tasks["vertex"] == "map"]
    return [round(time_ms, 2) for time_ms in tasks["accumulateBusyTimeMs"] / tasks["numRecordsIn"]]


def test_services_of_a_subtask_take_its_factor_times_as_long():
    assert each_ms(result(SLOW).tasks) == [1, 2]


@pytest.mark.parametrize("engine", ["compiled", oracle])
def test_engines_agree(engine):
    first, other = result(SLOW), result(SLOW, engine=engine)

    assert first.journal == other.journal
    assert first.tasks.equals(other.tasks)


def test_the_same_factor_of_all_subtasks_is_another_service():
    factors, services = result("job.map.service-factor={0: 3/2, 1: 3/2}"), result("job.map.service=1500 us")

    assert services.journal == factors.journal
    assert services.tasks.equals(factors.tasks)


def test_a_rescale_leaves_the_factor_to_the_subtask_of_that_number():
    """The second of two, then of three, then nobody: the only subtask is the first."""
    found = result(
        SLOW,
        "restart.fresh-start=0 s",
        "rescale=[{at: 1500 ms, parallelism: {map: 3}}, {at: 2800 ms, parallelism: {map: 1}}]",
    )

    assert [each_ms(tasks) for _, tasks in found.tasks.groupby("x_job")] == [[1, 2], [1, 2, 1], [1]]


def test_the_full_subtask_sets_the_pace():
    """By turns each gets as many records: 400/s at the slow one hold the other back."""
    found = result(
        "job.src.source={rate: unlimited, record: 30 kB}", "job.map.service-factor={0: 5/2}", "run.duration=10 s"
    )
    tasks = found.tasks[found.tasks["vertex"] == "map"]

    assert pytest.approx(tasks["numRecordsIn"].tolist(), rel=0.03) == [4000, 4000]
