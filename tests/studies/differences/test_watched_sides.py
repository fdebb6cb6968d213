"""What two watches observed."""

import pandas as pd

from sim.studies.sides import observed_text


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
