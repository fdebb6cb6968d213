"""`environment:` of a scenario: by name or file, under `overheads:`, and every mistake at its place."""

from dataclasses import fields

import pytest

from sim.model.scenario import Overheads
from sim.model.schema.study import DEFAULT, environment_names, load_environment
from sim.model.schema.text import ScenarioError
from tests.scenarios import read_scenario

SCENARIO = """\
# Why?
job: {a: {source: {rate: 1/s, record: 1 kB}}}
checkpoint: {interval: 10 s}
run: {duration: 10 s}
"""


def written(tmp_path, **values_ms):
    """A file with every constant at 1 ms, or as given."""
    keys = [field.name.removesuffix("_ns") for field in fields(Overheads)]
    lines = [f"  {key.replace('_', '-')}: {{value: {values_ms.get(key, 1)} ms}}" for key in keys]
    file = tmp_path / "mine.yaml"
    file.write_text("version: 1\nconstants:\n" + "\n".join(lines) + "\n")
    return file


def overheads(text, folder="."):
    return read_scenario(SCENARIO + text, folder=folder).overheads


def test_a_name_is_one_of_those_that_come_along():
    assert DEFAULT in environment_names()
    assert load_environment(DEFAULT) == overheads(f"environment: {DEFAULT}\n")


def test_a_file_is_looked_for_beside_the_scenario(tmp_path):
    """And `overheads:` says what is other than there."""
    written(tmp_path, close=7)

    assert overheads("environment: mine.yaml\n", tmp_path).close_ns == 7_000_000
    assert overheads("environment: ./mine.yaml\n", tmp_path).fail_ns == 1_000_000
    assert overheads("environment: mine.yaml\noverheads: {close: 9 ms}\n", tmp_path).close_ns == 9_000_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "environment: flink-2-lopback\n",
            "scenario:5:1: environment: there is no environment 'flink-2-lopback' (did you mean",
        ),
        ("environment: nowhere.yaml\n", "nowhere.yaml: no such file"),
        ("environment: 3\n", "scenario:5:1: environment: expected text"),
    ],
)
def test_one_that_does_not_exist(text, says):
    with pytest.raises(ScenarioError) as raised:
        overheads(text)

    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  close: {value: 1 ms}\n", "", "mine.yaml:2:1: constants.close: required key is missing"),
        ("close: {value: 1 ms}", "close: {value: 1}", "mine.yaml:8:11: constants.close.value: "),
        ("close: {", "clos: {", "unknown key 'clos' (did you mean 'close'?)"),
        ("version: 1", "version: 2", "mine.yaml:1:1: version: expected 1"),
        ("constants:", "overheads:", "did you mean 'constants'?"),
        (
            "close: {value: 1 ms}",
            "close: {value: 1 ms, interval: [1 ms]}",
            "mine.yaml:8:24: constants.close.interval: ",
        ),
    ],
)
def test_mistakes_in_the_file_are_told_where_they_stand(tmp_path, old, new, says):
    """Nothing is filled in: a constant that is missing is one the file knows nothing of."""
    file = written(tmp_path)
    file.write_text(file.read_text().replace(old, new))

    with pytest.raises(ScenarioError) as raised:
        overheads("environment: mine.yaml\n", tmp_path)

    assert says in str(raised.value)


def test_a_file_that_is_none(tmp_path):
    for content in ("", "- 1\n", "just text\n"):
        (tmp_path / "mine.yaml").write_text(content)
        with pytest.raises(ScenarioError, match="is not an environment"):
            load_environment("mine.yaml", tmp_path)
