"""Kept snapshots can be restored: every file that a retained checkpoint or a savepoint names is complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sim.checkers.violation import Violation

KEPT_WHOLE = "every file a retained checkpoint or a savepoint names is there in full"


class KeptSnapshot(NamedTuple):
    """A snapshot that may be restored."""

    what: str  # its name in a sentence
    files: int  # that it names
    missing: tuple[str, ...]  # paths


def broken_snapshots(kept: Iterable[KeptSnapshot], time_ns: int) -> Iterator[Violation]:
    """At the end of a run."""
    for snapshot in kept:
        if snapshot.missing:
            story = (*(f"missing: {path}" for path in snapshot.missing[:3]), *(["..."] if len(snapshot.missing) > 3 else []))
            yield Violation(KEPT_WHOLE, time_ns, snapshot.what, f"{len(snapshot.missing)} of its {snapshot.files} files are gone", story)
