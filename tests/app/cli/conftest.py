"""The command, called as a shell would call it, in this process."""

import shlex
import signal
from functools import cache

import pytest
import typer.main
import typer.testing
from typer.testing import CliRunner

from sim.advice import settings, trials
from sim.app.cli import app

S = 10**9

# The tree of verbs is the same for every call, and takes 20 ms of reflection to make.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)

TINY = """\
# Does it matter how barriers travel?
version: 1
job:
  source: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 1 s, barriers: [aligned, unaligned]}
cluster: {placement: isolated, version: 2.9.0}  # no known defect applies
run: {duration: 3 s}
"""


@pytest.fixture(autouse=True)
def listening_to_sighup():
    """Under nohup a process ignores SIGHUP, and so do its children: tests that send it would wait in vain."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="module")
def short_trials():
    """What `advise` tries takes seconds, and there is little of it: two ways of barriers, one interval beside that of the job."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "INTERVALS_NS", (2 * S,))
        for name, ns in (("SETTLED_NS", S), ("OBSERVED_NS", 2 * S), ("PATIENCE_NS", 3 * S)):
            patch.setattr(trials, name, ns)
        first, *_, last = settings.protocols()
        patch.setattr(settings, "protocols", lambda: (first, last))
        yield


@pytest.fixture
def tiny(tmp_path):
    """A scenario file that runs in a blink."""
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture
def ckptsim(tmp_path, monkeypatch):
    """`ckptsim("run job.yaml --jobs 1")` -> what it printed and its exit code; `runs/` is made in a folder of the test.

    The command is read as by a shell; further words are passed on as they are.
    """
    monkeypatch.chdir(tmp_path)

    def call(command="", *words, given=None):
        done = CliRunner().invoke(app, [*shlex.split(command), *map(str, words)], input=given, prog_name="ckptsim")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in done.stderr
        return done

    return call


def without_axes(done):
    """What a command printed to stderr, but for its lines on axes and defaults (tests/app/cli/test_defaults_that_decide.py)."""
    lines = done.stderr.splitlines(keepends=True)
    return "".join(
        line for line in lines if not line.startswith("axes: ") and ": left at defaults that often matter:" not in line
    )
