"""Tables become windows without Spark; tests/studies/traces/test_pipeline.py holds that Spark cuts the same."""

import pytest

from sim.studies.traces.conversion import read_traces_here
from sim.studies.traces.listing import list_files
from sim.studies.traces.parsing import TraceFileError
from sim.studies.traces.windows import Cutting, windows_here
from tests.studies.traces.conftest import write_traces


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    write_traces(folder)
    out = tmp_path_factory.mktemp("tables")
    read_traces_here(list_files(str(folder)).files, str(out))
    return str(out)


@pytest.mark.parametrize(
    ("cut", "count", "expected"),
    [
        ("time", None, [0, 20, 40, 60, 80]),
        ("bursts", 1, [60]),
        ("load", 3, [0, 40, 60]),
        ("failures", None, [pytest.approx(45 - 20 / 3)]),
    ],
)
def test_windows(tables, cut, count, expected):
    """One after the other, the most bursty, one of each class of load, around a failure of the same folder."""
    found, notes = windows_here(tables, Cutting(20, cut, count, "a/load"))

    assert expected == found["from_s"].tolist()
    assert notes == []
    assert (0 if cut == "bursts" else 1) == found["failures"].sum()


def test_features_of_windows(tables):
    (bursts,) = windows_here(tables, Cutting(20, "bursts", 1, "a/load")).windows.to_dict("records")
    assert bursts["burst"] > 1000 / (60 + 109.5 + 90)
    assert (bursts["rows"], bursts["covered"]) == (20, 1.0)

    found = windows_here(tables, Cutting(20, trace="a/load")).windows
    assert found["failure_s"].dropna().tolist() == [5.0]


def test_windows_with_few_observations_are_left_out(tables):
    """And counted; windows of several traces are told apart by them."""
    found, notes = windows_here(tables, Cutting(2, "bursts", 1))

    assert [name for name in found["window"] if not name.startswith("a/load_chk7")] == ["a/load 0 s", "arrivals 0 s"]
    (left_out,) = notes
    assert left_out.startswith("45000")
    assert "windows are left out" in left_out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length_s": 20, "trace": "b"}, "there is no window of 20 s in the trace 'b'"),
        ({"length_s": 1e9}, "there is no window of 1e\\+09 s in any trace"),
        ({"length_s": 118, "cut": "failures", "trace": "a/load"}, "no windows: none of 118 s around a failure"),
    ],
)
def test_no_window_is_one_line(tables, options, message):
    with pytest.raises(TraceFileError, match=f": {message}$"):
        windows_here(tables, Cutting(**options))


def test_a_damaged_table_is_one_line(tmp_path):
    (tmp_path / "rates" / "trace=a").mkdir(parents=True)
    (tmp_path / "rates" / "trace=a" / "part-00000.parquet").write_text("no Parquet")

    with pytest.raises(TraceFileError, match=r"the tables cannot be read: [^\n]+$"):
        windows_here(str(tmp_path), Cutting(1))
