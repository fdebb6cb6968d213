"""The table of ``ckptsim validate --explain``: do a recording and its simulation name the same leading part of their checkpoints?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sim.history.compared.side_by_side import SideBySide

_NAME = 36


def table(found: Sequence[SideBySide]) -> list[str]:
    """A row per recording with a checkpoint that is long enough, and their sum."""
    from sim.foreign import one_line
    from sim.history.compared.side_by_side import LEAST_MS

    counted = [recording for recording in found if recording.comparison.pairs]
    shares = {one_line(recording.recording, _NAME - 1): _Shares.of(recording) for recording in counted}
    rows = [_row(name, row) for name, row in shares.items()]
    total = _Shares(*(sum(column) for column in zip(*shares.values(), strict=True))) if shares else _Shares()
    return [
        f"{f'checkpoints of {LEAST_MS} ms and more':{_NAME}}{'':>5}{'part':>7}{'often':>7}{'kind':>7}{'itself':>8}{'readable':>10}",
        *rows, _row(f"all {len(counted)}", total), "",
        "part: recording and simulation name the same leading part, at the same vertex;",
        "  checkpoints of equal rank are compared.  often: whatever the ranks, as often.",
        "kind: the same part, at any vertex.",
        "itself: the simulation with another seed in the recording's place, by ranks.",
        "readable: statistics of simulated checkpoints name what their journal names.",
    ]  # fmt: skip


class _Shares(NamedTuple):
    """Counts, each with what it is a share of."""

    pairs: int = 0
    agreeing: int = 0
    matched: int = 0
    same_kind: int = 0
    itself: int = 0
    of_itself: int = 0
    read: int = 0
    simulated: int = 0

    @classmethod
    def of(cls, recording: SideBySide) -> _Shares:
        comparison, itself = recording.comparison, recording.itself
        return cls(
            len(comparison.pairs), comparison.agreeing, comparison.matched, comparison.same_kind, itself.agreeing, len(itself.pairs),
            recording.read, recording.simulated,
        )  # fmt: skip


def _row(name: str, row: _Shares) -> str:
    part, often, kind = (_share(count, row.pairs) for count in (row.agreeing, row.matched, row.same_kind))
    itself, readable = _share(row.itself, row.of_itself), _share(row.read, row.simulated)
    return f"{name:{_NAME}}{row.pairs:>5}{part:>7}{often:>7}{kind:>7}{itself:>8}{readable:>10}"


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}" if of else "-"
