"""Points of a sweep: combinations, values that change together, and texts of values."""

from fractions import Fraction

import pytest
from ruamel.yaml import YAML

from sim.model.schema.reference import json_schema, schema_text
from sim.model.schema.text import Reading, ScenarioError
from sim.studies.sweeps.design import SweepDocument, combinations, override, text_of, together
from tests.places import ROOT
from tests.studies.sweeps.file.test_definition import ANSWER, W, defined  # noqa: F401 - a fixture

ALIGNED = "set: {checkpoint.barriers: aligned}\n"


def test_the_last_key_varies_fastest():
    assert combinations({"a": [1, 2], "b": [3, 4]}) == [
        {"a": 1, "b": 3},
        {"a": 1, "b": 4},
        {"a": 2, "b": 3},
        {"a": 2, "b": 4},
    ]


def test_keys_that_change_together_have_a_point_for_each_value():
    assert together({"a": [1, 2], "b": [3, 4]}, (), Reading("")) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]


@pytest.mark.parametrize(
    ("value", "text", "written"),
    [
        ("1 s", "1 s", 'k="1 s"'),
        (3, "3", "k=3"),
        (Fraction(1, 2), "0.5", "k=0.5"),
        (True, "true", "k=true"),
        (None, "null", "k=null"),
        ({"aligned-timeout": "1 s"}, "aligned-timeout 1 s", 'k={"aligned-timeout": "1 s"}'),
        ({"a": 1, "b": {"c": "x"}}, "a 1, b c x", 'k={"a": 1, "b": {"c": "x"}}'),
        ([1, "x"], '[1, "x"]', 'k=[1, "x"]'),
    ],
)
def test_a_value_is_a_text_in_tables_and_json_in_a_scenario(value, text, written):
    assert (text, written) == (text_of(value), override("k", value))


def test_a_definition_knows_its_scenarios(defined):  # noqa: F811
    found = defined(
        "set: {checkpoint.barriers: {aligned-timeout: 1 s}, checkpoint.interval: 3 s}\nvary: {run.seed: [1, 2]}"
    )

    assert (found.load, found.question, found.warnings) == ("", None, ())
    assert [scenario.name for scenario in found.scenarios] == ["sweep"] * 2


def test_points_are_made_of_all_that_varies(defined):  # noqa: F811
    """What is listed first varies slowest; then keys that change together."""
    found = defined(
        "set: {checkpoint.barriers: aligned}\nvary: {checkpoint.interval: [1 s, 2 s]}\n"
        "together: [{checkpoint.timeout: [1 min, 2 min], checkpoint.min-pause: [0 s, 1 s]}]"
    )
    axes = [dict(scenario.axes) for scenario in found.scenarios]

    assert [own["checkpoint.interval"] for own in axes] == ["1 s"] * 2 + ["2 s"] * 2
    assert [own["checkpoint.timeout"] for own in axes] == ["1 min", "2 min"] * 2
    assert [own["checkpoint.min-pause"] for own in axes] == ["0 s", "1 s"] * 2


def test_seeds_vary_fastest(defined):  # noqa: F811
    """Wherever they are listed, with windows and keys that change together too."""
    text = (
        "set: {checkpoint.barriers: aligned}\nvary: {checkpoint.interval: [1 s, 2 s], run.seed: [5, 6, 7]}\n"
        "together: [{checkpoint.timeout: [1 min, 2 min], checkpoint.min-pause: [0 s, 1 s]}]\n"
        + W
        + ", length: 1 s, at: [1 s, 4 s]}"
    )
    found = [dict(scenario.axes) for scenario in defined(text).scenarios]
    expected = [
        (window, interval, seed, timeout)
        for window in ("1 s", "4 s")
        for interval in ("1 s", "2 s")
        for timeout in ("1 min", "2 min")
        for seed in ("5", "6", "7")
    ]

    assert expected == [
        (own["window"], own["checkpoint.interval"], own["run.seed"], own["checkpoint.timeout"]) for own in found
    ]


