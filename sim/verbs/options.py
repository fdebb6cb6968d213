"""Values that a verb refuses, and quantities given as text.  An option has its name in Python; the command writes it with hyphens."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sim.units import UnitError

T = TypeVar("T")


class OptionError(UnitError):
    """An option does not take this value; one line, which begins with the option's name."""

    def __init__(self, option: str, reason: object) -> None:
        super().__init__(f"{option}: {reason}")
        self.option, self.reason = option, str(reason)


def parsed(option: str, text: str, parse: Callable[[object], T]) -> T:
    """A quantity as `parse` of `sim.units` reads it.  OptionError: it is none."""
    try:
        return parse(text)
    except UnitError as error:
        raise OptionError(option, error) from None


def writable_folder(path: Path) -> Path:
    """Make the folder of the results before anything runs.  OptionError: it cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".writable.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OptionError("folder", f"{path} {_why_not_written(path, error)}") from None
    return path


def _why_not_written(path: Path, error: OSError) -> str:
    """Why a path cannot be written, with the folder that is the reason."""
    there = next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))
    if not there.is_dir():
        return f"cannot be made: {there} is a file"
    if there == path:
        return f"cannot be written: {error.strerror}"
    why = error.strerror if error.errno in (errno.EACCES, errno.EROFS, errno.ENOSPC) else "it takes no folders"
    return f"cannot be made in {there}: {why}"
