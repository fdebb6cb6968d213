"""How well the simulation of a job as it is agrees with the history of checkpoints that it was imported from.

A backtest is about a file, not about a run: it changes nothing of what is simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.model.quantities import Level
    from sim.model.scenario import Scenario


MAX_KEPT_DURATIONS = 20
"""Durations of the history that are kept: enough for its 99 % quantile over 2,000 checkpoints."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of a quantity, in ms, bytes or records per second.  NaN: there are no values."""

    p50: float = math.nan
    p90: float = math.nan
    largest: float = math.nan
    count: int = 0

    def at(self, level: Level) -> float:
        return self.p50 if level == "p50" else self.p90


@dataclass(frozen=True, slots=True)
class ComparedQuantity:
    """A quantity, observed and predicted.  `off`: where both differ by more than repetitions of one run do."""

    quantity: str
    observed: Quantiles
    predicted: Quantiles
    vertex: str = ""  # empty: the whole checkpoint
    off: tuple[Level, ...] = ()
    cause: str = ""

    def change(self, level: Level) -> float | None:
        """(predicted - observed) / observed.  None: nothing was predicted, or nothing observed."""
        observed, predicted = self.observed.at(level), self.predicted.at(level)
        return (predicted - observed) / observed if self.predicted.count and observed else None

    def agreement(self, level: Level) -> float:
        """The smaller value as a share of the larger one; 1 where they differ by no more than repetitions do."""
        values = (self.observed.at(level), self.predicted.at(level))
        if level not in self.off or math.isnan(values[0]):
            return 1.0
        return min(values) / max(values) if values[1] > 0 else 0.0  # NaN: nothing was predicted


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """Factors by which durations under other settings may be off.  Infinite: nothing is known of them.

    Those of a history alone are chance in so few checkpoints, the machine, and what the backtest is off by.  How far a
    what-if goes beyond that depends on what it changes (`sim.jobs.evidence`).
    """

    p50: float
    p90: float


@dataclass(frozen=True, slots=True)
class SeenFailures:
    """Checkpoints of a history that failed, beside those of the simulation, and failures of the job."""

    completed: int
    failed: int
    reason: str = ""  # of most of them; empty: not known
    predicted_completed: int = 0
    predicted_failed: int = 0
    job_failures: int = 0
    ran_ns: int = 0  # the time in which the job failed so often

    @property
    def are_missed(self) -> bool:
        """Whether the simulation completes checkpoints of a job that hardly completes any."""
        predicted = self.predicted_completed + self.predicted_failed
        return 2 * self.failed > self.failed + self.completed and 2 * self.predicted_failed < predicted

    @property
    def mtbf_ms(self) -> float | None:
        """Mean time between failures.  None: the job did not fail, or it is not known for how long it ran."""
        return self.ran_ns / 1e6 / self.job_failures if self.job_failures and self.ran_ns else None


@dataclass(frozen=True, slots=True)
class Backtest:
    """The backtest of an import."""

    compared: tuple[ComparedQuantity, ...]
    longest_ms: tuple[float, ...] = ()  # recorded checkpoints, the longest first
    tail: float = 1.0  # of checkpoints: observed / predicted; 1: no further apart than repetitions are
    runs: int = 1
    simulated_ns: int = 0  # each of the runs
    other_settings: OtherSettings | None = None  # of the history alone; None: written before this was known
    failures: SeenFailures | None = None  # None: neither checkpoints nor the job failed
    # the job as the file has it, before anything is changed
    imported: Scenario | None = field(default=None, compare=False, repr=False)

    def of(self, quantity: str) -> ComparedQuantity | None:
        return next((compared for compared in self.compared if compared.quantity == quantity), None)

    @property
    def off(self) -> tuple[ComparedQuantity, ...]:
        return tuple(compared for compared in self.compared if compared.off)

    @property
    def checkpoints(self) -> int:
        """Completed checkpoints of the history."""
        durations = self.of("end-to-end")
        return 0 if durations is None else durations.observed.count

    @property
    def p99_ms(self) -> float:
        """The 99 % quantile of the history; of fewer than 100 checkpoints the longest."""
        position = self.checkpoints // 100
        return self.longest_ms[min(position, len(self.longest_ms) - 1)] if self.longest_ms else 0.0
