"""Sweep files: what they ask for, and what is wrong with them."""

from collections import Counter
from fractions import Fraction

import pytest

from sim.model.schema.text import ScenarioError
from sim.studies.sweeps.sweep_file import define
from tests.conftest import STUDY

W = "windows: {source: source, trace: t.csv, column: v"


@pytest.fixture
def defined(tmp_path):
    """The definition of a sweep over the tiny job, given what stands below `scenario:`."""

    def read(below, *overrides):
        (tmp_path / "job.yaml").write_text(STUDY)
        (tmp_path / "t.csv").write_text("t,v\n" + "".join(f"{at},{100 + 10 * at}\n" for at in range(11)))
        (tmp_path / "sweep.yaml").write_text(f"# Which one?\nversion: 1\nscenario: job.yaml\n{below}\n")
        return define(tmp_path / "sweep.yaml", overrides)

    return read


def test_an_axis_given_from_outside_takes_the_place_of_the_one_in_the_file(defined):
    """A list over a value of `vary` ended in a KeyError when all cells had run."""
    found = defined(
        "vary: {checkpoint.interval: [1 s, 2 s]}\nset: {checkpoint.barriers: aligned}", "checkpoint.interval=[3 s, 4 s]"
    )

    assert [dict(scenario.axes)["checkpoint.interval"] for scenario in found.scenarios] == ["3 s", "4 s"]
    with pytest.raises(ScenarioError, match="'2 s' is not among the values of"):
        defined(
            "vary: {checkpoint.interval: [1 s, 2 s]}\nset: {checkpoint.barriers: aligned}\n"
            "answer: {show: [completed], against: {checkpoint.interval: 2 s}}",
            "checkpoint.interval=3 s",
        )
    with pytest.raises(ScenarioError, match="changes in the file together with others"):
        defined("together: [{checkpoint.interval: [1 s], checkpoint.timeout: [1 min]}]", "checkpoint.interval=3 s")


def axes(defined, name):
    return [dict(scenario.axes)[name] for scenario in defined.scenarios]


def test_every_combination(defined):
    """Also with the lists of the scenario; each run knows the values that tell it apart, as they were written."""
    found = defined("vary: {checkpoint.interval: [1 s, 2000 ms], checkpoint.timeout: [1 min, 2 min, 3 min]}")

    assert (found.text, found.name, len(found.scenarios)) == ("Which one?", "sweep", 12)
    assert Counter(axes(found, "checkpoint.interval")) == {"1 s": 6, "2000 ms": 6}
    assert Counter(axes(found, "checkpoint.barriers")) == {"aligned": 6, "unaligned": 6}
    assert [scenario.checkpoint.interval_ns for scenario in found.scenarios] == [10**9] * 6 + [2 * 10**9] * 6


def test_what_all_runs_have_in_common(defined):
    """Another value than the scenario's, in place of a list, too; it is no axis.  What stands on the command line goes before it."""
    found = defined("set: {checkpoint.barriers: aligned, run.duration: 3 s}\nvary: {checkpoint.interval: [1 s, 2 s]}")

    assert [axis for run in found.scenarios for axis in run.axes] == [
        ("checkpoint.interval", "1 s"),
        ("checkpoint.interval", "2 s"),
    ]
    assert {3 * 10**9} == {scenario.run.duration_ns for scenario in found.scenarios}
    assert {4 * 10**9} == {
        scenario.run.duration_ns for scenario in defined("set: {run.duration: 3 s}", "run.duration=4 s").scenarios
    }


