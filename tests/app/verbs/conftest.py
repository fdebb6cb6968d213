"""The same verb from the command and from Python, each in a folder of its own with the same files."""

import shlex

import pytest
from typer.testing import CliRunner

from sim.app.cli import app
from sim.studies import cells
from sim.studies.sweeps import store
from tests.app.cli.conftest import TINY, short_trials  # noqa: F401 - a job and a fixture of these tests, too


class StoppedClock:
    """Processor and wall time of a run are of the machine: here every run takes a second."""

    def __init__(self):
        self._now_s = 0.0

    def process_time(self):
        self._now_s += 0.5
        return self._now_s

    monotonic = process_time


@pytest.fixture
def both_ways(tmp_path, monkeypatch):
    """`both_ways(files, command, python)` -> the finished command, and what the call of `python` returned.

    The command and Python find the same `files` in folders of their own: `tmp_path/command` and `tmp_path/python`.
    """
    monkeypatch.setattr(store, "MAX_BUFFER_AGE_S", 1e9)  # all rows in one file, however fast they come

    def call(files, command, python):
        for name in ("command", "python"):
            (tmp_path / name).mkdir(exist_ok=True)
            for file, text in files.items():
                (tmp_path / name / file).write_text(text)
        clock = StoppedClock()
        monkeypatch.setattr(cells, "time", clock)
        monkeypatch.chdir(tmp_path / "command")
        done = CliRunner().invoke(app, shlex.split(command), prog_name="ckptsim", catch_exceptions=False)
        monkeypatch.setattr(cells, "time", StoppedClock())
        monkeypatch.chdir(tmp_path / "python")
        return done, python()

    return call


def contents(folder):
    """Path below the folder -> bytes.  Rows on their way into the tables come from several processes at once."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.parent.name != "cells")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
