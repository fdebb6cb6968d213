"""A folder of traces becomes tables, tables become windows, windows drive a sweep."""

import pandas as pd
import pyarrow.parquet as pq
import pytest

from sim.studies.sweeps.sweep_file import define
from tests.studies.traces.conftest import write_more_traces, write_traces

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

JOB = """\
# How does it bear the load?
version: 1
job:
  source: {source: {rate: 1/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 1 s}
run: {duration: 3 s}
"""


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("pyspark")
    from sim.studies.sweeps import spark_session as room

    quick = {
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "2",
    }
    # JIT for large data costs more than it gains here
    with room.session("local[2]", conf=quick) as found:
        yield found


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """Tables of each kind of trace, written by Spark."""
    from sim.studies.traces.listing import list_files
    from sim.studies.traces.pipeline import read_traces

    folder = tmp_path_factory.mktemp("traces")
    write_traces(folder)
    out = tmp_path_factory.mktemp("tables")
    read_traces(spark, list_files(str(folder)).files, str(out))
    return str(out)


def test_a_sweep_replays_them(spark, tables, tmp_path):
    """The table of windows is what a sweep file reads: it names the table of rates, blanks and dirty rows and all."""
    from sim.studies.traces.pipeline import windows
    from sim.studies.traces.windows import Cutting

    windows(spark, tables, Cutting(20, trace="a/load", base=str(tmp_path))).windows.to_csv(
        tmp_path / "windows.csv", index=False
    )
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "sweep.yaml").write_text("scenario: job.yaml\nwindows: {source: source, file: windows.csv}\n")

    definition = define(tmp_path / "sweep.yaml")

    assert [dict(scenario.axes)["window"] for scenario in definition.scenarios] == [
        "0 s",
        "20 s",
        "40 s",
        "60 s",
        "80 s",
    ]
    assert {20 * 10**9} == {scenario.run.duration_ns for scenario in definition.scenarios}
    per_subtask = [scenario.job.vertices[0].source.rates[0].per_second for scenario in definition.scenarios]
    assert per_subtask == [50, 60, 70, 530, 90]


def test_tables_that_cannot_be_written_are_one_line(spark, tmp_path):
    from sim.studies.traces.listing import list_files
    from sim.studies.traces.parsing import TraceFileError
    from sim.studies.traces.pipeline import read_traces

    (tmp_path / "load.csv").write_text("epoch_s,rate\n1,2\n")
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(TraceFileError) as refused:
        read_traces(spark, list_files(str(tmp_path)).files, str(tmp_path / "out"))

    assert str(refused.value).startswith("the tables cannot be written: ")
    assert "\n" not in str(refused.value)


def test_the_same_without_spark(spark, tmp_path):
    """Rows, their order and their files, counts, and windows of each cut."""
    from sim.studies.traces.conversion import read_traces_here
    from sim.studies.traces.listing import list_files
    from sim.studies.traces.pipeline import read_traces, windows
    from sim.studies.traces.tables import TABLES
    from sim.studies.traces.windows import Cutting, windows_here

    (tmp_path / "raw").mkdir()
    write_traces(tmp_path / "raw")
    write_more_traces(tmp_path / "raw")
    files = list_files(str(tmp_path / "raw")).files
    there, here = str(tmp_path / "there"), str(tmp_path / "here")

    pd.testing.assert_frame_equal(read_traces(spark, files, there), read_traces_here(files, here), check_dtype=False)

    for table in TABLES:
        assert rows_by_folder(tmp_path / "there" / table) == rows_by_folder(tmp_path / "here" / table)
    assert not (tmp_path / "there" / "_staging").exists()
    for cut, length_s, count in (("time", 20, None), ("bursts", 7.5, 4), ("load", 7.5, 3), ("failures", 20, None)):
        cutting = Cutting(length_s, cut, count, base=str(tmp_path))
        expected, notes = windows(spark, there, cutting)
        found, notes_here = windows_here(here, cutting)
        assert notes == notes_here
        assert expected.to_csv(float_format="%.6g").replace("there/", "here/") == found.to_csv(float_format="%.6g")


def test_small_files_share_a_task(spark, tmp_path, monkeypatch):
    """A task writes a file of rates into the staging folder: as many as Spark has slots."""
    from sim.studies.traces import pipeline
    from sim.studies.traces.listing import list_files

    monkeypatch.setattr(pipeline, "_remove", lambda *_: None)
    (tmp_path / "raw").mkdir()
    for number in range(8):
        (tmp_path / "raw" / f"{number}.csv").write_text("epoch_s,rate\n1,2\n")
    counts = pipeline.read_traces(spark, list_files(str(tmp_path / "raw")).files, str(tmp_path / "out"))

    assert counts["count"][counts["kind"] == "rates"].tolist() == [1] * 8
    assert len(list((tmp_path / "out" / "_staging").glob("kind=rates/part-*"))) == 2


def rows_by_folder(table):
    """Folder -> schema and rows of the files in it."""
    found = {}
    for part in sorted(table.glob("*/*.parquet")):
        rows = pq.ParquetFile(part).read()
        found[part.parent.name] = (
            dict(zip(rows.schema.names, map(str, rows.schema.types), strict=True)),
            rows.to_pylist(),
        )
    return found