def test_windows_of_a_table_change_what_they_name(defined, tmp_path):
    """A column with a dot is a key of the scenario; features have none."""
    (tmp_path / "w.csv").write_text("window,from_s,mean,checkpoint.timeout\nquiet,0,105,1 min\nbusy,5.5,155,2 min\n")
    found = defined(W + ", length: 2 s, file: w.csv}")

    assert axes(found, "window") == ["quiet", "quiet", "busy", "busy"]
    assert [scenario.checkpoint.timeout_ns // 10**9 for scenario in found.scenarios] == [60, 60, 120, 120]
    assert Fraction(75) == found.scenarios[2].job.vertices[0].source.rates[0].per_second


def test_windows_may_change_anything_but_a_source(defined, tmp_path):
    """Measured disks or failures have windows, too."""
    (tmp_path / "w.csv").write_text("window,from_s,checkpoint.timeout\nquiet,0,1 min\nbusy,5.5,2 min\n")
    found = defined("windows: {length: 2 s, file: w.csv}")

    assert [scenario.checkpoint.timeout_ns // 10**9 for scenario in found.scenarios] == [60, 60, 120, 120]
    assert {2 * 10**9} == {scenario.run.duration_ns for scenario in found.scenarios}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("window,from_s", "w.csv changes nothing of the scenario: write source: in the sweep file"),
        ("window,from_s,file", "w.csv names traces: write source: in the sweep file"),
    ],
)
def test_windows_that_change_nothing_are_refused(defined, tmp_path, columns, message):
    """Else all of them were the same run."""
    (tmp_path / "w.csv").write_text(f"{columns}\nquiet,0{',t.csv' * columns.endswith('file')}\n")

    with pytest.raises(ScenarioError, match=message):
        defined("windows: {length: 2 s, file: w.csv}")


def test_windows_are_sorted_by_a_column_of_their_table(defined, tmp_path):
    """Only the one that is asked for; it is no setting."""
    (tmp_path / "w.csv").write_text("window,from_s,mean,load\nnight,0,105,low\nnoon,5.5,155,high\n")
    found = defined(W + ", length: 2 s, file: w.csv}\nanswer: {by: load, show: [completed]}")

    assert axes(found, "load") == ["low", "low", "high", "high"]
    assert [axis for axis, _ in found.scenarios[0].axes] == ["window", "load", "checkpoint.barriers"]
    assert (
        found.question.by,
        found.question.settings,
    ) == ("load", ("checkpoint.barriers",))


def test_a_table_of_windows_may_name_the_traces(defined, tmp_path):
    """As `ckptsim traces windows` writes it: relative to the table, with the length; what the sweep file says comes first."""
    (tmp_path / "cut").mkdir()
    for name, rate in (("a", 100), ("b", 300)):
        (tmp_path / "cut" / f"{name}.csv").write_text(f"t_s,rate\n0,{rate}\n5,{2 * rate}\n9,1\n")
    (tmp_path / "cut" / "w.csv").write_text("window,trace,from_s,length_s,file\na 5 s,a,5,2,a.csv\nb 0 s,b,0,2,b.csv\n")
    found = defined("windows: {source: source, file: cut/w.csv}")

    assert axes(found, "window")[::2] == ["a 5 s", "b 0 s"]
    assert [found.scenarios[i].job.vertices[0].source.rates[0].per_second for i in (0, 2)] == [100, 150]
    assert {2 * 10**9} == {scenario.run.duration_ns for scenario in found.scenarios}
    assert {3 * 10**9} == {
        run.run.duration_ns for run in defined("windows: {source: source, file: cut/w.csv, length: 3 s}").scenarios
    }


def test_a_scenario_is_a_sweep_over_its_own_lists(defined, tmp_path):
    defined("")
    found = define(tmp_path / "job.yaml", ["checkpoint.interval=[1 s, 2 s]"])

    assert (found.text, len(found.scenarios)) == ("Does it matter how barriers travel?", 4)


def test_overrides_hold_for_all_runs(defined):
    assert {7} == {
        scenario.run.seed for scenario in defined("vary: {checkpoint.interval: [1 s, 2 s]}", "run.seed=7").scenarios
    }


