"""``ckptsim validate --explain``: do a recording and its simulation name the same leading part of their checkpoints?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sim.cli.console.errors import Code, print_message, stoppable
from sim.cli.console.progress import bar
from sim.cli.console.terminal import put

if TYPE_CHECKING:
    from sim.history.compared.side_by_side import SideBySide

_NAME = 44


def explain_recordings(paths: Sequence[Path], *, as_json: bool) -> None:
    """One simulation per recording.  A recording that cannot be read or simulated is skipped and named: exit code 4."""
    from sim.cells.cell import warm
    from sim.history.compared.side_by_side import side_by_side
    from sim.recordings import RecordingError
    from sim.scenario import ScenarioError

    warm("compiled")
    found: list[SideBySide] = []
    with bar("explain", len(paths), len(paths), what_each="recordings") as watch, stoppable("nothing is kept"):
        for number, path in enumerate(paths, 1):
            try:
                found.append(side_by_side(path))
            except (RecordingError, ScenarioError) as error:
                print_message(f"skipped: {path}: {error}")
            watch(number, number)
    if as_json:
        print(json.dumps([asdict(recording) for recording in found]))
    else:
        put("\n".join(_table(found)))
    raise typer.Exit(Code.FINE if len(found) == len(paths) else Code.CELLS_FAILED)


def _table(found: Sequence[SideBySide]) -> list[str]:
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
