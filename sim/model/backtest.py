"""The backtest of an imported job: how well its simulation agrees with the checkpoint history that it was inferred from.

A backtest belongs to a scenario file and does not affect runs.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING

from sim.model.catalog import option
from sim.model.fields import Duration, Natural

if TYPE_CHECKING:
    from sim.model.quantities import Level
    from sim.model.scenario import Scenario


MAX_KEPT_DURATIONS = 20
"""Longest durations stored in a scenario: enough for the p99 of 2,000 checkpoints."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of a quantity, in ms, bytes or records per second.  NaN without values."""

    p50: float = math.nan
    p90: float = math.nan
    largest: float = math.nan
    count: int = 0

    def at(self, level: Level) -> float:
        """Return the p50 or p90."""
        return self.p50 if level == "p50" else self.p90


@dataclass(frozen=True, slots=True)
class ComparedQuantity:
    """The observed and the predicted quantiles of a quantity."""

    quantity: str
    observed: Quantiles
    predicted: Quantiles
    vertex: str = ""  # empty for quantities of whole checkpoints
    off: tuple[Level, ...] = ()  # levels at which the two differ by more than repeated runs of one job
    cause: str = ""

    def change(self, level: Level) -> float | None:
        """Return (predicted - observed) / observed, or None if nothing was predicted or the observed value is 0."""
        observed, predicted = self.observed.at(level), self.predicted.at(level)
        return (predicted - observed) / observed if self.predicted.count and observed else None

    def agreement(self, level: Level) -> float:
        """Return the smaller value / the larger one, or 1 if they differ by no more than repeated runs."""
        values = (self.observed.at(level), self.predicted.at(level))
        if level not in self.off or math.isnan(values[0]):
            return 1.0
        return min(values) / max(values) if values[1] > 0 else 0.0  # the prediction may be NaN


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """Factors within which predicted durations under other settings are expected.  Infinite if unknown.

    The factors of a history cover the sampling error of its checkpoints, differences between machines, and the deviation
    of the backtest.  The error of a what-if also depends on what it changes (`sim.jobs.evidence`).
    """

    p50: float
    p90: float


@dataclass(frozen=True, slots=True)
class ObservedFailures:
    """Completed and failed checkpoints of the history and of the simulation, and failures of the job."""

    completed: Natural = option(MISSING, "Checkpoints of the history that completed.")
    failed: Natural = option(MISSING, "Checkpoints of the history that failed.")
    reason: str = option("", "Why most of them failed.")  # empty if unknown
    predicted_completed: Natural = option(0, "In all simulated runs.", is_required=True)
    predicted_failed: Natural = option(0, "In all simulated runs.", is_required=True)
    job_failures: Natural = option(0, "Failures of the job in the history.")
    ran_ns: Duration = option(0, "In how long the job failed so often.")  # 0 if unknown

    @property
    def are_missed(self) -> bool:
        """Whether most checkpoints of the history failed, but most of the simulation complete."""
        predicted = self.predicted_completed + self.predicted_failed
        return 2 * self.failed > self.failed + self.completed and 2 * self.predicted_failed < predicted

    @property
    def mtbf_ms(self) -> float | None:
        """Mean time between failures of the job.  None without failures, or if the period is unknown."""
        return self.ran_ns / 1e6 / self.job_failures if self.job_failures and self.ran_ns else None


@dataclass(frozen=True, slots=True)
class Backtest:
    """The backtest of an import."""

    compared: tuple[ComparedQuantity, ...]
    longest_ms: tuple[float, ...] = ()  # observed durations, in descending order
    tail: float = 1.0  # observed / predicted tail of durations; 1 if they differ by no more than repeated runs
    runs: int = 1
    simulated_ns: int = 0  # length of each run
    other_settings: OtherSettings | None = None  # None in files of older versions
    failures: ObservedFailures | None = None  # None if neither checkpoints nor the job failed
    # The scenario without command-line overrides.
    imported: Scenario | None = field(default=None, compare=False, repr=False)

    def of(self, quantity: str) -> ComparedQuantity | None:
        """Return the comparison of a quantity, if there is one."""
        return next((compared for compared in self.compared if compared.quantity == quantity), None)

    @property
    def off(self) -> tuple[ComparedQuantity, ...]:
        """The quantities whose prediction deviates from the history."""
        return tuple(compared for compared in self.compared if compared.off)

    @property
    def checkpoints(self) -> int:
        """Number of completed checkpoints of the history."""
        durations = self.of("end-to-end")
        return 0 if durations is None else durations.observed.count

    @property
    def p99_ms(self) -> float:
        """The 99 % quantile of the observed durations; the longest one of fewer than 100 checkpoints."""
        position = self.checkpoints // 100
        return self.longest_ms[min(position, len(self.longest_ms) - 1)] if self.longest_ms else 0.0
