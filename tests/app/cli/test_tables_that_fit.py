"""A table of strategies is one block on a narrow terminal, and what it leaves out is named with its values or how to see it."""

import io
import re

import pytest

from sim.app.cli import terminal
from sim.app.cli.runs import _show_strategies
from sim.results.summary import PRINTED
from tests.places import DATA
from tests.results.analysis.runs_by_hand import line, saturated


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, width, *, must_fit):
    """Eight strategies, whose names are as long as those of two axes."""
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(terminal.sys, "stdout", screen)
    rows = [line(f"interval {n} s, aligned-timeout 1 s", saturated(5000 + n, 100 * n)) for n in range(1, 9)]
    _show_strategies(rows, PRINTED, must_fit=must_fit)
    return [text.rstrip() for text in screen.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 100])
def test_eight_strategies_are_one_block(monkeypatch, width):
    lines = shown(monkeypatch, width, must_fit=True)

    assert max(map(len, lines)) <= width
    assert sum("interval 1 s, aligned-timeout 1 s" in text for text in lines) == 1
    assert any("p50" in text and "max" in text for text in lines)
    assert "Alike in all rows: " in " ".join(lines)
    assert "sync 0 ms" in " ".join(lines)
    assert "(--columns all shows all)." in " ".join(lines)
    assert len(lines) < 20


def test_columns_that_were_asked_for_are_shown_in_blocks(monkeypatch):
    lines = shown(monkeypatch, 80, must_fit=False)

    assert sum("interval 1 s, aligned-timeout 1 s" in text for text in lines) > 1
    assert "Alike" not in " ".join(lines)


def test_a_percentile_of_too_few_checkpoints_comes_with_the_run_that_has_enough(ckptsim, tmp_path):
    """Seconds from the first one on; one more than it needs, because the last one may be under way at the end."""
    asked = ckptsim(
        "run", DATA / "tiny.yaml", "--no-assumptions", "--out", tmp_path / "out", "--columns", "p50,p99"
    ).stdout
    (count,) = re.findall(r"p99 needs 100 checkpoints, \w+ completes (\d+): --set run\.duration='(\d+) s'", asked)

    assert (count[0], int(count[1])) == ("3", 101)