@pytest.mark.parametrize(
    ("below", "message"),
    [
        ("vary: {checkpoint.intervall: [1 s]}", "sweep.yaml:4:8: checkpoint.intervall: unknown key 'intervall' (did"),
        ("vary: {checkpoint.interval: [1 s, 10]}", "sweep.yaml:4:8: checkpoint.interval: a duration needs a unit"),
        (
            "set: {checkpoint.interval: 1 s}\nvary: {checkpoint.interval: [1 s]}",
            "sweep.yaml:4:7: set.checkpoint.interval: 'checkpoint.interval' varies",
        ),
        ("set: {checkpoint.interval: 1}", "sweep.yaml:4:7: checkpoint.interval: a duration needs a unit"),
        ("vary: {checkpoint.interval: []}", "sweep.yaml:4:8: vary.checkpoint.interval: is empty"),
        ("vary: {checkpoint.interval: 1 s}", "sweep.yaml:4:8: vary.checkpoint.interval: expected a list"),
        ("axes: {}", "sweep.yaml:4:1: axes: unknown key 'axes': write vary:"),
        (
            "together: [{a.b: [1, 2], c.d: [1]}]",
            "keys that change together have equally many values: a.b has 2, c.d has 1",
        ),
        ("vary: {a.b: [1]}\ntogether: [{a.b: [1, 2]}]", "'a.b' is varied twice"),
        (W + ", length: 1 s}", "sweep.yaml:4:1: windows: write exactly one of every, at and file"),
        (
            W + ", length: 1 min, every: 1 s}",
            "t.csv has 10 s, 11 rows, times in seconds, less than one window of 1 min",
        ),
        ("windows: {source: source, trace: t.csv, column: w, length: 1 s, every: 1 s}", "has no column 'w'"),
        ("windows: {source: source, trace: u.csv, column: v, length: 1 s, every: 1 s}", "no such file"),
        ("windows: {source: nobody, trace: t.csv, column: v, length: 1 s, every: 1 s}", "there is no vertex 'nobody'"),
        (W + ", length: 1 s, file: t.csv}", "t.csv has no column 'window'"),
        ("windows: {source: source, column: v, length: 1 s, every: 1 s}", "sweep.yaml:4:1: windows: trace is missing"),
        ("windows: {length: 1 s, every: 1 s}", "sweep.yaml:4:1: windows: source is missing"),
        ("windows: {trace: t.csv, length: 1 s, file: w.csv}", "sweep.yaml:4:11: windows.trace: needs source"),
        (W + ", every: 1 s}", "sweep.yaml:4:1: windows: length is missing"),
        (
            f"vary: {{run.seed: {list(range(200))}, checkpoint.num-retained: {list(range(1, 201))}}}",
            "asks for 40000 combinations",
        ),
    ],
)
def test_mistakes_are_told_where_they_stand(defined, below, message):
    with pytest.raises(ScenarioError) as refused:
        defined(below)

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("window,from_s\na,0\na,1\n", "w.csv:3: the window 'a' is there already"),
        ("window,from_s\na,soon\n", "w.csv:2: 'soon' is not a time in seconds"),
        ("window,from_s\na,-1\n", "w.csv:2: -1 s is before the first row of the trace"),
        ("window,from_s\na,99\n", "it has 10 s, 11 rows, times in seconds; begin at 10 s or before"),
        ("window,from_s\n", "w.csv has no windows"),
        ("window,start\na,1\n", "w.csv has no column 'from_s'"),
        (
            "window,from_s,file\na,0,t.csv\nb,0,u.csv\n",
            "w.csv:3: windows of several traces, and the sweep file names one: leave",
        ),
    ],
)
def test_tables_of_windows_that_cannot_be_used(defined, tmp_path, table, message):
    (tmp_path / "w.csv").write_text(table)

    with pytest.raises(ScenarioError) as refused:
        defined(W + ", length: 1 s, file: w.csv}")

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("window,from_s,length_s\na,0,1\n", "w.csv has no column 'file': write trace: in the sweep file"),
        ("window,from_s,file\na,0,t.csv\n", "w.csv has no column 'length_s': write length: in the sweep file"),
        ("window,from_s,length_s,file\na,0,1,\n", "w.csv:2: 'a' names no file"),
        ("window,from_s,length_s,file\na,0,long,t.csv\n", "w.csv:2: 'long' is not a time in seconds"),
        ("window,from_s,length_s,file\na,0,1,u.csv\n", "no such file"),
    ],
)
def test_tables_that_leave_out_what_the_sweep_file_does_not_say(defined, tmp_path, table, message):
    (tmp_path / "w.csv").write_text(table)

    with pytest.raises(ScenarioError) as refused:
        defined("windows: {source: source, file: w.csv}")

    assert message in str(refused.value)


