"""The observations of a simulated run, in the same tidy rows as those of a recording (`sim.recordings.observe.table`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from sim.evidence.predicted_series import of_series
from sim.recordings.observe.table import of_checkpoints
from sim.recordings.observe.tidy import RunValue, values_of

if TYPE_CHECKING:
    from sim.runtime.run.result import Result


def predicted(result: Result) -> pd.DataFrame:
    """The observations of a simulated run (columns of `sim.recordings.observe.tidy.COLUMNS`)."""
    periodic = result.checkpoints[result.checkpoints["savepointFormat"] == ""]
    parts = [of_checkpoints(periodic, result.subtasks), values_of([*of_series(result), *_savepoints(result)])]
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _savepoints(result: Result) -> Iterator[RunValue]:
    done = result.checkpoints[(result.checkpoints["savepointFormat"] != "") & (result.checkpoints["status"] == "COMPLETED")]
    yield from (("savepoint_duration", "", float(duration)) for duration in done["end_to_end_duration"])
