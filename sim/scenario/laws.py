"""Distributions as they are written -> the model's."""

from __future__ import annotations

from sim.model.job import Distribution
from sim.scenario import document_job as doc
from sim.scenario.problems import Path, Reading

__all__ = ["law"]


def law(given: int | doc.DurationLaw | doc.SizeLaw | None, default: Distribution, here: Path, reading: Reading) -> Distribution:
    """The distribution that stands at `here`; mistakes go to `reading`."""
    if given is None:
        return default
    if isinstance(given, int):
        return Distribution(given)
    named = [kind for kind in ("exponential", "uniform", "lognormal", "erlang") if getattr(given, kind) is not None]
    if len(named) != 1:
        reading.wrong(here, "write exactly one distribution: exponential, uniform, lognormal or erlang")
        return default
    return _named(named[0], getattr(given, named[0]), here, reading)


def _named(kind: str, value: int | doc.DurationSpread | doc.SizeSpread, here: Path, reading: Reading) -> Distribution:
    if isinstance(value, int):
        return Distribution(value, kind)  # type: ignore[arg-type]  # a field's name
    if value.cv == 0 or (kind == "erlang" and value.cv > 1) or value.cv > 100:
        most = 1 if kind == "erlang" else 100
        reading.wrong((*here, kind, "cv"), f"must lie between 0 (excluded) and {most}; cv is standard deviation / mean")
    return Distribution(value.mean, kind, float(value.cv))  # type: ignore[arg-type]
