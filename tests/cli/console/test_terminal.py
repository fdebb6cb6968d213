"""Prose on a terminal of 80 columns, and in a pipe."""

import os
import sys

from sim.cli.console.terminal import put

LONG = "unaligned checkpoints take 37 ms instead of 6 s and store 7.6 MB of in-flight data each; throughput is the same"


def test_no_word_of_prose_is_broken_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))

    put(f"{LONG}\n\nshort")

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert LONG.split() == " ".join(lines[:-2]).split()
    assert ["", "short"] == lines[-2:]


def test_a_pipe_gets_lines_as_they_are(capsys):
    put(LONG)

    assert f"{LONG}\n" == capsys.readouterr().out
