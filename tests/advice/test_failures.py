"""What recovery is judged by: a lost task manager, whose slots have to be replaced, and a failing task beside it."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from sim.advice.answer import answer, slots_texts
from sim.advice.cautions import restart_attempts_caution
from sim.advice.configuration import diff_flink_keys
from sim.advice.job import prepare_bench
from sim.advice.judgement import MEASURED
from sim.advice.levers import HEARTBEATS, RESTARTS, WITHOUT_END, rank_levers
from sim.advice.settings import make_candidate, protocols
from sim.advice.situation import OUTAGE, RESTORE, dominant, situation_of
from sim.advice.texts import grade, recovery_text, transaction_cautions, verdict
from sim.advice.trials import FAILURE, TASK, TASK_MANAGER, Bench, slots_ms
from sim.app.verbs.advise import Advice
from sim.model.faults import TaskManagerLost
from sim.studies.sweeps.design import override
from tests.advice.levers.test_levers import JOB as ON_HEAP
from tests.advice.levers.test_levers import situation
from tests.advice.made_up import JOB, MadeUp, searched
from tests.scenarios import read_scenario

STUBBORN = "flink: {restart-strategy.type: fixed-delay, restart-strategy.fixed-delay.attempts: 3, restart-strategy.fixed-delay.delay: 1 s}"


RATE = (
    "failure-rate.max-failures-per-interval: 5, restart-strategy.failure-rate.failure-rate-interval: 1 h, "
    "restart-strategy.failure-rate.delay: 10 s"
)


def test_a_job_that_may_fail_for_good_does_not_recover(job):
    """Three attempts are used up before heartbeats tell that slots are gone, though this trial recovered."""
    job.write_text(f"{JOB}{STUBBORN}\n")
    found, failing = (
        searched(Bench(job, {}, failure=failure), MadeUp({"aligned": 100.0}), recovery_ms=120_000)
        for failure in (TASK_MANAGER, TASK)
    )

    assert failing.chosen is not None
    column = MEASURED.index("recovery_ms")
    assert math.inf == found.trials["30 s", "aligned"][""][0, column]
    assert recovery_text(found.setting(("30 s", "aligned"))) == "may fail"
    found.rows["job_status"] = "FAILED: task manager 2 is not reachable"
    own = found.judge(found.trials)
    assert {recovery_text(setting) for setting in own if math.isinf(setting.recovery_ms)} == {"FAILED"}
    assert RESTARTS in {change.lever for change in found.candidate_of(found.chosen.name).changes}


@pytest.mark.parametrize(
    ("strategy", "mtbf_s", "text"),
    [
        (
            "fixed-delay.attempts: 3, restart-strategy.fixed-delay.delay: 10 s",
            21_600.0,
            "the job ends at failure 2 to 4, in about 12 h to 24 h",
        ),
        (  # heartbeats may take longer than all attempts
            "fixed-delay.attempts: 10, restart-strategy.fixed-delay.delay: 1 s",
            86_400.0,
            "the job ends at failure 1 to 2, in about 24 h to 48 h",
        ),
        ("fixed-delay.attempts: 1000000, restart-strategy.fixed-delay.delay: 10 s", 21_600.0, ""),
        (
            RATE,
            600.0,
            "more than 5 failures in 1 h, which are usual here, end the job",
        ),
        (
            RATE,
            86_400.0,
            "",
        ),
    ],
)
def test_attempts_that_run_out_are_said(strategy, mtbf_s, text):
    """Each lost task manager takes one or two attempts, and fixed-delay never counts anew."""
    name = strategy.partition(".")[0]
    scenario = read_scenario(f"{JOB}flink: {{restart-strategy.type: {name}, restart-strategy.{strategy}}}\n")
    found = restart_attempts_caution(scenario, mtbf_s, TASK_MANAGER)

    assert (found is not None) == bool(text)
    assert found is None or (text in found.short and f"restart-strategy.{name}." in found.text)


@pytest.mark.parametrize(
    ("version", "other"),
    [
        ("1.10.3", ""),
        ("1.16.1", ", or restart-strategy: exponential-delay"),
        ("2.0", ", or restart-strategy.type: exponential-delay"),
    ],
)
def test_a_strategy_is_named_as_the_release_has_it(version, other):
    text = f"{JOB}restart: {{strategy: fixed-delay, attempts: 3}}\ncluster: {{version: {version}}}\n"
    found = restart_attempts_caution(read_scenario(text), 3600.0, TASK_MANAGER)

    assert found.text.endswith(f"restart-strategy.fixed-delay.attempts: {WITHOUT_END}{other}.")


def test_a_setting_whose_attempts_run_out_is_advised_with_more_of_them(job):
    """What it loses and breaks is as good as with attempts without end."""
    limited = "restart: {strategy: fixed-delay, delay: 10 s, attempts: 30}"
    grades = []
    for attempts in ("30", "300", "1000000000"):
        job.write_text(f"{JOB}{limited.replace('30', attempts)}\n")
        found = searched(job, MadeUp({"aligned": 100.0}), mtbf_s=21_600.0, recovery_ms=120_000)
        grades.append((grade(found), verdict(found, found.choice())[0]))

    assert [grade for grade, _ in grades] == ["use"] * 3
    for _, first in grades[:2]:
        assert first.startswith("Use aligned, every 30 s, with restarts without end. It meets"), "in 186 h, or 1806 h"
    assert grades[2][1].startswith("Keep the current setting, aligned, every 30 s. It meets")


def test_output_that_a_failure_may_lose_loses_against_an_equal(job):
    """30 s, up to 21 s without slots and 100 ms are more than the 50 s of a transaction; every 10 s is as good, and safe."""
    found = {}
    for timeout in ("50 s", "52 s"):
        sink = f"service: 1 ms, commit: {{transaction-timeout: {timeout}}},"
        job.write_text(JOB.replace("service: 1 ms,", sink))
        found[timeout] = searched(job, MadeUp({"aligned": 100.0}), recovery_ms=120_000)
    risky, kept = found["50 s"], found["52 s"]
    (caution,) = transaction_cautions(risky, risky.setting(("30 s", "aligned")))

    assert kept.chosen.name == ("30 s", "aligned")
    assert risky.transactions_ms(risky.chosen) <= 50_000
    assert transaction_cautions(risky, risky.chosen) == []
    assert "51 s here. After 50 s" in caution.text
    assert caution.text.endswith("intervals of up to 29 s are safe.")


@pytest.mark.parametrize(
    ("commit", "sees_output", "is_assumed"),
    [("", True, True), ("", False, False), (", commit: none", True, False), (", commit: as-connector", True, False)],
)
def test_a_limit_on_output_has_sinks_commit_as_their_connectors_do(job, commit, sees_output, is_assumed):
    job.write_text(JOB.replace("service: 1 ms,", f"service: 1 ms, connector: hudi{commit},"))
    bench = prepare_bench(job, (), (), recovery_ms=None, sees_output=sees_output)

    assert (bench.common.get("job.sink.commit") == "as-connector") == is_assumed
    assert (bench.load(bench.common).job.vertex("sink").commit is not None) == (is_assumed or "as-" in commit)


@pytest.mark.parametrize(
    ("failure", "cluster", "line", "sentence"),
    [
        (
            TASK_MANAGER,
            "",
            "slots after 14 s to 21 s, if one is spare",
            "14 s to 21 s until there are slots, as heartbeats",
        ),
        (TASK_MANAGER, "restart: {replacement: 30 s}", "slots after 33 s to 39 s", "as heartbeats happen to fall."),
        (TASK_MANAGER, STUBBORN, "the restart strategy gives up", "gives up before there are slots."),
        (TASK_MANAGER, "restart: {scheduler: adaptive}", "all slots after 1", "goes on with those that are left."),
        (TASK, "", "a lost task manager is not judged", "--failure task-manager does."),
    ],
)
def test_what_is_assumed_of_the_failure_is_said_beside_the_limit(job, failure, cluster, line, sentence):
    job.write_text(f"{JOB}{cluster}\n")
    found = searched(Bench(job, {}, failure=failure), MadeUp({"aligned": 100.0}), recovery_ms=120_000)
    short, text = slots_texts(found, found.current)

    assert line in short
    assert sentence in text
    assert failure == TASK or cluster == STUBBORN or f"expect  {line}" in answer(found, found.chosen, 14, "").screen


def outage(text):
    """The levers of a situation in which slots are what takes long."""
    where = situation(text, **{OUTAGE: 1.0})
    return {lever: changes for lever, changes in rank_levers(where) if lever in (HEARTBEATS, RESTARTS)}


@pytest.mark.parametrize(
    ("restart", "heartbeats", "restarts"),
    [
        ("", {"restart.heartbeat-interval": "2 s"}, {"restart.max": "2 s"}),
        ("restart: {heartbeat-interval: 1 s, max: 1 s}", None, None),
        (
            "restart: {heartbeat-failures: 0, initial: 5 s}",
            {"restart.heartbeat-interval": "2 s", "restart.heartbeat-failures": 2},
            {"restart.max": "2 s", "restart.initial": "2 s"},
        ),
        (STUBBORN, {"restart.heartbeat-interval": "2 s"}, {"restart.attempts": 2**31 - 1}),
        ("restart: {strategy: failure-rate}", {"restart.heartbeat-interval": "2 s"}, {"restart.rate": 100}),
        (
            "restart: {strategy: fixed-delay, delay: 10 s}",
            {"restart.heartbeat-interval": "2 s"},
            {"restart.delay": "2 s"},
        ),
        ("restart: {strategy: none}", {"restart.heartbeat-interval": "2 s"}, {"restart.strategy": "exponential-delay"}),
    ],
)
def test_slots_that_come_late_call_for_heartbeats_and_restarts(restart, heartbeats, restarts):
    """No strategy gives up that did not before; Flink reads what the difference says, and it is the same."""
    text = f"{ON_HEAP}{restart}\n"
    found = outage(text)
    points = {lever: changes[0].point for lever, changes in found.items()}

    assert {lever: point for lever, point in ((HEARTBEATS, heartbeats), (RESTARTS, restarts)) if point} == points
    now = read_scenario(text)
    for point in points.values():
        then = read_scenario(text, overrides=[override(key, value) for key, value in point.items()])
        keys = {item.key: item.advised for item in diff_flink_keys(now, then)}
        lines = "".join(f"  {key}: {value}\n" for key, value in _all_restart_keys(then).items())
        read = read_scenario(ON_HEAP + (f"flink:\n{lines}" if lines else ""))
        assert keys
        without_limit = then.restart.attempts == 2**31 - 1
        assert read.restart == (replace(then.restart, attempts=None) if without_limit else then.restart)
        assert slots_ms(now) is None or slots_ms(then) is not None


def test_a_lever_is_called_by_all_that_it_changes():
    """Failing heartbeats count only where they did not."""
    names = [outage(f"{ON_HEAP}{text}\n")[HEARTBEATS][0].name for text in ("", "restart: {heartbeat-failures: 0}")]

    assert names == ["heartbeats every 2 s", "heartbeats every 2 s, failing heartbeats count"]


def test_the_restart_strategy_of_the_job_is_tried_before_an_option_of_the_cluster():
    """Heartbeats are those of all jobs of a cluster."""
    assert list(outage(f"{ON_HEAP}{STUBBORN}\n")) == [RESTARTS, HEARTBEATS]


def _all_restart_keys(scenario):
    from sim.model.schema.option_values import non_default_keys

    return {
        key: value
        for key, value in non_default_keys(scenario).items()
        if key.startswith(("restart-strategy", "heartbeat"))
    }


def test_a_recovery_that_breaks_its_limit_names_its_longest_part(job):
    """20 s are allowed, and 35 s pass: most of it is the outage, and records that came in meanwhile.

    Slots are taken to be away for the middle of their range: of 25 s down the rest is the restore.
    """
    slow = MadeUp({"aligned": 100.0}, but=lambda _: {"downtime_ms": 25_000.0, "caught_up_ms": 35_000.0})
    found = searched(job, slow, recovery_ms=20_000)
    where = situation_of(found, ("30 s", "aligned"))

    assert where.breaks == ("recovery_ms",)
    assert dominant(where).endswith("of recovery: until a lost task manager's slots are replaced")
    assert where.shares[OUTAGE] > where.shares[RESTORE]
    assert pytest.approx(25_000 - sum(slots_ms(found.scenario)) / 2) == where.recovery[RESTORE]


class Anywhere(MadeUp):
    """A failure 6 s behind a trigger: 11 s of work are behind, of which 5 s came while it was down, and take 11 s to catch up."""

    def row(self, axes, k, more_ms):
        late = {"downtime_ms": 5000.0, "replayed_records": 400 * 6.0, "caught_up_ms": 16_000.0}
        return super().row(axes, k, more_ms) | late


@pytest.mark.parametrize(("version", "recovery_ms"), [("2.3", 16_000.0), ("1.19.1", 5000.0 + 11_000 * (5 + 27) / 11)])
def test_recoveries_are_those_of_failures_late_in_an_interval(job, version, recovery_ms):
    """Flink 1.x takes its first checkpoint at a random time: with 27 s of lost work, as every 30 s has it, 32 s are behind."""
    job.write_text(f"{JOB}cluster: {{version: {version}}}\n")
    found = searched(job, Anywhere({"aligned": 100.0}), recovery_ms=120_000)
    now = found.current

    assert pytest.approx(now.recovery_ms) == recovery_ms
    assert pytest.approx(now.replayed) == (400 * 6.0 if version == "2.3" else 400 * 27.0)


@pytest.mark.parametrize(("advised", "is_trouble"), [("10 s", False), ("50 s", True), (None, True)])
def test_output_that_another_setting_lost_is_no_trouble_of_the_advised_one(tmp_path, advised, is_trouble):
    """Every 50 s lost output, and so is not advised."""
    table = pd.DataFrame(
        {
            "interval": ["10 s", "50 s"],
            "protocol": "aligned",
            "status": "ok",
            "violations": [0, 1],
            "violation": ["", "92 s  30000 records are lost"],
        }
    )
    chosen = None if advised is None else SimpleNamespace(name=(advised, "aligned"))
    found = Advice(SimpleNamespace(chosen=chosen), tmp_path, tmp_path, (), 1.0, table)

    assert ("30000 records are lost" in found.trouble) == is_trouble
    assert bool(found.trouble) == is_trouble


def test_levers_come_first_where_there_are_no_slots_for_longer_than_the_limit(job):
    """No interval and no barriers bring slots back sooner than after 100 s."""
    job.write_text(f"{JOB}restart: {{strategy: fixed-delay, delay: 100 s}}\n")
    delayed = {"downtime_ms": 105_000.0, "caught_up_ms": 140_000.0}
    run = MadeUp({}, but=lambda own: {} if "delay" in own["protocol"] else delayed)
    run.duration = {"aligned": 100.0, "aligned, restart delay 2 s": 100.0}
    found = searched(job, run, recovery_ms=60_000)

    assert "restart delay 2 s" in found.chosen.protocol
    assert any("there are no slots for 1" in sentence for sentence in found.skipped_sentences)
    assert {setting.interval for setting in found.settings if setting.protocol == "unaligned"} <= {"10 s", "5 s"}


@pytest.mark.parametrize(("cluster", "gives_up"), [("{placement: single}", False), ("{slots: 1}", True)])
def test_a_loss_that_nobody_reports_uses_up_one_attempt(cluster, gives_up):
    """On a TaskManager with all tasks: heartbeats detect its end, and other slots are looked for."""
    options = "restart: {strategy: fixed-delay, attempts: 3, provider: standalone}"
    scenario = read_scenario(f"{JOB}{options}\ncluster: {cluster}\n")

    assert (slots_ms(scenario) is None) == gives_up


def test_a_task_manager_that_falls_silent_is_lost_in_trials_as_in_the_file(job):
    """Heartbeats of it time out: a shorter timeout is proposed, and deployments do not fail before."""
    job.write_text(f"{JOB}faults: [{{task-manager: 0, at: 1 s, silent: true}}]\n")
    bench = Bench(job, {})
    (trial,) = bench.trials(make_candidate(bench.load({}), 30 * 10**9, protocols()[0]), (FAILURE,))
    where = replace(situation(), is_lost_silently=True, recovery_limit_ms=40_000.0)
    min_ms, max_ms = slots_ms(bench.load({}))

    assert trial.point["faults"] == [{"task-manager": "random", "silent": True, "at": "87 s"}]
    assert bench.scenario(trial).faults[0].what == TaskManagerLost(None, silent=True)
    assert 40_000 < min_ms < max_ms < 53_000
    assert [change.point for change in HEARTBEATS.proposes(where)] == [
        {"restart.heartbeat-interval": "2 s", "restart.heartbeat-timeout": "10 s"}
    ]
