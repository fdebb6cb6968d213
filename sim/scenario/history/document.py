"""`backtest:` as it is written: one key per quantity, observed beside predicted."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, create_model

from sim.quantities.observed import Kind, of_history
from sim.scenario.grammar.fields import Duration, Natural, Number, Positive, RecordRate, Size, choice
from sim.scenario.grammar.section import Section


class _Quantiles(Section):
    """Quantiles over checkpoints, or over runs."""

    count: Natural
    """Values."""


class _Compared(Section):
    """A quantity, observed and predicted."""

    vertex: str | None = None
    """Not given: the whole checkpoint or job."""
    off: list[Annotated[str, choice("p50", "p90")]] | None = None
    """Quantiles that differ by more than repetitions do."""
    cause: str | None = None
    """The likely cause."""


_LEAVES: dict[Kind, Any] = {"duration": Duration, "size": Size, "rate": RecordRate}
_LEVELS = {"p50": "Median.", "p90": "90 % are not larger.", "max": "The largest."}


def _compared(kind: Kind) -> type[Section]:
    """The sections of a quantity of this kind, observed beside predicted."""
    levels: dict[str, Any] = {name: (_LEAVES[kind] | None, Field(None, description=text)) for name, text in _LEVELS.items()}
    quantiles = create_model(f"{kind.capitalize()}s", __base__=_Quantiles, __doc__=_Quantiles.__doc__, **levels)
    sides: dict[str, Any] = {
        "observed": (quantiles, Field(description="In the history.")), "predicted": (quantiles, Field(description="In simulation.")),
    }  # fmt: skip
    return create_model(f"Compared{kind.capitalize()}s", __base__=_Compared, __doc__=f"Observed and predicted {kind}s.", **sides)


_KINDS: dict[Kind, type[Section]] = {kind: _compared(kind) for kind in _LEAVES}


class OtherSettings(Section):
    """Factors of end-to-end durations."""

    p50: Number | None = None
    """Factor of the median.  Not given: nothing is known."""
    p90: Number | None = None
    """Factor of the 90 % quantile.  Not given: nothing is known."""


def field_of(key: str) -> str:
    """The field of a quantity: `async` is a word of Python."""
    return "async_" if key == "async" else key.replace("-", "_")


_ROWS: dict[str, Any] = {
    field_of(key): (_KINDS[own[0].kind] | None, Field(None, description=f"{own[0].title.capitalize()}: {own[0].meaning}."))
    for key, own in of_history().items()
}
_Rows = create_model("_Rows", __base__=Section, **_ROWS)


class Failures(Section):
    """Checkpoints that failed, and failures of the job."""

    completed: Natural
    """Checkpoints of the history that completed."""
    failed: Natural
    """Checkpoints of the history that failed."""
    reason: str | None = None
    """Why most of them failed."""
    predicted_completed: Natural
    """In all simulated runs."""
    predicted_failed: Natural
    """In all simulated runs."""
    job_failures: Natural | None = None
    """Failures of the job in the history."""
    ran: Duration | None = None
    """In how long the job failed so often."""


class Backtest(_Rows):  # type: ignore[misc, valid-type]  # made of the quantities
    """What `import` found when it simulated the job as it is.  Nothing of a run depends on it."""

    runs: Positive
    """Simulated runs."""
    simulated: Duration
    """Length of each run."""
    longest: list[Duration] | None = None
    """Recorded end-to-end durations, the longest first: the tail of the history."""
    tail: Number | None = None
    """The tail of end-to-end durations, observed / predicted, where both differ by more than repetitions do."""
    other_settings: OtherSettings | None = None
    """Factors within which other settings are predicted: chance in so short a history, the machine, and what is off."""
    failures: Failures | None = None
    """Not given: neither checkpoints nor the job failed."""
