"""An imported job, simulated as it is and held to the history it came from: lines for people, and a section of the scenario file."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.evidence.backtest.backtest import NoHistoryError, backtest
from sim.evidence.backtest.runs import TooLargeError, Watch
from sim.evidence.backtest.texts import lines_of
from sim.plane import warm
from sim.quantities.observed import QUANTITIES
from sim.recordings import Inference, observed
from sim.recordings.observe.tidy import WHOLE_RUN
from sim.recordings.reading import recorded_job
from sim.scenario.history.writer import section_of

if TYPE_CHECKING:
    from sim.recordings import Import
    from sim.recordings.reading import RecordingSource
    from sim.scenario.history.file import Checkpoints

LISTED = 1000
"""Checkpoints of a history that its file lists, the latest: a log of a month has tens of thousands, and every load reads the file."""


def with_backtest(
    source: RecordingSource, imported: Import | Inference, *, watch: Watch = lambda _: None
) -> tuple[Import | Inference, list[str]]:
    """The import with the section `backtest` and its table at the head, and lines for people; unchanged where nothing can be compared."""
    try:
        warm()
        result = backtest(recorded_job(source), chains=_chains(imported), unbalanced=getattr(imported, "unbalanced", ()), watch=watch)
    except (NoHistoryError, TooLargeError) as reason:
        return imported, [f"no backtest: {reason}"]
    except Exception as error:  # noqa: BLE001 - a mistake of ours, and no reason to lose what was imported
        return imported, [f"no backtest: the simulation broke: {type(error).__name__}: {error}"]
    lines = lines_of(result)
    return _with_section(imported, section_of(result), lines), lines


def checkpoints_of(source: RecordingSource) -> Checkpoints:
    """The columns of a history file: the completed checkpoints, without savepoints."""
    table = observed(recorded_job(source))
    rows = table[(table["checkpoint"] != WHOLE_RUN) & (table["vertex"] == "")]
    if rows.empty:
        return {}
    wide = rows.pivot(index="checkpoint", columns="quantity", values="value")
    earlier, wide = max(len(wide) - LISTED, 0), wide[-LISTED:]
    columns = {name: [_known(value) for value in wide[name]] for name in QUANTITIES if name in wide}
    first = rows[rows["first"]]["checkpoint"].unique().tolist()
    units = {name: QUANTITIES[name].unit for name in columns}
    bounds = {"earlier": earlier} if earlier else {"first": first[0]} if first else {}
    return {"id": wide.index.tolist()} | bounds | {"units": units} | columns


def _known(value: float) -> float | None:
    """A number without an empty fraction; None: Flink did not say."""
    return None if math.isnan(value) or value < 0 else int(value) if value == int(value) else value


def _chains(imported: Import | Inference) -> dict[str, str]:
    """What comments say of each vertex: its operators."""
    comments = imported.comments
    names = imported.document["job"]
    return {name: comments.get(f"job.{name}", "") for name in names} if isinstance(comments, dict) else dict.fromkeys(names, "")


def _with_section(imported: Import | Inference, section: dict[str, object], lines: list[str]) -> Import | Inference:
    document = imported.document | {"backtest": section}
    if isinstance(imported, Inference):
        head = "\n".join([*imported.comments.get("", "").splitlines(), "", *lines])
        return replace(imported, document=document, comments=imported.comments | {"": head})
    return imported._replace(document=document, comments=[*imported.comments, *([""] if imported.comments else []), *lines])
