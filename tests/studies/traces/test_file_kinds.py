"""A file is what its content says, whatever it is called; what cannot be read is told once, and what came before the damage counts."""

import gzip
import io

import pandas as pd
import pyarrow as pa
import pytest

from sim.studies.traces import reading
from sim.studies.traces.listing import list_files
from sim.studies.traces.reading import rows_of

OF_JOBS = "`ckptsim import` reads logs, answers and archives of a job"


def read(folder):
    """(kind, trace) -> rows of all files below a folder."""
    batches = [batch for file in list_files(str(folder)).files for batch in rows_of(file)]
    table = pa.Table.from_batches(batches).to_pandas()
    return {
        key: rows.dropna(axis=1, how="all")
        for key, rows in table.groupby(["kind", "trace"], sort=False)
        if key[0] != "note"
    }


def reasons(folder):
    return [why for (kind, _), rows in read(folder).items() if kind == "quarantine" for why in rows["reason"]]


def test_reasons_say_nothing_that_a_terminal_obeys(tmp_path):
    pd.DataFrame({"\x1b[31m": [1]}).to_parquet(tmp_path / "y.parquet")

    (why,) = reasons(tmp_path)
    assert "\\x1b[31m" in why
    assert why.isprintable()


def test_outages_in_parquet(tmp_path):
    """Intervals add up; a row that cannot be is in quarantine."""
    rows = {"failure_interval": [1000, 500, -1, 2000], "failure_duration": [10, 20, 30, 40]}
    pd.DataFrame(rows).to_parquet(tmp_path / "o")
    found = read(tmp_path)

    assert found["failures", "o"]["t_s"].tolist() == [1.0, 1.5, 3.5]
    assert found["quarantine", "o"]["line"].tolist() == [3]


def bomb(inner, times):
    packed = io.BytesIO()
    with gzip.open(packed, "wb") as stream:
        for _ in range(times):
            stream.write(inner)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is no text, and nothing else we know"),
        (bytes(range(256)) * 9, "is no text, and nothing else we know"),
        ("t,rate\n1,2\n".encode("utf-16"), "is UTF-16: save it as UTF-8"),
        ("é,rate\n1,2\n".encode("latin-1"), "its first line: is not UTF-8"),
        (b'{"checkpoints": 3}', f"is a document without a series of rates: {OF_JOBS}"),
        (b"[" * 100_000, "is a document without a series of rates: "),
        (b"PK\3\4 any zip", f"is a zip: {OF_JOBS}"),
        (b"PAR1 no Parquet", "is not a Parquet file, or a damaged one: "),
        (b"\x1f\x8b\x08\x00", "is truncated: rows after this one are missing"),
        (b"\x1f\x8b" + b"nonsense" * 9, "is damaged: later rows cannot be unpacked"),
        (bomb(b'{"a": "' + b"a" * (1 << 20), 3), "holds more than 2 MB: not read any further"),
        (b"2024-01-01 10:00:00,000 INFO  x - hello\n", f"is a log: {OF_JOBS}"),
    ],
    ids=range(13),
)
def test_a_file_that_cannot_be_read_is_told_once(tmp_path, monkeypatch, content, message):
    """In one line, without the place of the copy it was read from; the file beside it is read."""
    monkeypatch.setattr(reading, "MAX_JSON_BYTES", 2 << 20)
    (tmp_path / "bad.csv").write_bytes(content)
    (tmp_path / "good.csv").write_text("t,rate\n1,2\n")
    found = read(tmp_path)

    (why,) = reasons(tmp_path)
    assert why.startswith(message)
    assert "\n" not in why
    assert "/tmp" not in why
    assert found["rates", "good"]["rate"].tolist() == [2.0]


STAMPS = pd.date_range("2023-11-14 12:00", periods=3, freq="s", tz="Europe/Berlin")


@pytest.mark.parametrize(
    ("columns", "begin"),
    [
        ({"t_s": [1.0, 2.0, 3.0], "rate": [5, 6, 7]}, 1.0),
        ({"Time": STAMPS, "value": [5.0, 6.0, 7.0]}, 1_699_959_600.0),
        ({"Time": STAMPS.as_unit("ns"), "value": ["5", "6", "7"]}, 1_699_959_600.0),
        ({"ts": [1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000], "rate": [5, 6, 7]}, 1_700_000_000.0),
    ],
    ids=["numbers", "time stamps", "texts", "milliseconds"],
)
def test_a_table_of_rates_in_parquet(tmp_path, columns, begin):
    """It was in quarantine, and the message about that ended in a traceback."""
    pd.DataFrame(columns).to_parquet(tmp_path / "load.parquet")
    found = read(tmp_path)

    assert list(found) == [("rates", "load")]
    assert [begin, begin + 1, begin + 2] == found["rates", "load"]["t_s"].tolist()
    assert found["rates", "load"]["rate"].tolist() == [5, 6, 7]


def test_a_missing_number_in_parquet_is_no_observation(tmp_path):
    pd.DataFrame({"t_s": [1.0, 2.0], "rate": [None, 6.0], "note": ['a "b", c', "d\ne"]}).to_parquet(
        tmp_path / "load.parquet"
    )

    assert read(tmp_path)["rates", "load"]["rate"].isna().tolist() == [True, False]


def test_a_table_in_parquet_that_nobody_knows_is_one_message(tmp_path):
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(tmp_path / "load.parquet")

    assert reasons(tmp_path) == ["no known format has the columns a, b: name columns with --time and --value"]
