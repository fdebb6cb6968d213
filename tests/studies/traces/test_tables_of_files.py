"""Files become tables without Spark; tests/studies/traces/test_pipeline.py holds that Spark writes the same."""

import pandas as pd
import pytest

from sim.studies.traces import tables_of_files
from sim.studies.traces.listing import list_files
from sim.studies.traces.parsing import TraceFileError
from sim.studies.traces.tables_of_files import read_traces_here
from tests.studies.traces.conftest import write_traces


def read(folder, out):
    return read_traces_here(list_files(str(folder)).files, str(out))


def test_every_row_is_somewhere(tmp_path):
    (tmp_path / "raw").mkdir()
    write_traces(tmp_path / "raw")

    counts = read(tmp_path / "raw", tmp_path / "out")
    notes = counts[counts["kind"] == "note"].set_index("trace")["reason"]
    counts = counts[counts["kind"] != "note"]

    assert notes["a/load"] == "times of 'epoch_s' are seconds, 'rate' is taken as records per second"
    assert {"a/all_kills", "a/kills", "a/load", "a/load_chk7", "arrivals"} == set(notes.index)
    assert [(row.trace, row.kind, row.count) for row in counts[["trace", "kind", "count"]].itertuples(index=False)] == [
        ("a/all_kills", "failures", 1),
        ("a/kills", "failures", 2),
        ("a/load", "quarantine", 1),
        ("a/load", "quarantine", 1),
        ("a/load", "rates", 120),
        ("a/load_chk7", "rates", 3),
        ("arrivals", "arrivals", 5),
        ("notes", "quarantine", 1),
    ]
    rates = pd.read_parquet(tmp_path / "out" / "rates")
    arrived = rates[rates["trace"] == "arrivals"]
    assert list(arrived[["t_s", "rate"]].itertuples(index=False, name=None)) == [
        (0, 3),
        (1, 0),
        (2, 0),
        (3, 1),
        (4, 0),
        (8_999_999, 0),
        (9_000_000, 1),
    ]


def test_new_tables_replace_the_earlier_ones(tmp_path):
    """All of them: a trace of the run before is gone."""
    (tmp_path / "first.csv").write_text("epoch_s,rate\n1,2\n")
    read(tmp_path / "first.csv", tmp_path / "out")
    (tmp_path / "second.csv").write_text("epoch_s,rate\n1,2\n")
    read(tmp_path / "second.csv", tmp_path / "out")

    assert sorted(place.name for place in (tmp_path / "out" / "rates").iterdir()) == ["_SUCCESS", "trace=second"]


def test_an_interrupted_run_leaves_the_earlier_tables(tmp_path, monkeypatch):
    (tmp_path / "load.csv").write_text("epoch_s,rate\n1,2\n")
    read(tmp_path / "load.csv", tmp_path / "out")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tables_of_files, "rows_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read(tmp_path / "load.csv", tmp_path / "out")

    assert sorted(place.name for place in (tmp_path / "out").iterdir()) == [
        "failures",
        "quarantine",
        "rates",
    ]
    assert pd.read_parquet(tmp_path / "out" / "rates")["rate"].tolist() == [2.0]


def test_tables_that_cannot_be_written_are_one_line(tmp_path):
    (tmp_path / "load.csv").write_text("epoch_s,rate\n1,2\n")
    (tmp_path / "out").write_text("in the way")

    with pytest.raises(TraceFileError, match=r"^the tables cannot be written: [^\n]+$"):
        read(tmp_path / "load.csv", tmp_path / "out")
