"""Folders for work in progress.  A killed run leaves its own; the next run removes it."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "ckptsim-staging-"
OWNED = "owned"
"""A file that its owner keeps locked; the lock ends with the owner's process."""


@contextmanager
def staging() -> Iterator[Path]:
    """A folder below the system's temporary one.  Processes that the owner forks keep it locked, too."""
    place = Path(tempfile.gettempdir())
    remove_abandoned(place)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    try:
        new = folder / f"{OWNED}.new"
        with new.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            new.rename(folder / OWNED)  # the file appears together with its lock
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(place: Path) -> None:
    """Remove folders of dead owners.  Folders of other users may have to stay."""
    for folder in place.glob(f"{PREFIX}*"):
        try:
            with (folder / OWNED).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use, or not locked yet
            continue