ANSWER = "vary: {checkpoint.interval: [1 s, 2 s]}\nanswer: {show: [completed], %s}"


def test_a_question(defined):
    """Settings are all that varies unless it says otherwise; limits are in the unit of their column."""
    found = defined(
        ANSWER % "least: end_to_end_p50_ms, limits: {completed: '> 1'}, settings: [checkpoint.interval]"
    ).question

    assert (found.settings, found.least) == (("checkpoint.interval",), "end_to_end_p50_ms")
    assert [(limit.column, limit.at_least) for limit in found.limits] == [("completed", 1.0)]


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (
            "least: end_to_end_ms",
            "answer.least: 'end_to_end_ms' is no column of the results with numbers (did you mean",
        ),
        ("limits: {completed: '> 1 s'}", "sweep.yaml:5:38: answer.limits.completed"),
        ("limits: {complete: '> 1'}", "'complete' is no column"),
        (
            "settings: [checkpoint.intervall]",
            "'checkpoint.intervall' does not vary (did you mean 'checkpoint.interval'?); these do: checkpoint.interval, ",
        ),
        ("by: checkpoint.barrier, settings: [checkpoint.interval]", "(did you mean 'checkpoint.barriers'?)"),
        (
            "by: checkpoint.timeout",
            "'checkpoint.timeout' neither varies beside the settings nor is it a column of a table of windows",
        ),
        ("by: checkpoint.barriers, settings: [checkpoint.barriers]", "'checkpoint.barriers' neither varies beside"),
        (
            "against: {checkpoint.interval: 1 s}",
            "has no value for checkpoint.barriers: names one value of each setting: checkpoint.interval",
        ),
        (
            "against: {run.seed: 1, run.duration: 2}",
            "has no value for checkpoint.interval, checkpoint.barriers; run.duration, run.seed are no settings",
        ),
        (
            "against: {checkpoint.interval: 1 s, checkpoint.barriers: aligned, run.seed: 1}",
            "run.seed is no setting: names one value of each setting",
        ),
        ("against: {checkpoint.interval: 3 s, checkpoint.barriers: aligned}", "'3 s' is not among the values"),
        (
            "least: throughput_per_second",
            "answer.least: of 'throughput_per_second' less is worse: write a limit for it ('> ...')",
        ),
    ],
)
def test_questions_that_cannot_be_answered(defined, rest, message):
    """They are told before anything runs."""
    with pytest.raises(ScenarioError) as refused:
        defined(ANSWER % rest)

    assert message in str(refused.value)


DAY = range(0, 86_400, 60)
EPOCH_S = 1_700_000_000


def rate_of(at_s):
    return 317 if at_s < 6 * 3600 else 951 if at_s < 15 * 3600 else 1585


@pytest.fixture
def over_a_day(tmp_path):
    """The definition of a sweep over a day of one row per minute, by how times are written and which windows are asked for."""

    def read(written, keys, header="Time,value"):
        (tmp_path / "job.yaml").write_text(STUDY)
        (tmp_path / "day.csv").write_text(f"{header}\n" + "".join(f"{written(at)},{rate_of(at)}\n" for at in DAY))
        (tmp_path / "sweep.yaml").write_text(
            "scenario: job.yaml\nset: {checkpoint.barriers: aligned}\n"
            f"windows: {{source: source, trace: day.csv, length: 6 min, {keys}}}\n"
        )
        return define(tmp_path / "sweep.yaml")

    return read


