"""The job that advice is about stands in the folder of its results, as `import` writes it."""

from sim.advice.job import job_file
from sim.model.schema.study import load, loads
from tests.model.schema.test_history_file import INLINE


def test_an_imported_job_is_kept_in_two_files(tmp_path):
    """Trials read it there, tails and backtest included."""
    file = job_file(tmp_path / "saved.zip", INLINE, tmp_path)

    assert {"job.yaml", "job.history.json"} == {path.name for path in tmp_path.iterdir()}
    assert loads(INLINE, "job") == load(file)
