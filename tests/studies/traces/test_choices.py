"""A user says what their own tables are; what cannot be meant is refused before anything is read."""

import io

import pyarrow as pa
import pytest

from sim.studies.traces.choices import ChoiceError, Choices
from sim.studies.traces.listing import TraceFile
from sim.studies.traces.parsing import TraceContent
from sim.studies.traces.reading import read_rows


def read(text, **chosen):
    table = pa.Table.from_batches(
        read_rows(TraceFile("t", "", "t.csv"), TraceContent(io.BytesIO(text.encode())), Choices(**chosen))
    ).to_pandas()
    table = table[table["kind"] != "note"]
    return table["kind"].tolist(), table.dropna(axis=1, how="all")


@pytest.mark.parametrize(
    ("text", "chosen", "kind", "column", "expected"),
    [
        ("when,load\n1500,7\n2500,8\n", {"time": "when", "value": "load", "unit_s": 1e-3}, "rates", "t_s", [1.5, 2.5]),
        ("when,load\n0,600\n300,900\n", {"time": "when", "value": "load", "per_s": 300}, "rates", "rate", [2, 3]),
        ("x;when\na;2020-01-01\n", {"time": "when", "meaning": "arrivals"}, "arrivals", "t_s", [1577836800]),
        ("when,down\n5,70\n", {"time": "when", "meaning": "failures"}, "failures", "t_s", [5]),
        ("5|70\n6|80\n", {"time": "0", "value": "1"}, "rates", "rate", [70, 80]),
        ("2020-01-01 00:00,7\n2020-01-01 00:01,8\n", {"time": "0", "value": "1"}, "rates", "rate", [7, 8]),
        ("timestamp,load\n5,70\n", {"value": "load"}, "rates", "rate", [70]),
    ],
)
def test_own_tables(text, chosen, kind, column, expected):
    kinds, rows = read(text, **chosen)

    assert {kind} == set(kinds)
    assert pytest.approx(expected) == rows[column].tolist()


def test_other_tables_are_still_recognised():
    """In a folder of several kinds."""
    assert read("epoch_s,rate\n1,2\n", time="when", value="load")[0] == ["rates"]
    assert read("a,b\n1,2\n", time="when", value="load")[0] == ["quarantine"]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"meaning": "speed", "value": "v"}, "--as: expected rates, arrivals, failures, not 'speed'"),
        ({"time": "when"}, "--value: say which column"),
        ({"meaning": "rates"}, "--value: say which column"),
        ({"meaning": "failures", "value": "v"}, "--value: failures have no value"),
    ],
)
def test_what_cannot_be_meant(chosen, message):
    with pytest.raises(ChoiceError, match=message):
        Choices(**chosen)
