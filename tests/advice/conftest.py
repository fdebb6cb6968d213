"""Jobs as files, for advice about them."""

import pytest


@pytest.fixture
def job(tmp_path, request):
    """The file of the job that a module is about."""
    file = tmp_path / "job.yaml"
    file.write_text(request.module.JOB)
    return file
