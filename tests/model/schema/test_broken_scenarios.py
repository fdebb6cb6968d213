"""Every mistake is told with its place and what to write, and never with a traceback."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.schema.sections import Section, validate_as
from sim.model.schema.study import load, loads
from sim.model.schema.text import Mapping, Reading, ScenarioError
from sim.model.value_types import Size
from tests.model.schema import broken

# Every mistake is told with its place, all of them in one go, and never with a traceback.


def outcome(text, *overrides):
    """Scenarios or problems."""
    try:
        return loads(text, overrides=overrides).scenarios
    except ScenarioError as error:
        return error.problems


def problems(text):
    with pytest.raises(ScenarioError) as refused:
        loads(text, "s")
    return refused.value


@pytest.mark.parametrize("name", broken.BROKEN)
def test_a_broken_scenario_says_what_and_where(name):
    """The named mistakes are told, and nothing else."""
    wrong, *expected = broken.BROKEN[name]
    lines = str(problems(broken.scenario(wrong))).splitlines()

    assert len(expected) == len(lines), lines
    for fragment in expected:
        assert any(fragment in line for line in lines), lines


@pytest.mark.parametrize(("wrong", "message"), broken.MISTAKES)
def test_a_mistake_is_told_where_it_stands(wrong, message):
    (line,) = str(problems(broken.scenario(wrong))).splitlines()

    assert message in line


def test_all_mistakes_come_in_one_go():
    """Misspelt keys, wrong units, missing vertices and Flink's keys do not hide one another."""
    text = (
        broken.but(("1k/s", "1k"), ("{a: hash}", "{z: hash}"), ("60 s", "60"))
        + "flink: {execution.checkpointing.intervall: 1 s}\nzzz: 1\nrun: {}\n"
    )

    assert [problem.line for problem in problems(text).problems] == [4, 5, 7, 8, 9, 10]


@given(st.text(max_size=40))
def test_any_text_is_a_scenario_or_a_list_of_problems(text):
    """No text whatever ends in another exception."""

    assert outcome(text) != []


KEYS = ["at", "ship", "a", "mean", "trace", "rate"]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["5 s", "1 MB", "hash", "a", "-", "{", "9" * 50, "1e999999", ".nan"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=2),
    max_leaves=4,
)
PATHS = [
    "version",
    "job",
    "job.a",
    "job.a.source",
    "job.a.source.rate",
    "job.a.source.record",
    "job.a.parallelism",
    "job.b.input",
    "job.b.input.a",
    "job.b.service",
    "job.b.state",
    "job.b.fan-out",
    "job.b.snapshot",
    "checkpoint",
    "checkpoint.interval",
    "checkpoint.barriers",
    "checkpoint.forced-aligned",
    "cluster",
    "cluster.profile",
    "cluster.network",
    "cluster.network.debloat",
    "cluster.network.buffer-timeout",
    "storage",
    "storage.slow",
    "run",
    "run.duration",
    "run.seed",
    "expect",
    "overheads",
    "flink",
    "flink.execution.checkpointing.unaligned.enabled",
    "flink.parallelism.default",
]


@given(st.sampled_from(PATHS), VALUES)
def test_any_value_anywhere_is_a_scenario_or_a_list_of_problems(path, value):
    """Wrong shapes in every place of a sound scenario."""

    assert outcome(broken.BASE, f"{path}={json.dumps(value)}") != []


def refusal(path):
    with pytest.raises(ScenarioError) as refused:
        load(path)
    return str(refused.value)


def test_files_that_are_none(tmp_path):
    """Missing, a directory, empty, no text, too large: one line each, with the name of the file."""
    (tmp_path / "binary.yaml").write_bytes(b"version: 1\n\0")
    (tmp_path / "latin.yaml").write_bytes("# f\n# é\n".encode("latin-1"))
    (tmp_path / "empty.yaml").write_bytes(b"")
    (tmp_path / "large.yaml").write_bytes(b"# " + b"x" * 2_000_000)

    assert f"{tmp_path}/none.yaml: no such file" == refusal(tmp_path / "none.yaml")
    assert f"{tmp_path}: is a directory; a scenario file (.yaml) was expected" == refusal(tmp_path)
    assert f"{tmp_path}/binary.yaml: is a binary file; a scenario is YAML text" == refusal(tmp_path / "binary.yaml")
    assert f"{tmp_path}/latin.yaml:2:1: is not UTF-8 text" == refusal(tmp_path / "latin.yaml")
    assert f"{tmp_path}/empty.yaml: is empty; a scenario has at least job:, checkpoint: and run:" == refusal(
        tmp_path / "empty.yaml"
    )
    assert "is larger than 1 MB" in refusal(tmp_path / "large.yaml")
    assert "cannot be read" in refusal(tmp_path / "a\0b")
    assert "cannot be read: Not a directory" in refusal(tmp_path / "empty.yaml" / "x.yaml")


def test_a_file_without_permission(tmp_path, monkeypatch):
    """The system's reason is told."""
    path = tmp_path / "secret.yaml"
    path.write_text(broken.BASE)

    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)

    assert f"{path}: cannot be read: Permission denied" == refusal(path)


class Half(Section):
    """A section of which one key has no example."""

    name: str
    size: Size


class Whole(Section):
    """Keys with and without examples."""

    name: str
    both: Half
    size: Size


def test_a_key_without_an_example_has_none():
    """Names are the reader's own, and half of a section would not be taken."""
    reading = Reading("s")

    assert validate_as(Whole, Mapping(), reading) is None
    assert {problem.path: problem.message.partition(", ")[2] for problem in reading.problems} == {
        "name": "",
        "both": "",
        "size": "e.g. size: 32 KiB",
    }
