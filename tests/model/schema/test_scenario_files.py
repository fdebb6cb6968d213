"""The committed scenarios and their schema."""

import json

import pytest

from sim.model.schema.reference import json_schema, schema_text
from sim.model.schema.study import load
from sim.model.schema.writer import SCHEMA_LINE
from tests.places import ROOT

SCENARIOS = ROOT / "scenarios"
FILES = sorted(SCENARIOS.glob("*.yaml"))


def test_the_committed_schema_is_current():
    """Written by `ckptsim schema`; regenerate it when the document changes."""

    assert schema_text() == (SCENARIOS / "ckptsim.schema.json").read_text()
    assert json_schema() == json_schema()


def records_due(scenario):
    """By all sources until the end of the run; no end: an unlimited source."""
    seconds = scenario.run.duration_ns / 10**9
    sources = [(vertex.source, vertex.parallelism) for vertex in scenario.job.vertices if vertex.source]
    fastest = [max((rate.per_second for rate in source.rates), default=10**9) * tasks for source, tasks in sources]
    return sum(fastest) * seconds


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_committed_scenario(path):
    """Names its schema, asks its question, loads without a warning, is small enough for a laptop."""
    lines = path.read_text().splitlines()
    study = load(path)

    assert lines[0] == SCHEMA_LINE
    assert study.question.endswith("?")
    assert lines[1] == f"# {study.question}"
    assert study.warnings == ()
    assert max(map(len, lines)) <= 140
    for scenario in study.scenarios:
        assert scenario.run.duration_ns <= 60 * 10**9 or records_due(scenario) <= 10**7
        assert max(vertex.parallelism for vertex in scenario.job.vertices) <= 8


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_committed_scenario_meets_the_schema(path):
    """What editors check agrees with what the loader accepts."""
    jsonschema = pytest.importorskip("jsonschema")
    from ruamel.yaml import YAML

    validator = jsonschema.Draft202012Validator(json_schema())

    assert list(validator.iter_errors(YAML(typ="safe", pure=True).load(path))) == []


def test_the_schema_refuses_what_the_loader_refuses():
    """Unknown keys, missing units, wrong words, keys that exclude each other or need another one."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json_schema())
    sound = {
        "job": {"a": {"source": {"rate": "1k/s", "record": "5 B"}}},
        "checkpoint": {"interval": "5 s"},
        "run": {"duration": "5 s"},
    }

    assert list(validator.iter_errors(sound)) == []
    for section, value in (
        ("run", {"duration": 5}),
        ("checkpoint", {"interval": "5 s", "barriers": "alligned"}),
        ("checkpoint", {"intervall": "5 s"}),
        ("checkpoint", {"interval": []}),
        ("cluster", {"profile": "1.2"}),
        ("storage", {"bandwidth": "5 MB"}),
        ("job", {"a": {"source": {"rate": "1k/s", "rate-per-subtask": "1k/s", "record": "5 B"}}}),
        ("actions", [{"at": "1 s"}]),
        ("job", {"a": {"source": {"rate": "1k/s", "records": 5, "records-per-subtask": 5, "record": "5 B"}}}),
        ("faults", [{"kill": "a", "at": "1 s", "lasts": "1 s"}]),
    ):
        assert list(validator.iter_errors(sound | {section: value})), (section, value)


def test_the_schema_is_plain_json():
    """No Python left in it: no nulls for keys that are not given."""

    assert "null" not in json.dumps(json_schema())
