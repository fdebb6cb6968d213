"""The factors of a what-if, from the evidence of the package and the history of a file."""

import json
import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.lab.backtest_verdicts import document, read_results
from benchmarks.lab.what_ifs_learned import LEVELS, ratios
from sim.jobs.evidence import what_ifs
from sim.jobs.evidence.what_ifs import (
    FILE,
    LIKELY,
    MIN_FACTOR,
    UNSEEN,
    Learned,
    combined,
    evidence,
    factors_of,
    sentences,
    within,
)
from sim.model.scenario import Backtest, ComparedQuantity, OtherSettings, Quantiles
from sim.model.schema.study import loads
from tests.jobs.evidence.what_ifs.test_kinds_of_what_ifs import JOB

HISTORY = Backtest((), other_settings=OtherSettings(1.3, 2.0))
KNOWN = {
    (): Learned(40, 20, (0.5, 0.9), (0.9, 0.9)),
    ("barriers",): Learned(80, 11, (1.4, 2.0), (0.95, 0.95)),
    ("network",): Learned(4, 1, (0.9, 1.2), (1.0, 1.0)),
    ("interval",): Learned(6, 1, (1.1, 1.2), (1.0, 1.0)),
    ("parallelism",): Learned(8, 2, (1.1, 1.2), (1.0, 1.0)),
    ("load",): Learned(5, 2, (1.2, 1.4), (0.8, 0.8)),
    ("storage",): Learned(10, 2, (1.2, 1.2), (1.0, 1.0)),
    ("backend",): Learned(6, 1, (1.9, 1.2), None),
    ("failure",): Learned(0, 0, (math.inf, math.inf)),
    ("other",): Learned(0, 0, (math.inf, math.inf)),
}


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(what_ifs, "evidence", lambda: KNOWN)


def test_a_factor_is_that_of_the_history_times_that_of_the_kind(known):
    assert OtherSettings(pytest.approx(1.82), pytest.approx(4.0)) == factors_of(HISTORY, ("barriers",))
    assert OtherSettings(MIN_FACTOR, pytest.approx(1.8)) == factors_of(HISTORY, ())
    assert None is factors_of(Backtest(()), ("barriers",))


def test_no_factor_is_smaller_than_what_the_backtest_of_the_file_is_off_by(known):
    """A sentence that promises less contradicts the table above it.  60 ms are no difference where factors are learned."""
    row = ComparedQuantity("end-to-end", Quantiles(142, 500, 500, 9), Quantiles(95, 1000, 1000, 9))
    history = Backtest((row,), other_settings=OtherSettings(1.3, 1.3))

    assert OtherSettings(pytest.approx(142 / 95 + 60 / 142), pytest.approx(2.0 + 60 / 500)) == factors_of(history, ())
    assert OtherSettings(pytest.approx(1.82 + 60 / 142), pytest.approx(2.6 + 60 / 500)) == factors_of(
        history, ("barriers",)
    )


def test_several_changes_are_off_by_all_of_theirs_and_none_makes_another_better(known):
    assert (pytest.approx(1.4 * 1.1), pytest.approx(2.4)) == combined(
        [KNOWN[("barriers",)].beyond, KNOWN[("interval",)].beyond]
    )
    assert OtherSettings(pytest.approx(1.3 * 1.4), pytest.approx(2 * 2 * 1.2)) == factors_of(
        HISTORY, ("barriers", "network")
    )


def test_what_a_history_does_not_tell_no_kind_does(known):
    unknown = Backtest((), other_settings=OtherSettings(math.inf, 2.0))

    assert math.inf == factors_of(unknown, ("barriers",)).p50


