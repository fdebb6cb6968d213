"""A window is recognised by its description in the plan, by sizes of state that rise and fall, and by records that leave together."""

import copy
import math
import random
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from sim.jobs.infer import windows
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.infer.windows import (
    fitted,
    outputs_per_end,
    planned_window,
    split_of_busy_time,
    timers_of,
    uses_event_time,
)
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_duration, parse_size

REST = Path(__file__).parents[2] / "data" / "rest"
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
    ("description", "expected"),
    [
        (
            "Window(TumblingEventTimeWindows(7000), EventTimeTrigger, Top)<br/>+- Out: Writer<br/>",
            ("tumbling", 7, 7, "event", "datastream"),
        ),
        ("TumblingProcessingTimeWindows(1000)", ("tumbling", 1, 1, "processing", "datastream")),
        (
            "Window(SlidingEventTimeWindows(10000, 2000), EventTimeTrigger, F)",
            ("sliding", 10, 2, "event", "datastream"),
        ),
        ("Window(EventTimeSessionWindows(5000), EventTimeTrigger, F)", ("session", 5, 5, "event", "datastream")),
        (
            "[5]:GlobalWindowAggregate(groupBy=[a], window=[TUMBLE(slice_end=[$slice_end], size=[10 s])])",
            ("tumbling", 10, 10, "", "sql"),
        ),
        (
            "[5]:WindowAggregate(groupBy=[a], window=[HOP(time_col=[t], size=[1 min], slide=[20 s])])",
            ("sliding", 60, 20, "", "sql"),
        ),
        (
            "WindowAggregate(window=[CUMULATE(time_col=[t], max_size=[1 h], step=[10 min])])",
            ("sliding", 3600, 600, "", "sql"),
        ),
        (
            "WindowAggregate(window=[SESSION(time_col=[t], gap=[5 s], partition keys=[a])])",
            ("session", 5, 5, "", "sql"),
        ),
    ],
)
def test_the_plan_names_the_assigner_and_its_sizes(description, expected):
    window = planned_window(description)

    assert window is not None
    assert expected == (window.kind, window.size_ns / SECOND, window.every_ns / SECOND, window.time, window.api)


@pytest.mark.parametrize(
    "description",
    ["KeyedProcess<br/>", "Window(GlobalWindows(), CountTrigger)", "WindowAggregate(window=[TUMBLE(size=[?])])", ""],
)
def test_a_plan_without_sizes_names_no_window(description):
    assert planned_window(description) is None


def test_the_first_stage_of_two_is_local():
    window = planned_window("LocalWindowAggregate(groupBy=[a], window=[TUMBLE(time_col=[t], size=[10 s])])")

    assert window is not None
    assert window.is_local


def test_sql_has_event_time_if_it_makes_watermarks():
    assert uses_event_time(["Calc", "[3]:WatermarkAssigner(rowtime=[evt], watermark=[evt])"])
    assert not uses_event_time(["Calc", "proctime()"])


@pytest.mark.parametrize("periods", [[7000], [1000 * k for k in range(2, 61)]], ids=["known", "searched"])
def test_a_saw_tooth_is_found_through_noise(periods):
    """Every 5 s a size that falls every 7 s."""
    noise = random.Random(1)
    points = [(5000.0 * k, 1e6 + 1000 * ((5000 * k - 1300) % 7000) * noise.uniform(0.97, 1.03)) for k in range(20)]
    tooth = fitted(points, periods)

    assert tooth is not None
    assert tooth.period_ms == 7000
    assert 1000 <= tooth.high_ms % 7000 <= 1300 <= tooth.low_ms % 7000 <= 2000
    assert pytest.approx((tooth.floor, tooth.per_second), rel=0.4) == (1e6, 1e6)


@pytest.mark.parametrize(
    "size",
    [lambda k: 1e6 + 1e5 * k, lambda k: 1e6 * (k % 7 == 0), lambda k: 1e6, lambda k: 1e6 - 1000 * ((5000 * k) % 7000)],
    ids=["it grows", "now and then", "constant", "it falls along a line"],
)
def test_other_sizes_are_no_saw_tooth(size):
    assert fitted([(5000.0 * k, size(k) + (k * 37 % 11)) for k in range(20)], [7000]) is None


