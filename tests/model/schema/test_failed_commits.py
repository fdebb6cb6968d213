"""Commits that fail (`faults: commit`): what each sink of the catalogue does then."""

from itertools import pairwise

import pytest

from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.sinks import SINKS
from sim.results.journal import Happening
from tests.scenarios import run_scenario

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
COMMITTING = [name for name, kind in SINKS.items() if kind.committer != "none"]


def ran(name, commit="{time: 100 ms}", *, profile="2.x", lasts=""):
    text = TEXT.format(name=name, commit=commit, profile=profile, lasts=f", lasts: {lasts}" if lasts else "")
    return run_scenario(text)


def failed(result):
    """What follows on each commit that failed."""
    return [row.detail for row in result.journal if row.happening is Happening.COMMIT_FAILED]


@pytest.mark.parametrize("name", COMMITTING)
def test_one_failed_commit_loses_nothing(name):
    """It is tried again, or the job restarts and commits what its checkpoint holds; as the connector has it."""
    result, retries = ran(name), SINKS[name].retries

    assert ["tried again" if retries else "the job restarts"] == failed(result)
    assert (0 if retries else 1) == len(result.recoveries)
    assert (result.violations, result.commits["lost_records"].sum()) == ((), 0)


@pytest.mark.parametrize("name", COMMITTING)
def test_what_a_sink_does_while_commits_fail_for_long(name):
    """Flink gives up after ten attempts and restarts the job again and again; PulsarSink after five, and drops the records."""
    kind, result = SINKS[name], ran(name, lasts="8 s")
    lost = kind.gives_up == "drop"

    assert [500 if lost else 0, lost] == [result.commits["lost_records"].sum(), bool(result.violations)]
    assert ("its records are lost" if lost else "the job restarts") in failed(result)
    assert lost == (len(result.recoveries) == 0)
    assert kind.retries == failed(result)[: kind.retries + 1].count("tried again")


def test_before_2_0_flink_tries_every_second_and_goes_on():
    """Without a limit, and the writer goes on meanwhile."""
    result = ran("kafka-exactly-once", "as-connector", profile="1.20", lasts="8 s")
    times = [row.time_ns / 1e9 for row in result.journal if row.happening is Happening.COMMIT_FAILED]

    assert 5 <= len(times) <= 9
    assert all(later - earlier == pytest.approx(1, abs=0.01) for earlier, later in pairwise(times[:4]))
    assert 0 == len(result.recoveries) == len(result.violations)


@pytest.mark.parametrize(("profile", "between_s"), [("2.x", 0.1), ("1.20", 1.1)])
def test_a_thread_with_records_to_serve_tries_again(profile, between_s):
    """Flink 2 tries again at once, with the thread at work all the time; a timer of Flink 1 waits for a record to end."""
    busy = "{time: 100 ms, retries: 3}, service: 9 ms"
    result = ran("kafka-exactly-once", busy, profile=profile, lasts="8 s")
    times = [row.time_ns / 1e9 for row in result.journal if row.happening is Happening.COMMIT_FAILED]

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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("faults=[{commit: events, at: 1 s}]", "'events' commits nothing"),
        ("faults=[{commit: sin, at: 1 s}]", "did you mean 'sink'"),
        ("job.sink.commit={gives-up: cry}", "expected restart or drop"),
    ],
)
def test_a_fault_of_commits_needs_a_sink(change, message):
    with pytest.raises(ScenarioError, match=message):
        loads(TEXT.format(name="hudi", commit="as-connector", profile="2.x", lasts=""), overrides=[change])


def test_each_committing_sink_has_a_source_for_it():
    assert [name for name in COMMITTING if not SINKS[name].failed_commit] == []
