"""A folder of traces becomes tables, tables become windows, windows drive a sweep."""

import gzip

import pandas as pd
import pytest

from sim.scenario import ScenarioError
from sim.sweep.asked.definition import define

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
    from sim.sweep.spark.session import session

    with session("local[2]", "tests of traces") as found:
        yield found


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """A load with a burst, a failure in it, arrivals, dirty rows, and a file nobody knows."""
    from sim.traces.pipeline import read_traces

    folder = tmp_path_factory.mktemp("traces")
    (folder / "a").mkdir()
    load = [100 + at + (900 if 60 <= at < 62 else 0) for at in range(120)]
    rows = "".join(f"{1000 + at},{rate}\n" for at, rate in enumerate(load))
    (folder / "a" / "load.csv").write_text(f"epoch_s,rate\n{rows}1050,3\n1200,-1\n")
    (folder / "a" / "kills.csv").write_text("kill_epoch_s\n1045\n")
    (folder / "arrivals.csv.gz").write_bytes(gzip.compress(b"TIMESTAMP,x\n0.1,1\n0.2,1\n0.9,1\n3.5,1\n"))
    (folder / "notes.csv").write_text("what,is,this\n1,2,3\n")
    out = tmp_path_factory.mktemp("tables")
    counts = read_traces(spark, str(folder), str(out))
    return out, counts


def test_every_row_is_somewhere(tables):
    """Good ones in a table, others in quarantine with the reason; arrivals are counted per second, those without any as well."""
    out, counts = tables

    told = {(row["trace"], row["kind"], row["reason"]): row["count"] for _, row in counts.fillna("").iterrows()}
    assert {
        ("a/kills", "failures", ""): 1,
        ("a/load", "quarantine", "rate is negative"): 1,
        ("a/load", "quarantine", "time goes back"): 1,
        ("a/load", "rates", ""): 120,
        ("arrivals", "arrivals", ""): 4,
        ("notes", "quarantine", "no known format has the columns what, is, this"): 1,
    } == told
    rates = pd.read_parquet(out / "rates")
    assert [3, 0, 0, 1] == rates[rates["trace"] == "arrivals"].sort_values("t_s")["rate"].tolist()
    assert not (out / "_staging").exists()


@pytest.mark.parametrize(
    ("cut", "count", "expected"),
    [("time", None, [0, 20, 40, 60, 80]), ("bursts", 1, [60]), ("load", 3, [0, 40, 60]), ("failures", None, [pytest.approx(45 - 20 / 3)])],
)
def test_windows(spark, tables, cut, count, expected):
    """One after the other, the most bursty, one of each class of load, around a failure of the same folder."""
    from sim.traces.windows import windows

    found = windows(spark, str(tables[0]), length_s=20, cut=cut, count=count, trace="a/load").toPandas()

    assert expected == found["from_s"].tolist()
    assert found["failures"].sum() == (1 if cut in ("time", "load", "failures") else 0)
    if cut == "bursts":
        assert 1000 / (60 + 109.5 + 90) < found["burst"][0]
        assert 20 == found["rows"][0]


def test_a_sweep_replays_them(spark, tables, tmp_path):
    """The table of windows is what a sweep file reads."""
    from sim.traces.windows import windows

    windows(spark, str(tables[0]), length_s=20, trace="a/load").toPandas().to_csv(tmp_path / "windows.csv", index=False)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "load.csv").write_text("epoch_s,rate\n" + "".join(f"{1000 + at},{at + 1}\n" for at in range(120)))
    cut = "{source: source, trace: load.csv, column: rate, length: 20 s, file: windows.csv}"
    (tmp_path / "sweep.yaml").write_text(f"scenario: job.yaml\nwindows: {cut}\n")

    asked = define(tmp_path / "sweep.yaml")

    assert 5 == len(asked.scenarios)
    assert [0.5, 10.5, 20.5] == [scenario.job.vertices[0].source.rates[0].per_second for scenario in asked.scenarios[:3]]


def test_nothing_to_read(spark, tmp_path):
    from sim.traces.lines import TraceFileError
    from sim.traces.pipeline import read_traces

    with pytest.raises(TraceFileError, match="no files that end in"):
        read_traces(spark, str(tmp_path), str(tmp_path / "out"))
    with pytest.raises(ScenarioError, match="no such file"):
        define(tmp_path / "sweep.yaml")
