"""Leaving recordings out: from whom a constant comes then, and which runs that takes."""

from __future__ import annotations

import pandas as pd

from benchmarks.lab.calibration.cross_validation import WAYS, Prediction, RecordingVotes, errors, fits, runs, sources
from sim.model.scenario import Overheads

HEARD = [
    RecordingVotes("a1", "a", {"trigger": 2.0, "close": 10.0}),
    RecordingVotes("a2", "a", {"trigger": 4.0, "close": 30.0}),
    RecordingVotes("b1", "b", {"trigger": 8.0}),
    RecordingVotes("c1", "c", {"trigger": 8.0, "fail": 50.0}),
]


def values(k: int, name: str) -> list[float]:
    """The constants of each recording's fit, one way."""
    return [getattr(fit.overheads[k], f"{name}_ns") / 1e6 for fit in fits(HEARD)]


def test_a_constant_comes_from_other_families_where_they_tell_it():
    """Else from the other recordings of its own, else it stays as it was."""
    default = Overheads()

    assert values(0, "trigger") == [6] * 4
    assert values(1, "trigger") == [8, 8, 4, 4]
    assert values(2, "trigger") == [8, 8, 4, 4]
    assert values(0, "close") == [20] * 4
    assert [30, 10, 20, 20] == values(1, "close") == values(2, "close"), "only family a tells it"
    assert [50, 50, 50, default.fail_ns / 1e6] == values(2, "fail"), "nobody else tells c1"


def test_it_is_said_where_constants_come_from():
    counts = {(name, source): count for name, source, count in sources(fits(HEARD))}

    assert counts["trigger", "the other families"] == 4
    assert counts["close", "the other recordings of its family"] == 2
    assert counts["fail", "no recording"] == 1


def test_what_is_equal_is_run_once():
    """Constants that differ by less than their precision are the same."""
    alike = [RecordingVotes(str(i), str(i), {"trigger": 3 + i / 100}) for i in range(5)]

    assert [Prediction(i, Overheads(trigger_ns=3_000_000)) for i in range(5)] == runs(fits(alike))
    assert 4 < len(runs(fits(HEARD))) <= 12


def test_errors_stand_side_by_side():
    """Each way with the runs of its own constants; a recording nobody could predict is in none."""
    fitted = fits(HEARD)

    def table(run: Prediction) -> pd.DataFrame:
        error = run.overheads.trigger_ns / 1e8
        row = {
            "recording": HEARD[run.place].recording,
            "family": "f",
            "quantity": "end_to_end_duration",
            "vertex": None,
            "covered": True,
        }
        return pd.DataFrame([row | {"observed_p50": 1.0, "predicted_p50": 1.0 + error, "relative_error": error}])

    row = errors(fitted, {run: table(run) for run in runs(fitted) if run.place != 3}).iloc[0]

    assert (row["recordings"], row["rows"]) == (3, 3)
    assert [round(row[f"{way}: median"], 6) for way in WAYS] == [0.06, 0.08, 0.08]
