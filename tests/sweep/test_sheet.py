"""Tables for spreadsheets: text is never a formula, numbers are numbers."""

import pandas as pd
import pytest

from sim.sweep.sheet import unescaped, write_csv


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x","y")'])
def test_text_is_no_formula(tmp_path, text):
    """Neither in a cell nor as the name of a column; read again, it is what it was."""
    write_csv(pd.DataFrame({"name": [text], text: ["a"]}), tmp_path / "t.csv")

    read = pd.read_csv(tmp_path / "t.csv", lineterminator="\n")
    assert [["'" + text, "a"]] == read.to_numpy().tolist()
    assert "'" + text == read.columns[1]
    assert text == unescaped(read["name"][0])


@pytest.mark.parametrize("kind", ["object", "string", "category"])
def test_text_of_any_kind_is_no_formula(tmp_path, kind):
    write_csv(pd.DataFrame({"a": pd.Series(["=x", None], dtype=kind), "b": [1, 2]}), tmp_path / "t.csv")

    assert "a,b\n'=x,1\n,2\n" == (tmp_path / "t.csv").read_text()


def test_numbers_stay_numbers(tmp_path):
    """In columns of numbers and of text; nothing that is missing becomes a word."""
    write_csv(pd.DataFrame({"a": [-1.5, None], "b": ["-3", "+2e-6"], "c": [None, "=x"]}), tmp_path / "t.csv")

    assert "a,b,c\n-1.5,-3,\n,+2e-6,'=x\n" == (tmp_path / "t.csv").read_text()


@pytest.mark.parametrize("text", ["it's", "'quoted'", "'", "", "plain", "'-3"])
def test_a_quote_of_ones_own_stays(text):
    assert text == unescaped(text)
