"""The table of ``ckptsim validate --explain``: do a recording and its simulation name the same leading part of their checkpoints?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.history.compared.side_by_side import SideBySide

_NAME = 44


def table(found: Sequence[SideBySide]) -> list[str]:
    """A row per recording with a checkpoint that is long enough, and their sum."""
    from sim.foreign import one_line
    from sim.history.compared.side_by_side import LEAST_MS

    rows = [f"{f'checkpoints of {LEAST_MS} ms and more':{_NAME}}{'':>6}{'part':>9}{'kind':>9}{'readable':>11}"]
    counted = [recording for recording in found if recording.pairs]
    rows += [
        _row(
            one_line(recording.recording, _NAME - 1),
            len(recording.pairs),
            recording.agreeing,
            recording.same_kind,
            recording.read,
            recording.simulated,
        )
        for recording in counted
    ]
    total = [
        sum(getattr(recording, name) for recording in counted) for name in ("agreeing", "same_kind", "read", "simulated")
    ]  # of the recordings above
    rows.append(_row(f"all {len(counted)}", sum(len(recording.pairs) for recording in counted), *total))
    return [*rows, "", "part: recording and simulation name the same leading part, at the same vertex.", "kind: the same, at any vertex.",
            "readable: statistics of simulated checkpoints name what their journal names."]  # fmt: skip


def _row(name: str, pairs: int, agreeing: int, same_kind: int, read: int, simulated: int) -> str:
    share = f"{read / simulated:.0%}" if simulated else "-"
    return f"{name:{_NAME}}{pairs:>6}{agreeing / max(pairs, 1):>9.0%}{same_kind / max(pairs, 1):>9.0%}{share:>11}"
