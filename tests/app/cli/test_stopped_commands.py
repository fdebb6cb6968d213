"""Ctrl-C, SIGTERM and SIGHUP, as a command meets them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sim import __main__
from sim.app import cli
from sim.app.cli import errors
from sim.studies.progress import ENDING


@pytest.fixture
def listening(monkeypatch):
    """Handlers as a command has them; as they were, afterwards."""
    before = {number: signal.getsignal(number) for number in ENDING}
    monkeypatch.setattr(errors, "_first", None)
    monkeypatch.setattr(errors, "_reported", False)
    yield errors.listen
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING)
def test_the_first_signal_stops_the_work_and_the_second_changes_nothing(listening, number):
    listening()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)

    signal.raise_signal(signal.SIGINT)

    assert 128 + number == errors.exit_code()


def test_who_asks_again_later_wants_the_end_at_any_price(listening, monkeypatch, capfd):
    """Stopping may hang."""
    ended = []
    monkeypatch.setattr(errors.os, "_exit", ended.append)
    now = [0.0]
    monkeypatch.setattr(errors.time, "monotonic", lambda: now[0])
    listening()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)

    now[0] = errors.PATIENCE_S + 1
    signal.raise_signal(signal.SIGINT)

    assert ended == [130]
    assert capfd.readouterr().err == "interrupted: ended at once; what was kept before stays\n"


def test_nohup_means_it(listening):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    listening()

    assert signal.SIG_IGN is signal.getsignal(signal.SIGHUP)


def test_without_a_signal_it_is_ctrl_c(listening):
    """A KeyboardInterrupt from elsewhere, as in a test."""
    assert errors.exit_code() == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_options_are_read(listening, capsys, number):
    """Before any verb has begun: the same sentence and code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(lambda: signal.raise_signal(number))

    assert (128 + number, "interrupted\n") == (ended.value.code, capsys.readouterr().err)


def test_ctrl_c_while_the_command_is_loaded(monkeypatch, capsys):
    """No traceback of imports."""
    monkeypatch.setattr(cli, "main", lambda: signal.raise_signal(signal.SIGINT))

    with pytest.raises(SystemExit) as ended:
        __main__.main()

    assert (ended.value.code, capsys.readouterr().err) == (130, "interrupted\n")


def test_an_interrupt_in_a_text_that_is_executed_ends_with_the_exit_code(tmp_path):
    """Compiled and generated code runs so.  CPython would end the process by SIGINT, after all was said and kept."""
    (tmp_path / "interrupted.py").write_text("""
import sys
from sim.app.cli.errors import exit_code, listen, mark_reported

listen()
try:
    exec("import signal; signal.raise_signal(signal.SIGINT)")
except KeyboardInterrupt:
    mark_reported()
sys.exit(exit_code())
""")
    paths = os.pathsep.join([str(tmp_path), str(Path(cli.__file__).parents[2])])
    done = subprocess.run([sys.executable, "-m", "interrupted"], env=os.environ | {"PYTHONPATH": paths}, check=False)

    assert done.returncode == 128 + signal.SIGINT
