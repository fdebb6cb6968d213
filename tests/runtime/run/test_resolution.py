"""How many records a run takes for one: where that is chosen, what it changes, and that it is said."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import sim
from sim.runtime.run.resolution import resolution
from sim.scenario import ScenarioError, loads

TEXT = """
version: 1
job:
  src:  {source: {rate-per-subtask: 80k/s, record: 100 B}, parallelism: 2}
  sink: {input: {src: hash}, service: 10 us, parallelism: 2, state: {size: 8 MB}}
checkpoint: {interval: 1 s}
storage: {bandwidth: 100 MB/s, file-latency: 1 ms, metadata-latency: 1 ms}
run: {duration: 6 s, warmup: 2 s, resolution: auto}
"""


def scenario(*change: str) -> sim.Scenario:
    return loads(TEXT.replace(*change) if change else TEXT).scenarios[0]


@pytest.mark.parametrize(
    ("change", "records"),
    [
        (("100 B", "100 B"), 10),  # 327 in a buffer
        (("100 B", "500 B"), 2),
        (("100 B", "600 B"), 1),  # 54
        (("80k/s", "10k/s"), 10),  # 500 until the buffer timeout
        (("80k/s", "2k/s"), 3),
        (("80k/s", "1k/s"), 1),
        (("src: hash", "src: forward"), 10),
        (("80k/s", "200k/s"), 10),  # all buffers fill up
        (("run:", "faults: [{kill: 'sink[0]', at: 3 s}]\nrun:"), 10),
        (("1 s}\nstorage", "1 s, barriers: unaligned}\nstorage"), 10),
    ],
)
def test_a_buffer_that_leaves_holds_thirty_of_them(change, records):
    """Full, or as full as it is when the buffer timeout sends it."""
    assert records == resolution(scenario(*change)).records


def test_an_exact_run_is_asked_for_by_saying_nothing():
    silent, exact = scenario(", resolution: auto", ""), scenario("auto", "exact")

    assert (1, "") == (resolution(silent).records, str(resolution(silent)))
    assert silent == exact


def test_times_are_those_of_the_exact_run_and_counts_keep_their_size():
    """Ten as one: less to do, the same answers."""
    overloaded = TEXT.replace("80k/s", "200k/s")
    exact, coarse = (sim.simulate(loads(text).scenarios[0]) for text in (overloaded.replace("auto", "exact"), overloaded))

    assert [1, 10] == [exact.resolution.records, coarse.resolution.records]
    for name in ("numRecordsIn", "numRecordsOut"):
        assert exact.tasks[name].sum() == pytest.approx(coarse.tasks[name].sum(), rel=0.02)
    rates = [result.series.groupby("vertex")["numRecordsInPerSecond"].mean().to_dict() for result in (exact, coarse)]
    assert rates[0] == pytest.approx(rates[1], rel=0.02)
    assert exact.series["backlog"].iloc[-2] == pytest.approx(coarse.series["backlog"].iloc[-2], rel=0.02)
    durations = [result.checkpoints["end_to_end_duration"].median() for result in (exact, coarse)]
    assert durations[0] == pytest.approx(durations[1], rel=0.06)


def test_tables_carry_the_mark(tmp_path):
    """Whoever reads a table alone sees what it is made of; an exact one is what it always was."""
    sim.simulate(scenario()).write(tmp_path)
    sim.simulate(scenario("auto", "exact")).write(tmp_path / "exact")

    assert 10 == pd.read_parquet(tmp_path / "series.parquet").attrs["records_as_one"]
    assert {} == pd.read_parquet(tmp_path / "exact" / "series.parquet").attrs
    assert '"records_as_one": 10' in (tmp_path / "manifest.json").read_text()


@pytest.mark.parametrize("engine", ["interpreted", "reference"])
def test_engines_agree(engine):
    short = replace(scenario(), run=replace(scenario().run, duration_ns=300_000_000, warmup_ns=0))
    first, other = sim.simulate(short), sim.simulate(short, engine=engine)

    assert first.journal == other.journal
    assert first.tasks.equals(other.tasks)


def test_where_it_would_lie_a_choice_is_exact_and_says_why():
    thin, windowed = scenario("80k/s", "1k/s"), scenario("service: 10 us", "service: 10 us, window: {tumbling: 1 s, time: processing}")

    assert "simulated exactly: src -> sink: a buffer leaves with 50 records, and must leave with 60" == str(resolution(thin))
    assert "simulated exactly: job.sink.window: it fires single records" == str(resolution(windowed))


FILTERED = """
version: 1
job:
  src:   {source: {rate-per-subtask: 80k/s, record: 100 B}, parallelism: 2}
  parse: {input: {src: rebalance}, service: 6 us, record: 100 B, fan-out: 0.01, parallelism: 2}
  sink:  {input: {parse: hash}, service: 200 us, parallelism: 2}
  audit: {input: {parse: {ship: hash, fan-out: 0.5}}, service: 2 us, parallelism: 2}
