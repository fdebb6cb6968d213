"""The folder of `ckptsim run`: results of one command, all of them.  New ones are made in a folder inside and then take their places.

`comparison.json` goes first and comes last: while it is there, everything beside it is of the command that wrote it.  A command that
is killed while files change places has left a list of them; the next one begins with the rest of it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sim.cells.ending import delayed_signals
from sim.folder_lock import locked
from sim.whole_file import NotKeptError, remove_partials, replace_text

UNFINISHED = "unfinished"
SUMMARY = "comparison.json"
TABLE, SHEET, PICTURE = "comparison.parquet", "comparison.csv", "comparison.png"
"""Beside the summary, unless every run failed."""
RUNS = "runs"
"""In the summary: the folders of runs beside it."""
_MOVES = ".moves.json"
_OURS = ".ours"
"""A marker in the folder for new results.  A folder without it was not made by ckptsim."""


@contextmanager
def replacing(folder: Path, warn: Callable[[str], object]) -> Iterator[Path]:
    """A place for new results, which replace those in `folder` at the end; however else the block ends, those in `folder` stay.

    NotKeptError: what is in the way is no result.  FolderInUseError: another command is at it.
    """
    place = folder / UNFINISHED
    with locked(folder, warn):
        place.mkdir(exist_ok=True)
        remove_partials(folder)
        if not (place / _OURS).is_file() and any(place.iterdir()):
            raise NotKeptError(f"{place} was not written by ckptsim: give another --out")
        (place / _OURS).touch()
        if (place / _MOVES).is_file():
            _move(folder, place)
        for left in _content(place):
            _remove(left)
        yield place
        new = [path.name for path in _content(place)]
        for name in new:
            if (folder / name).is_dir() and not _is_run(folder / name):
                raise NotKeptError(f"{folder / name} is in the way and holds no run: move it; the results are in {place}")
        replace_text(place / _MOVES, json.dumps({"old": sorted(set(_old(folder)) - set(new)), "new": new}))
        with delayed_signals():
            _move(folder, place)
            shutil.rmtree(place)


def _move(folder: Path, place: Path) -> None:
    moves = json.loads((place / _MOVES).read_text())
    old, new = (list(filter(_is_plain, moves[key])) for key in ("old", "new"))
    if (place / SUMMARY).exists():
        (folder / SUMMARY).unlink(missing_ok=True)
    for name in old:
        _remove(folder / name)
    for name in sorted(new, key=lambda name: name == SUMMARY):
        if (place / name).exists():  # else a killed command has moved it
            _remove(folder / name)
            (place / name).rename(folder / name)
    (place / _MOVES).unlink()


def _content(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.name not in (_OURS, _MOVES))


def _old(folder: Path) -> list[str]:
    """The files beside a summary of ours: the folders of the runs that it lists, and the files made of them."""
    summary = folder / SUMMARY
    try:
        summary_json: Any = json.loads(summary.read_text()) if summary.is_file() else {}
        names = list(summary_json[RUNS])
    except (OSError, ValueError, LookupError, TypeError):  # not as we wrote it
        return []
    runs = [name for name in names if _is_plain(name) and _is_run(folder / name)]
    return [*runs, *(name for name in (TABLE, SHEET, PICTURE) if (folder / name).is_file())]


def _is_plain(name: object) -> bool:
    """Whether a path is a plain folder or file, and no link."""
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name


def _is_run(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and (path / "manifest.json").is_file()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
