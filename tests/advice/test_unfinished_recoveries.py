"""Recoveries that take longer than their trial: how long they take is estimated from what the trial worked off."""

import math

import pytest

from sim.advice.answer import answer
from sim.advice.situation import dominant, situation_of
from sim.advice.texts import overload_sentence, tables_of_settings, verdict
from sim.advice.trials import FAILURE
from sim.model.units import parse_duration
from tests.advice.made_up import JOB, MadeUp, searched

SPARE = 0.05
"""Share of the arriving records that the job can serve in addition to them."""


class CutOff(MadeUp):
    """5 s down late in an interval, then 200 s in which a twentieth more is served than arrives."""

    def __init__(self, *, spare=SPARE, **others):
        super().__init__({"aligned": 100.0})
        self.spare, self.others = spare, others

    def row(self, axes, k, more_ms):
        found = super().row(axes, k, more_ms) | self.others
        if axes["trial"] != FAILURE:
            return found
        behind_s = 5 + parse_duration(axes["interval"]) / 1e9
        served = 1 - (behind_s - self.spare * 200) / 300
        bounds = {"caught_up_ms": 205_000.0, "ended_s": 300.0, "unfinished": "caught_up_ms ended_s"}
        return found | bounds | {"throughput_per_second": 400 * served, "end_to_end_max_ms": 2500.0}


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    job = tmp_path_factory.mktemp("cut") / "job.yaml"
    job.write_text(JOB)
    return searched(job, CutOff(), checkpoint_ms=2000)


def test_what_a_trial_did_not_see_is_estimated(search):
    """30 s and 5 s of records are behind; at a twentieth more than arrives that takes 700 s after 5 s down."""
    found = {setting.interval: setting for setting in search.settings if setting.protocol == "aligned"}

    for seconds in (30, 60):
        own = found[f"{seconds} s" if seconds < 60 else "1 min"]
        assert own.recovery_ms == pytest.approx(1e3 * (5 + (5 + seconds) / SPARE))
        assert own.is_extrapolated
    assert found["10 s"].lost < found["30 s"].lost < found["1 min"].lost
    assert (
        search.chosen.interval == "10 s"
    )  # "loses significantly less" is not said of trials that were all cut at once


def test_the_first_screen_says_how_long_recovery_takes(search):
    screen = answer(search, search.chosen, 14, "").screen

    assert "about 12 min -> 5.1 min (no limit given)" in screen
    assert "until it has caught up, checkpoints of up to 2.5 s" in screen
    assert {"about 12 min"} & {row[6] for table in tables_of_settings(search) for row in table.rows}


def test_a_job_that_falls_behind_never_recovers(job):
    search = searched(job, CutOff(busiest_subtask_share=1.0, bottleneck="sink"), checkpoint_ms=2000)

    assert {math.inf} == {setting.recovery_ms for setting in search.settings}
    assert "loses significantly less" not in verdict(search, search.choice())[0]
    assert all(row[7].startswith("> ") for table in tables_of_settings(search) for row in table.rows)


def test_a_job_that_works_nothing_off_never_recovers(job):
    search = searched(job, CutOff(spare=0.0), checkpoint_ms=2000)

    assert {math.inf} == {setting.recovery_ms for setting in search.settings}


@pytest.mark.parametrize(
    ("usual", "text"),
    [(0.4, "in subtask 1 only, 100 % busy (average: 40 %), as with a hot key"), (0.9, "'sink' is fully busy.")],
)
def test_a_hot_subtask_is_named(job, usual, text):
    hot = {"busiest_subtask_share": 1.0, "bottleneck": "sink", "busiest_subtask": 1, "busy_share": usual}

    assert text in overload_sentence(searched(job, CutOff(**hot), most=1, checkpoint_ms=2000))


def test_what_is_left_for_catching_up_is_said(job):
    busy = CutOff(busiest_subtask_share=0.97, bottleneck="sink")
    search = searched(job, busy, most=1, recovery_ms=60_000)

    assert dominant(situation_of(search, ("30 s", "aligned"))).endswith("('sink' is 97 % busy)")