def test_records_that_leave_together_are_counted_by_whole_windows():
    """Samples every 10 s see one or two ends of windows of 7 s."""
    samples = [(1000 * t, [10.0 * ((1000 * t - 400) // 7000)] * 2) for t in range(0, 62, 10)]

    assert outputs_per_end({"numRecordsOut": samples}, 400, 7000) == (20.0, 9)
    assert outputs_per_end({"numRecordsOut": samples[:1]}, 400, 7000) is None


def test_records_that_leave_over_seconds_are_not_counted_by_windows():
    """A sample may see half of an end."""
    samples = [(10_000 * k, [total]) for k, total in enumerate([0.0, 20.0, 41.0, 55.0, 86.0, 100.0])]

    assert outputs_per_end({"numRecordsOut": samples}, 400, 7000) is None


def test_busy_time_is_split_between_records_in_and_out():
    """Each record takes 20 us, each output 3 ms: steps with one end and with two tell them apart; equal steps do not."""
    ends = [0, 1, 3, 4, 6, 7, 9]
    series = {
        "numRecordsIn": [(k, [5000.0 * k]) for k in range(7)],
        "numRecordsOut": [(k, [100.0 * end]) for k, end in enumerate(ends)],
        "accumulateBusyTimeMs": [(k, [100.0 * k + 300.0 * end + k % 2]) for k, end in enumerate(ends)],
    }
    split = split_of_busy_time(series)

    assert split is not None
    assert pytest.approx((split.per_record, split.per_output), rel=0.05) == (0.02, 3.0)
    assert split_of_busy_time(series | {"numRecordsOut": [(k, [100.0 * k]) for k in range(7)]}) is None


def test_a_window_of_the_plan_becomes_one_of_the_scenario(windowed):
    inference = windowed()
    vertex = inference.document["job"]["map"]
    window, trigger_ms = vertex["window"], 21  # of the first checkpoint of a run
    # the second checkpoint of a run is the first of the history: the first one is left out
    grid_ms = 1_000_000_000_000 - 4000

    assert (window["tumbling"], window["time"], window["api"]) == ("7 s", "event", "datastream")
    expected = (FALLS_MS - grid_ms + trigger_ms) % 7000
    assert pytest.approx(expected, abs=600) == parse_duration(window["phase"]) / 1e6
    per_second = 640  # records
    assert pytest.approx(PER_SECOND / per_second, rel=0.1) == parse_size(window["state-per-record"])
    assert "state" not in vertex, "all of it is in the windows"
    assert parse_duration(inference.document["run"]["duration"]) >= 84 * SECOND


def test_state_below_the_teeth_is_that_of_the_vertex(windowed):
    vertex = windowed(floor=2_000_000).document["job"]["map"]

    assert pytest.approx(2_000_000, rel=0.1) == parse_size(vertex["state"]["size"])


def test_sizes_that_rise_and_fall_without_a_word_in_the_plan_are_asked_for(windowed):
    inference = windowed(description="KeyedProcess<br/>")

    assert inference.document["job"]["map"]["window"]["tumbling"] == "7 s"
    assert "map: Which of its timers fire together, and how often?" in inference.unknown


def test_files_of_rocksdb_rise_and_fall_without_windows(windowed):
    """They are merged every few checkpoints."""
    assert "window" not in windowed(description="KeyedProcess<br/>", backend="rocksdb").document["job"]["map"]


def test_the_phase_of_windows_whose_state_does_not_show_it_is_asked_for(windowed):
    """Windows of 4 s at checkpoints every 4 s: all sizes are alike."""
    inference = windowed(description="Window(TumblingEventTimeWindows(4000), EventTimeTrigger, Top)<br/>")

    assert "map: When do its windows end, beside its checkpoints?" in inference.unknown
    assert "state-per-record" not in inference.document["job"]["map"]["window"]


def test_the_first_stage_in_a_source_is_a_window_of_it(windowed):
    """Its rows leave before each barrier."""
    inference = windowed("LocalWindowAggregate(window=[TUMBLE(time_col=[t], size=[10 s])])", name="src")

    assert tuple(inference.document["job"]["src"]["window"][key] for key in ("tumbling", "stage")) == ("10 s", "local")
    assert not inference.not_modelled


def test_a_window_in_a_source_is_named(windowed):
    text = "WindowAggregate(window=[TUMBLE(time_col=[t], size=[10 s])])"

    assert any("the window of 'src'" in what for what in windowed(text, name="src").not_modelled)


@pytest.mark.parametrize(
    ("every_ms", "sizes", "is_seen"),
    [
        (4300.0, [round(4e6 * (1 - math.exp(-k / 5))) for k in range(1, 15)], False),  # keys come, ever fewer are new
        (4000.0, [500_000 * (1 + k % 5) + k for k in range(16)], True),
    ],
    ids=["it fills", "it fires"],
)
def test_state_that_only_rises_is_that_of_no_window(monkeypatch, every_ms, sizes, is_seen):
    """Checkpoints 4.3 s apart rise along windows of 4 s as along a curve that fills; one tooth takes fourteen of them."""
    monkeypatch.setattr(windows, "_sizes", lambda *_: [(every_ms * k, size) for k, size in enumerate(sizes)])
    vertex = SimpleNamespace(inputs=[SimpleNamespace(ship="HASH")])

    assert is_seen == (timers_of(SimpleNamespace(), vertex) is not None)
