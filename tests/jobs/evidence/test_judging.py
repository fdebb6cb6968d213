"""A file that cannot be judged says why; the others are judged all the same."""

import pytest

from sim.jobs.evidence import prediction
from sim.jobs.evidence.prediction import judge
from tests.places import RECORDINGS

RECORDING = min(RECORDINGS.glob("*.json.gz"), key=lambda path: path.stat().st_size)


def test_a_damaged_file_is_a_trouble_with_its_path(tmp_path):
    """No table, no traceback."""
    path = tmp_path / "damaged.json"
    path.write_text("{")

    judgement = judge(path, lambda _: None, seeds=1)

    assert judgement.table is None
    assert judgement.error.startswith(str(path))


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero"), MemoryError()])
def test_an_error_of_ours_is_a_trouble_of_its_file(monkeypatch, error):
    """Whatever breaks, the other recordings are still judged."""

    def broken(*_, **__):
        raise error

    monkeypatch.setattr(prediction, "truth", broken)

    assert str(RECORDING) in judge(RECORDING, lambda _: None, seeds=1).error
