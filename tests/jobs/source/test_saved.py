"""What was saved says the same again, wherever it went; whatever else is in a folder or a zip is refused in one line."""

import itertools
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks.lab import read
from sim.jobs.reading import read_source
from sim.jobs.source import saved
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved, save
from tests.places import REST


@pytest.fixture
def folder(tmp_path):
    """Saved answers, to be damaged."""
    target = tmp_path / "answers"
    save(read_saved(REST / "pressed.zip"), target)
    return target


def refusal(path, job=None):
    with pytest.raises(RecordingError) as caught:
        read_saved(path, job)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def test_answers_saved_by_hand(folder):
    """Without the list of where they come from, and with other files beside them."""
    answers = read_saved(folder).answers
    (folder / "source.json").unlink()
    (folder / "README.txt").write_text("saved with curl")

    assert answers == read_saved(folder).answers
    assert read_saved(folder).source == "answers"


def test_a_folder_that_is_in_use_is_left_alone(folder):
    with pytest.raises(FileExistsError):
        save(read_saved(folder), folder)


def test_what_a_killed_import_left_is_no_content(tmp_path):
    """The next one saves beside it; what is a minute old is removed."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for name in ("young", "old"):
        begun = tmp_path / f".{name}.{gone.pid}.tmp" / "jobs"
        begun.mkdir(parents=True)
        (begun / "half.json").write_text("{")
    os.utime(tmp_path / f".old.{gone.pid}.tmp", (1, 1))

    save(read_saved(REST / "pressed.zip"), tmp_path)

    assert read_saved(REST / "pressed.zip").job == read_saved(tmp_path).job
    assert [f".young.{gone.pid}.tmp"] == [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("steps", range(4))
def test_an_import_that_is_interrupted_while_it_moves_files_leaves_none(tmp_path, monkeypatch, steps):
    """Else the folder would be refused, and half of the answers be taken for all."""
    moves = iter([True] * steps)
    rename = Path.rename

    def interrupted(path, target):
        if path.parent != tmp_path and next(moves, None) is None:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save(read_saved(REST / "pressed.zip"), tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_what_a_running_import_prepares_is_left_alone(tmp_path):
    (tmp_path / f".answers.{os.getppid()}.tmp").mkdir()

    with pytest.raises(FileExistsError):
        save(read_saved(REST / "pressed.zip"), tmp_path)


def test_several_jobs(folder):
    """Are named; one is chosen by the beginning of its id."""
    snapshot = read_saved(folder)
    (folder / "source.json").unlink()
    (folder / "jobs" / ("f" * 32 + ".json")).write_text("{}")

    assert f"select one with --job: {snapshot.job}, {'f' * 32}" in refusal(folder)
    assert snapshot.job == read_saved(folder, snapshot.job[:5].upper()).job
    assert "contains no job 'abc'" in refusal(folder, "abc")


def test_a_folder_of_something_else(tmp_path):
    assert "holds no saved answers" in refusal(tmp_path)
    (tmp_path / "x.json").write_text("{}")

    assert "holds no saved answers" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b'{"jid": ', "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
    ids=["empty", "cut", "binary"],
)
def test_a_damaged_answer_is_named(folder, content, message):
    job = read_saved(folder).job
    (folder / "jobs" / f"{job}.json").write_bytes(content)

    assert f"jobs/{job}.json" in (refused := refusal(folder))
    assert message in refused


def test_a_page_that_was_saved_for_an_answer_is_a_missing_answer(folder):
    """A proxy in the way answers a request out of many: the others are kept."""
    whole = read_saved(folder)
    path = next(path for path in whole.answers if "/checkpoints/details/" in path)
    (folder / f"{path[1:]}.json").write_text("<html>502 Bad Gateway</html>")

    found = read_saved(folder)

    assert {*whole.answers} - {*found.answers} == {path}
    assert found.missing[path] == "a web page was saved for it"


def test_a_damaged_zip(tmp_path):
    """Cut off, or with flipped bytes."""
    complete = (REST / "pressed.zip").read_bytes()
    path = tmp_path / "answers.zip"
    damaged = bytearray(complete)
    damaged[200] ^= 0xFF
    path.write_bytes(bytes(damaged))

    assert "damaged" in refusal(path) or "not JSON" in refusal(path)


def test_bombs_are_not_inflated(tmp_path, folder, monkeypatch):
    """Neither many bytes nor many files."""
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"jobs/{'a' * 32}.json", b" " * 10_000_000)
    monkeypatch.setattr(saved, "FILES_LARGEST_BYTES", 1_000_000)
    assert "holds more than 1000000 bytes" in refusal(path)
    monkeypatch.setattr(saved, "MAX_FILES", 3)

    assert "holds more than 3 files" in refusal(folder)
    assert "holds more than 3 files" in refusal(REST / "pressed.zip")


@pytest.mark.parametrize(
    "name", ["jobs/../../evil.json", "/etc/jobs/evil.json", "C:/jobs/evil.json", "jobs\\..\\..\\evil.json", "../x"]
)
def test_names_that_climb_out_of_a_zip(tmp_path, name):
    """Nothing is ever unpacked; and nothing that tries is believed."""
    path = tmp_path / "climbing.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("jobs/" + "a" * 32 + ".json", "{}")
        archive.writestr(name, "{}")

    assert "whose name leads elsewhere" in refusal(path, "a" * 32)
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/../../x",
        "/jobs/x/plan",
        f"/jobs/{'a' * 32}/vertices/../x",
        "/x\x00",
        "jobs",
        "/a//b",
        "/" + "a" * 300,
        "/.x",
    ],
)
def test_an_answer_is_only_saved_below_the_folder(tmp_path, path):
    """Whatever a server calls a job or a vertex; and then nothing is saved."""
    complete = read_saved(REST / "pressed.zip")
    with pytest.raises(RecordingError, match="is not a path of Flink's REST API"):
        save(RestSnapshot("x", complete.job, {**complete.answers, path: {}}), tmp_path / "a" / "b" / "c")

    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    """No half a folder that reads like a whole one."""
    fsync, count = os.fsync, itertools.count()

    def full(descriptor):
        if next(count) == 20:
            raise OSError(28, "full")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(read_saved(REST / "pressed.zip"), tmp_path / "kept")

    assert list((tmp_path / "kept").iterdir()) == []


def test_what_is_no_file_of_its_own_is_left_alone(folder, tmp_path):
    """Links to other files, pipes, devices, hidden files, names of nobody."""
    answers = read_saved(folder).answers
    job = next(iter((folder / "jobs").glob("*.json"))).stem
    (tmp_path / "private.json").write_text('{"password": "x"}')
    (folder / "jobs" / job / "link.json").symlink_to(tmp_path / "private.json")
    (folder / "jobs" / job / "zero.json").symlink_to("/dev/zero")
    os.mkfifo(folder / "jobs" / job / "pipe.json")
    (folder / "jobs" / ".hidden.json").write_text("no JSON")
    (folder / ".git").mkdir()
    (folder / ".git" / "x.json").write_text("no JSON")
    (folder / "jobs" / "a b.json").write_text("no JSON")
    (folder / "jobs" / job / "loop").symlink_to(folder)

    assert answers == read_saved(folder).answers


def test_a_pipe_in_place_of_a_file(tmp_path):
    """Nobody waits for somebody to write."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(RecordingError, match="is a pipe or a device"):
            read_source([path])
        with pytest.raises(RecordingError, match="is a pipe or a device"):
            read(path)
