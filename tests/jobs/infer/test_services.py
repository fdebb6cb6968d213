"""The time of a record where some subtasks are full and others wait: what the full ones need sets the pace of the job."""

import copy
import math

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_duration, parse_number
from tests.places import REST


@pytest.fixture
def inferred():
    """``inferred(records, idle)``: the sink of the pressed job, whose two subtasks are full and need 3.06 ms for a record.

    `records`: how many times as many each subtask reads in the same time; `idle`: the share of its time that each waits.
    """

    def infer(records=(1, 1), idle=(0, 0), samples=math.inf):
        snapshot = read_saved(REST / "pressed.zip")
        kept = list(snapshot.samples)[:: max(1, len(snapshot.samples) // samples) if samples < math.inf else 1]
        answers = {time_ms: copy.deepcopy(dict(snapshot.samples[time_ms])) for time_ms in kept}
        sink = next(
            vertex["id"] for vertex in snapshot.answers[f"/jobs/{snapshot.job}"]["vertices"] if vertex["name"] == "sink"
        )
        for sample in answers.values():
            metrics = {metric["id"]: metric for metric in sample[f"/jobs/{snapshot.job}/vertices/{sink}/metrics"]}
            for subtask in (0, 1):
                busy_ms = float(metrics[f"{subtask}.accumulateBusyTimeMs"]["value"])
                changes = {
                    "numRecordsIn": lambda value, factor=records[subtask]: value * factor,
                    "accumulateIdleTimeMs": lambda value, added=busy_ms * idle[subtask]: value + added,
                    "accumulateBusyTimeMs": lambda value, left=1 - idle[subtask]: value * left,
                }
                for name, change in changes.items():
                    metric = metrics[f"{subtask}.{name}"]
                    metric["value"] = str(change(float(metric["value"])))
        found = infer_scenario(RestSnapshot("test", snapshot.job, snapshot.answers, answers))
        return found.document["job"]["sink"], found.comments

    return infer


def factors(sink):
    return {subtask: float(parse_number(factor)) for subtask, factor in sink.get("service-factor", {}).items()}


def service_ms(sink):
    return parse_duration(sink["service"]) / 1e6


def test_full_subtasks_that_differ_have_factors(inferred):
    """One reads 1.5 times as many records in the same time: 2.04 and 3.06 ms, by records 2.45 ms."""
    sink, comments = inferred(records=(1.5, 1))

    assert service_ms(sink) == pytest.approx(2.45, rel=0.01)
    assert pytest.approx(factors(sink), rel=0.01) == {"0": 0.833, "1": 1.25}
    assert "of subtask 1: 3.07 ms ±" in comments["job.sink.service-factor.1"]


def test_a_subtask_that_is_faster_although_it_waits_has_a_factor(inferred):
    sink, comments = inferred(records=(0.75, 1), idle=(0.5, 0))

    assert pytest.approx(factors(sink), rel=0.02) == {"0": 0.667}
    assert "an upper bound, because it is busy only 50% of its time" in comments["job.sink.service-factor.0"].replace(
        "\n", " "
    )