def test_a_sentence_names_the_kind_and_how_much_is_known_of_it(known):
    job = JOB.replace("  runs: 3\n", "  runs: 3\n  other-settings: {p50: 1.3, p90: 2}\n")
    overrides = (
        "checkpoint.barriers=[aligned, unaligned]",
        "checkpoint.interval=[1 s, 2 s]",
        "faults=[{kill: random-task, at: 2 s}]",
    )

    def texts(*given):
        study = loads(job, overrides=given)
        return sentences(study.backtest, study.scenarios)

    assert texts(overrides[0]) == [
        "the job as it is: checkpoints have p50 within a factor of 1.2, p90 within a factor of 1.9",
        "other barriers: checkpoints have p50 within a factor of 2, p90 within a factor of 4.1",
    ]
    interval, both = (
        next(text for text in texts(*overrides[:2]) if text.startswith(of))
        for of in ("another interval", "other barriers and")
    )
    assert interval.endswith("as far as the worst change recorded: too few jobs were recorded with another interval")
    assert both.startswith(
        "other barriers and another interval: checkpoints have p50 within a factor of 2.2, p90 within a factor of 4.9"
    )
    tail, unknown = (
        sentences(replace(study.backtest, other_settings=OtherSettings(1.5, factor)), study.scenarios)[0]
        for study in [loads(job)]
        for factor in (57.0, math.inf)
    )
    assert tail.endswith("p90 not within a factor of 10")  # a factor that decides nothing is not printed
    assert unknown.endswith("p90 unknown")
    (failure,) = texts(overrides[2])
    assert (
        failure
        == "failures: how far checkpoints are off is not known, no recording of ours changes just that (failures)"
    )
    job = job.replace("service: 1 ms,", "service: 1 ms, state: {size: 4 MB},")
    (other,) = texts("job.sink.state.backend=rocksdb")
    assert other.startswith(
        "another state backend or changelog: checkpoints have p50 within a factor of 2.6, p90 within a factor of 2.5"
    )
    assert "as those of the one job recorded with another state backend or changelog: it brings in what" in other


def test_an_old_file_says_nothing():
    study = loads(JOB)

    assert sentences(study.backtest, study.scenarios) == []


def test_the_package_has_evidence_of_what_advice_changes():
    """Barriers are what most recordings differ in; of every kind there is a row."""
    assert set(KNOWN) == set(evidence())
    assert evidence()[("barriers",)].is_enough
    assert all(
        row.covered is not None for kinds, row in evidence().items() if row.settings and UNSEEN.isdisjoint(kinds)
    )


# ---- How often a change keeps a limit: by families that the chance was not learned from.


BARRIERS = ("barriers",)


def test_four_of_five_changes_of_a_family_left_out_come_out_within_what_is_said():
    """Eleven families with other barriers; each is judged by what the ten others say."""
    own = [setting for setting in read_results() if setting.kinds == BARRIERS]
    inside = defaultdict(list)
    for family in {setting.family for setting in own}:
        level = ratios(BARRIERS, [setting for setting in read_results() if setting.family != family])[
            LEVELS.index(LIKELY)
        ]
        inside[family] += [
            setting.observed_ms[1] <= level * setting.predicted_ms[1] for setting in own if setting.family == family
        ]

    assert 0.8 <= np.mean([np.mean(kept) for kept in inside.values()]) < 0.95


def test_chances_of_this_package_are_those_of_the_recordings():
    assert json.loads(document(read_results())) == json.loads(FILE.read_text())


@pytest.mark.parametrize("kinds", [(), BARRIERS, ("barriers", "storage")])
def test_a_larger_share_needs_a_larger_factor(kinds):
    """A larger share needs a larger factor; no factor is known to hold for all."""
    assert within(kinds, 0.5) < within(kinds, LIKELY) < math.inf
    assert within(kinds, 1.0) == math.inf


def test_several_changes_at_once_need_a_larger_factor():
    assert within(("barriers", "storage")) > within(BARRIERS)


def test_kinds_that_few_families_changed_have_what_all_changes_have():
    assert (
        ratios(("network",), read_results()) == ratios(("storage",), read_results()) != ratios(BARRIERS, read_results())
    )
