"""Files and folders: whole or not at all, and one command at a time."""

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sim.model.files import LOCK, FolderInUseError, locked, remove_partials, replace_file, replace_text
from tests.places import ROOT
from tests.processes import run_python

# A file is there whole or not at all, whatever happens while it is written.


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("old")
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "half"), OSError(errno.EFBIG, "half"), KeyboardInterrupt(), ValueError("no")]
)
def test_what_cannot_be_written_leaves_what_was_there(old, error):
    """A full disk, a limit, Ctrl-C, a mistake: no half file stays under any name."""

    def fail(partial):
        partial.write_text("ne")
        raise error

    with pytest.raises(type(error)) as caught:
        replace_file(old, fail)

    assert old.read_text() == "old"
    assert names(old.parent) == ["x.yaml"]
    if isinstance(error, OSError):
        assert (error.errno, os.strerror(error.errno), str(old)) == (
            caught.value.errno,
            caught.value.strerror,
            caught.value.filename,
        )


def test_it_is_on_the_disk_before_it_has_its_name(old, monkeypatch):
    """Else a crash of the machine leaves an empty file."""
    steps = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: steps.append((os.path.isdir(f"/proc/self/fd/{descriptor}"), old.read_text()))
    )
    replace_text(old, "new")

    assert steps == [(False, "old"), (True, "new")]


def test_a_sync_that_fails_is_a_write_that_fails(old, monkeypatch):
    """Some file systems find out only then that they are full."""

    def fail(_):
        raise OSError(errno.ENOSPC, "late")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        replace_text(old, "new")

    assert old.read_text() == "old"
    assert names(old.parent) == ["x.yaml"]


def test_links_and_permissions_stay(old, tmp_path):
    link = tmp_path / "link.yaml"
    link.symlink_to("x.yaml")
    old.chmod(0o640)
    replace_text(link, "new")

    assert link.is_symlink()
    assert (old.read_text(), old.stat().st_mode & 0o777) == ("new", 0o640)
    assert names(tmp_path) == ["link.yaml", "x.yaml"]


def test_pipes_and_devices_are_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    replace_text(pipe, "new")
    replace_text(Path("/dev/null"), "new")
    reader.join(5)

    assert read == ["new"]
    assert names(tmp_path) == ["pipe"]


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no such name")
def test_the_other_end_of_a_pipe_may_be_named():
    """`ckptsim import ... -o /dev/stdout | less`"""
    text = (
        "from pathlib import Path; from sim.model.files import replace_text; replace_text(Path('/dev/stdout'), 'new')"
    )
    done = run_python("-c", text)

    assert (done.stdout, done.stderr) == ("new", "")


def test_the_longest_name_there_is(tmp_path):
    path = tmp_path / ("ä" * 127)
    replace_text(path, "new")

    assert path.read_text() == "new"


def test_a_command_on_a_full_disk_says_one_line(tmp_path):
    """And the older file stays.  The disk is played by the limit of a file's size."""
    out = tmp_path / "x.yaml"
    out.write_text("old")
    source = ROOT / "tests" / "data" / "rest" / "pressed.zip"
    done = run_python(
        *("-m", "sim", "import", source, "-o", out),
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )

    assert (4, "", f"cannot keep results: {out}: File too large\n") == (done.returncode, done.stdout, done.stderr)
    assert out.read_text() == "old"
    assert names(tmp_path) == ["x.yaml"]


def test_what_killed_processes_left_is_removed(tmp_path):
    """Nothing that somebody may still write, here or on another machine, and nothing of others."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    old = {f".rows.parquet.{ended.pid}.tmp", f".rows.parquet.{os.getpid()}.tmp", ".mine.tmp", "rows.parquet"}
    for name in old:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1, 1))
    young = f".young.parquet.{ended.pid}.tmp"
    (tmp_path / young).touch()

    remove_partials(tmp_path)

    assert (old - {f".rows.parquet.{ended.pid}.tmp"}) | {young} == {path.name for path in tmp_path.iterdir()}


def test_a_folder_that_is_a_file_is_named_and_no_temporary_file(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(NotADirectoryError) as raised:
        replace_text(tmp_path / "file" / "x.html", "")

    assert raised.value.filename == str(tmp_path / "file" / "x.html")


# Two commands never work in one folder at the same time, and a killed one keeps nobody out.


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
