"""The model of a backtest -> `backtest:`, as `sim.scenario.write` takes it."""

from __future__ import annotations

import math
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sim.quantities.observed import Kind, of_history
from sim.units import format_duration, format_rate, format_size

if TYPE_CHECKING:
    from sim.model.backtest import Backtest, ComparedQuantity, Quantiles


def section_of(backtest: Backtest) -> dict[str, Any]:
    section: dict[str, Any] = {"runs": backtest.runs, "simulated": format_duration(backtest.simulated_ns)}
    if backtest.longest_ms:
        section["longest"] = list(map(duration_text, backtest.longest_ms))
    if backtest.tail != 1:
        section["tail"] = Fraction(f"{backtest.tail:.3g}")
    if backtest.other_settings is not None:
        factors = {"p50": backtest.other_settings.p50, "p90": backtest.other_settings.p90}
        section["other-settings"] = {level: Fraction(f"{factor:.3g}") for level, factor in factors.items() if math.isfinite(factor)}
    if (failures := backtest.failures) is not None:
        given = {key.replace("_", "-"): value for key, value in asdict(failures).items() if value or "completed" in key or "failed" in key}
        if ran_ns := given.pop("ran-ns", 0):
            given["ran"] = format_duration(ran_ns)
        section["failures"] = given
    return section | {compared.quantity: _compared(compared) for compared in backtest.compared}


def duration_text(ms: float) -> str:
    """A duration as the section `history` writes it."""
    return _text(ms, "duration")


def _compared(compared: ComparedQuantity) -> dict[str, Any]:
    kind = of_history()[compared.quantity][0].kind
    vertex = {"vertex": compared.vertex} if compared.vertex else {}
    off = {"off": list(compared.off)} if compared.off else {}
    cause = {"cause": compared.cause} if compared.cause else {}
    return vertex | {"observed": _quantiles(compared.observed, kind), "predicted": _quantiles(compared.predicted, kind)} | off | cause


def _quantiles(quantiles: Quantiles, kind: Kind) -> dict[str, Any]:
    if not quantiles.count:
        return {"count": 0}
    values = {"p50": quantiles.p50, "p90": quantiles.p90, "max": quantiles.largest}
    return {name: _text(value, kind) for name, value in values.items()} | {"count": quantiles.count}


def _text(value: float, kind: Kind) -> str:
    """Four digits: repetitions agree on fewer."""
    rounded = Fraction(f"{value:.4g}")
    match kind:
        case "duration":
            return format_duration(round(rounded * 10**6))
        case "size":
            return format_size(round(rounded))
        case "rate":
            return format_rate(rounded)
