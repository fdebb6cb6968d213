"""What is small and lies here needs no Spark."""

import pytest

from sim.studies.traces import anywhere
from sim.studies.traces.listing import TraceFile


@pytest.mark.parametrize(("most", "small"), [(10, True), (9, False)])
def test_files_are_small_together(monkeypatch, most, small):
    monkeypatch.setattr(anywhere, "MAX_BYTES", most)

    assert small == anywhere.files_are_small([TraceFile(name, "folder", name, size=5) for name in "ab"])


@pytest.mark.parametrize(("most", "small"), [(10, True), (9, False)])
def test_tables_are_small_together(tmp_path, monkeypatch, most, small):
    monkeypatch.setattr(anywhere, "MAX_BYTES", most)
    for name in "ab":
        (tmp_path / "rates" / f"trace={name}").mkdir(parents=True)
        (tmp_path / "rates" / f"trace={name}" / "part-00000.parquet").write_bytes(b"12345")

    assert small == anywhere.tables_are_small(str(tmp_path))


def test_buckets_are_never_read_here():
    assert not anywhere.files_are_small([TraceFile("a", "s3://bucket", "a.csv")])
    assert not anywhere.tables_are_small("s3://bucket/tables")
