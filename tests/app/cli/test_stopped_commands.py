"""Ctrl-C, SIGTERM and SIGHUP, as a command meets them."""

import os
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from pathlib import Path

import pytest

from sim import __main__
from sim.app import cli
from sim.app.cli import errors
from sim.studies.local import delayed_signals, without_handlers
from sim.studies.progress import ENDING


@pytest.fixture
def listening(monkeypatch):
    """Handlers as a command has them; as they were, afterwards."""
    before = {number: signal.getsignal(number) for number in (*ENDING, signal.SIGALRM)}
    monkeypatch.setattr(errors, "_first", None)
    monkeypatch.setattr(errors, "_reported", False)
    monkeypatch.setattr(errors, "_raised", None)
    monkeypatch.setattr(errors, "AGAIN_S", 3600)  # unless a test wants it: a second interrupt would end the tests
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    yield errors.listen
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def soon(monkeypatch):
    """The second look comes at once."""
    monkeypatch.setattr(errors, "AGAIN_S", 0.01)


def finaliser():
    """Python prints exceptions of finalisers, and forgets them."""

    class Closed:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    Closed()


def callback():
    """As the import system and fork handlers have them."""

    class Closed:
        pass

    closed = Closed()
    kept = weakref.ref(closed, lambda _: signal.raise_signal(signal.SIGTERM))
    del closed
    assert kept() is None


def careless():
    with suppress(BaseException):
        signal.raise_signal(signal.SIGTERM)


def forking():
    """A signal that reaches another thread is handled by the main one, whatever that blocks."""
    with without_handlers():
        errors._stop(signal.SIGTERM, None)


def holding():
    with delayed_signals():
        careless_stop()


def careless_stop():
    errors._stop(signal.SIGTERM, None)


@pytest.mark.parametrize("swallow", [finaliser, callback, careless, forking, holding])
def test_a_signal_that_is_swallowed_stops_the_work_all_the_same(listening, soon, capfd, swallow):
    """And nobody reads of exceptions that were ignored."""
    listening()
    swallow()

    with pytest.raises(KeyboardInterrupt):
        time.sleep(10)

    errors.mark_reported()
    assert (errors.exit_code(), capfd.readouterr().err) == (143, "")


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_work_that_is_being_stopped_is_not_interrupted_again(listening, soon, kind):
    """Neither in its `finally`, nor where another exception has followed."""
    listening()
    ended = []
    try:
        try:
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                time.sleep(0.1)
                ended.append("inner")
        except KeyboardInterrupt:
            raise kind from None
        finally:
            time.sleep(0.1)
            ended.append("outer")
    except kind:
        time.sleep(0.1)
        errors.mark_reported()

    assert ended == ["inner", "outer"]


def test_what_others_lose_is_printed(listening, capfd):
    class Broken:
        def __del__(self):
            raise ValueError("lost")

    listening()
    Broken()

    assert "ValueError: lost" in capfd.readouterr().err


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


def test_a_signal_waits_until_a_module_is_loaded(listening, soon, monkeypatch, tmp_path):
    """An exception in the middle of an import is lost in callbacks, or becomes another one."""
    (tmp_path / "module_that_meets_a_signal.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGTERM)\nloaded = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    listening()

    import module_that_meets_a_signal as module

    assert module.loaded
    with pytest.raises(KeyboardInterrupt):
        time.sleep(10)
    errors.mark_reported()
    assert errors.exit_code() == 143


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
