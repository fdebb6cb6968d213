"""Predictions are held to recordings of real Flink: the errors are small, the orderings right, and nothing is skipped silently."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from sim.calibration.judgement import far_off, judged, summary
from sim.calibration.predicted import predicted
from sim.calibration.truth import errors, truth_table
from sim.cli import app
from sim.model.scenario import Scenario
from sim.recordings import observed, read, to_document
from sim.runtime.simulate import simulate
from sim.scenario import loads
from sim.scenario.text import write

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


@cache
def table(name: str) -> pd.DataFrame:
    return judged(truth_table(RECORDINGS / f"{name}.json.gz", seeds=(1,)))


def value(name: str, quantity: str, vertex: str = "") -> float:
    rows = table(name)
    return float(rows[(rows["quantity"] == quantity) & (rows["vertex"] == vertex)]["predicted"].iloc[0])


NAMES = sorted(path.name.removesuffix(".json.gz") for path in RECORDINGS.glob("*.json.gz"))
CHANGING = {"final-bounded-plus-unbounded", "final-bounded-chain3"}  # a rate that changes in mid-run has no mean worth comparing


@pytest.mark.parametrize("name", NAMES)
def test_predictions_stay_close(name):
    """Of every recording: checkpoint duration and in-flight data within 15 %, throughput within 5 %, and counts within one or 8 %."""
    rows = table(name).set_index(["quantity", "vertex"])
    off = rows["relative_error"].abs()
    completed = rows.loc[[key for key in ("completed", "failed") if key in rows.index.get_level_values(0)]]

    assert "end_to_end_duration" not in off or off["end_to_end_duration"].max() <= 0.15
    assert name in CHANGING or off["numRecordsInPerSecond"].max() <= 0.05
    assert ((completed["predicted"] - completed["observed"]).abs() <= (0.08 * completed["observed"]).clip(lower=1)).all()
    if "alignment_persisted" in off:
        assert rows.loc["alignment_persisted"].query("observed > 100_000")["relative_error"].abs().max() <= 0.15


ENDS = {
    "checkpoints_to_commit": 0.0, "restored_checkpoint": 0.0, "downtime": 0.05, "replayed_records": 0.1, "savepoint_duration": 0.1,
    "committed": 0.05,
}  # fmt: skip
"""Largest relative error of what the end of a job and its failures look like; 0: exact."""


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("final", "stop", "fail", "savepoint"))])
def test_ends_and_failures_are_predicted(name):
    """Which checkpoint commits the tail and which one is restored, exactly; downtime, replay, savepoints and commits closely."""
    rows = table(name)
    judged_here = rows[rows["quantity"].isin(ENDS)]

    assert len(judged_here)
    assert [] == [
        (row.quantity, row.vertex, row.observed, row.predicted)
        for row in judged_here.itertuples()
        if abs(row.relative_error) > ENDS[row.quantity] + 1e-9
    ]


def test_slow_flushes_add_up_before_the_barrier_only():
    """Three stages that take 2 s with 8 %: before the barrier they add up, in the asynchronous phase the slowest alone counts.

    Every duration lies in a cluster of a whole number of flushes, recorded and predicted: medians are alike, tails are not.
    """
    before, behind = (clusters(f"chain3-p4-flaky-{kind}flush2000-aligned") for kind in ("sync", "async"))

    assert {0, 1} == behind["recorded"] == behind["predicted"]
    assert {0, 1, 2} <= before["recorded"] <= {0, 1, 2, 3}
    assert {0, 1, 2} <= before["predicted"] <= {0, 1, 2, 3}


def clusters(name: str) -> dict[str, set[int]]:
    """How many flushes of 2 s there are in each checkpoint but the first; -1: the rest is more than 400 ms."""
    runs = [replace(imported(name), run=replace(imported(name).run, seed=seed)) for seed in (1, 2)]
    recorded = observed(read(RECORDINGS / f"{name}.json.gz"))
    tables = {"recorded": recorded, "predicted": pd.concat([predicted(simulate(run)) for run in runs])}
    durations = {kind: rows[(rows["quantity"] == "end_to_end_duration") & ~rows["first"]]["value"] for kind, rows in tables.items()}
    return {kind: {int(ms // 2_000) if ms % 2_000 < 400 else -1 for ms in values} for kind, values in durations.items()}


def imported(name: str) -> Scenario:
    document, question, comments, _ = to_document(read(RECORDINGS / f"{name}.json.gz"))
    return loads(write(document, question, comments), name=name).scenarios[0]


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
