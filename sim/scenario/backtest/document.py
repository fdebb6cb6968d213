"""`backtest:` as it is written: one key per quantity, observed beside predicted."""

from __future__ import annotations

from typing import Annotated

from sim.scenario.grammar.fields import Duration, Natural, Number, Positive, RecordRate, Size, choice
from sim.scenario.grammar.section import Section

__all__ = ["Backtest", "ComparedDurations", "ComparedRates", "ComparedSizes"]


class Durations(Section):
    """Quantiles over checkpoints."""

    p50: Duration | None = None
    p90: Duration | None = None
    max: Duration | None = None
    count: Natural


class Sizes(Section):
    """Quantiles over checkpoints."""

    p50: Size | None = None
    p90: Size | None = None
    max: Size | None = None
    count: Natural


class Rates(Section):
    """Quantiles over runs."""

    p50: RecordRate | None = None
    p90: RecordRate | None = None
    max: RecordRate | None = None
    count: Natural


class _Compared(Section):
    vertex: str | None = None
    """Not given: the whole checkpoint or job."""
    off: list[Annotated[str, choice("p50", "p90")]] | None = None
    """Quantiles that differ by more than repetitions do."""
    cause: str | None = None
    """The likely cause."""


class ComparedDurations(_Compared):
    """Observed and predicted durations."""

    observed: Durations
    predicted: Durations


class ComparedSizes(_Compared):
    """Observed and predicted sizes."""

    observed: Sizes
    predicted: Sizes


class ComparedRates(_Compared):
    """Observed and predicted rates."""

    observed: Rates
    predicted: Rates


class Backtest(Section):
    """What `import` found when it simulated the job as it is.  Nothing of a run depends on it."""

    runs: Positive
    simulated: Duration
    """Length of each run."""
    longest: list[Duration] | None = None
    """Recorded end-to-end durations, the longest first: the tail of the history."""
    tail: Number | None = None
    """The tail of end-to-end durations, observed / predicted, where both differ by more than repetitions do."""
    end_to_end: ComparedDurations | None = None
    start_delay: ComparedDurations | None = None
    alignment: ComparedDurations | None = None
    sync: ComparedDurations | None = None
    async_: ComparedDurations | None = None
    in_flight_persisted: ComparedSizes | None = None
    in_flight_processed: ComparedSizes | None = None
    checkpointed: ComparedSizes | None = None
    full_size: ComparedSizes | None = None
    throughput: ComparedRates | None = None
