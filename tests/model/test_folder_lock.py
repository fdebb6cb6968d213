"""Two commands never work in one folder at the same time, and a killed one keeps nobody out."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from sim.model.files import LOCK, FolderInUseError, locked
from tests.places import ROOT

ENTERING = """
import sys
from pathlib import Path
from sim.model.files import FolderInUseError, locked
folder, entered = Path(sys.argv[1]), 0
while entered < 300:
    try:
        with locked(folder, print):
            (folder / "inside").mkdir()
            (folder / "inside").rmdir()
            entered += 1
    except FolderInUseError:
        pass
"""
WAITING = """
import sys, time
from pathlib import Path
from sim.model.files import locked
with locked(Path(sys.argv[1]), print):
    print("inside", flush=True)
    time.sleep(60)
"""


def process(text, folder):
    command = [sys.executable, "-c", text, str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_processes_that_enter_and_leave_never_meet(tmp_path):
    """Each makes and removes the same folder: it would be there already."""
    entering = [process(ENTERING, tmp_path) for _ in range(3)]

    assert [(process.communicate(timeout=60)[0], process.returncode) for process in entering] == [("", 0)] * 3
    assert list(tmp_path.iterdir()) == []


def test_a_killed_owner_keeps_nobody_out(tmp_path):
    """While it lives it is named."""
    owner = process(WAITING, tmp_path)
    assert owner.stdout.readline() == "inside\n"
    with pytest.raises(FolderInUseError, match=rf"process {owner.pid} on .*, since .* UTC"), locked(tmp_path, print):
        pass
    owner.send_signal(signal.SIGKILL)
    owner.communicate()

    with locked(tmp_path, print):
        assert f"process {os.getpid()} " in (tmp_path / LOCK).read_text()
    assert not (tmp_path / LOCK).exists()


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    """The user is warned, and the work is done."""
    warnings = []

    def refuse(_file, _operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path, warnings.append):
        (tmp_path / "x").touch()

    assert len(warnings) == 1
    assert "locks no files (No locks available)" in warnings[0]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / LOCK).symlink_to("thesis.tex")

    with pytest.raises(OSError, match="symbolic"), locked(tmp_path, print):
        pass

    assert (tmp_path / "thesis.tex").read_text() == "mine"
