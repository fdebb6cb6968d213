"""A window is recognised by its description in the plan, by sizes of state that rise and fall, and by records that leave together."""

import copy
import re

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.infer.windows import (
    count_outputs_per_window,
    planned_window,
)
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from tests.places import REST

SECOND = 10**9
PERIOD_MS = 7000
FALLS_MS = -500  # before each whole multiple of 7 s
PER_SECOND = 100_000  # bytes


@pytest.fixture
def windowed():
    """``windowed(description, floor)``: the pressed job whose map holds records for 7 s, with that description in the plan."""

    def infer(
        description="Window(TumblingEventTimeWindows(7000), EventTimeTrigger, Top)<br/>",
        floor=0,
        name="map",
        backend="hashmap",
    ):
        snapshot = read_saved(REST / "pressed.zip")
        answers = copy.deepcopy(dict(snapshot.answers))
        about = f"/jobs/{snapshot.job}"
        vertex = next(
            vertex["id"] for vertex in answers[about]["vertices"] if vertex["name"].removeprefix("Source: ") == name
        )
        answers[f"{about}/checkpoints/config"] |= {"state_backend": backend}
        source = next(vertex["id"] for vertex in answers[about]["vertices"] if vertex["name"].startswith("Source: "))
        for node in answers[f"{about}/plan"]["plan"]["nodes"]:
            node["description"] = description if node["id"] == vertex else "Map<br/>"
        points = sorted(
            int(found[1]) for path in answers if (found := re.fullmatch(rf"{about}/checkpoints/details/(\d+)", path))
        )
        for number in range(points[-1] + 1, points[-1] + 16):  # a longer history
            for path in [path for path in answers if f"/details/{points[-1]}" in path]:
                answers[path.replace(f"/details/{points[-1]}", f"/details/{number}")] = copy.deepcopy(answers[path])
            points.append(number)
        for rank, number in enumerate(points):
            details = answers[f"{about}/checkpoints/details/{number}"]
            details |= {"id": number, "trigger_timestamp": 1_000_000_000_000 + 4000 * rank}
            for subtask in answers[f"{about}/checkpoints/details/{number}/subtasks/{source}"]["subtasks"]:
                subtask["start_delay"] = 0
            subtasks = answers[f"{about}/checkpoints/details/{number}/subtasks/{vertex}"]["subtasks"]
            for subtask in subtasks:
                since_ms = (details["trigger_timestamp"] - FALLS_MS) % PERIOD_MS
                subtask["state_size"] = subtask["checkpointed_size"] = (floor + PER_SECOND * since_ms // 1000) // len(
                    subtasks
                )
        return infer_scenario(RestSnapshot("test", snapshot.job, answers, snapshot.samples))

    return infer


@pytest.mark.parametrize(
    "description",
    ["KeyedProcess<br/>", "Window(GlobalWindows(), CountTrigger)", "WindowAggregate(window=[TUMBLE(size=[?])])", ""],
)
def test_a_plan_without_sizes_names_no_window(description):
    assert planned_window(description) is None


def test_records_that_leave_over_seconds_are_not_counted_by_windows():
    """A sample may see half of an end."""
    samples = [(10_000 * k, [total]) for k, total in enumerate([0.0, 20.0, 41.0, 55.0, 86.0, 100.0])]

    assert count_outputs_per_window({"numRecordsOut": samples}, 400, 7000) is None


def test_files_of_rocksdb_rise_and_fall_without_windows(windowed):
    """They are merged every few checkpoints."""
    assert "window" not in windowed(description="KeyedProcess<br/>", backend="rocksdb").document["job"]["map"]


def test_a_window_in_a_source_is_named(windowed):
    text = "WindowAggregate(window=[TUMBLE(time_col=[t], size=[10 s])])"

    assert any("the window of 'src'" in what for what in windowed(text, name="src").not_modelled)
