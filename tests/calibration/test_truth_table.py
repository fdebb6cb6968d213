"""Predictions are held to recordings of real Flink: the errors are small, the orderings right, and nothing is skipped silently."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from sim.calibration.judgement import far_off, judged, summary
from sim.calibration.truth import errors, truth_table
from sim.cli import app

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


@cache
def table(name: str) -> pd.DataFrame:
    return judged(truth_table(RECORDINGS / f"{name}.json.gz", seeds=(1,)))


def value(name: str, quantity: str, vertex: str = "") -> float:
    rows = table(name)
    return float(rows[(rows["quantity"] == quantity) & (rows["vertex"] == vertex)]["predicted"].iloc[0])


@pytest.mark.parametrize("name", sorted(path.name.removesuffix(".json.gz") for path in RECORDINGS.glob("*.json.gz")))
def test_predictions_stay_close(name):
    """Of every recording: checkpoint duration and in-flight data within 15 %, throughput within 3 %, and counts within one."""
    rows = table(name).set_index(["quantity", "vertex"])
    off = rows["relative_error"].abs()

    assert off["end_to_end_duration"].max() <= 0.15
    assert off["numRecordsInPerSecond"].max() <= 0.03
    assert abs(rows.loc["completed", "predicted"] - rows.loc["completed", "observed"]).max() <= 1
    assert (
        "alignment_persisted" not in off or rows.loc["alignment_persisted"].query("observed > 10_000")["relative_error"].abs().max() <= 0.15
    )


def test_orderings_of_real_flink_are_predicted():
    """Aligned > timeout > unaligned; remote > local; large > small segments; full-size > debloated buffers; p4 > p2."""
    aligned = value("p4-severe-aligned", "end_to_end_duration")

    assert aligned > value("p4-severe-timeout-1s", "end_to_end_duration") > value("p4-severe-unaligned", "end_to_end_duration")
    assert aligned > value("p4-severe-localchannels-aligned", "end_to_end_duration")
    assert aligned > value("p4-severe-segment8k-aligned", "end_to_end_duration")
    assert aligned > value("debloat1s-p4-severe-aligned", "end_to_end_duration")
    assert aligned > value("p2-severe-aligned", "end_to_end_duration")


def test_join_meets_the_slow_input_at_once():
    """A join reads its inputs in turn: the slow input's barrier starts the alignment, the fast input's backlog is its length."""
    delay, alignment = (value("join-fastslow-aligned", quantity, "join") for quantity in ("start_delay", "alignment_duration"))

    assert delay < 60
    assert alignment > 1_000


def test_small_differences_of_durations_are_noise():
    """60 ms and more count, less does not; bytes always count; nothing observed, nothing said."""
    rows = pd.DataFrame(
        [("start_delay", 10.0, 69.0), ("start_delay", 10.0, 71.0), ("alignment_persisted", 10.0, 20.0), ("alignment_persisted", 0.0, 5.0)],
        columns=["quantity", "observed", "predicted"],
    )

    assert [0.0, 6.1, 1.0] == errors(rows).round(3).tolist()[:3]
    assert errors(rows).isna().tolist() == [False, False, False, True]
    assert [1, 2] == far_off(rows.assign(relative_error=errors(rows))).index.tolist()


def test_summary_takes_absolute_errors():
    rows = pd.DataFrame({"quantity": ["a", "a", "a"], "relative_error": [-0.2, 0.1, float("nan")]})

    assert [("a", 2, 0.15)] == [(q, n, round(m, 3)) for q, n, m, _ in summary(rows).itertuples(index=False)]


def test_validate_prints_observed_beside_predicted(tmp_path):
    """One good file, one that is none: the good one is judged, the other named, exit code 4."""
    broken = tmp_path / "broken.json.gz"
    broken.write_bytes(b"\x1f\x8b not really")
    result = CliRunner().invoke(app, ["validate", str(RECORDINGS / "p2-severe-aligned.json.gz"), str(broken), "--seeds", "1", "--json"])
    rows = json.loads(result.stdout)

    assert 4 == result.exit_code
    assert "broken.json.gz" in result.stderr
    assert {"recording", "quantity", "vertex", "observed", "predicted", "relative_error"} == set(rows[0])


def test_validate_of_an_empty_folder_says_so(tmp_path):
    result = CliRunner().invoke(app, ["validate", str(tmp_path)])

    assert 3 == result.exit_code
    assert "no recordings" in result.stderr
