"""Predictions beside what real jobs did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sim.api.progress import watching
from sim.verbs.display import MOST_ROWS, paragraph

if TYPE_CHECKING:
    import pandas as pd

    from sim.evidence.judging import Judgement


class Validation:
    """The truth table of recordings; it shows how far predictions are off, by quantity."""

    def __init__(self, judged: Mapping[str, Judgement], skipped: Sequence[str]) -> None:
        self._judged = dict(judged)
        self.skipped = tuple(skipped)
        """Files without a table, and why."""

    @property
    def table(self) -> pd.DataFrame:
        """A row per recording, quantity and vertex: `observed_p50`, `predicted_p50` (p10 and p90, too), `relative_error`, `covered`."""
        import pandas as pd

        tables = [outcome.table for outcome in self._judged.values() if outcome.table is not None]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    @property
    def summary(self) -> pd.DataFrame:
        """A row per quantity: recordings, rows, the share that is covered, median and p90 of the relative error."""
        from sim.evidence.summary import PER_QUANTITY, summary

        return summary(self._counted(), PER_QUANTITY)

    @property
    def orderings(self) -> pd.DataFrame:
        """A row per pair of recordings that differ in one setting: which was slower, observed and predicted, and whether that is right."""
        from sim.evidence.orderings import orderings

        settings = {name: outcome.settings for name, outcome in self._judged.items() if outcome.settings is not None}
        return orderings(self._counted(), settings)

    def __repr__(self) -> str:
        return f"{self._head()}\n{self.summary.head(MOST_ROWS).to_string(index=False)}" if self._judged else self._head()

    def _repr_html_(self) -> str:
        rows = self.summary.round(3).to_html(index=False, max_rows=MOST_ROWS) if self._judged else ""
        return paragraph(self._head()) + rows

    def _counted(self) -> pd.DataFrame:
        """Recordings with features that are not modelled are in the table, and count nowhere else."""
        lost = [name for name, outcome in self._judged.items() if outcome.lost]
        table = self.table
        return table[~table["recording"].isin(lost)]

    def _head(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"{len(self._judged)} recordings{skipped}: predicted from their configuration alone, beside what was observed"


def validate(
    *recordings: str | PathLike[str], seeds: int = 3, jobs: int | None = None, environment: str | None = None, time_limit_s: float = 600.0,
    progress: bool = True,
) -> Validation:  # fmt: skip
    """Simulate recorded jobs from their configuration alone and compare with what was observed.

    `recordings`: files, or folders of them.  `seeds`: simulations per recording.  `environment`: constants from `calibrate`.
    A recording that takes longer than `time_limit_s` is skipped.  ValueError: there are no recordings.
    """
    from sim.evidence.folder import by_name, judge_all, recordings_in
    from sim.scenario.environment import load

    paths = [path for place in recordings for path in recordings_in(Path(place))]
    if not paths:
        raise ValueError(f"no recordings (.json, .json.gz, .zip) in {', '.join(map(str, recordings)) or 'nothing'}")
    overheads = None if environment is None else load(environment)
    with watching("validate", len(paths), len(paths), show=progress, what_each="recordings") as watch:
        outcomes = judge_all(paths, seeds=seeds, jobs=jobs, time_limit_s=time_limit_s, overheads=overheads, watch=watch)
    found = list(zip(paths, outcomes, strict=True))
    judged = by_name([(path, outcome) for path, outcome in found if outcome.table is not None])
    return Validation(judged, [outcome.trouble for outcome in outcomes if outcome.table is None])
