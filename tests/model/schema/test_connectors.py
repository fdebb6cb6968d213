"""What a vertex writes to decides what its commit is, when its output is visible, and what failing commits do."""

from itertools import pairwise

import pytest

import sim
from sim.model.schema.study import load, loads
from sim.model.sinks import SINKS
from sim.protocol.options import forced_aligned_edges
from sim.results.journal import EventType
from sim.runtime.simulate import simulate
from tests.places import ROOT
from tests.scenarios import read_scenario, run_scenario

# What a vertex writes to decides what its commit is, and when its output is visible.


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
    assert SINKS[name].commit == job(f"connector: {name}, commit: as-connector").vertex("sink").commit


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


@pytest.mark.parametrize("name", [name for name, kind in SINKS.items() if kind.commit])
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


@pytest.mark.parametrize("name", [name for name, kind in SINKS.items() if kind.commit is None])
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


@pytest.mark.parametrize("name", [name for name, kind in SINKS.items() if kind.commit])
def test_a_job_is_down_for_longer_than_its_transactions_are_kept(name):
    """Where an external system forgets them, an interval of records is lost; by the sink's own timeout nothing is."""
    timeouts = ["", ", transaction-timeout: 25 s"] if SINKS[name].commit.transaction_timeout_ns else [""]
    results = [run_scenario(DOWN.format(name=name, timeout=timeout)) for timeout in timeouts]
    lost = [int(result.commits["lost_records"].sum()) for result in results]

    assert all(len(result.recoveries) for result in results)
    assert lost[0] == 0
    assert not results[0].violations
    assert all(900 < records < 1100 for records in lost[1:]), "10 s at 100/s"
    assert all(result.violations for result in results[1:])


def test_the_timeouts_of_the_catalogue():
    assert {
        name: kind.commit.transaction_timeout_ns // 3600 // 10**9
        for name, kind in SINKS.items()
        if kind.commit and kind.commit.transaction_timeout_ns
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
    assert 4500 < lost[30, 30].commits["lost_records"].sum() < 5500  # an interval of 10 s at 1k/s, of one of two tasks


def test_a_table_says_when_output_is_visible():
    """In an interval with a commit, else at once."""
    header, rows = sim.load(SCENARIOS / "sinks.yaml").run().comparison.consequences_texts()
    visible = dict(
        zip(
            (row[0].removeprefix("connector ") for row in rows),
            (row[header.index("visible p50")] for row in rows),
            strict=True,
        )
    )

    assert {name: "at once" if kind.commit is None else "5 s" for name, kind in SINKS.items()} == visible


# Commits that fail (`faults: commit`): what each sink of the catalogue does then.


TEXT = """\
# A commit fails.  What becomes of its records?
version: 1
job:
  events: {{source: {{rate: 100/s, record: 1 kB}}}}
  sink: {{input: {{events: hash}}, connector: {name}, commit: {commit}}}
checkpoint: {{interval: 5 s}}
cluster: {{profile: {profile}}}
faults: [{{commit: sink, at: 12 s{lasts}}}]
restart: {{strategy: fixed-delay, delay: 1 s}}
run: {{duration: 60 s}}
"""
COMMITTING = [name for name, kind in SINKS.items() if kind.commit]


def ran(name, commit="{time: 100 ms}", *, profile="2.x", lasts=""):
    text = TEXT.format(name=name, commit=commit, profile=profile, lasts=f", lasts: {lasts}" if lasts else "")
    return run_scenario(text)


def failed(result):
    """What follows on each commit that failed."""
    return [row.detail for row in result.journal if row.event_type is EventType.COMMIT_FAILED]


@pytest.mark.parametrize("name", COMMITTING)
def test_one_failed_commit_loses_nothing(name):
    """It is tried again, or the job restarts and commits what its checkpoint holds; as the connector has it."""
    result, retries = ran(name), SINKS[name].commit.retries

    assert ["tried again" if retries else "the job restarts"] == failed(result)
    assert (0 if retries else 1 + SINKS[name].fails_after_restore) == len(result.recoveries)
    assert (result.violations, result.commits["lost_records"].sum()) == ((), 0)


@pytest.mark.parametrize("name", COMMITTING)
def test_what_a_sink_does_while_commits_fail_for_long(name):
    """Flink gives up after ten attempts and restarts the job again and again; PulsarSink after five, and drops the records."""
    kind, result = SINKS[name], ran(name, lasts="8 s")
    lost = kind.commit.gives_up == "drop"

    assert [500 if lost else 0, lost] == [result.commits["lost_records"].sum(), bool(result.violations)]
    assert ("its records are lost" if lost else "the job restarts") in failed(result)
    assert lost == (len(result.recoveries) == 0)
    assert kind.commit.retries == failed(result)[: kind.commit.retries + 1].count("tried again")


def test_before_2_0_flink_tries_every_second_and_goes_on():
    """Without a limit, and the writer goes on meanwhile."""
    result = ran("kafka-exactly-once", "as-connector", profile="1.20", lasts="8 s")
    times = [row.time_ns / 1e9 for row in result.journal if row.event_type is EventType.COMMIT_FAILED]

    assert 5 <= len(times) <= 9
    assert all(later - earlier == pytest.approx(1, abs=0.01) for earlier, later in pairwise(times[:4]))
    assert 0 == len(result.recoveries) == len(result.violations)


@pytest.mark.parametrize(("profile", "between_s"), [("2.x", 0.1), ("1.20", 1.1)])
def test_a_thread_with_records_to_serve_tries_again(profile, between_s):
    """Flink 2 tries again at once, with the thread at work all the time; a timer of Flink 1 waits for a record to end."""
    busy = "{time: 100 ms, retries: 3}, service: 9 ms"
    result = ran("kafka-exactly-once", busy, profile=profile, lasts="8 s")
    times = [row.time_ns / 1e9 for row in result.journal if row.event_type is EventType.COMMIT_FAILED]

    between = [later - earlier for earlier, later in pairwise(times[:4])]
    assert between == pytest.approx([between_s] * 3, abs=0.01 if profile == "1.20" else 1e-9)
    assert result.violations == ()


def test_what_waits_for_another_attempt_is_in_the_next_checkpoint():
    """The task fails between two attempts, and a checkpoint that was taken meanwhile is restored."""
    text = TEXT.format(name="kafka-exactly-once", commit="as-connector", profile="1.20", lasts=", lasts: 20 s")
    text = text.replace("faults: [", "faults: [{kill: sink, at: 28.5 s}, ")
    result = run_scenario(text)

    assert len(result.recoveries) == 1
    assert result.violations == ()
    assert 5000 < result.commits["records"].sum() < 6000


@pytest.mark.parametrize("gives_up", ["restart", "drop"])
def test_a_scenario_may_say_it(gives_up):
    result = ran("file-sink", f"{{time: 100 ms, retries: 2, gives-up: {gives_up}}}", lasts="8 s")

    assert [
        "tried again",
        "tried again",
        "the job restarts" if gives_up == "restart" else "its records are lost",
    ] == failed(result)[:3]
    assert (gives_up == "drop") == bool(result.violations)
    if gives_up == "drop":
        assert "lost: its commit failed, and the sink gave up" in str(result.violations[0])


def test_each_committing_sink_has_a_source_for_it():
    assert [name for name in COMMITTING if not SINKS[name].failed_commit] == []
