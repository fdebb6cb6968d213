"""What a vertex writes to decides what its commit is, and when its output is visible."""

import pytest

import sim
from sim.model.schema.study import load, loads
from sim.model.schema.text import ScenarioError
from sim.model.sinks import SINKS, commit_of
from sim.protocol.options import forced_aligned_edges
from sim.runtime.simulate import simulate
from tests.places import ROOT
from tests.scenarios import read_scenario, run_scenario

SCENARIOS = ROOT / "scenarios"
JOB = """\
# A job with a sink.
version: 1
job:
  source: {{source: {{rate: 1k/s, record: 100 B}}}}
  map: {{input: {{source: hash}}}}
  sink: {{input: {{map: hash}}, {sink}}}
checkpoint: {{interval: 10 s, barriers: unaligned}}
run: {{duration: 1 min}}
"""


def job(sink):
    return read_scenario(JOB.format(sink=sink)).job


@pytest.mark.parametrize("name", SINKS)
def test_commit_begins_with_what_the_connector_does(name):
    assert commit_of(SINKS[name]) == job(f"connector: {name}, commit: as-connector").vertex("sink").commit


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("commit: as-connector", "names no connector"),
        ("connector: jdbc, commit: two-phase", "'jdbc' commits nothing"),
        ("connector: jdbc, commit: {time: 1 s}", "'jdbc' commits nothing"),
    ],
)
def test_a_commit_that_its_connector_cannot_make(sink, message):
    with pytest.raises(ScenarioError, match=message):
        job(sink)


def test_only_a_global_committer_is_behind_an_exchange():
    study = loads(JOB.format(sink="commit: {exchange: as-job}"))

    assert "has no effect: global reads it, not chained" in str(study.warnings[0])


@pytest.mark.parametrize(
    ("exchange", "forced"),
    [
        ("aligned", {("sink", "sink: committer")}),  # FLINK-36287
        ("as-job", set()),
        ("aligns-job", {("source", "map"), ("map", "sink"), ("sink", "sink: committer")}),  # FLINK-37870
    ],
)
def test_where_barriers_stay_aligned(exchange, forced):
    assert forced == forced_aligned_edges(job(f"commit: {{committer: global, exchange: {exchange}}}"))


@pytest.mark.parametrize(
    ("sink", "count"), [("iceberg-v2", 2), ("kafka-exactly-once", 2), ("iceberg-v1", 0), ("jdbc", 0)]
)
def test_a_connector_switches_overtaking_off_without_its_commits_being_simulated(sink, count):
    """FLINK-37870: in 2.0.0 and 1.20.1 a sink that commits aligns its whole job."""
    own = job(f"connector: {sink}")

    assert [len(forced_aligned_edges(own, version=version)) for version in ("2.0.0", "2.0.1", "")] == [count, 0, 0]


@pytest.fixture(scope="module")
def results():
    """By sink: every one of the catalogue."""
    return {
        scenario.job.vertex("sink").connector: simulate(scenario)
        for scenario in load(SCENARIOS / "sinks.yaml").scenarios
    }


def test_every_sink_of_the_catalogue_has_its_scenario(results):
    assert [*SINKS] == [*results]
    assert not [name for name, result in results.items() if result.violations]


@pytest.mark.parametrize("name", [name for name, kind in SINKS.items() if kind.committer != "none"])
def test_output_is_visible_when_its_checkpoint_is_complete(results, name):
    """Not before, and what a restart reads again is there once."""
    result = results[name]
    checkpoints = result.checkpoints.query("status == 'COMPLETED'").set_index("id")
    completed = checkpoints[["trigger_timestamp", "end_to_end_duration", "x_finalization"]].sum(axis="columns")
    commits = result.commits

    assert len(commits)
    assert (commits["commit_timestamp"] >= commits["checkpoint"].map(completed)).all()
    # the first record of an epoch waits for all of the interval
    assert 5000 <= commits["visible_latency"].median() < 5200


@pytest.mark.parametrize("name", [name for name, kind in SINKS.items() if kind.committer == "none"])
def test_output_that_waits_for_nothing_is_visible_at_once(results, name):
    """No commit, and what a restart reads again is written twice."""
    assert len(results[name].commits) == 0
    assert results[name].recoveries["replayed_records"].sum() > 0


DOWN = """\
# A task fails between a complete checkpoint and the commit of its transactions; the job is down for half a minute.
version: 1
job:
  events: {{source: {{rate: 100/s, record: 1 kB}}}}
  sink: {{input: {{events: hash}}, connector: {name}, commit: {{time: 500 ms{timeout}}}}}
checkpoint: {{interval: 10 s}}
faults: [{{kill: sink, at: 20.3 s}}]
restart: {{strategy: fixed-delay, delay: 30 s}}
run: {{duration: 70 s}}
"""


@pytest.mark.parametrize("name", [name for name, kind in SINKS.items() if kind.committer != "none"])
def test_a_job_is_down_for_longer_than_its_transactions_are_kept(name):
    """Where an external system forgets them, an interval of records is lost; by the sink's own timeout nothing is."""
    timeouts = ["", ", transaction-timeout: 25 s"] if SINKS[name].transaction_timeout_ns else [""]
    results = [run_scenario(DOWN.format(name=name, timeout=timeout)) for timeout in timeouts]
    lost = [int(result.commits["lost_records"].sum()) for result in results]

    assert all(len(result.recoveries) for result in results)
    assert lost[0] == 0
    assert not results[0].violations
    assert all(900 < records < 1100 for records in lost[1:]), "10 s at 100/s"
    assert all(result.violations for result in results[1:])


def test_the_timeouts_of_the_catalogue():
    assert {
        name: kind.transaction_timeout_ns // 3600 // 10**9
        for name, kind in SINKS.items()
        if kind.transaction_timeout_ns
    } == {"kafka-exactly-once": 1, "pulsar-exactly-once": 3}


def test_a_restart_within_the_timeout_commits_what_a_later_one_has_lost():
    """transaction.timeout.ms against the downtime: 30 s and 1 min, 5 s and 30 s."""
    lost = {
        (
            scenario.job.vertex("sink").commit.transaction_timeout_ns // 10**9,
            scenario.restart.delay_ns // 10**9,
        ): simulate(scenario)
        for scenario in load(SCENARIOS / "transaction-timeout.yaml").scenarios
    }

    assert {(30, 30)} == {times for times, result in lost.items() if result.commits["lost_records"].sum()}
    assert {(30, 30)} == {times for times, result in lost.items() if result.violations}
    assert 9000 < lost[30, 30].commits["lost_records"].sum() < 11_000  # an interval of 10 s at 1k/s


def test_a_table_says_when_output_is_visible():
    """In an interval with a commit, else at once."""
    header, rows = sim.load(SCENARIOS / "sinks.yaml").run(progress=False).comparison.consequences_texts()
    visible = dict(
        zip(
            (row[0].removeprefix("connector ") for row in rows),
            (row[header.index("visible p50")] for row in rows),
            strict=True,
        )
    )

    assert {name: "at once" if kind.committer == "none" else "5 s" for name, kind in SINKS.items()} == visible
