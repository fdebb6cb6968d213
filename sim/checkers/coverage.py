"""The files that a snapshot names hold all of its state, and are there before a completed checkpoint names them.

Laws 85, 86 and 117.  A log must go on where the materialisation begins, without a gap, up to the cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.checkers.violation import number_of

COVERED = "the files that a snapshot names hold all of its state"
WRITTEN_FIRST = "a completed checkpoint names files that are there in full, and nothing less than was frozen"
CLOSED = "operators that had finished at their snapshot are not opened again: they have no state"

_EXPECTED_PERCENT = 90
"""The sizes of merged tables are expected values: so much of the live bytes they hold at least."""


def gap(files: Sequence[tuple[int, int]], begin: int, end: int) -> tuple[int, int] | None:
    """The first positions of a log, from `begin` to `end`, that no file holds.  `files`: (where it ends, size in bytes)."""
    reached = begin
    for ends, size_bytes in sorted(files):
        if ends - size_bytes > reached:
            return reached, min(ends - size_bytes, end)
        reached = max(reached, ends)
        if reached >= end:
            return None
    return (reached, end) if reached < end else None


def too_little(held_bytes: int, live_bytes: int, entry_bytes: int) -> str | None:
    """What is wrong with files of so many bytes for so much state: they may hold entries twice, and round off the last ones."""
    if held_bytes >= live_bytes * _EXPECTED_PERCENT // 100 - 2 * entry_bytes:
        return None
    return f"its files hold {number_of(held_bytes, 'byte')} for {live_bytes} of state"


def without_log(missing: tuple[int, int], materialised: int) -> str:
    """The fact of a gap; `materialised`: where the materialisation ends that the snapshot refers to."""
    begin, end = missing
    return (
        f"{number_of(end - begin, 'byte')} of its changelog are in no file: the positions {begin} to {end} "
        f"(the materialisation holds everything before {materialised})"
    )
