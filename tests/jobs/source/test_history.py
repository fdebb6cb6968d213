"""What the JobManager leaves for the history server is a job like any other, but for its metrics."""

import gzip
import json

import pytest

from sim.jobs.reading import read_source
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import RestSnapshot
from tests.places import REST

ARCHIVE = REST / "archive.json.gz"


def refusal(tmp_path, document, job=None):
    path = tmp_path / "archive"
    path.write_text(json.dumps(document))
    with pytest.raises(RecordingError) as caught:
        read_source([path], job)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def document():
    return json.loads(gzip.decompress(ARCHIVE.read_bytes()))


def test_an_archive_is_a_snapshot():
    snapshot = read_source([ARCHIVE])

    assert isinstance(snapshot, RestSnapshot)
    assert snapshot.of_job()["state"] == "FINISHED"
    assert snapshot.samples == {}


@pytest.mark.parametrize(
    "entry", [1, {}, {"path": 3, "json": "{}"}, {"path": "jobs", "json": "{}"}, {"path": "/jobs/x"}], ids=str
)
def test_an_entry_that_is_none(tmp_path, entry):
    assert "entry 1 of the archive has no path and json" in refusal(tmp_path, {"archive": [entry]})


def test_a_damaged_entry(tmp_path):
    archive = document()
    archive["archive"][3]["json"] = '{"cut": '

    assert f"{archive['archive'][3]['path']} of the archive is not JSON" in refusal(tmp_path, archive)


def test_another_job_or_none(tmp_path):
    assert "contains no job 'fff'" in refusal(tmp_path, document(), "fff")
    assert "contains no job" in refusal(tmp_path, {"archive": []})
