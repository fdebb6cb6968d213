"""Why a checkpoint takes as long as it does: sentences, parts that sum to its duration, and what each part would save.

A run as Trace Event JSON, for viewers of timelines, is another close look at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.api.display import preformatted

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.scenario import Scenario


@dataclass(frozen=True, repr=False)
class Explanation:
    """One checkpoint, or several, each with its waterfall."""

    text: str  # 80 columns, as `ckptsim explain` prints it
    records: list[dict[str, Any]]  # as `ckptsim explain --json` gives them; times in ns

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
        """A row per change: how long the checkpoint would take with it at least [ms]; simulated, if that was asked for."""
        names = {"duration_at_least_ns": "at_least_ms", "simulated_duration_ns": "simulated_ms"}
        return self._frame(
            "what_if",
            lambda row: (
                {"change": row["change"]} | {new: None if row[old] is None else row[old] / 1e6 for old, new in names.items() if old in row}
            ),
        )

    def _frame(self, key: str, values: Any) -> pd.DataFrame:
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


def explained(scenarios: Mapping[str, Scenario], checkpoint: int | None, *, strategy: str | None, verify: bool) -> Explanation:
    """`scenarios`: strategy -> what is run again.  KeyError: no such strategy.  LookupError: nothing to explain."""
    from sim.explain.choice import NoCheckpointError, accounts, verified
    from sim.explain.close_up import look
    from sim.explain.record import record
    from sim.explain.text import text

    chosen = chosen_of(scenarios, strategy)
    texts, records = [], []
    reasons: list[NoCheckpointError] = []
    for name, scenario in chosen.items():
        try:
            found = accounts(name, look(scenario), checkpoint)
        except NoCheckpointError as reason:
            reasons.append(reason)
            continue
        for account in found:
            simulated = verified(account) if verify else {}
            texts.append(text(account, simulated))
            records.append(record(account, simulated))
    if not records and reasons:
        raise reasons[0]
    return Explanation("\n\n".join(texts), records)


def chosen_of(scenarios: Mapping[str, Scenario], strategy: str | None) -> dict[str, Scenario]:
    """Those that take checkpoints, or the one that is asked for.  KeyError: there is none of that name.  LookupError: none takes any."""
    from sim.explain.choice import with_checkpoints

    taking = with_checkpoints(scenarios)
    if strategy is None:
        return taking
    if strategy not in taking:
        raise KeyError(f"{strategy!r}: there are {', '.join(taking)}")
    return {strategy: taking[strategy]}


def write_timeline(
    scenarios: Mapping[str, Scenario], file: Path, *, strategy: str | None = None, begin: str = "0 s", end: str | None = None,
    step: str | None = None, limit: int = 300_000,
) -> Path:  # fmt: skip
    """Draw the strategy, or the first.  KeyError: no such strategy.  LookupError: none takes checkpoints.  ValueError: an empty window."""
    from sim.explain.close_up import look
    from sim.timeline.document import document, samples_in
    from sim.timeline.tracks import timeline
    from sim.units import parse_duration
    from sim.whole_file import replace_text

    name, scenario = next(iter(chosen_of(scenarios, strategy).items()))
    end_ns, step_ns = (None if text is None else parse_duration(text) for text in (end, step))
    samples = samples_in(scenario.run.duration_ns, parse_duration(begin), end_ns, step_ns)
    close_up = look(scenario, attach=samples.attach)
    replace_text(file, document(name, scenario, samples, timeline(close_up.instances, samples, limit)))
    return file
