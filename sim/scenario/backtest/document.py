"""`backtest:` as it is written: one key per quantity, observed beside predicted."""

from __future__ import annotations

from typing import Annotated

from sim.scenario.grammar.fields import Duration, Natural, Number, Positive, RecordRate, Size, choice
from sim.scenario.grammar.section import Section


class Durations(Section):
    """Quantiles over checkpoints."""

    p50: Duration | None = None
    """Median."""
    p90: Duration | None = None
    """90 % are not larger."""
    max: Duration | None = None
    """The largest."""
    count: Natural
    """Values."""


class Sizes(Section):
    """Quantiles over checkpoints."""

    p50: Size | None = None
    """Median."""
    p90: Size | None = None
    """90 % are not larger."""
    max: Size | None = None
    """The largest."""
    count: Natural
    """Values."""


class Rates(Section):
    """Quantiles over runs."""

    p50: RecordRate | None = None
    """Median."""
    p90: RecordRate | None = None
    """90 % are not larger."""
    max: RecordRate | None = None
    """The largest."""
    count: Natural
    """Values."""


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
    """In the history."""
    predicted: Durations
    """In simulation."""


class ComparedSizes(_Compared):
    """Observed and predicted sizes."""

    observed: Sizes
    """In the history."""
    predicted: Sizes
    """In simulation."""


class ComparedRates(_Compared):
    """Observed and predicted rates."""

    observed: Rates
    """In the history."""
    predicted: Rates
    """In simulation."""


class OtherSettings(Section):
    """Factors of end-to-end durations."""

    p50: Number | None = None
    """Factor of the median.  Not given: nothing is known."""
    p90: Number | None = None
    """Factor of the 90 % quantile.  Not given: nothing is known."""


class Backtest(Section):
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
    end_to_end: ComparedDurations | None = None
    """Duration of checkpoints."""
    start_delay: ComparedDurations | None = None
    """The slowest subtask counts."""
    alignment: ComparedDurations | None = None
    """The slowest subtask counts."""
    sync: ComparedDurations | None = None
    """The slowest subtask counts."""
    async_: ComparedDurations | None = None
    """The slowest subtask counts."""
    in_flight_persisted: ComparedSizes | None = None
    """Stored in a checkpoint."""
    in_flight_processed: ComparedSizes | None = None
    """Processed while barriers align."""
    checkpointed: ComparedSizes | None = None
    """Written by a checkpoint."""
    full_size: ComparedSizes | None = None
    """What a checkpoint refers to."""
    throughput: ComparedRates | None = None
    """Records of the sources."""
