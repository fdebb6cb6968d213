"""CSV files of others: what cannot be read is told with the file's line, whoever reads it."""

import gzip
import os
from fractions import Fraction

import pandas as pd
import pytest

from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from tests.scenarios import read_scenario

BASE = """\
# What then?
job:
  a: {source: {rate: %s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, service: 10 us, parallelism: 2}
checkpoint: {interval: 5 s}
run: {duration: 60 s}
"""
READERS = {
    "rates": BASE % "{trace: t.csv, column: v}",
    "faults": BASE % "1k/s" + "faults: [{kill: b, trace: t.csv, column: v}]\n",
    "speeds": BASE % "1k/s" + "storage: {dfs: {nodes: 3, slow: {trace: t.csv, column: v}}}\n",
}


def read(text, folder, reader):
    (folder / "t.csv").write_bytes(text.encode())
    return read_scenario(READERS[reader], "s", folder=folder)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("text", "line"), [("t,v\n0,1\n1," + "2" * 200_000 + "\n", 3), ("t," + "v" * 200_000 + "\n0,1\n", 1)]
)
def test_a_field_without_end_is_told_with_its_line(tmp_path, reader, text, line):
    with pytest.raises(ScenarioError) as refused:
        read(text, tmp_path, reader)

    assert f"t.csv:{line}: field larger than field limit" in str(refused.value)


@pytest.mark.parametrize("reader", READERS)
def test_lines_end_as_they_like(tmp_path, reader):
    """CR alone, as old spreadsheets write it, is a line's end as well."""
    text = "t,v\n0,1\n1,2\n2,3\n"

    assert read(text, tmp_path, reader) == read(text.replace("\n", "\r"), tmp_path, reader)


TEN_SECONDS = "t,v\n" + "".join(f"{100 + at},{rate}\n" for at, rate in enumerate([1, 1, 2, 3, 3, 3, 4, 5, 5, 5]))


ODD_TIMES = {
    "1": Fraction(1),
    "2.5": Fraction(5, 2),
    "3.0000000004": Fraction("3.0000000004"),
    "4.123456789": Fraction("4.123456789"),
    "5.0000000005": Fraction("5.0000000005"),
    "+6": Fraction(6),
    "7e0": Fraction(7),
    "22/3": Fraction(22, 3),
    "0000000000000000000008": Fraction(8),
}
ODD_RATES = {
    "3": Fraction(3),
    "0.1": Fraction(1, 10),
    "0.333333": Fraction("0.333333"),
    "0.3333333": Fraction(1, 3),
    "0.33333333333333331": Fraction(1, 3),
    "2e3": Fraction(2000),
    "1/7": Fraction(1, 7),
    "12345.678901": Fraction("12345.678901"),
    "0.000000001": Fraction(0),
}


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("shared", [1, 7])
def test_odd_numbers_are_exact_too(tmp_path, unit, shared):
    """Times to the nanosecond, the half to the even one; rates as the nearest fraction of at most a million parts."""
    scale_s = {"s": Fraction(1), "ms": Fraction(1, 1000)}[unit]
    rows = "".join(f"{at},{rate}\n" for at, rate in zip(ODD_TIMES, ODD_RATES, strict=True))
    (tmp_path / "t.csv").write_text("t,v\n" + rows)
    trace = f"{{trace: t.csv, column: v, time-unit: {unit}, scale: 0.3}}"

    job = (
        loads((BASE % trace).replace("parallelism: 2", f"parallelism: {shared}", 1), "s", folder=tmp_path)
        .scenarios[0]
        .job
    )

    starts = [round((at - 1) * scale_s * 10**9) for at in ODD_TIMES.values()]
    expected = [(at, rate * Fraction(3, 10) / shared) for at, rate in zip(starts, ODD_RATES.values(), strict=True)]
    expected = [row for i, row in enumerate(expected) if i == 0 or row[1] != expected[i - 1][1]]
    assert expected == [(rate.start_ns, rate.per_second) for rate in job.vertices[0].source.rates]


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_changed_is_read_again(tmp_path, reader):
    before = read("t,v\n0,1\n5,2\n9,3\n", tmp_path, reader)

    assert before != read("t,v\n0,7\n5,2\n9,3\n7000,9\n", tmp_path, reader)


@pytest.mark.parametrize("reader", READERS)
def test_the_cells_of_a_sweep_read_a_file_once(tmp_path, reader):
    """The file loses its rows, but keeps its size and time: a second reading would fail."""
    file = tmp_path / "t.csv"
    first = read("t,v\n0,1\n5,2\n9,3\n", tmp_path, reader)
    stat = file.stat()
    file.write_text("no rows".ljust(stat.st_size))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    assert first == read_scenario(READERS[reader], "s", folder=tmp_path)


