"""Recordings of jobs that nobody configured for them: which bars predictions meet, and in which order they put the runs of one job."""

import pandas as pd
import pytest

from benchmarks.lab.orderings import MEASURED_BARS, bars, orderings
from benchmarks.lab.settings import settings_of_job
from sim.jobs.evidence.prediction import judge
from sim.jobs.reading import read_any
from tests.places import USERS

MET = {bar.what for bar in MEASURED_BARS}


@pytest.fixture(scope="module")
def judged():
    return {path.stem: judge(path, lambda _: None, seeds=1) for path in sorted(USERS.glob("*.zip"))}


@pytest.fixture(scope="module")
def table(judged):
    return pd.concat([outcome.table for outcome in judged.values()], ignore_index=True)


def test_every_recording_is_judged(judged):
    assert {name: outcome.error for name, outcome in judged.items() if outcome.error} == {}


def test_bars_that_are_met_stay_met(judged, table):
    """In the median over runs."""
    found = bars(table, {name: read_any(outcome.path).vertices for name, outcome in judged.items()}, MEASURED_BARS)
    missed = found[~found["met"] & found["what"].isin(MET)]

    assert missed.to_dict("records") == []
    assert set(found["what"]) >= MET


def test_runs_of_one_job_are_put_in_their_order(judged, table):
    """Without throughput: of jobs with windows it is that of the windows which a sample meets."""
    found = orderings(table, {name: settings_of_job(read_any(outcome.path)) for name, outcome in judged.items()})
    found = found[found["quantity"] != "numRecordsInPerSecond"]

    assert len(found) >= 10
    assert found[~found["right"]].to_dict("records") == []
