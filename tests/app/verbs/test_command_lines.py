"""The command that does the same again."""

import shlex
from pathlib import Path

import pytest

from sim.app.verbs.common import command_line, portable


@pytest.mark.parametrize("line", ["run.duration=1 h", "job.it's.service=1 ms", "a=$HOME", "plain=1"])
def test_a_shell_reads_a_change_as_it_was(line):
    assert ["ckptsim", "run", "job.yaml", "--set", line] == shlex.split(
        command_line("run", ["job.yaml"], {"set": [line]})
    )


def test_options_that_are_not_given_are_not_written():
    written = command_line(
        "advise", ["job.yaml"], {"p99": "2 s", "loss": None, "load": (), "no-unknowns": True, "replications": 3}
    )

    assert written == "ckptsim advise job.yaml --p99 '2 s' --no-unknowns --replications 3"


def test_places_are_seen_from_the_current_folder(tmp_path, monkeypatch):
    """An absolute path is of one machine only."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    assert command_line("report", [tmp_path / "here" / "runs" / "day"], {}) == "ckptsim report runs/day"
    assert command_line("report", [tmp_path / "day"], {}) == "ckptsim report ../day"
    assert (portable(Path("day.yaml")), portable(tmp_path / "day.yaml")) == ("day.yaml", "../day.yaml")
