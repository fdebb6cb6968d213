"""What the command can do beside runs, from Python: traces; histories side by side."""

from dataclasses import replace

import pytest

import sim
from sim.app.verbs.study import compare


@pytest.mark.parametrize(("master", "expected"), [("here", "say another --master"), (None, "say --master as well")])
def test_settings_of_spark_are_not_ignored(tmp_path, master, expected):
    (tmp_path / "day.csv").write_text("epoch_s,rate\n1,2\n")
    settings = {"spark.executor.cores": "2"}

    with pytest.raises(ValueError, match=f"--conf is for Spark: {expected}"):
        sim.read_traces(tmp_path / "day.csv", tmp_path / "tables", master=master, conf=settings)
    with pytest.raises(ValueError, match=f"--conf is for Spark: {expected}"):
        sim.trace_windows(tmp_path / "tables", master=master, conf=settings)


def test_the_history_of_one_job_stays_with_its_results(study):
    """Results of several jobs have no common history."""
    history, other = object(), object()
    first, second = (study[name].run(jobs=1) for name in ("aligned", "unaligned"))
    mine, own, foreign = (
        replace(results, backtest=of) for results, of in ((first, history), (second, history), (second, other))
    )

    assert history is compare({"a": mine, "b": own}).backtest
    assert history is compare({"a": mine, "b": second}).backtest
    assert compare({"a": mine, "b": foreign}).backtest is None