WRITTEN = {
    "seconds": (lambda at: at, "seconds", ""),
    "epoch seconds": (lambda at: EPOCH_S + at, "epoch seconds", ""),
    "epoch milliseconds": (lambda at: (EPOCH_S + at) * 1000, "epoch milliseconds", ""),
    "epoch nanoseconds": (lambda at: (EPOCH_S + at) * 10**9, "epoch nanoseconds", ""),
    "milliseconds from 0": (lambda at: at * 1000, "milliseconds", ", time-unit: ms"),
    "dates": (lambda at: f"2023-11-14T{at // 3600:02}:{at // 60 % 60:02}:00+01:00", "ISO 8601", ""),
    "dates without a zone": (
        lambda at: f"2023-11-14 {at // 3600:02}:{at // 60 % 60:02}",
        "ISO 8601 without a zone, taken as UTC",
        "",
    ),
}


@pytest.mark.parametrize("way", WRITTEN)
def test_the_same_day_is_the_same_load_however_its_times_are_written(over_a_day, way):
    """A day in epoch milliseconds gave the night's load in each window, and eight windows were 15,990."""
    written, description, unit = WRITTEN[way]
    found = over_a_day(written, f"at: [3 h, 9 h, 20 h]{unit}")

    assert [run.job.vertex("source").source.rates[0].per_second * 2 for run in found.scenarios] == [317, 951, 1585]
    assert (
        f"day.csv: 24 h, 1,440 rows, times in {description}; 3 windows of 6 min; 6 runs, 3 of them without checkpoints"
        == found.load
    )
    assert len(over_a_day(written, f"every: 3 h{unit}").scenarios) == 8


@pytest.mark.parametrize(
    ("written", "keys", "message"),
    [
        (
            lambda at: at * 1000,
            "every: 3 h",
            "8,000 windows, 3 h apart: .*day.csv has 999 d, 1,440 rows, times in seconds; .* write time-unit: ms",
        ),
        (
            lambda at: "14.11.2023",
            "every: 3 h",
            "day.csv:2: '14.11.2023' is not a time: seconds, milliseconds since 1970, or ISO 8601, with the year first, such as",
        ),
    ],
    ids=["milliseconds from 0", "another date"],
)
def test_windows_that_are_not_meant_are_refused(over_a_day, written, keys, message):
    with pytest.raises(ScenarioError, match=message):
        over_a_day(written, keys)


def test_a_load_in_another_unit_is_refused_until_its_scale_is_written(over_a_day):
    with pytest.raises(ScenarioError, match=r"'cpu_percent' is per cent by its name, not a rate of records: query "):
        over_a_day(lambda at: at, "column: cpu_percent, at: [3 h]", header="t,cpu_percent")
    found = over_a_day(lambda at: at, "column: cpu_percent, scale: 10, at: [3 h]", header="t,cpu_percent")

    assert found.scenarios[0].job.vertex("source").source.rates[0].per_second * 2 == 3170


def test_more_combinations_than_usual_are_meant(defined):
    """By a word of the file; without it they may be a slip."""
    vary = f"set: {{checkpoint.barriers: aligned}}\nvary: {{run.seed: [{', '.join(map(str, range(20_001)))}]}}"

    with pytest.raises(
        ScenarioError,
        match="asks for 20001 combinations, at most 20000 are allowed: write most: 20001 if they are meant",
    ):
        defined(vary)
    assert len(defined(f"{vary}\nmost: 20001").scenarios) == 20_001
    with pytest.raises(
        ScenarioError, match=r"asks for 200010 runs .* at most 20001 are allowed: write most: 200010 if they are meant"
    ):
        defined(f"{vary}\nmost: 20001\nreplications: 10")
