"""The factors of a what-if: how far predictions of checkpoints may be off, by the kind of what it changes.

`factors.json` lies beside this file.  `python -m benchmarks.lab.backtest_verdicts --write` makes it from recordings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sim.evidence.what_ifs.changes import AS_IT_IS, KINDS, UNSEEN, Kind, kinds_of
from sim.model.backtest import OtherSettings
from sim.quantities.observed import NEGLIGIBLE_MS

if TYPE_CHECKING:
    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario

FILE = Path(__file__).parent / "factors.json"
MISSED_SHARE = 0.1
"""The share of p50, and that of p90, that may lie outside of the factors for a job without a recording."""
ENOUGH = 9
"""Families of recordings that such a promise takes: 1 / `MISSED_SHARE` - 1."""
LEAST = 1.1
"""No factor is smaller: repetitions of one job differ by as much."""
Pair = tuple[float, float]
"""A number for p50 and one for p90."""

_CHANGES: dict[Kind, str] = {
    "barriers": "other barriers", "network": "other buffers or network", "interval": "another interval",
    "parallelism": "another parallelism", "load": "another load", "storage": "other state or storage",
    "backend": "another state backend or changelog", "failure": "failures",
    "other": "another job",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Learned:
    """The errors of predictions for one kind of what-if, learned from recordings."""

    settings: int
    families: int
    beyond: Pair  # factors on top of what the history of a job tells; infinite: not known
    covered: Pair | None = None  # share of settings inside, of families left out; None: no factor is known without a family
    ratios: tuple[float, ...] = ()  # observed over predicted p90, equally likely; each family counts once

    @property
    def is_enough(self) -> bool:
        return self.families >= ENOUGH


def combined(factors: Sequence[Pair]) -> Pair:
    """The factors of several changes at once: none makes another better."""
    return math.prod(max(p50, 1.0) for p50, _ in factors), math.prod(max(p90, 1.0) for _, p90 in factors)


@cache
def evidence() -> dict[tuple[Kind, ...], Learned]:
    """The evidence of this package."""
    return read_factors(FILE.read_text(encoding="utf-8"))


def read_factors(text: str) -> dict[tuple[Kind, ...], Learned]:
    return {
        tuple(given["changes"]): Learned(
            given["settings"],
            given["families"],
            (_known(given["beyond"][0]), _known(given["beyond"][1])),
            None if given["covered"] is None else tuple(given["covered"]),
            tuple(given["ratios"]),
        )
        for given in json.loads(text)["what-ifs"]
    }


def _known(factor: float | None) -> float:
    """JSON has no infinity."""
    return math.inf if factor is None else factor


def factors_of(backtest: Backtest, kinds: Sequence[Kind]) -> OtherSettings | None:
    """Within which p50 and p90 of checkpoints are predicted where this is changed.  None: the file says nothing of its history."""
    history = backtest.other_settings
    if history is None:
        return None
    rows = [evidence()[(kind,)].beyond for kind in kinds]
    beyond = combined(rows) if len(rows) > 1 else rows[0] if rows else evidence()[AS_IT_IS].beyond
    learned = (history.p50 * beyond[0], history.p90 * beyond[1])
    row = next((row for row in backtest.compared if row.quantity == "end-to-end"), None)
    if row is None:
        return OtherSettings(*(max(factor, LEAST) for factor in learned))
    pairs = ((row.observed.p50, row.predicted.p50), (row.observed.p90, row.predicted.p90))
    return OtherSettings(*(_honest(factor, *pair) for factor, pair in zip(learned, pairs, strict=True)))


def _honest(learned: float, observed_ms: float, predicted_ms: float) -> float:
    """The factor with what it leaves out.

    It is learned from durations of which `NEGLIGIBLE_MS` more or less are no difference; and no what-if is closer than the job as it is.
    """
    low, high = sorted((max(observed_ms, 1.0), max(predicted_ms, 1.0)))
    return max(learned, LEAST, high / low) + NEGLIGIBLE_MS / max(observed_ms, 1.0)


def sentences(backtest: Backtest, scenarios: Iterable[Scenario]) -> list[str]:
    """One for each kind of what-if among the scenarios.  Empty: the file says nothing of its history, or of the job as it is."""
    if backtest.imported is None or backtest.other_settings is None:
        return []
    found = dict.fromkeys(kinds_of(backtest.imported, scenario) for scenario in scenarios)
    return [_sentence(backtest, kinds) for kinds in found]


def by_kind(backtest: Backtest) -> list[str]:
    """``- other barriers: p50 within a factor of 1.4, p90 within 2.6`` of each kind, and what nothing is known of."""
    if backtest.other_settings is None:
        return []
    known: list[tuple[Kind, ...]] = [(), *((kind,) for kind in KINDS if evidence()[(kind,)].settings)]
    lines = ["What-ifs of this job, of checkpoints with changes that our recordings have:"]
    for kinds in known:
        few = "" if evidence()[kinds].is_enough else " (few jobs recorded)"
        lines.append(f"- {what_if(kinds)}: {_factors_text(backtest, kinds)}{few}")
    others = [kind for kind in KINDS if (kind,) not in known]
    return [*lines, f"- {_listed(others)}: not known, no recording of ours has that"] if others else lines


def what_if(kinds: Sequence[Kind]) -> str:
    """``other barriers and another interval``."""
    return _listed(kinds) or "the job as it is"


def _listed(kinds: Sequence[Kind]) -> str:
    return " and ".join(_CHANGES[kind] for kind in kinds)


def _sentence(backtest: Backtest, kinds: tuple[Kind, ...]) -> str:
    """``other barriers: checkpoints have p50 within a factor of 1.5, p90 within 2.1``, and how much is known of such changes."""
    text = f"{what_if(kinds)}: checkpoints have {_factors_text(backtest, kinds)}"
    rows = {kind: evidence()[(kind,)] for kind in kinds}
    if none := [kind for kind, row in rows.items() if not row.settings]:
        return f"{what_if(kinds)}: how far checkpoints are off is not known, no recording of ours changes just that ({_listed(none)})"
    if alone := [kind for kind, row in rows.items() if kind in UNSEEN and row.families == 1]:
        return f"{text}, as those of the one job recorded with {_listed(alone)}: it brings in what this job has never done"
    if few := [kind for kind, row in rows.items() if not row.is_enough]:
        return f"{text}, as far as the worst change recorded: too few jobs were recorded with {_listed(few)}"
    return text


def _factors_text(backtest: Backtest, kinds: Sequence[Kind]) -> str:
    factors = factors_of(backtest, kinds)
    p50, p90 = (math.inf, math.inf) if factors is None else (factors.p50, factors.p90)
    first, second = ("unknown" if math.isinf(factor) else f"within a factor of {factor:.2g}" for factor in (p50, p90))
    return f"p50 {first}, p90 {second}"
