"""Folders of work in progress: removed by their owner, or by whoever comes next."""

import subprocess
import sys

import pytest

from sim.studies.sweeps import spark_session as room
from sim.studies.sweeps.spark_session import staging

KILLED = """\
import os, signal
from sim.studies.sweeps.spark_session import staging

with staging() as folder:
    (folder / "spark.log").write_text("begun")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The system's temporary folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(room.tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_an_owner_removes_its_own(place):
    with staging() as folder:
        (folder / "package").mkdir()
        assert [folder] == list(place.iterdir())

    assert list(place.iterdir()) == []


def test_what_a_killed_run_left_the_next_removes(place):
    """And nothing that somebody works in, or that is not ours."""
    (place / "ckptsim-of-mine").mkdir()
    subprocess.run([sys.executable, "-c", KILLED], check=False)
    (left,) = place.glob(f"{room.PREFIX}*")

    with staging() as first, staging() as second:
        assert {place / "ckptsim-of-mine", first, second} == set(place.iterdir())

    assert not left.exists()


def test_a_folder_that_has_no_owner_yet_stays(place):
    """It was made a moment ago."""
    begun = place / f"{room.PREFIX}begun"
    begun.mkdir()

    room.remove_abandoned(place)

    assert begun.exists()
