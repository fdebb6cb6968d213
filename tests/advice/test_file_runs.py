"""Runs with the events in the file: faults and savepoints, which trials leave out."""

import math

import pytest

from sim.advice.answer import KEEPS, NEAR, OVER, answer
from sim.advice.candidates import CandidateSearch
from sim.advice.file_runs import file_run
from sim.advice.job import prepare_bench
from sim.advice.judgement import Limits
from sim.advice.optimizer import run_until_decided
from sim.advice.texts import file_cautions, file_runs_text, grade, verdict
from sim.advice.trials import FILE
from tests.advice.made_up import DAY_S, JOB, MadeUp
from tests.scenarios import read_scenario

OUTAGE = f"{JOB}faults: [{{storage: outage, at: 100 s, lasts: 1 min}}]\n"
SAVEPOINTS = (
    JOB.replace("service: 1 ms", "service: 1 ms, state: {size: 2 MB}").replace(
        "{interval: 30 s}", "{interval: 30 s, savepoint-rate: 20 kB/s}"
    )
    + "actions: [{savepoint: canonical, at: 100 s}]\n"
)
HISTORY = JOB.replace("record: 100 B", "record: 100 B, backlog: {records: 12k}")


def searched(job, text, but, affords=lambda _scenarios, _share: True, **limits):
    """A search whose rows with the events in the file differ (`but`)."""
    job.write_text(text)
    run = MadeUp({"aligned": 100.0}, but=but, affords=affords)
    bench = prepare_bench(job, (), (), recovery_ms=limits.get("recovery_ms"))
    search = CandidateSearch(bench, Limits(**limits), DAY_S, run, 3)
    run_until_decided(search)
    return search


def screen(search):
    return answer(search, search.chosen, 20, "").screen


@pytest.mark.parametrize(
    ("text", "limits", "said"),
    [
        (
            SAVEPOINTS,
            {"recovery_ms": 60_000},
            "recovery from a failure during its savepoint, in which no checkpoint is triggered,",
        ),
        (SAVEPOINTS, {"loss": 0.1}, ""),
        (SAVEPOINTS.replace("20 kB/s", "2 MB/s"), {"recovery_ms": 60_000}, ""),
        (HISTORY, {"loss": 0.06}, "throughput loss while a backlog is read"),
        (HISTORY, {"recovery_ms": 60_000}, ""),
    ],
)
def test_events_of_the_file_that_no_run_judges_are_said(job, text, limits, said):
    """1 MB at 20 kB/s takes 50 s, longer than the interval."""
    search = searched(job, text, lambda _own: {}, **limits)
    (first, *_) = verdict(search, search.choice())

    assert grade(search) == ("try" if said else "use")
    assert not said or first.endswith(f"but {said} is not judged.")


def test_checkpoints_that_restart_the_job_in_an_outage_of_the_file_are_said(job):
    failing = {"failures": 1, "failure_kinds": "1 checkpoints (all tasks restart)"}
    search = searched(job, OUTAGE, lambda own: failing if own["trial"] == FILE else {}, recovery_ms=60_000)

    assert grade(search) == "try"
    assert "aligned, every 30 s: recovery 35 s (a storage outage at 100 s), checkpoints that fail" in file_runs_text(
        search
    )


@pytest.mark.parametrize(
    ("recovery_ms", "mark", "said"),
    [
        (95_000.0, OVER, "with the events in the file, recovery takes 95 s (a storage outage at 100 s)"),
        (55_000.0, NEAR, "with the events in the file, recovery takes 55 s (a storage outage at 100 s)"),
        (40_000.0, KEEPS, ""),
    ],
)
def test_a_limit_is_judged_by_the_run_of_the_file_too(job, recovery_ms, mark, said):
    search = searched(
        job,
        OUTAGE,
        lambda own: {"failures": 1, "caught_up_ms": recovery_ms} if own["trial"] == FILE else {},
        recovery_ms=60_000,
    )
    (first, *_) = verdict(search, search.choice())

    assert search.chosen.name == ("30 s", "aligned"), "all break it alike"
    assert [caution.short for caution in file_cautions(search, search.chosen)] == [said] * bool(said)
    assert f"{mark}  recovery"[:6] in screen(search)
    assert (f"but {said}." in first) == bool(said)
    assert grade(search) == ("try" if said else "use")


def test_limits_are_not_ticked_where_the_budget_has_no_room_for_the_file(job):
    def affords(scenarios, _share):
        return all(dict(scenario.axes)["trial"] != FILE for scenario in scenarios)

    search = searched(job, OUTAGE, lambda _own: {}, affords, recovery_ms=60_000)

    assert search.file_runs == {}
    assert f"{NEAR}  recovery" in screen(search)
    assert "limit 60 s; not run with the events of the file" in " ".join(screen(search).split())
    assert grade(search) == "try"
    assert any("the file as it is (4.7 min) with aligned, every 30 s" in text for text in search.skipped_sentences)


def row(**others):
    return {
        "completed": 10,
        "end_to_end_max_ms": 900.0,
        "end_to_end_p99_ms": 800.0,
        "visible_p99_ms": math.nan,
    } | others


RESTARTED = {"failures": 1, "caught_up_ms": 50_000.0}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (row(), {"limited": {"checkpoint_ms": 900.0}}),
        (row(completed=100), {"limited": {"checkpoint_ms": 800.0}}),
        (row(unfinished="end_to_end_max_ms"), {"unsure": ("checkpoint_ms",)}),
        (row(end_to_end_max_ms=1100.0, **RESTARTED), {"limited": {"recovery_ms": 50_000.0}}),
        (row(unfinished="caught_up_ms", **RESTARTED), {"unsure": ("recovery_ms",)}),
        (
            row(**RESTARTED, failure_kinds="1 checkpoints (all tasks restart)"),
            {"restarts": "a storage outage at 100 s"},
        ),
        (row(job_status="FAILED (attempts)"), {"ends": "FAILED (attempts) (a storage outage at 100 s)"}),
    ],
)
def test_what_a_run_of_the_file_shows(own, expected):
    found = file_run(read_scenario(OUTAGE), Limits(recovery_ms=60_000, checkpoint_ms=1000), own)

    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(("disturbed", "unsure"), [(0.1, ()), (0.4, ("recovery_ms",))])
def test_of_several_failures_the_median_is_known_and_the_sum_bounds_the_longest(disturbed, unsure):
    several = read_scenario(f"{JOB}faults: [{{kill: sink, at: 1 s}}, {{kill: sink, at: 2 s}}]\n")
    own = row(**RESTARTED, disturbed_share=disturbed, ended_s=300.0)
    found = file_run(several, Limits(recovery_ms=60_000), own)

    assert (found.unsure, found.event) == (unsure, "median, a task fails")


def test_a_job_without_events_needs_no_run_of_its_file(job):
    search = searched(job, JOB, lambda _own: {}, recovery_ms=60_000)

    assert (search.file_runs, file_runs_text(search), file_cautions(search, search.chosen)) == ({}, "", [])
