"""Windows of a trace: what each changes of the scenario, and what is said of all of them before anything runs."""

from pathlib import Path

import pytest

from sim.model.schema.text import Reading, compose
from sim.studies.sweeps import sweep_file as room
from sim.studies.sweeps.design import Windows
from sim.studies.sweeps.sweep_file import WindowPlan, plan_windows
from tests.studies.sweeps.file.test_definition import defined  # noqa: F401 - a fixture


@pytest.fixture
def cut(tmp_path):
    """``cut(every="3 s", ...)`` -> (windows, problems) of a trace of 11 rows, a second apart.  The scenario is in another folder."""
    (tmp_path / "t.csv").write_text("t,rate\n" + "".join(f"{at},{100 + 10 * at}\n" for at in range(11)))
    (tmp_path / "jobs").mkdir()

    def found(label="", **keys):
        reading = Reading("sweep.yaml")
        compose("windows: {}", reading)
        given = Windows.model_validate({"source": "src", "trace": "t.csv"} | keys)
        return plan_windows(given, tmp_path, tmp_path / "jobs", reading, label), [
            problem.message for problem in reading.problems
        ]

    return found


def rate(plan, i=0):
    return plan.windows[i].changes["job.src.source.rate"]


def test_a_window_is_a_piece_of_the_rate(cut):
    """As a scenario has it, seen from the scenario's folder; its run is as long."""
    plan, problems = cut(length="4 s", every="3 s")

    assert problems == []
    assert [window.name for window in plan.windows] == ["0 s", "3 s", "6 s"]
    assert {"trace": str(Path("..") / "t.csv"), "column": "rate", "from": "3 s"} == rate(plan, 1)
    assert [window.changes["run.duration"] for window in plan.windows] == ["4 s"] * 3
    assert plan.description == "t.csv: 10 s, 11 rows, times in seconds; 3 windows of 4 s"


def test_how_the_trace_is_read_is_passed_on(cut):
    """And nothing that the sweep file does not say."""
    plan, _ = cut(length="4 s", at=["1 s"], column="rate", step="2 s", scale=0.5)

    assert rate(plan) == {"trace": "../t.csv", "column": "rate", "every": "2 s", "scale": "0.5", "from": "1 s"}
    plan, _ = cut(length="4 s", at=["1 s"], time="t", **{"time-unit": "s"}, zone="Europe/Berlin")
    assert rate(plan) == {
        "trace": "../t.csv",
        "column": "rate",
        "time": "t",
        "time-unit": "s",
        "zone": "Europe/Berlin",
        "from": "1 s",
    }


@pytest.mark.parametrize(
    ("keys", "starts"),
    [
        ({"length": "11 s"}, ["0 s"]),
        ({"length": "5 s", "every": "6 s"}, ["0 s", "6 s"]),
        ({"length": "5 s", "every": "5 s"}, ["0 s", "5 s"]),
        ({"length": "5 s", "every": "6000000001 ns"}, ["0 s"]),
        ({"length": "1 s", "every": "1 s", "most": 3}, ["0 s", "3 s", "7 s"]),
        ({"length": "1 s", "every": "5 s", "most": 9}, ["0 s", "5 s", "10 s"]),
        ({"length": "1 s", "every": "5 s", "most": 3}, ["0 s", "5 s", "10 s"]),
        ({"length": "1 s", "at": ["10 s"]}, ["10 s"]),
    ],
)
def test_windows_begin_where_they_fit(cut, keys, starts):
    """The last row lasts a second; of more windows than are wanted those that are evenly spread."""
    plan, problems = cut(**({"every": "11 s"} if "at" not in keys else {}) | keys)

    assert ([], starts) == (problems, [window.name for window in plan.windows])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"length": "12 s", "every": "1 s"}, "less than one window of 12 s"),
        ({"length": "2 s", "at": ["0 s", "10 s"]}, "the window '10 s' of 2 s is not within"),
        ({"length": "2 s", "at": ["10 s"]}, "begin at 9 s or before"),
        ({"length": "1 min", "at": ["0 s"]}, "write a shorter length:"),
        ({"length": "11 s", "at": ["1 s"]}, "begin at 0 s or before"),
    ],
)
def test_windows_that_do_not_fit_are_refused(cut, keys, message):
    plan, (problem,) = cut(**keys)

    assert WindowPlan([]) == plan
    assert message in problem


