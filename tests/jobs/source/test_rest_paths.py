"""What can be a path of Flink's REST API, and what would be something else on a disk."""

import pytest

from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import PlanInput, is_id, is_path, parsed

JOB = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "text",
    ["", "x" * 32, JOB.upper(), JOB[1:], JOB + "0", f"{JOB}\n", "../../../../../../etc/passwd0000", 7, None, [JOB]],
)
def test_what_is_no_id(text):
    """Neither in a path nor in an answer."""
    assert is_id(JOB)
    assert not is_id(text)
    assert parsed(PlanInput, {"id": JOB}, "x", "/plan").id == JOB
    with pytest.raises(RecordingError, match="id"):
        parsed(PlanInput, {"id": text}, "x", "/plan")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "config",
        "//config",
        "/jobs/x",
        f"/jobs/{JOB}/",
        f"/jobs/{JOB}/..",
        f"/jobs/{JOB}/a b",
        "/.git",
        "/a\x00",
        "/a\nb",
        "/" + "a" * 101,
        "/a" * 13,
    ],
)
def test_what_is_no_path(path):
    assert not is_path(path)
