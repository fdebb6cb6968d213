"""Parts of an answer beside its screen: what was left aside and why, what is taken for granted, and tables of settings."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.advice.answer import (
    _changes_outside_configuration,
    _lever_sentences,
    _with_source,
)
from sim.advice.cautions import AT_LEAST_ONCE_CAUTION, cautions
from sim.advice.configuration import differences
from sim.advice.judgement import Limits, NarrowLimit
from sim.advice.settings import BarrierSetting, Candidate, Change, Lever, protocols
from sim.advice.texts import (
    breaks_text,
    checkpoint_text,
    excluded_sentences,
    quantity_of,
    tables_of_settings,
)
from tests.advice.test_judged_tables import setting, values
from tests.scenarios import read_scenario

ALIGNED, UNALIGNED = ("30 s", "aligned"), ("30 s", "unaligned")
LIMITS = Limits(checkpoint_ms=1000.0, recovery_ms=40_000.0, loss=0.01)


def job_with_sink(connector=""):
    sink = f", connector: {connector}" if connector else ""
    text = (
        f"version: 1\njob: {{a: {{source: {{rate: 1/s, record: 1 B}}}}, b: {{input: {{a: hash}}{sink}}}}}\n"
        "checkpoint: {interval: 1 s}\nrun: {duration: 1 s}\n"
    )
    return read_scenario(text)


def search_of(*settings, limits=LIMITS, **others):
    named = {own.name: own for own in settings}
    return SimpleNamespace(
        without_broken=list,
        **{
            "has_named_interval": lambda _: True,
            "settings": settings,
            "limits": limits,
            "permitted": settings,
            "chosen": None,
            "current_name": None,
            "candidate_of": candidate_of,
            "relaxed": None,
            "trials": dict.fromkeys(named),
            "mtbf_s": 86_400.0,
            "losing": set(),
            "scenario": job_with_sink(),
            "needs_async_operate": lambda _: False,
            "has_unseen_tail": lambda _: False,
        }
        | others,
    )


def candidate_of(name, *changes):
    return Candidate(*name, {}, BarrierSetting(name[1], {}, name[1].startswith("aligned")), changes)


def lever_of(name, *, is_configuration=True):
    return Lever(name, (), lambda _: iter(()), costs="", is_configuration=is_configuration)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"breaks": ("checkpoint_ms",), "checkpoint_ms": 1041.0}, "checkpoints 1.04 s > 1 s"),
        ({"breaks": ("recovery_ms",), "recovery_ms": math.inf}, "recovery not ended (limit 40 s)"),
        (
            {"breaks": ("recovery_ms",), "recovery_ms": math.inf, "gives_up": "FAILED"},
            "recovery FAILED (limit 40 s)",
        ),
        (
            {"breaks": ("recovery_ms", "loss"), "recovery_ms": 60_000.0, "loss": 0.02},
            "recovery 60 s > 40 s, throughput loss 2 % > 1 %",
        ),
        ({}, ""),
    ],
)
def test_limits_that_a_setting_breaks(changed, text):
    assert text == breaks_text(setting(ALIGNED, **changed), LIMITS)


@pytest.mark.parametrize(
    ("checkpoints", "ran_long", "ms", "text", "quantity"),
    [
        (100, False, 400.0, "p99 400 ms of 100", "p99 of checkpoints"),
        (99, False, 400.0, "400 ms, longest of 99", "the longest of 99 checkpoints"),
        (300, True, 400.0, "400 ms, longest of 300", "the longest of 300 checkpoints"),
        (300, False, math.inf, "not ended", "p99 of checkpoints"),
    ],
)
def test_a_quantile_is_named_with_its_sample(checkpoints, ran_long, ms, text, quantity):
    own = setting(ALIGNED, checkpoints=checkpoints, ran_long=ran_long, checkpoint_ms=ms)

    assert (text, quantity, "recovery") == (
        checkpoint_text(own),
        quantity_of("checkpoint_ms", own),
        quantity_of("recovery_ms", own),
    )


def test_tables_of_settings_by_how_often_they_ran():
    """Ascending by interval; what is visible has a column where sinks are transactional; remarks say what matters."""
    today = setting(ALIGNED, 0.02, runs=3, breaks=("loss",), loss=0.02)
    tight = (NarrowLimit("recovery_ms", 0.083, 0.2),)
    chosen = replace(setting(("10 s", "unaligned"), 0.01, runs=1, ran_long=True, checkpoints=300), tight=tight)
    once = setting(("5 s", "aligned"), 0.5, runs=1)
    search = search_of(today, once, chosen, chosen=chosen, current_name=ALIGNED)
    often, short = tables_of_settings(search)

    remarks = ["advised; recovery may be 20 % longer", "today; throughput loss 2 % > 1 %"]
    assert [
        ["unaligned, every 10 s", "1", "400 ms, longest of 300", "100 ms", "1 MB", "±0 %", "35 s", "1 %", remarks[0]],
        ["aligned, every 30 s", "3", "400 ms, longest of 4", "100 ms", "1 MB", "-2.0 %", "35 s", "2 %", remarks[1]],
    ] == often.rows
    assert short.rows == [
        ["aligned, every 5 s", "1", "400 ms, longest of 4", "100 ms", "1 MB", "±0 %", "35 s", "50 %", ""]
    ]
    visible = search_of(setting(ALIGNED, 0.02, runs=3, visible_ms=4000.0), once)
    first, second = tables_of_settings(visible)
    assert (first.header[7], first.rows[0][7], second.rows[0][7]) == ("visible", "4 s", "-")
    assert len(tables_of_settings(search_of(once))) == 1


def test_changes_that_no_key_of_flink_expresses():
    """With the keys of the scenario that the setting really changes; without any by the name of the change."""
    machines = Change(lever_of("cores", is_configuration=False), "6 cores", {"cluster.cores": 6, "other": 1})
    storage = Change(lever_of("prefixes", is_configuration=False), "16 prefixes", {"x": 1})
    changelog = Change(lever_of("changelog"), "changelog")
    own = Candidate("30 s", "aligned", {"cluster.cores": 6}, None, (machines, storage, changelog))

    assert _changes_outside_configuration(own) == {
        "cores": "cluster.cores = 6",
        "prefixes": "16 prefixes",
    }


def test_a_source_is_said_once():
    assert _with_source("As FLINK-1 and docs/x say.", "FLINK-1; docs/x") == "As FLINK-1 and docs/x say."
    assert _with_source("As FLINK-1 says.", "FLINK-1, docs/x") == "As FLINK-1 says. Source: FLINK-1, docs/x."


def test_what_a_lever_takes_for_granted_is_said():
    lever = lever_of("a cache")
    said = list(
        _lever_sentences(
            [Change(lever, "a cache", assumption="10 us; 3 to 100 us are possible"), Change(lever, "no cache")]
        )
    )

    assert len(said) == 3
    assert said[1] == (
        "UNKNOWN, assumed: 10 us; 3 to 100 us are possible. Throughput and recovery with a cache rest on it."
    )


def test_differences_are_over_the_worlds_that_both_met():
    """Pairs of runs, as many as both have; what no run measured is left out."""
    trials = {
        ALIGNED: {"a": values({}, {}, {}), "b": values({"checkpoint_ms": 9e9})},
        UNALIGNED: {
            "a": values(
                {"checkpoint_ms": 100.0, "written_per_hour": 3e9}, {"checkpoint_ms": 200.0, "written_per_hour": 3e9}
            )
        },
    }
    rows, are_repeated = differences(trials, ALIGNED, UNALIGNED)
    found = {row[0]: row[1:] for row in rows}

    assert are_repeated
    assert list(found) == ["throughput", "checkpoint p50", "checkpoint p99", "recovery", "written per hour"]
    assert found["checkpoint p99"] == ["400 ms", "150 ms", "-250 ms ± 635 ms"]
    assert found["written per hour"] == ["1 GB", "3 GB", "+2 GB"]
    assert differences({ALIGNED: trials[ALIGNED], UNALIGNED: {}}, ALIGNED, UNALIGNED) == ([], False)


def test_settings_that_lose_output_are_told_from_todays():
    """What was tried is not what the job does today."""
    today, tried = setting(ALIGNED), [setting((f"{i} min", "aligned")) for i in range(1, 7)]
    losing = {own.name for own in (today, *tried)}
    others = {
        "losing": losing,
        "loses_today": True,
        "current_name": ALIGNED,
        "chosen": today,
    }
    search = search_of(today, *tried, **others)

    assert excluded_sentences(search) == [
        (
            "Output is lost, because transactions stay open longer than commit.transaction-timeout, with the current "
            "setting; aligned, every 1 min; aligned, every 2 min; aligned, every 3 min; aligned, every 4 min; 2 others."
        )
    ]
    assert excluded_sentences(search_of(today, losing=set(), chosen=today)) == []


def test_a_table_with_a_committer_is_one_table():
    text = (
        "version: 1\njob: {a: {source: {rate: 1/s, record: 1 B}}, b: {input: {a: hash}, connector: hudi, commit: as-connector}}\n"
        "checkpoint: {interval: 1 s}\nrun: {duration: 1 s}\n"
    )
    scenario = read_scenario(text)

    assert len(scenario.job.committers) == 1
    assert [own.short for own in cautions(scenario, protocols()[0], ()) if "table" in own.short] == [
        "the cost of many small files of the table is not judged"
    ]


def test_at_least_once_is_said_to_repeat_records():
    (first, *_) = cautions(job_with_sink("kafka-exactly-once"), BarrierSetting("at-least-once", {}, aligned=True), ())

    assert first.short == "at-least-once: after a failure state and committed output repeat records"
    assert AT_LEAST_ONCE_CAUTION not in cautions(job_with_sink("kafka-exactly-once"), protocols()[0], ())