def test_a_window_behind_the_end_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text(TEN_SECONDS)

    with pytest.raises(ScenarioError) as refused:
        loads(BASE % "{trace: t.csv, column: v, from: 10 s}", "s", folder=tmp_path)

    assert "t.csv ends after 9 s: from: 10 s is later" in str(refused.value)


PACKED = gzip.compress(("t,v\n" + "".join(f"{at},{at * 7919 % 100_003}\n" for at in range(9000))).encode())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            PACKED[: len(PACKED) // 2],
            "cannot be read: Compressed file ended before the end-of-stream marker was reached",
        ),
        (PACKED[:1000] + bytes(200) + PACKED[1200:], "cannot be read: Error -3 while decompressing data"),
        (PACKED[:-8] + bytes(8), "cannot be read: CRC check failed"),
        (b"t,v\n1,2\n", "cannot be read: Not a gzipped file"),
        (gzip.compress(b"t,v\n1,5\n3,5\n2,6\n"), ":4: time does not increase"),
        (gzip.compress(b"v,x\n1,5\n2,6\n"), "the column 'v' cannot be both the time and the rate"),
        (gzip.compress(b"t,v,v\n1,5,6\n"), "has the column 'v' twice"),
        (gzip.compress(b"t,v\n1,5\n2\n"), ":3: has fewer fields than there are columns"),
        (gzip.compress("t,v\n1,2\n".encode("utf-16")), "is not UTF-8 text"),
        (gzip.compress(bytes(range(256))), "is not UTF-8 text"),
        (gzip.compress(b"t,v\n1,2" + bytes(300_000) + b"\n"), ":2: field larger than field limit"),
    ],
    ids=range(11),
)
def test_a_damaged_trace_is_one_line(tmp_path, content, message):
    (tmp_path / "t.csv.gz").write_bytes(content)
    with pytest.raises(ScenarioError) as refused:
        loads(BASE % "{trace: t.csv.gz, column: v}", "s", folder=tmp_path)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.model.schema.trace.MAX_BYTES", 10**6)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"t,v\n1," + b"0" * 10**7))
    with pytest.raises(ScenarioError, match=r"t\.csv\.gz is larger than 1 MB"):
        loads(BASE % "{trace: t.csv.gz, column: v}", "s", folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("self.csv", "cannot be read: Too many levels"),
        ("folder", "is a folder without Parquet files"),
        ("x.parquet", "is not a Parquet file"),
    ],
)
def test_a_trace_that_is_no_file(tmp_path, name, message):
    (tmp_path / "self.csv").symlink_to(tmp_path / "self.csv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ScenarioError, match=message):
        loads(BASE % f"{{trace: {name}, column: v}}", "s", folder=tmp_path)


def test_a_table_of_rates(tmp_path):
    """As `ckptsim traces` writes it: a folder of Parquet; a blank keeps the rate before it."""
    (tmp_path / "trace=a").mkdir()
    rows = pd.DataFrame({"line": [2, 3, 4, 5], "t_s": [100.0, 101, 102, 103.5], "rate": [1.5, None, 2, 3]})
    rows.to_parquet(tmp_path / "trace=a" / "part-0.parquet")
    scenario = read_scenario(BASE % "{trace: trace=a, column: rate}", "s", folder=tmp_path)

    expected = [(0, Fraction(3, 2)), (2 * 10**9, 2), (3_500_000_000, 3)]
    assert expected == [(rate.start_ns, 2 * rate.per_second) for rate in scenario.job.vertices[0].source.rates]


def test_settings_of_a_sweep_share_the_rates_of_a_window(tmp_path):
    """Thousands of steps are made once, not in every cell; another window, scale or parallelism has its own."""

    def rates(begin, interval="5 s", parallelism=2):
        changes = [f"job.a.source.rate={{trace: t.csv, column: v, from: {begin}}}", f"checkpoint.interval={interval}"]
        changes.append(f"job.a.parallelism={parallelism}")
        scenario = read_scenario(BASE % "1/s", "s", overrides=changes, folder=tmp_path)
        return scenario.job.vertices[0].source.rates

    (tmp_path / "t.csv").write_text(TEN_SECONDS)

    assert rates("2 s") is rates("2 s", interval="9 s")
    assert rates("2 s") != rates("4 s")
    assert rates("2 s") != rates("2 s", parallelism=1)


@pytest.mark.parametrize("reader", READERS)
def test_a_column_that_is_there_twice_is_refused_by_all_readers(tmp_path, reader):
    """The last one counted silently where speeds and faults are read."""
    with pytest.raises(ScenarioError) as refused:
        read("t,v,v\n0,1,5\n1,2,6\n2,3,7\n", tmp_path, reader)

    assert "t.csv has the column 'v' twice" in str(refused.value)
