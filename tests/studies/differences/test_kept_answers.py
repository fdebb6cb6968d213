"""Two answers as they were kept: settings that both tried, under the same seeds, on one screen."""

from pathlib import Path

import pandas as pd
import pytest

from sim.studies.effects import compared
from sim.studies.run_folder import FolderError
from sim.studies.sides import KeptAnswer, observed_text

ROW = {
    "status": "ok",
    "nothing": "",
    "unfinished": "",
    "completed": 50,
    "violations": 0,
    "job_status": "RUNNING",
    "strategy": "aligned",
}


def answer(name, verdict, durations, configuration=""):
    """`durations`: (interval, seed) -> median."""
    rows = [
        {**ROW, "seed": seed, "world": "", "interval": interval, "protocol": "aligned", "end_to_end_p50_ms": value}
        for (interval, seed), value in durations.items()
    ]
    return KeptAnswer(Path(name), verdict, {"configuration": configuration}, pd.DataFrame(rows))


FIRST = answer(
    "a",
    "Stay.",
    {("10 s", 1): 100.0, ("10 s", 2): 300.0, ("1 min", 1): 50.0},
    "execution.checkpointing.interval: 10 s\n",
)
SECOND = answer(
    "b",
    "Use 5 s.",
    {("10 s", 1): 150.0, ("10 s", 3): 900.0, ("5 s", 1): 70.0},
    "execution.checkpointing.interval: 5 s\n",
)


def test_settings_of_both_are_compared_under_seeds_of_both():
    """Seeds 2 and 3 have no pair; 1 min and 5 s have no setting."""
    found = compared(FIRST, SECOND)
    (own,) = [own for own in found.data["settings"]["10 s, aligned"] if own["quantity"] == "end_to_end_p50_ms"]

    assert (own["before"], own["after"], own["change"]) == (100.0, 150.0, 50.0)
    assert (found.data["only_in_a"], found.data["only_in_b"]) == (["1 min, aligned"], ["5 s, aligned"])


def test_the_screen_has_both_verdicts_and_the_configuration():
    lines = compared(FIRST, SECOND).screen.splitlines()

    assert lines[:2] == ["B: Use 5 s.", "A: Stay."]
    assert {
        "change  - execution.checkpointing.interval: 10 s",
        "        + execution.checkpointing.interval: 5 s",
    } <= set(lines)
    assert "        10 s, aligned: checkpoint duration, median: 100 ms -> 150 ms (+50 ms)" in lines
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 80


def test_nothing_in_common_is_one_message():
    with pytest.raises(FolderError, match="no setting in common"):
        compared(FIRST, answer("c", "Use 1 s.", {("1 s", 1): 1.0}))


def test_watches_say_what_they_observed(tmp_path):
    """Neither the first, which uploads everything, nor savepoints, failures, and those of which no duration is known."""
    for name, usual in (("a", 500.0), ("b", 900.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "watch.json").write_text("{}")
        (tmp_path / name / "job.yaml").write_text("version: 1\n")
        rows = {
            "job": "j",
            "checkpoint": [1, 2, 3, 4, 5, 6],
            "status": ["COMPLETED"] * 5 + ["FAILED"],
            "duration_ms": [9e9, usual, usual, 8e9, -1.0, 7e9],
            "is_savepoint": [False, False, False, True, False, False],
        }
        pd.DataFrame(rows).to_parquet(tmp_path / name / "checkpoints-2026-11-23.parquet")
    said = "Observed by the watches: median checkpoint, without the first, 500 ms (n = 2) -> 900 ms (n = 2)."

    assert said == observed_text(tmp_path / "a", tmp_path / "b")
    assert observed_text(tmp_path / "a", tmp_path) == ""
