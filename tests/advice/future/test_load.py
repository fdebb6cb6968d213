"""Traces of what arrives: a busy piece and a usual one."""

import re

import pytest

from sim.advice.job import prepare_bench
from sim.model.schema.text import ScenarioError

JOB = """\
# A job.
version: 1
job:
  a: {source: {RATE, record: 100 B}, parallelism: 2}
  b: {source: {rate: 5/s, record: 100 B}}
  sink: {input: {a: hash, b: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 30 s}
run: {duration: 3 s}
"""


@pytest.fixture
def day(tmp_path):
    """100/s, and 900/s from the third hour to the fourth."""
    rows = [f"{60 * i},{900 if 180 <= i < 240 else 100}" for i in range(24 * 60)]
    (tmp_path / "day.csv").write_text("time,rate\n" + "\n".join(rows) + "\n")
    return tmp_path / "day.csv"


def job(folder, rate="rate: 10/s"):
    (folder / "job.yaml").write_text(JOB.replace("RATE", rate))
    return folder / "job.yaml"


@pytest.mark.parametrize("rate", ["rate: 10/s", "rate-per-subtask: 10/s"])
def test_a_csv_of_rates_drives_a_source(day, tmp_path, rate):
    """However the scenario says its rate, the trace is that of the whole vertex; limits hold in its busiest piece as well."""
    bench = prepare_bench(job(tmp_path, rate), (), [f"a={day}"], recovery_ms=None)
    rates = {
        name: bench.load(bench.common | world).job.vertex("a").source.rates for name, world in bench.worlds.items()
    }

    assert {name: steps[0].per_second for name, steps in rates.items()} == {"busiest": 450, "usual": 50}


def test_a_trace_of_the_scenario_itself(day, tmp_path):
    """Nobody has to say it twice; one that is cut by hand stays so."""
    written = job(tmp_path, "rate: {trace: day.csv, column: rate}")
    cut = prepare_bench(job(tmp_path, "rate: {trace: day.csv, column: rate, from: 1 h}"), (), (), recovery_ms=None)

    assert cut.worlds == {"": {}}
    written = job(tmp_path, "rate: {trace: day.csv, column: rate}")
    assert list(prepare_bench(written, (), (), recovery_ms=None).worlds) == ["busiest", "usual"]


def test_of_two_traces_only_what_both_have_is_a_piece(day, tmp_path):
    """The busiest hour of a day is its fourth; with a trace of two hours beside it the piece lies within these."""
    (tmp_path / "morning.csv").write_text(
        "time,rate\n" + "\n".join(f"{60 * i},{5 if i < 60 else 7}" for i in range(120)) + "\n"
    )
    bench = prepare_bench(job(tmp_path), (), [f"a={day}", f"b={tmp_path / 'morning.csv'}"], recovery_ms=None)
    vertices = bench.load(bench.common | bench.worlds["busiest"]).job.vertices

    assert [vertex.source.rates[0].per_second for vertex in vertices[:2]] == [50, 7]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("day.csv", "which of the sources a, b?"),
        ("c=day.csv", "there is no source 'c'"),
        ("a=night.csv", "no such file"),
        ("a=day.csv:tare", "no column 'tare'; it has time, rate"),
        ("a=wide.csv", "which column? wide.csv has time, in, out"),
        ("a=broken.csv", "'many' is not a rate"),
    ],
)
def test_what_cannot_arrive(day, tmp_path, monkeypatch, given, message):
    (tmp_path / "wide.csv").write_text("time,in,out\n0,1,2\n")
    (tmp_path / "broken.csv").write_text("time,in\n0,1\n9000,many\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ScenarioError, match=re.escape(message)):
        prepare_bench(job(tmp_path), (), [given], recovery_ms=None)
