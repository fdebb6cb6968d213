"""`source: {backlog: ...}` and `checkpoint: {interval-during-backlog: ...}`: what reaches the model, and what is refused."""

import pytest

from sim.model.job import Backlog
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError

TEXT = """# Who is behind?
version: 1
job:
  src: {{source: {{rate: {rate}, record: 1 kB, records: 1k{backlog}}}, parallelism: 4}}
  op: {{input: {{src: hash}}}}
{rest}
run: {{duration: 10 s}}
"""


def study(
    backlog=", backlog: {lag: 5 s}", rest="checkpoint: {interval: 5 s, interval-during-backlog: 1 min}", rate="100/s"
):
    return loads(TEXT.format(backlog=backlog, rest=rest, rate=rate), name="x")


def test_history_is_shared_by_the_subtasks():
    """Rounded up: nobody's last record of it is live."""
    source = study(", backlog: {records: 10}").scenarios[0].job.vertices[0].source

    assert Backlog(records=3) == source.backlog


@pytest.mark.parametrize(("written", "expected"), [("1 min", 60 * 10**9), ("off", 0), ("5 s", 5 * 10**9)])
def test_the_interval_is_as_long_or_longer_or_there_is_none(written, expected):
    given = study(rest=f"checkpoint: {{interval: 5 s, interval-during-backlog: {written}}}")

    assert Backlog(lag_ns=5 * 10**9) == given.scenarios[0].job.vertices[0].source.backlog
    assert expected == given.scenarios[0].checkpoint.interval_during_backlog_ns
    assert given.warnings == ()


@pytest.mark.parametrize(("written", "expected"), [("1 min", 60 * 10**9), ("0 s", 0)])
def test_flinks_own_key_is_read(written, expected):
    """0 disables checkpoints meanwhile, as CheckpointingOptions says."""
    rest = f"checkpoint: {{interval: 5 s}}\nflink: {{execution.checkpointing.interval-during-backlog: {written}}}"

    assert expected == study(rest=rest).scenarios[0].checkpoint.interval_during_backlog_ns


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"rest": "checkpoint: {interval: 5 s, interval-during-backlog: 1 s}"},
            "less than the interval, 5 s: write more, or off",
        ),
        ({"backlog": ", backlog: {}"}, "write exactly one of records (history that is read first) and lag"),
        ({"backlog": ", backlog: {records: 5, lag: 1 s}"}, "write exactly one of records"),
        ({"backlog": ", backlog: {records: 2k}"}, "is 2000, more than the source emits: 1000"),
        ({"rate": "unlimited"}, "records of an unlimited source are never overdue"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(ScenarioError) as raised:
        study(**given)

    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backlog": ""}, "no source says source: {backlog: ...}"),
        ({"rest": "checkpoint: {interval: off, interval-during-backlog: 1 min}"}, "has no effect without an interval"),
        (
            {"rest": "checkpoint: {interval: 5 s, interval-during-backlog: 1 min}\ncluster: {profile: 1.15}"},
            "has no effect with Flink 1.15: it came with 1.18",
        ),
    ],
)
def test_what_has_no_effect_is_said(given, message):
    assert [message in str(warning) for warning in study(**given).warnings] == [True]
