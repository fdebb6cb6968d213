"""A failure during a commit, or behind one: what takes effect, and what is done again and takes the time of it."""

import pytest

from sim.model.schema.study import loads
from sim.results.journal import EventType
from sim.runtime.simulate import simulate

TEXT = """
job:
  src: {source: {rate: 200/s, record: 1 kB}}
  sink: {input: {src: hash}, service: 100 us, connector: CONNECTOR, commit: {time: 3 s}, parallelism: 2}
checkpoint: {interval: 10 s}
cluster: {placement: isolated}
restart: {strategy: fixed-delay, delay: 1 s}
faults: [{kill: "KILLED", at: AT s}]
run: {duration: 24 s}
"""


def run(connector, killed, at):
    text = TEXT.replace("CONNECTOR", connector).replace("KILLED", killed).replace("AT", str(at))
    return simulate(loads(text).scenarios[0])


def downtime_s(result):
    (row,) = result.recoveries.to_dict("records")
    return (row["running"] - row["failed"]) / 1000


@pytest.mark.parametrize("connector", ["iceberg-v1", "iceberg-v2", "jdbc-xa"])
def test_what_is_committed_takes_no_time_again(connector):
    """Committers look up what is committed; an XA transaction that is unknown is committed."""
    result = run(connector, "src", 16)

    assert downtime_s(result) < 1.5
    assert tuple(result.violations) == ()


def test_a_cancelled_task_waits_for_its_commit_which_takes_effect():
    result = run("iceberg-v2", "src", 11)
    (_, commit, *_) = result.commits.to_dict("records")

    assert commit["commit_timestamp"] == pytest.approx(13_000, abs=100)
    assert downtime_s(result) == pytest.approx(2.2, abs=0.3)  # until the commit is done, which is longer than the delay
    assert tuple(result.violations) == ()


def test_a_task_that_fails_in_its_commit_commits_again():
    """It is down for the delay, and for the commit of what it restores."""
    result = run("jdbc-xa", "sink[0]", 11)

    assert downtime_s(result) == pytest.approx(
        2 + 0.2 + 3, abs=0.3
    )  # the other subtask is cancelled, and commits until 13 s
    assert tuple(result.violations) == ()


def test_restarts_that_a_lasting_fault_causes_do_not_go_on_for_ever():
    text = TEXT.replace("CONNECTOR", "jdbc-xa").replace(
        '{kill: "KILLED", at: AT s}', "{commit: sink, at: 5 s, lasts: 5 min}"
    )
    result = simulate(loads(text.replace("24 s", "2 min")).scenarios[0])

    assert len(result.recoveries) > 5
    assert result.job_status == "RUNNING"


def test_paimon_fails_once_more_after_it_has_committed_what_was_restored():
    failed = [row for row in run("paimon", "sink: committer", 11).journal if row.event_type is EventType.TASK_FAILED]

    assert [row.detail for row in failed] == ["killed", "on purpose, after restored commits"]
