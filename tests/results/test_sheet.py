"""Tables for spreadsheets: text is never a formula, numbers are numbers."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.results.formats import escaped, unescaped, write_csv


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "-2+3",
        "\tx",
        "\rx",
        "\nx",
        "\uff1d1+1",
        "'=x",
    ],
)
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

    assert (tmp_path / "t.csv").read_text() == "a,b\n'=x,1\n,2\n"


def test_numbers_stay_numbers(tmp_path):
    """In columns of numbers and of text; nothing that is missing becomes a word."""
    write_csv(pd.DataFrame({"a": [-1.5, None], "b": ["-3", "+2e-6"], "c": [None, "=x"]}), tmp_path / "t.csv")

    assert (tmp_path / "t.csv").read_text() == "a,b,c\n-1.5,-3,\n,+2e-6,'=x\n"


@pytest.mark.parametrize("text", ["it's", "'quoted'", "'", "", "plain", "'-3"])
def test_a_quote_of_ones_own_stays(text):
    assert text == unescaped(text)


SIGNS = ("=", "-", "+", "@", "\uff1d")
PARTS = ["'", *SIGNS, "\t", "\n", "\0", ";", " ", "1", "x", ",", '"']


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_every_text_is_what_it_was(text):
    """So no two texts become the same cell; and wherever a cell is split, no part is a formula."""
    assert text == unescaped(escaped(text))
    if not re.fullmatch(r"'*[-+]?\d+", text):
        assert not [part for part in re.split("[;\t\n]", escaped(text)) if part.strip().startswith(SIGNS)]
