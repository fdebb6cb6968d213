"""Results of one command at a time: old ones until the new are complete."""

import json
import os
from contextlib import suppress

import pytest

from sim.model.files import FolderInUseError, ResultsNotWrittenError
from sim.studies import run_folder as room
from sim.studies.run_folder import SHEET, SUMMARY, TABLE, UNFINISHED, replacing


def write(place, name, runs):
    """As a command does, the summary not being the last."""
    (place / SUMMARY).write_text(json.dumps({"name": name, "runs": runs}))
    for run in runs:
        (place / run).mkdir()
        (place / run / "manifest.json").write_text(name)
    (place / "scenario.yaml").write_text(name)


def content(folder):
    """What each file says, without the summary's list."""
    files = {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {path: json.loads(text)["name"] if path == SUMMARY else text for path, text in files.items()}


def interrupted(folder, name, runs):
    """A command that ends before it is done."""
    with suppress(KeyboardInterrupt), replacing(folder, print) as place:
        write(place, name, runs)
        raise KeyboardInterrupt


OLD = {SUMMARY: "old", "scenario.yaml": "old", "a/manifest.json": "old", "b/manifest.json": "old"}
NEW = {SUMMARY: "new", "scenario.yaml": "new", "b/manifest.json": "new", "c/manifest.json": "new"}


@pytest.fixture
def used(tmp_path):
    """A folder with results, and a file of somebody's."""
    with replacing(tmp_path, print) as place:
        write(place, "old", ["a", "b"])
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


def test_new_results_take_the_place_of_old_ones(used):
    """The tables of all older runs go, also of runs that are not made any more; foreign files stay."""
    with replacing(used, print) as place:
        write(place, "new", ["b", "c"])
        assert OLD.items() <= content(used).items()

    assert content(used) == NEW | {"notes.txt": "mine"}


def test_tables_of_old_results_go_where_new_ones_have_none(used):
    """A command whose runs all fail leaves no older table that could be mistaken for its own."""
    for name in (TABLE, SHEET):
        (used / name).write_text("old")

    with replacing(used, print) as place:
        write(place, "new", ["b", "c"])

    assert content(used) == NEW | {"notes.txt": "mine"}


def test_old_results_stay_until_the_new_are_complete(used):
    """What is finished of the new ones is kept apart, until the next command."""
    interrupted(used, "half", ["b"])

    assert OLD.items() <= content(used).items()
    assert (used / UNFINISHED / "b" / "manifest.json").read_text() == "half"
    with replacing(used, print) as place:
        write(place, "new", ["b", "c"])
    assert content(used) == NEW | {"notes.txt": "mine"}


@pytest.mark.parametrize("steps", range(12))
def test_a_command_killed_while_files_change_places(used, monkeypatch, steps):
    """While there is a summary, all is of one command; the next command writes its own."""
    left = [steps]

    def counted(step):
        def fill(*arguments, **named):
            if not left[0]:
                raise SystemExit
            left[0] -= 1
            return step(*arguments, **named)

        return fill

    with monkeypatch.context() as patch:
        for kind, name in ((room, "_remove"), (room.Path, "rename"), (room.Path, "unlink"), (room.shutil, "rmtree")):
            patch.setattr(kind, name, counted(getattr(kind, name)))
        try:
            with replacing(used, print) as place:
                write(place, "new", ["b", "c"])
        except SystemExit:
            found = content(used)
            assert SUMMARY not in found or OLD.items() <= found.items() or NEW.items() <= found.items()

    with replacing(used, print) as place:
        write(place, "new", ["b", "c"])
    assert NEW.items() <= content(used).items()


def test_two_commands_do_not_share_a_folder(used):
    """The second one says so and changes nothing; once the first has ended it may."""
    with replacing(used, print) as place:
        write(place, "new", ["b", "c"])
        with (
            pytest.raises(FolderInUseError, match=rf"another command writes to .* \(process {os.getpid()} on"),
            replacing(used, print),
        ):
            pass
        assert (place / "b" / "manifest.json").read_text() == "new"

    assert content(used) == NEW | {"notes.txt": "mine"}
    interrupted(used, "half", [])


@pytest.mark.parametrize("name", ["c", UNFINISHED])
def test_what_is_somebody_elses_is_not_removed(used, name):
    """A folder by chance of the same name."""
    (used / name).mkdir()
    (used / name / "thesis.tex").write_text("mine")

    with (
        pytest.raises(ResultsNotWrittenError, match=r"was not written by ckptsim|is in the way"),
        replacing(used, print) as place,
    ):
        write(place, "new", ["b", "c"])

    assert (used / name / "thesis.tex").read_text() == "mine"
    assert OLD.items() <= content(used).items()


@pytest.mark.parametrize("runs", [["../outside"], "..", [".."], 7, [None]])
def test_a_summary_from_elsewhere_removes_nothing(tmp_path, runs):
    """Its list is not a way out of the folder."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "manifest.json").write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / SUMMARY).write_text(json.dumps({"runs": runs}))

    with replacing(folder, print) as place:
        write(place, "new", ["b"])

    assert (tmp_path / "outside" / "manifest.json").read_text() == "mine"
