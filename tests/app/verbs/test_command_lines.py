"""The command that does the same again."""

import shlex
from pathlib import Path
from typing import is_typeddict

import pytest

from sim.app.verbs import options as described
from sim.app.verbs.options import AdviseOptions, RunFileOptions, command_line, portable


@pytest.mark.parametrize("line", ["run.duration=1 h", "job.it's.service=1 ms", "a=$HOME", "plain=1"])
def test_a_shell_reads_a_change_as_it_was(line):
    assert ["ckptsim", "run", "job.yaml", "--set", line] == shlex.split(
        command_line("run", ["job.yaml"], RunFileOptions, {"changes": [line]})
    )


def test_defaults_and_options_that_change_no_result_are_not_written():
    options = {
        "p99": "2 s",
        "loss": None,
        "load": (),
        "replications": 3,
        "budget": "90 s",
        "jobs": 4,
    }
    written = command_line("advise", ["job.yaml"], AdviseOptions, options)

    assert written == "ckptsim advise job.yaml --p99 '2 s' --replications 3"


@pytest.mark.parametrize("kind", [kind for kind in vars(described).values() if is_typeddict(kind)])
def test_an_option_has_one_name_on_the_command_line(kind):
    """An error names the option of the command line from that of Python, whatever the command."""
    names = {name: option.flags(name)[0].partition("/")[0] for name, (_, option) in described.options_of(kind).items()}

    assert names == {name: described.flag_of(name) for name in names}


def test_places_are_seen_from_the_current_folder(tmp_path, monkeypatch):
    """An absolute path is of one machine only."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    assert command_line("report", [tmp_path / "here" / "runs" / "day"]) == "ckptsim report runs/day"
    assert command_line("report", [tmp_path / "day"]) == "ckptsim report ../day"
    assert (portable(Path("day.yaml")), portable(tmp_path / "day.yaml")) == ("day.yaml", "../day.yaml")
