"""Jobs unlike all that constants come from: what a prediction made for others says about them (tests/data/held-out)."""

from functools import cache

import pytest

from benchmarks.lab import read
from sim.jobs.evidence.prediction import judged, truth
from sim.jobs.reading import to_document
from tests.places import DATA

HELD_OUT = DATA / "held-out"
NAMES = sorted(path.name.removesuffix(".json.gz") for path in HELD_OUT.glob("*.json.gz"))
QUICK = {"cascade-chain3-bounded", "async-bottleneck-aligned", "killtm-single-unaligned"}
RECORDINGS_AND_MARKS = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
MIXED_SIZES = {"fanout2-join-aligned"}  # records of two sizes go on together; each is given the mean


@cache
def table(name):
    return judged(truth(HELD_OUT / f"{name}.json.gz", seeds=(1,))).set_index("quantity")


def errors(name, quantity, *, above=0):
    """Each vertex that shows the quantity."""
    rows = table(name)
    rows = rows[(rows.index == quantity) & (rows["observed_p50"] > above)]
    return [float(error) for error in rows["relative_error"].abs()]


def sinks(name):
    config = read(HELD_OUT / f"{name}.json.gz").config
    return [node.id for node in config.nodes if not config.is_read(node.id)]


@pytest.mark.parametrize("name", NAMES)
def test_everything_they_do_can_be_said(name):
    assert not to_document(read(HELD_OUT / f"{name}.json.gz")).not_modelled or name in MIXED_SIZES


@pytest.mark.parametrize("name", RECORDINGS_AND_MARKS)
def test_durations_and_in_flight_data_stay_close(name):
    """10 % each, where there is something to speak of: 60 ms, 60 kB."""
    assert max(errors(name, "end_to_end_duration")) <= 0.10
    assert max(errors(name, "alignment_persisted", above=60_000), default=0) <= 0.15


@pytest.mark.parametrize("name", RECORDINGS_AND_MARKS)
def test_the_pace_of_the_sinks_stays_close(name):
    rows = table(name)
    pace = rows[(rows.index == "numRecordsInPerSecond") & rows["vertex"].isin(sinks(name))]["relative_error"].abs()

    assert pace.max() <= 0.04


def row(name, quantity, vertex=None):
    rows = table(name).loc[[quantity]]
    return rows[rows["vertex"].isna()].iloc[0] if vertex is None else rows[rows["vertex"] == vertex].iloc[0]


def test_the_last_stage_of_a_cascade_loses_what_it_never_sees():
    """What a stage commits with the final checkpoint nobody downstream reads (FLINK-38614): fewer records are committed at every stage."""
    for stage in ("c1", "c2", "c3"):
        assert abs(row("cascade-chain3-bounded", "committed", stage)["relative_error"]) <= 0.05


def test_a_lost_task_manager_costs_what_was_recorded():
    downtime = row("killtm-single-unaligned", "downtime")

    assert abs(downtime["predicted_p50"] - downtime["observed_p50"]) < 0.15 * downtime["observed_p50"]
