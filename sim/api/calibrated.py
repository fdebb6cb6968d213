"""The constants that no configuration says, estimated from recordings of one environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sim.verbs.display import paragraph

if TYPE_CHECKING:
    import pandas as pd

    from sim.evidence.calibration.estimate import Estimate
    from sim.recordings import Recording


class Calibration:
    """What `environment:` of a scenario takes; it shows the constants with their intervals."""

    def __init__(self, estimates: Mapping[str, Estimate], recordings: Sequence[Recording], skipped: Sequence[str]) -> None:
        self._estimates = dict(estimates)
        self._recordings = recordings
        self.skipped = tuple(skipped)
        """Files that are no recordings, and why."""

    @property
    def table(self) -> pd.DataFrame:
        """A row per constant: `value_ms`, `low_ms` and `high_ms` (95 %), `recordings` that tell it, `kept` (the default: few tell it)."""
        import pandas as pd

        from sim.evidence.calibration.estimators import CONSTANTS

        rows = [
            {"constant": name.replace("_", "-"), "value_ms": found.value_ms, "low_ms": found.low_ms, "high_ms": found.high_ms,
             "recordings": found.recordings, "kept": found.kept, "meaning": CONSTANTS[name].what}
            for name, found in self._estimates.items()
        ]  # fmt: skip
        return pd.DataFrame(rows)

    @property
    def text(self) -> str:
        """The file for `environment:`, as YAML."""
        from sim.evidence.calibration.environments import environment_text, head

        return environment_text(self._estimates, [*head(self._recordings), "Written by: sim.calibrate(...)"])

    def save(self, file: str | PathLike[str]) -> Path:
        """Write the file for `environment:`; returns its path."""
        from sim.whole_file import replace_text

        replace_text(Path(file), self.text)
        return Path(file)

    def __repr__(self) -> str:
        return f"{self._head()}\n{self.table.to_string(index=False)}"

    def _repr_html_(self) -> str:
        return paragraph(self._head()) + str(self.table.round(2).to_html(index=False))

    def _head(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        count = len(self._recordings)
        return f"Constants from {count} recording{'' if count == 1 else 's'}{skipped}"


def calibrate(*recordings: str | PathLike[str]) -> Calibration:
    """Estimate what no configuration says from recordings of one environment; nothing is simulated.

    `recordings`: files, or folders of them.  ValueError: there are no recordings.
    """
    from sim.evidence.calibration.estimate import estimates, votes
    from sim.evidence.folder import in_folder
    from sim.recordings import RecordingError, read

    places = [Path(place) for place in recordings]
    found, skipped = [], []
    for path in (file for place in places for file in (in_folder(place) if place.is_dir() else [place])):
        try:
            found.append(read(path))
        except RecordingError as error:
            skipped.append(str(error))
    if not found:
        raise ValueError(f"no recordings (.json, .json.gz) in {', '.join(map(str, recordings)) or 'nothing'}")
    return Calibration(estimates([votes(recording) for recording in found]), found, skipped)
