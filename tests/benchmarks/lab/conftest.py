"""``python -m benchmarks.lab``, called as a shell would call it, in this process."""

import pytest
from typer.testing import CliRunner

from benchmarks.lab.__main__ import app


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """`lab("validate", path)` -> what it printed and its exit code."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        done = CliRunner().invoke(app, [str(word) for word in arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in done.stderr
        return done

    return call
