"""Subtasks of one vertex that need other times for a record: in all engines, several records as one, and after a rescale."""

import sim
from tests.scenarios import read_scenario

TEXT = """# Who is slow?
version: 1
job:
  src: {source: {rate: 800/s, record: 400 B}, service: 1 us}
  map: {input: {src: rebalance}, parallelism: 2, service: 1 ms}
checkpoint: {interval: 1 s}
run: {duration: 4 s}
"""
SLOW = "job.map.service-factor={1: 2}"


def result(*overrides, engine="compiled"):
    return sim.simulate(read_scenario(TEXT, overrides=list(overrides)), engine=engine)


def each_ms(tasks):
    """Busy time per record of each subtask of the map."""
    tasks = tasks[tasks["vertex"] == "map"]
    return [round(time_ms, 2) for time_ms in tasks["accumulateBusyTimeMs"] / tasks["numRecordsIn"]]


def test_services_of_a_subtask_take_its_factor_times_as_long():
    assert each_ms(result(SLOW).tasks) == [1, 2]