checkpoint: {interval: 1 s}
storage: {bandwidth: 100 MB/s, file-latency: 1 ms, metadata-latency: 1 ms}
run: {duration: 4 s, warmup: 2 s, resolution: auto}
"""


@pytest.mark.parametrize(
    ("change", "records"),
    [
        (("src", "src"), (10, 10, 1, 10)),  # 40 records per buffer are too few for the sink only
        (("service: 2 us", "service: 2 us, window: {tumbling: 1 s, time: processing}"), (10, 10, 1, 1)),
        (("service: 2 us", "service: 400 us"), (10, 10, 1, 7)),  # for 2.8 ms
        (("service: 2 us", "service: 4 ms"), (10, 10, 1, 1)),  # longer than ten may be served in
        (("parse: {ship: hash, fan-out: 0.5}", "parse: {ship: forward, fan-out: 20}"), (1, 1, 1, 10)),  # 200 at once fill half a buffer
        (("src: rebalance", "src: {ship: rebalance, fan-out: 2}"), (5, 10, 2, 10)),  # two are written for each
        (("checkpoint: {i", "cluster: {network: {debloat: true}}\ncheckpoint: {i"), (1, 1, 1, 1)),
    ],
)
def test_each_vertex_takes_as_many_as_its_edges_allow(change, records):
    assert records == tuple(resolution(loads(FILTERED.replace(*change)).scenarios[0]).as_one.values())


def test_what_differs_between_vertices_is_said():
    sentence = str(resolution(loads(FILTERED).scenarios[0]))

    assert "10 records are simulated as one at src, parse, audit (1 at sink): parse -> sink: a buffer leaves with 40 records" == sentence


def test_counts_of_all_vertices_keep_their_size():
    """Also of one that writes records to one reader, and groups to another; and of those emitted again after a failure."""
    text = FILTERED.replace("run:", "faults: [{kill: 'sink[0]', at: 3200 ms}]\nrun:")
    exact, coarse = (sim.simulate(loads(document).scenarios[0]) for document in (text.replace("auto", "exact"), text))

    assert {"src": 10, "parse": 10, "sink": 1, "audit": 10} == coarse.tasks.attrs["records_as_one"]
    for name in ("numRecordsIn", "numRecordsOut"):
        assert exact.tasks.groupby("vertex")[name].sum().to_dict() == pytest.approx(
            coarse.tasks.groupby("vertex")[name].sum().to_dict(), rel=0.01
        )
    rates = [result.series.groupby("vertex")["numRecordsInPerSecond"].mean().to_dict() for result in (exact, coarse)]
    assert rates[0] == pytest.approx(rates[1], rel=0.02)
    again = [result.recoveries[["replayed_records", "served_again"]].iloc[0].to_dict() for result in (exact, coarse)]
    assert again[0] == pytest.approx(again[1], rel=0.03)


def test_a_number_is_refused_where_it_would_lie():
    with pytest.raises(ScenarioError, match=r"run\.resolution: cannot be 10: job\.sink\.window: it fires single records; write exact"):
        loads(TEXT.replace("auto", "10").replace("service: 10 us", "service: 10 us, window: {tumbling: 1 s, time: processing}"))


@pytest.mark.parametrize("word", ["fast", "1", "0", "1001", "2.5", "true"])
def test_other_words_are_refused(word):
    with pytest.raises(ScenarioError, match="expected exact, auto or a whole number from 2 to 1000"):
        scenario("auto", word)
