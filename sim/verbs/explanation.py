"""Why checkpoints take as long as they do: sentences, parts that sum to a duration, and what each part would save."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.verbs.display import preformatted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Explanation:
    """One checkpoint, or several, each with its waterfall; simulated or real."""

    text: str  # 80 columns, as `ckptsim explain` prints it
    records: list[dict[str, Any]]  # one for each checkpoint; times in ns
    history: Mapping[str, Any] | None = None  # of a real job: the records and what they have in common; None: simulated

    @property
    def sentences(self) -> list[str]:
        """A sentence per checkpoint: the longest part, and its cause."""
        return [str(record["sentence"]) for record in self.records]

    @property
    def parts(self) -> pd.DataFrame:
        """A row per part of the critical path: strategy, checkpoint, part, place, begin_ms, duration_ms, cause."""
        return self._frame("parts", lambda part: {"part": part["part"], "place": part["place"], "begin_ms": part["begin_ns"] / 1e6,
                                                  "duration_ms": part["duration_ns"] / 1e6, "cause": part["cause"]})  # fmt: skip

    @property
    def what_if(self) -> pd.DataFrame:
        """A row per change: what is left of the path [ms], and the duration that was simulated, if that was asked for."""
        names = {"rest_of_path_ns": "rest_of_path_ms", "simulated_duration_ns": "simulated_ms"}
        return self._frame(
            "what_if",
            lambda row: (
                {"change": row["change"]} | {new: None if row[old] is None else row[old] / 1e6 for old, new in names.items() if old in row}
            ),
        )

    @property
    def plain(self) -> list[dict[str, Any]] | Mapping[str, Any]:
        """JSON-ready: the records of a simulation, the history of a real job."""
        return self.records if self.history is None else self.history

    def _frame(self, key: str, values: Callable[[dict[str, Any]], dict[str, Any]]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(
            [
                {"strategy": record["strategy"], "checkpoint": record["checkpoint"], **values(row)}
                for record in self.records
                for row in record[key]
            ]
        )

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return preformatted(self.text)
