"""Prose and tables on a terminal of 80 columns, and in a pipe."""

import os
import sys

import pytest

from sim.app.cli.terminal import put, show

LONG = "unaligned checkpoints take 37 ms instead of 6 s and store 7.6 MB of in-flight data each; throughput is the same"


def test_no_word_of_prose_is_broken_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))

    put(f"{LONG}\n\nshort")

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert LONG.split() == " ".join(lines[:-2]).split()
    assert lines[-2:] == ["", "short"]


def test_a_pipe_gets_lines_as_they_are(capsys):
    put(LONG)

    assert f"{LONG}\n" == capsys.readouterr().out


def numbers(columns, rows):
    """A header and rows of which every cell is another text of ten characters."""
    return [f"column_{i:03}" for i in range(columns)], [
        [f"{row:04}.{i:05}" for i in range(columns)] for row in range(rows)
    ]


@pytest.mark.parametrize(("columns", "rows"), [(4, 40), (12, 3), (12, 40), (30, 9), (1, 2)])
def test_every_cell_of_a_table_is_read_at_80_columns(capsys, monkeypatch, columns, rows):
    """As rows, as columns, or in pieces that repeat the names: nothing is cut off."""
    header, body = numbers(columns, rows)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")

    show(header, body)

    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert [cell for row in (header, *body) for cell in row if cell not in printed] == []


def test_pieces_of_a_table_tell_their_rows_apart(capsys, monkeypatch):
    """By the columns that differ: a recording that is the same in all rows stands in the first piece only."""
    header, body = numbers(12, 20)
    named = [["p2-severe", f"quantity_{i // 2}", f"vertex_{i % 2}", *row] for i, row in enumerate(body)]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")

    show(["recording", "quantity", "vertex", *header], named)

    printed = capsys.readouterr().out
    assert len(body) == printed.count("p2-severe")
    assert printed.count("vertex_1") == printed.count("quantity_9") * 5 > len(body)


def test_strategies_with_long_names_stand_beside_each_other(capsys, monkeypatch):
    """Names are broken between words, so that a column is as wide as its numbers and one word."""
    names = [
        f"connector iceberg-{version}, {barriers}" for version in ("v1", "v2") for barriers in ("aligned", "unaligned")
    ]
    header = ["strategy", *(f"quantity {i}" for i in range(12))]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")

    show(header, [[name, *["5.8 s"] * 12] for name in names])

    printed = capsys.readouterr().out
    assert printed.count("quantity 11") == 1, "one piece"
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("unaligned") == 2


def test_a_row_of_short_cells_is_one_line(capsys, monkeypatch):
    """Twelve jobs with cells of fifteen characters, three columns too wide for the terminal: headers take lines, rows do not."""
    header = ["strategy", *(f"its first snapshot {i}" for i in range(6))]
    rows = [[f"claim legacy {i}", *["1/12 checkpoint"] * 6] for i in range(12)]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")

    show(header, rows)

    assert capsys.readouterr().out.count("1/12 checkpoint") == 6 * 12


@pytest.mark.parametrize(("columns", "pieces"), [(10, 1), (11, 2), (30, 4)])
def test_a_table_in_a_pipe_has_a_line_for_each_row(capsys, columns, pieces):
    """Of at most 120 characters: a wider table is split between columns, and each piece begins with the names of the rows."""
    header, body = numbers(columns, 3)

    show(header, body)

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    assert [row[0] for row in (header, *body)] * pieces == [line.split()[0] for line in lines if line]
    assert {cell for row in (header, *body) for cell in row} == {cell for line in lines for cell in line.split()}


@pytest.mark.parametrize(
    ("name", "value", "is_red"), [("TERM", "xterm", True), ("TERM", "dumb", False), ("NO_COLOR", "1", False)]
)
def test_what_failed_is_red_on_a_terminal_that_shows_colours(capsys, monkeypatch, name, value, is_red):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    put("failed", is_red=True)

    assert ("\x1b[31mfailed\x1b[0m\n" if is_red else "failed\n") == capsys.readouterr().out


def test_a_table_as_wide_as_the_terminal_is_whole(capsys, monkeypatch):
    """A character at each side and three between columns: 24 + 15 + 15 + 15 and 11."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    show(["strategy", "a", "b", "c"], [["x" * 24, *(letter * 15 for letter in "abc")] for _ in range(9)])

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == 80
    assert sum("aaa" in line and "ccc" in line for line in lines) == 9
