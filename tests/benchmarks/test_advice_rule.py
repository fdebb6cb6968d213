"""Advice held to longer runs, and the rule for taking it back held to runs in which nothing is wrong."""

import json

import pandas as pd
import pytest

from benchmarks.advice_kept import Answer, limits_of, siblings, table
from benchmarks.advice_rule import MIN_QUIET_SHARE, fires, later_runs
from sim.advice.job import prepare_bench
from sim.advice.judgement import Limits
from sim.advice.report import report
from sim.advice.trials import TrialRunner
from tests.app.cli.conftest import short_trials  # noqa: F401 - a fixture of these tests, too
from tests.places import DATA

# The rule for taking an advised setting back, held to runs in which nothing is wrong.


RULE = {
    "roll_back_above_p50_ms": 200.0,
    "roll_back_above_longest_ms": 1000.0,
    "roll_back_below_per_second": 380.0,
    "roll_back_only_if_lag_grows": True,
}
FINE = {
    "end_to_end_p50_ms": 190.0,
    "end_to_end_max_ms": 900.0,
    "throughput_per_second": 300.0,
    "backlog_growth": 0.0,
    "ended_s": 60.0,
}


@pytest.mark.parametrize(
    ("changed", "rule", "reason"),
    [
        ({}, {}, ""),
        ({"end_to_end_p50_ms": 201.0}, {}, "p50 201 ms > 200 ms"),
        ({"end_to_end_max_ms": 1001.0}, {}, "longest 1001 ms > 1000 ms"),
        ({"end_to_end_max_ms": 1001.0}, {"roll_back_above_longest_ms": None}, ""),
        ({"backlog_growth": 6000.0}, {}, "300/s < 380/s"),
        ({}, {"roll_back_only_if_lag_grows": False}, "300/s < 380/s"),
    ],
)
def test_when_the_rule_fires(changed, rule, reason):
    assert fires(RULE | rule, FINE | changed) == reason


@pytest.mark.parametrize("file", sorted(DATA.glob("advice/*.json")), ids=lambda file: file.stem)
def test_the_rule_does_not_fire_on_what_was_predicted(file):
    """Of all kept advices."""
    advice = json.loads(file.read_text())
    own = advice["advised"]
    if own is None:
        return
    row = {
        "end_to_end_p50_ms": own["checkpoint_p50_ms"] * 1.09,
        "end_to_end_max_ms": own["checkpoint_ms"] * 1.09,
        "throughput_per_second": own["per_second"] * 0.97,
        "backlog_growth": 0.0,
        "ended_s": 60.0,
    }

    assert fires(advice["watch"], row) == ""


JOB = """\
# Barriers wait behind data, for more or less.
version: 1
job:
  src: {source: {rate: unlimited, record: 1 kB}, parallelism: 2}
  sink: {input: {src: hash}, service: {exponential: 2 ms}, parallelism: 2, connector: at-least-once}
checkpoint: {interval: 2 s}
storage: {bandwidth: 100 MB/s, file-latency: 20 ms}
run: {duration: 3 s}
"""


@pytest.mark.usefixtures("short_trials")
@pytest.mark.parametrize("limit_ms", [400, 20_000])
def test_the_rule_is_quiet_where_nothing_is_wrong(tmp_path, limit_ms):
    """The advised setting under twenty other seeds."""
    (tmp_path / "job.yaml").write_text(JOB)
    bench = prepare_bench(tmp_path / "job.yaml", (), (), recovery_ms=None)
    runner = TrialRunner(tmp_path, jobs=1, budget_s=20.0)
    advice = report(bench, Limits(checkpoint_ms=limit_ms), None, runner, tmp_path, max_replications=2)
    runs = later_runs(bench, advice, settled_ns=10**9)

    assert len(runs) == 20
    assert sum(not fires(advice.data["watch"], row) for row in runs) >= MIN_QUIET_SHARE * len(runs)


# Advice held to longer runs and to the recordings of what was advised.


def test_recordings_of_one_job_under_other_barriers():
    assert siblings("J4-pressed-aligned-r1") == ["J4-pressed-timeout500-r1", "J4-pressed-unaligned-r1"]
    assert siblings("J1-q20-aligned") == []


def test_limits_leave_room_above_the_history():
    rows = [("end_to_end_duration", False, value) for value in range(100, 1200, 100)] + [
        ("end_to_end_duration", True, 9e6),
        ("sync", False, 9e6),
    ]

    assert limits_of(pd.DataFrame(rows, columns=["quantity", "first", "value"])) == [1250, 5000]


def answer(longer_ms=900.0, checkpoints=300, *, confirmed=True):
    kept = checkpoints > 0 and longer_ms <= 1000
    return Answer(
        "J2", 1000.0, "aligned, every 5 s", 0.9, longer_ms, checkpoints, "J2 1.2 s", kept, False, confirmed, 12.0
    )


def test_what_keeps_and_what_is_refused_is_counted():
    last = table([answer(), answer(1100.0), answer(float("nan"), 0)]).splitlines()[-1]

    assert last.startswith("1 of 2 advised settings keep their limit in a longer run, 0 of 2 in their own recording. ")
    assert last.endswith(" For 1 limits none was advised.")


def test_what_was_advised_as_not_confirmed_is_counted_apart():
    last = table([answer(), answer(1100.0, confirmed=False), answer(confirmed=False)]).splitlines()[-1]

    assert last.startswith("1 of 1 advised settings keep")
    assert " Of 2 advised as not confirmed 1 kept it. " in last
    assert answer(1100.0, confirmed=False).row()[5] == "BROKEN, not confirmed"