@pytest.mark.parametrize(
    ("below", "message"),
    [
        (
            ALIGNED + "vary: {run.seed: [1, 2, 3], checkpoint.interval: [1 s, 2 s]}\nmost: 5",
            "asks for 6 combinations, at most 5 are allowed: write most: 6",
        ),
        (
            ALIGNED + "vary: {run.seed: [1, 2, 3]}\n" + W + ", length: 1 s, at: [1 s, 4 s]}\nmost: 5",
            "asks for 6 combinations, at most 5 are allowed (t.csv: 10 s, 11 rows, times in seconds; 2 windows of 1 s): write most: 6",
        ),
        (
            "vary: {checkpoint.interval: [1 s, 2 s]}\nreplications: 3\nmost: 11",
            "sweep.yaml:5:1: replications: asks for 12 runs of all",
        ),
        (
            "vary: {checkpoint.interval: [1 s, 2 s], run.replications: [3]}\nmost: 11",
            "asks for 12 runs of all combinations",
        ),
    ],
)
def test_more_runs_than_are_meant_are_refused(defined, below, message):  # noqa: F811
    """As many as are meant are not."""
    with pytest.raises(ScenarioError) as refused:
        defined(below)

    assert message in str(refused.value)
    assert defined(below.replace("most: 5", "most: 6").replace("most: 11", "most: 12")).scenarios


def test_combinations_beyond_counting_are_refused_before_they_are_made(defined):  # noqa: F811
    """They would fill any memory."""
    values = list(range(1, 2001))
    keys = ("run.replications", "checkpoint.num-retained", "checkpoint.max-concurrent", "checkpoint.tolerated-failures")

    with pytest.raises(ScenarioError, match="asks for 16000000000000 combinations, at most 20000 are allowed"):
        defined(f"vary: {{{', '.join(f'{key}: {values}' for key in keys)}}}")


def test_a_question_compares_all_that_varies_beside_its_windows(defined):  # noqa: F811
    """In the order of the axes; what it is sorted by is no setting, and the reference has the values of the settings in their order."""
    found = defined(
        W
        + ", length: 1 s, at: [1 s, 4 s]}\nvary: {checkpoint.interval: [1 s, 2 s], checkpoint.timeout: [1 min, 2 min]}\n"
        "answer: {by: checkpoint.timeout, show: [completed, failed], against: {checkpoint.barriers: aligned, checkpoint.interval: 2 s}}"
    ).question

    assert found.settings == ("checkpoint.interval", "checkpoint.barriers")
    assert found.against == (("checkpoint.interval", "2 s"), ("checkpoint.barriers", "aligned"))
    assert (found.show, found.least, found.limits, found.by) == (
        ("completed", "failed"),
        "",
        (),
        "checkpoint.timeout",
    )


SWEEPS = ROOT / "scenarios" / "sweeps"
FILES = sorted(SWEEPS.glob("*.yaml"))


@pytest.fixture(scope="module")
def validator():
    return pytest.importorskip("jsonschema").Draft202012Validator(json_schema(SweepDocument, "ckptsim sweep"))


def test_the_committed_schema_of_sweeps_is_current():
    """Written by `ckptsim schema --sweep`; regenerate it when the document changes."""
    assert schema_text(SweepDocument, "ckptsim sweep") == (SWEEPS / "sweep.schema.json").read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_committed_sweep_meets_its_schema(file, validator):
    assert list(validator.iter_errors(YAML(typ="safe", pure=True).load(file))) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"vari": {"run.seed": [1]}},
        {"replications": 0},
        {"together": []},
        {"windows": {"source": "s", "trace": "t.csv", "column": "v", "length": 5, "every": "5 s"}},
        {"answer": {"show": []}},
    ],
)
def test_the_schema_refuses_what_is_refused_when_read(validator, wrong):
    sound = {"scenario": "job.yaml", "vary": {"run.seed": [1, 2]}}

    assert list(validator.iter_errors(sound)) == []
    assert list(validator.iter_errors(sound | wrong))
