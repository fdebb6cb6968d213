"""Folders for work in progress.  A run that is killed leaves its own behind: the next run removes it."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["remove_abandoned", "staging"]

PREFIX = "ckptsim-staging-"
OWNED = "owned"
"""A file that its owner holds locked: the lock ends with the owner, however that dies."""


@contextmanager
def staging() -> Iterator[Path]:
    """A folder below the system's temporary one.  Processes that the owner forks meanwhile hold it too."""
    place = Path(tempfile.gettempdir())
    remove_abandoned(place)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    try:
        new = folder / f"{OWNED}.new"
        with new.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            new.rename(folder / OWNED)  # there is no moment at which it is there and not locked
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(place: Path) -> None:
    """Folders of owners that are gone.  Those of others' we may not remove stay."""
    for folder in place.glob(f"{PREFIX}*"):
        try:
            with (folder / OWNED).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # somebody works there, or nobody has begun to
            continue
