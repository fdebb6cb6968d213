"""Distributions as they are written -> the model's."""

from __future__ import annotations

from sim.model.job import Distribution
from sim.scenario.distribution import document as doc
from sim.scenario.text.problems import DocumentPath, Reading

__all__ = ["law"]

_KINDS = ("exponential", "uniform", "lognormal", "erlang", "shifted_exponential")


def law(given: int | doc.DurationLaw | doc.SizeLaw | None, default: Distribution, here: DocumentPath, reading: Reading) -> Distribution:
    """The distribution that stands at `here`; mistakes go to `reading`."""
    if given is None:
        return default
    if isinstance(given, int):
        return Distribution(given)
    named = [kind for kind in _KINDS if getattr(given, kind, None) is not None]
    if len(named) != 1:
        known = [kind.replace("_", "-") for kind in _KINDS if hasattr(given, kind)]
        reading.wrong(here, f"write exactly one distribution: {', '.join(known[:-1])} or {known[-1]}")
        return default
    return _named(named[0], getattr(given, named[0]), here, reading)


def _named(kind: str, value: int | doc.DurationSpread | doc.SizeSpread, here: DocumentPath, reading: Reading) -> Distribution:
    kind = kind.replace("_", "-")
    if isinstance(value, int):
        return Distribution(value, kind)  # type: ignore[arg-type]  # a field's name
    most = 1 if kind in ("erlang", "shifted-exponential") else 100
    if not 0 < value.cv <= most:
        reading.wrong((*here, kind, "cv"), f"must lie between 0 (excluded) and {most}; cv is standard deviation / mean")
    return Distribution(value.mean, kind, float(value.cv))  # type: ignore[arg-type]