@pytest.mark.parametrize(("most", "refused"), [(5, True), (6, False)])
def test_many_windows_at_a_distance_are_meant_or_a_mistake(cut, monkeypatch, most, refused):
    monkeypatch.setattr(room, "MAX_IMPLICIT_WINDOWS", most)
    plan, problems = cut(length="1 s", every="2 s")

    assert (0 if refused else 6) == len(plan.windows)
    assert refused == any(problem.startswith("6 windows, 2 s apart: ") for problem in problems)


TABLES = {
    "lengths": "window,from_s,length_s,file\na,0,2,a.csv\nb,1.5,3,b.csv\n",
    "one": "window,from_s,length_s,file\na,0,2,a.csv\n",
    "same": "window,from_s,length_s,file\na,0,2,a.csv\nb,1,2,a.csv\n",
}


@pytest.mark.parametrize(
    ("table", "description"),
    [("lengths", "2 windows of 2 s to 3 s, of 2 traces"), ("one", "1 window of 2 s"), ("same", "2 windows of 2 s")],
)
def test_a_table_of_windows_says_how_many_how_long_and_of_how_many_traces(cut, tmp_path, table, description):
    (tmp_path / "w.csv").write_text(TABLES[table])
    plan, problems = cut(trace=None, file="w.csv")

    assert ([], f"w.csv: {description}") == (problems, plan.description)


def test_what_a_table_changes_goes_before_what_the_window_is(cut, tmp_path):
    """An empty cell changes nothing, and a label is no change."""
    (tmp_path / "w.csv").write_text(
        "window,from_s,load,run.duration,checkpoint.timeout\na,0,low,9 s,1 min\nb,2,high,,\n"
    )
    plan, _ = cut("load", length="2 s", file="w.csv")

    assert [window.changes["run.duration"] for window in plan.windows] == ["9 s", "2 s"]
    assert [window.changes.get("checkpoint.timeout") for window in plan.windows] == ["1 min", None]
    assert [window.labels for window in plan.windows] == [(("load", "low"),), (("load", "high"),)]
    unlabelled, _ = cut("size", length="2 s", file="w.csv")
    assert [window.labels for window in unlabelled.windows] == [(), ()]


def test_a_window_at_the_end_of_a_table_s_trace_fits(cut, tmp_path):
    """Its last row lasts as long as the one before; a nanosecond more does not fit."""
    (tmp_path / "w.csv").write_text("window,from_s\na,9\n")
    assert (len((found := cut(length="2 s", file="w.csv"))[0].windows), found[1]) == (1, [])
    (tmp_path / "w.csv").write_text("window,from_s\na,9.000000001\n")

    assert "is not within" in cut(length="2 s", file="w.csv")[1][0]


@pytest.mark.parametrize("value", ["1e400", "nan", "soon"])
def test_a_beginning_that_is_no_time_is_refused(cut, tmp_path, value):
    (tmp_path / "w.csv").write_text(f"window,from_s\na,{value}\n")

    assert f"w.csv:2: '{value}' is not a time in seconds" in cut(length="2 s", file="w.csv")[1][0]


def test_a_trace_whose_rows_are_far_apart_may_be_of_another_unit(tmp_path, cut):
    """Ten windows between two rows have one rate: its times are milliseconds, or it is no trace for them."""
    (tmp_path / "t.csv").write_text("t,rate\n" + "".join(f"{1000 * at},100\n" for at in range(11)))

    assert (
        "; if its times are milliseconds write time-unit: ms; 1 window of 2 s"
        in cut(length="2 s", at=["0 s"])[0].description
    )
    assert "milliseconds write" not in cut(length="2 s", at=["0 s"], **{"time-unit": "s"})[0].description
    assert "milliseconds write" not in cut(length="1000 s", at=["0 s"])[0].description


def test_a_mistake_in_a_window_stands_at_the_windows(defined):  # noqa: F811
    """Its text is in no line of the sweep file."""
    from sim.model.schema.text import ScenarioError

    with pytest.raises(ScenarioError, match=r"sweep\.yaml:4:1: .*there is no vertex 'nobody'"):
        defined("windows: {source: nobody, trace: t.csv, column: v, length: 1 s, every: 5 s}")
