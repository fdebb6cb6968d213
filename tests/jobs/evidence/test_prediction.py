"""A file that cannot be judged says why; the others are judged all the same."""

import numpy as np
import pytest

from sim.jobs.evidence import prediction
from sim.jobs.evidence.prediction import growth_per_ms, judge, steady_window
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


# ---- Runs are judged over whole checkpoints, once they have settled.


def test_too_few_checkpoints_leave_the_rest_of_the_run():
    """None, one, or two that cover less than half of it."""
    for triggers in ([], [50], [50, 80]):
        assert steady_window(0, 100, triggers) == (25.0, 100.0)


def test_two_samples_make_a_rate():
    assert growth_per_ms(np.array([5.0, 50.0]), np.array([0.0, 9.0]), (10.0, 40.0)) is None
    assert growth_per_ms(np.array([]), np.array([]), (0.0, 1.0)) is None
