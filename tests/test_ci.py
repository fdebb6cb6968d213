"""What runs the tests: which Pythons of a machine it finds, and that everything names the same versions."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from ruamel.yaml import YAML

from sim.app.cli import app
from tests.places import ROOT


def pythons(home, *path):
    """What .ci/pythons prints of the stubs below `home`; a machine has Pythons of its own beside them."""
    folders = [*map(str, path), "/usr/bin", "/bin"]
    only = {"PATH": os.pathsep.join(folders), "HOME": str(home), "PYENV_ROOT": str(home / "pyenv")}
    listed = subprocess.run(["sh", ".ci/pythons"], cwd=ROOT, env=only, capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if str(home) in line]


def stub(place, version, *, without="nothing_at_all", shim=False):
    """An interpreter that says it is another version; or the shim of one, which cannot be run."""
    place.parent.mkdir(parents=True, exist_ok=True)
    says = (
        f"import sys; sys._base_executable = '{place}'; sys.modules['{without}'] = None;"
        f"sys.version_info = type('V', (tuple,), {{'releaselevel': '{version[3]}'}})({version}); exec(sys.argv[1])"
    )
    runs = "exit 127" if shim else f'exec {sys.executable} -I -c "{says}" "$3"'
    place.write_text(f"#!/bin/sh\n{runs}\n")
    place.chmod(0o755)
    return place


def test_pythons_are_found_where_pyenv_keeps_them_and_on_path(tmp_path):
    """One of each minor version, by number and not by text; pyenv's go first."""
    versions = tmp_path / "pyenv" / "versions"
    nineteen = stub(versions / "3.19.0" / "bin" / "python3", (3, 19, 0, "final", 0))
    hundred = stub(versions / "3.100.1" / "bin" / "python3", (3, 100, 1, "final", 0))
    stub(tmp_path / "bin" / "python3.19", (3, 19, 4, "final", 0))
    twenty = stub(tmp_path / "bin" / "python3.20", (3, 20, 0, "final", 0))

    found = pythons(tmp_path, tmp_path / "bin")

    assert found == [f"3.19 {nineteen}", f"3.20 {twenty}", f"3.100 {hundred}"]


@pytest.mark.parametrize(
    ("version", "flaw"),
    [
        ((3, 10, 13, "final", 0), {}),
        ((3, 99, 0, "candidate", 2), {}),
        ((3, 99, 0, "final", 0), {"without": "venv"}),
        ((3, 99, 0, "final", 0), {"shim": True}),
    ],
    ids=["too old", "not released", "makes no environments", "a shim that is not activated"],
)
def test_pythons_that_cannot_be_used_are_passed_over(tmp_path, version, flaw):
    stub(tmp_path / "pyenv" / "versions" / "a" / "bin" / "python3", version, **flaw)
    good = stub(tmp_path / "bin" / "python3.98", (3, 98, 0, "final", 0))

    found = pythons(tmp_path, tmp_path / "bin")

    assert found == [f"3.98 {good}"]


def test_everything_names_the_same_pythons():
    """The package's classifiers, the oldest it installs on, and those that changes are tested on; one more may be tried there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [text.rpartition(" ")[2] for text in project["classifiers"] if re.search(r":: 3\.\d+$", text)]
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/ci.yml").read_text())

    assert tested is not None
    assert named == re.findall(r"[\d.]+", tested[1])[: len(named)]
    assert len(re.findall(r"[\d.]+", tested[1])) <= len(named) + 1
    assert project["requires-python"] == f">={named[0]}"


def test_workflows_call_commands_and_targets_that_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    verbs = [verb.name for verb in app.registered_commands]
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        text = workflow.read_text()

        assert YAML(typ="safe").load(text)["jobs"]
        assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= {*targets}
        assert set(re.findall(r"bin/ckptsim ([a-z-]+)", text)) <= {*verbs}
