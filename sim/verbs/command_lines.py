"""The command that repeats a call, made of values: it is the same for shell and Python, without paths of this machine and credentials."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from sim.address import without_credentials

Given: TypeAlias = str | int | bool | Path | Sequence[str] | None
"""The value of an option.  None, False and an empty sequence: the option is not written."""


def command_line(verb: str, arguments: Sequence[str | Path], options: Mapping[str, Given]) -> str:
    """``ckptsim sweep day.yaml --set run.seed=3``.  A sequence is an option for each of its values."""
    tokens = [verb, *map(_token, arguments)]
    for name, value in options.items():
        tokens += _tokens(f"--{name}", value)
    return f"ckptsim {shlex.join(tokens)}"


def portable(file: str | Path) -> str:
    """The name of a file in a message that is kept: as given, or relative if it is absolute."""
    return relative_path(Path(file)) if Path(file).is_absolute() else str(file)


def relative_path(path: Path) -> str:
    """The path from the current folder: an absolute one is of one machine only."""
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # another drive
        return path.name


def _tokens(option: str, value: Given) -> Iterator[str]:
    if value is None or value is False:
        return
    if value is True:
        yield option
    elif isinstance(value, (str, int, Path)):
        yield from (option, _token(value))
    else:
        for item in value:
            yield from (option, item)


def _token(value: str | int | Path) -> str:
    return relative_path(value) if isinstance(value, Path) else without_credentials(str(value))
