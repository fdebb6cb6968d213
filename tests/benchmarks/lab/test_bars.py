"""Each bar asks its own rows, and says what was reached."""

import pandas as pd
import pytest

from benchmarks.lab.config import Configuration
from benchmarks.lab.orderings import BARS, MEASURED_BARS, bars
from sim.jobs.evidence.prediction import covered, relative_errors

CONFIG = Configuration.model_validate(
    {
        "name": "any",
        "duration_s": 60,
        "nodes": [
            {"id": "src", "kind": "source"},
            {"id": "map", "inputs": [{"from": "src"}]},
            {"id": "sink", "inputs": [{"from": "map"}]},
        ],
    }
)
JOIN = Configuration.model_validate(
    {
        "name": "any",
        "duration_s": 60,
        "nodes": [
            {"id": "src", "kind": "source"},
            {"id": "b", "kind": "source"},
            {"id": "sink", "kind": "join", "inputs": [{"from": "src"}, {"from": "b"}]},
        ],
    }
)


def reached(*rows, config=CONFIG, expected=BARS, tail=1.0):
    """(recording, quantity, vertex, observed, predicted) -> {bar: (rows, reached, met)}"""
    table = pd.DataFrame(rows, columns=["recording", "quantity", "vertex", "observed_p50", "predicted_p50"])
    table = table.assign(
        predicted_p10=table["predicted_p50"],
        predicted_p90=table["predicted_p50"],
        observed_p90=table["observed_p50"] * tail,
    )
    table = table.assign(relative_error=relative_errors(table), covered=covered(table))
    found = bars(table, dict.fromkeys(table["recording"], config.nodes), expected)
    return {row["what"]: (row["rows"], round(row["reached"], 3), row["met"]) for row in found.to_dict("records")}


def waiting(name):
    return (name, "backPressuredTimeMsPerSecond", "src", 900.0, 0.0)


def test_durations_are_asked_of_back_pressured_runs():
    """One of them is 20 % off, which is too much; nobody asks the run that waits for nothing."""
    seen = reached(
        waiting("a"),
        ("a", "end_to_end_duration", None, 1000, 1200),
        ("b", "end_to_end_duration", None, 1000, 9000),
    )

    assert seen == {"checkpoint duration": (1, 0.2, False)}


def test_what_is_below_the_noise_does_not_count_as_exact():
    seen = reached(waiting("a"), ("a", "start_delay", "src", 3, 4), ("a", "start_delay", "sink", 1000, 1090))

    assert seen == {"start delay": (1, 0.09, True)}


def test_one_bad_row_in_five_is_too_many():
    """The median is 0, the 90 % quantile more than 2.5 times the bar."""
    rows = [(str(i), "latency", "sink", 1000, 1000) for i in range(4)]

    assert reached(*rows, ("5", "latency", "sink", 1000, 2000))["record latency"] == (5, 0.0, False)
    assert reached(*rows)["record latency"] == (4, 0.0, True)


def test_only_the_ends_of_a_job_have_its_throughput():
    seen = reached(
        ("a", "numRecordsInPerSecond", "map", 1000, 2000), ("a", "numRecordsInPerSecond", "sink", 1000, 1010)
    )

    assert seen == {"sink throughput": (1, 0.01, True)}


def test_what_was_not_predicted_is_missed():
    for observed, predicted in ((5, float("nan")), (0, 5)):
        seen = reached(("a", "persisted_data", None, observed, predicted))

        assert seen == {"in-flight data persisted, whole checkpoint": (1, 1e6, False)}


@pytest.mark.parametrize(("predicted", "met"), [(200, True), (590, True), (601, False), (149, False)])
def test_alignments_agree_within_a_factor(predicted, met):
    """Two rows count, from 300 ms on; a join's inputs are not symmetric."""
    row = ("a", "alignment_duration", "sink", 300, predicted)

    assert {"alignment of symmetric stages": (1, float(met), met)} == reached(row)
    assert reached(row, config=JOIN) == {}


def test_counts_agree_within_one_and_tails_exactly():
    """Nine of ten are enough for counts, all of them for the checkpoint that commits the tail."""
    counts = [(str(i), "completed", None, 10, 10 + (i == 0) + 5 * (i == 1)) for i in range(10)]
    tails = [(str(i), "checkpoints_to_commit", "sink", 1, 1 + (i == 0)) for i in range(10)]

    assert reached(*counts, *tails) == {
        "completed checkpoints": (10, 0.9, True),
        "checkpoint that commits the tail": (10, 0.9, False),
    }


def test_of_measured_jobs_the_median_over_runs_counts():
    """The median over the vertices of a run comes first: one bad vertex and one bad run in three are excused."""
    vertices = [
        ("a", "sync_duration", vertex, 1000, 1000 * factor)
        for vertex, factor in (("src", 1.2), ("map", 1.1), ("sink", 9))
    ]
    others = [("b", "sync_duration", "src", 1000, 1240), ("c", "sync_duration", "src", 1000, 5000)]

    assert reached(*vertices, *others, expected=MEASURED_BARS) == {"synchronous phase": (5, 0.24, True)}
    assert reached(*vertices, others[1], expected=MEASURED_BARS) == {"synchronous phase": (4, 2.1, False)}


def test_the_tail_of_checkpoints_has_a_bar_of_its_own():
    """Right in the median, a third of it in the tail."""
    seen = reached(("a", "end_to_end_duration", None, 1000, 1000), expected=MEASURED_BARS, tail=3)

    assert seen["checkpoint duration, p50"] == (1, 0.0, True)
    assert seen["checkpoint duration, p90"] == (1, 0.667, False)
