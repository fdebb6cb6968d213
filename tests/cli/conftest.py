"""The command, called as a shell would call it, in this process."""

from functools import cache

import pytest
import typer.main
import typer.testing
from typer.testing import CliRunner

from sim.cli import app

# The tree of verbs is the same for every call, and takes 20 ms of reflection to make.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)

TINY = """\
# Does it matter how barriers travel?
version: 1
job:
  source: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 1 s, barriers: [aligned, unaligned]}
run: {duration: 3 s}
"""


@pytest.fixture
def tiny(tmp_path):
    """A scenario file that runs in a blink."""
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture
def ckptsim(tmp_path, monkeypatch):
    """`ckptsim("run", path)` -> what it printed and its exit code; `runs/` is made in a folder of the test."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        done = CliRunner().invoke(app, [str(word) for word in arguments], prog_name="ckptsim")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in done.stderr
        return done

    return call
