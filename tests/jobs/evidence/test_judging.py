"""A file that cannot be judged says why; the others are judged all the same."""

import pandas as pd
import pytest

from benchmarks.lab import read
from sim.jobs.evidence import prediction
from sim.jobs.evidence.prediction import judge, scenario_of
from sim.jobs.reading import to_document
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


def test_the_document_of_a_recording_is_made_once(monkeypatch):
    """The truth table takes the document that says what is not modelled."""
    documents = []
    monkeypatch.setattr(prediction, "truth", lambda _, document, **__: documents.append(document) or pd.DataFrame())

    judgement = judge(RECORDING, lambda _: None, seeds=1)

    (document,) = documents
    assert to_document(read(RECORDING)) == document
    assert scenario_of(read(RECORDING)) == scenario_of(read(RECORDING), document=document)
    assert document.not_modelled == judgement.not_modelled
